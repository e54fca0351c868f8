// floor: the least CPU that reading objects over HTTP/1.1 into kept memory can cost here.
//
//   floor ADDRESS PORT CONNECTIONS MEMORY_BYTES LIST
//
// LIST is a file with one read per line: "PATH" for a whole object, or "PATH START END" for the
// bytes [START, END). Reads are dealt to the connections in order, one at a time each (HTTP/1.1
// keep-alive), and every body goes from recv() into its final place: MEMORY_BYTES of page-aligned
// memory, touched before the clock starts, an equal part for each connection, filled to its end
// before it is used again. Nothing is parsed but the response head, and nothing is copied but that.
//
// Prints {"bytes", "wall", "cpu", "reads", "recvs"}: cpu is user + system of this process, from the
// first connect to the last byte.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_MAX = 16384, RECV_MAX = 4 << 20 };
enum outcome { WAIT, MORE, DONE };

struct read {
    char *path;
    long start, end; // end < 0: the whole object
};

struct connection {
    int fd;
    int answered; // answers since this connection was opened
    struct read *read;
    long left;    // body bytes still to come; < 0 while the head is awaited
    char *memory; // its part of the kept memory
    size_t fill;
};

static struct read *reads;
static int read_count, next_read;
static size_t part_bytes;
static long body_bytes, recv_calls;
static struct sockaddr_in server;
static int poller;
static char host[64];

static void fail(const char *what) {
    fprintf(stderr, "floor: %s: %s\n", what, errno ? strerror(errno) : "unexpected answer");
    exit(2);
}

static void load(const char *file) {
    FILE *in = fopen(file, "r");
    if (!in) fail(file);
    char line[8192], path[8000];
    while (fgets(line, sizeof line, in)) {
        struct read r = {NULL, 0, -1};
        int fields = sscanf(line, "%7999s %ld %ld", path, &r.start, &r.end);
        if (fields == 2 || (fields == 3 && r.end <= r.start)) {
            fprintf(stderr, "floor: bad line in %s: %s", file, line);
            exit(2);
        }
        if (fields < 1) continue;
        r.path = strdup(path);
        reads = realloc(reads, (read_count + 1) * sizeof *reads);
        if (!reads || !r.path) fail("memory");
        reads[read_count++] = r;
    }
    fclose(in);
}

static void open_connection(struct connection *c) {
    int one = 1;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&server, sizeof server)) fail("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &ev)) fail("epoll_ctl");
    c->answered = 0;
}

static void ask(struct connection *c) {
    char text[8600];
    int n = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: %s\r\n", c->read->path, host);
    if (c->read->end >= 0)
        n += snprintf(text + n, sizeof text - n, "Range: bytes=%ld-%ld\r\n", c->read->start,
                      c->read->end - 1);
    n += snprintf(text + n, sizeof text - n, "\r\n");
    c->left = -1;
    if (send(c->fd, text, n, MSG_NOSIGNAL) != n && errno != EPIPE && errno != ECONNRESET)
        fail("send");
}

static int begin(struct connection *c) { // 0 when no read is left
    if (next_read == read_count) return 0;
    c->read = &reads[next_read++];
    ask(c);
    return 1;
}

// A server may close a connection that it kept open; then the same read is asked for again.
static void reopen(struct connection *c) {
    if (!c->answered) fail("closed before the first answer");
    close(c->fd);
    open_connection(c);
    ask(c);
}

