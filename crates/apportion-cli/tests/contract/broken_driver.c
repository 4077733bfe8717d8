/* A library of drivers that does not list devices: it does to the process that loads it what LIE says, and adds a byte
   to the file LOADS. It is libOpenCL.so.1, or libcuda.so.1 with -DCUDA. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef CUDA
#define NAME "cuda"
#else
#define NAME "opencl"
#endif

__attribute__((constructor)) static void load(void)
{
    const char *lie = getenv("LIE"), *loads = getenv("LOADS");
    FILE *out = loads ? fopen(loads, "a") : NULL;
    if (out) {
        fputc('.', out);
        fclose(out);
    }
    if (!lie || strncmp(lie, NAME " ", sizeof NAME))
        return;
    lie += sizeof NAME;
    puts("a driver's words");
    fflush(stdout);
    if (!strcmp(lie, "aborts"))
        abort();
    if (!strcmp(lie, "exits"))
        exit(0);
    if (!strcmp(lie, "faults")) {
        int *volatile nowhere = NULL;
        *nowhere = 1;
    }
    if (!strcmp(lie, "hangs"))
        for (;;)
            sleep(1000);
}
