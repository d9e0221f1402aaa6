/* The heap of the emulated process, and memory functions that are too hot to leave it.
 *
 * Blocks come from size classes, four to each power of two, with a free list each; new ones are
 * cut from one growing area. Every block has a header in front of what the caller sees.
 */
typedef unsigned long size_t;
typedef unsigned char byte;

enum { CLASSES = 160, SMALLEST = 6, LARGE = 4096 };

struct header {
  size_t size;       /* as requested */
  unsigned int kind; /* size class */
  unsigned int skip; /* bytes from the block's start to what the caller sees */
};

struct block {
  struct block *next;
};

/* Set and read from outside. */
char *opscan_heap_start = 0;
char *opscan_heap_end = 0;
size_t opscan_heap_live = 0;

static struct block *free_lists[CLASSES];

/* Served from outside. */
void opscan_copy(void *to, const void *from, size_t size);
void opscan_fill(void *to, int value, size_t size);
void opscan_heap_exhausted(size_t size);

static unsigned int class_of(size_t size) {
  if (size <= (1ul << SMALLEST)) return 0;
  unsigned int power = 63 - __builtin_clzl(size - 1);
  return (power - SMALLEST) * 4 + (unsigned int)(((size - 1) >> (power - 2)) & 3) + 1;
}

static size_t class_size(unsigned int kind) {
  if (kind == 0) return 1ul << SMALLEST;
  unsigned int power = (kind - 1) / 4 + SMALLEST;
  return (1ul << power) + ((kind - 1) % 4 + 1) * (1ul << (power - 2));
}

static char *take(unsigned int kind, int *fresh) {
  struct block *found = free_lists[kind];
  if (found) {
    free_lists[kind] = found->next;
    *fresh = 0;
    return (char *)found;
  }
  size_t size = class_size(kind);
  char *start = opscan_heap_start;
  if (start + size > opscan_heap_end) opscan_heap_exhausted(size);
  opscan_heap_start = start + size;
  *fresh = 1;
  return start;
}

static void *allocate(size_t size, size_t alignment, int *fresh) {
  size_t extra = alignment > 16 ? alignment : 0;
  unsigned int kind = class_of(size + sizeof(struct header) + extra);
  char *start = take(kind, fresh);
  char *seen = start + sizeof(struct header);
  if (extra) seen = (char *)(((size_t)seen + alignment - 1) & ~(alignment - 1));
  struct header *header = (struct header *)seen - 1;
  header->size = size;
  header->kind = kind;
  header->skip = (unsigned int)(seen - start);
  opscan_heap_live += class_size(kind);
  return seen;
}

void *malloc(size_t size) {
  int fresh;
  return allocate(size, 16, &fresh);
}

void free(void *pointer) {
  if (!pointer) return;
  struct header *header = (struct header *)pointer - 1;
  unsigned int kind = header->kind;
  struct block *block = (struct block *)((char *)pointer - header->skip);
  opscan_heap_live -= class_size(kind);
  block->next = free_lists[kind];
  free_lists[kind] = block;
}

void *memcpy(void *restrict to, const void *restrict from, size_t size) {
  if (size >= LARGE) {
    opscan_copy(to, from, size);
    return to;
  }
  byte *a = to;
  const byte *b = from;
  for (; size >= 8; size -= 8, a += 8, b += 8) {
    *(unsigned long *)a = *(const unsigned long *)b;
    asm volatile("");
  }
  for (; size; size--) {
    *a++ = *b++;
    asm volatile("");
  }
  return to;
}

void *memmove(void *to, const void *from, size_t size) {
  byte *a = to;
  const byte *b = from;
  if (size >= LARGE) {
    opscan_copy(to, from, size);
    return to;
  }
  if (a <= b || a >= b + size) return memcpy(to, from, size);
  while (size--) {
    a[size] = b[size];
    asm volatile("");
  }
  return to;
}

void *memset(void *to, int value, size_t size) {
  if (size >= LARGE) {
    opscan_fill(to, value, size);
    return to;
  }
  byte *a = to;
  unsigned long word = (byte)value * 0x0101010101010101ul;
  for (; size >= 8; size -= 8, a += 8) {
    *(unsigned long *)a = word;
    asm volatile("");
  }
  for (; size; size--) {
    *a++ = (byte)value;
    asm volatile("");
  }
  return to;
}

void bzero(void *to, size_t size) { memset(to, 0, size); }

void *calloc(size_t count, size_t size) {
  int fresh;
  void *found = allocate(count * size, 16, &fresh);
  if (!fresh) memset(found, 0, count * size);
  return found;
}

void *realloc(void *pointer, size_t size) {
  if (!pointer) return malloc(size);
  size_t old = ((struct header *)pointer - 1)->size;
  void *found = malloc(size);
  memcpy(found, pointer, old < size ? old : size);
  free(pointer);
  return found;
}

void *aligned_alloc(size_t alignment, size_t size) {
  int fresh;
  return allocate(size, alignment, &fresh);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
  *out = aligned_alloc(alignment, size);
  return 0;
}

size_t malloc_size(const void *pointer) {
  return pointer ? ((const struct header *)pointer - 1)->size : 0;
}

void *__memcpy_chk(void *to, const void *from, size_t size, size_t room) {
  return memcpy(to, from, size);
}

void *__memmove_chk(void *to, const void *from, size_t size, size_t room) {
  return memmove(to, from, size);
}

void *__memset_chk(void *to, int value, size_t size, size_t room) {
  return memset(to, value, size);
}

void memset_pattern16(void *to, const void *pattern, size_t size) {
  byte *a = to;
  const byte *b = pattern;
  for (size_t i = 0; i < size; i++) {
    a[i] = b[i & 15];
    asm volatile("");
  }
}

int memcmp(const void *left, const void *right, size_t size) {
  const byte *a = left, *b = right;
  for (; size; size--, a++, b++)
    if (*a != *b) return (int)*a - (int)*b;
  return 0;
}

void *memchr(const void *where, int value, size_t size) {
  const byte *a = where;
  for (; size; size--, a++)
    if (*a == (byte)value) return (void *)a;
  return 0;
}

static void swap(byte *a, byte *b, size_t width) {
  for (; width; width--, a++, b++) {
    byte kept = *a;
    *a = *b;
    *b = kept;
  }
}

/* Heapsort: no recursion, no memory. */
static void sink(byte *base, size_t at, size_t count, size_t width,
                 int (*compare)(const void *, const void *)) {
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= count) return;
    if (child + 1 < count && compare(base + child * width, base + (child + 1) * width) < 0) child++;
    if (compare(base + at * width, base + child * width) >= 0) return;
    swap(base + at * width, base + child * width, width);
    at = child;
  }
}

void qsort(void *base, size_t count, size_t width, int (*compare)(const void *, const void *)) {
  for (size_t at = count / 2; at > 0; at--) sink(base, at - 1, count, width, compare);
  for (size_t end = count; end > 1; end--) {
    swap(base, (byte *)base + (end - 1) * width, width);
    sink(base, 0, end - 1, width, compare);
  }
}
