// copycount.so: counts, from outside, the bytes that a program copies in user space.
//
//   LD_PRELOAD=copycount.so COPYCOUNT_OUT=FILE program ...
//
// It stands in front of libc's copying functions and of the calls by which the kernel hands bytes to
// a program or takes them, and appends one JSON line to FILE when the process ends:
//   copied    bytes through memcpy, memmove, mempcpy and their checked forms, in calls of at least
//             COPYCOUNT_MIN (512) bytes: payload
//   small     the same in smaller calls: heads, keys, strings
//   received  bytes from read, pread, readv, preadv, recv, recvfrom, recvmsg (a peek is not counted)
//   sent      bytes by write, pwrite, writev, pwritev, send, sendto, sendmsg
//
// It cannot see: copies by loops that the compiler inlined, copies inside libc, statically linked
// programs, system calls made without libc (io_uring among them). A forked child starts from zero,
// so the lines of all processes add up.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum counter { COPIED, SMALL, RECEIVED, SENT, COUNTERS };
enum { STRIPES = 64 };

// A stripe for each thread (nearly): no lock, no thread-local storage that could itself allocate.
static struct {
    _Alignas(64) unsigned long of[COUNTERS];
} stripes[STRIPES];
static unsigned long payload_min = 512;

static void count(enum counter what, unsigned long bytes) {
    unsigned long stripe = (unsigned long)__builtin_thread_pointer() >> 12;
    __atomic_fetch_add(&stripes[stripe % STRIPES].of[what], bytes, __ATOMIC_RELAXED);
}

static void count_copy(size_t n) { count(n >= payload_min ? COPIED : SMALL, n); }

// dlsym itself copies, so until the real function is known the bytes are moved one by one.
static void *move_slowly(void *to, const void *from, size_t n) {
    volatile char *t = to;
    const volatile char *f = from;
    if (t < f)
        for (size_t i = 0; i < n; i++) t[i] = f[i];
    else
        for (size_t i = n; i--;) t[i] = f[i];
    return to;
}

static void *move(void *to, const void *from, size_t n) {
    static void *(*real)(void *, const void *, size_t);
    static __thread int resolving __attribute__((tls_model("initial-exec")));
    if (!real) {
        if (resolving) return move_slowly(to, from, n);
        resolving = 1;
        real = dlsym(RTLD_NEXT, "memmove");
        resolving = 0;
        if (!real) return move_slowly(to, from, n);
    }
    return real(to, from, n);
}

void *memmove(void *to, const void *from, size_t n) { return count_copy(n), move(to, from, n); }
void *memcpy(void *to, const void *from, size_t n) { return count_copy(n), move(to, from, n); }
void *mempcpy(void *to, const void *from, size_t n) {
    count_copy(n);
    return (char *)move(to, from, n) + n;
}
void *__memmove_chk(void *to, const void *from, size_t n, size_t room) {
    if (n > room) abort();
    return memmove(to, from, n);
}
void *__memcpy_chk(void *to, const void *from, size_t n, size_t room) {
    if (n > room) abort();
    return memcpy(to, from, n);
}
void *__mempcpy_chk(void *to, const void *from, size_t n, size_t room) {
    if (n > room) abort();
    return mempcpy(to, from, n);
}

