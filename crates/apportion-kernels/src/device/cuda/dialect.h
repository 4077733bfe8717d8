// What `kernels.cl` uses of OpenCL C, in CUDA C++: NVRTC compiles this, and then the kernels.
//
// The build options are those of `kernels.cl`, with SLAB above 0. Nothing is included, so that a compiler without its
// headers suffices. Groups along the rows of C are counted in two dimensions of a grid, of which neither may have more
// than 65,535; those beyond the last row have nothing to do.

typedef unsigned char uchar;
typedef unsigned int uint;
typedef unsigned long ulong;

#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define LONG_MIN (-9223372036854775807L - 1)
#define LONG_MAX 9223372036854775807L
#define INFINITY __int_as_float(0x7f800000)

#define __kernel extern "C" __global__
#define __global
#define __local __shared__
#define IN_LOCAL
#define GROUP_SIZE(across, down) __launch_bounds__((across) * (down))
// A shorter text, which the driver has to compile.
#define UNROLL 4

#define get_group_id(d) ((d) == 0 ? blockIdx.x : blockIdx.z * gridDim.y + blockIdx.y)
#define get_local_id(d) ((d) == 0 ? threadIdx.x : threadIdx.y)
#define get_global_id(d) \
    ((d) == 0 ? (ulong)blockIdx.x * blockDim.x + threadIdx.x : (ulong)get_group_id(1) * blockDim.y + threadIdx.y)
#define get_global_size(d) ((ulong)gridDim.x * blockDim.x)
#define barrier(fence) __syncthreads()
#define atomic_xchg atomicExch
#define as_int __float_as_int

// A vector of N elements: the operators work on each, and a scalar is taken N times.
template <class T, int N> struct alignas(sizeof(T) * N) Vector {
    T at[N];

    Vector() = default;

    Vector(T x) {
        for (int i = 0; i < N; i++)
            at[i] = x;
    }

#define OPERATOR(op, R) \
    friend Vector<R, N> operator op(const Vector &x, const Vector &y) { \
        Vector<R, N> result; \
        for (int i = 0; i < N; i++) \
            result.at[i] = x.at[i] op y.at[i]; \
        return result; \
    }
    OPERATOR(+, T)
    OPERATOR(*, T)
    OPERATOR(&, T)
    OPERATOR(|, T)
    OPERATOR(<<, T)
    OPERATOR(<, bool)
    OPERATOR(>, bool)
    OPERATOR(<=, bool)
    OPERATOR(>=, bool)
    OPERATOR(==, bool)
    OPERATOR(!=, bool)
#undef OPERATOR

    Vector &operator|=(const Vector &y) { return *this = *this | y; }
};

#define float4 Vector<float, 4>
#define double2 Vector<double, 2>
#define int4 Vector<int, 4>
#define long2 Vector<long, 2>
#define ulong2 Vector<ulong, 2>
#define uchar2 Vector<uchar, 2>

// An element of a buffer, which need not be aligned as a vector is.
template <int N, class T> static Vector<T, N> load(const T *from) {
    Vector<T, N> result;
    for (int i = 0; i < N; i++)
        result.at[i] = from[i];
    return result;
}

#define vload2(place, from) load<2>((from) + 2 * (place))
#define vload4(place, from) load<4>((from) + 4 * (place))
#define vload8(place, from) load<8>((from) + 8 * (place))

template <class T, int N> static void store(const Vector<T, N> &x, T *to) {
    for (int i = 0; i < N; i++)
        to[i] = x.at[i];
}

#define vstore2(x, place, to) store(x, (to) + 2 * (place))
#define vstore4(x, place, to) store(x, (to) + 4 * (place))

template <class R, class T, int N> static Vector<R, N> convert(const Vector<T, N> &x) {
    Vector<R, N> result;
    for (int i = 0; i < N; i++)
        result.at[i] = x.at[i];
    return result;
}

#define convert_ulong2 convert<ulong>
#define convert_uchar2 convert<uchar>

static ulong as_ulong(const Vector<uchar, 8> &bytes) {
    ulong result = 0;
    for (int i = 0; i < 8; i++)
        result |= (ulong)bytes.at[i] << 8 * i;
    return result;
}

// CUDA's choice is of scalars.
#define CHOOSE(condition, yes, no) choose(condition, yes, no)

template <class T, int N>
static Vector<T, N> choose(const Vector<bool, N> &condition, const Vector<T, N> &yes, const Vector<T, N> &no) {
    Vector<T, N> result;
    for (int i = 0; i < N; i++)
        result.at[i] = condition.at[i] ? yes.at[i] : no.at[i];
    return result;
}

#define FUNCTION(name, of) \
    template <class T, int N> static Vector<T, N> name(const Vector<T, N> &x, const Vector<T, N> &y) { \
        Vector<T, N> result; \
        for (int i = 0; i < N; i++) \
            result.at[i] = of(x.at[i], y.at[i]); \
        return result; \
    }

static int saturated_sum(int x, int y) {
    int sum;
    asm("add.sat.s32 %0, %1, %2;" : "=r"(sum) : "r"(x), "r"(y));
    return sum;
}

static long saturated_sum(long x, long y) {
    const long sum = (long)((ulong)x + (ulong)y);
    // The sum has another sign than both.
    return ((x ^ sum) & (y ^ sum)) < 0 ? (x < 0 ? LONG_MIN : LONG_MAX) : sum;
}

FUNCTION(add_sat, saturated_sum)
FUNCTION(fmin, ::fminf)
FUNCTION(fmax, ::fmaxf)
#undef FUNCTION
