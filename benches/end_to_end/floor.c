/* The floor: epoll, one read, one write, no HTTP and no Python. No server on this machine can be cheaper than this.
 *
 *   floor PORT
 *
 * It answers 13 bytes to whatever it reads; a request that says "close" gets its connection closed.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHECK(call) do { if ((call) < 0) { perror(#call); exit(1); } } while (0)

static const char keep[] =
    "HTTP/1.1 200 OK\r\nServer: floor\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Type: text/plain\r\n"
    "Content-Length: 13\r\n\r\nHello, World!";
static const char last[] =
    "HTTP/1.1 200 OK\r\nServer: floor\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Type: text/plain\r\n"
    "Connection: close\r\nContent-Length: 13\r\n\r\nHello, World!";

static void answer(int connection)
{
    char request[8192];
    ssize_t length = read(connection, request, sizeof request);
    if (length <= 0) {
        close(connection);
        return;
    }
    int closes = memmem(request, (size_t)length, "close", 5) != NULL;
    ssize_t sent = closes ? write(connection, last, sizeof last - 1) : write(connection, keep, sizeof keep - 1);
    if (closes || sent < 0)
        close(connection);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: floor PORT\n");
        return 2;
    }
    int listener, poll, yes = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    CHECK(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes));
    CHECK(setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes));
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof address));
    CHECK(listen(listener, 2048));
    CHECK(poll = epoll_create1(0));
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, ready[256];
    CHECK(epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event));
    for (;;) {
        int count = epoll_wait(poll, ready, 256, -1);
        for (int n = 0; n < count; n++) {
            if (ready[n].data.fd != listener) {
                answer(ready[n].data.fd);
                continue;
            }
            int connection;
            while ((connection = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
                event.data.fd = connection;
                CHECK(epoll_ctl(poll, EPOLL_CTL_ADD, connection, &event));
            }
        }
    }
}
