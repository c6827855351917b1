/* Stands between a program and the system: the so-manieth call that changes a file below a directory
 * is met by a kill, an error, half a write or a delay. Built and preloaded by the tests. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int calls;

static const char *setting(const char *name) { return getenv(name); }

static int is_ours(const char *path) {
    const char *dir = setting("SHIM_DIR");
    return dir && path && strncmp(path, dir, strlen(dir)) == 0;
}

static int fd_is_ours(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_ours(path);
}

/* 0: go on; -1: fail, errno is set; 1: do half of it (`half` says what follows). */
static int meet(int is_sync) {
    const char *what = setting("SHIM_DO");
    if (!what) return 0;
    if (strcmp(what, "delay") == 0) {
        if (is_sync) usleep(1000 * atoi(setting("SHIM_AT")));
        return 0;
    }
    if (__atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) != atoi(setting("SHIM_AT"))) return 0;
    static const char met[] = "say met\n";
    if (write(1, met, sizeof met - 1) < 0) {}
    if (strcmp(what, "kill") == 0) kill(getpid(), SIGKILL), pause();
    if (strcmp(what, "half") == 0 || strcmp(what, "short") == 0) return 1;
    errno = atoi(what);
    return -1;
}

/* After half a write: the end, or a short write. */
static void half(void) {
    if (strcmp(setting("SHIM_DO"), "half") == 0) kill(getpid(), SIGKILL), pause();
}

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *bytes, size_t count) {
    REAL(write);
    if (!fd_is_ours(fd)) return real(fd, bytes, count);
    int met = meet(0);
    if (met < 0) return -1;
    if (met > 0 && count > 1) {
        ssize_t written = real(fd, bytes, count / 2);
        half();
        return written;
    }
    return real(fd, bytes, count);
}

#define OF_FD(type, name, is_sync, params, args)                                                                       \
    type name params {                                                                                                 \
        REAL(name);                                                                                                    \
        if (fd_is_ours(fd)) {                                                                                          \
            int met = meet(is_sync);                                                                                   \
            if (met < 0) return -1;                                                                                    \
            if (met > 0) half();                                                                                       \
        }                                                                                                              \
        return real args;                                                                                              \
    }
#define OF_PATH(type, name, params, args)                                                                              \
    type name params {                                                                                                 \
        REAL(name);                                                                                                    \
        if (is_ours(path)) {                                                                                           \
            int met = meet(0);                                                                                         \
            if (met < 0) return -1;                                                                                    \
            if (met > 0) half();                                                                                       \
        }                                                                                                              \
        return real args;                                                                                              \
    }

OF_FD(int, fsync, 1, (int fd), (fd))
OF_FD(int, fdatasync, 1, (int fd), (fd))
OF_FD(int, ftruncate, 0, (int fd, off_t length), (fd, length))
OF_FD(int, ftruncate64, 0, (int fd, off64_t length), (fd, length))
OF_PATH(int, rename, (const char *path, const char *to), (path, to))
OF_PATH(int, unlink, (const char *path), (path))
OF_PATH(int, mkdir, (const char *path, mode_t mode), (path, mode))
OF_PATH(int, link, (const char *path, const char *to), (path, to))

int linkat(int from, const char *path, int at, const char *to, int flags) {
    REAL(linkat);
    if (is_ours(path)) {
        int met = meet(0);
        if (met < 0) return -1;
        if (met > 0) half();
    }
    return real(from, path, at, to, flags);
}

#define OPENS(name)                                                                                                    \
    int name(const char *path, int flags, ...) {                                                                       \
        REAL(name);                                                                                                    \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;                                                      \
        va_end(rest);                                                                                                  \
        if (is_ours(path)) {                                                                                           \
            int met = meet(0);                                                                                         \
            if (met < 0) return -1;                                                                                    \
            if (met > 0) half();                                                                                       \
        }                                                                                                              \
        return real(path, flags, mode);                                                                                \
    }
OPENS(open)
OPENS(open64)
