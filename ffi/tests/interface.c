/* Every function of the header, with right and wrong arguments. */
#include "check.h"

static tw_value integer(int64_t number) {
  tw_value value = {TW_INTEGER, 0, {0}};
  value.data.integer = number;
  return value;
}

static tw_value none(void) {
  tw_value value = {TW_NONE, 0, {0}};
  return value;
}

static tw_value string(const char *text) {
  tw_value value;
  OK(tw_string_new(text, strlen(text), &value));
  return value;
}

static int is_text(tw_value value, const char *text) {
  const void *data;
  size_t bytes;
  return tw_value_data(value, &data, &bytes) == TW_OK && bytes == strlen(text) && !memcmp(data, text, bytes + 1);
}

static void values(void) {
  tw_value text = string("abc"), bytes, list, map, copy, item, names;
  EXPECT(is_text(text, "abc"));
  OK(tw_bytes_new("\0\1", 2, &bytes));
  const void *data;
  size_t length;
  OK(tw_value_data(bytes, &data, &length));
  EXPECT(length == 2 && !memcmp(data, "\0\1", 2));

  tw_value items[] = {integer(7), text, bytes};
  OK(tw_list_new(items, 3, &list));
  OK(tw_value_length(list, &length));
  EXPECT(length == 3);
  OK(tw_value_item(list, 0, &item));
  EXPECT(item.kind == TW_INTEGER && item.data.integer == 7);
  OK(tw_value_item(list, 1, &item));
  EXPECT(is_text(item, "abc"));
  OK(tw_value_free(item));
  REFUSED(tw_value_item(list, 3, &item), TW_NOT_FOUND, "has 3 items");
  OK(tw_list_new(NULL, 0, &item));
  OK(tw_value_free(item));

  const char *keys[] = {"b", "a", "b"};
  OK(tw_map_new(keys, items, 3, &map));
  OK(tw_value_length(map, &length));
  EXPECT(length == 2);
  OK(tw_value_names(map, &names));
  OK(tw_value_item(names, 0, &item));
  EXPECT(is_text(item, "a"));
  OK(tw_value_free(item));
  OK(tw_value_named(map, "a", &item));
  EXPECT(is_text(item, "abc"));
  OK(tw_value_free(item));
  REFUSED(tw_value_named(map, "c", &item), TW_NOT_FOUND, "no c; it has: a, b");

  /* A copy lives on. */
  OK(tw_value_copy(text, &copy));
  OK(tw_value_free(text));
  EXPECT(is_text(copy, "abc"));
  REFUSED(tw_value_data(text, &data, &length), TW_INVALID_HANDLE, "was freed");
  REFUSED(tw_value_free(text), TW_INVALID_HANDLE, "was freed");
  tw_value after = string("another one in its place");
  REFUSED(tw_value_data(text, &data, &length), TW_INVALID_HANDLE, "was freed");
  OK(tw_value_free(after));

  /* Wrong kinds, null pointers, wrong texts. */
  REFUSED(tw_value_data(list, &data, &length), TW_INVALID_ARGUMENT, "a list where a string or bytes");
  REFUSED(tw_value_length(copy, &length), TW_INVALID_ARGUMENT, "a string where a list or a map");
  REFUSED(tw_value_data(integer(1), &data, &length), TW_INVALID_ARGUMENT, "without a handle");
  tw_value wrong = copy;
  wrong.kind = TW_LIST;
  REFUSED(tw_value_length(wrong, &length), TW_INVALID_ARGUMENT, "that of a string");
  wrong.kind = 99;
  REFUSED(tw_value_copy(wrong, &item), TW_INVALID_ARGUMENT, "99 is no kind");
  REFUSED(tw_value_free(wrong), TW_INVALID_ARGUMENT, "99 is no kind");
  REFUSED(tw_string_new("abc", 3, NULL), TW_INVALID_ARGUMENT, "out is a null pointer");
  REFUSED(tw_string_new(NULL, 3, &item), TW_INVALID_ARGUMENT, "text is a null pointer");
  REFUSED(tw_string_new("\xff", 1, &item), TW_INVALID_ARGUMENT, "not UTF-8");
  REFUSED(tw_list_new(items, SIZE_MAX / 2, &item), TW_INVALID_ARGUMENT, "more than memory holds");
  REFUSED(tw_list_new(items, 3, &item), TW_INVALID_HANDLE, "was freed"); /* its text was */
  REFUSED(tw_value_data(copy, NULL, &length), TW_INVALID_ARGUMENT, "data is a null pointer");

  OK(tw_value_free(integer(1)));
  tw_value all[] = {bytes, list, map, names, copy};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) OK(tw_value_free(all[i]));
}

static int deleted = 0;

static void deleter(DLManagedTensorVersioned *self) {
  deleted++;
  free(self);
}

