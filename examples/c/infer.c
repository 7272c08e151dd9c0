/*
 * Runs a compiled model: infer ARTIFACT [DEVICE]
 *
 * Reads the bytes of the model's only input from standard input, runs the model on DEVICE (fsim if none is named), and
 * writes the bytes of its first output to standard output.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tilewright.h"

/* Ends the program with the text of an error. */
static void check(tw_status status) {
  if (status != TW_OK) {
    fprintf(stderr, "%s\n", tw_error());
    exit(1);
  }
}

/* What a module knows about its first input or output: `what` is "inputs" or "outputs". */
static DLTensor describe(tw_value session, const char *what, int64_t *shape, size_t most) {
  tw_value function, list, first, axes, dtype;
  check(tw_module_function(session, what, &function));
  check(tw_function_call(function, NULL, 0, &list));
  check(tw_value_item(list, 0, &first));
  check(tw_value_named(first, "shape", &axes));
  check(tw_value_named(first, "dtype", &dtype));
  size_t count;
  check(tw_value_length(axes, &count));
  if (count > most) {
    fprintf(stderr, "the model has a tensor of %zu axes\n", count);
    exit(1);
  }
  for (size_t i = 0; i < count; i++) {
    tw_value axis;
    check(tw_value_item(axes, i, &axis));
    if (axis.kind != TW_INTEGER) {
      fprintf(stderr, "the model is for several shapes; this program is for models of one\n");
      exit(1);
    }
    shape[i] = axis.data.integer;
  }
  const void *name;
  size_t length;
  check(tw_value_data(dtype, &name, &length));
  DLTensor tensor = {0};
  tensor.device.device_type = kDLCPU;
  tensor.ndim = (int32_t)count;
  tensor.shape = shape;
  /* i8, u8, f32 and so on. */
  const char *text = name;
  tensor.dtype.code = text[0] == 'f' ? kDLFloat : text[0] == 'u' ? kDLUInt : text[0] == 'b' ? kDLBool : kDLInt;
  tensor.dtype.bits = text[0] == 'b' ? 8 : (uint8_t)atoi(text + 1);
  tensor.dtype.lanes = 1;
  tw_value all[] = {function, list, first, axes, dtype};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) check(tw_value_free(all[i]));
  return tensor;
}

static size_t bytes_of(const DLTensor *tensor) {
  size_t bytes = tensor->dtype.bits / 8;
  for (int32_t i = 0; i < tensor->ndim; i++) bytes *= (size_t)tensor->shape[i];
  return bytes;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: infer ARTIFACT [DEVICE]\n");
    return 2;
  }
  if (tw_abi_version() != TW_ABI_VERSION) {
    fprintf(stderr, "the library has version %u of the interface, this program %u\n", tw_abi_version(), TW_ABI_VERSION);
    return 1;
  }
  const char *name = argc > 2 ? argv[2] : "fsim";
  tw_value artifact, device, session;
  check(tw_artifact_open(argv[1], &artifact));
  check(tw_string_new(name, strlen(name), &device));
  check(tw_session_open(artifact, device, &session));

  int64_t shapes[2][8];
  DLTensor input = describe(session, "inputs", shapes[0], 8), output = describe(session, "outputs", shapes[1], 8);
  size_t bytes = bytes_of(&input);
  input.data = malloc(bytes);
  output.data = malloc(bytes_of(&output));
  if (!input.data || !output.data) {
    fprintf(stderr, "the system has no memory for the tensors\n");
    return 1;
  }
  if (fread(input.data, 1, bytes, stdin) != bytes) {
    fprintf(stderr, "the input has %zu bytes\n", bytes);
    return 1;
  }
  check(tw_session_run(session, &input, 1, &output, 1));
  fwrite(output.data, 1, bytes_of(&output), stdout);

  free(input.data);
  free(output.data);
  check(tw_value_free(session));
  check(tw_value_free(device));
  check(tw_value_free(artifact));
  return 0;
}
