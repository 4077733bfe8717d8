// Runs the kernels in CUDA's dialect on the host, compiled by a C++ compiler: the work-items of a group take turns from
// barrier to barrier, and parameters are read where `cuLaunchKernel` would read them. Compares C with three loops over
// awkward shapes, with memory that ends where its pages do. The build options are those of a module.

#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <sys/mman.h>
#include <ucontext.h>
#include <utility>
#include <vector>

struct Index {
    unsigned x, y, z;
};
static Index blockIdx, threadIdx, blockDim, gridDim;

const unsigned MOST_ITEMS = 256;
static ucontext_t group, items[MOST_ITEMS];
static unsigned item;

#define __global__
#define __shared__ static
#define __launch_bounds__(items)
#define __syncthreads() swapcontext(&items[item], &group)
#define atomicExch(place, value) __atomic_exchange_n(place, value, __ATOMIC_SEQ_CST)
// The one instruction of a card: `add.sat.s32`.
#define asm(...) sum = __builtin_add_overflow(x, y, &sum) ? (x < 0 ? INT_MIN : INT_MAX) : sum

template <class To, class From> static To bits(From x) {
    To y;
    memcpy(&y, &x, sizeof y);
    return y;
}
#define __float_as_int bits<int, float>
#define __int_as_float bits<float, int>

static unsigned min(unsigned x, unsigned y) { return x < y ? x : y; }

#undef INFINITY
#include "dialect.h"

#include "../kernels.cl"

