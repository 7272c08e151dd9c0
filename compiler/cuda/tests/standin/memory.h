// Pieces of memory for the stand-in's driver.
#pragma once
#include <cstddef>
#include <cstdint>

namespace standin {

// State of a piece: usable, freed by work still queued in a stream, or freed.
enum State { LIVE, DOOMED, GONE };

struct Piece {
  uint64_t base;
  size_t bytes;
  size_t mapped;
  State state;
};

// Allocates page-aligned memory. Returns 0 on failure.
uint64_t take(size_t bytes);
// Returns the piece that begins at an address.
Piece *piece(uint64_t base);
// Frees a piece.
void release(uint64_t base);
// Returns the number of bytes in use.
size_t taken();
// Complains about work in streams that was never waited for.
void unfinished();

}  // namespace standin
