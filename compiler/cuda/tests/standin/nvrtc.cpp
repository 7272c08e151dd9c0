// NVRTC: passes the text of kernels to the host's compiler, with the header that emulates CUDA.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "image.h"
#include "standin.h"

using namespace standin;

enum { SUCCESS = 0, INVALID_INPUT = 3, INVALID_PROGRAM = 4, INVALID_OPTION = 5, COMPILATION = 6, INTERNAL_ERROR = 11 };

struct Program {
  std::string source, log, image;
  bool compiled = false;
};
static auto &programs = *new std::set<Program *>;

static Program *program_of(void *handle) { return programs.count((Program *)handle) ? (Program *)handle : nullptr; }
static int wrong(int code, const char *call, const std::string &why) {
  complain(call, "%s", why.c_str());
  return code;
}

// Returns the element size of a type that generated kernels use, or 0 for other types.
static size_t size_of(const std::string &type) {
  static const struct { const char *name; size_t bytes; } TYPES[] = {
      {"signed char", 1}, {"unsigned char", 1}, {"bool", 1}, {"tw_half", 2}, {"int", 4}, {"float", 4}, {"long long", 8}};
  for (auto &t : TYPES)
    if (type == t.name) return t.bytes;
  return 0;
}

static size_t bytes_in_shared(const std::string &body) {
  static const std::regex declared("__shared__ ([a-z_ ]+) [A-Za-z_0-9]+\\[([0-9]+)\\]");
  size_t sum = 0;
  for (std::sregex_iterator i(body.begin(), body.end(), declared), end; i != end; ++i)
    sum += size_of((*i)[1]) * std::stoull((*i)[2]);
  return sum;
}

// Returns the host program for a text: its kernels and a table of them.
static std::string translate(const std::string &source, std::string &error) {
  static const std::regex head("extern \"C\" __global__ void(?: __launch_bounds__\\(([0-9]+)\\))? ([A-Za-z_0-9]+)\\(([^)]*)\\) \\{");
  static const std::regex parameter("(const )?([a-z_ ]+) \\*__restrict__ [A-Za-z_0-9]+");
  std::string rows, out = "#include \"shim.h\"\n#include <cstddef>\nstruct Table { const char *name; int arguments; const size_t *sizes; unsigned "
                          "most_threads, shared_bytes; void (*run)(void *const *, const unsigned *, const unsigned *); };\n";
  std::string table, text;
  int count = 0;
  for (std::sregex_iterator i(source.begin(), source.end(), head), end; i != end; ++i, ++count) {
    std::string name = (*i)[2], list = (*i)[3], sizes;
    size_t begin = (size_t)i->position(), close = source.find("\n}\n", begin);
    std::string body = source.substr(begin, close == std::string::npos ? close : close - begin);
    int arguments = 0;
    std::stringstream split(list);
    for (std::string one; std::getline(split, one, ',');) {
      while (!one.empty() && one[0] == ' ') one.erase(0, 1);
      std::smatch m;
      size_t bytes = std::regex_match(one, m, parameter) ? size_of(m[2]) : 0;
      if (bytes == 0) { error = name + ": parameter `" + one + "` is not supported"; return ""; }
      sizes += std::to_string(bytes) + ", ";
      arguments++;
    }
    size_t shared = bytes_in_shared(body);
    if (shared > (48 << 10)) { error = name + ": too much shared memory"; return ""; }
    bool waits = body.find("__syncthreads") != std::string::npos;
    std::string threads = (*i)[1].matched ? (*i)[1].str() : "0";
    rows += "static const size_t sizes_" + name + "[] = {" + sizes + "0};\n";
    rows += "static void run_" + name + "(void *const *a, const unsigned *g, const unsigned *b) { tw_launch(" + name + ", a, g, b, " +
            (waits ? "true" : "false") + "); }\n";
    table += "{\"" + name + "\", " + std::to_string(arguments) + ", sizes_" + name + ", " + threads + ", " + std::to_string(shared) +
             ", run_" + name + "},\n";
  }
  // The header makes kernels static, which does not work with C linkage.
  const std::string linkage = "extern \"C\" __global__";
  size_t at = 0;
  for (size_t next; (next = source.find(linkage, at)) != std::string::npos; at = next + linkage.size())
    text += source.substr(at, next - at) + "__global__";
  text += source.substr(at);
  out += text + "\n" + rows + "extern \"C\" const Table tw_table[] = {\n" + table + "{}};\nextern \"C\" const int tw_table_rows = " +
         std::to_string(count) + ";\n";
  return out;
}

