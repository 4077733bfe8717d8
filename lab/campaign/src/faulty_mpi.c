/* An MPI library between apportion and Open MPI, by the profiling interface: message number FAULT_AT of rank
 * FAULT_RANK is "lost", "late" or "doubled" (FAULT_KIND). At the end each rank writes the number of its messages to
 * FAULT_COUNT followed by its number. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void *handle;
extern char ompi_request_null[], ompi_mpi_comm_world[];
int PMPI_Isend(const void *from, int count, handle type, int to, int tag, handle comm, handle *request);
int PMPI_Comm_rank(handle comm, int *rank);
int PMPI_Type_size(handle type, int *bytes);
int PMPI_Finalize(void);

static long sent;

static int own_rank(void) {
    int rank = -1;
    PMPI_Comm_rank(ompi_mpi_comm_world, &rank);
    return rank;
}

int MPI_Isend(const void *from, int count, handle type, int to, int tag, handle comm, handle *request) {
    const char *at = getenv("FAULT_AT"), *rank = getenv("FAULT_RANK"), *kind = getenv("FAULT_KIND");
    sent++;
    if (at && rank && kind && sent == atol(at) && own_rank() == atoi(rank)) {
        if (!strcmp(kind, "lost")) {
            *request = ompi_request_null;
            return 0;
        }
        if (!strcmp(kind, "late")) usleep(400000);
        if (!strcmp(kind, "doubled")) {
            int size = 1;
            handle other;
            PMPI_Type_size(type, &size);
            /* The second message outlives the caller's buffer. */
            void *copy = malloc((size_t)count * size + 1);
            memcpy(copy, from, (size_t)count * size);
            PMPI_Isend(copy, count, type, to, tag, comm, &other);
        }
    }
    return PMPI_Isend(from, count, type, to, tag, comm, request);
}

int MPI_Finalize(void) {
    const char *count = getenv("FAULT_COUNT");
    char name[4096];
    if (count && (size_t)snprintf(name, sizeof name, "%s%d", count, own_rank()) < sizeof name) {
        FILE *file = fopen(name, "w");
        if (file) {
            fprintf(file, "%ld", sent);
            fclose(file);
        }
    }
    return PMPI_Finalize();
}
