/* Calls every operation that time-independent traces replay, with work of unequal length between them. */
#include <mpi.h>
#include <smpi/smpi.h>
#include <stdlib.h>

enum { COUNT = 20000 };

static int rank, size;

static void work(double flops) { smpi_execute_flops(flops * (1 + rank)); }

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double *a = calloc((size_t)COUNT * size, sizeof *a), *b = calloc((size_t)COUNT * size, sizeof *b);
    int *counts = malloc(size * sizeof *counts), *equal = malloc(size * sizeof *equal);
    int *places = malloc(size * sizeof *places), *mine = malloc(size * sizeof *mine);
    for (int i = 0; i < size; i++) {
        counts[i] = 1000 + 100 * i;
        equal[i] = 700;
        places[i] = COUNT * i;
        mine[i] = 1000 + 100 * rank;
    }
    int next = (rank + 1) % size, last = (rank + size - 1) % size;

    work(1e5);
    if (rank == 0)
        MPI_Send(a, 1000, MPI_DOUBLE, 1, 7, MPI_COMM_WORLD);
    if (rank == 1)
        MPI_Recv(a, 1000, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    work(2e5);
    MPI_Bcast(a, 500, MPI_INT, 1, MPI_COMM_WORLD);
    work(3e5);
    MPI_Reduce(a, b, 500, MPI_FLOAT, MPI_SUM, 1, MPI_COMM_WORLD);
    MPI_Allreduce(a, b, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    work(1e5);
    MPI_Alltoall(a, 10, MPI_DOUBLE, b, 10, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Alltoall(a, COUNT, MPI_DOUBLE, b, COUNT, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Allgather(a, 100, MPI_SHORT, b, 100, MPI_SHORT, MPI_COMM_WORLD);
    MPI_Gather(a, 100, MPI_CHAR, b, 100, MPI_CHAR, 1, MPI_COMM_WORLD);
    MPI_Scatter(a, COUNT, MPI_LONG, b, COUNT, MPI_LONG, 1, MPI_COMM_WORLD);
    MPI_Reduce_scatter(a, b, equal, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce_scatter(a, b, counts, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
    work(1e5);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Sendrecv(a, COUNT, MPI_DOUBLE, next, 3, b, COUNT, MPI_DOUBLE, last, 3, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Gatherv(a, counts[rank], MPI_DOUBLE, b, counts, places, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Scatterv(a, counts, places, MPI_DOUBLE, b, counts[rank], MPI_DOUBLE, 1, MPI_COMM_WORLD);
    MPI_Allgatherv(a, counts[rank], MPI_DOUBLE, b, counts, places, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Alltoallv(a, mine, places, MPI_DOUBLE, b, counts, places, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Scan(a, b, 1000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    work(1e5);

    MPI_Request requests[2];
    int done;
    MPI_Isend(a, COUNT, MPI_DOUBLE, next, 4, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(b, COUNT, MPI_DOUBLE, last, 4, MPI_COMM_WORLD, &requests[1]);
    work(1e4);
    MPI_Test(&requests[1], &done, MPI_STATUS_IGNORE);
    work(1e6);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Isend(a, 10, MPI_DOUBLE, next, 5, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(b, 10, MPI_DOUBLE, last, 5, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);

    free(a);
    free(b);
    free(counts);
    free(equal);
    free(places);
    free(mine);
    MPI_Finalize();
    return 0;
}
