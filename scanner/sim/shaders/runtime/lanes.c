/* What the lanes of a simdgroup compute together. A lane that takes no part reads as zero. */
#include "runtime.h"
#include <math.h>
#include <string.h>

typedef struct request *const requests[SIMD_WIDTH];

static int is_active(uint32_t active, int lane) { return (active >> lane) & 1; }

#define REDUCE(NAME, TYPE, MAXIMUM, MINIMUM, BITWISE)                                              \
    static TYPE NAME##_step(int op, TYPE a, TYPE b) {                                              \
        switch (op) {                                                                              \
        case OP_SUM: case OP_PREFIX_EXCLUSIVE_SUM: case OP_PREFIX_INCLUSIVE_SUM: return a + b;     \
        case OP_PRODUCT: case OP_PREFIX_EXCLUSIVE_PRODUCT: case OP_PREFIX_INCLUSIVE_PRODUCT:       \
            return a * b;                                                                          \
        case OP_MAX: return MAXIMUM;                                                               \
        case OP_MIN: return MINIMUM;                                                               \
        BITWISE                                                                                    \
        default: return a;                                                                         \
        }                                                                                          \
    }                                                                                              \
    static void NAME##_reduce(requests lanes, uint32_t active, int op) {                           \
        TYPE total = 0, value;                                                                     \
        int first = 1;                                                                             \
        for (int i = 0; i < SIMD_WIDTH; i++) {                                                     \
            if (!is_active(active, i)) continue;                                                   \
            memcpy(&value, lanes[i]->in, sizeof value);                                            \
            total = first ? value : NAME##_step(op, total, value);                                 \
            first = 0;                                                                             \
        }                                                                                          \
        for (int i = 0; i < SIMD_WIDTH; i++)                                                       \
            if (is_active(active, i)) memcpy(lanes[i]->out, &total, sizeof total);                 \
    }                                                                                              \
    static void NAME##_prefix(requests lanes, uint32_t active, int op, int inclusive) {            \
        TYPE total = op >= OP_PREFIX_EXCLUSIVE_PRODUCT ? 1 : 0, value;                             \
        for (int i = 0; i < SIMD_WIDTH; i++) {                                                     \
            if (!is_active(active, i)) continue;                                                   \
            memcpy(&value, lanes[i]->in, sizeof value);                                            \
            TYPE next = NAME##_step(op, total, value);                                             \
            memcpy(lanes[i]->out, inclusive ? &next : &total, sizeof total);                       \
            total = next;                                                                          \
        }                                                                                          \
    }

#define BITS case OP_AND: return a & b; case OP_OR: return a | b; case OP_XOR: return a ^ b;
REDUCE(f32, float, fmaxf(a, b), fminf(a, b), )
REDUCE(s64, int64_t, a > b ? a : b, a < b ? a : b, BITS)
REDUCE(u64, uint64_t, a > b ? a : b, a < b ? a : b, BITS)

static void reduce(requests lanes, uint32_t active, int op, int type) {
    int prefix = op >= OP_PREFIX_EXCLUSIVE_SUM && op <= OP_PREFIX_INCLUSIVE_PRODUCT;
    int inclusive = op == OP_PREFIX_INCLUSIVE_SUM || op == OP_PREFIX_INCLUSIVE_PRODUCT;
    if (type == TYPE_F32) prefix ? f32_prefix(lanes, active, op, inclusive) : f32_reduce(lanes, active, op);
    else if (type == TYPE_S64) prefix ? s64_prefix(lanes, active, op, inclusive) : s64_reduce(lanes, active, op);
    else prefix ? u64_prefix(lanes, active, op, inclusive) : u64_reduce(lanes, active, op);
}

static void give(requests lanes, uint32_t active, int to, int from, int fill) {
    size_t size = (size_t)lanes[to]->size;
    if (!is_active(active, from)) memset(lanes[to]->out, 0, size);
    else memcpy(lanes[to]->out, fill ? lanes[from]->fill : lanes[from]->in, size);
}

