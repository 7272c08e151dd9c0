// The functions of CUDA's driver that the runtime calls. Work stays queued in its stream until something waits for it.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "image.h"
#include "memory.h"
#include "standin.h"

using namespace standin;

enum Result {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NOT_INITIALIZED = 3,
  INVALID_DEVICE = 101,
  INVALID_IMAGE = 200,
  INVALID_CONTEXT = 201,
  NO_BINARY_FOR_GPU = 209,
  INVALID_HANDLE = 400,
  NOT_FOUND = 500,
  NOT_READY = 600,
  LAUNCH_OUT_OF_RESOURCES = 701,
  NOT_SUPPORTED = 801,
};

static const struct { int code; const char *name; } NAMES[] = {
    {SUCCESS, "CUDA_SUCCESS"},
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
    {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
    {NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
    {NOT_READY, "CUDA_ERROR_NOT_READY"},
    {LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
    {NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
};

// A GPU of compute capability 9.0, so that code for it is NVRTC machine code.
static const int CAPABILITY = 90;
static const unsigned MOST_THREADS = 1024, MOST_SHARED = 48 << 10;

namespace {

struct Event {
  bool timed;
  void *stream = nullptr;
  // Number of records requested, and number done.
  uint64_t asked = 0, done = 0;
  std::chrono::steady_clock::time_point at;
};

struct Item {
  const char *call;
  std::function<void()> work;
  // A wait for another stream's event, up to one of its records.
  std::shared_ptr<Event> awaited;
  uint64_t until = 0;
  bool matters = true;
};

struct Stream {
  std::deque<Item> queue;
};

struct Function;
struct Module {
  void *library;
  // Keeping the file open keeps its path unique among the libraries of the process.
  int file;
  const Table *table;
  int count;
  std::map<std::string, std::unique_ptr<Function>> functions;
};
struct Function {
  Module *module;
  const Table *row;
};

bool initialized = false;
int retained = 0;
int context_marker;
thread_local void *current = nullptr;
auto &streams = *new std::set<Stream *>;
auto &events = *new std::map<void *, std::shared_ptr<Event>>;
auto &modules = *new std::set<Module *>;
auto &functions = *new std::set<Function *>;

int wrong(Result code, const char *call, const std::string &why) {
  complain(call, "%s", why.c_str());
  return code;
}

int ready(const char *call) {
  if (!initialized) return wrong(NOT_INITIALIZED, call, "cuInit was not called");
  if (!current) return wrong(INVALID_CONTEXT, call, "the thread has no context");
  return SUCCESS;
}

Stream *stream_of(void *handle) {
  Stream *s = (Stream *)handle;
  return streams.count(s) ? s : nullptr;
}

std::shared_ptr<Event> event_of(void *handle) {
  auto found = events.find(handle);
  return found == events.end() ? nullptr : found->second;
}

void await(const std::shared_ptr<Event> &event, uint64_t until);

void drain(Stream *s) {
  while (!s->queue.empty()) {
    Item item = std::move(s->queue.front());
    s->queue.pop_front();
    if (item.awaited) await(item.awaited, item.until);
    if (item.work) item.work();
  }
}

void await(const std::shared_ptr<Event> &event, uint64_t until) {
  Stream *s = stream_of(event->stream);
  while (event->done < until && s && !s->queue.empty()) {
    Item item = std::move(s->queue.front());
    s->queue.pop_front();
    if (item.awaited) await(item.awaited, item.until);
    if (item.work) item.work();
  }
}

}  // namespace

namespace standin {

bool in_context(const char *call) { return ready(call) == SUCCESS; }

bool enqueue(void *stream, const char *call, std::function<void()> work) {
  Stream *s = stream_of(stream);
  if (!s) return false;
  s->queue.push_back(Item{call, std::move(work), nullptr, 0, true});
  return true;
}

void unfinished() {
  for (Stream *s : streams)
    for (Item &item : s->queue)
      if (item.matters) complain("the end", "%s was never waited for", item.call);
}

}  // namespace standin

STANDIN_API int cuInit(unsigned flags) {
  if (flags != 0) return wrong(INVALID_VALUE, "cuInit", "flags must be 0");
  initialized = true;
  return SUCCESS;
}

static const char *name_of(int code) {
  for (auto &n : NAMES)
    if (n.code == code) return n.name;
  return nullptr;
}
STANDIN_API int cuGetErrorName(int code, const char **name) { return (*name = name_of(code)) ? SUCCESS : INVALID_VALUE; }
STANDIN_API int cuGetErrorString(int code, const char **text) { return cuGetErrorName(code, text); }

STANDIN_API int cuDriverGetVersion(int *version) {
  *version = 13000;
  return SUCCESS;
}
STANDIN_API int cuDeviceGetCount(int *count) {
  if (!initialized) return wrong(NOT_INITIALIZED, "cuDeviceGetCount", "cuInit was not called");
  *count = 1;
  return SUCCESS;
}
STANDIN_API int cuDeviceGet(int *device, int ordinal) {
  if (!initialized) return wrong(NOT_INITIALIZED, "cuDeviceGet", "cuInit was not called");
  if (ordinal != 0) return wrong(INVALID_DEVICE, "cuDeviceGet", "there is only one device");
  *device = 0;
  return SUCCESS;
}
STANDIN_API int cuDeviceGetName(char *name, int length, int device) {
  if (device != 0 || length <= 0) return wrong(INVALID_VALUE, "cuDeviceGetName", "no such device, or no room");
  snprintf(name, (size_t)length, "stand-in for tests (no GPU)");
  return SUCCESS;
}
STANDIN_API int cuDeviceGetAttribute(int *value, int attribute, int device) {
  if (device != 0) return wrong(INVALID_DEVICE, "cuDeviceGetAttribute", "there is only one device");
  switch (attribute) {
    case 1: *value = MOST_THREADS; return SUCCESS;
    case 75: *value = CAPABILITY / 10; return SUCCESS;
    case 76: *value = CAPABILITY % 10; return SUCCESS;
    case 115: *value = 1; return SUCCESS;
  }
  return wrong(INVALID_VALUE, "cuDeviceGetAttribute", "attribute " + std::to_string(attribute) + " is not supported");
}

STANDIN_API int cuDevicePrimaryCtxRetain(void **context, int device) {
  if (!initialized) return wrong(NOT_INITIALIZED, "cuDevicePrimaryCtxRetain", "cuInit was not called");
  if (device != 0) return wrong(INVALID_DEVICE, "cuDevicePrimaryCtxRetain", "there is only one device");
  retained++;
  made("context");
  *context = &context_marker;
  return SUCCESS;
}
STANDIN_API int cuDevicePrimaryCtxRelease_v2(int device) {
  if (device != 0 || retained == 0) return wrong(INVALID_CONTEXT, "cuDevicePrimaryCtxRelease", "it is not retained");
  retained--;
  destroyed("context");
  if (retained == 0) {
    if (!streams.empty() || !events.empty() || !modules.empty() || taken() != 0)
      complain("cuDevicePrimaryCtxRelease", "%zu streams, %zu events, %zu modules and %zu bytes of memory are left in it",
               streams.size(), events.size(), modules.size(), taken());
    current = nullptr;
  }
  return SUCCESS;
}
STANDIN_API int cuCtxGetCurrent(void **context) {
  if (!initialized) return wrong(NOT_INITIALIZED, "cuCtxGetCurrent", "cuInit was not called");
  *context = current;
  return SUCCESS;
}
STANDIN_API int cuCtxSetCurrent(void *context) {
  if (context && (context != &context_marker || retained == 0))
    return wrong(INVALID_CONTEXT, "cuCtxSetCurrent", "not a valid context, or it is not retained");
  current = context;
  return SUCCESS;
}
STANDIN_API int cuCtxSynchronize() {
  if (int code = ready("cuCtxSynchronize")) return code;
  for (Stream *s : streams) drain(s);
  return SUCCESS;
}

STANDIN_API int cuStreamCreate(void **stream, unsigned flags) {
  if (int code = ready("cuStreamCreate")) return code;
  if (flags > 1) return wrong(INVALID_VALUE, "cuStreamCreate", "unknown flags");
  Stream *s = new Stream;
  streams.insert(s);
  made("stream");
  *stream = s;
  return SUCCESS;
}
STANDIN_API int cuStreamDestroy_v2(void *stream) {
  if (int code = ready("cuStreamDestroy")) return code;
  Stream *s = stream_of(stream);
  if (!s) return wrong(INVALID_HANDLE, "cuStreamDestroy", "not a valid stream");
  // Queued work still runs.
  drain(s);
  streams.erase(s);
  destroyed("stream");
  delete s;
  return SUCCESS;
}
STANDIN_API int cuStreamSynchronize(void *stream) {
  if (int code = ready("cuStreamSynchronize")) return code;
  Stream *s = stream_of(stream);
  if (!s) return wrong(INVALID_HANDLE, "cuStreamSynchronize", "not a valid stream");
  drain(s);
  note("wait");
  return SUCCESS;
}
STANDIN_API int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
  if (int code = ready("cuStreamWaitEvent")) return code;
  Stream *s = stream_of(stream);
  auto e = event_of(event);
  if (!s || !e || flags != 0) return wrong(INVALID_HANDLE, "cuStreamWaitEvent", "not a valid stream or event");
  // An event that was never recorded is not waited for.
  if (e->asked > 0 && e->stream != stream) s->queue.push_back(Item{"a wait", nullptr, e, e->asked, false});
  return SUCCESS;
}
STANDIN_API int cuStreamIsCapturing(void *stream, int *status) {
  if (!stream_of(stream)) return wrong(INVALID_HANDLE, "cuStreamIsCapturing", "not a valid stream");
  *status = 0;
  return SUCCESS;
}

STANDIN_API int cuEventCreate(void **event, unsigned flags) {
  if (int code = ready("cuEventCreate")) return code;
  if (flags & ~7u) return wrong(INVALID_VALUE, "cuEventCreate", "unknown flags");
  auto e = std::make_shared<Event>();
  e->timed = (flags & 2) == 0;
  *event = e.get();
  events[e.get()] = e;
  made("event");
  return SUCCESS;
}
STANDIN_API int cuEventDestroy_v2(void *event) {
  if (int code = ready("cuEventDestroy")) return code;
  if (events.erase(event) == 0) return wrong(INVALID_HANDLE, "cuEventDestroy", "not a valid event");
  destroyed("event");
  return SUCCESS;
}
STANDIN_API int cuEventRecord(void *event, void *stream) {
  if (int code = ready("cuEventRecord")) return code;
  auto e = event_of(event);
  Stream *s = stream_of(stream);
  if (!e || !s) return wrong(INVALID_HANDLE, "cuEventRecord", "not a valid stream or event");
  if (e->stream && e->stream != stream && e->done < e->asked) await(e, e->asked);
  e->stream = stream;
  uint64_t number = ++e->asked;
  auto work = [e, number] { e->done = number, e->at = std::chrono::steady_clock::now(); };
  s->queue.push_back(Item{"a mark", work, nullptr, 0, false});
  return SUCCESS;
}
STANDIN_API int cuEventQuery(void *event) {
  auto e = event_of(event);
  if (!e) return wrong(INVALID_HANDLE, "cuEventQuery", "not a valid event");
  return e->done == e->asked ? SUCCESS : NOT_READY;
}
STANDIN_API int cuEventSynchronize(void *event) {
  if (int code = ready("cuEventSynchronize")) return code;
  auto e = event_of(event);
  if (!e) return wrong(INVALID_HANDLE, "cuEventSynchronize", "not a valid event");
  await(e, e->asked);
  return SUCCESS;
}
STANDIN_API int cuEventElapsedTime(float *ms, void *from, void *to) {
  auto a = event_of(from), b = event_of(to);
  if (!a || !b) return wrong(INVALID_HANDLE, "cuEventElapsedTime", "not a valid event");
  if (!a->timed || !b->timed) return wrong(INVALID_HANDLE, "cuEventElapsedTime", "an event does not record time");
  if (!a->asked || !b->asked) return wrong(INVALID_HANDLE, "cuEventElapsedTime", "an event was not recorded");
  if (a->done != a->asked || b->done != b->asked) return NOT_READY;
  *ms = std::chrono::duration<float, std::milli>(b->at - a->at).count();
  return SUCCESS;
}
STANDIN_API int cuEventElapsedTime_v2(float *ms, void *from, void *to) { return cuEventElapsedTime(ms, from, to); }

static int allocate(const char *call, uint64_t *address, size_t bytes) {
  if (bytes == 0) return wrong(INVALID_VALUE, call, "0 bytes");
  const char *limit = getenv("TILEWRIGHT_STANDIN_BYTES");
  if (limit && *limit && taken() + bytes > strtoull(limit, nullptr, 10)) return OUT_OF_MEMORY;
  *address = take(bytes);
  if (*address == 0) return OUT_OF_MEMORY;
  note("take %zu", bytes);
  return SUCCESS;
}
STANDIN_API int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  if (int code = ready("cuMemAlloc")) return code;
  return allocate("cuMemAlloc", address, bytes);
}
STANDIN_API int cuMemAllocAsync(uint64_t *address, size_t bytes, void *stream) {
  if (int code = ready("cuMemAllocAsync")) return code;
  if (!stream_of(stream)) return wrong(INVALID_HANDLE, "cuMemAllocAsync", "not a valid stream");
  return allocate("cuMemAllocAsync", address, bytes);
}
STANDIN_API int cuMemFree_v2(uint64_t address) {
  if (int code = ready("cuMemFree")) return code;
  Piece *p = piece(address);
  if (!p || p->state != LIVE) return wrong(INVALID_VALUE, "cuMemFree", "no memory begins there, or it was freed");
  cuCtxSynchronize();
  release(address);
  return SUCCESS;
}
STANDIN_API int cuMemFreeAsync(uint64_t address, void *stream) {
  if (int code = ready("cuMemFreeAsync")) return code;
  Stream *s = stream_of(stream);
  if (!s) return wrong(INVALID_HANDLE, "cuMemFreeAsync", "not a valid stream");
  Piece *p = piece(address);
  if (!p || p->state != LIVE) return wrong(INVALID_VALUE, "cuMemFreeAsync", "no memory begins there, or it was freed");
  p->state = DOOMED;
  s->queue.push_back(Item{"freeing", [address] { release(address); }, nullptr, 0, false});
  return SUCCESS;
}
STANDIN_API int cuMemGetInfo_v2(size_t *left, size_t *all) {
  if (int code = ready("cuMemGetInfo")) return code;
  *all = (size_t)8 << 30;
  *left = *all - taken();
  return SUCCESS;
}
STANDIN_API int cuMemsetD8Async(uint64_t address, unsigned char value, size_t bytes, void *stream) {
  if (int code = ready("cuMemsetD8Async")) return code;
  std::string why = not_ours(address, bytes);
  if (!why.empty()) return wrong(INVALID_VALUE, "cuMemsetD8Async", why);
  auto work = [=] { memset((void *)address, value, bytes); };
  return enqueue(stream, "cuMemsetD8Async", work) ? SUCCESS : wrong(INVALID_HANDLE, "cuMemsetD8Async", "not a valid stream");
}
STANDIN_API int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
  if (int code = ready("cuMemcpyHtoDAsync")) return code;
  std::string why = not_ours(to, bytes);
  if (!why.empty()) return wrong(INVALID_VALUE, "cuMemcpyHtoDAsync", why);
  if (!from || is_ours((uint64_t)from)) return wrong(INVALID_VALUE, "cuMemcpyHtoDAsync", "the source is not host memory");
  note("to the GPU %zu", bytes);
  // Read the source late, as with pinned memory.
  auto work = [=] { memcpy((void *)to, from, bytes); };
  return enqueue(stream, "cuMemcpyHtoDAsync", work) ? SUCCESS : wrong(INVALID_HANDLE, "cuMemcpyHtoDAsync", "not a valid stream");
}
STANDIN_API int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
  if (int code = ready("cuMemcpyDtoHAsync")) return code;
  std::string why = not_ours(from, bytes);
  if (!why.empty()) return wrong(INVALID_VALUE, "cuMemcpyDtoHAsync", why);
  if (!to || is_ours((uint64_t)to)) return wrong(INVALID_VALUE, "cuMemcpyDtoHAsync", "the target is not host memory");
  note("to the host %zu", bytes);
  // A program that does not wait reads these bytes.
  memset(to, 0xdb, bytes);
  auto work = [=] { memcpy(to, (const void *)from, bytes); };
  return enqueue(stream, "cuMemcpyDtoHAsync", work) ? SUCCESS : wrong(INVALID_HANDLE, "cuMemcpyDtoHAsync", "not a valid stream");
}

