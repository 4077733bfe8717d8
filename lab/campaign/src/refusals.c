/* Preloaded into a program: allocation number REFUSE_AT fails, among those of REFUSE_FROM bytes or more; with
 * REFUSE_ALL, so do all that follow. With REFUSE_OWN, only what the program itself asks for counts, not its libraries.
 * With REFUSE_RANK, only this rank of Open MPI counts. At a normal end the number is written to REFUSE_COUNT. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static long asked, at;
static size_t from;
static int active, all, own;
static uintptr_t begin, end;

static long number(const char *name) {
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

/* The first object is the program. */
static int program(struct dl_phdr_info *object, size_t size, void *unused) {
    (void)size, (void)unused;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
        begin = object->dlpi_addr + part->p_vaddr;
        end = begin + part->p_memsz;
    }
    return 1;
}

__attribute__((constructor)) static void begins(void) {
    const char *rank = getenv("REFUSE_RANK"), *here = getenv("OMPI_COMM_WORLD_RANK");
    if (!getenv("REFUSE_FROM") || (rank && (!here || strcmp(rank, here)))) return;
    dl_iterate_phdr(program, NULL);
    at = number("REFUSE_AT"), from = number("REFUSE_FROM"), all = number("REFUSE_ALL"), own = number("REFUSE_OWN");
    active = 1;
}

__attribute__((destructor)) static void ends(void) {
    const char *count = getenv("REFUSE_COUNT");
    char text[32];
    if (!active || !count) return;
    active = 0;
    int file = open(count, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0) return;
    int length = snprintf(text, sizeof text, "%ld", asked);
    if (write(file, text, length) != length) abort();
    close(file);
}

/* A program may also leave without its destructors. */
void _exit(int code) {
    ends();
    syscall(SYS_exit_group, code);
    __builtin_unreachable();
}

static int refused(size_t bytes, void *caller) {
    if (!active || bytes < from) return 0;
    if (own && ((uintptr_t)caller < begin || (uintptr_t)caller >= end)) return 0;
    long turn = __atomic_add_fetch(&asked, 1, __ATOMIC_SEQ_CST);
    if (!at || turn < at || (turn > at && !all)) return 0;
    errno = ENOMEM;
    return 1;
}

#define REFUSED(BYTES) refused(BYTES, __builtin_return_address(0))

void *malloc(size_t bytes) { return REFUSED(bytes) ? NULL : __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { return REFUSED(count * bytes) ? NULL : __libc_calloc(count, bytes); }
void *realloc(void *memory, size_t bytes) { return REFUSED(bytes) ? NULL : __libc_realloc(memory, bytes); }
void *memalign(size_t align, size_t bytes) { return REFUSED(bytes) ? NULL : __libc_memalign(align, bytes); }
void *aligned_alloc(size_t align, size_t bytes) { return REFUSED(bytes) ? NULL : __libc_memalign(align, bytes); }
int posix_memalign(void **memory, size_t align, size_t bytes) {
    if (REFUSED(bytes)) return ENOMEM;
    *memory = __libc_memalign(align, bytes);
    return *memory ? 0 : ENOMEM;
}
