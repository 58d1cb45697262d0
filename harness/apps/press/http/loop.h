/* SPDX-License-Identifier: BSD-3-Clause */
/* One event loop over epoll: descriptors, and what to do when they are ready. */
#ifndef PRESS_LOOP_H
#define PRESS_LOOP_H

#include <stdint.h>

struct press_watch {
	int fd;
	/* events as of epoll; it may end its own watch, and none of others */
	void (*ready)(struct press_watch *watch, uint32_t events);
};

struct press_loop {
	int epoll_fd;
};

/* 0, or -1 with errno. */
int press_loop_start(struct press_loop *loop);
void press_loop_end(struct press_loop *loop);

/* Begins to watch, for these events (EPOLLIN, EPOLLOUT), level-triggered. The watch is the caller's. 0, or -1 with errno. */
int press_loop_add(struct press_loop *loop, struct press_watch *watch, uint32_t events);
int press_loop_change(struct press_loop *loop, struct press_watch *watch, uint32_t events);
/* To be called before the descriptor is closed. */
void press_loop_remove(struct press_loop *loop, struct press_watch *watch);

/* Sleeps until something is ready, or for at most `timeout_ns`, and does it. How many were ready, or -1 with errno. */
int press_loop_turn(struct press_loop *loop, uint64_t timeout_ns);

#endif