// Peek, find the end of the head, take exactly the head: the body then lands in its place only.
static enum outcome take_head(struct connection *c) {
    static char head[HEAD_MAX + 1];
    ssize_t n = recv(c->fd, head, HEAD_MAX, MSG_PEEK);
    recv_calls++;
    if (n < 0 && errno == EAGAIN) return WAIT;
    if (n == 0 || (n < 0 && errno == ECONNRESET)) {
        reopen(c);
        return WAIT;
    }
    if (n < 0) fail("recv");
    head[n] = 0;
    char *end = strstr(head, "\r\n\r\n");
    if (!end) return n == HEAD_MAX ? (errno = 0, fail("head over 16 KiB"), WAIT) : WAIT;
    const char *wanted = c->read->end >= 0 ? "206" : "200";
    char *length = strcasestr(head, "\r\ncontent-length:");
    if (strncmp(head + 9, wanted, 3) || !length || length > end) {
        *end = 0;
        fprintf(stderr, "floor: GET %s: wanted %s with a length, got:\n%s\n", c->read->path, wanted,
                head);
        exit(2);
    }
    c->left = atol(length + strlen("\r\ncontent-length:"));
    if (c->read->end >= 0 && c->left != c->read->end - c->read->start) {
        errno = 0;
        fail("length of range");
    }
    ssize_t head_bytes = end + 4 - head;
    if (recv(c->fd, head, head_bytes, 0) != head_bytes) fail("recv of head");
    recv_calls++;
    c->answered++;
    return c->left ? MORE : DONE;
}

static enum outcome take_body(struct connection *c) {
    if (c->fill == part_bytes) c->fill = 0;
    size_t room = part_bytes - c->fill;
    if (room > RECV_MAX) room = RECV_MAX;
    if (room > (size_t)c->left) room = c->left;
    ssize_t n = recv(c->fd, c->memory + c->fill, room, 0);
    recv_calls++;
    if (n < 0 && errno == EAGAIN) return WAIT;
    if (n == 0) errno = ECONNRESET;
    if (n <= 0) fail("recv of body");
    c->fill += n;
    c->left -= n;
    body_bytes += n;
    return c->left ? MORE : DONE;
}

static double seconds(struct timeval t) { return t.tv_sec + t.tv_usec / 1e6; }

int main(int count, char **args) {
    if (count != 6) {
        fprintf(stderr, "usage: floor ADDRESS PORT CONNECTIONS MEMORY_BYTES LIST\n");
        return 2;
    }
    int connections = atoi(args[3]);
    size_t page = 4096, memory_bytes = atol(args[4]);
    load(args[5]);
    server.sin_family = AF_INET;
    server.sin_port = htons(atoi(args[2]));
    if (inet_pton(AF_INET, args[1], &server.sin_addr) != 1) fail("address");
    snprintf(host, sizeof host, "%s:%s", args[1], args[2]);
    if (connections < 1) fail("connections");
    if (connections > read_count) connections = read_count;
    if (!connections) fail("empty list");
    part_bytes = memory_bytes / connections / page * page;
    if (!part_bytes) fail("memory below a page for each connection");
    char *memory = mmap(NULL, part_bytes * connections, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    struct connection *all = calloc(connections, sizeof *all);
    if (memory == MAP_FAILED || !all) fail("memory");
    poller = epoll_create1(0);

    struct timespec from, to;
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < connections; i++) {
        all[i].memory = memory + i * part_bytes;
        open_connection(&all[i]);
        begin(&all[i]);
    }
    for (int busy = connections; busy;) {
        struct epoll_event ready[64];
        int n = epoll_wait(poller, ready, 64, -1);
        if (n < 0 && errno != EINTR) fail("epoll_wait");
        for (int i = 0; i < n; i++) {
            struct connection *c = ready[i].data.ptr;
            // One step for each report: the next one waits until the kernel says there is more.
            enum outcome o = c->left < 0 ? take_head(c) : take_body(c);
            if (o == DONE && !begin(c)) {
                close(c->fd);
                busy--;
            }
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    getrusage(RUSAGE_SELF, &after);
    printf("{\"bytes\": %ld, \"wall\": %.6f, \"cpu\": %.6f, \"reads\": %d, \"recvs\": %ld}\n",
           body_bytes, (to.tv_sec - from.tv_sec) + (to.tv_nsec - from.tv_nsec) / 1e9,
           seconds(after.ru_utime) - seconds(before.ru_utime) + seconds(after.ru_stime) -
               seconds(before.ru_stime),
           read_count, recv_calls);
    return 0;
}
