// Matrix products of cuBLASLt, computed naively. Checks the requirements on types, orders, sizes and alignment that its
// documentation states for float kernels and for 8-bit integer kernels in regular order.
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "../../src/tests/shim.h"
#include "standin.h"

using namespace standin;

enum Status { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };
enum Type { R_32F = 0, R_16F = 2, R_8I = 3, R_32I = 10 };
enum Compute { COMPUTE_32F = 68, COMPUTE_32F_PEDANTIC = 69, COMPUTE_32I = 72, COMPUTE_32I_PEDANTIC = 73, COMPUTE_TF32 = 77 };

namespace {

struct Description {
  int compute, scale, transa = 0, transb = 0;
};
struct Layout {
  int type, order = 0, batch = 1;
  uint64_t rows, cols;
  int64_t ld, stride = 0;
};
struct Preference {
  size_t workspace = 0;
};

template <class T>
struct Handles {
  const char *kind;
  std::set<T *> all;
  T *make(T value) {
    T *t = new T(value);
    all.insert(t);
    made(kind);
    return t;
  }
  T *find(void *handle) { return all.count((T *)handle) ? (T *)handle : nullptr; }
  bool drop(void *handle) {
    if (!all.erase((T *)handle)) return false;
    destroyed(kind);
    delete (T *)handle;
    return true;
  }
};

struct Library {};
auto &libraries = *new Handles<Library>{"cublasLt handle", {}};
auto &descriptions = *new Handles<Description>{"product description", {}};
auto &layouts = *new Handles<Layout>{"matrix layout", {}};
auto &preferences = *new Handles<Preference>{"preference", {}};

// The library's choice, opaque to the caller.
struct Algorithm {
  uint64_t magic, problem, workspace, reserved[5];
};
const uint64_t CHOSEN = 0x6c74206f6e206e6full;
struct Heuristic {
  Algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

int wrong(Status code, const char *call, const std::string &why) {
  complain(call, "%s", why.c_str());
  return code;
}

size_t size_of(int type) { return type == R_8I ? 1 : type == R_16F ? 2 : 4; }

struct Problem {
  Description how;
  Layout a, b, c, d;
  uint64_t m, n, k;
};

// Number of elements from the first to the end of the last one, over the whole batch.
uint64_t span(const Layout &l) { return (uint64_t)(l.batch - 1) * (uint64_t)l.stride + (l.cols - 1) * (uint64_t)l.ld + l.rows; }

uint64_t key(const Problem &p) {
  uint64_t hash = 1469598103934665603ull;
  auto mix = [&](uint64_t v) { hash = (hash ^ v) * 1099511628211ull; };
  for (int v : {p.how.compute, p.how.scale, p.how.transa, p.how.transb}) mix((uint64_t)v);
  for (const Layout *l : {&p.a, &p.b, &p.c, &p.d})
    for (uint64_t v : {(uint64_t)l->type, (uint64_t)l->batch, l->rows, l->cols, (uint64_t)l->ld, (uint64_t)l->stride}) mix(v);
  return hash;
}

// Reads a problem. Any code other than SUCCESS means that it is invalid, or that no kernel supports it.
int problem(const char *call, void *how, void *a, void *b, void *c, void *d, Problem &p) {
  Description *description = descriptions.find(how);
  Layout *la = layouts.find(a), *lb = layouts.find(b), *lc = layouts.find(c), *ld = layouts.find(d);
  if (!description || !la || !lb || !lc || !ld) return wrong(INVALID_VALUE, call, "an invalid description or layout");
  p = Problem{*description, *la, *lb, *lc, *ld, 0, 0, 0};
  for (const Layout *l : {la, lb, lc, ld}) {
    if (l->rows == 0 || l->cols == 0 || l->batch < 1) return wrong(INVALID_VALUE, call, "a matrix without elements");
    if (l->order != 0) return wrong(NOT_SUPPORTED, call, "an order other than column-major");
    if (l->ld < (int64_t)l->rows) return wrong(INVALID_VALUE, call, "a leading dimension below the number of rows");
    if (l->batch != ld->batch) return wrong(INVALID_VALUE, call, "batches of different sizes");
  }
  uint64_t ka = p.how.transa ? la->rows : la->cols, kb = p.how.transb ? lb->cols : lb->rows;
  p.m = p.how.transa ? la->cols : la->rows;
  p.n = p.how.transb ? lb->rows : lb->cols;
  p.k = ka;
  if (ka != kb || ld->rows != p.m || ld->cols != p.n || lc->rows != p.m || lc->cols != p.n)
    return wrong(INVALID_VALUE, call, "matrix sizes that do not match");
  if (lc->type != ld->type || lc->ld != ld->ld || lc->stride != ld->stride)
    return wrong(NOT_SUPPORTED, call, "C and D in different layouts");
  if (ld->batch > 1 && (uint64_t)ld->stride < (ld->cols - 1) * (uint64_t)ld->ld + ld->rows)
    return wrong(INVALID_VALUE, call, "results of a batch that overlap");
  bool floats = p.how.compute == COMPUTE_32F || p.how.compute == COMPUTE_32F_PEDANTIC || p.how.compute == COMPUTE_TF32;
  bool integers = p.how.compute == COMPUTE_32I || p.how.compute == COMPUTE_32I_PEDANTIC;
  if (floats && p.how.scale == R_32F && la->type == lb->type) {
    if (la->type == R_32F && ld->type == R_32F) return SUCCESS;
    if (la->type == R_16F && (ld->type == R_16F || ld->type == R_32F) && p.how.compute != COMPUTE_TF32) return SUCCESS;
  }
  if (integers && p.how.scale == R_32I && la->type == R_8I && lb->type == R_8I && ld->type == R_32I) {
    if (!p.how.transa || p.how.transb) return wrong(NOT_SUPPORTED, call, "8-bit integers with A not transposed, or B transposed");
    if (p.m % 4 || p.k % 4) return wrong(NOT_SUPPORTED, call, "8-bit integers with m or k not a multiple of 4");
    for (const Layout *l : {la, lb, ld}) {
      if (l->ld % 4) return wrong(NOT_SUPPORTED, call, "8-bit integers with a leading dimension that is not a multiple of 4");
      if (l->batch > 1 && l->stride * (int64_t)size_of(l->type) % 4) return wrong(NOT_SUPPORTED, call, "8-bit integers in a batch that is not aligned");
    }
    return SUCCESS;
  }
  return wrong(NOT_SUPPORTED, call, "types that no kernel combines");
}

float rounded_to_tf32(float v) {
  unsigned bits;
  memcpy(&bits, &v, 4);
  bits &= ~0x1fffu;
  memcpy(&v, &bits, 4);
  return v;
}

float load(const Problem &p, const void *at, int type, uint64_t i) {
  if (type == R_16F) return tw_widen(((const unsigned short *)at)[i]);
  float v = ((const float *)at)[i];
  return p.how.compute == COMPUTE_TF32 ? rounded_to_tf32(v) : v;
}

// D = op(A) op(B) alpha + C beta.
void compute(const Problem &p, double alpha, double beta, const char *a, const char *b, const char *c, char *d) {
  for (int z = 0; z < p.d.batch; z++) {
    uint64_t oa = (uint64_t)z * p.a.stride, ob = (uint64_t)z * p.b.stride, oc = (uint64_t)z * p.c.stride, od = (uint64_t)z * p.d.stride;
    for (uint64_t j = 0; j < p.n; j++)
      for (uint64_t i = 0; i < p.m; i++) {
        uint64_t at = od + i + j * p.d.ld, from = oc + i + j * p.c.ld;
        auto left = [&](uint64_t l) { return oa + (p.how.transa ? l + i * p.a.ld : i + l * p.a.ld); };
        auto right = [&](uint64_t l) { return ob + (p.how.transb ? j + l * p.b.ld : l + j * p.b.ld); };
        if (p.d.type == R_32I) {
          unsigned sum = 0;
          for (uint64_t l = 0; l < p.k; l++) sum += (unsigned)((int)((const signed char *)a)[left(l)] * ((const signed char *)b)[right(l)]);
          if (beta != 0) sum += ((const unsigned *)c)[from];
          ((unsigned *)d)[at] = sum;
          continue;
        }
        float sum = 0;
        for (uint64_t l = 0; l < p.k; l++) sum += load(p, a, p.a.type, left(l)) * load(p, b, p.b.type, right(l));
        sum *= (float)alpha;
        if (beta != 0) sum += (float)beta * (p.c.type == R_16F ? tw_widen(((const unsigned short *)c)[from]) : ((const float *)c)[from]);
        if (p.d.type == R_16F) ((unsigned short *)d)[at] = tw_narrow(sum);
        else ((float *)d)[at] = sum;
      }
  }
}

}  // namespace

STANDIN_API size_t cublasLtGetVersion() { return 1; }
STANDIN_API int cublasLtCreate(void **handle) {
  if (!in_context("cublasLtCreate")) return NOT_INITIALIZED;
  *handle = libraries.make({});
  return SUCCESS;
}
STANDIN_API int cublasLtDestroy(void *handle) {
  return libraries.drop(handle) ? SUCCESS : wrong(INVALID_VALUE, "cublasLtDestroy", "not a valid handle");
}
STANDIN_API int cublasLtMatmulDescCreate(void **description, int compute, int scale) {
  *description = descriptions.make(Description{compute, scale});
  return SUCCESS;
}
STANDIN_API int cublasLtMatmulDescDestroy(void *description) {
  return descriptions.drop(description) ? SUCCESS : wrong(INVALID_VALUE, "cublasLtMatmulDescDestroy", "not a valid description");
}
STANDIN_API int cublasLtMatmulDescSetAttribute(void *description, int attribute, const void *value, size_t bytes) {
  const char *call = "cublasLtMatmulDescSetAttribute";
  Description *d = descriptions.find(description);
  int number = 0;
  if (!d || !value || bytes != sizeof number) return wrong(INVALID_VALUE, call, "not a valid description, or a value of the wrong size");
  memcpy(&number, value, sizeof number);
  if ((attribute == 3 || attribute == 4) && (number == 0 || number == 1)) {
    (attribute == 3 ? d->transa : d->transb) = number;
    return SUCCESS;
  }
  return wrong(INVALID_VALUE, call, "attribute " + std::to_string(attribute) + " or its value is not supported");
}
STANDIN_API int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t cols, int64_t ld) {
  Layout l;
  l.type = type, l.rows = rows, l.cols = cols, l.ld = ld;
  *layout = layouts.make(l);
  return SUCCESS;
}
STANDIN_API int cublasLtMatrixLayoutDestroy(void *layout) {
  return layouts.drop(layout) ? SUCCESS : wrong(INVALID_VALUE, "cublasLtMatrixLayoutDestroy", "not a valid layout");
}
STANDIN_API int cublasLtMatrixLayoutSetAttribute(void *layout, int attribute, const void *value, size_t bytes) {
  Layout *l = layouts.find(layout);
  if (l && value && attribute == 5 && bytes == 4) return memcpy(&l->batch, value, bytes), SUCCESS;
  if (l && value && attribute == 6 && bytes == 8) return memcpy(&l->stride, value, bytes), SUCCESS;
  return wrong(INVALID_VALUE, "cublasLtMatrixLayoutSetAttribute", "not a valid layout, or attribute " + std::to_string(attribute) + " with " + std::to_string(bytes) + " bytes");
}
STANDIN_API int cublasLtMatmulPreferenceCreate(void **preference) {
  *preference = preferences.make({});
  return SUCCESS;
}
STANDIN_API int cublasLtMatmulPreferenceDestroy(void *preference) {
  return preferences.drop(preference) ? SUCCESS : wrong(INVALID_VALUE, "cublasLtMatmulPreferenceDestroy", "not a valid preference");
}
STANDIN_API int cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute, const void *value, size_t bytes) {
  Preference *p = preferences.find(preference);
  if (p && value && attribute == 1 && bytes == 8) return memcpy(&p->workspace, value, bytes), SUCCESS;
  return wrong(INVALID_VALUE, "cublasLtMatmulPreferenceSetAttribute", "not a valid preference, or attribute " + std::to_string(attribute) + " with " + std::to_string(bytes) + " bytes");
}