STANDIN_API int cuModuleLoadData(void **module, const void *image) {
  if (int code = ready("cuModuleLoadData")) return code;
  Head head;
  memcpy(&head, image, sizeof head);
  if (memcmp(head.magic, MAGIC, sizeof head.magic) != 0)
    return wrong(INVALID_IMAGE, "cuModuleLoadData", "it was not made by this stand-in's NVRTC");
  if (head.capability / 10 != CAPABILITY / 10 || head.capability > CAPABILITY)
    return wrong(NO_BINARY_FOR_GPU, "cuModuleLoadData", "machine code for sm_" + std::to_string(head.capability));
  int file = memfd_create("kernels", MFD_CLOEXEC);
  const char *bytes = (const char *)image + sizeof head;
  bool whole = file >= 0 && write(file, bytes, head.bytes) == (ssize_t)head.bytes;
  std::string path = "/proc/self/fd/" + std::to_string(file);
  void *library = whole ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  const Table *table = library ? (const Table *)dlsym(library, "tw_table") : nullptr;
  const int *count = library ? (const int *)dlsym(library, "tw_table_rows") : nullptr;
  if (!table || !count) {
    if (file >= 0) close(file);
    return wrong(INVALID_IMAGE, "cuModuleLoadData", "it cannot be opened");
  }
  Module *m = new Module{library, file, table, *count, {}};
  modules.insert(m);
  made("module");
  *module = m;
  return SUCCESS;
}
STANDIN_API int cuModuleUnload(void *module) {
  if (int code = ready("cuModuleUnload")) return code;
  Module *m = (Module *)module;
  if (!modules.count(m)) return wrong(INVALID_HANDLE, "cuModuleUnload", "not a valid module");
  for (Stream *s : streams)
    for (Item &item : s->queue)
      if (strcmp(item.call, "cuLaunchKernel") == 0) complain("cuModuleUnload", "a kernel has not run yet");
  for (auto &f : m->functions) functions.erase(f.second.get());
  modules.erase(m);
  destroyed("module");
  dlclose(m->library);
  close(m->file);
  delete m;
  return SUCCESS;
}
STANDIN_API int cuModuleGetFunction(void **function, void *module, const char *name) {
  if (int code = ready("cuModuleGetFunction")) return code;
  Module *m = (Module *)module;
  if (!modules.count(m)) return wrong(INVALID_HANDLE, "cuModuleGetFunction", "not a valid module");
  for (int i = 0; i < m->count; i++) {
    if (strcmp(m->table[i].name, name) != 0) continue;
    auto &f = m->functions[name];
    if (!f) f.reset(new Function{m, &m->table[i]});
    functions.insert(f.get());
    *function = f.get();
    return SUCCESS;
  }
  return wrong(NOT_FOUND, "cuModuleGetFunction", std::string("no kernel is named ") + name);
}

