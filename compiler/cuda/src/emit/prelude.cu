// Helpers for generated kernels, in CUDA C and in C99: integers wrap and round as in hw/src/num.rs and in the evaluator
// of loop programs. Names of functions end in _l for long long, in _u and _ul for those without a sign, in _f for float
// and in _d for double.

#ifdef TW_C99
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#define TW_INLINE static inline
static inline float __int_as_float(int bits) { union { int i; float f; } v; v.i = bits; return v.f; }
static inline int __float_as_int(float value) { union { int i; float f; } v; v.f = value; return v.i; }
static inline double __longlong_as_double(long long bits) { union { long long i; double f; } v; v.i = bits; return v.f; }
static inline long long __double_as_longlong(double value) { union { long long i; double f; } v; v.f = value; return v.i; }
#else
#define TW_INLINE static __device__ __forceinline__
#endif

TW_INLINE int tw_add(int a, int b) { return (int)((unsigned)a + (unsigned)b); }
TW_INLINE int tw_sub(int a, int b) { return (int)((unsigned)a - (unsigned)b); }
TW_INLINE int tw_mul(int a, int b) { return (int)((unsigned)a * (unsigned)b); }
TW_INLINE int tw_shl(int a, int b) { return (int)((unsigned)a << (b & 31)); }
TW_INLINE int tw_shr(int a, int b) { return a >> (b & 31); }

TW_INLINE long long tw_add_l(long long a, long long b) { return (long long)((unsigned long long)a + (unsigned long long)b); }
TW_INLINE long long tw_sub_l(long long a, long long b) { return (long long)((unsigned long long)a - (unsigned long long)b); }
TW_INLINE long long tw_mul_l(long long a, long long b) { return (long long)((unsigned long long)a * (unsigned long long)b); }
TW_INLINE long long tw_shl_l(long long a, long long b) { return (long long)((unsigned long long)a << (b & 63)); }
TW_INLINE long long tw_shr_l(long long a, long long b) { return a >> (b & 63); }

TW_INLINE int tw_min(int a, int b) { return b < a ? b : a; }
TW_INLINE int tw_max(int a, int b) { return b > a ? b : a; }
TW_INLINE long long tw_min_l(long long a, long long b) { return b < a ? b : a; }
TW_INLINE long long tw_max_l(long long a, long long b) { return b > a ? b : a; }
// NaN if either operand is NaN, which fminf and fmaxf would drop: each select keeps one operand's NaN. Combining them
// is safe because equal floats have equal bits except for the sign of 0.
TW_INLINE float tw_both(float a, float b) { return __int_as_float(__float_as_int(a) | __float_as_int(b)); }
TW_INLINE float tw_min_f(float a, float b) { return tw_both(b < a ? b : a, a < b ? a : b); }
TW_INLINE float tw_max_f(float a, float b) { return tw_both(b > a ? b : a, a > b ? a : b); }
TW_INLINE double tw_both_d(double a, double b) { return __longlong_as_double(__double_as_longlong(a) | __double_as_longlong(b)); }
TW_INLINE double tw_min_d(double a, double b) { return tw_both_d(b < a ? b : a, a < b ? a : b); }
TW_INLINE double tw_max_d(double a, double b) { return tw_both_d(b > a ? b : a, a > b ? a : b); }
TW_INLINE unsigned tw_min_u(unsigned a, unsigned b) { return b < a ? b : a; }
TW_INLINE unsigned tw_max_u(unsigned a, unsigned b) { return b > a ? b : a; }
TW_INLINE unsigned long long tw_min_ul(unsigned long long a, unsigned long long b) { return b < a ? b : a; }
TW_INLINE unsigned long long tw_max_ul(unsigned long long a, unsigned long long b) { return b > a ? b : a; }

