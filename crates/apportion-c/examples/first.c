/* Divides 1,000 units by speed, then multiplies two matrices on the cores of this machine. No MPI.
 *
 *   cc first.c $(pkg-config --cflags --libs apportion) -o first && ./first */
#include <apportion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int code)
{
    if (code != APPORTION_OK) {
        fprintf(stderr, "%s\n", apportion_last_error());
        exit(1);
    }
}

int main(void)
{
    double speeds[] = {9, 1};
    int64_t shares[2];
    check(apportion_shares_from_speeds(1000, 2, speeds, shares));
    printf("%" PRId64 " and %" PRId64 " units\n", shares[0], shares[1]);

    double a[] = {1, 2, 3, 4}, b[] = {1, 10}, c[2];
    apportion_product *product;
    check(apportion_product_new(&product));
    check(apportion_product_set(product, "speeds", "1:1"));
    check(apportion_product_run(product, 2, 2, 1, a, b, c));
    apportion_product_free(product);
    printf("C is %g and %g\n", c[0], c[1]);
    return 0;
}
