// Attention of the packed tokens of a step over a paged KV pool; compiled at first use, see native.py.
//
// The keys and the values of a layer lie in one pool each, [blocks, kv_heads, block_size, head_dim]. A token looks at
// the first `contexts[token]` tokens of its sequence, whose blocks are `tables[owners[token]]`. Consecutive tokens of
// one sequence form a tile, so that a chunk of a prompt reads its keys once for several tokens; all query heads of a
// KV head go together for the same reason. A padded token is given weight only to its own context, but `spans[token]`
// tokens are computed, as padding is there to be measured. The context is cut into parts of PART tokens, each with its own softmax,
// merged from the first to the last. Neither tiles nor threads nor neighbours change the order of a token's sums, so
// its result is the same to the last bit in every batch.

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "vectors.h"

constexpr int PART = 128;   // tokens of context that share a softmax before they are merged
constexpr int QUERIES = 16; // query vectors of a tile, unless one token alone has more
constexpr int TOGETHER = 4; // query vectors whose sums of values are held in registers at once
constexpr int FEW = 512;    // keys in all for which waking threads costs more than it gains

struct Layer { // what a call is given for one layer; tokens lie `*_stride` floats apart, their heads together
    const float *query, *key, *value; // [tokens, heads or kv_heads, head_dim]
    int64_t query_stride, key_stride, value_stride;
    const float *cos, *sin; // [tokens, head_dim / 2], or null: queries and keys are not rotated
    float scale;
    float *output; // [tokens, heads, head_dim]
};

struct Step { // mirrored in native.py
    int32_t tokens, heads, kv_heads, head_dim, block_size, table_width, threads, half;
    int32_t tiles; // set by `replay_prepare`, as `keys` and `first` are
    int64_t keys;  // of all tokens and KV heads
    const int32_t *tables;   // [sequences, table_width]
    const int32_t *owners;   // [tokens]
    const int32_t *contexts; // [tokens]
    const int32_t *spans;    // [tokens], none less than the context
    const int32_t *blocks;   // [tokens]: where its own key and value are kept
    const int32_t *offsets;  // [tokens]
    int32_t *first;          // [tokens + 1]: the first token of each tile
};

// Products of `query` with COUNT rows of keys, each summed to WIDTH / COUNT numbers that lie together.
template <int COUNT, typename T, int DIM> struct Dots {
    static inline Vector of(const float *query, const T *keys, int dim) {
        return fold(Dots<COUNT / 2, T, DIM>::of(query, keys, dim),
                    Dots<COUNT / 2, T, DIM>::of(query, keys + COUNT / 2 * (DIM ? DIM : dim), dim));
    }
};

template <typename T, int DIM> struct Dots<1, T, DIM> {
    static inline Vector of(const float *query, const T *keys, int dim) {
        Vector sum = {};
        for (int i = 0; i + WIDTH <= (DIM ? DIM : dim); i += WIDTH)
            sum += load(query + i) * load(keys + i);
        return sum;
    }
};

// scores[query, token] of a run of tokens that lie together in a block.
template <typename T, int DIM>
static void score(const float *query, int queries, int given, const T *keys, int run, float scale, float *scores) {
    const int dim = DIM ? DIM : given, whole = dim / WIDTH * WIDTH;
    for (int i = 0; i < queries; i++, query += dim, scores += PART) {
        int token = 0;
        for (; token + WIDTH <= run; token += WIDTH)
            store(scores + token, Dots<WIDTH, T, DIM>::of(query, keys + token * dim, dim) * scale);
        for (; token < run; token++) {
            const Vector sums = Dots<1, T, DIM>::of(query, keys + token * dim, dim);
            float sum = 0;
            for (int lane = 0; lane < WIDTH; lane++)
                sum += sums[lane];
            scores[token] = sum * scale;
        }
        for (token = 0; whole < dim && token < run; token++)
            for (int j = whole; j < dim; j++)
                scores[token] += query[j] * (float)keys[token * dim + j] * scale;
    }
}

// sums[query] += weights[query, token] values[token] over a run, for COUNT queries and SPAN vectors of a row.
template <int COUNT, int SPAN, typename T>
static void add(const float *weights, const T *values, int dim, int run, float *sums) {
    Vector held[COUNT][SPAN];
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < SPAN; j++)
            held[i][j] = load(sums + i * dim + j * WIDTH);
    for (int token = 0; token < run; token++)
        for (int j = 0; j < SPAN; j++) {
            const Vector value = load(values + token * dim + j * WIDTH);
            for (int i = 0; i < COUNT; i++)
                held[i][j] += weights[i * PART + token] * value;
        }
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < SPAN; j++)
            store(sums + i * dim + j * WIDTH, held[i][j]);
}

