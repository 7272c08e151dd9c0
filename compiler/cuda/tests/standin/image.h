// The format that the stand-in's compiler passes to its driver: a header, then a host library with a table of its
// kernels.
#pragma once
#include <cstddef>
#include <cstdint>

namespace standin {

static const char MAGIC[17] = "TILEWRIGHT NOGPU";

struct Head {
  char magic[16];
  int32_t capability;
  int32_t reserved;
  uint64_t bytes;
};

// A kernel: its name, the element sizes of its arguments, and its limits. The compiler writes such rows as text.
struct Table {
  const char *name;
  int arguments;
  const size_t *sizes;
  unsigned most_threads;
  unsigned shared_bytes;
  void (*run)(void *const *args, const unsigned *grid, const unsigned *block);
};

}  // namespace standin
