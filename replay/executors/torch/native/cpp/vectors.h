// Vectors of float32 as wide as the processor has them, in the compilers' own extensions, and e^x of them.

#pragma once

#include <cstdint>
#if defined(__F16C__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
constexpr int WIDTH = 16, ACROSS = 4; // floats of a vector; vectors held at once for each row of sums
#elif defined(__AVX__)
constexpr int WIDTH = 8, ACROSS = 2;
#else
constexpr int WIDTH = 4, ACROSS = 4;
#endif

typedef float Vector __attribute__((vector_size(WIDTH * 4)));
typedef int32_t Integers __attribute__((vector_size(WIDTH * 4)));
typedef float Unaligned __attribute__((vector_size(WIDTH * 4), aligned(4), may_alias));

static inline Vector load(const float *from) { return *(const Unaligned *)from; }
static inline void store(float *to, Vector vector) { *(Unaligned *)to = vector; }

// float16 by the processor's own conversions: compilers make vectors of _Float16 slow.
#if defined(__F16C__) && defined(__AVX__)
#define HAS_HALF 1
struct Half {
    uint16_t bits;
    Half() = default;
    explicit Half(float number) : bits(_cvtss_sh(number, _MM_FROUND_TO_NEAREST_INT)) {}
    operator float() const { return _cvtsh_ss(bits); }
};
#if defined(__AVX512F__)
static inline Vector load(const Half *from) { return (Vector)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from)); }
#else
static inline Vector load(const Half *from) { return (Vector)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from)); }
#endif
#else
#define HAS_HALF 0
#endif

#if defined(__AVX512F__)
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#elif defined(__AVX__)
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define ODD 1, 3, 5, 7, 9, 11, 13, 15
#else
#define EVEN 0, 2, 4, 6
#define ODD 1, 3, 5, 7
#endif

// Sums of neighbours: of the first vector's in the lower half, of the second's in the upper.
static inline Vector fold(Vector a, Vector b) {
#if defined(__clang__)
    return __builtin_shufflevector(a, b, EVEN) + __builtin_shufflevector(a, b, ODD);
#else
    return __builtin_shuffle(a, b, Integers{EVEN}) + __builtin_shuffle(a, b, Integers{ODD});
#endif
}

// e^x for x <= 0, and never less than e^-87, to about one unit in the last place: 2^n times a polynomial in what is
// left, |rest| <= ln(2) / 2.
static inline Vector exponential(Vector x) {
    const Vector least = Vector{} - 87.0f;
    x = x > least ? x : least;
    const Vector shifted = x * 1.44269504f + 12582912.0f; // 1.5 * 2^23: rounds to a whole number in the low bits
    const Vector whole = shifted - 12582912.0f;
    const Vector rest = (x - whole * 0.693359375f) + whole * 2.12194440e-4f; // ln(2) in two parts
    Vector sum = rest * 1.9875691500e-4f + 1.3981999507e-3f;
    sum = sum * rest + 8.3334519073e-3f;
    sum = sum * rest + 4.1665795894e-2f;
    sum = sum * rest + 1.6666665459e-1f;
    sum = sum * rest + 5.0000001201e-1f;
    sum = sum * rest * rest + rest + 1.0f;
    const Integers power = ((Integers)shifted - 0x4B400000 + 127) << 23;
    return sum * (Vector)power;
}

static inline float exponential(float x) { return exponential(Vector{} + x)[0]; }
