/*
 * What object code of Tilewright calls beside the C library, for one thread. Compile it once into a program, whatever the
 * number of its models, and link the C library's mathematics (-lm).
 *
 * From the C library the code takes at most: memcpy, memmove, memset, expf, logf, sqrtf, tanhf, erff, floorf, ceilf, truncf,
 * roundf, roundevenf, rintf and fmodf. The header of each model lists those that its code uses.
 */
#include <math.h>
#include <stdint.h>

/* Calls body(context, i) for each i from 0 to count - 1. The calls may run at the same time on several threads, in any
 * order, as long as all have ended when this returns: replace it by a pool of threads where there is one. */
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

/* Not in every C library: to the nearest integer, ties to the even one. */
#if defined(__GNUC__) && defined(__ELF__)
__attribute__((weak)) float roundevenf(float x)
{
    float down = floorf(x), rest = x - down;
    if (rest < 0.5f) {
        return copysignf(down, x);
    }
    if (rest > 0.5f) {
        return copysignf(down + 1.0f, x);
    }
    /* A NaN or an infinity has no rest that is a number. */
    return rest == 0.5f ? copysignf(2.0f * floorf(down * 0.5f + 0.5f), x) : x;
}
#endif
