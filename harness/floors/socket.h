/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the floors on sockets share: one connected socket between the two endpoints, over loopback within a host and over
 * the data network between hosts.
 */
#ifndef CADGE_FLOOR_SOCKET_H
#define CADGE_FLOOR_SOCKET_H

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "loop.h"

struct floor_state {
	int fd;
	/* TCP: endpoint 1 takes connections from it, as long as the launch lasts */
	int listener;
	/* TCP: where endpoint 0 connects to */
	uint16_t port;
	bool tcp;
	/* TCP, endpoint 0: an attempt was given up, and the next one makes another connection */
	bool torn;
	/* of the message that is arriving */
	uint64_t received_bytes;
	/* flow: message */
	uint64_t next;
};

int sockets_open(struct drv_floor_run *run, bool tcp, struct drv_fail *fail);
int sockets_connect(struct drv_floor_run *run, struct drv_fail *fail);
int sockets_begin(struct drv_floor_loop *loop, struct drv_fail *fail);
bool sockets_settle(struct drv_floor_loop *loop);
/* TCP, endpoint 1: takes the connection that the other made for this attempt. 0 or -1. */
int sockets_accept(struct drv_floor_loop *loop);
void sockets_close(struct drv_floor_run *run);

void socket_note_failed(struct drv_floor_loop *loop, const char *what) __attribute__((cold, noinline));
/* A call failed, errno says how. Always -1. */
DRV_INLINE int socket_failed(struct drv_floor_loop *loop, const char *what)
{
	socket_note_failed(loop, what);
	return -1;
}
/* A socket that is full: waits a little for room. 0; 1: asked to stop (server); -1. */
int socket_room(struct drv_floor_loop *loop) __attribute__((cold, noinline));

DRV_INLINE bool socket_again(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* One pair of loops for each way of waiting. */
#define SOCKET_LOOPS(name, kind, block, lossy, flags)                                                        \
	DRV_INLINE int name##_receive(struct drv_floor_loop *loop, const uint8_t **data, size_t *bytes)      \
	{                                                                                                    \
		return kind##_receive(loop, data, bytes, flags);                                             \
	}                                                                                                    \
	static int name##_client(struct drv_floor_loop *loop)                                                \
	{                                                                                                    \
		return floor_client_loop(loop, block, lossy, kind##_send, name##_receive);                   \
	}                                                                                                    \
	static int name##_server(struct drv_floor_loop *loop)                                                \
	{                                                                                                    \
		return floor_server_loop(loop, block, kind##_send, name##_receive);                          \
	}

#endif