// FORWARD(function, counter, counted?, (parameters), (arguments)): call the real one, count what
// it moved.
#define FORWARD(name, counter, counted, parameters, arguments) \
    ssize_t name parameters {                                  \
        static ssize_t(*real) parameters;                      \
        if (!real) real = dlsym(RTLD_NEXT, #name);             \
        ssize_t n = real arguments;                            \
        if (n > 0 && (counted)) count(counter, n);             \
        return n;                                              \
    }
typedef const struct iovec *parts;
typedef struct sockaddr *peer;
FORWARD(read, RECEIVED, 1, (int fd, void *to, size_t n_max), (fd, to, n_max))
FORWARD(__read_chk, RECEIVED, 1, (int fd, void *to, size_t n_max, size_t room),
        (fd, to, n_max, room))
FORWARD(pread, RECEIVED, 1, (int fd, void *to, size_t n_max, off_t at), (fd, to, n_max, at))
FORWARD(pread64, RECEIVED, 1, (int fd, void *to, size_t n_max, off_t at), (fd, to, n_max, at))
FORWARD(readv, RECEIVED, 1, (int fd, parts to, int many), (fd, to, many))
FORWARD(preadv, RECEIVED, 1, (int fd, parts to, int many, off_t at), (fd, to, many, at))
FORWARD(preadv64, RECEIVED, 1, (int fd, parts to, int many, off_t at), (fd, to, many, at))
FORWARD(recv, RECEIVED, !(how & MSG_PEEK), (int fd, void *to, size_t n_max, int how),
        (fd, to, n_max, how))
FORWARD(__recv_chk, RECEIVED, !(how & MSG_PEEK),
        (int fd, void *to, size_t n_max, size_t room, int how), (fd, to, n_max, room, how))
FORWARD(recvfrom, RECEIVED, !(how & MSG_PEEK),
        (int fd, void *to, size_t n_max, int how, peer who, socklen_t *who_len),
        (fd, to, n_max, how, who, who_len))
FORWARD(recvmsg, RECEIVED, !(how & MSG_PEEK), (int fd, struct msghdr *to, int how), (fd, to, how))
FORWARD(write, SENT, 1, (int fd, const void *from, size_t n_max), (fd, from, n_max))
FORWARD(pwrite, SENT, 1, (int fd, const void *from, size_t n_max, off_t at), (fd, from, n_max, at))
FORWARD(pwrite64, SENT, 1, (int fd, const void *from, size_t n_max, off_t at),
        (fd, from, n_max, at))
FORWARD(writev, SENT, 1, (int fd, parts from, int many), (fd, from, many))
FORWARD(pwritev, SENT, 1, (int fd, parts from, int many, off_t at), (fd, from, many, at))
FORWARD(pwritev64, SENT, 1, (int fd, parts from, int many, off_t at), (fd, from, many, at))
FORWARD(send, SENT, 1, (int fd, const void *from, size_t n_max, int how), (fd, from, n_max, how))
FORWARD(sendto, SENT, 1,
        (int fd, const void *from, size_t n_max, int how, const struct sockaddr *who,
         socklen_t who_len),
        (fd, from, n_max, how, who, who_len))
FORWARD(sendmsg, SENT, 1, (int fd, const struct msghdr *from, int how), (fd, from, how))

static void report(void) {
    const char *file = getenv("COPYCOUNT_OUT");
    if (!file) return;
    unsigned long sum[COUNTERS] = {0};
    for (int s = 0; s < STRIPES; s++)
        for (int k = 0; k < COUNTERS; k++) sum[k] += stripes[s].of[k];
    char line[256];
    int n = snprintf(line, sizeof line,
                     "{\"pid\": %d, \"copied\": %lu, \"small\": %lu, \"received\": %lu, "
                     "\"sent\": %lu}\n",
                     getpid(), sum[COPIED], sum[SMALL], sum[RECEIVED], sum[SENT]);
    int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, line, n) != n) perror("copycount: could not write COPYCOUNT_OUT");
    if (fd >= 0) close(fd);
}

static void start_from_zero(void) {
    for (int s = 0; s < STRIPES; s++)
        for (int k = 0; k < COUNTERS; k++) stripes[s].of[k] = 0;
}

__attribute__((constructor)) static void begin(void) {
    const char *min = getenv("COPYCOUNT_MIN");
    if (min) payload_min = strtoul(min, NULL, 10);
    pthread_atfork(NULL, NULL, start_from_zero);
}

__attribute__((destructor)) static void end(void) { report(); }

// _exit runs no destructors.
void _exit(int status) {
    void (*real)(int) = (void (*)(int))dlsym(RTLD_NEXT, "_exit");
    report();
    real(status);
    __builtin_unreachable();
}
