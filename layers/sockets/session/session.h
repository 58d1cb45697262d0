/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slots that the stream layers share (sockets-tcp, sockets-unix; sockets-uring all but those that move bytes): contexts, the handshake of peers, poll and wait over
 * streams. Each has a listening socket; of two peers the one with the smaller endpoint dials. The dialler
 * says hello with the slot and the nonce of the address blob it was given; the listener drops whoever does
 * not know them, and answers with the nonce of the dialler's own blob.
 */
#ifndef CADGE_SOCKETS_SESSION_H
#define CADGE_SOCKETS_SESSION_H

#include "cadge/layer.h"
#include "sockets/settings.h"

/* What differs between them. */
struct sock_family {
	uint64_t caps;
	const struct cadge_option *options;
	/* Sizes of what completes cadge_ctx and cadge_chan, which stand at its front. */
	size_t ctx_bytes, chan_bytes;
	/* Opens a non-blocking listening socket. DONE or a code, with the reason in args->error. */
	int (*listen)(const struct cadge_open_args *args, int *fd_out);
	/* Sets the options of a connection before it is used. DONE or a code of the contract. */
	int (*tune)(const struct sock_settings *settings, int fd);
	/* Fills path_out, whose `bytes` is set and the rest zero. */
	int (*describe)(int fd, enum cadge_place place, const char *device, struct cadge_path *path_out);
	/* The channel's socket is connected: gets ready to move bytes. DONE or a code that ends the channel. */
	int (*start)(struct cadge_chan *chan);
	/*
	 * Nothing may touch the caller's memory any more. With a sink: ends what waits with sent(E_DOWN) and returns
	 * the number of events. NULL: frees what start made, started or not.
	 */
	int (*stop)(struct cadge_chan *chan, struct cadge_sink *sink);
};

int sock_session_open(const struct sock_family *family, const struct cadge_open_args *args,
		      struct cadge_ctx **ctx_out);

/* Slots as layer.h describes them. */
void sock_session_close(struct cadge_ctx *ctx);
void sock_session_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out);
int sock_session_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout);
int sock_session_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
			 struct cadge_chan **chan_out);
int sock_session_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan);
int sock_session_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		      uint64_t token);
int sock_session_poll(struct cadge_ctx *ctx, struct cadge_sink *sink);
int sock_session_wait(struct cadge_ctx *ctx, uint64_t timeout_ns);
int sock_session_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out);
void sock_session_release(struct cadge_ctx *ctx, struct cadge_lend *lend);
int sock_session_describe_path(struct cadge_chan *chan, struct cadge_path *path_out);
void sock_session_library(struct cadge_library *library_out);
void sock_session_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out);
const char *sock_session_why(const struct cadge_ctx *ctx);

/* Slots that all of them have. */
#define SOCK_SESSION_SLOTS                                                                                   \
	.abi = CADGE_ABI, .bytes = sizeof(struct cadge_layer), .style = "sockets",                           \
	.address = sock_session_address, .connect = sock_session_connect,                                    \
	.disconnect = sock_session_disconnect, .describe_path = sock_session_describe_path,                  \
	.semantics = cadge_semantics_of_messages, .traits = sock_session_traits,                             \
	.release = sock_session_release, .why = sock_session_why
/* And those of the two that call the kernel for each read and write. */
#define SOCK_STREAM_SLOTS                                                                                    \
	.close = sock_session_close, .limits = sock_session_limits, .post = sock_session_post,               \
	.poll = sock_session_poll, .library = sock_session_library, .wait = sock_session_wait,               \
	.event = sock_session_event

/* start and stop of those that call the kernel for each read and write. */
int sock_session_start(struct cadge_chan *chan);
int sock_session_stop(struct cadge_chan *chan, struct cadge_sink *sink);

#endif
