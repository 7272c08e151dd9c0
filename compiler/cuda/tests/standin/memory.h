// Pieces of memory, for the driver's part of the stand-in.
#pragma once
#include <cstddef>
#include <cstdint>

namespace standin {

// What a piece is: usable; freed by work that waits in a stream; freed.
enum State { LIVE, DOOMED, GONE };

struct Piece {
  uint64_t base;
  size_t bytes;
  size_t mapped;
  State state;
};

// New memory on a boundary of a page, or 0.
uint64_t take(size_t bytes);
// The piece that begins at an address.
Piece *piece(uint64_t base);
// Frees a piece.
void release(uint64_t base);
// Bytes in use.
size_t taken();
// Complains about work in streams that nobody waited for.
void unfinished();

}  // namespace standin
