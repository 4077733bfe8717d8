/* C = A B on a communicator of this program; process i has 1 + i times the rows of process 0.
 *
 *   mpicc product.c $(pkg-config --cflags --libs apportion) -o product
 *   mpirun -n 3 ./product */
#include <apportion.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { M = 230, K = 310, N = 170 };

static void check(int code)
{
    if (code != APPORTION_OK) {
        fprintf(stderr, "%s\n", apportion_last_error());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* Small whole numbers, so that every sum is exact. */
static double a(int64_t i, int64_t l) { return (double)((3 * i + 5 * l) % 7 - 3); }
static double b(int64_t l, int64_t j) { return (double)((2 * l + j) % 5 - 2); }

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    /* A communicator of our own, with the ranks in reverse. */
    MPI_Comm comm;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    double *seconds = malloc((size_t)size * sizeof(double));
    int64_t *offsets = calloc(3 * (size_t)(size + 1), sizeof(int64_t));
    int64_t *shares = offsets + size + 1, *inner = shares + size + 1;
    for (int i = 0; i < size; i++)
        seconds[i] = 1.0 / (1 + i);
    check(apportion_shares_from_times(M, size, NULL, seconds, shares));
    for (int i = 0; i < size; i++)
        offsets[i + 1] = offsets[i] + shares[i];
    check(apportion_matmul_cut(M, K, size, offsets, inner));

    int64_t first = offsets[rank], rows = shares[rank], from = inner[rank], to = inner[rank + 1];
    double *left = malloc((size_t)(rows * K + 1) * sizeof(double));
    double *right = malloc((size_t)((to - from) * N + 1) * sizeof(double));
    double *product = malloc((size_t)(rows * N + 1) * sizeof(double));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t l = 0; l < K; l++)
            left[i * K + l] = a(first + i, l);
    for (int64_t l = from; l < to; l++)
        for (int64_t j = 0; j < N; j++)
            right[(l - from) * N + j] = b(l, j);

    apportion_world *world;
    check(apportion_world_adopt(&comm, sizeof comm, &world));
    check(apportion_matmul(world, M, K, N, offsets, left, right, product));
    apportion_world_free(world);

    int wrong = 0, all = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < N; j++) {
            double sum = 0.0;
            for (int64_t l = 0; l < K; l++)
                sum += a(first + i, l) * b(l, j);
            wrong += product[i * N + j] != sum;
        }
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, comm);
    if (rank == 0)
        printf("%d wrong of %d elements on %d processes\n", all, M * N, size);
    free(left);
    free(right);
    free(product);
    free(seconds);
    free(offsets);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return all != 0;
}
