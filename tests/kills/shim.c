/* Counts every operation that changes files below one folder, and breaks off at the k-th.

   Loaded with LD_PRELOAD, so that it sees what Python, NumPy and Rust do alike. It does nothing
   before shim_arm is called. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { COUNT, KILL, TORN, FULL, READ_ONLY, INTERRUPT };

static char root[PATH_MAX];
static atomic_long seen;
static long at;
static int mode, armed, journal = -1;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

void shim_arm(const char *folder, long k, int what, int log) {
    snprintf(root, sizeof root, "%s", folder);
    seen = 0;
    at = k;
    mode = what;
    journal = log;
    armed = 1;
}

void shim_disarm(void) { armed = 0; }

static int below(int dir, const char *path) {
    char whole[2 * PATH_MAX];
    if (!armed || path == NULL) return 0;
    if (path[0] == '/') return strncmp(path, root, strlen(root)) == 0;
    if (dir == AT_FDCWD) {
        if (getcwd(whole, PATH_MAX) == NULL) return 0;
    } else {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
        ssize_t size = readlink(link, whole, PATH_MAX - 1);
        if (size < 0) return 0;
        whole[size] = 0;
    }
    return strncmp(whole, root, strlen(root)) == 0;
}

static int of_fd(int fd) {
    char link[64], path[PATH_MAX];
    if (!armed || fd <= 2 || fd == journal) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size <= 0) return 0;
    path[size] = 0;
    return path[0] == '/' && strncmp(path, root, strlen(root)) == 0;
}

static void note(const char *name, const char *path, int fd) {
    char line[2 * PATH_MAX], link[64], found[PATH_MAX] = "";
    if (journal < 0) return;
    if (path == NULL) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t size = readlink(link, found, sizeof found - 1);
        found[size > 0 ? size : 0] = 0;
        path = found;
    }
    const char *shown = strncmp(path, root, strlen(root)) == 0 ? path + strlen(root) : path;
    int size = snprintf(line, sizeof line, "%s %s\n", name, shown);
    if (size > 0 && REAL(write)(journal, line, size) < 0) return;
}

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

/* 0: go on; otherwise the errno to fail with. `grows`: whether it needs room on the disk. */
static int step(const char *name, const char *path, int fd, int grows) {
    long k = ++seen;
    note(name, path, fd);
    if (mode == KILL && k == at) die();
    if (mode == INTERRUPT && k == at) kill(getpid(), SIGINT);
    if (mode == FULL && k >= at && grows) return ENOSPC;
    if (mode == READ_ONLY && k >= at) return EROFS;
    return 0;
}

static int torn(void) { return mode == TORN && seen == at; }

#define REFUSE(name, path, fd, grows, failed)         \
    do {                                              \
        int why = step(name, path, fd, grows);        \
        if (why) {                                    \
            errno = why;                              \
            return failed;                            \
        }                                             \
    } while (0)

static int writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)); }

