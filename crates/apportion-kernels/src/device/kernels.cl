// The update of a tile of C over a semiring, C := C + A B, on a device.
//
// A and B arrive row by row and are packed first: A in strips of as many rows as a group has in its tile of C,
// column after column, B in strips of its columns, row after row; what is missing at the edges is the
// semiring's zero. A strip is then read in order, whatever the variant. C is row by row, with rows padded to a
// multiple of 16 elements.
//
// Build options:
//   TYPE          elements: 0 float, 1 double, 2 int, 3 long, 4 uchar (or-and)
//   SEMIRING      0 plus-times, 1 max-plus, 2 min-plus, 3 or-and
//   SCANS         1 if `scan` looks whether `update` may compute, or `update_exact` has to
//   VECTOR        elements of a vector
//   ROWS, WIDE    rows of C that a work-item holds, and vectors in each
//   DOWN, ACROSS  work-items of a group along the rows and the columns of C
//   SLAB          rows of a slab in local memory; 0: no local memory, and a group is one work-item
//
// As on the host, among equal sums (+0 and -0 among them) the first in the order C, p = 0, 1, ... is kept, NaN is
// never better than anything, zeros of max-plus and min-plus absorb, and integers saturate.
//
// CUDA compiles the same source after `cuda/dialect.h`, which has other definitions of these.

#ifndef CHOOSE
#pragma OPENCL FP_CONTRACT ON
// One of two vectors, element by element.
#define CHOOSE(condition, yes, no) ((condition) ? (yes) : (no))
// What the memory of a pointer's target is called.
#define IN_LOCAL __local
#define GROUP_SIZE(across, down) __attribute__((reqd_work_group_size(across, down, 1)))
#define UNROLL SLAB
#endif

#if TYPE == 1
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#endif

#if TYPE == 0
typedef float element;
typedef float packed_t;
#define BASE float
#define LEAST (-INFINITY)
#define GREATEST INFINITY
#elif TYPE == 1
typedef double element;
typedef double packed_t;
#define BASE double
#define LEAST ((double)-INFINITY)
#define GREATEST ((double)INFINITY)
#elif TYPE == 2
typedef int element;
typedef int packed_t;
#define BASE int
#define LEAST INT_MIN
#define GREATEST INT_MAX
#elif TYPE == 3
typedef long element;
typedef long packed_t;
#define BASE long
#define LEAST LONG_MIN
#define GREATEST LONG_MAX
#else
typedef uchar element;
typedef ulong packed_t;
#define BASE ulong
#endif
#define INTEGER (TYPE == 2 || TYPE == 3)

// The neutral element of the sum.
#if SEMIRING == 1
#define ZERO LEAST
#elif SEMIRING == 2
#define ZERO GREATEST
#else
#define ZERO 0
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
typedef JOIN(BASE, VECTOR) vector;
#if TYPE == 4
typedef JOIN(uchar, VECTOR) element_vector;
#else
typedef vector element_vector;
#endif

#define TILE_ROWS (DOWN * ROWS)
#define PADDED_ROWS(rows) (((rows) + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS)
#define TILE_COLS (ACROSS * WIDE * VECTOR)
#if SLAB
#define GROUP GROUP_SIZE(ACROSS, DOWN)
#else
#define GROUP GROUP_SIZE(1, 1)
#endif

// The elements that an item passes over: every item a part on cores, neighbours side by side on GPUs.
#if SLAB
#define EACH(i, length) (ulong i = get_global_id(0); i < (length); i += get_global_size(0))
#else
#define PART(length, item) ((length) * (item) / get_global_size(0))
#define EACH(i, length) \
    (ulong i = PART(length, get_global_id(0)), end_ = PART(length, get_global_id(0) + 1); i < end_; i++)
#endif

// C := zero.
__kernel void clear(__global element *c, const ulong length) {
    for EACH(i, length)
        c[i] = ZERO;
}

// Integers compute with plain sums where these cannot overflow: a packed zero is half the range, Z. With numbers
// up to R, a sum of two is within 2 R and a sum that involves Z is beyond Z - R: 3 R < Z keeps them apart.
// Floats compute with the hardware's minimum, which may exchange -0 and +0, where no sum is -0: where A has no -0.
#if INTEGER
#define STAND_IN (ZERO / 2)
#define LARGEST (GREATEST / 6 - 1)
#endif

#if SCANS
static inline int is_wild(element x) {
#if INTEGER
    return x != ZERO && (x > LARGEST || x < -LARGEST);
#else
    return as_int(x) == INT_MIN;
#endif
}

