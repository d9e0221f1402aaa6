/* Scalar functions without an LLVM form, and conversions that LLVM asks of its run-time library. */
#include <math.h>
#include <stdint.h>
#include <string.h>

static uint64_t bits64(double x) { uint64_t b; memcpy(&b, &x, 8); return b; }
static double double_of(uint64_t b) { double x; memcpy(&x, &b, 8); return x; }

/* Nearest float16, ties to even, from a double. */
static uint16_t half_from_double(double x) {
    uint16_t sign = (uint16_t)(bits64(x) >> 48 & 0x8000);
    double magnitude = fabs(x);
    if (x != x) return sign | 0x7e00;
    if (magnitude >= 65520.0) return sign | 0x7c00;
    int exponent = 0;
    frexp(magnitude, &exponent);
    if (exponent < -13) exponent = -13; /* subnormal: a fixed step of 2**-24 */
    double steps = nearbyint(ldexp(magnitude, 11 - exponent));
    return sign | (uint16_t)((exponent + 13) * 1024 + (int)steps);
}

static double double_from_half(uint16_t h) {
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double x = exponent == 31 ? (fraction ? NAN : INFINITY)
               : exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return h & 0x8000 ? -x : x;
}

/* a*b is exact in a double; the sum is rounded to odd so that the second rounding is right. */
uint16_t opscan_fma_half(uint16_t a, uint16_t b, uint16_t c) {
    double product = double_from_half(a) * double_from_half(b), addend = double_from_half(c);
    double sum = product + addend, back = sum - product;
    double error = (product - (sum - back)) + (addend - back);
    if (error == error && error != 0 && !(bits64(sum) & 1))
        sum = double_of(bits64(sum) + ((error > 0) == (sum > 0) ? 1 : -1));
    return half_from_double(sum);
}

uint16_t opscan_nextafter_half(uint16_t x, uint16_t y) {
    double a = double_from_half(x), b = double_from_half(y);
    if (a != a) return x;
    if (b != b) return y;
    if (a == b) return y;
    if (a == 0) return (y & 0x8000) | 1;
    return (a < b) == (a > 0) ? x + 1 : x - 1;
}

static const double PI = 3.141592653589793238462643383279502884;

/* Reduced exactly before the multiplication, so that whole and half numbers come out exact. */
double opscan_sinpi(double x) {
    double r = remainder(x, 2.0);
    if (r > 0.5) r = 1.0 - r;
    else if (r < -0.5) r = -1.0 - r;
    return r == 0.0 ? copysign(0.0, x) : sin(PI * r);
}

double opscan_cospi(double x) {
    double r = fabs(remainder(x, 2.0));
    return r <= 0.25 ? cos(PI * r) : sin(PI * (0.5 - r));
}

double opscan_exp10(double x) { return pow(10.0, x); }
double opscan_rsqrt(double x) { return 1.0 / sqrt(x); }

#if defined(__x86_64__)
static uint16_t bfloat_bits(float x) {
    uint32_t b;
    memcpy(&b, &x, 4);
    if ((b & 0x7fffffff) > 0x7f800000) return (uint16_t)(b >> 16 | 0x40);
    return (uint16_t)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

/* A processor without the instructions makes LLVM call these. */
__bf16 __truncsfbf2(float x) { uint16_t b = bfloat_bits(x); __bf16 r; memcpy(&r, &b, 2); return r; }
_Float16 __truncsfhf2(float x) { uint16_t b = half_from_double(x); _Float16 r; memcpy(&r, &b, 2); return r; }
_Float16 __truncdfhf2(double x) { uint16_t b = half_from_double(x); _Float16 r; memcpy(&r, &b, 2); return r; }
float __extendhfsf2(_Float16 x) { uint16_t b; memcpy(&b, &x, 2); return (float)double_from_half(b); }
#endif