#define OPEN(NAME)                                                                       \
    int NAME(const char *path, int flags, ...) {                                         \
        va_list more;                                                                    \
        va_start(more, flags);                                                           \
        mode_t bits = va_arg(more, mode_t);                                              \
        va_end(more);                                                                    \
        if (writes(flags) && below(AT_FDCWD, path)) REFUSE("open", path, -1, 1, -1);     \
        return REAL(NAME)(path, flags, bits);                                            \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(NAME)                                                                     \
    int NAME(int dir, const char *path, int flags, ...) {                                \
        va_list more;                                                                    \
        va_start(more, flags);                                                           \
        mode_t bits = va_arg(more, mode_t);                                              \
        va_end(more);                                                                    \
        if (writes(flags) && below(dir, path)) REFUSE("open", path, -1, 1, -1);          \
        return REAL(NAME)(dir, path, flags, bits);                                       \
    }
OPENAT(openat)
OPENAT(openat64)

#define FOPEN(NAME)                                                                      \
    FILE *NAME(const char *path, const char *how) {                                      \
        if (strpbrk(how, "wa+") && below(AT_FDCWD, path)) REFUSE("open", path, -1, 1, NULL); \
        return REAL(NAME)(path, how);                                                    \
    }
FOPEN(fopen)
FOPEN(fopen64)

ssize_t write(int fd, const void *data, size_t size) {
    if (of_fd(fd)) {
        REFUSE("write", NULL, fd, 1, -1);
        if (torn()) {
            if (REAL(write)(fd, data, size / 2) >= 0) die();
            die();
        }
    }
    return REAL(write)(fd, data, size);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (of_fd(fd)) {
        REFUSE("write", NULL, fd, 1, -1);
        if (torn()) {
            if (count && REAL(write)(fd, parts[0].iov_base, parts[0].iov_len / 2) >= 0) die();
            die();
        }
    }
    return REAL(writev)(fd, parts, count);
}

#define PWRITE(NAME, OFFSET)                                                             \
    ssize_t NAME(int fd, const void *data, size_t size, OFFSET where) {                  \
        if (of_fd(fd)) REFUSE("write", NULL, fd, 1, -1);                                 \
        return REAL(NAME)(fd, data, size, where);                                        \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

ssize_t sendfile(int to, int from, off_t *offset, size_t size) {
    extern ssize_t sendfile(int, int, off_t *, size_t);
    if (of_fd(to)) REFUSE("write", NULL, to, 1, -1);
    return REAL(sendfile)(to, from, offset, size);
}

ssize_t sendfile64(int to, int from, off64_t *offset, size_t size) {
    extern ssize_t sendfile64(int, int, off64_t *, size_t);
    if (of_fd(to)) REFUSE("write", NULL, to, 1, -1);
    return REAL(sendfile64)(to, from, offset, size);
}

ssize_t copy_file_range(int from, off64_t *one, int to, off64_t *two, size_t size, unsigned flags) {
    if (of_fd(to)) REFUSE("write", NULL, to, 1, -1);
    return REAL(copy_file_range)(from, one, to, two, size, flags);
}

int fsync(int fd) {
    if (of_fd(fd)) REFUSE("fsync", NULL, fd, 1, -1);
    return REAL(fsync)(fd);
}

int fdatasync(int fd) {
    if (of_fd(fd)) REFUSE("fsync", NULL, fd, 1, -1);
    return REAL(fdatasync)(fd);
}

#define TRUNCATE(NAME, OFFSET)                                                           \
    int NAME(int fd, OFFSET size) {                                                      \
        if (of_fd(fd)) REFUSE("truncate", NULL, fd, 0, -1);                              \
        return REAL(NAME)(fd, size);                                                     \
    }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

int rename(const char *old, const char *new) {
    if (below(AT_FDCWD, new)) REFUSE("rename", new, -1, 0, -1);
    return REAL(rename)(old, new);
}

int renameat(int one, const char *old, int two, const char *new) {
    if (below(two, new)) REFUSE("rename", new, -1, 0, -1);
    return REAL(renameat)(one, old, two, new);
}

int renameat2(int one, const char *old, int two, const char *new, unsigned flags) {
    if (below(two, new)) REFUSE("rename", new, -1, 0, -1);
    return REAL(renameat2)(one, old, two, new, flags);
}

int link(const char *old, const char *new) {
    if (below(AT_FDCWD, new)) REFUSE("link", new, -1, 1, -1);
    return REAL(link)(old, new);
}

int symlink(const char *old, const char *new) {
    if (below(AT_FDCWD, new)) REFUSE("link", new, -1, 1, -1);
    return REAL(symlink)(old, new);
}

int mkdir(const char *path, mode_t bits) {
    if (below(AT_FDCWD, path)) REFUSE("mkdir", path, -1, 1, -1);
    return REAL(mkdir)(path, bits);
}

int mkdirat(int dir, const char *path, mode_t bits) {
    if (below(dir, path)) REFUSE("mkdir", path, -1, 1, -1);
    return REAL(mkdirat)(dir, path, bits);
}

int unlink(const char *path) {
    if (below(AT_FDCWD, path)) REFUSE("unlink", path, -1, 0, -1);
    return REAL(unlink)(path);
}

int unlinkat(int dir, const char *path, int flags) {
    if (below(dir, path)) REFUSE("unlink", path, -1, 0, -1);
    return REAL(unlinkat)(dir, path, flags);
}

int rmdir(const char *path) {
    if (below(AT_FDCWD, path)) REFUSE("rmdir", path, -1, 0, -1);
    return REAL(rmdir)(path);
}
