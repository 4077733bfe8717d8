/* Preloaded into a program: thread number REFUSE_AT that the program itself starts is refused, and with REFUSE_ALL
 * those that follow. At a normal end the number is written to REFUSE_COUNT. Programs that it starts are not meant. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static long asked, at;
static int all;
static uintptr_t begin, end;

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
    const char *text = getenv("REFUSE_AT"), *further = getenv("REFUSE_ALL");
    at = text ? atol(text) : 0, all = further ? atoi(further) : 0;
    dl_iterate_phdr(program, NULL);
}

__attribute__((destructor)) static void ends(void) {
    const char *count = getenv("REFUSE_COUNT");
    char text[32];
    if (!count || !asked) return;
    int file = open(count, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0) return;
    int length = snprintf(text, sizeof text, "%ld", asked);
    if (write(file, text, length) != length) abort();
    close(file);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *), void *given) {
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    uintptr_t caller = (uintptr_t)__builtin_return_address(0);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    if (caller >= begin && caller < end) {
        long turn = __atomic_add_fetch(&asked, 1, __ATOMIC_SEQ_CST);
        if (at && (turn == at || (turn > at && all))) return EAGAIN;
    }
    return real(thread, attributes, work, given);
}
