/*
 * The C interface of Tilewright: artifacts, sessions, devices, functions and the values that they exchange.
 *
 * Written from the crate `ffi`; do not edit.
 */

#ifndef TILEWRIGHT_H
#define TILEWRIGHT_H

#include <stddef.h>
#include <stdint.h>
/* Tensors as DLPack 1.0 describes them (https://dmlc.github.io/dlpack). Its own header has the same. */
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
typedef enum { kDLCPU = 1 } DLDeviceType;
typedef enum { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBool = 6 } DLDataTypeCode;
typedef struct { uint32_t major, minor; } DLPackVersion;
typedef struct { int32_t device_type, device_id; } DLDevice;
typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;
typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; /* null: row-major without gaps */
  uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned *self);
  uint64_t flags; /* bit 0: the elements must not be written */
  DLTensor dl_tensor;
} DLManagedTensorVersioned;
#endif

// Version of this interface. It changes when a program that was built for the version before would no longer work.
#define TW_ABI_VERSION 1

// No value.
#define TW_NONE 0

// An integer, also a truth value: `data.integer`.
#define TW_INTEGER 1

// A real number: `data.real`.
#define TW_FLOAT 2

// A text in UTF-8.
#define TW_STRING 3

// Uninterpreted bytes.
#define TW_BYTES 4

// A tensor.
#define TW_TENSOR 5

// A function.
#define TW_FUNCTION 6

// A module: an artifact, a session or a device.
#define TW_MODULE 7

// Values by position.
#define TW_LIST 8

// Values by name.
#define TW_MAP 9

// How a call of the library ended.
typedef int32_t tw_status;

// Names something that lives in the library, until `tw_value_free`.
typedef uint64_t tw_handle;

// A value's number or handle.
typedef union {
  // Of an integer.
  int64_t integer;
  // Of a float.
  double real;
  // Of every other kind.
  tw_handle handle;
} tw_payload;

// A value. Arguments are lent to the library; whatever the library puts out belongs to the caller, who frees it with
// `tw_value_free`.
typedef struct {
  // `TW_INTEGER` or another of these kinds.
  uint32_t kind;
  // 0.
  uint32_t reserved;
  // Its number or handle.
  tw_payload data;
} tw_value;

// A function in C. `args` are lent for the call; `result` holds no value, and the library takes over and frees what
// the function stores there. After `tw_set_error` it returns `TW_FAILED`. It can be called by
// several threads at the same time.
typedef tw_status (*tw_callback)(void *context, const tw_value *args, size_t count, tw_value *result);

// Frees a function's context.
typedef void (*tw_drop)(void *context);

// The call did what it should.
#define TW_OK 0

// An argument is a null pointer, of the wrong kind, or otherwise not what the call takes.
#define TW_INVALID_ARGUMENT 1

// A handle that was freed, or that the library never gave out.
#define TW_INVALID_HANDLE 2

// Nothing has this name.
#define TW_NOT_FOUND 3

// Another thread uses the session.
#define TW_BUSY 4

// The call was in order, but what it asked for failed.
#define TW_FAILED 5

// A fault of the library. Please report it; the library can still be used.
#define TW_PANIC 6

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The library's `TW_ABI_VERSION`, to be compared with the header's.
uint32_t tw_abi_version(void);

// The library's version, for people.
const char *tw_version(void);

// Opens a device that sessions can share, by the name that `--device` accepts. `config` is the name of a preset, or a
// configuration as TOML.
//
// What the caller must keep:
// `name` and `config` are texts that end with a zero; `out` can be written.
tw_status tw_device_open(const char *name,
                         const char *config,
                         tw_value *out);

// The text of the last error on this thread; empty if there was none. It is valid until the next call of the library
// on this thread.
const char *tw_error(void);

// Sets the text of an error, for a function in C that fails.
//
// What the caller must keep:
// `text` is null or points to a text that ends with a zero.
void tw_set_error(const char *text);

// Makes a function from one in C. `context` is passed to every call; `drop`, which can be null, frees it when nothing
// refers to the function any more.
//
// What the caller must keep:
// `name` is a text that ends with a zero. `callback` and `drop` are functions of these types, and any thread can use
// them and the context. `out` can be written.
tw_status tw_function_new(const char *name,
                          tw_callback callback,
                          void *context,
                          tw_drop drop,
                          tw_value *out);

// Registers a function under its name, in place of one that has the name. Packed steps of models find it there. The
// value still belongs to the caller.
tw_status tw_function_register(tw_value function);

// Removes a function from the registry. Sessions that use it still can.
//
// What the caller must keep:
// `name` is a text that ends with a zero.
tw_status tw_function_unregister(const char *name);

// The registered function of that name.
//
// What the caller must keep:
// `name` is a text that ends with a zero; `out` can be written.
tw_status tw_function_find(const char *name, tw_value *out);

// Calls a function with `count` arguments.
//
// What the caller must keep:
// `args` points to so many values; `result` can be written, or is null if the result is not wanted.
tw_status tw_function_call(tw_value function, const tw_value *args, size_t count, tw_value *result);

// Opens the artifact in a file, as `tilewright compile` writes it. Its functions are those of
// `tilewright_runtime::module::ArtifactModule`.
//
// What the caller must keep:
// `path` is a text that ends with a zero; `out` can be written.
tw_status tw_artifact_open(const char *path, tw_value *out);

// Like `tw_artifact_open`, for an artifact whose parameters are in another file (`tilewright compile --params`).
// Without this path they are looked for in the artifact's folder, under the name that the artifact gives.
//
// What the caller must keep:
// `path` and `parameters` are texts that end with a zero; `out` can be written.
tw_status tw_artifact_open_with(const char *path,
                                const char *parameters,
                                tw_value *out);

