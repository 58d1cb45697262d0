/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What adapters have in common besides their libraries: the checks and refusals of open, typed settings, the
 * capabilities that a context grants, the state of a channel, pools of operations, nonces, a descriptor for
 * event. Nothing here knows a library, and nothing has a policy.
 */
#ifndef CADGE_KIT_ADAPTER_H
#define CADGE_KIT_ADAPTER_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "cadge/fill.h"
#include "cadge/layer.h"

/* ---- open ---- */

/* Fills args->error as printf does and returns `code`. */
int cadge_refuse(const struct cadge_open_args *args, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * The refusals that open of every layer makes before it starts anything: a place, wait mode or memory kind
 * that `caps` do not have (E_UNSUPPORTED); no peer, more than peers_max, no depth, a setting that `options`
 * (may be NULL) do not name (E_ARGUMENT). DONE, or the code with a sentence in args->error.
 */
int cadge_open_check(const struct cadge_open_args *args, uint64_t caps, const struct cadge_option *options,
		     uint32_t peers_max);

/* What a context of this place and wait mode grants of a table's `caps`: the other places and, without block,
 * sleeping are gone. */
uint64_t cadge_caps_granted(uint64_t caps, enum cadge_place place, enum cadge_wait_mode wait_mode);

/*
 * Limits and traits as far as they follow from what was asked for and what is granted; the adapter changes
 * what is otherwise with it. Limits: one path for all sizes. Traits: the library's flow control, the kernel
 * wakes.
 */
struct cadge_limits cadge_limits_default(const struct cadge_open_args *args, uint64_t caps,
					 uint64_t message_bytes_max, uint32_t iov_max, const char *path);
struct cadge_traits cadge_traits_default(uint64_t granted, enum cadge_protection protection);

/* The slot `semantics` of a layer that has messages, which the target's library carries out, and no more. */
void cadge_semantics_of_messages(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out);

/* The least of what was asked for and what the adapter can. */
static inline uint64_t cadge_least(uint64_t asked, uint64_t most)
{
	return asked < most ? asked : most;
}

/* A random number from the kernel, never 0. DONE or E_LIBRARY. */
int cadge_nonce(uint64_t *nonce_out);

/* ---- the kernel's network (adapter_net.c) ---- */

/* The code of the contract that fits an errno of socket, bind, connect. */
int cadge_errno_code(int error);

/* E_TRANSPORT with a sentence where args->device is no network interface, else DONE. */
int cadge_device_check(const struct cadge_open_args *args);

/* args->address as a socket address, port 0. DONE, or E_TRANSPORT with the reason in args->error. */
int cadge_parse_address(const struct cadge_open_args *args, struct sockaddr_storage *address_out,
			socklen_t *address_bytes_out);

/* Gives an IPv4 or IPv6 socket address a port; other families have none. */
void cadge_set_port(struct sockaddr *address, uint16_t port);

/*
 * Tries the ports from `first` to `last` in turn, from 0 (any) where that is the range: try_port(arg, port) says E_PORT
 * where one is taken. Returns its last code. For a library that binds sockets itself, in open and later.
 */
typedef int (*cadge_port_fn)(void *arg, uint16_t port);
int cadge_try_ports(uint16_t first, uint16_t last, cadge_port_fn try_port, void *arg);

/*
 * Opens a non-blocking internet socket of `type` bound to `address`, at the first free port of the range; one of
 * SOCK_STREAM listens. DONE, or E_TRANSPORT, E_PORT, E_MEMORY, E_PERMISSION.
 */
int cadge_bind_port(uint16_t first, uint16_t last, const char *address, int type, int *fd_out);

/* The same with address and ports of args, and the reason in args->error. */
int cadge_bind_in_range(const struct cadge_open_args *args, int type, int *fd_out);

/* E_PORT with a sentence: none of the ports of args is free. */
int cadge_refuse_ports(const struct cadge_open_args *args);

/*
 * Fills medium, as_asked, asked, device and note of the adapter's own *path for a connected internet socket:
 * the interface comes from the kernel's routing table, not from what was asked. DONE or E_LIBRARY.
 */
int cadge_describe_route(int fd, enum cadge_place place, const char *device, struct cadge_path *path);

/* The kernel's release, static. */
const char *cadge_kernel_release(void);

/* ---- settings ---- */

/* The value of a setting, or `otherwise` where it was not given. */
const char *cadge_setting_of(const struct cadge_open_args *args, const char *name, const char *otherwise);

enum cadge_setting_kind {
	CADGE_SETTING_TEXT,   /* char[room] */
	CADGE_SETTING_NUMBER, /* uint64_t, least to most; stored times `unit` where that is not 0 */
	CADGE_SETTING_FLAG,   /* bool: yes or no */
};

/* Where the value of a setting goes: an offset into the adapter's own struct, whose defaults it has set. */
struct cadge_setting_rule {
	const char *name; /* NULL ends a table */
	enum cadge_setting_kind kind;
	size_t offset, room;
	uint64_t least, most, unit;
};

/*
 * Stores args->settings at `into`. Names without a rule are left to the adapter (cadge_open_check has refused
 * those that no option names). DONE, or E_ARGUMENT with a sentence in args->error.
 */
int cadge_settings_read(const struct cadge_open_args *args, const struct cadge_setting_rule *rules,
			void *into);

/* ---- the state of a channel ---- */

/* Zero: connected, and not met yet. What has happened, and what was reported to the sink. */
struct cadge_state {
	bool greeted;  /* our greeting has left */
	bool up;       /* both directions work, and the sink knows */
	bool broken;   /* the peer or the connection is gone */
	bool reported; /* and the sink knows */
};

/* Whether post may go on: DONE, BUSY before `up`, E_DOWN. */
static inline int cadge_usable(const struct cadge_state *state)
{
	return state->broken ? CADGE_E_DOWN : state->up ? CADGE_DONE : CADGE_BUSY;
}

/* Tells the sink once that the channel is up, or that it is down. Both return the number of events. */
static inline int cadge_report_up(struct cadge_state *state, struct cadge_sink *sink, uint32_t peer)
{
	if (state->up || state->broken)
		return 0;
	state->up = true;
	sink->up(sink, peer);
	return 1;
}

static inline int cadge_report_down(struct cadge_state *state, struct cadge_sink *sink, uint32_t peer)
{
	if (!state->broken || state->reported)
		return 0;
	state->reported = true;
	state->up = false;
	sink->down(sink, peer, CADGE_E_DOWN);
	return 1;
}

/* ---- pools ---- */

/*
 * A free list of structs that have a member `next`: what was given back last is taken first, while it is warm.
 * TAKE yields NULL where nothing is left.
 */
#define CADGE_POOL_TAKE(head)                                                                                \
	__extension__({                                                                                      \
		__typeof__(head) taken_ = (head);                                                            \
		if (taken_)                                                                                  \
			(head) = taken_->next;                                                               \
		taken_;                                                                                      \
	})
#define CADGE_POOL_GIVE(head, item) ((void)((item)->next = (head), (head) = (item)))

/* Takes `item` out of a list of the same kind. False: it is not in the list. */
#define CADGE_LIST_REMOVE(head, item)                                                                        \
	__extension__({                                                                                      \
		__typeof__(head) *at_ = &(head);                                                             \
		while (*at_ && *at_ != (item))                                                               \
			at_ = &(*at_)->next;                                                                 \
		const bool found_ = *at_ != NULL;                                                            \
		if (found_)                                                                                  \
			*at_ = (item)->next;                                                                 \
		found_;                                                                                      \
	})

/* ---- receives that are posted before their messages come ---- */

enum { CADGE_POSTED_MOST = 8 };

/*
 * How many of them to keep posted where the last message had so many bytes; half of these are posted at once, the others
 * when nothing else is to do. Messages take them in turn, so all their buffers pass through the processor's caches, and
 * eight of 1 MiB are more than these hold. A message that finds none waits in its library.
 */
static inline uint32_t cadge_posted_after(uint64_t message_bytes)
{
	return message_bytes > 65536 ? 2 : CADGE_POSTED_MOST;
}

/* ---- sleeping ---- */

/* ppoll for wait: until one of them is ready, timeout_ns, or a signal. DONE or E_LIBRARY. */
int cadge_sleep(struct pollfd *pollfds, nfds_t count, uint64_t timeout_ns);

/* An epoll descriptor that watches what the adapter's wait would poll. */
struct cadge_watch {
	int fd; /* -1: not made */
	struct pollfd *watched;
	nfds_t watched_count, room;
	uint64_t epoch;
};

/* For up to `room` descriptors at a time. DONE or E_MEMORY. */
int cadge_watch_open(struct cadge_watch *watch, nfds_t room);
void cadge_watch_close(struct cadge_watch *watch);
/*
 * Makes it watch these. `epoch` is any number that changes whenever one of the adapter's descriptors was
 * opened or closed: with the same epoch the same list costs no system call. DONE or E_LIBRARY.
 */
int cadge_watch_set(struct cadge_watch *watch, const struct pollfd *pollfds, nfds_t count, uint64_t epoch);

#endif
