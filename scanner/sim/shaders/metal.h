// What the sources that a release compiles at run time need of the Metal language, for a C++
// compiler. Address spaces come back when the code is lowered; what is missing here (threadgroup
// memory, atomics, simdgroups, the mathematical library) is an error, and the kernel is refused.
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
typedef _Float16 half;
typedef __bf16 bfloat;

#define kernel extern "C"
#define device
#define constant
#define thread

namespace opscan {
template <typename T>
struct two {
  T x, y;
  two() = default;
  two(T a, T b) : x(a), y(b) {}
  T operator[](int i) const { return (&x)[i]; }
};

template <typename T>
struct three {
  T x, y, z;
  three() = default;
  three(T a, T b, T c) : x(a), y(b), z(c) {}
  T operator[](int i) const { return (&x)[i]; }
};

template <typename T>
struct four {
  T x, y, z, w;
  four() = default;
  four(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {}
  T operator[](int i) const { return (&x)[i]; }
};

template <typename T>
two<T> operator*(two<T> a, two<T> b) {
  return {T(a.x * b.x), T(a.y * b.y)};
}
template <typename T>
three<T> operator*(three<T> a, three<T> b) {
  return {T(a.x * b.x), T(a.y * b.y), T(a.z * b.z)};
}
template <typename T>
four<T> operator*(four<T> a, four<T> b) {
  return {T(a.x * b.x), T(a.y * b.y), T(a.z * b.z), T(a.w * b.w)};
}
}  // namespace opscan

typedef opscan::two<uint> packed_uint2;
typedef opscan::three<uint> packed_uint3;
typedef opscan::four<uint> packed_uint4;
typedef opscan::two<float> float2;
typedef opscan::two<half> half2;
typedef opscan::two<bfloat> bfloat2;
