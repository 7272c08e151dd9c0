/* Sessions of a real network: session ARTIFACT INPUT OUTPUT CODE PARAMETERS. INPUT and OUTPUT are files of raw elements;
 * CODE is the artifact without its parameters. */
#include "check.h"

enum { INPUT = 28 * 28, OUTPUT = 10 };

static float input[INPUT], wanted[OUTPUT];
static int64_t input_shape[] = {1, 1, 28, 28}, output_shape[] = {1, 10};

static DLTensor tensor(void *data, int64_t *shape, int32_t axes) {
  return tensor_of(data, kDLFloat, 32, shape, axes);
}

/* Runs the session; returns the status, and checks the answer if there is one. */
static tw_status run(tw_value session) {
  float found[OUTPUT] = {0};
  DLTensor in = tensor(input, input_shape, 4), out = tensor(found, output_shape, 2);
  tw_status status = tw_session_run(session, &in, 1, &out, 1);
  if (status == TW_OK) EXPECT(!memcmp(found, wanted, sizeof wanted));
  return status;
}

static tw_value open(tw_value artifact, tw_value device) {
  tw_value session = {TW_NONE, 0, {0}};
  OK(tw_session_open(artifact, device, &session));
  return session;
}

static tw_value named(tw_value artifact, const char *name) {
  tw_value device;
  OK(tw_string_new(name, strlen(name), &device));
  tw_value session = open(artifact, device);
  OK(tw_value_free(device));
  return session;
}

static void wrong_calls(tw_value session) {
  float found[OUTPUT];
  DLTensor in = tensor(input, input_shape, 4), out = tensor(found, output_shape, 2);
  REFUSED(tw_session_run(session, NULL, 0, &out, 1), TW_INVALID_ARGUMENT, "0 inputs given, but the model has 1");
  REFUSED(tw_session_run(session, &in, 1, NULL, 0), TW_INVALID_ARGUMENT, "memory for 0 outputs given");
  REFUSED(tw_session_run(session, NULL, 1, &out, 1), TW_INVALID_ARGUMENT, "inputs is a null pointer");
  int64_t other[] = {1, 1, 28, 27};
  in.shape = other;
  REFUSED(tw_session_run(session, &in, 1, &out, 1), TW_INVALID_ARGUMENT, "1x1x28x27, but the model expects 1x1x28x28");
  in.shape = input_shape;
  in.dtype.bits = 64;
  REFUSED(tw_session_run(session, &in, 1, &out, 1), TW_INVALID_ARGUMENT, "is f64, but the model expects f32");
  in.dtype.bits = 32;
  int64_t strides[] = {784, 784, 1, 28};
  in.strides = strides;
  REFUSED(tw_session_run(session, &in, 1, &out, 1), TW_INVALID_ARGUMENT, "make it contiguous");
  in.strides = NULL;
  out.ndim = 1;
  REFUSED(tw_session_run(session, &in, 1, &out, 1), TW_INVALID_ARGUMENT, "the memory for output");
  out.ndim = 2;
  out.device.device_type = 2;
  REFUSED(tw_session_run(session, &in, 1, &out, 1), TW_INVALID_ARGUMENT, "copy it to the host");
}

/* Submits frames before it waits for the first one; each is waited for once. */
static void frames(tw_value session) {
  tw_value submit, arguments, wait[3], outputs, output;
  OK(tw_module_function(session, "submit", &submit));
  DLTensor in = tensor(input, input_shape, 4);
  OK(tw_tensor_new(input, in.dtype, input_shape, 4, &arguments));
  for (int i = 0; i < 3; i++) OK(tw_function_call(submit, &arguments, 1, &wait[i]));
  for (int i = 0; i < 3; i++) {
    EXPECT(wait[i].kind == TW_FUNCTION);
    OK(tw_function_call(wait[i], NULL, 0, &outputs));
    OK(tw_value_item(outputs, 0, &output));
    DLDataType dtype;
    const void *data;
    size_t axes = 0, bytes;
    OK(tw_tensor_view(output, &dtype, NULL, &axes, &data, &bytes));
    EXPECT(bytes == sizeof wanted && !memcmp(data, wanted, sizeof wanted));
    REFUSED(tw_function_call(wait[i], NULL, 0, &outputs), TW_FAILED, "this frame was waited for already");
    OK(tw_value_free(output));
    OK(tw_value_free(outputs));
    OK(tw_value_free(wait[i]));
  }
  OK(tw_value_free(arguments));
  OK(tw_value_free(submit));
}

static tw_value shared;
static volatile int busy, ended;