template <int COUNT, typename T>
static void add_rows(const float *weights, const T *values, int dim, int run, float *sums) {
    int done = 0;
    for (; done + ACROSS * WIDTH <= dim; done += ACROSS * WIDTH)
        add<COUNT, ACROSS>(weights, values + done, dim, run, sums + done);
    for (; done + WIDTH <= dim; done += WIDTH)
        add<COUNT, 1>(weights, values + done, dim, run, sums + done);
    for (; done < dim; done++)
        for (int i = 0; i < COUNT; i++)
            for (int token = 0; token < run; token++)
                sums[i * dim + done] += weights[i * PART + token] * (float)values[token * dim + done];
}

template <typename T>
static void accumulate(const float *weights, int queries, const T *values, int dim, int run, float *sums) {
    for (; queries >= TOGETHER; queries -= TOGETHER, weights += TOGETHER * PART, sums += TOGETHER * dim)
        add_rows<TOGETHER>(weights, values, dim, run, sums);
    if (queries == 3)
        add_rows<3>(weights, values, dim, run, sums);
    else if (queries == 2)
        add_rows<2>(weights, values, dim, run, sums);
    else if (queries == 1)
        add_rows<1>(weights, values, dim, run, sums);
}

// Scores to e^(score - largest), in place, zero from `count` to `padded`; the largest, and the sum.
static float weigh(float *scores, int count, int padded, float *sum) {
    for (int i = count; i < padded; i++)
        scores[i] = scores[0];
    Vector most = load(scores), total = {};
    for (int i = WIDTH; i < padded; i += WIDTH) {
        const Vector next = load(scores + i);
        most = next > most ? next : most;
    }
    float largest = most[0];
    for (int lane = 1; lane < WIDTH; lane++)
        largest = most[lane] > largest ? most[lane] : largest;
    for (int i = 0; i < padded; i += WIDTH) {
        Vector weights = exponential(load(scores + i) - largest);
        for (int lane = 0; i + WIDTH > count && lane < WIDTH; lane++)
            weights[lane] = i + lane < count ? weights[lane] : 0.0f;
        store(scores + i, weights);
        total += weights;
    }
    *sum = 0;
    for (int lane = 0; lane < WIDTH; lane++)
        *sum += total[lane];
    return largest;
}

// What a softmax over some of the context leaves, of `queries` query vectors: room for one of them is dim + 2 floats.
struct Partial {
    float *largest, *weight, *sums; // [queries], [queries], [queries, dim]
    Partial(float *room, int queries) : largest(room), weight(room + queries), sums(room + 2 * queries) {}
};

// `whole` takes in a later part of the context. Not inlined, so that it rounds alike wherever it is called.
__attribute__((noinline)) static void merge(Partial whole, Partial part, int queries, int dim) {
    for (int i = 0; i < queries; i++) {
        if (part.weight[i] == 0)
            continue;
        const bool grows = part.largest[i] > whole.largest[i] || whole.weight[i] == 0;
        const float largest = grows ? part.largest[i] : whole.largest[i];
        const float old = whole.weight[i] == 0 ? 0 : exponential(whole.largest[i] - largest);
        const float add = exponential(part.largest[i] - largest);
        whole.largest[i] = largest;
        whole.weight[i] = whole.weight[i] * old + part.weight[i] * add;
        for (int j = 0; j < dim; j++)
            whole.sums[i * dim + j] = whole.sums[i * dim + j] * old + part.sums[i * dim + j] * add;
    }
}

static void clear(Partial partial, int queries, int dim) {
    memset(partial.largest, 0, sizeof(float) * queries * (dim + 2)); // the three lie together
}

struct Tile { // tokens `first` to `last` - 1 of one sequence, for one KV head
    int first, last, group, queries, dim;
    int span; // tokens of context that are computed
    const int32_t *table;
    int64_t block_stride, head_offset; // numbers between blocks, and from a block to this head's tokens
    Tile(const Step &step, int index, int head)
        : first(step.first[index]), last(step.first[index + 1]), group(step.heads / step.kv_heads),
          queries((last - first) * group), dim(step.head_dim), span(step.spans[last - 1]),
          table(step.tables + (int64_t)step.owners[first] * step.table_width),
          block_stride((int64_t)step.kv_heads * step.block_size * dim),
          head_offset((int64_t)head * step.block_size * dim) {}
};

static inline void prefetch(const void *from, int bytes) {
    for (int i = 0; i < bytes; i += 64)
        __builtin_prefetch((const char *)from + i);
}

