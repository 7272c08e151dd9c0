// CUDA C on the host: the grid becomes loops over blocks, and the threads of a block take turns between calls of
// __syncthreads().
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <ucontext.h>
#include <utility>
#include <vector>

#define __global__ static
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __restrict__ __restrict
#define __launch_bounds__(n)

struct tw_dim { int x, y, z; };
static tw_dim blockIdx, threadIdx, blockDim, gridDim;

// Within the tolerance of float sums, and much faster than the library's function.
#define fmaf(a, b, c) ((a) * (b) + (c))

static float __int_as_float(int bits) { float f; memcpy(&f, &bits, 4); return f; }
static int __float_as_int(float f) { int bits; memcpy(&bits, &f, 4); return bits; }
static double __longlong_as_double(long long bits) { double f; memcpy(&f, &bits, 8); return f; }
static long long __double_as_longlong(double f) { long long bits; memcpy(&bits, &f, 8); return bits; }

static float tw_widen(unsigned short h) {
  unsigned sign = (unsigned)(h >> 15) << 31, exponent = h >> 10 & 31, fraction = h & 1023;
  if (exponent == 0) {
    float f = std::ldexp((float)fraction, -24);
    return sign ? -f : f;
  }
  unsigned bits = exponent == 31 ? sign | 0x7f800000u | fraction << 13 : sign | (exponent + 112) << 23 | fraction << 13;
  return __int_as_float((int)bits);
}
static unsigned short tw_narrow(float f) {
  unsigned bits; memcpy(&bits, &f, 4);
  unsigned short sign = (unsigned short)(bits >> 16 & 0x8000);
  float a = std::fabs(f);
  if (!(f == f)) return sign | 0x7e00;
  if (a >= 65520.0f) return sign | 0x7c00;
  if (a < 6.103515625e-5f) return sign | (unsigned short)std::nearbyint(std::ldexp(a, 24));
  memcpy(&bits, &a, 4);
  bits += 0xfff + (bits >> 13 & 1);
  return sign | (unsigned short)((bits - (112u << 23)) >> 13);
}

static ucontext_t tw_scheduler;
struct tw_fiber { ucontext_t context; bool done; tw_dim at; };
static tw_fiber *tw_now;
static const int TW_STACK = 128 << 10;
static void (*tw_body)(void *);
static void *tw_argument;

static void __syncthreads() { swapcontext(&tw_now->context, &tw_scheduler); }
static void tw_enter() { tw_body(tw_argument); tw_now->done = true; swapcontext(&tw_now->context, &tw_scheduler); }

// Runs a block whose threads use barriers. Aborts if not all threads reach the same barrier.
static void tw_run_waiting(int threads) {
  static std::vector<std::unique_ptr<char[]>> stacks;
  static std::vector<tw_fiber> fibers;
  fibers.resize(threads);
  while ((int)stacks.size() < threads) stacks.emplace_back(new char[TW_STACK]);
  for (int t = 0; t < threads; t++) {
    tw_fiber &f = fibers[t];
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = stacks[t].get();
    f.context.uc_stack.ss_size = TW_STACK;
    f.context.uc_link = nullptr;
    f.done = false;
    f.at = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
    makecontext(&f.context, tw_enter, 0);
  }
  for (int left = threads; left > 0;) {
    int done = 0;
    for (tw_fiber &f : fibers) {
      tw_now = &f;
      threadIdx = f.at;
      swapcontext(&tw_scheduler, &f.context);
      done += f.done;
    }
    if (done != 0 && done != threads) { fprintf(stderr, "threads part before __syncthreads()\n"); abort(); }
    left -= done;
  }
}

template <class... A, size_t... I>
static void tw_invoke(void (*kernel)(A...), void *const *args, std::index_sequence<I...>) { kernel((A)args[I]...); }

// Launches a kernel on pointers. `waits` tells whether its threads use barriers.
template <class... A>
static void tw_launch(void (*kernel)(A...), void *const *args, const unsigned *grid, const unsigned *block, bool waits) {
  gridDim = {(int)grid[0], (int)grid[1], (int)grid[2]};
  blockDim = {(int)block[0], (int)block[1], (int)block[2]};
  auto call = [&] { tw_invoke(kernel, args, std::index_sequence_for<A...>()); };
  tw_argument = &call;
  tw_body = [](void *f) { (*(decltype(call) *)f)(); };
  for (int z = 0; z < gridDim.z; z++)
    for (int y = 0; y < gridDim.y; y++)
      for (int x = 0; x < gridDim.x; x++) {
        blockIdx = {x, y, z};
        if (waits) { tw_run_waiting(blockDim.x * blockDim.y * blockDim.z); continue; }
        for (int c = 0; c < blockDim.z; c++)
          for (int b = 0; b < blockDim.y; b++)
            for (int a = 0; a < blockDim.x; a++) { threadIdx = {a, b, c}; call(); }
      }
}
