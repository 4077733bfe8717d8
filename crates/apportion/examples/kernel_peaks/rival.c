/* M4RI's product and a plain product by rows, both on packed bits: the rivals of BitMatrix. Prints the median milliseconds of
   each. Arguments: n, and the odds against a one. */
#include <m4ri/m4ri.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static int ascending(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double median(double *times, int count) {
    qsort(times, count, sizeof *times, ascending);
    return 1e3 * times[count / 2];
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    int n = atoi(argv[1]), rarity = atoi(argv[2]), words = (n + 63) / 64;
    mzd_t *a = mzd_init(n, n), *b = mzd_init(n, n);
    uint64_t *x = calloc((size_t)n * words, 8), *y = calloc((size_t)n * words, 8), *z = malloc((size_t)n * words * 8);
    uint64_t state = 1;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            for (int second = 0; second < 2; second++) {
                state = state * 6364136223846793005u + 1442695040888963407u;
                if ((state >> 40) % rarity) continue;
                mzd_write_bit(second ? b : a, i, j, 1);
                (second ? y : x)[(size_t)i * words + j / 64] |= (uint64_t)1 << (j % 64);
            }
    double by_m4ri[9], by_rows[9];
    for (int turn = 0; turn < 9; turn++) {
        double start = now();
        mzd_t *c = mzd_mul(NULL, a, b, 0);
        by_m4ri[turn] = now() - start;
        mzd_free(c);
        start = now();
        for (size_t i = 0; i < (size_t)n * words; i++) z[i] = 0;
        for (int i = 0; i < n; i++) {
            uint64_t *to = z + (size_t)i * words;
            for (int w = 0; w < words; w++)
                for (uint64_t left = x[(size_t)i * words + w]; left; left &= left - 1) {
                    const uint64_t *from = y + (size_t)(w * 64 + __builtin_ctzll(left)) * words;
                    for (int v = 0; v < words; v++) to[v] |= from[v];
                }
        }
        by_rows[turn] = now() - start;
    }
    printf("%.4f %.4f %d\n", median(by_m4ri, 9), median(by_rows, 9), (int)(z[n / 2] & 1));
    return 0;
}