// The part of the context that begins at `start`, for a tile's query vectors [queries, dim].
template <typename T, int DIM>
static void attend_part(const Step &step, const Tile &tile, const float *query, float scale, const T *keys,
                        const T *values, int start, Partial part, float *scores) {
    const int end = start + PART, size = step.block_size, stop = tile.span < end ? tile.span : end;
    clear(part, tile.queries, tile.dim);
    for (int at = start; at < stop;) {
        const int offset = at % size, run = (size - offset < end - at ? size - offset : end - at);
        const T *block = keys + tile.table[at / size] * tile.block_stride + tile.head_offset;
        if (at + run < stop)
            prefetch(keys + tile.table[(at + run) / size] * tile.block_stride + tile.head_offset,
                     (int)sizeof(T) * size * tile.dim);
        score<T, DIM>(query, tile.queries, tile.dim, block + offset * tile.dim, run, scale, scores + at - start);
        at += run;
    }
    const int padded = (stop - start + WIDTH - 1) / WIDTH * WIDTH;
    for (int i = 0; i < tile.queries; i++) {
        int count = step.contexts[tile.first + i / tile.group] - start;
        count = count < PART ? count : PART;
        if (count <= 0)
            memset(scores + i * PART, 0, sizeof(float) * padded);
        else
            part.largest[i] = weigh(scores + i * PART, count, padded, &part.weight[i]);
    }
    for (int at = start; at < stop;) {
        const int offset = at % size, left = size - offset, run = left < stop - at ? left : stop - at;
        const T *block = values + tile.table[at / size] * tile.block_stride + tile.head_offset;
        if (at + run < stop)
            prefetch(values + tile.table[(at + run) / size] * tile.block_stride + tile.head_offset,
                     (int)sizeof(T) * size * tile.dim);
        accumulate(scores + at - start, tile.queries, block + offset * tile.dim, tile.dim, run, part.sums);
        at += run;
    }
}

static void finish(const Step &step, const Tile &tile, int head, Partial whole, float *output) {
    for (int i = 0; i < tile.queries; i++) {
        const int64_t row = (int64_t)(tile.first + i / tile.group) * step.heads + head * tile.group + i % tile.group;
        const float divisor = 1.0f / whole.weight[i];
        for (int j = 0; j < tile.dim; j++)
            output[row * tile.dim + j] = whole.sums[i * tile.dim + j] * divisor;
    }
}

// Rotary positions (Su et al., RoFormer, 2021): a number of the first half and its counterpart in the second turn.
template <typename T>
static void rotate(const float *from, const float *cos, const float *sin, int dim, T *__restrict to) {
    const int half = dim / 2;
    for (int i = 0; i < half; i++) {
        to[i] = (T)(from[i] * cos[i] - from[half + i] * sin[i]);
        to[half + i] = (T)(from[half + i] * cos[i] + from[i] * sin[i]);
    }
}

// The query vectors of a tile, one after the other, rotated.
static void collect(const Tile &tile, int head, const Layer &layer, float *to) {
    const int half = tile.dim / 2;
    for (int token = tile.first; token < tile.last; token++)
        for (int i = 0; i < tile.group; i++, to += tile.dim) {
            const float *from = layer.query + token * layer.query_stride + (head * tile.group + i) * tile.dim;
            if (layer.cos)
                rotate(from, layer.cos + (int64_t)token * half, layer.sin + (int64_t)token * half, tile.dim, to);
            else
                memcpy(to, from, sizeof(float) * tile.dim);
        }
}