// Sets the flag to the number of this update if an element is beyond what `update` computes with.
__kernel void scan(__global const element *a, const ulong a_length, __global const element *b,
                   const ulong b_length, __global int *flag, const uint number) {
    int wild = 0;
    for EACH(i, a_length)
        wild |= is_wild(a[i]);
#if INTEGER
    for EACH(i, b_length)
        wild |= is_wild(b[i]);
#endif
    if (wild)
        atomic_xchg(flag, (int)number);
}
#endif

#if TYPE != 4
// An element as it is packed; `plain` where sums are plain.
static inline element prepare(element x, int plain) {
#if INTEGER
    return plain && x == ZERO ? STAND_IN : x;
#else
    return x;
#endif
}
#endif

#if INTEGER
#define PLAIN(flag, number) (*(flag) != (int)(number))
#else
#define PLAIN(flag, number) 1
#endif

#if TYPE == 4
// Packs the bits of rows of A, 64 along a row into a word. An item makes a word: (word, row).
__kernel void pack_a(__global const uchar *a, const uint rows, const uint depth, const uint words,
                     __global ulong *to, __global const int *flag, const uint number) {
    const uint w = get_global_id(0), i = get_global_id(1);
    if (i >= PADDED_ROWS(rows))
        return;
    ulong word = 0;
    if (i < rows) {
        __global const uchar *from = a + (size_t)i * depth;
        const uint first = w * 64, end = min(first + 64, depth);
        uint p = first;
        for (; p + 8 <= end; p += 8) {
            // Each byte becomes 0 or 1, then the eight are gathered in the highest byte.
            ulong eight = as_ulong(vload8(0, from + p));
            eight |= eight >> 4;
            eight |= eight >> 2;
            eight |= eight >> 1;
            eight &= 0x0101010101010101UL;
            word |= (eight * 0x0102040810204080UL >> 56) << (p - first);
        }
        for (; p < end; p++)
            word |= (ulong)(from[p] != 0) << (p - first);
    }
    to[((size_t)(i / TILE_ROWS) * words + w) * TILE_ROWS + i % TILE_ROWS] = word;
}

// Packs the bits of columns of B, 64 along a column into a word. An item makes VECTOR words: (vector, word).
__kernel void pack_b(__global const uchar *b, const uint cols, const uint depth, const uint words,
                     __global ulong *to, __global const int *flag, const uint number) {
    const uint j = get_global_id(0) * VECTOR, w = get_global_id(1);
    if (w >= words)
        return;
    const uint first = w * 64, end = min(first + 64, depth);
    vector eight = 0;
    if (j + VECTOR <= cols) {
        for (uint p = first; p < end; p++) {
            const element_vector bytes = JOIN(vload, VECTOR)(0, b + (size_t)p * cols + j);
            // A comparison of vectors is 0 or -1.
            eight |= (JOIN(convert_ulong, VECTOR)(bytes != (element_vector)0) & (vector)1) << (ulong)(p - first);
        }
        __global ulong *place = to + ((size_t)(j / TILE_COLS) * words + w) * TILE_COLS + j % TILE_COLS;
        *(__global vector *)place = eight;
    } else {
        for (uint e = 0; e < VECTOR; e++) {
            ulong word = 0;
            if (j + e < cols)
                for (uint p = first; p < end; p++)
                    word |= (ulong)(b[(size_t)p * cols + j + e] != 0) << (p - first);
            to[((size_t)(j / TILE_COLS) * words + w) * TILE_COLS + j % TILE_COLS + e] = word;
        }
    }
}
#elif SLAB
// Packs A. A group of 16 x 16 items turns a square: (column, row).
__kernel GROUP_SIZE(16, 16) void
pack_a(__global const element *a, const uint rows, const uint depth,
       const uint padded, __global element *to, __global const int *flag, const uint number) {
    __local element square[16][17];
    const int plain = PLAIN(flag, number);
    const uint x = get_local_id(0), y = get_local_id(1);
    uint p = get_global_id(0), i = get_global_id(1);
    square[y][x] = prepare(i < rows && p < depth ? a[(size_t)i * depth + p] : (element)ZERO, plain);
    barrier(CLK_LOCAL_MEM_FENCE);
    p = p - x + y;
    i = i - y + x;
    if (p < padded && i < PADDED_ROWS(rows))
        to[((size_t)(i / TILE_ROWS) * padded + p) * TILE_ROWS + i % TILE_ROWS] = square[x][y];
}

