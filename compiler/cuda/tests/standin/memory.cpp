// Memory of the stand-in: the page after every piece is not mapped, and freed pages are never mapped again.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "memory.h"
#include "standin.h"

namespace standin {

static const size_t PAGE = 4096;
static const unsigned char BORDER = 0xa5, FRESH = 0xcb;

// Like all tables here, these are never destroyed, because they are read at the very end.
static auto &pieces = *new std::map<uint64_t, Piece>;
static auto &alive = *new std::map<std::string, int>;
static int complaints = 0;

void note(const char *format, ...) {
  static FILE *file = [] {
    const char *path = getenv("TILEWRIGHT_STANDIN_LOG");
    return path && *path ? fopen(path, "a") : nullptr;
  }();
  if (!file) return;
  va_list list;
  va_start(list, format);
  vfprintf(file, format, list);
  va_end(list);
  fputc('\n', file);
  fflush(file);
}

void complain(const char *call, const char *format, ...) {
  char text[512];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  fprintf(stderr, "stand-in: %s: %s\n", call, text);
  note("wrong %s: %s", call, text);
  complaints++;
}

void made(const char *kind) { alive[kind]++; }
void destroyed(const char *kind) { alive[kind]--; }

static Piece *holder(uint64_t address) {
  auto after = pieces.upper_bound(address);
  if (after == pieces.begin()) return nullptr;
  Piece &p = std::prev(after)->second;
  return address < p.base + p.mapped ? &p : nullptr;
}

bool is_ours(uint64_t address) { return holder(address) != nullptr; }

std::string not_ours(uint64_t address, size_t bytes) {
  char text[160];
  Piece *p = holder(address);
  if (!p) {
    snprintf(text, sizeof text, "%#llx is not memory of the GPU", (unsigned long long)address);
    return text;
  }
  if (p->state != LIVE) return "the memory has been freed";
  size_t at = address - p->base;
  if (at > p->bytes || bytes > p->bytes - at) {
    snprintf(text, sizeof text, "%zu bytes from %zu on pass the end of %zu bytes of memory", bytes, at, p->bytes);
    return text;
  }
  return "";
}

void check_borders(const char *after) {
  for (auto &entry : pieces) {
    Piece &p = entry.second;
    if (p.state == GONE) continue;
    const unsigned char *end = (const unsigned char *)p.base + p.bytes;
    for (size_t i = 0; i < p.mapped - p.bytes; i++) {
      if (end[i] == BORDER) continue;
      complain(after, "byte %zu past the end of %zu bytes of memory was written", i, p.bytes);
      memset((void *)end, BORDER, p.mapped - p.bytes);
      break;
    }
  }
}

uint64_t take(size_t bytes) {
  // Leave an inaccessible page in front of and after every piece.
  size_t mapped = (bytes + PAGE) / PAGE * PAGE;
  char *all = (char *)mmap(nullptr, mapped + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return 0;
  char *base = all + PAGE;
  if (mprotect(base, mapped, PROT_READ | PROT_WRITE) != 0) return 0;
  memset(base, FRESH, bytes);
  memset(base + bytes, BORDER, mapped - bytes);
  pieces[(uint64_t)base] = Piece{(uint64_t)base, bytes, mapped, LIVE};
  made("memory");
  return (uint64_t)base;
}

Piece *piece(uint64_t base) {
  auto found = pieces.find(base);
  return found == pieces.end() ? nullptr : &found->second;
}

void release(uint64_t base) {
  Piece &p = pieces[base];
  check_borders("freeing memory");
  p.state = GONE;
  mprotect((void *)p.base, p.mapped, PROT_NONE);
  destroyed("memory");
}

size_t taken() {
  size_t sum = 0;
  for (auto &entry : pieces)
    if (entry.second.state == LIVE) sum += entry.second.bytes;
  return sum;
}

// Exit code of a process whose calls were wrong or that leaked something, whatever code it wanted to exit with.
static const int WRONG = 86;

__attribute__((destructor)) static void at_the_end() {
  unfinished();
  for (auto &kind : alive)
    if (kind.second != 0) complain("the end", "%d of %s not destroyed", kind.second, kind.first.c_str());
  const char *tolerated = getenv("TILEWRIGHT_STANDIN_TOLERATES");
  if (complaints == 0 || (tolerated && *tolerated)) return;
  fflush(nullptr);
  _exit(WRONG);
}

}  // namespace standin
