// What the parts of the stand-in share: complaints, the log, memory that plays a GPU's, and work that waits in streams.
//
// The stand-in is no GPU. It is host code behind the names of CUDA's libraries, so that the calls which a program makes are
// checked: nothing that it does says how fast a GPU is.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#define STANDIN_API extern "C" __attribute__((visibility("default")))

namespace standin {

// Prints what a call did wrong; from then on the process cannot end well.
void complain(const char *call, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Appends a line to the file that TILEWRIGHT_STANDIN_LOG names.
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Counts what is made and not destroyed yet, by its kind; what is left at the end is a leak.
void made(const char *kind);
void destroyed(const char *kind);

// Why `bytes` bytes at an address are no memory of the GPU that a call may use now; empty where they are.
std::string not_ours(uint64_t address, size_t bytes);

// Whether an address lies in memory that is or was the GPU's.
bool is_ours(uint64_t address);

// Complains where something wrote behind the end of a piece of memory.
void check_borders(const char *after);

// Puts work at the end of a stream. It is done when somebody waits for it, and not before: a program that forgets to wait reads
// old values. False where there is no such stream.
bool enqueue(void *stream, const char *call, std::function<void()> work);

// Whether the calling thread has a context; complains otherwise.
bool in_context(const char *call);

}  // namespace standin