// Packs B. An item packs an element: (column, row).
__kernel void pack_b(__global const element *b, const uint cols, const uint depth, const uint padded,
                     __global element *to, __global const int *flag, const uint number) {
    const uint j = get_global_id(0), p = get_global_id(1);
    if (p >= padded)
        return;
    const element x = j < cols && p < depth ? b[(size_t)p * cols + j] : (element)ZERO;
    to[((size_t)(j / TILE_COLS) * padded + p) * TILE_COLS + j % TILE_COLS] = prepare(x, PLAIN(flag, number));
}
#else
// Packs A. An item packs 16 columns of a strip: (columns, strip).
__kernel GROUP void pack_a(__global const element *a, const uint rows, const uint depth, const uint padded,
                           __global element *to, __global const int *flag, const uint number) {
    const int plain = PLAIN(flag, number);
    const uint first = get_global_id(0) * 16, end = min(first + 16, depth), strip = get_global_id(1);
    to += (size_t)strip * padded * TILE_ROWS;
    for (uint i = 0; i < TILE_ROWS; i++) {
        const uint row = strip * TILE_ROWS + i;
        if (row < rows) {
            __global const element *from = a + (size_t)row * depth;
            for (uint p = first; p < end; p++)
                to[(size_t)p * TILE_ROWS + i] = prepare(from[p], plain);
        } else {
            for (uint p = first; p < end; p++)
                to[(size_t)p * TILE_ROWS + i] = prepare(ZERO, plain);
        }
    }
}

// Packs B. An item packs 16 rows of a strip: (strip, rows).
__kernel GROUP void pack_b(__global const element *b, const uint cols, const uint depth, const uint padded,
                           __global element *to, __global const int *flag, const uint number) {
    const int plain = PLAIN(flag, number);
    const uint first = get_global_id(1) * 16, end = min(first + 16, depth), strip = get_global_id(0);
    const uint left = min(cols - strip * TILE_COLS, (uint)TILE_COLS);
    for (uint p = first; p < end; p++) {
        __global const element *from = b + (size_t)p * cols + strip * TILE_COLS;
        __global element *row = to + ((size_t)strip * padded + p) * TILE_COLS;
        if (left == TILE_COLS) {
            for (uint j = 0; j < TILE_COLS; j++)
                row[j] = prepare(from[j], plain);
        } else {
            for (uint j = 0; j < TILE_COLS; j++)
                row[j] = prepare(j < left ? from[j] : (element)ZERO, plain);
        }
    }
}
#endif

// The better of two vectors: the first if it is strictly better.
#if SEMIRING == 1
#define BETTER(x, y) CHOOSE((x) > (y), x, y)
#define QUICK_BETTER(x, y) fmax(x, y)
#elif SEMIRING == 2
#define BETTER(x, y) CHOOSE((x) < (y), x, y)
#define QUICK_BETTER(x, y) fmin(x, y)
#endif

// A sum with one more product.
static inline vector step(packed_t x, vector y, vector sum, const int exact) {
#if SEMIRING == 0
    return x * y + sum;
#elif SEMIRING == 3
    return sum | (x & y);
#elif INTEGER
    if (exact) {
        const vector product = x == ZERO ? (vector)ZERO : add_sat((vector)x, y);
        const vector absorbed = CHOOSE(y == (vector)ZERO, (vector)ZERO, product);
        return BETTER(absorbed, sum);
    }
    const vector product = x + y;
    return BETTER(product, sum);
#else
    const vector product = x + y;
#if SCANS
    if (!exact)
        return QUICK_BETTER(product, sum);
#endif
    return BETTER(product, sum);
#endif
}

// The sum of C and the products.
static inline element_vector finish(vector sum, element_vector c, const int exact) {
#if SEMIRING == 0
    return c + sum;
#elif SEMIRING == 3
    return c | (JOIN(convert_uchar, VECTOR)(sum != (vector)0) & (element_vector)1);
#elif INTEGER
    const vector better = BETTER(sum, c);
    if (exact)
        return better;
#if SEMIRING == 1
    return CHOOSE(sum >= (vector)(-2 * LARGEST), better, c);
#else
    return CHOOSE(sum <= (vector)(2 * LARGEST), better, c);
#endif
#else
    return BETTER(sum, c);
#endif
}

#if SLAB
#define SLABS , IN_LOCAL packed_t *a_slab, IN_LOCAL vector *b_slab
#else
#define SLABS
#endif

