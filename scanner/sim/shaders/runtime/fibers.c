/* Runs a threadgroup: every thread is a fiber; barriers and lane exchanges switch between them. */
#include "runtime.h"
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum state { READY, IN_EXCHANGE, AT_BARRIER, DONE };

struct simdgroup { int live, waiting; struct fiber *lanes[SIMD_WIDTH]; };

struct fiber {
    void *stack_pointer;
    enum state state;
    struct simdgroup *simd;
    struct request *request;
    int32_t positions[POSITIONS];
};

static const size_t STACK = 256 << 10;

/* A process runs one threadgroup at a time; kernels reach it through these. */
static struct fiber fibers[MAX_THREADS], *current;
static struct simdgroup simdgroups[MAX_THREADS / SIMD_WIDTH];
static void *scheduler;
static char *stacks;
static thread_fn entry_point;
static void *const *entry_arguments;
static int live, at_barrier, thread_count;

#if defined(__x86_64__)
__attribute__((naked)) static void switch_stack(void **save, void *load) {
    __asm__("pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
            "movq %rsp, (%rdi)\n movq %rsi, %rsp\n"
            "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n retq\n");
}
enum { SAVED = 6, RETURN_SLOT = 6 };
#elif defined(__aarch64__)
__attribute__((naked)) static void switch_stack(void **save, void *load) {
    __asm__("sub sp, sp, #160\n"
            "stp x19, x20, [sp]\n stp x21, x22, [sp, #16]\n stp x23, x24, [sp, #32]\n"
            "stp x25, x26, [sp, #48]\n stp x27, x28, [sp, #64]\n stp x29, x30, [sp, #80]\n"
            "stp d8, d9, [sp, #96]\n stp d10, d11, [sp, #112]\n stp d12, d13, [sp, #128]\n"
            "stp d14, d15, [sp, #144]\n mov x9, sp\n str x9, [x0]\n mov sp, x1\n"
            "ldp x19, x20, [sp]\n ldp x21, x22, [sp, #16]\n ldp x23, x24, [sp, #32]\n"
            "ldp x25, x26, [sp, #48]\n ldp x27, x28, [sp, #64]\n ldp x29, x30, [sp, #80]\n"
            "ldp d8, d9, [sp, #96]\n ldp d10, d11, [sp, #112]\n ldp d12, d13, [sp, #128]\n"
            "ldp d14, d15, [sp, #144]\n add sp, sp, #160\n ret\n");
}
enum { SAVED = 20, RETURN_SLOT = 11 };
#else
#error "no context switch for this processor"
#endif

static void leave(void) { switch_stack(&current->stack_pointer, scheduler); }

static void fiber_main(void) {
    entry_point(entry_arguments, current->positions);
    current->state = DONE;
    leave();
    __builtin_unreachable();
}

static void prepare_stack(struct fiber *fiber, int index) {
    void **top = (void **)(stacks + STACK * (size_t)(index + 1)) - 2;
    void **frame = top - SAVED - 2; /* a function of x86-64 starts 8 below a 16-byte line */
#if defined(__aarch64__)
    frame = top - SAVED;
#endif
    memset(frame, 0, (char *)top - (char *)frame);
    frame[RETURN_SLOT] = (void *)fiber_main;
    fiber->stack_pointer = frame;
}

static int allocate_stacks(void) {
    if (stacks) return 1;
    char *memory = mmap(0, STACK * MAX_THREADS, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return 0;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < MAX_THREADS; i++) mprotect(memory + STACK * (size_t)i, page, PROT_NONE);
    stacks = memory;
    return 1;
}

static void exchange(struct simdgroup *simd, int32_t site) {
    struct request *requests[SIMD_WIDTH] = {0};
    uint32_t active = 0;
    for (int lane = 0; lane < SIMD_WIDTH; lane++) {
        struct fiber *fiber = simd->lanes[lane];
        if (!fiber || fiber->state != IN_EXCHANGE || fiber->request->site != site) continue;
        requests[lane] = fiber->request;
        active |= 1u << lane;
        fiber->state = READY;
        simd->waiting--;
    }
    opscan_apply(requests, active);
}

/* The earliest site at which lanes wait; diverged lanes meet again when the earlier ones catch up. */
static int earliest_site(const struct simdgroup *simd, int32_t *site) {
    int found = 0;
    for (int lane = 0; lane < SIMD_WIDTH; lane++) {
        const struct fiber *fiber = simd->lanes[lane];
        if (!fiber || fiber->state != IN_EXCHANGE) continue;
        if (!found || fiber->request->site < *site) *site = fiber->request->site;
        found = 1;
    }
    return found;
}

static int all_wait_at(const struct simdgroup *simd, int32_t site) {
    for (int lane = 0; lane < SIMD_WIDTH; lane++) {
        const struct fiber *fiber = simd->lanes[lane];
        if (fiber && fiber->state == IN_EXCHANGE && fiber->request->site != site) return 0;
    }
    return 1;
}

