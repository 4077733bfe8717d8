/* Communicators that are none. */
#include <apportion.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int refused(const void *handle, int64_t size, const char *part)
{
    apportion_world *world = NULL;
    int code = apportion_world_adopt(handle, size, &world);
    if (code == APPORTION_INVALID && strstr(apportion_last_error(), part) && !world)
        return 1;
    fprintf(stderr, "%d: %s\n", code, apportion_last_error());
    return 0;
}

int main(int argc, char **argv)
{
    MPI_Comm world = MPI_COMM_WORLD, null = MPI_COMM_NULL;
    int good = refused(&world, sizeof world, "MPI_Init"); /* too early */
    MPI_Init(&argc, &argv);
    /* MPICH's world where Open MPI runs, and an address where MPICH runs. */
    int number = 0x44000000;
    const void *address = &number;
    good &= sizeof(MPI_Comm) == 4 ? refused(&address, 8, "MPICH") : refused(&number, 4, "Open MPI");
    good &= refused(NULL, sizeof world, "null") && refused(&world, 3, "sizeof");
    if (sizeof(MPI_Comm) == 4)
        good &= refused(&null, sizeof null, "no communicator");
    /* The right one works, by either handle, and twice. */
    apportion_world *one = NULL, *two = NULL;
    good &= apportion_world_adopt(&world, sizeof world, &one) == APPORTION_OK;
    good &= apportion_world_adopt_fortran(MPI_Comm_c2f(world), &two) == APPORTION_OK;
    apportion_world_free(two);
    apportion_world_free(one);
    MPI_Finalize();
    good &= refused(&world, sizeof world, "MPI_Init"); /* too late */
    puts(good ? "refused" : "taken");
    return 0;
}
