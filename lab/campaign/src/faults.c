/* Preloaded into a program: the system call number FAULT_AT on a regular file or a directory fails once with
 * FAULT_ERRNO. FAULT_COUNT names a file to which each call adds one byte. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int ours(const char *path) {
    static const char *const system[] = {"/proc", "/sys", "/dev", "/usr", "/lib", "/etc"};
    for (unsigned i = 0; i < sizeof system / sizeof *system; i++)
        if (!strncmp(path, system[i], strlen(system[i]))) return 0;
    return 1;
}

static int regular(int fd) {
    struct stat about;
    return !fstat(fd, &about) && (S_ISREG(about.st_mode) || S_ISDIR(about.st_mode));
}

/* True if this call is to fail. */
static int fails(void) {
    static long calls;
    const char *count = getenv("FAULT_COUNT"), *at = getenv("FAULT_AT"), *number = getenv("FAULT_ERRNO");
    if (!count) return 0;
    long call = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
    int saved = errno;
    int fd = syscall(SYS_openat, AT_FDCWD, count, O_WRONLY | O_APPEND | O_CREAT, 0644);
    if (fd >= 0) {
        syscall(SYS_write, fd, ".", 1);
        syscall(SYS_close, fd);
    }
    errno = saved;
    if (!at || call != atol(at)) return 0;
    errno = number ? atoi(number) : EIO;
    return 1;
}

#define REAL(NAME, RESULT, ...) ((RESULT(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #NAME))

#define OPEN(NAME)                                                                                        \
    int NAME(const char *path, int flags, ...) {                                                          \
        va_list rest;                                                                                     \
        va_start(rest, flags);                                                                            \
        mode_t mode = va_arg(rest, mode_t);                                                               \
        va_end(rest);                                                                                     \
        if (ours(path) && fails()) return -1;                                                             \
        return REAL(NAME, int, const char *, int, ...)(path, flags, mode);                                \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(NAME)                                                                                      \
    int NAME(int at, const char *path, int flags, ...) {                                                  \
        va_list rest;                                                                                     \
        va_start(rest, flags);                                                                            \
        mode_t mode = va_arg(rest, mode_t);                                                               \
        va_end(rest);                                                                                     \
        if (ours(path) && fails()) return -1;                                                             \
        return REAL(NAME, int, int, const char *, int, ...)(at, path, flags, mode);                       \
    }
OPENAT(openat)
OPENAT(openat64)

ssize_t read(int fd, void *to, size_t n) {
    if (regular(fd) && fails()) return -1;
    return REAL(read, ssize_t, int, void *, size_t)(fd, to, n);
}
ssize_t pread64(int fd, void *to, size_t n, off64_t at) {
    if (regular(fd) && fails()) return -1;
    return REAL(pread64, ssize_t, int, void *, size_t, off64_t)(fd, to, n, at);
}
ssize_t write(int fd, const void *from, size_t n) {
    if (regular(fd) && fails()) return -1;
    return REAL(write, ssize_t, int, const void *, size_t)(fd, from, n);
}
ssize_t writev(int fd, const struct iovec *from, int n) {
    if (regular(fd) && fails()) return -1;
    return REAL(writev, ssize_t, int, const struct iovec *, int)(fd, from, n);
}
ssize_t pwrite64(int fd, const void *from, size_t n, off64_t at) {
    if (regular(fd) && fails()) return -1;
    return REAL(pwrite64, ssize_t, int, const void *, size_t, off64_t)(fd, from, n, at);
}
int fsync(int fd) {
    if (fails()) return -1;
    return REAL(fsync, int, int)(fd);
}
int ftruncate64(int fd, off64_t length) {
    if (fails()) return -1;
    return REAL(ftruncate64, int, int, off64_t)(fd, length);
}
int fchmod(int fd, mode_t mode) {
    if (fails()) return -1;
    return REAL(fchmod, int, int, mode_t)(fd, mode);
}
int rename(const char *from, const char *to) {
    if (fails()) return -1;
    return REAL(rename, int, const char *, const char *)(from, to);
}
int renameat(int at, const char *from, int to_at, const char *to) {
    if (fails()) return -1;
    return REAL(renameat, int, int, const char *, int, const char *)(at, from, to_at, to);
}
int renameat2(int at, const char *from, int to_at, const char *to, unsigned flags) {
    if (fails()) return -1;
    return REAL(renameat2, int, int, const char *, int, const char *, unsigned)(at, from, to_at, to, flags);
}
int linkat(int at, const char *from, int to_at, const char *to, int flags) {
    if (fails()) return -1;
    return REAL(linkat, int, int, const char *, int, const char *, int)(at, from, to_at, to, flags);
}
int fallocate64(int fd, int mode, off64_t from, off64_t length) {
    if (fails()) return -1;
    return REAL(fallocate64, int, int, int, off64_t, off64_t)(fd, mode, from, length);
}
int fdatasync(int fd) {
    if (fails()) return -1;
    return REAL(fdatasync, int, int)(fd);
}
int mkdir(const char *path, mode_t mode) {
    if (fails()) return -1;
    return REAL(mkdir, int, const char *, mode_t)(path, mode);
}
