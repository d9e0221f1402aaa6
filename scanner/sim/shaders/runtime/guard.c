/* Runs a launch so that a fault, or a loop without end, comes back as a value. */
#include "runtime.h"
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

static sigjmp_buf escape;
static volatile sig_atomic_t guarded;
static struct call *running;
static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGVTALRM};
enum { SIGNAL_COUNT = sizeof SIGNALS / sizeof *SIGNALS, SINK = 64 << 10 };
static char read_sink[SINK] __attribute__((aligned(64)));
static char write_sink[SINK] __attribute__((aligned(64)));

void opscan_abandon(int signal, uint64_t address) {
    running->signal = signal;
    running->fault_address = address;
    siglongjmp(escape, 1);
}

static void on_signal(int number, siginfo_t *info, void *context) {
    (void)context;
    if (guarded) opscan_abandon(number, number == SIGVTALRM ? 0 : (uint64_t)info->si_addr);
    signal(number, SIG_DFL);
    raise(number);
}

/* A checked access that is out of bounds: kept, and led to memory where it does no harm; or noted and
 * let through where the buffer is longer than what was asked for. */
void *opscan_violation(int32_t site, int64_t offset, int64_t size, int32_t write, void *pointer) {
    struct violation *seen = &running->violations[site];
    if (seen->limit && offset >= 0 && size <= seen->limit - offset) {
        if (!seen->notes++) seen->first_note = offset;
        return pointer;
    }
    if (!seen->count++) seen->first_offset = offset;
    if (size > SINK) opscan_abandon(SIGSEGV, (uint64_t)offset);
    return write ? write_sink : read_sink;
}

int32_t opscan_within(uint64_t address, uint64_t size) {
    for (uint64_t i = 0; i < running->range_count; i++)
        if (address >= running->ranges[i].low && address + size <= running->ranges[i].high) return 1;
    return 0;
}

static void set_timer(double seconds) {
    struct itimerval timer = {{0, 0}, {(time_t)seconds, (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6)}};
    setitimer(ITIMER_VIRTUAL, &timer, 0); /* processor time: a busy machine is not an endless loop */
}

static void install(struct sigaction *old) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int i = 0; i < SIGNAL_COUNT; i++) sigaction(SIGNALS[i], &action, &old[i]);
}

/* Kernels may overflow a fiber's stack, so signals get one of their own. */
static void use_signal_stack(void) {
    static char *memory;
    if (memory) return;
    memory = malloc(64 << 10);
    stack_t stack = {.ss_sp = memory, .ss_size = 64 << 10, .ss_flags = 0};
    sigaltstack(&stack, 0);
}

#if defined(__x86_64__)
typedef unsigned int fp_mode;
static fp_mode get_mode(void) { return _mm_getcsr(); }
static void set_mode(fp_mode mode) { _mm_setcsr(mode); }
static fp_mode flushing(fp_mode mode) { return mode | 0x8040; } /* FTZ and DAZ */
#else
typedef uint64_t fp_mode;
static fp_mode get_mode(void) { fp_mode m; __asm__ volatile("mrs %0, fpcr" : "=r"(m)); return m; }
static void set_mode(fp_mode mode) { __asm__ volatile("msr fpcr, %0" : : "r"(mode)); }
static fp_mode flushing(fp_mode mode) { return mode | 1u << 24; } /* FZ */
#endif

static int enter(struct call *call) {
    if (call->cooperative) return opscan_run_groups(call);
    ((plain_fn)call->entry)(call->arguments, &call->where);
    return RAN;
}

int opscan_execute(struct call *call) {
    struct sigaction old[SIGNAL_COUNT];
    fp_mode mode = get_mode();
    volatile int outcome = FAULTED;
    running = call;
    call->signal = 0;
    use_signal_stack();
    install(old);
    if (!sigsetjmp(escape, 1)) {
        guarded = 1;
        set_timer(call->seconds);
        if (call->flush_denormals) set_mode(flushing(mode));
        outcome = enter(call);
    } else if (call->signal == SIGVTALRM) outcome = OUT_OF_TIME;
    guarded = 0;
    set_timer(0);
    set_mode(mode);
    for (int i = 0; i < SIGNAL_COUNT; i++) sigaction(SIGNALS[i], &old[i], 0);
    return outcome;
}
