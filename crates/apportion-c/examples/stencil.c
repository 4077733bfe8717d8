/* Heat on a plate, on processors of unequal speed: the rows move to where they are computed fastest.
 *
 *   mpicc stencil.c $(pkg-config --cflags --libs apportion) -o stencil
 *   mpirun -n 2 ./stencil 4 1        # rank 0 is four times slower than rank 1
 *
 * Every process has a band of rows and exchanges its first and last row with its neighbours. After every ROUND
 * steps all processes learn the times of all, and the balancer says who has which rows from then on. */
#include <apportion.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 512, COLS = 512, ROUND = 10, ROUNDS = 20 };

static int rank, size;

static void check(int code)
{
    if (code != APPORTION_OK) {
        fprintf(stderr, "rank %d: %s\n", rank, apportion_last_error());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static double *rows_of(int64_t rows)
{
    double *all = calloc((size_t)(rows + 2) * COLS, sizeof(double)); /* with a row of neighbours on each side */
    if (!all)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return all;
}

/* New values of the rows 1 to `rows`; the edges of the plate keep theirs. `work` times as slow as it could be. */
static void step(const double *old, double *new, int64_t first, int64_t rows, int work)
{
    for (int again = 0; again < work; again++)
        for (int64_t i = 1; i <= rows; i++) {
            const double *up = old + (i - 1) * COLS, *row = up + COLS, *down = row + COLS;
            double *to = new + i * COLS;
            if (first + i - 1 == 0 || first + i == ROWS) {
                memcpy(to, row, COLS * sizeof(double));
                continue;
            }
            to[0] = row[0];
            for (int j = 1; j < COLS - 1; j++)
                to[j] = 0.25 * (up[j] + down[j] + row[j - 1] + row[j + 1]);
            to[COLS - 1] = row[COLS - 1];
        }
}

/* The neighbours' rows beside ours. Processes without rows are passed over. */
static void exchange(double *plate, int64_t rows, const int64_t *offsets)
{
    int up = rank - 1, down = rank + 1;
    while (up >= 0 && offsets[up] == offsets[up + 1])
        up--;
    while (down < size && offsets[down] == offsets[down + 1])
        down++;
    if (rows == 0)
        return;
    up = up < 0 ? MPI_PROC_NULL : up;
    down = down == size ? MPI_PROC_NULL : down;
    MPI_Sendrecv(plate + COLS, COLS, MPI_DOUBLE, up, 0, plate + (rows + 1) * COLS, COLS, MPI_DOUBLE, down, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(plate + rows * COLS, COLS, MPI_DOUBLE, down, 1, plate, COLS, MPI_DOUBLE, up, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

/* Rows that are in both ranges: how many, and where they begin in the first. */
static int64_t common(int64_t from, int64_t to, int64_t other_from, int64_t other_to, int64_t *begin)
{
    int64_t first = from > other_from ? from : other_from, last = to < other_to ? to : other_to;
    *begin = first - from;
    return first < last ? last - first : 0;
}

/* Sends the rows of the old cut to their owners in the new one. */
static double *move(double *plate, const int64_t *old, const int64_t *new)
{
    int *counts = calloc(4 * (size_t)size, sizeof(int)), *places = counts + size;
    int *incoming = places + size, *rooms = incoming + size;
    double *next = rows_of(new[rank + 1] - new[rank]);
    for (int other = 0; other < size; other++) {
        int64_t begin = 0;
        counts[other] = COLS * (int)common(old[rank], old[rank + 1], new[other], new[other + 1], &begin);
        places[other] = counts[other] ? COLS * (int)begin : 0;
        incoming[other] = COLS * (int)common(new[rank], new[rank + 1], old[other], old[other + 1], &begin);
        rooms[other] = incoming[other] ? COLS * (int)begin : 0;
    }
    MPI_Alltoallv(plate + COLS, counts, places, MPI_DOUBLE, next + COLS, incoming, rooms, MPI_DOUBLE,
                  MPI_COMM_WORLD);
    free(counts);
    free(plate);
    return next;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int work = rank + 1 < argc ? atoi(argv[rank + 1]) : 1;

    int64_t *offsets = malloc(2 * (size_t)(size + 1) * sizeof(int64_t)), *next = offsets + size + 1;
    double *seconds = malloc((size_t)size * sizeof(double));
    apportion_balancer *balancer;
    check(apportion_balancer_new(ROWS, size, &balancer));
    check(apportion_balancer_set(balancer, "warm_up", 1)); /* the first round touches the memory */
    check(apportion_balancer_shares(balancer, size, NULL, offsets));

    int64_t first = offsets[rank], rows = offsets[rank + 1] - first;
    double *plate = rows_of(rows), *other = rows_of(rows);
    for (int64_t i = 0; i < rows && first == 0; i++)
        if (i == 0)
            for (int j = 0; j < COLS; j++)
                plate[COLS + j] = 100.0; /* the upper edge is hot */

    int changes = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double mine = 0.0;
        for (int s = 0; s < ROUND; s++) {
            exchange(plate, rows, offsets);
            double begin = MPI_Wtime();
            step(plate, other, first, rows, work);
            mine += MPI_Wtime() - begin;
            double *swap = plate;
            plate = other;
            other = swap;
        }
        int reason;
        MPI_Allgather(&mine, 1, MPI_DOUBLE, seconds, 1, MPI_DOUBLE, MPI_COMM_WORLD);
        check(apportion_balancer_observe(balancer, size, seconds, NULL, next, &reason));
        if (reason == APPORTION_FASTER) {
            plate = move(plate, offsets, next);
            memcpy(offsets, next, (size_t)(size + 1) * sizeof(int64_t));
            first = offsets[rank];
            rows = offsets[rank + 1] - first;
            free(other);
            other = rows_of(rows);
            changes++;
        }
    }

    double heat = 0.0, all = 0.0;
    for (int64_t i = 0; i < rows * COLS; i++)
        heat += plate[COLS + i];
    MPI_Reduce(&heat, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("heat %.6f, %d changes, rows", all, changes);
        for (int i = 0; i < size; i++)
            printf(" %lld", (long long)(offsets[i + 1] - offsets[i]));
        printf("\n");
    }
    apportion_balancer_free(balancer);
    free(plate);
    free(other);
    free(offsets);
    free(seconds);
    MPI_Finalize();
    return 0;
}