static void tensors(void) {
  int64_t shape[] = {2, 3}, found[4] = {0};
  float elements[] = {1, 2, 3, 4, 5, 6};
  DLDataType f32 = {kDLFloat, 32, 1}, dtype;
  tw_value tensor, other;
  OK(tw_tensor_new(elements, f32, shape, 2, &tensor));
  const void *data;
  size_t axes = 4, bytes;
  OK(tw_tensor_view(tensor, &dtype, found, &axes, &data, &bytes));
  EXPECT(axes == 2 && found[0] == 2 && found[1] == 3 && bytes == sizeof elements && dtype.code == kDLFloat);
  EXPECT(!memcmp(data, elements, bytes) && data != elements);
  /* Too little room: only the number of axes is told. */
  found[0] = axes = 1;
  OK(tw_tensor_view(tensor, &dtype, found, &axes, &data, &bytes));
  EXPECT(axes == 2 && found[0] == 1);

  /* Out and in again without a copy. */
  DLManagedTensorVersioned *managed;
  OK(tw_tensor_to_dlpack(tensor, &managed));
  OK(tw_value_free(tensor));
  EXPECT(!memcmp(managed->dl_tensor.data, elements, sizeof elements));
  OK(tw_tensor_from_dlpack(managed, &other));
  const void *same;
  axes = 0;
  OK(tw_tensor_view(other, &dtype, NULL, &axes, &same, &bytes));
  EXPECT(same == data && axes == 2);
  OK(tw_value_free(other));

  /* One of ours, deleted once nothing refers to it. */
  managed = calloc(1, sizeof *managed);
  managed->version.major = 1;
  managed->deleter = deleter;
  managed->dl_tensor.data = elements;
  managed->dl_tensor.device.device_type = kDLCPU;
  managed->dl_tensor.dtype = f32;
  managed->dl_tensor.ndim = 2;
  managed->dl_tensor.shape = shape;
  int64_t strides[] = {1, 2};
  managed->dl_tensor.strides = strides;
  REFUSED(tw_tensor_from_dlpack(managed, &tensor), TW_INVALID_ARGUMENT, "make it contiguous");
  EXPECT(deleted == 0);
  managed->dl_tensor.strides = NULL;
  OK(tw_tensor_from_dlpack(managed, &tensor));
  OK(tw_value_copy(tensor, &other));
  OK(tw_value_free(tensor));
  EXPECT(deleted == 0);
  OK(tw_value_free(other));
  EXPECT(deleted == 1);

  REFUSED(tw_tensor_from_dlpack(NULL, &tensor), TW_INVALID_ARGUMENT, "structure is a null pointer");
  DLDataType f128 = {kDLFloat, 128, 1};
  REFUSED(tw_tensor_new(elements, f128, shape, 2, &tensor), TW_INVALID_ARGUMENT, "128 bits");
  shape[0] = -2;
  REFUSED(tw_tensor_new(elements, f32, shape, 2, &tensor), TW_INVALID_ARGUMENT, "negative");
  shape[0] = 0;
  OK(tw_tensor_new(NULL, f32, shape, 2, &tensor));
  OK(tw_value_free(tensor));
}

static int dropped = 0;

static void drop(void *context) {
  dropped++;
  free(context);
}

/* Adds the context's number to its only argument. */
static tw_status add(void *context, const tw_value *args, size_t count, tw_value *result) {
  if (count != 1 || args[0].kind != TW_INTEGER) {
    tw_set_error("it adds to one integer");
    return TW_FAILED;
  }
  *result = integer(args[0].data.integer + *(int64_t *)context);
  return TW_OK;
}

/* Returns its argument, which it owns only lent: the library makes its own of it. */
static tw_status same(void *context, const tw_value *args, size_t count, tw_value *result) {
  (void)context;
  return count == 1 ? tw_value_copy(args[0], result) : TW_NOT_FOUND;
}

static void functions(void) {
  int64_t *five = malloc(sizeof *five);
  *five = 5;
  tw_value function, found, result, text = string("abc");
  OK(tw_function_new("add_five", add, five, drop, &function));
  tw_value two = integer(2);
  OK(tw_function_call(function, &two, 1, &result));
  EXPECT(result.kind == TW_INTEGER && result.data.integer == 7);
  OK(tw_function_call(function, &two, 1, NULL));
  REFUSED(tw_function_call(function, &text, 1, &result), TW_FAILED, "add_five: it adds to one integer");
  OK(tw_function_register(function));
  OK(tw_value_free(function));
  OK(tw_function_find("add_five", &found));
  OK(tw_function_call(found, &two, 1, &result));
  EXPECT(result.data.integer == 7);
  OK(tw_function_unregister("add_five"));
  REFUSED(tw_function_unregister("add_five"), TW_NOT_FOUND, "no function is registered as add_five");
  REFUSED(tw_function_find("add_five", &result), TW_NOT_FOUND, "device.fsim");
  EXPECT(dropped == 0);
  OK(tw_value_free(found));
  EXPECT(dropped == 1);

  OK(tw_function_new("same", same, NULL, NULL, &function));
  OK(tw_function_call(function, &text, 1, &result));
  EXPECT(is_text(result, "abc"));
  OK(tw_value_free(result));
  REFUSED(tw_function_call(function, NULL, 0, &result), TW_FAILED, "same: it returned status 3");
  REFUSED(tw_function_call(text, NULL, 0, &result), TW_INVALID_ARGUMENT, "a string where a function");
  REFUSED(tw_function_call(function, NULL, 1, &result), TW_INVALID_ARGUMENT, "args is a null pointer");
  REFUSED(tw_function_new("nothing", NULL, NULL, NULL, &result), TW_INVALID_ARGUMENT, "callback is a null pointer");
  OK(tw_value_free(function));
  OK(tw_value_free(text));
}

