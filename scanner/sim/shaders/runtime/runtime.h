/* What compiled kernels and the worker share: launches, lane exchanges, faults. */
#ifndef OPSCAN_RUNTIME_H
#define OPSCAN_RUNTIME_H
#include <stddef.h>
#include <stdint.h>

#define SIMD_WIDTH 32
#define MAX_THREADS 1024
#define POSITIONS 32

/* Offsets in the array of position values that every thread of a cooperative kernel gets. */
enum position {
    THREAD_IN_GRID = 0, GROUP_IN_GRID = 3, THREAD_IN_GROUP = 6, THREADS_PER_GROUP = 9,
    THREADS_PER_GRID = 12, GROUPS_PER_GRID = 15, INDEX_IN_GROUP = 18, LANE = 19, SIMDGROUP = 20,
    LANES_PER_SIMDGROUP = 21, SIMDGROUPS = 22, DISPATCHED_PER_GROUP = 23,
};

/* Lane operations; the numbers are those of functions/simd.py. */
enum lane_op {
    OP_BARRIER = 0, OP_SUM = 1, OP_PRODUCT = 2, OP_MAX = 3, OP_MIN = 4, OP_AND = 5, OP_OR = 6,
    OP_XOR = 7, OP_PREFIX_EXCLUSIVE_SUM = 8, OP_PREFIX_INCLUSIVE_SUM = 9,
    OP_PREFIX_EXCLUSIVE_PRODUCT = 10, OP_PREFIX_INCLUSIVE_PRODUCT = 11,
    OP_SHUFFLE = 20, OP_SHUFFLE_DOWN = 21, OP_SHUFFLE_UP = 22, OP_SHUFFLE_XOR = 23,
    OP_ROTATE_DOWN = 24, OP_ROTATE_UP = 25, OP_BROADCAST_FIRST = 26,
    OP_FILL_DOWN = 27, OP_FILL_UP = 28, OP_IS_FIRST = 30, OP_BALLOT = 31, OP_MULTIPLY = 40,
};

/* How the values of a reduction are read. */
enum lane_type { TYPE_F32 = 0, TYPE_S64 = 1, TYPE_U64 = 2 };

/* One lane's part in an exchange. `size` is a byte count for shuffles, a lane_type for reductions. */
struct request {
    int32_t op, site, size, a, b;
    const void *in, *fill;
    void *out;
};

struct geometry {
    uint32_t grid[3];  /* threads in all */
    uint32_t group[3]; /* threads of a full threadgroup */
    uint64_t first, count; /* threadgroups to run, by linear index */
};

struct range { uint64_t low, high; };
/* `limit` is given: how far from the lower bound an access may end and still be inside the buffer
 * that was allocated, 0 for nothing more. Beyond the upper bound, but within it, an access is only noted. */
struct violation {
    uint64_t count;
    int64_t first_offset;
    uint64_t notes;
    int64_t first_note;
    int64_t limit;
};

typedef void (*plain_fn)(void *const *arguments, const struct geometry *where);
typedef void (*thread_fn)(void *const *arguments, const int32_t *positions);

enum outcome { RAN = 0, FAULTED = 1, OUT_OF_TIME = 2, TOO_LARGE = 3 };

struct call {
    void *entry;
    void *const *arguments;
    struct geometry where;
    const struct range *ranges; /* memory that pointers read from memory may point into */
    uint64_t range_count;
    struct violation *violations; /* one a checked site */
    const struct range *local; /* threadgroup memory, zeroed for every threadgroup */
    uint64_t local_count;
    int32_t cooperative, flush_denormals;
    double seconds;
    int32_t signal; /* out: what stopped it */
    uint64_t fault_address; /* out */
};

void opscan_apply(struct request *const lanes[SIMD_WIDTH], uint32_t active);
int opscan_run_groups(const struct call *call);
void opscan_abandon(int signal, uint64_t address);
#endif
