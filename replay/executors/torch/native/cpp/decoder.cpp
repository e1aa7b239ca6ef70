// All layers of a decoder like Llama's, one after the other, in one call; compiled at first use, see native.py.

#include <cstdint>

struct Step; // of attention.cpp

extern "C" {

void replay_attend(const Step *step, const float *query, int64_t query_stride, const float *key, int64_t key_stride,
                   const float *value, int64_t value_stride, const float *cos, const float *sin, float scale,
                   void *keys, void *values, float *output);
void replay_rms_norm(const float *x, float *residual, const float *weight, float eps, int64_t rows, int64_t width,
                     int threads, float *to);
void replay_silu_mul(const float *gate_up, int64_t rows, int64_t width, int threads, float *to);
void replay_linear(const float *x, const void *packed, const float *bias, int64_t rows, int64_t inputs,
                   int64_t outputs, int half, int threads, float *y);

struct Matrix { // packed by `replay_pack`
    const void *packed;
    const float *bias; // or null
};

struct Layer { // mirrored in native_decoder.py
    Matrix qkv, out, gate_up, down;
    const float *norm, *feed_norm;
    const float *query_norm, *key_norm; // [head_dim], or null
    void *keys, *values;
};

struct Decoder { // mirrored in native_decoder.py
    const Layer *layers;
    int64_t count, hidden, heads, kv_heads, head_dim, mlp;
    float eps, scale;
    int32_t half, threads;
};

// Add to `residual` [rows, hidden], which holds the embeddings, what all layers but the last's MLP add, and give what
// that adds in `x` [rows, hidden]. `wide` and `narrow` are room for the widest results of a matrix product and of what
// follows it: [rows, max(heads + 2 kv_heads times head_dim, 2 mlp)] and [rows, max(heads times head_dim, mlp)].
void replay_decode(const Decoder *decoder, const Step *step, const float *cos, const float *sin, int64_t rows,
                   float *residual, float *x, float *wide, float *narrow) {
    const Decoder &d = *decoder;
    const int64_t query = d.heads * d.head_dim, key = d.kv_heads * d.head_dim, all = query + 2 * key;
    for (int64_t i = 0; i < d.count; i++) {
        const Layer &layer = d.layers[i];
        if (i == 0)
            replay_rms_norm(residual, nullptr, layer.norm, d.eps, rows, d.hidden, d.threads, x);
        else
            replay_rms_norm(x, residual, layer.norm, d.eps, rows, d.hidden, d.threads, x);
        replay_linear(x, layer.qkv.packed, layer.qkv.bias, rows, d.hidden, all, d.half, d.threads, wide);
        for (int64_t row = 0; layer.query_norm && row < rows; row++) {
            float *const heads = wide + row * all;
            replay_rms_norm(heads, nullptr, layer.query_norm, d.eps, d.heads, d.head_dim, 1, heads);
            replay_rms_norm(heads + query, nullptr, layer.key_norm, d.eps, d.kv_heads, d.head_dim, 1, heads + query);
        }
        replay_attend(step, wide, all, wide + query, all, wide + query + key, all, cos, sin, d.scale, layer.keys,
                      layer.values, narrow);
        replay_linear(narrow, layer.out.packed, layer.out.bias, rows, query, d.hidden, d.half, d.threads, x);
        replay_rms_norm(x, residual, layer.feed_norm, d.eps, rows, d.hidden, d.threads, x);
        replay_linear(x, layer.gate_up.packed, layer.gate_up.bias, rows, d.hidden, 2 * d.mlp, d.half, d.threads, wide);
        replay_silu_mul(wide, rows, d.mlp, d.threads, narrow);
        replay_linear(narrow, layer.down.packed, layer.down.bias, rows, d.mlp, d.hidden, d.half, d.threads, x);
    }
}
}
