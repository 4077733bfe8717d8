/* An OpenCL layer around the real drivers: it counts copies and kernels, and from the FAIL_AT-th on all of them and all
   waits fail with FAIL_CODE, as those of a device that is lost. Each call that counts adds a byte to the file CALLS.
   Waits do not count: how many there are depends on what has ended when a program looks.

   Source of the interface: Khronos, "The OpenCL Specification" and cl_layer.h; the numbers are places in
   cl_icd_dispatch, whose order is fixed. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT = 41, READ = 48, WRITE = 49, LAUNCH = 59, READ_ROWS = 86, WRITE_ROWS = 87, MOST = 256 };

typedef int32_t wait_call(uint32_t, const void *);
typedef int32_t copy_call(void *, void *, uint32_t, size_t, size_t, const void *, uint32_t, const void *, void *);
typedef int32_t launch_call(void *, void *, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t,
                            const void *, void *);
typedef int32_t rows_call(void *, void *, uint32_t, const size_t *, const size_t *, const size_t *, size_t, size_t,
                          size_t, size_t, const void *, uint32_t, const void *, void *);

static void *real[MOST], *ours[MOST];
static unsigned calls;

/* The code of a call that fails after so many, or 0. */
static int32_t code_after(unsigned number)
{
    const char *at = getenv("FAIL_AT"), *code = getenv("FAIL_CODE");
    return at && number >= strtoul(at, NULL, 10) ? (int32_t)atoi(code) : 0;
}

/* The same for a call that counts. */
static int32_t fault(void)
{
    const char *file = getenv("CALLS");
    unsigned number = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
    if (file) {
        FILE *out = fopen(file, "a");
        if (out) {
            fputc('.', out);
            fclose(out);
        }
    }
    return code_after(number);
}

static int32_t wait_for(uint32_t count, const void *events)
{
    /* What was begun ends before the device is lost: its memory is still in use. */
    int32_t done = ((wait_call *)real[WAIT])(count, events);
    int32_t code = code_after(__atomic_load_n(&calls, __ATOMIC_SEQ_CST));
    return code ? code : done;
}

static int32_t read(void *queue, void *memory, uint32_t blocks, size_t start, size_t bytes, const void *host,
                    uint32_t count, const void *after, void *event)
{
    int32_t code = fault();
    return code ? code
                : ((copy_call *)real[READ])(queue, memory, blocks, start, bytes, host, count, after, event);
}

static int32_t write(void *queue, void *memory, uint32_t blocks, size_t start, size_t bytes, const void *host,
                     uint32_t count, const void *after, void *event)
{
    int32_t code = fault();
    return code ? code
                : ((copy_call *)real[WRITE])(queue, memory, blocks, start, bytes, host, count, after, event);
}

static int32_t launch(void *queue, void *kernel, uint32_t dimensions, const size_t *offset, const size_t *global,
                      const size_t *local, uint32_t count, const void *after, void *event)
{
    int32_t code = fault();
    return code ? code
                : ((launch_call *)real[LAUNCH])(queue, kernel, dimensions, offset, global, local, count, after,
                                                event);
}

static int32_t read_rows(void *queue, void *memory, uint32_t blocks, const size_t *there, const size_t *here,
                         const size_t *region, size_t row, size_t slice, size_t host_row, size_t host_slice,
                         const void *host, uint32_t count, const void *after, void *event)
{
    int32_t code = fault();
    return code ? code
                : ((rows_call *)real[READ_ROWS])(queue, memory, blocks, there, here, region, row, slice, host_row,
                                                 host_slice, host, count, after, event);
}

static int32_t write_rows(void *queue, void *memory, uint32_t blocks, const size_t *there, const size_t *here,
                          const size_t *region, size_t row, size_t slice, size_t host_row, size_t host_slice,
                          const void *host, uint32_t count, const void *after, void *event)
{
    int32_t code = fault();
    return code ? code
                : ((rows_call *)real[WRITE_ROWS])(queue, memory, blocks, there, here, region, row, slice, host_row,
                                                  host_slice, host, count, after, event);
}

/* CL_LAYER_API_VERSION is CL_LAYER_API_VERSION_100. */
int32_t clGetLayerInfo(uint32_t name, size_t size, void *value, size_t *length)
{
    uint32_t version = 100;
    if (name != 0x4240 || (value && size < sizeof version))
        return -30;
    if (value)
        memcpy(value, &version, sizeof version);
    if (length)
        *length = sizeof version;
    return 0;
}

int32_t clInitLayer(uint32_t count, void *const *target, uint32_t *entries, void *const **layer)
{
    if (count <= WRITE_ROWS || count > MOST)
        return -30;
    memcpy(real, target, count * sizeof *target);
    memcpy(ours, target, count * sizeof *target);
    ours[WAIT] = (void *)wait_for;
    ours[READ] = (void *)read;
    ours[WRITE] = (void *)write;
    ours[LAUNCH] = (void *)launch;
    ours[READ_ROWS] = (void *)read_rows;
    ours[WRITE_ROWS] = (void *)write_rows;
    *entries = count;
    *layer = ours;
    return 0;
}
