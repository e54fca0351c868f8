// copycheck: a program whose copies are known, to hold copycount.so against.
//
//   copycheck MIB
//
// Copies MIB MiB once each by memcpy, memmove and mempcpy in pieces of 64 KiB, once more in pieces
// of 256 bytes (which are not payload), and moves MIB MiB each through a pipe (write, read; writev,
// readv) and a socket pair (send, recv; sendmsg, recvmsg), with a peek before each recv. Prints what
// a counter must say: {"copied", "small", "received", "sent"}. Built with -fno-builtin, so that
// every copy is a call.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PIECE = 65536, LITTLE = 256 };
static char from[PIECE], to[PIECE];

static void need(int true_, const char *what) {
    if (!true_) {
        perror(what);
        exit(2);
    }
}

int main(int count, char **args) {
    long pieces = (count == 2 ? atol(args[1]) : 0) * ((1 << 20) / PIECE);
    if (pieces <= 0) {
        fprintf(stderr, "usage: copycheck MIB\n");
        return 2;
    }
    int tube[2], pair[2];
    need(!pipe(tube), "pipe");
    need(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
    for (int i = 0; i < PIECE; i++) from[i] = (char)(i * 7);
    struct iovec out = {from, PIECE}, in = {to, PIECE};
    struct msghdr out_message = {.msg_iov = &out, .msg_iovlen = 1};
    struct msghdr in_message = {.msg_iov = &in, .msg_iovlen = 1};
    for (long i = 0; i < pieces; i++) {
        memcpy(to, from, PIECE);
        memmove(to, from, PIECE);
        mempcpy(to, from, PIECE);
        for (int at = 0; at < PIECE; at += LITTLE) memcpy(to + at, from + at, LITTLE);
        need(write(tube[1], from, PIECE) == PIECE && read(tube[0], to, PIECE) == PIECE, "read");
        need(writev(tube[1], &out, 1) == PIECE && readv(tube[0], &in, 1) == PIECE, "readv");
        need(send(pair[1], from, PIECE, 0) == PIECE, "send");
        need(recv(pair[0], to, PIECE, MSG_PEEK) == PIECE, "peek");
        need(recv(pair[0], to, PIECE, MSG_WAITALL) == PIECE, "recv");
        need(sendmsg(pair[1], &out_message, 0) == PIECE, "sendmsg");
        need(recvmsg(pair[0], &in_message, MSG_WAITALL) == PIECE, "recvmsg");
    }
    need(!memcmp(from, to, PIECE), "bytes differ");
    long bytes = pieces * PIECE;
    printf("{\"copied\": %ld, \"small\": %ld, \"received\": %ld, \"sent\": %ld}\n", 3 * bytes, bytes,
           4 * bytes, 4 * bytes);
    return 0;
}