template <typename T, int DIM>
static void attend(const Step &step, const Layer &layer, const T *keys, const T *values) {
    const int group = step.heads / step.kv_heads, most = group > QUERIES ? group : QUERIES, dim = step.head_dim;
    const int items = step.tiles * step.kv_heads, room = most * (dim + 2);
    const int threads = step.keys < FEW ? 1 : step.threads;
    if (items >= 4 * threads || threads == 1) { // a thread takes whole tiles
#pragma omp parallel num_threads(threads) if (threads > 1)
        {
            float *const mine = (float *)malloc(sizeof(float) * (2 * room + most * (dim + PART)));
            float *const queries = mine + 2 * room, *const scores = queries + most * dim;
#pragma omp for schedule(dynamic)
            for (int item = 0; item < items; item++) {
                const int head = item % step.kv_heads;
                const Tile tile(step, item / step.kv_heads, head);
                const Partial whole(mine, tile.queries), part(mine + room, tile.queries);
                collect(tile, head, layer, queries);
                clear(whole, tile.queries, dim);
                for (int start = 0; start < tile.span; start += PART) {
                    attend_part<T, DIM>(step, tile, queries, layer.scale, keys, values, start, part, scores);
                    merge(whole, part, tile.queries, dim);
                }
                finish(step, tile, head, whole, layer.output);
            }
            free(mine);
        }
        return;
    }
    int longest = 0; // few tiles: threads share the parts of their contexts
    for (int i = 0; i < step.tiles; i++) {
        const int span = step.spans[step.first[i + 1] - 1];
        longest = span > longest ? span : longest;
    }
    const int parts = (longest + PART - 1) / PART;
    float *const all = (float *)malloc(sizeof(float) * room * ((int64_t)items * (parts + 1)));
#pragma omp parallel num_threads(threads)
    {
        float *const mine = (float *)malloc(sizeof(float) * most * (dim + PART));
#pragma omp for schedule(dynamic)
        for (int i = 0; i < items * parts; i++) {
            const int item = i / parts, head = item % step.kv_heads, start = i % parts * PART;
            const Tile tile(step, item / step.kv_heads, head);
            if (start >= tile.span)
                continue;
            collect(tile, head, layer, mine);
            attend_part<T, DIM>(step, tile, mine, layer.scale, keys, values, start,
                                Partial(all + room * (int64_t)i, tile.queries), mine + most * dim);
        }
        free(mine);
    }
    for (int item = 0; item < items; item++) {
        const int head = item % step.kv_heads;
        const Tile tile(step, item / step.kv_heads, head);
        const Partial whole(all + room * ((int64_t)items * parts + item), tile.queries);
        clear(whole, tile.queries, dim);
        for (int part = 0; part * PART < tile.span; part++)
            merge(whole, Partial(all + room * ((int64_t)item * parts + part), tile.queries), tile.queries, dim);
        finish(step, tile, head, whole, layer.output);
    }
    free(all);
}

template <typename T> static void write(const Step &step, const Layer &layer, T *keys, T *values) {
    const int dim = step.head_dim, half = dim / 2;
    for (int token = 0; token < step.tokens; token++)
        for (int head = 0; head < step.kv_heads; head++) {
            const int64_t block = (int64_t)step.blocks[token] * step.kv_heads + head;
            const int64_t place = (block * step.block_size + step.offsets[token]) * dim;
            const float *key = layer.key + token * layer.key_stride + head * dim;
            const float *value = layer.value + token * layer.value_stride + head * dim;
            if (layer.cos)
                rotate(key, layer.cos + (int64_t)token * half, layer.sin + (int64_t)token * half, dim, keys + place);
            else
                for (int i = 0; i < dim; i++)
                    keys[place + i] = (T)key[i];
            for (int i = 0; i < dim; i++)
                values[place + i] = (T)value[i];
        }
}

template <typename T> static void write_and_attend(const Step &step, const Layer &layer, T *keys, T *values) {
    write(step, layer, keys, values);
    if (step.head_dim == 64)
        attend<T, 64>(step, layer, keys, values);
    else if (step.head_dim == 128)
        attend<T, 128>(step, layer, keys, values);
    else
        attend<T, 0>(step, layer, keys, values);
}

extern "C" {

// Whether a pool of float16 can be read and written.
int replay_has_half() { return HAS_HALF; }

// Find the tiles: consecutive tokens of one sequence, each looking at one token more than the one before.
void replay_prepare(Step *step) {
    const int group = step->heads / step->kv_heads, most = group >= QUERIES ? 1 : QUERIES / group;
    step->tiles = 0;
    step->keys = 0;
    int begun = 0;
    for (int token = 0; token < step->tokens; token++) {
        const bool follows = token && step->owners[token] == step->owners[token - 1] &&
                             step->contexts[token] == step->contexts[token - 1] + 1 && token - begun < most;
        if (!follows)
            step->first[step->tiles++] = begun = token;
        step->keys += (int64_t)step->spans[token] * step->kv_heads;
    }
    step->first[step->tiles] = step->tokens;
}

// Keep the tokens' keys and values in the pools, then softmax(scale q k) v over them.
void replay_attend(const Step *step, const float *query, int64_t query_stride, const float *key, int64_t key_stride,
                   const float *value, int64_t value_stride, const float *cos, const float *sin, float scale,
                   void *keys, void *values, float *output) {
    const Layer layer = {query, key, value, query_stride, key_stride, value_stride, cos, sin, scale, output};
#if HAS_HALF
    if (step->half) {
        write_and_attend(*step, layer, (Half *)keys, (Half *)values);
        return;
    }
#endif
    write_and_attend(*step, layer, (float *)keys, (float *)values);
}
}