// Opens the artifact in `bytes` bytes of memory, which are copied.
//
// What the caller must keep:
// `data` points to so many bytes; `out` can be written.
tw_status tw_artifact_open_bytes(const void *data, size_t bytes, tw_value *out);

// Like `tw_artifact_open_bytes`, for an artifact whose parameters are apart: `parameters` points to the
// `parameter_bytes` bytes of the file with them, which are copied.
//
// What the caller must keep:
// `data` and `parameters` point to so many bytes; `out` can be written.
tw_status tw_artifact_open_bytes_with(const void *data,
                                      size_t bytes,
                                      const void *parameters,
                                      size_t parameter_bytes,
                                      tw_value *out);

// What a module is: the string `artifact`, `session` or `device`.
//
// What the caller must keep:
// `out` can be written.
tw_status tw_module_kind(tw_value module, tw_value *out);

// The names of a module's functions, a list of strings.
//
// What the caller must keep:
// `out` can be written.
tw_status tw_module_functions(tw_value module, tw_value *out);

// The function of that name.
//
// What the caller must keep:
// `name` is a text that ends with a zero; `out` can be written.
tw_status tw_module_function(tw_value module, const char *name, tw_value *out);

// Opens a session of an artifact. `device` is a string as `--device` accepts it, a device of
// `tw_device_open`, or no value if nothing runs on an accelerator.
//
// What the caller must keep:
// `out` can be written.
tw_status tw_session_open(tw_value artifact, tw_value device, tw_value *out);

// Runs a session once: reads the inputs from the caller's memory and writes the outputs to it, in the model's order.
// Element types and shapes must be the model's, and elements contiguous.
//
// What the caller must keep:
// `inputs` and `outputs` point to `input_count` and `output_count` valid tensors; no other thread writes the inputs,
// and nobody else uses the outputs, until the call ends. An output does not overlap with another or with an input.
tw_status tw_session_run(tw_value session,
                         const DLTensor *inputs,
                         size_t input_count,
                         const DLTensor *outputs,
                         size_t output_count);

// Makes a tensor from elements in row-major order, which are copied. `shape` has `axes` lengths, slowest first.
//
// What the caller must keep:
// `shape` points to so many integers and `data` to all elements; `out` can be written.
tw_status tw_tensor_new(const void *data,
                        DLDataType dtype,
                        const int64_t *shape,
                        size_t axes,
                        tw_value *out);

// Takes a tensor over without copying it; its `deleter` is called when nothing refers to it any more. After an error
// it still belongs to the caller.
//
// What the caller must keep:
// `managed` points to a valid structure whose `deleter` any thread can call, and whose elements nobody writes any
// more; `out` can be written.
tw_status tw_tensor_from_dlpack(DLManagedTensorVersioned *managed,
                                tw_value *out);

// Hands a tensor out without copying it. The caller calls the structure's `deleter` in the end and does not write the
// elements.
//
// What the caller must keep:
// `out` can be written.
tw_status tw_tensor_to_dlpack(tw_value tensor,
                              DLManagedTensorVersioned **out);

// A tensor's element type, number of axes, elements and bytes, valid until the value is freed. If `shape` is not null
// and `*axes` is at least the number of axes, the lengths are stored there. The elements must not be written.
//
// What the caller must keep:
// `dtype`, `axes`, `data` and `bytes` can be written; `shape` is null or has room for `*axes` integers.
tw_status tw_tensor_view(tw_value tensor,
                         DLDataType *dtype,
                         int64_t *shape,
                         size_t *axes,
                         const void **data,
                         size_t *bytes);

// Makes a string of `bytes` bytes of UTF-8, which are copied.
//
// What the caller must keep:
// `text` points to so many bytes; `out` can be written.
tw_status tw_string_new(const char *text, size_t bytes, tw_value *out);

// Makes bytes, which are copied.
//
// What the caller must keep:
// `data` points to so many bytes; `out` can be written.
tw_status tw_bytes_new(const void *data, size_t bytes, tw_value *out);

// Makes a list of `count` values. The values still belong to the caller.
//
// What the caller must keep:
// `items` points to so many values; `out` can be written.
tw_status tw_list_new(const tw_value *items, size_t count, tw_value *out);

// Makes a map of `count` values with their names. Names and values still belong to the caller; of values with the same
// name the last is kept.
//
// What the caller must keep:
// `names` points to so many texts that end with a zero, `items` to so many values; `out` can be written.
tw_status tw_map_new(const char *const *names,
                     const tw_value *items,
                     size_t count,
                     tw_value *out);

// Another value that refers to the same; both are freed.
//
// What the caller must keep:
// `out` can be written.
tw_status tw_value_copy(tw_value value, tw_value *out);

// Frees a value. Those without a handle need not be freed, but may.
tw_status tw_value_free(tw_value value);

// The bytes of a string or of bytes, valid until the value is freed. A zero follows a string; it does not count.
//
// What the caller must keep:
// `data` and `bytes` can be written.
tw_status tw_value_data(tw_value value,
                        const void **data,
                        size_t *bytes);

// The number of values of a list or a map.
//
// What the caller must keep:
// `length` can be written.
tw_status tw_value_length(tw_value value, size_t *length);

// The value at a place of a list, from 0.
//
// What the caller must keep:
// `out` can be written.
tw_status tw_value_item(tw_value list, size_t place, tw_value *out);

// The value of that name in a map.
//
// What the caller must keep:
// `name` is a text that ends with a zero; `out` can be written.
tw_status tw_value_named(tw_value map, const char *name, tw_value *out);

// The names of a map's values, a list of strings.
//
// What the caller must keep:
// `out` can be written.
tw_status tw_value_names(tw_value map, tw_value *out);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TILEWRIGHT_H */