static void shuffle(requests lanes, uint32_t active, int lane, int op) {
    int by = lanes[lane]->a, source = lane;
    switch (op) {
    case OP_SHUFFLE: source = by & 31; break;
    case OP_SHUFFLE_DOWN: source = lane + by; break;
    case OP_SHUFFLE_UP: source = lane - by; break;
    case OP_SHUFFLE_XOR: source = (lane ^ by) & 31; break;
    case OP_ROTATE_DOWN: source = (lane + by) & 31; break;
    case OP_ROTATE_UP: source = (lane - by) & 31; break;
    case OP_BROADCAST_FIRST: source = __builtin_ctz(active); break;
    }
    if (source < 0 || source >= SIMD_WIDTH) source = lane; /* shifted in from outside: unchanged */
    give(lanes, active, lane, source, 0);
}

/* Within blocks of `b` lanes; what is shifted in comes from the other end of the filling data. */
static void shuffle_and_fill(requests lanes, uint32_t active, int lane, int op) {
    int block = lanes[lane]->b > 0 && lanes[lane]->b <= SIMD_WIDTH ? lanes[lane]->b : SIMD_WIDTH;
    int base = lane / block * block, by = lanes[lane]->a;
    int source = op == OP_FILL_DOWN ? lane - base + by : lane - base - by;
    int outside = source < 0 || source >= block;
    source = ((source % block) + block) % block;
    give(lanes, active, lane, base + source, outside);
}

/* The two elements of an 8x8 matrix that a lane holds lie side by side. */
static int matrix_row(int lane) { return (lane / 4 & 4) + lane / 2 % 4; }
static int matrix_column(int lane) { return (lane / 4 & 2) * 2 + lane % 2 * 2; }

int32_t opscan_matrix_row(int32_t lane) { return matrix_row(lane); }
int32_t opscan_matrix_column(int32_t lane) { return matrix_column(lane); }

/* in: two elements each of A, B and C; out: two of A*B+C, accumulated in row order with fma. */
static void multiply(requests lanes, uint32_t active) {
    float a[8][8] = {{0}}, b[8][8] = {{0}};
    for (int i = 0; i < SIMD_WIDTH; i++) {
        if (!is_active(active, i)) continue;
        const float *in = lanes[i]->in;
        memcpy(&a[matrix_row(i)][matrix_column(i)], in, 2 * sizeof(float));
        memcpy(&b[matrix_row(i)][matrix_column(i)], in + 2, 2 * sizeof(float));
    }
    for (int i = 0; i < SIMD_WIDTH; i++) {
        if (!is_active(active, i)) continue;
        const float *in = lanes[i]->in;
        float *out = lanes[i]->out;
        for (int e = 0; e < 2; e++) {
            float sum = in[4 + e];
            for (int k = 0; k < 8; k++)
                sum = fmaf(a[matrix_row(i)][k], b[k][matrix_column(i) + e], sum);
            out[e] = sum;
        }
    }
}

static void vote(requests lanes, uint32_t active, int lane, int op) {
    uint32_t value = 0;
    if (op == OP_IS_FIRST) value = lane == __builtin_ctz(active);
    else for (int i = 0; i < SIMD_WIDTH; i++)
        if (is_active(active, i) && *(const int32_t *)lanes[i]->in) value |= 1u << i;
    memcpy(lanes[lane]->out, &value, sizeof value);
}

void opscan_apply(requests lanes, uint32_t active) {
    int op = lanes[__builtin_ctz(active)]->op;
    if (op == OP_BARRIER) return;
    if (op < OP_SHUFFLE) { reduce(lanes, active, op, lanes[__builtin_ctz(active)]->size); return; }
    if (op == OP_MULTIPLY) { multiply(lanes, active); return; }
    for (int i = 0; i < SIMD_WIDTH; i++) {
        if (!is_active(active, i)) continue;
        if (op >= OP_IS_FIRST) vote(lanes, active, i, op);
        else if (op >= OP_FILL_DOWN) shuffle_and_fill(lanes, active, i, op);
        else shuffle(lanes, active, i, op);
    }
}