// Memory that ends where the next page cannot be touched.
template <class T> static T *memory(size_t count) {
    const size_t page = 4096, bytes = (count * sizeof(T) + 15) / 16 * 16, all = (bytes + page - 1) / page * page;
    char *start = (char *)mmap(NULL, all + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(start + all, page, PROT_NONE);
    memset(start, 0x55, all);
    return (T *)(start + all - bytes);
}

template <class... P, size_t... I>
static void call(void (*kernel)(P...), void **parameters, std::index_sequence<I...>) {
    kernel(*(P *)parameters[I]...);
}

static std::function<void()> work;
static bool ended[MOST_ITEMS];

static void run_item() {
    work();
    ended[item] = true;
}

// `down` groups along the rows, in two directions of the grid, and one or two beyond.
template <class... P>
static void launch(void (*kernel)(P...), unsigned across, unsigned down, Index block, std::vector<ulong> values) {
    static char stacks[MOST_ITEMS][65536];
    std::vector<void *> parameters;
    for (ulong &value : values)
        parameters.push_back(&value);
    work = [&] { call(kernel, parameters.data(), std::index_sequence_for<P...>{}); };
    blockDim = block;
    gridDim = {across, down / 2 + 1, 2};
    const unsigned count = block.x * block.y;
    for (blockIdx.z = 0; blockIdx.z < gridDim.z; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++) {
                for (item = 0; item < count; item++) {
                    ended[item] = false;
                    getcontext(&items[item]);
                    items[item].uc_stack.ss_sp = stacks[item];
                    items[item].uc_stack.ss_size = sizeof stacks[item];
                    items[item].uc_link = &group;
                    makecontext(&items[item], run_item, 0);
                }
                for (bool any = true; any;) {
                    any = false;
                    for (item = 0; item < count; item++)
                        if (!ended[item]) {
                            any = true;
                            threadIdx = {item % block.x, item / block.x, 0};
                            swapcontext(&group, &items[item]);
                        }
                }
            }
}

// One product added to a sum, as the semiring is defined.
static element add(element sum, element x, element y) {
#if SEMIRING == 3
    return sum | (x && y);
#else
#if INTEGER
    const __int128 wide = (__int128)x + y;
    const element product = x == ZERO || y == ZERO ? ZERO
                            : wide < LEAST         ? LEAST
                            : wide > GREATEST      ? GREATEST
                                                   : (element)wide;
#elif SEMIRING > 0
    const element product = x + y;
#endif
#if SEMIRING == 0
    return sum + x * y;
#elif SEMIRING == 1
    return product > sum ? product : sum;
#else
    return product < sum ? product : sum;
#endif
#endif
}

static unsigned draw(unsigned below) {
    static unsigned state = 1;
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
}

static element draw_element(bool odd) {
#if SEMIRING == 3
    return draw(4) == 0 ? 1 << draw(8) : 0;
#elif SEMIRING == 0
    // Sums are exact in any order.
    return (element)((int)draw(41) - 20);
#else
    if (draw(10) == 0)
        return ZERO;
    if (!odd || draw(20) != 0)
        return (element)((int)draw(41) - 20);
#if INTEGER
    const element some[] = {LEAST, GREATEST, LEAST + 1, GREATEST - 1, LARGEST, -LARGEST, LARGEST + 1};
#else
    const element some[] = {(element)-0.0, LEAST, GREATEST, (element)1e-40, (element)NAN};
#endif
    return some[draw(sizeof some / sizeof *some)];
#endif
}

static bool differs(size_t m, size_t k, size_t n, bool odd) {
    const size_t words = TYPE == 4 ? (k + 63) / 64 : k, depth = (words + SLAB - 1) / SLAB * SLAB;
    const size_t down = (m + TILE_ROWS - 1) / TILE_ROWS, across = (n + TILE_COLS - 1) / TILE_COLS;
    const size_t rows = down * TILE_ROWS, cols = across * TILE_COLS, pitch = (n + 15) / 16 * 16;
    element *a = memory<element>(m * k), *b = memory<element>(k * n), *c = memory<element>(m * pitch + 16);
    packed_t *packed_a = memory<packed_t>(rows * depth), *packed_b = memory<packed_t>(cols * depth);
    int flag = 0;
    for (size_t i = 0; i < m * k; i++)
        a[i] = draw_element(odd);
    for (size_t i = 0; i < k * n; i++)
        b[i] = draw_element(odd);
    launch(clear, 16, 1, {256, 1, 1}, {(ulong)c, m * pitch});
    for (size_t i = 0; i < m * pitch; i++)
        if (c[i] != (element)ZERO)
            return true;
    std::vector<element> wanted(m * n);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            element &sum = wanted[i * n + j];
            c[i * pitch + j] = sum = draw_element(odd);
            for (size_t p = 0; p < k; p++)
                sum = add(sum, a[i * k + p], b[p * n + j]);
        }
#if SCANS
    launch(scan, 16, 1, {256, 1, 1}, {(ulong)a, m * k, (ulong)b, k * n, (ulong)&flag, 7});
#endif
#if TYPE == 4
    const Index block = {16, 16, 1};
    const size_t vectors = cols / VECTOR;
#else
    const Index block = {64, 4, 1};
    const size_t vectors = cols;
#endif
    launch(pack_a, (depth + 15) / 16, rows / 16, {16, 16, 1},
           {(ulong)a, m, k, depth, (ulong)packed_a, (ulong)&flag, 7});
    launch(pack_b, vectors / block.x, depth / block.y, block,
           {(ulong)b, n, k, depth, (ulong)packed_b, (ulong)&flag, 7});
    const std::vector<ulong> values = {(ulong)packed_a, (ulong)packed_b, (ulong)c,     0, pitch,        m,
                                       n,               depth,           0,        depth, (ulong)&flag, 7};
    launch(update, across, down, {ACROSS, DOWN, 1}, values);
#if SCANS
    launch(update_exact, across, down, {ACROSS, DOWN, 1}, values);
#endif
    for (size_t i = 0; i < m; i++)
        if (memcmp(&c[i * pitch], &wanted[i * n], n * sizeof(element)) != 0)
            return true;
    return false;
}

int main() {
    const size_t shapes[][3] = {{1, 1, 1},      {1, 7, 129},  {127, 1, 1},   {17, 13, 19},
                                {129, 17, 65}, {3, 131, 2}, {131, 20, 257}};
    for (const size_t *shape : shapes)
        for (bool odd : {false, true})
            if (differs(shape[0], shape[1], shape[2], odd)) {
                printf("%zu x %zu x %zu%s\n", shape[0], shape[1], shape[2], odd ? ", odd elements" : "");
                return 1;
            }
}
