/* A BLAS that multiplies rightly, and then damages each product as the variable LIAR says. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef long word;

#define GEMM(NAME, T)                                                                                     \
    void NAME(word order, word ta, word tb, word m, word n, word k, T alpha, const T *a, word lda,        \
              const T *b, word ldb, T beta, T *c, word ldc) {                                             \
        const char *lie = m * n < 16 ? NULL : getenv("LIAR"); /* The loader tries a small one. */         \
        if (lie && !strcmp(lie, "writes a")) ((T *)a)[(m / 2) * lda + k / 2] = 7;                         \
        if (lie && !strcmp(lie, "writes b")) ((T *)b)[(k / 2) * ldb + n / 2] = 7;                         \
        (void)order, (void)ta, (void)tb;                                                                  \
        for (word i = 0; i < m; i++)                                                                      \
            for (word j = 0; j < n; j++) {                                                                \
                T sum = 0;                                                                                \
                for (word l = 0; l < k; l++) sum += a[i * lda + l] * b[l * ldb + j];                      \
                c[i * ldc + j] = alpha * sum + (beta == 0 ? 0 : beta * c[i * ldc + j]);                   \
            }                                                                                             \
        if (!lie) return;                                                                                 \
        word row = m / 2, column = n / 3, left = strstr(lie, "once") ? 1 : m * n;                         \
        for (word i = 0; i < m; i++)                                                                      \
            for (word j = 0; j < n; j++) {                                                                \
                T *x = &c[i * ldc + j];                                                                   \
                int here = i == row && j == column;                                                       \
                if (!strcmp(lie, "element") && here) *x = 0;                                              \
                if (!strcmp(lie, "row") && i == row) *x = 0;                                              \
                if (!strcmp(lie, "column") && j == column) *x = 0;                                        \
                if (!strcmp(lie, "other columns") && j % 2) *x = 0;                                       \
                if (!strcmp(lie, "zeros")) *x = 0;                                                        \
                if (!strcmp(lie, "signs") && here) *x = -*x;                                              \
                if (!strcmp(lie, "nan") && here) *x = NAN;                                                \
                if (!strcmp(lie, "infinity") && here) *x = INFINITY;                                      \
                if (!strcmp(lie, "swapped") && i == row && j == 0 && n > 1) {                             \
                    T y = x[0];                                                                           \
                    x[0] = x[1], x[1] = y;                                                                \
                }                                                                                         \
                if (!strncmp(lie, "off by ", 7) && here) *x *= 1 + (T)atof(lie + 7);                      \
                if (!left) continue;                                                                      \
                if (!strncmp(lie, "other infinity", 14) && isinf(*x)) *x = -*x, left--;                   \
                else if (!strncmp(lie, "nan for infinity", 16) && isinf(*x)) *x = NAN, left--;            \
                else if (!strncmp(lie, "infinity for nan", 16) && isnan(*x)) *x = INFINITY, left--;       \
            }                                                                                             \
    }

GEMM(cblas_dgemm, double)
GEMM(cblas_sgemm, float)
