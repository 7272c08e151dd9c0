/* A model in a shared library: library INPUT OUTPUT, files of raw elements. */
#include "check.h"
#include "resnet8.h"

enum { INPUT = 32 * 32 * 3, OUTPUT = 10 };

static unsigned char input[INPUT], wanted[OUTPUT], found[OUTPUT];

static DLTensor tensor(void *data, int64_t *shape, int32_t axes) {
  return tensor_of(data, kDLInt, 8, shape, axes);
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  read_file(argv[1], input, sizeof input);
  read_file(argv[2], wanted, sizeof wanted);
  int64_t input_shape[] = {1, 32, 32, 3}, output_shape[] = {1, 10};
  DLTensor in = tensor(input, input_shape, 4), out = tensor(found, output_shape, 2);
  tw_value model, session, nothing = {TW_NONE, 0, {0}};
  OK(resnet8_open(&model));
  OK(tw_session_open(model, nothing, &session));
  for (int i = 0; i < 2; i++) {
    memset(found, 0, sizeof found);
    OK(tw_session_run(session, &in, 1, &out, 1));
    EXPECT(!memcmp(found, wanted, sizeof wanted));
  }
  OK(tw_value_free(session));
  OK(tw_value_free(model));
  return end();
}
