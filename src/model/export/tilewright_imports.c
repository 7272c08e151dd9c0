/*
 * Functions that object code of Tilewright calls in addition to the C library, for one thread. Compile this file once
 * into a program, however many models it has, and link the C math library (-lm).
 *
 * The code uses at most these functions of the C library: memcpy, memmove, memset, expf, logf, sqrtf, tanhf, erff,
 * floorf, ceilf, truncf, roundf, roundevenf, rintf and fmodf, and of those for doubles sqrt, floor, ceil, trunc, round, roundeven, rint and fmod. The
 * header of each model lists those that its code uses.
 */
#include <math.h>
#include <stdint.h>

/* Calls body(context, i) for each i from 0 to count - 1. The calls can run at the same time on several threads, in any
 * order, if all have ended when this returns: replace it with your thread pool if you have one. */
void tw_parallel_for(void (*body)(void *context, int64_t i), void *context, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        body(context, i);
    }
}

float tw_sinf(float x)
{
    return sinf(x);
}

float tw_cosf(float x)
{
    return cosf(x);
}

float tw_powf(float x, float y)
{
    return powf(x, y);
}

double tw_exp(double x)
{
    return exp(x);
}

double tw_log(double x)
{
    return log(x);
}

double tw_sin(double x)
{
    return sin(x);
}

double tw_cos(double x)
{
    return cos(x);
}

double tw_tanh(double x)
{
    return tanh(x);
}

double tw_erf(double x)
{
    return erf(x);
}

double tw_pow(double x, double y)
{
    return pow(x, y);
}

/* Not in every C library: rounds to the nearest integer, ties to even. */
#if defined(__GNUC__) && defined(__ELF__)
__attribute__((weak)) double roundeven(double x)
{
    double down = floor(x), rest = x - down;
    if (rest < 0.5) {
        return copysign(down, x);
    }
    if (rest > 0.5) {
        return copysign(down + 1.0, x);
    }
    /* For a NaN or an infinity, rest is NaN. */
    return rest == 0.5 ? copysign(2.0 * floor(down * 0.5 + 0.5), x) : x;
}

__attribute__((weak)) float roundevenf(float x)
{
    float down = floorf(x), rest = x - down;
    if (rest < 0.5f) {
        return copysignf(down, x);
    }
    if (rest > 0.5f) {
        return copysignf(down + 1.0f, x);
    }
    /* For a NaN or an infinity, rest is NaN. */
    return rest == 0.5f ? copysignf(2.0f * floorf(down * 0.5f + 0.5f), x) : x;
}
#endif