static std::string read_file(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

STANDIN_API int nvrtcVersion(int *major, int *minor) {
  // Not a real NVRTC version, and different whenever the stand-in changes, so that cached code is never confused.
  *major = 0;
  *minor = STANDIN_VERSION;
  return SUCCESS;
}
STANDIN_API const char *nvrtcGetErrorString(int code) { return code == SUCCESS ? "NVRTC_SUCCESS" : code == COMPILATION ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR"; }

STANDIN_API int nvrtcCreateProgram(void **program, const char *source, const char *name, int headers, const char *const *, const char *const *) {
  (void)name;
  if (!source || headers != 0) return wrong(INVALID_INPUT, "nvrtcCreateProgram", "no source, or headers");
  Program *p = new Program;
  p->source = source;
  programs.insert(p);
  made("program");
  *program = p;
  return SUCCESS;
}
STANDIN_API int nvrtcDestroyProgram(void **program) {
  Program *p = program_of(*program);
  if (!p) return wrong(INVALID_PROGRAM, "nvrtcDestroyProgram", "not a valid program");
  programs.erase(p);
  destroyed("program");
  delete p;
  *program = nullptr;
  return SUCCESS;
}

STANDIN_API int nvrtcCompileProgram(void *program, int count, const char *const *options) {
  const char *call = "nvrtcCompileProgram";
  Program *p = program_of(program);
  if (!p) return wrong(INVALID_PROGRAM, call, "not a valid program");
  int capability = 0;
  std::string flags = "-std=c++17 -O1 -fwrapv -w -fPIC -shared";
  bool contracts = true;
  for (int i = 0; i < count; i++) {
    std::string o = options[i];
    if (o.rfind("--gpu-architecture=sm_", 0) == 0) capability = atoi(o.c_str() + 22);
    else if (o == "--fmad=false") contracts = false;
    else if (o != "--ftz=false" && o != "--std=c++17") return wrong(INVALID_OPTION, call, "option " + o + " is not supported");
  }
  if (capability < 75 || capability > 121) return wrong(INVALID_OPTION, call, "the architecture must be machine code for a supported GPU");
  flags += contracts ? " -ffp-contract=fast" : " -ffp-contract=off";
  std::string error, text = translate(p->source, error);
  if (!error.empty()) { p->log = error; return COMPILATION; }
  char folder[] = "/tmp/tilewright-standin-XXXXXX";
  if (!mkdtemp(folder)) return wrong(INTERNAL_ERROR, call, "cannot create a folder");
  std::string base = folder, from = base + "/kernels.cpp", to = base + "/kernels.so", log = base + "/log";
  std::ofstream(from) << text;
  std::string command = std::string(STANDIN_COMPILER) + " " + flags + " -I'" STANDIN_SHIM "' -o " + to + " " + from + " > " + log + " 2>&1";
  int status = system(command.c_str());
  p->log = read_file(log);
  std::string library = read_file(to);
  for (auto &path : {from, to, log}) unlink(path.c_str());
  rmdir(folder);
  note("compile %zu", p->source.size());
  if (status != 0 || library.empty()) return COMPILATION;
  Head head{};
  memcpy(head.magic, MAGIC, sizeof head.magic);
  head.capability = capability;
  head.bytes = library.size();
  p->image.assign((const char *)&head, sizeof head);
  p->image += library;
  p->compiled = true;
  return SUCCESS;
}

STANDIN_API int nvrtcGetProgramLogSize(void *program, size_t *bytes) {
  Program *p = program_of(program);
  if (!p) return wrong(INVALID_PROGRAM, "nvrtcGetProgramLogSize", "not a valid program");
  *bytes = p->log.size() + 1;
  return SUCCESS;
}
STANDIN_API int nvrtcGetProgramLog(void *program, char *log) {
  Program *p = program_of(program);
  if (!p) return wrong(INVALID_PROGRAM, "nvrtcGetProgramLog", "not a valid program");
  memcpy(log, p->log.c_str(), p->log.size() + 1);
  return SUCCESS;
}
// The emulated GPU accepts only machine code.
STANDIN_API int nvrtcGetPTXSize(void *, size_t *) { return wrong(INVALID_INPUT, "nvrtcGetPTXSize", "PTX is not supported"); }
STANDIN_API int nvrtcGetPTX(void *, char *) { return wrong(INVALID_INPUT, "nvrtcGetPTX", "PTX is not supported"); }
STANDIN_API int nvrtcGetCUBINSize(void *program, size_t *bytes) {
  Program *p = program_of(program);
  if (!p || !p->compiled) return wrong(INVALID_PROGRAM, "nvrtcGetCUBINSize", "not a valid program, or not compiled");
  *bytes = p->image.size();
  return SUCCESS;
}
STANDIN_API int nvrtcGetCUBIN(void *program, char *image) {
  Program *p = program_of(program);
  if (!p || !p->compiled) return wrong(INVALID_PROGRAM, "nvrtcGetCUBIN", "not a valid program, or not compiled");
  memcpy(image, p->image.data(), p->image.size());
  return SUCCESS;
}
