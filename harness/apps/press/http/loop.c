/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/http/loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BATCH 64

int press_loop_start(struct press_loop *loop)
{
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return loop->epoll_fd < 0 ? -1 : 0;
}

void press_loop_end(struct press_loop *loop)
{
	if (loop->epoll_fd >= 0)
		close(loop->epoll_fd);
	loop->epoll_fd = -1;
}

static int control(struct press_loop *loop, int what, struct press_watch *watch, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = watch};

	return epoll_ctl(loop->epoll_fd, what, watch->fd, &event);
}

int press_loop_add(struct press_loop *loop, struct press_watch *watch, uint32_t events)
{
	return control(loop, EPOLL_CTL_ADD, watch, events);
}

int press_loop_change(struct press_loop *loop, struct press_watch *watch, uint32_t events)
{
	return control(loop, EPOLL_CTL_MOD, watch, events);
}

void press_loop_remove(struct press_loop *loop, struct press_watch *watch)
{
	control(loop, EPOLL_CTL_DEL, watch, 0);
}

int press_loop_turn(struct press_loop *loop, uint64_t timeout_ns)
{
	const struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000),
					 .tv_nsec = (long)(timeout_ns % 1000000000)};
	struct epoll_event events[BATCH];
	/* epoll_pwait2(2) by its number: libc has it from 2.35 on, kernels from 5.11 */
	const int count = (int)syscall(SYS_epoll_pwait2, loop->epoll_fd, events, BATCH, &timeout, NULL, 0);

	if (count < 0)
		return errno == EINTR ? 0 : -1;
	for (int i = 0; i < count; i++) {
		struct press_watch *watch = events[i].data.ptr;

		watch->ready(watch, events[i].events);
	}
	return count;
}