/* Runs the session that the main thread runs too, until one of them was refused. */
static void *competitor(void *unused) {
  (void)unused;
  for (int i = 0; i < 100000 && !busy; i++) {
    tw_status status = run(shared);
    EXPECT(status == TW_OK || status == TW_BUSY);
    if (status == TW_BUSY) {
      EXPECT(strstr(tw_error(), "another thread runs this session"));
      busy = 1;
    }
  }
  ended = 1;
  return NULL;
}

/* Runs a session of its own on a device that others use. */
static void *neighbor(void *session) {
  for (int i = 0; i < 10; i++) OK(run(*(tw_value *)session));
  return NULL;
}

static void *whole_file(const char *path, size_t *bytes) {
  FILE *file = fopen(path, "rb");
  EXPECT(file && fseek(file, 0, SEEK_END) == 0);
  *bytes = (size_t)ftell(file);
  rewind(file);
  void *data = malloc(*bytes);
  EXPECT(fread(data, 1, *bytes, file) == *bytes);
  fclose(file);
  return data;
}

static void answers(tw_value artifact) {
  tw_value session = named(artifact, "fsim");
  OK(run(session));
  OK(tw_value_free(session));
  OK(tw_value_free(artifact));
}

/* An artifact whose parameters are in another file, which has another name than the artifact gives. */
static void parameters_apart(const char *code, const char *parameters) {
  tw_value artifact;
  REFUSED(tw_artifact_open(code, &artifact), TW_FAILED, "copy that file there, or give its path");
  OK(tw_artifact_open_with(code, parameters, &artifact));
  answers(artifact);
  size_t code_bytes, parameter_bytes;
  void *own = whole_file(code, &code_bytes), *apart = whole_file(parameters, &parameter_bytes);
  REFUSED(tw_artifact_open_bytes(own, code_bytes, &artifact), TW_FAILED, "together with the bytes of that file");
  REFUSED(tw_artifact_open_bytes_with(own, code_bytes, apart, parameter_bytes - 1, &artifact), TW_FAILED, "damaged");
  OK(tw_artifact_open_bytes_with(own, code_bytes, apart, parameter_bytes, &artifact));
  answers(artifact);
  free(own);
  free(apart);
}

int main(int argc, char **argv) {
  if (argc != 6) return 2;
  read_file(argv[2], input, sizeof input);
  read_file(argv[3], wanted, sizeof wanted);
  tw_value artifact, nothing = {TW_NONE, 0, {0}}, device, config, function, result;
  OK(tw_artifact_open(argv[1], &artifact));
  const char *names[] = {"fsim", "csim"};
  for (int i = 0; i < 2; i++) {
    tw_value session = named(artifact, names[i]);
    OK(run(session));
    OK(run(session));
    wrong_calls(session);
    frames(session);
    OK(run(session));
    OK(tw_value_free(session));
    REFUSED(run(session), TW_INVALID_HANDLE, "was freed");
  }
  REFUSED(tw_session_open(artifact, nothing, &result), TW_FAILED, "runs on an accelerator");

  /* Two sessions on one device, from two threads. */
  OK(tw_module_function(artifact, "config", &function));
  OK(tw_function_call(function, NULL, 0, &config));
  const void *toml;
  size_t bytes;
  OK(tw_value_data(config, &toml, &bytes));
  OK(tw_device_open("fsim", toml, &device));
  tw_value sessions[] = {open(artifact, device), open(artifact, device)};
  pthread_t thread;
  pthread_create(&thread, NULL, neighbor, &sessions[0]);
  neighbor(&sessions[1]);
  pthread_join(thread, NULL);

  /* One session, from two threads. */
  shared = sessions[0];
  pthread_create(&thread, NULL, competitor, NULL);
  while (!ended) {
    if (run(shared) == TW_BUSY) busy = 1;
  }
  pthread_join(thread, NULL);
  EXPECT(busy);
  OK(run(shared));

  /* The device's memory is free again after them. */
  OK(tw_value_free(sessions[0]));
  OK(tw_value_free(sessions[1]));
  int64_t free_and_all[2];
  const char *sizes[] = {"free_bytes", "memory_bytes"};
  for (int i = 0; i < 2; i++) {
    tw_value size;
    OK(tw_module_function(device, sizes[i], &size));
    OK(tw_function_call(size, NULL, 0, &result));
    free_and_all[i] = result.data.integer;
    OK(tw_value_free(size));
  }
  EXPECT(free_and_all[0] == free_and_all[1]);
  parameters_apart(argv[4], argv[5]);
  tw_value all[] = {artifact, device, config, function};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) OK(tw_value_free(all[i]));
  return end();
}
