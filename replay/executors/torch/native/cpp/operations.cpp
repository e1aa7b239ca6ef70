// What a decoder computes between its matrix products, a pass over memory each; compiled at first use, see native.py.

#include <cmath>
#include <cstdint>

#include "vectors.h"

constexpr int64_t FEW = 65536; // numbers for which waking threads costs more than it gains

// to = x / sqrt(mean(x^2) + eps) * weight
static void norm(const float *x, const float *weight, float eps, int width, float *to) {
    Vector squares = {};
    int i = 0;
    for (; i + WIDTH <= width; i += WIDTH)
        squares += load(x + i) * load(x + i);
    float sum = 0;
    for (int lane = 0; lane < WIDTH; lane++)
        sum += squares[lane];
    for (; i < width; i++)
        sum += x[i] * x[i];
    const float factor = 1.0f / std::sqrt(sum / width + eps);
    for (i = 0; i < width; i++)
        to[i] = x[i] * factor * weight[i];
}

extern "C" {

// RMS norm of [rows, width] into `to`; with `residual` [rows, width], x is added to it first, and the sum is normed.
void replay_rms_norm(const float *x, float *residual, const float *weight, float eps, int64_t rows, int64_t width,
                     int threads, float *to) {
#pragma omp parallel for num_threads(threads) if (threads > 1 && rows * width > FEW)
    for (int64_t row = 0; row < rows; row++) {
        const float *from = x + row * width;
        if (residual) {
            float *const sum = residual + row * width;
            for (int64_t i = 0; i < width; i++)
                sum[i] += from[i];
            from = sum;
        }
        norm(from, weight, eps, (int)width, to + row * width);
    }
}

// silu(gate) * up of [rows, 2 * width], gate first, into [rows, width].
void replay_silu_mul(const float *gate_up, int64_t rows, int64_t width, int threads, float *to) {
#pragma omp parallel for num_threads(threads) if (threads > 1 && rows * width > FEW)
    for (int64_t row = 0; row < rows; row++) {
        const float *const gate = gate_up + row * 2 * width, *const up = gate + width;
        float *const result = to + row * width;
        int64_t i = 0;
        for (; i + WIDTH <= width; i += WIDTH) {
            const Vector x = load(gate + i), small = exponential(x > 0 ? -x : x); // e^-|x|, which cannot overflow
            const Vector one = Vector{} + 1.0f;
            store(result + i, x * (x > 0 ? one : small) / (one + small) * load(up + i));
        }
        for (; i < width; i++)
            result[i] = gate[i] / (1.0f + std::exp(-gate[i])) * up[i];
    }
}

// The place of the largest number of each row of [rows, width], the first among equals.
void replay_largest(const float *numbers, int64_t rows, int64_t width, int threads, int64_t *to) {
#pragma omp parallel for num_threads(threads) if (threads > 1 && rows * width > FEW)
    for (int64_t row = 0; row < rows; row++) {
        const float *const from = numbers + row * width;
        float most = from[0];
        int64_t i = 0;
        if (width >= WIDTH) {
            Vector largest = load(from);
            for (i = WIDTH; i + WIDTH <= width; i += WIDTH) {
                const Vector next = load(from + i);
                largest = next > largest ? next : largest;
            }
            for (int lane = 0; lane < WIDTH; lane++)
                most = largest[lane] > most ? largest[lane] : most;
        }
        for (; i < width; i++)
            most = from[i] > most ? from[i] : most;
        int64_t place = 0;
        while (place < width - 1 && from[place] != most)
            place++;
        to[row] = place;
    }
}
}
