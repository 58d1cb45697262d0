/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small, complete adapter over sequenced-packet sockets of the Unix domain, made to be spoilt. Without a
 * flaw (nothing.flaw.h) it passes the whole conformance suite; each other *.flaw.h defines one macro that
 * makes it wrong in one way. It claims nearly every capability, so that the suite's own tests are tested.
 *
 * One packet is one message: a head of 32 bytes, then the payload.
 */
#ifndef CADGE_BAD_BASE_H
#define CADGE_BAD_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

#include "cadge/fill.h"
#include "cadge/layer.h"

#define PAYLOAD_MAX     65536u
#define RMA_MAX         32768u
#define PEERS_MAX       8u
#define IOV_MAX_ENTRIES 8u
#define PENDING_MAX     256u
#define REGIONS_MAX     8u
#define DEPTH_CLAIMED   64u
#ifdef FLAW_QUEUE_ENTRIES
#define QUEUE_ENTRIES FLAW_QUEUE_ENTRIES
#else
#define QUEUE_ENTRIES DEPTH_CLAIMED
#endif
/* Answers to gets, fetch_adds and quiets queue behind the user's posts. */
#define QUEUE_ROOM (QUEUE_ENTRIES + PENDING_MAX + 64u)

enum packet_kind {
	PACKET_HELLO, /* a: slot at the receiver */
	PACKET_MESSAGE,
	PACKET_CALL,      /* a: call number, b: context id of the first caller, code: op */
	PACKET_REPLY,     /* a: call number, code */
	PACKET_PUT,       /* a: region, b: offset, code: 1 with a notification */
	PACKET_GET,       /* a: pending number, b: region << 48 | offset, code: bytes */
	PACKET_FETCH_ADD, /* a: pending number, b: region << 48 | offset, payload: addend */
	PACKET_SWAP,      /* a: pending number, b: region << 48 | offset, payload: expected, desired */
	PACKET_QUIET,     /* a: pending number */
	PACKET_RESULT,    /* a: pending number, payload */
};

struct packet_head {
	uint32_t kind;
	int32_t code;
	uint64_t a, b;
	uint64_t payload_bytes;
};

struct queued {
	struct packet_head head;
	struct cadge_iov iov[IOV_MAX_ENTRIES];
	uint32_t count;
	uint64_t token;
	bool event;  /* sink.sent when it is out */
	void *owned; /* freed when it is out */
};

/* An operation that ends with a packet of the peer. */
struct pending {
	bool used, is_call;
	uint32_t peer;
	uint64_t token;
	void *local;
	size_t local_bytes;
	struct cadge_iov out[IOV_MAX_ENTRIES];
	uint32_t out_count;
};

struct cadge_lend {
	struct cadge_lend *next; /* of the free ones */
	struct packet_head head;
	unsigned char payload[PAYLOAD_MAX];
};

struct cadge_region {
	unsigned char *base;
	uint64_t bytes;
};

/* A key, and what attach makes of it. */
struct cadge_remote {
	uint64_t region;
	uint64_t bytes;
	uint64_t for_id; /* context that may attach; 0: all */
	uint32_t rights; /* that were granted; after attach: that were intended */
};

/* A message that the caller fills in place. */
struct reserved {
	struct reserved *next;
	size_t bytes;
	unsigned char data[] __attribute__((aligned(8)));
};

struct cadge_chan {
	struct cadge_ctx *ctx;
	uint32_t peer;
	int fd; /* -1: not yet */
	uint64_t remote_id;
	struct sockaddr_un remote;
	uint32_t remote_slot;
	bool used, dials, up_reported, down, down_reported;
	struct queued *queue;
	uint32_t queue_first, queue_count, user_count;
	bool held; /* posts with MORE wait for flush */
	uint64_t posts, arrivals;
	struct cadge_lend *late; /* FLAW_SWAP_EVERY */
	struct reserved *reserved;
	uint32_t reserved_count;
};

struct cadge_ctx {
	uint64_t id;
	int listener;
	int strangers[PEERS_MAX]; /* accepted, HELLO not yet read; -1: none */
	bool block;
	uint64_t wishes_region;
	struct cadge_chan chans[PEERS_MAX];
	struct pending pending[PENDING_MAX];
	struct cadge_region regions[REGIONS_MAX];
	struct cadge_lend *free;
	uint64_t copies;
	int epoll; /* for event; -1: not made */
	char why[64];
};

/* send.c */
int packet_post(struct cadge_chan *chan, const struct packet_head *head, const struct cadge_iov *iov,
		uint32_t count, uint64_t token, bool event, bool hold);
int packet_owned(struct cadge_chan *chan, const struct packet_head *head, const void *payload, size_t bytes);
/* Sends what is queued. Events delivered. */
int queue_run(struct cadge_chan *chan, struct cadge_sink *sink);
void queue_drop(struct cadge_chan *chan);
void reserved_drop(struct cadge_chan *chan);
int base_reserve(struct cadge_chan *chan, size_t bytes, uint32_t flags, void **base_out);
int base_commit(struct cadge_chan *chan, void *base, size_t bytes, uint32_t flags, uint64_t token);
void base_cancel(struct cadge_chan *chan, void *base);
int base_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
	      uint64_t token);
int base_flush(struct cadge_chan *chan);
int base_call(struct cadge_chan *chan, uint32_t op, const struct cadge_iov *in_iov, uint32_t in_count,
	      const struct cadge_iov *out_iov, uint32_t out_count, uint32_t flags, uint64_t token);
int base_reply(struct cadge_ctx *ctx, const struct cadge_reply_to *reply_to, const struct cadge_iov *iov,
	       uint32_t count, uint32_t flags, uint64_t token);
int base_fail(struct cadge_ctx *ctx, const struct cadge_reply_to *reply_to, int code, uint32_t flags);
int base_delegate(struct cadge_chan *to, const struct cadge_reply_to *reply_to, uint32_t op,
		  const struct cadge_iov *iov, uint32_t count, uint32_t flags, uint64_t token);
int base_put(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *remote,
	     uint64_t offset_bytes, uint32_t flags, uint64_t token);
int base_get(struct cadge_chan *chan, void *local, size_t bytes, struct cadge_remote *remote,
	     uint64_t offset_bytes, uint32_t flags, uint64_t token);
int base_fetch_add(struct cadge_chan *chan, uint64_t addend, uint64_t *before_out,
		   struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token);
int base_compare_swap(struct cadge_chan *chan, uint64_t expected, uint64_t desired, uint64_t *before_out,
		      struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token);
int base_quiet(struct cadge_chan *chan, uint32_t flags, uint64_t token);

/* receive.c */
int base_poll(struct cadge_ctx *ctx, struct cadge_sink *sink);
int base_wait(struct cadge_ctx *ctx, uint64_t timeout_ns);
int base_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out);
void base_release(struct cadge_ctx *ctx, struct cadge_lend *lend);

#endif
