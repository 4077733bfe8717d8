/* A CUDA driver with one card that computes nothing: it starts as a driver does, and the function FAIL fails with
   FAIL_CODE, as those of a machine that lacks something, or of a card that is lost. CARD is the card's name.

   Source of the interface: NVIDIA, "CUDA Driver API". */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int code(const char *function)
{
    const char *name = getenv("FAIL"), *number = getenv("FAIL_CODE");
    return name && number && strcmp(name, function) == 0 ? atoi(number) : 0;
}

/* A handle is the address of something. */
static int handle(void **place, const char *function)
{
    static int something;
    *place = &something;
    return code(function);
}

#define CALL(name, ...) \
    int name(__VA_ARGS__); \
    int name(__VA_ARGS__)

#define PLAIN(name, ...) \
    CALL(name, __VA_ARGS__) \
    { \
        return code(#name); \
    }

CALL(cuDriverGetVersion, int *version)
{
    *version = 12040;
    return code(__func__);
}

CALL(cuDeviceGetCount, int *count)
{
    *count = 1;
    return code(__func__);
}

CALL(cuDeviceGet, int *device, int number)
{
    *device = number;
    return code(__func__);
}

CALL(cuDeviceGetName, char *name, int length, int device)
{
    const char *card = getenv("CARD");
    (void)device;
    snprintf(name, (size_t)length, "%s", card ? card : "a card");
    return code(__func__);
}

CALL(cuDeviceTotalMem_v2, size_t *bytes, int device)
{
    (void)device;
    *bytes = (size_t)1 << 30;
    return code(__func__);
}

CALL(cuDevicePrimaryCtxRetain, void **context, int device)
{
    (void)device;
    return handle(context, __func__);
}

CALL(cuCtxPopCurrent_v2, void **context) { return handle(context, __func__); }

CALL(cuMemGetInfo_v2, size_t *free, size_t *total)
{
    *free = *total = (size_t)1 << 30;
    return code(__func__);
}

CALL(cuMemAlloc_v2, uint64_t *address, size_t bytes)
{
    (void)bytes;
    *address = 256;
    return code(__func__);
}

CALL(cuStreamCreate, void **stream, unsigned flags)
{
    (void)flags;
    return handle(stream, __func__);
}

CALL(cuEventCreate, void **event, unsigned flags)
{
    (void)flags;
    return handle(event, __func__);
}

CALL(cuEventElapsedTime, float *milliseconds, void *start, void *end)
{
    (void)start;
    (void)end;
    *milliseconds = 1;
    return code(__func__);
}

CALL(cuModuleLoadDataEx, void **module, const char *text, unsigned count, const int *options, void **values)
{
    /* What the program says that it gives: PTX, and a buffer for the compiler's messages with its size. */
    if (strncmp(text, ".version ", 9) != 0 || count != 2 || options[0] != 5 || options[1] != 6)
        return 1;
    if (code(__func__) == 218)
        snprintf(values[0], (uintptr_t)values[1], "ptxas application ptx input, line 7; error   : a word\n");
    return handle(module, __func__);
}

CALL(cuModuleGetFunction, void **function, void *module, const char *name)
{
    (void)module;
    (void)name;
    return handle(function, __func__);
}

PLAIN(cuInit, unsigned flags)
PLAIN(cuCtxPushCurrent_v2, void *context)
PLAIN(cuMemFree_v2, uint64_t address)
PLAIN(cuMemcpyHtoDAsync_v2, uint64_t to, const void *from, size_t bytes, void *stream)
PLAIN(cuMemcpyDtoHAsync_v2, void *to, uint64_t from, size_t bytes, void *stream)
PLAIN(cuMemcpy2DAsync_v2, const void *copy, void *stream)
PLAIN(cuStreamSynchronize, void *stream)
PLAIN(cuEventRecord, void *event, void *stream)
PLAIN(cuEventQuery, void *event)
PLAIN(cuEventSynchronize, void *event)
PLAIN(cuEventDestroy_v2, void *event)
PLAIN(cuModuleUnload, void *module)
#ifndef OLD
PLAIN(cuLaunchKernel, void *function, unsigned x, unsigned y, unsigned z, unsigned across, unsigned down, unsigned deep,
      unsigned shared, void *stream, void **arguments, void **more)
#endif