// Quotient rounded down, and remainder with the divisor's sign; 0 if the divisor is 0.
TW_INLINE int tw_floor_div(int a, int b) {
  if (b == 0) return 0;
  if (b == -1) return tw_sub(0, a);
  int q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
TW_INLINE int tw_floor_mod(int a, int b) { return b == 0 ? 0 : tw_sub(a, tw_mul(tw_floor_div(a, b), b)); }
TW_INLINE long long tw_floor_div_l(long long a, long long b) {
  if (b == 0) return 0;
  if (b == -1) return tw_sub_l(0, a);
  long long q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
TW_INLINE long long tw_floor_mod_l(long long a, long long b) { return b == 0 ? 0 : tw_sub_l(a, tw_mul_l(tw_floor_div_l(a, b), b)); }

// Floats convert to integers by truncation and saturation. NaN converts to 0.
TW_INLINE long long tw_to_i64(float x) {
  if (!(x == x)) return 0;
  if (x >= 9223372036854775808.0f) return 9223372036854775807ll;
  if (x <= -9223372036854775808.0f) return -9223372036854775807ll - 1;
  return (long long)x;
}
TW_INLINE int tw_to_i32(float x) {
  if (!(x == x)) return 0;
  if (x >= 2147483648.0f) return 2147483647;
  if (x <= -2147483648.0f) return -2147483647 - 1;
  return (int)x;
}
TW_INLINE long long tw_to_i64_d(double x) {
  if (!(x == x)) return 0;
  if (x >= 9223372036854775808.0) return 9223372036854775807ll;
  if (x <= -9223372036854775808.0) return -9223372036854775807ll - 1;
  return (long long)x;
}
TW_INLINE unsigned long long tw_to_u64_d(double x) {
  if (!(x > 0.0)) return 0;
  if (x >= 18446744073709551616.0) return 18446744073709551615ull;
  return (unsigned long long)x;
}
// Within bounds that fit in 32 bits and one more.
TW_INLINE long long tw_clamp_d(double x, double lo, double hi) {
  if (!(x == x)) return 0;
  return (long long)(x < lo ? lo : x > hi ? hi : x);
}
TW_INLINE signed char tw_to_i8(float x) { return (signed char)tw_max(tw_min(tw_to_i32(x), 127), -128); }
TW_INLINE unsigned char tw_to_u8(float x) { return (unsigned char)tw_max(tw_min(tw_to_i32(x), 255), 0); }

// High half of twice the product, rounded half up. Saturates if both are the smallest integer.
TW_INLINE int tw_doubling_high_mul(int a, int b) {
  if (a == -2147483647 - 1 && b == -2147483647 - 1) return 2147483647;
  return (int)(((long long)a * b + (1ll << 30)) >> 31);
}
// x / 2^exponent rounded to nearest, ties away from zero.
TW_INLINE int tw_rounding_shift(int x, int exponent) {
  exponent = tw_max(tw_min(exponent, 31), 0);
  if (exponent == 0) return x;
  return (int)(((long long)x + (1ll << (exponent - 1)) - (x < 0)) >> exponent);
}
// Two roundings: x * 2^left, the doubling high product, then a rounding shift.
TW_INLINE int tw_scale_double(int x, int multiplier, int shift) {
  int left = tw_max(tw_min(shift, 31), 0), right = -tw_max(tw_min(shift, 0), -31);
  return tw_rounding_shift(tw_doubling_high_mul(tw_shl(x, left), multiplier), right);
}
// One rounding, half up, after the exact product.
TW_INLINE int tw_scale_single(int x, int multiplier, int shift) {
  int right = tw_max(tw_min(shift, 31), 0);
  long long rounded = ((long long)x * multiplier + (1ll << (30 + right))) >> (31 + right);
  return rounded > 2147483647ll ? 2147483647 : (int)rounded;
}
// The lower bound is applied last, which defines the result for lo > hi.
TW_INLINE int tw_offset_clamp(int x, int zero_point, int lo, int hi) {
  long long v = (long long)x + zero_point;
  v = v > hi ? hi : v;
  return v < lo ? lo : (int)v;
}

// 16-bit floats are only stored. All arithmetic is in 32 bits.
typedef unsigned short tw_half;
#ifdef __CUDACC__
TW_INLINE float tw_widen(tw_half h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}
TW_INLINE tw_half tw_narrow(float f) {
  tw_half h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
}
#endif