// The tile of this group: adds the products of columns `first` to `end` of A, of `depth` that are packed.
static inline void multiply(__global const packed_t *a, __global const packed_t *b, __global element *c,
                            const uint pitch, const uint rows, const uint cols, const uint depth,
                            const uint first, const uint end, const int exact SLABS) {
#if SLAB
    const uint strip = get_group_id(1), other = get_group_id(0);
    const uint y = get_local_id(1), x = get_local_id(0);
#else
    const uint strip = get_global_id(1), other = get_global_id(2) * get_global_size(0) + get_global_id(0);
    const uint y = 0, x = 0;
#endif
    if ((size_t)strip * TILE_ROWS >= rows || (size_t)other * TILE_COLS >= cols)
        return;
    a += (size_t)strip * depth * TILE_ROWS;
    __global const vector *b_row = (__global const vector *)(b + (size_t)other * depth * TILE_COLS);
    vector sum[ROWS][WIDE];
    #pragma unroll
    for (uint i = 0; i < ROWS; i++)
        #pragma unroll
        for (uint j = 0; j < WIDE; j++)
            sum[i][j] = (vector)ZERO;
#if SLAB
    const uint item = y * ACROSS + x;
    for (uint start = first; start < end; start += SLAB) {
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint e = item; e < SLAB * TILE_ROWS; e += DOWN * ACROSS)
            a_slab[e] = a[(size_t)start * TILE_ROWS + e];
        for (uint e = item; e < SLAB * ACROSS * WIDE; e += DOWN * ACROSS)
            b_slab[e] = b_row[(size_t)start * ACROSS * WIDE + e];
        barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll UNROLL
        for (uint p = 0; p < SLAB; p++) {
            vector right[WIDE];
            #pragma unroll
            for (uint j = 0; j < WIDE; j++)
                right[j] = b_slab[(p * WIDE + j) * ACROSS + x];
            #pragma unroll
            for (uint i = 0; i < ROWS; i++) {
                const packed_t left = a_slab[p * TILE_ROWS + y * ROWS + i];
                #pragma unroll
                for (uint j = 0; j < WIDE; j++)
                    sum[i][j] = step(left, right[j], sum[i][j], exact);
            }
        }
    }
#else
    for (uint p = first; p < end; p++) {
        vector right[WIDE];
        #pragma unroll
        for (uint j = 0; j < WIDE; j++)
            right[j] = b_row[(size_t)p * WIDE + j];
        #pragma unroll
        for (uint i = 0; i < ROWS; i++) {
            const packed_t left = a[(size_t)p * TILE_ROWS + i];
            #pragma unroll
            for (uint j = 0; j < WIDE; j++)
                sum[i][j] = step(left, right[j], sum[i][j], exact);
        }
    }
#endif
    if (first == end)
        return;
    #pragma unroll
    for (uint i = 0; i < ROWS; i++) {
        const uint row = strip * TILE_ROWS + y * ROWS + i;
        #pragma unroll
        for (uint j = 0; j < WIDE; j++) {
            const uint col = other * TILE_COLS + (j * ACROSS + x) * VECTOR;
            // What is beyond the last column is added as zero: to the padding of a row, or to its neighbours.
            if (row < rows && col < cols) {
                __global element *place = c + (size_t)row * pitch + col;
                const element_vector before = JOIN(vload, VECTOR)(0, place);
                JOIN(vstore, VECTOR)(finish(sum[i][j], before, exact), 0, place);
            }
        }
    }
}

#if SLAB
#define LOCAL_SLABS \
    __local packed_t a_slab[SLAB * TILE_ROWS] __attribute__((aligned(16))); \
    __local vector b_slab[SLAB * ACROSS * WIDE];
#define THE_SLABS , a_slab, b_slab
#else
#define LOCAL_SLABS
#define THE_SLABS
#endif

// Of two kernels that both run, the one whose turn it is not has no columns to add.
#if SCANS
#define END(exact) ((*flag == (int)number) == exact ? end : first)
#else
#define END(exact) end
#endif

// C is a part of a tile: it begins `offset` elements after the tile, whose rows begin `pitch` elements apart.
__kernel GROUP void update(__global const packed_t *a, __global const packed_t *b, __global element *c,
                           const ulong offset, const uint pitch, const uint rows, const uint cols,
                           const uint depth, const uint first, const uint end, __global const int *flag,
                           const uint number) {
    LOCAL_SLABS
    multiply(a, b, c + offset, pitch, rows, cols, depth, first, END(0), 0 THE_SLABS);
}

#if SCANS
__kernel GROUP void update_exact(__global const packed_t *a, __global const packed_t *b,
                                 __global element *c, const ulong offset, const uint pitch, const uint rows,
                                 const uint cols, const uint depth, const uint first, const uint end,
                                 __global const int *flag, const uint number) {
    LOCAL_SLABS
    multiply(a, b, c + offset, pitch, rows, cols, depth, first, END(1), 1 THE_SLABS);
}
#endif
