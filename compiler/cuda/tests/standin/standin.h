// Shared by the parts of the stand-in: complaints, the log, memory that emulates a GPU's, and work queued in streams.
//
// The stand-in is not a GPU. It is host code with the names of CUDA's libraries, to check the calls that a program
// makes. Its timing says nothing about a real GPU.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#define STANDIN_API extern "C" __attribute__((visibility("default")))

namespace standin {

// Prints what a call did wrong. From then on, the process cannot exit successfully.
void complain(const char *call, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Appends a line to the file named by TILEWRIGHT_STANDIN_LOG.
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Count objects that were created and not destroyed yet, by kind. What is left at the end is a leak.
void made(const char *kind);
void destroyed(const char *kind);

// Returns why a call cannot use `bytes` bytes at an address as GPU memory now; empty if it can.
std::string not_ours(uint64_t address, size_t bytes);

// Returns whether an address is in memory that is or was the GPU's.
bool is_ours(uint64_t address);

// Complains if something was written past the end of a piece of memory.
void check_borders(const char *after);

// Appends work to a stream. It runs only when something waits for it, so a program that forgets to wait reads old
// values. Returns false if there is no such stream.
bool enqueue(void *stream, const char *call, std::function<void()> work);

// Returns whether the calling thread has a context. Complains if not.
bool in_context(const char *call);

}  // namespace standin
