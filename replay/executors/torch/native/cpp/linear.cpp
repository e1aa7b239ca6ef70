// Products with a weight that was packed once, in float32 or float16; compiled at first use, see native.py.
//
// A packed weight is panels of WIDE outputs: for each input the WIDE numbers that it is multiplied with, one after the
// other. DEPTH inputs of a panel stay in the nearest cache while all rows are multiplied with them, BLOCK rows at a time.
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
constexpr int64_t DEPTH = 128; // inputs of a panel that stay in the nearest cache while all rows are multiplied
constexpr int64_t FEW = 20000; // multiplications for which waking threads costs more than it gains

struct Product { // y [rows, outputs] = x [rows, inputs] weight^T + bias, which may be null
    const float *x, *bias;
    float *y;
    int64_t rows, inputs, outputs;
};

// Inputs `begin` to `end` - 1 of a panel: `weights` has theirs, and memory from `next` on is fetched, `step` bytes each.
template <typename T> struct Part {
    int64_t output, begin, end;
    const T *weights;
    const char *next;
    int64_t step;
};

// COUNT rows from `row` on, by a part of a panel; their sums so far lie in y, unless it is the panel's first part.
template <int COUNT, typename T> static void multiply(const Product &product, Part<T> part, int64_t row) {
    const int64_t inputs = product.inputs, left = product.outputs - part.output, count = left < WIDE ? left : WIDE;
    const float *const x = product.x + row * inputs;
    float *const y = product.y + row * product.outputs + part.output;
    Vector sums[COUNT][ROW];
    for (int i = 0; i < COUNT; i++) {
        float room[WIDE] = {};
        const float *from = part.begin ? y + i * product.outputs : product.bias ? product.bias + part.output : room;
        if (from != room && count < WIDE)
            from = (const float *)memcpy(room, from, sizeof(float) * count);
        for (int j = 0; j < ROW; j++)
            sums[i][j] = load(from + j * WIDTH);
    }
    for (int64_t k = part.begin; k < part.end; k++, part.weights += WIDE, part.next += part.step) {
        __builtin_prefetch(part.next);
        Vector weights[ROW];
        for (int j = 0; j < ROW; j++)
            weights[j] = load(part.weights + j * WIDTH);
        for (int i = 0; i < COUNT; i++)
            for (int j = 0; j < ROW; j++)
                sums[i][j] += x[i * inputs + k] * weights[j];
    }
    for (int i = 0; i < COUNT; i++) {
        float room[WIDE], *const to = count == WIDE ? y + i * product.outputs : room;
        for (int j = 0; j < ROW; j++)
            store(to + j * WIDTH, sums[i][j]);
        if (count < WIDE)
            memcpy(y + i * product.outputs, room, sizeof(float) * count);
    }
}

// As many rows as are left, fewer than BLOCK.
template <int COUNT, typename T> static void multiply_rest(const Product &product, const Part<T> &part, int64_t row) {
    if constexpr (COUNT > 0) {
        if (product.rows - row == COUNT)
            multiply<COUNT>(product, part, row);
        else
            multiply_rest<COUNT - 1>(product, part, row);
    }
}

// All rows by a part of a panel.
template <typename T> static void multiply_rows(const Product &product, Part<T> part) {
    const int64_t fetched = (part.end - part.begin) * part.step;
    int64_t row = 0;
    for (; row + BLOCK <= product.rows; row += BLOCK, part.next += fetched)
        multiply<BLOCK>(product, part, row);
    multiply_rest<BLOCK - 1>(product, part, row);
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
    const int64_t blocks = (product.rows + BLOCK - 1) / BLOCK;
    const bool expanded = sizeof(T) < sizeof(float) && blocks > 1;
    const int64_t depth = blocks > 1 ? DEPTH : product.inputs; // a part that serves one block alone need not stay
    // Each row of a panel fetches its share of the next one, in steps of a cache line or less.
    const int64_t step = (sizeof(T) * WIDE + blocks - 1) / blocks;
#pragma omp parallel num_threads(threads) if (threads > 1 && product.rows * product.inputs * product.outputs > FEW)
    {
        float *const wide = expanded ? (float *)malloc(sizeof(float) * WIDE * DEPTH) : nullptr;
#pragma omp for schedule(static)
        for (int64_t i = 0; i < panels; i++) {
            const T *const panel = weight + i * size;
            const char *next = (const char *)(i + 1 < panels ? panel + size : panel);
            for (int64_t begin = 0; begin < product.inputs; begin += depth) {
                const int64_t end = begin + depth < product.inputs ? begin + depth : product.inputs;
                const T *const weights = panel + begin * WIDE;
                if (expanded) {
                    expand(weights, (end - begin) * WIDE, wide);
                    multiply_rows(product, Part<float>{i * WIDE, begin, end, wide, next, step});
                } else
                    multiply_rows(product, Part<T>{i * WIDE, begin, end, weights, next, step});
                next += (end - begin) * step * blocks;
            }
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
