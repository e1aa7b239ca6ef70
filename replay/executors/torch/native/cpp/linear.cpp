// Products with a weight that was packed once, in float32 or float16; compiled at first use, see native.py.
//
// A packed weight is panels of WIDE outputs: for each input the WIDE numbers that it is multiplied with, one after the
// other. A panel goes through the processor's cache once while all rows are multiplied with it, BLOCK rows at a time.
// Each result is one sum over the inputs in order, whatever the other rows, so it is the same to the last bit in every
// batch.

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "vectors.h"

constexpr int ROW = 3, WIDE = ROW * WIDTH; // vectors and outputs of a panel
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int BLOCK = 8; // rows whose sums are held in registers at once
#else
constexpr int BLOCK = 4;
#endif
constexpr int64_t FEW = 20000; // multiplications for which waking threads costs more than it gains

struct Product { // y [rows, outputs] = x [rows, inputs] weight^T + bias, which may be null
    const float *x, *bias;
    float *y;
    int64_t rows, inputs, outputs;
};

// COUNT rows from `row` on, by the panel of outputs from `output` on; meanwhile, the memory from `next` on is fetched.
template <int COUNT, typename T>
static void multiply(const Product &product, const T *panel, int64_t row, int64_t output, const char *next,
                     int64_t step) {
    const float *const x = product.x + row * product.inputs;
    float bias[WIDE] = {};
    const int64_t left = product.outputs - output, count = left < WIDE ? left : WIDE;
    if (product.bias)
        memcpy(bias, product.bias + output, sizeof(float) * count);
    Vector sums[COUNT][ROW];
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < ROW; j++)
            sums[i][j] = load(bias + j * WIDTH);
    for (int64_t k = 0; k < product.inputs; k++, panel += WIDE, next += step) {
        __builtin_prefetch(next);
        Vector weights[ROW];
        for (int j = 0; j < ROW; j++)
            weights[j] = load(panel + j * WIDTH);
        for (int i = 0; i < COUNT; i++)
            for (int j = 0; j < ROW; j++)
                sums[i][j] += x[i * product.inputs + k] * weights[j];
    }
    for (int i = 0; i < COUNT; i++) {
        float *const y = product.y + (row + i) * product.outputs + output;
        if (count == WIDE) {
            for (int j = 0; j < ROW; j++)
                store(y + j * WIDTH, sums[i][j]);
        } else {
            float part[WIDE];
            for (int j = 0; j < ROW; j++)
                store(part + j * WIDTH, sums[i][j]);
            memcpy(y, part, sizeof(float) * count);
        }
    }
}

// As many rows as are left, fewer than BLOCK.
template <int COUNT, typename T>
static void multiply_rest(const Product &product, const T *panel, int64_t row, int64_t output, const char *next,
                          int64_t step) {
    if constexpr (COUNT > 0) {
        if (product.rows - row == COUNT)
            multiply<COUNT>(product, panel, row, output, next, step);
        else
            multiply_rest<COUNT - 1>(product, panel, row, output, next, step);
    }
}

template <typename T>
static void multiply_panel(const Product &product, const T *panel, int64_t output, const char *next, int64_t bytes) {
    const int64_t blocks = (product.rows + BLOCK - 1) / BLOCK;
    // Each block of rows fetches its share of the next panel, in steps of a cache line or less.
    const int64_t share = bytes / blocks, step = (share + product.inputs - 1) / product.inputs;
    int64_t row = 0;
    for (; row + BLOCK <= product.rows; row += BLOCK, next += share)
        multiply<BLOCK>(product, panel, row, output, next, step);
    multiply_rest<BLOCK - 1>(product, panel, row, output, next, step);
}

static inline void expand(const float *, int64_t, float *) {}
#if HAS_HALF
static void expand(const Half *from, int64_t count, float *to) {
    for (int64_t i = 0; i < count; i += WIDTH)
        store(to + i, load(from + i));
}
#endif

template <typename T> static void multiply_all(const Product &product, const T *weight, int threads) {
    const int64_t panels = (product.outputs + WIDE - 1) / WIDE, size = product.inputs * WIDE;
    const bool expanded = sizeof(T) < sizeof(float) && product.rows > BLOCK;
#pragma omp parallel num_threads(threads) if (threads > 1 && product.rows * product.inputs * product.outputs > FEW)
    {
        float *const wide = expanded ? (float *)malloc(sizeof(float) * size) : nullptr;
#pragma omp for schedule(static)
        for (int64_t i = 0; i < panels; i++) {
            const T *const panel = weight + i * size;
            const char *const next = (const char *)(i + 1 < panels ? panel + size : panel);
            if (expanded) {
                expand(panel, size, wide);
                multiply_panel(product, wide, i * WIDE, next, sizeof(T) * size);
            } else
                multiply_panel(product, panel, i * WIDE, next, sizeof(T) * size);
        }
        free(wide);
    }
}

extern "C" {

// Numbers in a packed weight [outputs, inputs].
int64_t replay_packed_size(int64_t outputs, int64_t inputs) { return (outputs + WIDE - 1) / WIDE * WIDE * inputs; }

// Pack `weight` [outputs, inputs], in float16 if `half`.
void replay_pack(const float *weight, int64_t outputs, int64_t inputs, int half, void *packed) {
    int64_t at = 0;
    for (int64_t first = 0; first < outputs; first += WIDE)
        for (int64_t input = 0; input < inputs; input++)
            for (int64_t output = first; output < first + WIDE; output++, at++) {
                const float number = output < outputs ? weight[output * inputs + input] : 0.0f;
#if HAS_HALF
                if (half)
                    ((Half *)packed)[at] = Half(number);
                else
#endif
                    ((float *)packed)[at] = number;
            }
    (void)half;
}

void replay_linear(const float *x, const void *packed, const float *bias, int64_t rows, int64_t inputs,
                   int64_t outputs, int half, int threads, float *y) {
    const Product product = {x, bias, y, rows, inputs, outputs};
    if (rows == 0)
        return;
#if HAS_HALF
    if (half) {
        multiply_all(product, (const Half *)packed, threads);
        return;
    }
#endif
    (void)half;
    multiply_all(product, (const float *)packed, threads);
}
}
