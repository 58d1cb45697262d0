/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of a session: what session.c (the slots) and handshake.c (how peers find each other) share.
 */
#ifndef CADGE_SOCKETS_SESSION_STATE_H
#define CADGE_SOCKETS_SESSION_STATE_H

#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "sockets/blocks.h"
#include "sockets/endpoint.h"
#include "sockets/session/session.h"
#include "sockets/stream.h"

enum {
	SOCK_PEERS_MAX = 1024,
	SOCK_UNIDENTIFIED_MAX =
		16,            /* accepted connections that never say who they are, beside those of peers */
	SOCK_HELLO_BYTES = 16, /* magic, slot, nonce */
};
/* How long a blocking recv sleeps at a time, see wait. */
#define SOCK_RECEIVE_TIMEOUT_NS UINT64_C(50000000)

enum chan_state {
	CHAN_DIALLING,  /* the kernel connects */
	CHAN_GREETING,  /* hello is sent, the welcome is not here yet */
	CHAN_EXPECTING, /* the peer will dial */
	CHAN_UP,
	CHAN_FAILED, /* the next poll reports it */
	CHAN_DOWN,
};

struct cadge_chan {
	struct cadge_ctx *ctx;
	uint32_t peer;
	enum chan_state state;
	int fd;
	struct sock_blob theirs;
	unsigned char welcome[SOCK_HELLO_BYTES];
	size_t welcome_bytes;
	struct sock_stream stream; /* from UP on */
};

/* An accepted connection whose hello has not come whole. */
struct accepted_peer {
	int fd;
	size_t hello_bytes;
	unsigned char hello[SOCK_HELLO_BYTES];
};

/* What we told a peer that it needs to reach us. */
struct slot {
	bool given;
	uint64_t nonce;
	struct cadge_chan *chan;
};

struct cadge_ctx {
	const struct sock_family *family;
	struct sock_settings settings;
	enum cadge_place place;
	enum cadge_wait_mode wait_mode;
	char device[64];
	struct sockaddr_storage bind_address; /* of dialling sockets; bytes 0: none */
	socklen_t bind_address_bytes;
	uint64_t message_bytes_max;
	uint32_t depth, peers;
	int listen_fd;
	unsigned char endpoint[SOCK_ENDPOINT_BYTES];
	struct slot *slots;             /* by peer */
	struct cadge_chan **up;         /* channels that are up, in any order */
	uint32_t up_count, unsettled;   /* unsettled: neither up nor down */
	struct accepted_peer *accepted; /* sock_accepted_max: all peers may come at once */
	uint32_t accepted_count;
	struct pollfd *pollfds;   /* sock_pollfds_max */
	struct cadge_watch watch; /* for event; made when it is first called */
	uint64_t epoch;           /* of the sockets: changes when one is opened */
	char why[128];            /* what ended the last channel that broke */
	struct sock_blocks blocks;
};

static inline uint32_t sock_accepted_max(const struct cadge_ctx *ctx)
{
	return ctx->peers + SOCK_UNIDENTIFIED_MAX;
}

/* Peers, guests, the listening socket, and one of the family's. */
static inline uint32_t sock_pollfds_max(const struct cadge_ctx *ctx)
{
	return ctx->peers + sock_accepted_max(ctx) + 2;
}

/*
 * Puts a socket on its way to the peer. DONE: connected or connecting; BUSY: the peer's backlog is full now,
 * try again; E_DOWN or another code: nothing was opened.
 */
int sock_handshake_dial(struct cadge_chan *chan);

/* Takes a channel out of those that are up. */
void sock_handshake_leave(struct cadge_ctx *ctx, const struct cadge_chan *chan);

/* The channel is broken: ends what waits in it, closes its socket, reports to the sink. Returns the number of
 * events. */
int sock_handshake_end(struct cadge_chan *chan, struct cadge_sink *sink, int code);

/* Goes on with the channels that are neither up nor down. Returns the number of events. */
int sock_handshake_settle(struct cadge_ctx *ctx, struct cadge_sink *sink);

/*
 * Adds to pollfds what the channels that are not up wait for; *timeout_ns_inout shrinks to when they want a poll in any
 * case. Returns the new number of pollfds.
 */
nfds_t sock_handshake_watch(struct cadge_ctx *ctx, nfds_t count, uint64_t *timeout_ns_inout);

#endif
