/* Solves the system of a loaded string of N masses, by Cholesky factors.
 *
 *   cc solve.c $(pkg-config --cflags --libs apportion) -o solve
 *   ./solve */
#include <apportion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 200 };

static void check(int code)
{
    if (code != APPORTION_OK) {
        fprintf(stderr, "%s\n", apportion_last_error());
        exit(1);
    }
}

int main(void)
{
    double *a = calloc((size_t)N * N, sizeof(double)), *b = calloc(N, sizeof(double));
    for (int64_t i = 0; i < N; i++) {
        a[i * N + i] = 2;
        if (i > 0)
            a[i * N + i - 1] = a[(i - 1) * N + i] = -1;
        b[i] = 1;
    }
    apportion_factorisation *factorisation;
    check(apportion_factorisation_new(&factorisation));
    check(apportion_factorisation_set(factorisation, "kind", "cholesky"));
    check(apportion_solve(factorisation, N, 1, a, b, b));
    apportion_factorisation_free(factorisation);
    /* (i + 1) (N - i) / 2 in the middle. */
    printf("the string sags by %.3f\n", b[N / 2]);
    free(a);
    free(b);
    return 0;
}