static void devices(void) {
  tw_value device, kind, function, result, list;
  OK(tw_device_open("csim", "1x4x4", &device));
  OK(tw_module_kind(device, &kind));
  EXPECT(is_text(kind, "device"));
  OK(tw_module_functions(device, &list));
  OK(tw_module_function(device, "alloc", &function));
  tw_value bytes = integer(100), args[2];
  OK(tw_function_call(function, &bytes, 1, &args[0]));
  OK(tw_value_free(function));
  OK(tw_bytes_new("hello", 5, &args[1]));
  OK(tw_module_function(device, "write", &function));
  OK(tw_function_call(function, args, 2, NULL));
  OK(tw_value_free(args[1]));
  OK(tw_value_free(function));
  OK(tw_module_function(device, "read", &function));
  args[1] = integer(5);
  OK(tw_function_call(function, args, 2, &result));
  const void *data;
  size_t length;
  OK(tw_value_data(result, &data, &length));
  EXPECT(length == 5 && !memcmp(data, "hello", 5));
  args[1] = integer(INT64_MAX);
  REFUSED(tw_function_call(function, args, 2, &kind), TW_FAILED, "pass the end of device memory");
  tw_value address = args[0];
  args[0] = integer(-1);
  REFUSED(tw_function_call(function, args, 2, &kind), TW_FAILED, "cannot be negative");
  OK(tw_value_free(function));
  OK(tw_module_function(device, "free", &function));
  args[0] = address;
  args[1] = integer(99);
  REFUSED(tw_function_call(function, args, 2, &kind), TW_FAILED, "no block of 99 bytes was allocated at");
  args[1] = integer(100);
  OK(tw_function_call(function, args, 2, NULL));
  REFUSED(tw_function_call(function, args, 2, &kind), TW_FAILED, "no block of 100 bytes was allocated at");
  REFUSED(tw_device_open("tpu", "1x4x4", &kind), TW_NOT_FOUND, "csim");
  REFUSED(tw_device_open("fsim", "nope", &kind), TW_NOT_FOUND, "no configuration is named nope; the presets are 1x");
  REFUSED(tw_device_open("fsim", "nope =", &kind), TW_FAILED, "fsim");
  REFUSED(tw_device_open("serial:", "1x4x4", &kind), TW_FAILED, "serial:PATH");
  REFUSED(tw_module_function(device, "fly", &kind), TW_NOT_FOUND, "named fly; there are: alloc");
  REFUSED(tw_session_run(device, NULL, 0, NULL, 0), TW_INVALID_ARGUMENT, "no session");
  REFUSED(tw_artifact_open("tests/interface.c", &kind), TW_FAILED, "not a Tilewright artifact");
  REFUSED(tw_artifact_open("tests/nothing", &kind), TW_FAILED, "tests/nothing");
  REFUSED(tw_artifact_open_bytes("TILEWRGT", 8, &kind), TW_FAILED, "damaged");
  REFUSED(tw_session_open(device, none(), &kind), TW_NOT_FOUND, "named session");
  tw_value all[] = {device, kind, list, function, result};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) OK(tw_value_free(all[i]));
}

/* What each thread does: its values are its own, the text of its error too. */
static void *thread(void *number) {
  for (int i = 0; i < 2000; i++) {
    tw_value text = string(number), list;
    OK(tw_list_new(&text, 1, &list));
    OK(tw_value_free(text));
    REFUSED(tw_value_named(list, "a", &text), TW_INVALID_ARGUMENT, "a list where a map");
    OK(tw_value_item(list, 0, &text));
    EXPECT(is_text(text, number));
    OK(tw_value_free(text));
    OK(tw_value_free(list));
  }
  return NULL;
}

static void threads(void) {
  pthread_t all[4];
  char names[4][2] = {"0", "1", "2", "3"};
  for (int i = 0; i < 4; i++) pthread_create(&all[i], NULL, thread, names[i]);
  for (int i = 0; i < 4; i++) pthread_join(all[i], NULL);
}

int main(void) {
  EXPECT(tw_abi_version() == TW_ABI_VERSION);
  EXPECT(strlen(tw_version()) > 0 && !strcmp(tw_error(), ""));
  values();
  tensors();
  functions();
  devices();
  threads();
  return end();
}