void opscan_lanes(int32_t op, int32_t site, int32_t size, int32_t a, int32_t b, const void *in,
                  const void *fill, void *out) {
    struct request request = {op, site, size, a, b, in, fill, out};
    struct simdgroup *simd = current->simd;
    current->request = &request;
    current->state = IN_EXCHANGE;
    simd->waiting++;
    if (simd->waiting == simd->live && all_wait_at(simd, site)) exchange(simd, site);
    else leave();
}

static void release_barrier(void) {
    at_barrier = 0;
    for (int i = 0; i < thread_count; i++)
        if (fibers[i].state == AT_BARRIER) fibers[i].state = READY;
}

void opscan_barrier(void) {
    current->state = AT_BARRIER;
    if (++at_barrier == live) release_barrier();
    else leave();
}

int32_t opscan_lane(void) { return current->positions[LANE]; }

static int run_ready(void) {
    int ran = 0;
    for (int i = 0; i < thread_count; i++) {
        if (fibers[i].state != READY) continue;
        current = &fibers[i];
        switch_stack(&scheduler, current->stack_pointer);
        ran = 1;
        if (fibers[i].state == DONE) { live--; fibers[i].simd->live--; }
    }
    return ran;
}

/* Nobody can go on: let the earliest exchange of every simdgroup happen, else the barrier. */
static int unblock(void) {
    int moved = 0;
    for (int i = 0; i < (thread_count + SIMD_WIDTH - 1) / SIMD_WIDTH; i++) {
        int32_t site;
        if (!earliest_site(&simdgroups[i], &site)) continue;
        exchange(&simdgroups[i], site);
        moved = 1;
    }
    if (!moved && at_barrier) { release_barrier(); moved = 1; }
    return moved;
}

static void set_positions(int32_t *p, const struct geometry *where, const uint32_t *group,
                          const uint32_t *groups, const uint32_t *size, int index) {
    uint32_t thread[3] = {(uint32_t)index % size[0], (uint32_t)index / size[0] % size[1],
                          (uint32_t)index / size[0] / size[1]};
    for (int k = 0; k < 3; k++) {
        p[THREAD_IN_GRID + k] = (int32_t)(group[k] * where->group[k] + thread[k]);
        p[GROUP_IN_GRID + k] = (int32_t)group[k];
        p[THREAD_IN_GROUP + k] = (int32_t)thread[k];
        p[THREADS_PER_GROUP + k] = (int32_t)size[k];
        p[THREADS_PER_GRID + k] = (int32_t)where->grid[k];
        p[GROUPS_PER_GRID + k] = (int32_t)groups[k];
        p[DISPATCHED_PER_GROUP + k] = (int32_t)where->group[k];
    }
    p[INDEX_IN_GROUP] = index;
    p[LANE] = index % SIMD_WIDTH;
    p[SIMDGROUP] = index / SIMD_WIDTH;
    p[LANES_PER_SIMDGROUP] = SIMD_WIDTH;
    p[SIMDGROUPS] = (thread_count + SIMD_WIDTH - 1) / SIMD_WIDTH;
}

static void run_group(const struct geometry *where, const uint32_t *group, const uint32_t *groups) {
    uint32_t size[3];
    for (int k = 0; k < 3; k++) {
        uint32_t left = where->grid[k] - group[k] * where->group[k];
        size[k] = left < where->group[k] ? left : where->group[k];
    }
    live = thread_count = (int)(size[0] * size[1] * size[2]);
    at_barrier = 0;
    memset(simdgroups, 0, sizeof simdgroups);
    for (int i = 0; i < thread_count; i++) {
        struct fiber *fiber = &fibers[i];
        fiber->state = READY;
        fiber->simd = &simdgroups[i / SIMD_WIDTH];
        fiber->simd->lanes[i % SIMD_WIDTH] = fiber;
        fiber->simd->live++;
        set_positions(fiber->positions, where, group, groups, size, i);
        prepare_stack(fiber, i);
    }
    while (run_ready() || unblock()) {}
}

/* What a threadgroup leaves behind is not for the next one to see. */
static void clear_local_memory(const struct call *call) {
    for (uint64_t i = 0; i < call->local_count; i++)
        memset((void *)call->local[i].low, 0, call->local[i].high - call->local[i].low);
}

int opscan_run_groups(const struct call *call) {
    const struct geometry *where = &call->where;
    uint64_t threads = (uint64_t)where->group[0] * where->group[1] * where->group[2];
    if (threads > MAX_THREADS || !allocate_stacks()) return TOO_LARGE;
    uint32_t groups[3];
    for (int k = 0; k < 3; k++)
        groups[k] = (where->grid[k] + where->group[k] - 1) / where->group[k];
    entry_point = (thread_fn)call->entry;
    entry_arguments = call->arguments;
    for (uint64_t i = where->first; i < where->first + where->count; i++) {
        uint64_t rest = i / groups[0];
        uint32_t group[3] = {(uint32_t)(i % groups[0]), (uint32_t)(rest % groups[1]),
                             (uint32_t)(rest / groups[1])};
        clear_local_memory(call);
        run_group(where, group, groups);
    }
    return RAN;
}