STANDIN_API int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                               unsigned shared, void *stream, void **params, void **extra) {
  const char *call = "cuLaunchKernel";
  if (int code = ready(call)) return code;
  Function *f = (Function *)function;
  if (!functions.count(f)) return wrong(INVALID_HANDLE, call, "not a function of a loaded module");
  const Table *row = f->row;
  std::string name = row->name;
  if (!stream_of(stream)) return wrong(INVALID_HANDLE, call, "not a valid stream");
  if (extra) return wrong(INVALID_VALUE, call, "pass arguments one by one");
  if (!gx || !gy || !gz || gx > 0x7fffffffu || gy > 65535 || gz > 65535)
    return wrong(INVALID_VALUE, call, name + " has a grid that no GPU supports");
  if (!bx || !by || !bz || bx > 1024 || by > 1024 || bz > 64 || (uint64_t)bx * by * bz > MOST_THREADS)
    return wrong(INVALID_VALUE, call, name + " has a block that no GPU supports");
  if (row->most_threads && bx * by * bz > row->most_threads)
    return wrong(LAUNCH_OUT_OF_RESOURCES, call, name + " has more threads than __launch_bounds__ allows");
  if (shared + row->shared_bytes > MOST_SHARED) return wrong(INVALID_VALUE, call, name + " needs more shared memory than available");
  if (row->arguments && !params) return wrong(INVALID_VALUE, call, name + " has no arguments");
  std::deque<void *> places;
  for (int i = 0; i < row->arguments; i++) {
    uint64_t address = 0;
    if (params[i]) memcpy(&address, params[i], sizeof address);
    std::string why = not_ours(address, row->sizes[i]);
    if (!why.empty()) return wrong(INVALID_VALUE, call, name + ", argument " + std::to_string(i) + ": " + why);
    if (address % row->sizes[i] != 0)
      return wrong(INVALID_VALUE, call, name + ", argument " + std::to_string(i) + " is not aligned");
    places.push_back((void *)address);
  }
  note("launch %s %u,%u,%u %u,%u,%u", row->name, gx, gy, gz, bx, by, bz);
  auto work = [=] {
    std::string why;
    std::deque<void *> kept = places;
    void *list[64];
    for (size_t i = 0; i < kept.size(); i++) list[i] = kept[i];
    unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
    row->run(list, grid, block);
    check_borders(name.c_str());
  };
  enqueue(stream, call, work);
  return SUCCESS;
}