STANDIN_API int cublasLtMatmulAlgoGetHeuristic(void *handle, void *how, void *a, void *b, void *c, void *d, void *preference, int wanted,
                                               Heuristic *results, int *found) {
  const char *call = "cublasLtMatmulAlgoGetHeuristic";
  Preference *asked = preferences.find(preference);
  if (!libraries.find(handle) || !asked || wanted < 1 || !results || !found)
    return wrong(INVALID_VALUE, call, "no handle, no preference or no room");
  *found = 0;
  Problem p;
  if (int code = problem(call, how, a, b, c, d, p)) return code;
  Heuristic h{};
  h.algorithm.magic = CHOSEN;
  h.algorithm.problem = key(p);
  // Ask for some workspace, to check that the caller provides it.
  h.workspace = asked->workspace < 4096 ? 0 : 4096;
  h.algorithm.workspace = h.workspace;
  h.waves = 1;
  results[0] = h;
  *found = 1;
  note("choose %llu %llu %llu", (unsigned long long)p.m, (unsigned long long)p.n, (unsigned long long)p.k);
  return SUCCESS;
}

STANDIN_API int cublasLtMatmul(void *handle, void *how, const void *alpha, const void *a, void *la, const void *b, void *lb, const void *beta,
                               const void *c, void *lc, void *d, void *ld, const Algorithm *algorithm, void *workspace, size_t bytes,
                               void *stream) {
  const char *call = "cublasLtMatmul";
  if (!in_context(call)) return NOT_INITIALIZED;
  if (!libraries.find(handle) || !alpha || !beta || !algorithm) return wrong(INVALID_VALUE, call, "no handle, factor or algorithm");
  auto p = std::make_shared<Problem>();
  if (int code = problem(call, how, la, lb, lc, ld, *p)) return code;
  if (algorithm->magic != CHOSEN || algorithm->problem != key(*p)) return wrong(INVALID_VALUE, call, "the algorithm belongs to another problem");
  double factors[2];
  const void *given[2] = {alpha, beta};
  for (int i = 0; i < 2; i++) {
    float f;
    int n;
    memcpy(&f, given[i], 4), memcpy(&n, given[i], 4);
    factors[i] = p->how.scale == R_32I ? n : f;
  }
  bool plain = factors[0] == 1 && (factors[1] == 0 || factors[1] == 1);
  if (p->how.scale == R_32I && !plain) return wrong(NOT_SUPPORTED, call, "integer factors other than 1 and 0");
  const struct { const char *name; const void *at; const Layout *layout; } matrices[] = {{"A", a, &p->a}, {"B", b, &p->b}, {"C", c, &p->c}, {"D", d, &p->d}};
  for (auto &m : matrices) {
    size_t size = size_of(m.layout->type);
    std::string why = not_ours((uint64_t)m.at, span(*m.layout) * size);
    if (!why.empty()) return wrong(INVALID_VALUE, call, std::string(m.name) + ": " + why);
    // The alignment that the heuristic assumes by default.
    if ((uint64_t)m.at % 256) return wrong(INVALID_VALUE, call, std::string(m.name) + " is not aligned to the promised 256 bytes");
    bool overlaps = m.at != d && (const char *)m.at < (const char *)d + span(p->d) * size_of(p->d.type) &&
                    (const char *)d < (const char *)m.at + span(*m.layout) * size;
    if (overlaps || (m.at == d && m.name[0] < 'C')) return wrong(INVALID_VALUE, call, std::string(m.name) + " overlaps the result");
  }
  if (bytes < algorithm->workspace) return wrong(INVALID_VALUE, call, "less workspace than the algorithm needs");
  if (algorithm->workspace) {
    std::string why = not_ours((uint64_t)workspace, algorithm->workspace);
    if (!why.empty() || (uint64_t)workspace % 256) return wrong(INVALID_VALUE, call, "workspace: " + (why.empty() ? "not aligned" : why));
  }
  note("product %llu %llu %llu x %d of type %d", (unsigned long long)p->m, (unsigned long long)p->n, (unsigned long long)p->k, p->d.batch, p->a.type);
  size_t scribbled = algorithm->workspace;
  bool ok = enqueue(stream, call, [=] {
    memset(workspace, 0x5a, scribbled);
    compute(*p, factors[0], factors[1], (const char *)a, (const char *)b, (const char *)c, (char *)d);
    check_borders(call);
  });
  return ok ? SUCCESS : wrong(INVALID_VALUE, call, "not a valid stream");
}
