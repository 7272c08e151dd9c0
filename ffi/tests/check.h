/* What the programs check, and how they end. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tilewright.h"

static int failures = 0;

#define EXPECT(condition)                                                                   \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      fprintf(stderr, "line %d: not so: %s (%s)\n", __LINE__, #condition, tw_error());      \
      failures++;                                                                           \
    }                                                                                       \
  } while (0)

/* The call ends in this status, and its text contains this. */
#define REFUSED(call, status, part)                                                         \
  do {                                                                                      \
    tw_status found = (call);                                                               \
    if (found != (status) || !strstr(tw_error(), part)) {                                   \
      fprintf(stderr, "line %d: %s: status %d, \"%s\"\n", __LINE__, #call, found, tw_error()); \
      failures++;                                                                           \
    }                                                                                       \
  } while (0)

#define OK(call) EXPECT((call) == TW_OK)

/* A file of exactly so many bytes. */
static inline void read_file(const char *path, void *to, size_t bytes) {
  FILE *file = fopen(path, "rb");
  EXPECT(file && fread(to, 1, bytes, file) == bytes);
  if (file) fclose(file);
}

/* A tensor in the program's memory, with elements of this kind and so many bits. */
static inline DLTensor tensor_of(void *data, DLDataTypeCode code, uint8_t bits, int64_t *shape, int32_t axes) {
  DLTensor made = {0};
  made.data = data;
  made.device.device_type = kDLCPU;
  made.ndim = axes;
  made.dtype.code = (uint8_t)code;
  made.dtype.bits = bits;
  made.dtype.lanes = 1;
  made.shape = shape;
  return made;
}

/* Ends the program: with its only output if all was as it should be. */
static int end(void) {
  if (failures) return 1;
  puts("all as it should be");
  return 0;
}
