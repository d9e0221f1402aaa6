/* There is one thread: locks are free, queues run what they are given at once. */
typedef unsigned long size_t;

enum { KEYS = 512, ONCE_DONE = 0x4f4e4345, BUSY = 16 };

#define SUCCEEDS(name) \
  int name(void) { return 0; }

SUCCEEDS(pthread_mutex_init)
SUCCEEDS(pthread_mutex_destroy)
SUCCEEDS(pthread_mutex_lock)
SUCCEEDS(pthread_mutex_unlock)
SUCCEEDS(pthread_mutex_trylock)
SUCCEEDS(pthread_mutexattr_init)
SUCCEEDS(pthread_mutexattr_destroy)
SUCCEEDS(pthread_mutexattr_settype)
SUCCEEDS(pthread_cond_init)
SUCCEEDS(pthread_cond_destroy)
SUCCEEDS(pthread_cond_signal)
SUCCEEDS(pthread_cond_broadcast)
SUCCEEDS(pthread_rwlock_init)
SUCCEEDS(pthread_rwlock_destroy)
SUCCEEDS(pthread_rwlock_rdlock)
SUCCEEDS(pthread_rwlock_wrlock)
SUCCEEDS(pthread_rwlock_tryrdlock)
SUCCEEDS(pthread_rwlock_trywrlock)
SUCCEEDS(pthread_rwlock_unlock)
SUCCEEDS(pthread_attr_init)
SUCCEEDS(pthread_attr_destroy)
SUCCEEDS(pthread_attr_setstacksize)
SUCCEEDS(pthread_atfork)
SUCCEEDS(pthread_setname_np)
SUCCEEDS(pthread_sigmask)
SUCCEEDS(pthread_mach_thread_np)
SUCCEEDS(sched_yield)
SUCCEEDS(__cxa_atexit)
SUCCEEDS(_tlv_atexit)
SUCCEEDS(atexit)

static void *values[KEYS];
static unsigned long next_key = 1;
static long self[64];

int pthread_key_create(unsigned long *key, void *destroy) {
  *key = next_key++;
  return 0;
}
int pthread_key_delete(unsigned long key) { return 0; }
void *pthread_getspecific(unsigned long key) { return values[key]; }
int pthread_setspecific(unsigned long key, void *value) {
  values[key] = value;
  return 0;
}

int pthread_once(long *once, void (*run)(void)) {
  if (*once != ONCE_DONE) {
    *once = ONCE_DONE;
    run();
  }
  return 0;
}

void *pthread_self(void) { return self; }
int pthread_equal(void *a, void *b) { return a == b; }
int pthread_main_np(void) { return 1; }
int pthread_threadid_np(void *thread, unsigned long *id) {
  *id = 1;
  return 0;
}

/* Blocks */

struct block {
  void *isa;
  int flags, reserved;
  void (*invoke)();
  struct {
    unsigned long reserved, size;
    void (*copy)(void *, void *);
    void (*dispose)(void *);
  } *descriptor;
};

enum { HAS_COPY = 1 << 25, IS_GLOBAL = 1 << 28, IS_FIELD_BYREF = 8 };

void *malloc(size_t);
void *memcpy(void *, const void *, size_t);

/* A copy outlives the frame that made the block, as completion handlers do. */
void *_Block_copy(struct block *block) {
  if (!block || block->flags & IS_GLOBAL) return block;
  struct block *copied = malloc(block->descriptor->size);
  memcpy(copied, block, block->descriptor->size);
  if (block->flags & HAS_COPY) block->descriptor->copy(copied, block);
  return copied;
}
void _Block_release(void *block) {}
void _Block_object_assign(void **to, void *object, int flags) { *to = object; }
void _Block_object_dispose(void *object, int flags) {}

/* Queues */

void dispatch_sync(void *queue, struct block *block) { block->invoke(block); }
void dispatch_async(void *queue, struct block *block) { block->invoke(block); }
void dispatch_async_f(void *queue, void *context, void (*work)(void *)) { work(context); }
void dispatch_sync_f(void *queue, void *context, void (*work)(void *)) { work(context); }
void dispatch_once(long *once, struct block *block) {
  if (*once) return;
  *once = -1;
  block->invoke(block);
}
void dispatch_apply(size_t count, void *queue, struct block *block) {
  for (size_t i = 0; i < count; i++) block->invoke(block, i);
}
void dispatch_apply_f(size_t count, void *queue, void *context, void (*work)(void *, size_t)) {
  for (size_t i = 0; i < count; i++) work(context, i);
}

/* OpenMP: one thread. */

SUCCEEDS(omp_get_thread_num)
SUCCEEDS(omp_in_parallel)
SUCCEEDS(omp_set_num_threads)
SUCCEEDS(__kmpc_global_thread_num)
SUCCEEDS(__kmpc_barrier)
SUCCEEDS(__kmpc_for_static_fini)
SUCCEEDS(__kmpc_push_num_threads)
int omp_get_max_threads(void) { return 1; }
int omp_get_num_threads(void) { return 1; }

/* The whole range is one thread's share: only the flag of the last iteration is to be set. */
void __kmpc_for_static_init_8u(void *where, int thread, int schedule, int *last,
                               unsigned long *lower, unsigned long *upper, long *stride,
                               long increment, long chunk) {
  *last = 1;
}

typedef void (*outlined)(int *, int *, void *, void *, void *, void *, void *, void *);

void __kmpc_fork_call(void *where, int count, outlined run, ...) {
  int zero = 0;
  void *shared[6] = {0};
  __builtin_va_list rest;
  __builtin_va_start(rest, run);
  for (int i = 0; i < count && i < 6; i++) shared[i] = __builtin_va_arg(rest, void *);
  __builtin_va_end(rest);
  run(&zero, &zero, shared[0], shared[1], shared[2], shared[3], shared[4], shared[5]);
}
