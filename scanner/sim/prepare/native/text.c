/* String functions that are too hot to leave the emulated process. */
typedef unsigned long size_t;
typedef unsigned char byte;

size_t strnlen(const char *text, size_t limit) {
  size_t n = 0;
  while (n < limit && text[n]) {
    n++;
    asm volatile("");
  }
  return n;
}

size_t strlen(const char *text) { return strnlen(text, ~0ul); }

int strncmp(const char *a, const char *b, size_t limit) {
  for (; limit; limit--, a++, b++)
    if (*a != *b || !*a) return (int)(byte)*a - (int)(byte)*b;
  return 0;
}

int strcmp(const char *a, const char *b) { return strncmp(a, b, ~0ul); }

char *strchr(const char *text, int wanted) {
  for (;; text++) {
    if (*text == (char)wanted) return (char *)text;
    if (!*text) return 0;
  }
}

char *strrchr(const char *text, int wanted) {
  char *found = 0;
  for (;; text++) {
    if (*text == (char)wanted) found = (char *)text;
    if (!*text) return found;
  }
}

char *strpbrk(const char *text, const char *set) {
  for (; *text; text++)
    if (strchr(set, *text)) return (char *)text;
  return 0;
}

char *strcpy(char *to, const char *from) {
  char *start = to;
  while ((*to++ = *from++)) asm volatile("");
  return start;
}

char *strncpy(char *to, const char *from, size_t size) {
  size_t i = 0;
  for (; i < size && from[i]; i++) to[i] = from[i];
  for (; i < size; i++) {
    to[i] = 0;
    asm volatile("");
  }
  return to;
}

char *__strncpy_chk(char *to, const char *from, size_t size, size_t room) {
  return strncpy(to, from, size);
}

size_t strlcpy(char *to, const char *from, size_t size) {
  size_t length = strlen(from);
  if (size) {
    size_t n = length < size - 1 ? length : size - 1;
    for (size_t i = 0; i < n; i++) {
      to[i] = from[i];
      asm volatile("");
    }
    to[n] = 0;
  }
  return length;
}

char *strstr(const char *text, const char *wanted) {
  size_t n = strlen(wanted);
  for (;; text++) {
    if (!strncmp(text, wanted, n)) return (char *)text;
    if (!*text) return 0;
  }
}
