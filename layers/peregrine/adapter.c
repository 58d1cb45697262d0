/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See adapter.h. Handshake: each side calls HELLO with the nonce that the other's address blob gave to it; so
 * each learns which peer number a binding belongs to. A channel is up when our hello was answered and the
 * peer's has come.
 */
#include "peregrine/adapter.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/adapter.h"
#include "kit/bytes.h"
#include "peregrine/engine/pgr.h"

#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define HELLO               UINT32_C(0xfffffff0)
#define MESSAGE             UINT32_C(0xfffffff1)
#define OPS_END             HELLO /* procedures of the caller's own lie below */
#define DEPTH               64u
#define CLIENTS_MAX         65536u /* a binding that has ended is remembered for a while, as at-most-once demands */

_Static_assert(sizeof(struct pgr_iov) == sizeof(struct cadge_iov) &&
		       offsetof(struct pgr_iov, bytes) == offsetof(struct cadge_iov, bytes),
	       "an iov of ours is an iov of theirs");
_Static_assert(sizeof(struct pgr_token) == sizeof(struct cadge_reply_to), "so is a token");

/* A call, message or reply that is under way. */
struct op {
	struct op *next;
	struct cadge_ctx *ctx;
	uint64_t token;
	uint32_t peer, life; /* life: of the channel, when it began */
	bool placed;
};

struct cadge_chan {
	struct cadge_ctx *ctx;
	struct pgr_peer *to; /* NULL: not connected */
	uint32_t peer, life;
	uint64_t nonce_in, client; /* client: the peer's binding to us */
	bool greeted, answered, up, down;
	uint64_t hello; /* the nonce, while the hello is under way */
	uint8_t address[PGR_ADDRESS_BYTES];
	size_t address_bytes;
};

struct cadge_ctx {
	struct pgr *pgr;
	struct cadge_sink *sink;
	int events;
	uint32_t peers;
	const struct peregrine_wire *wire;
	enum cadge_place place;
	enum cadge_wait_mode wait_mode;
	uint64_t message_bytes_max;
	char device[64];
	bool memory; /* the wire is shared memory */
	bool lends;  /* and long messages are read in place */
	struct op *idle;
	struct op_block *blocks;
	struct cadge_watch watch; /* for event; made when it is first called */
	uint64_t epoch;           /* of the wire's descriptors */
	char why[192];            /* the last failure */
	struct cadge_chan chans[];
};

struct op_block {
	struct op_block *next;
	struct op ops[DEPTH];
};

const struct cadge_option peregrine_options[] = {
	{"off", "",
	 "optimisations switched off, joined by '+': gather, no_conversion, templates, no_thread_state, "
	 "in_place, early_copy; or all"},
	{"rto_min_us", "2000", "The shortest time-out before a packet is retransmitted."},
	{"give_up_ms", "5000", "How long a call waits for a server that does not answer."},
	{"in_place_bytes", "0",
	 "On shared memory: messages of so many bytes and more stay in the sender's memory and are read "
	 "there; "
	 "0: all are copied. With `touch: none` nothing of them moves, so that says nothing."},
	{NULL, NULL, NULL},
};

static int code_of(int code)
{
	if (code <= PGR_E_PROCEDURE_OWN)
		return code - PGR_E_PROCEDURE_OWN;
	switch (code) {
	case PGR_OK: return CADGE_DONE;
	case PGR_QUEUED: return CADGE_QUEUED;
	case PGR_BUSY: return CADGE_BUSY;
	case PGR_E_ARGUMENT:
	case PGR_E_FULL: return CADGE_E_ARGUMENT;
	case PGR_E_TOO_LARGE: return CADGE_E_TOO_LARGE;
	case PGR_E_MEMORY: return CADGE_E_MEMORY;
	case PGR_E_PERMISSION: return CADGE_E_PERMISSION;
	case PGR_E_PORT: return CADGE_E_PORT;
	case PGR_E_PROCEDURE: return CADGE_E_UNSUPPORTED;
	case PGR_E_WIRE: return CADGE_E_TRANSPORT;
	default: return CADGE_E_DOWN;
	}
}

/* ---- operations under way ---- */

static struct op *op_take(struct cadge_chan *chan, uint64_t token)
{
	struct cadge_ctx *ctx = chan->ctx;
	struct op *op = ctx->idle;

	if (UNLIKELY(!op)) {
		struct op_block *block = calloc(1, sizeof(*block));

		if (!block)
			return NULL;
		block->next = ctx->blocks;
		ctx->blocks = block;
		for (unsigned int i = 0; i < DEPTH; i++) {
			block->ops[i].ctx = ctx;
			CADGE_POOL_GIVE(ctx->idle, &block->ops[i]);
		}
		op = ctx->idle;
	}
	ctx->idle = op->next;
	op->token = token;
	op->peer = chan->peer;
	op->life = chan->life;
	return op;
}

/* Gives it back. Returns its channel, or NULL where that has ended meanwhile. */
static struct cadge_chan *op_end(struct op *op)
{
	struct cadge_ctx *ctx = op->ctx;
	struct cadge_chan *chan = &ctx->chans[op->peer];

	CADGE_POOL_GIVE(ctx->idle, op);
	return op->life == chan->life && chan->to ? chan : NULL;
}

/* The engine's words for a failure, and what the kernel said of a packet, if it refused one. */
static __attribute__((cold, noinline)) void note_why(struct cadge_ctx *ctx, int code)
{
	char refused[128];

	pgr_why(ctx->pgr, refused, sizeof(refused));
	snprintf(ctx->why, sizeof(ctx->why), "%s%s%s", pgr_code_name(code),
		 *refused ? "; the kernel refused a packet to " : "", refused);
}

/* What became of the channel when an operation failed. */
static void chan_failed(struct cadge_chan *chan, int code)
{
	struct cadge_ctx *ctx = chan->ctx;

	if (code != CADGE_E_DOWN || chan->down)
		return;
	chan->down = true;
	chan->up = false;
	ctx->events++;
	ctx->sink->down(ctx->sink, chan->peer, CADGE_E_DOWN);
}

static void on_posted(void *arg, int code, const void *result, size_t result_bytes)
{
	struct op *op = arg;
	const uint64_t token = op->token;
	struct cadge_chan *chan = op_end(op);

	(void)result, (void)result_bytes;
	if (UNLIKELY(!chan))
		return;
	if (UNLIKELY(code < 0))
		note_why(chan->ctx, code);
	code = code_of(code);
	chan->ctx->events++;
	chan->ctx->sink->sent(chan->ctx->sink, chan->peer, token, code);
	if (UNLIKELY(code < 0))
		chan_failed(chan, code);
}

static void on_replied(void *arg, int code, const void *result, size_t result_bytes)
{
	struct op *op = arg;
	const uint64_t token = op->token;
	const bool placed = op->placed;
	struct cadge_chan *chan = op_end(op);

	if (UNLIKELY(!chan))
		return;
	if (UNLIKELY(code < 0) && code > PGR_E_PROCEDURE_OWN) /* a handler's own answer is no failure */
		note_why(chan->ctx, code);
	code = code_of(code);
	chan->ctx->events++;
	chan->ctx->sink->replied(chan->ctx->sink, chan->peer, token, code, placed ? CADGE_PLACED : CADGE_LENT,
				 result, result_bytes, NULL);
	if (UNLIKELY(code == CADGE_E_DOWN))
		chan_failed(chan, code);
}

static void on_reply_sent(void *arg, int code)
{
	struct op *op = arg;
	const uint64_t token = op->token;
	struct cadge_chan *chan = op_end(op);

	if (!chan)
		return;
	if (UNLIKELY(code < 0))
		note_why(chan->ctx, code);
	chan->ctx->events++;
	chan->ctx->sink->sent(chan->ctx->sink, chan->peer, token, code_of(code));
}

/* ---- what peers call ---- */

static void go_up(struct cadge_chan *chan)
{
	if (chan->up || chan->down || !chan->to)
		return;
	chan->up = true;
	chan->ctx->events++;
	chan->ctx->sink->up(chan->ctx->sink, chan->peer);
}

/* Whose binding a call came by; NULL: nobody's that we know. */
static struct cadge_chan *caller(struct cadge_ctx *ctx, const struct pgr_request *request)
{
	struct cadge_chan *chan = request->client_data;

	if (__builtin_expect(chan && chan->client == request->client, 1))
		return chan->to ? chan : NULL;
	for (uint32_t i = 0; i < ctx->peers; i++) {
		chan = &ctx->chans[i];
		if (!chan->to || chan->client != request->client || !chan->greeted)
			continue;
		pgr_set_client_data(ctx->pgr, &request->token,
				    chan); /* the engine had forgotten it meanwhile */
		return chan;
	}
	return NULL;
}

/* A code of the contract as the answer of a procedure of ours. */
static int own_code(enum cadge_code code)
{
	return PGR_E_PROCEDURE_OWN + (int)code;
}

static void on_hello(void *arg, const struct pgr_request *request)
{
	struct cadge_ctx *ctx = arg;
	uint64_t nonce = 0;

	if (request->args_bytes == sizeof(nonce))
		memcpy(&nonce, request->args, sizeof(nonce));
	for (uint32_t i = 0; nonce && i < ctx->peers; i++) {
		struct cadge_chan *chan = &ctx->chans[i];

		if (chan->nonce_in != nonce)
			continue;
		chan->client = request->client;
		chan->greeted = true;
		pgr_set_client_data(ctx->pgr, &request->token, chan);
		pgr_reply(ctx->pgr, &request->token, NULL, 0, 0, NULL, NULL);
		if (chan->answered)
			go_up(chan);
		return;
	}
	pgr_fail(ctx->pgr, &request->token, own_code(CADGE_E_ARGUMENT));
}

static void on_message(void *arg, const struct pgr_request *request)
{
	struct cadge_ctx *ctx = arg;
	struct cadge_chan *chan = caller(ctx, request);

	if (UNLIKELY(!chan)) {
		pgr_fail(ctx->pgr, &request->token, own_code(CADGE_E_DOWN));
		return;
	}
	if (UNLIKELY(!chan->up))
		go_up(chan); /* who sends has our answer already */
	ctx->events++;
	ctx->sink->recv(ctx->sink, chan->peer, request->args, request->args_bytes, NULL);
	pgr_reply(ctx->pgr, &request->token, NULL, 0, PGR_MORE, NULL, NULL);
}

static void on_call(void *arg, const struct pgr_request *request)
{
	struct cadge_ctx *ctx = arg;
	struct cadge_chan *chan = caller(ctx, request);
	struct cadge_reply_to reply_to;

	if (UNLIKELY(!chan)) {
		pgr_fail(ctx->pgr, &request->token, own_code(CADGE_E_DOWN));
		return;
	}
	if (UNLIKELY(!chan->up))
		go_up(chan);
	memcpy(&reply_to, &request->token, sizeof(reply_to));
	reply_to.word[3] = chan->peer; /* for the event of a long reply */
	ctx->events++;
	ctx->sink->call(ctx->sink, chan->peer, request->procedure, request->args, request->args_bytes,
			&reply_to);
}

/* ---- operations ---- */

static int usable(const struct cadge_chan *chan)
{
	return chan->up ? CADGE_DONE : chan->down ? CADGE_E_DOWN : CADGE_BUSY;
}

int peregrine_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		   uint64_t token)
{
	struct op *op;
	int code;

	if (UNLIKELY(!chan->up))
		return usable(chan);
	op = op_take(chan, token);
	if (UNLIKELY(!op))
		return CADGE_E_MEMORY;
	code = pgr_call(chan->to, MESSAGE, NULL, (const struct pgr_iov *)(const void *)iov, count, NULL, 0,
			flags & CADGE_MORE ? PGR_MORE : 0, on_posted, op);
	if (UNLIKELY(code != PGR_QUEUED))
		op_end(op);
	return code_of(code);
}

int peregrine_call(struct cadge_chan *chan, uint32_t procedure, const struct cadge_iov *in_iov,
		   uint32_t in_count, const struct cadge_iov *out_iov, uint32_t out_count, uint32_t flags,
		   uint64_t token)
{
	struct op *op;
	int code;

	if (UNLIKELY(!chan->up))
		return usable(chan);
	if (UNLIKELY(procedure >= OPS_END))
		return CADGE_E_ARGUMENT;
	op = op_take(chan, token);
	if (UNLIKELY(!op))
		return CADGE_E_MEMORY;
	op->placed = out_count != 0;
	code = pgr_call(chan->to, procedure, NULL, (const struct pgr_iov *)(const void *)in_iov, in_count,
			(const struct pgr_iov *)(const void *)out_iov, out_count,
			flags & CADGE_MORE ? PGR_MORE : 0, on_replied, op);
	if (UNLIKELY(code != PGR_QUEUED))
		op_end(op);
	return code_of(code);
}

int peregrine_reply(struct cadge_ctx *ctx, const struct cadge_reply_to *reply_to, const struct cadge_iov *iov,
		    uint32_t count, uint32_t flags, uint64_t token)
{
	struct pgr_token to;
	struct op *op;
	int code;

	if (UNLIKELY(reply_to->word[3] >= ctx->peers))
		return CADGE_E_ARGUMENT;
	op = op_take(&ctx->chans[reply_to->word[3]], token);
	if (UNLIKELY(!op))
		return CADGE_E_MEMORY;
	memcpy(&to, reply_to, sizeof(to));
	code = pgr_reply(ctx->pgr, &to, (const struct pgr_iov *)(const void *)iov, count,
			 flags & CADGE_MORE ? PGR_MORE : 0, on_reply_sent, op);
	if (code != PGR_QUEUED)
		op_end(op);
	return code_of(code);
}

int peregrine_fail(struct cadge_ctx *ctx, const struct cadge_reply_to *reply_to, int code, uint32_t flags)
{
	struct pgr_token to;

	(void)flags;
	if (code >= 0)
		return CADGE_E_ARGUMENT;
	memcpy(&to, reply_to, sizeof(to));
	return code_of(pgr_fail(ctx->pgr, &to, PGR_E_PROCEDURE_OWN + code));
}

int peregrine_delegate(struct cadge_chan *to, const struct cadge_reply_to *reply_to, uint32_t procedure,
		       const struct cadge_iov *iov, uint32_t count, uint32_t flags, uint64_t token)
{
	struct pgr_token call;

	(void)flags, (void)token;
	if (!to->up)
		return usable(to);
	if (procedure >= OPS_END)
		return CADGE_E_ARGUMENT;
	memcpy(&call, reply_to, sizeof(call));
	return code_of(
		pgr_delegate(to->to, &call, procedure, (const struct pgr_iov *)(const void *)iov, count));
}

int peregrine_flush(struct cadge_chan *chan)
{
	pgr_flush(chan->ctx->pgr);
	return CADGE_DONE;
}

/* ---- progress ---- */

int peregrine_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	int code;

	ctx->sink = sink;
	ctx->events = 0;
	code = pgr_poll(ctx->pgr);
	ctx->sink = NULL;
	if (UNLIKELY(code < 0))
		note_why(ctx, code);
	return UNLIKELY(code < 0) ? code_of(code) : ctx->events;
}

int peregrine_wait(struct cadge_ctx *ctx, uint64_t timeout_ns)
{
	return code_of(pgr_wait(ctx->pgr, timeout_ns));
}

int peregrine_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out)
{
	struct pollfd pollfds[PGR_FDS];
	uint64_t due_ns;
	int fds[PGR_FDS], code = CADGE_DONE;
	nfds_t count = 0;

	if (ctx->wait_mode != CADGE_WAIT_BLOCK)
		return CADGE_E_UNSUPPORTED;
	code = code_of(pgr_watch(ctx->pgr, fds, &due_ns));
	if (code == CADGE_DONE && ctx->watch.fd < 0)
		code = cadge_watch_open(&ctx->watch, PGR_FDS);
	if (code != CADGE_DONE)
		return code;
	for (unsigned int i = 0; i < PGR_FDS; i++)
		if (fds[i] >= 0)
			pollfds[count++] = (struct pollfd){.fd = fds[i], .events = POLLIN};
	ctx->epoch += count > 1; /* the second one comes and goes */
	code = cadge_watch_set(&ctx->watch, pollfds, count, ctx->epoch);
	if (code < 0)
		return code;
	*fd_out = ctx->watch.fd;
	*due_ns_out = due_ns;
	return CADGE_DONE;
}

/* ---- handshake ---- */

int peregrine_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	struct cadge_blob_out out = {.at = blob, .room_bytes = *bytes_inout, .ok = true};
	uint8_t address[PGR_ADDRESS_BYTES];
	size_t bytes = sizeof(address);
	struct cadge_chan *chan;

	if (peer >= ctx->peers || pgr_address(ctx->pgr, address, &bytes) != PGR_OK)
		return CADGE_E_ARGUMENT;
	chan = &ctx->chans[peer];
	chan->nonce_in = pgr_nonce();
	chan->greeted = false;
	cadge_blob_u32(&out, (uint32_t)chan->nonce_in);
	cadge_blob_u32(&out, (uint32_t)(chan->nonce_in >> 32));
	cadge_blob_bytes(&out, address, bytes);
	if (!out.ok)
		return CADGE_E_TOO_LARGE;
	*bytes_inout = out.used_bytes;
	return CADGE_DONE;
}

static void on_hello_answered(void *arg, int code, const void *result, size_t result_bytes)
{
	struct op *op = arg;
	struct cadge_chan *chan = op_end(op);

	(void)result, (void)result_bytes;
	if (!chan)
		return;
	if (code != PGR_OK) {
		note_why(chan->ctx, code);
		chan_failed(chan, CADGE_E_DOWN);
		return;
	}
	chan->answered = true;
	if (chan->greeted)
		go_up(chan);
}

int peregrine_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
		      struct cadge_chan **chan_out)
{
	struct cadge_blob_in in = {.at = blob, .left_bytes = bytes, .ok = true};
	const uint64_t low = cadge_blob_take_u32(&in), high = cadge_blob_take_u32(&in);
	size_t address_bytes;
	const void *address = cadge_blob_take_bytes(&in, &address_bytes);
	struct cadge_chan *chan;
	struct pgr_iov iov;
	struct op *op;
	int code;

	if (!in.ok || in.left_bytes || peer >= ctx->peers || ctx->chans[peer].to)
		return CADGE_E_ARGUMENT;
	chan = &ctx->chans[peer];
	code = pgr_bind(ctx->pgr, address, address_bytes, &chan->to);
	if (code != PGR_OK)
		return code == PGR_E_WIRE ? CADGE_E_DOWN : code_of(code);
	memcpy(chan->address, address, address_bytes); /* fits, for it is bound */
	chan->address_bytes = address_bytes;
	chan->answered = chan->up = chan->down = false;
	chan->hello = high << 32 | low;
	iov = (struct pgr_iov){&chan->hello, sizeof(chan->hello)};
	op = op_take(chan, 0);
	code = op ? pgr_delegations_from(ctx->pgr, address, address_bytes, 1) : PGR_E_MEMORY;
	if (code == PGR_OK)
		code = pgr_call(chan->to, HELLO, NULL, &iov, 1, NULL, 0, 0, on_hello_answered, op);
	if (code != PGR_QUEUED) {
		if (op)
			op_end(op);
		pgr_delegations_from(ctx->pgr, address, address_bytes, 0);
		pgr_unbind(chan->to);
		chan->to = NULL;
		return code_of(code);
	}
	*chan_out = chan;
	return CADGE_DONE;
}

int peregrine_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	struct pgr_peer *to = chan->to;

	if (chan->ctx != ctx || !to)
		return CADGE_E_ARGUMENT;
	chan->life++; /* events of this life are dropped */
	chan->to = NULL;
	chan->up = chan->greeted = false;
	chan->client = 0;
	pgr_delegations_from(ctx->pgr, chan->address, chan->address_bytes, 0);
	pgr_unbind(to);
	return CADGE_DONE;
}

int peregrine_describe_path(struct cadge_chan *chan, struct cadge_path *path_out)
{
	struct cadge_ctx *ctx = chan->ctx;
	struct cadge_path path = {.bytes = sizeof(path), .as_asked = 1};

	if (!chan->up)
		return usable(chan);
	pgr_describe(ctx->pgr, path.used, sizeof(path.used));
	path.medium = ctx->place == CADGE_PLACE_SELF  ? CADGE_MEDIUM_PROCESS
		      : ctx->memory                   ? CADGE_MEDIUM_MEMORY
		      : ctx->place == CADGE_PLACE_NET ? CADGE_MEDIUM_NETWORK
						      : CADGE_MEDIUM_LOOPBACK;
	if (!ctx->memory) {
		snprintf(path.asked, sizeof(path.asked), "device %s", ctx->device);
		snprintf(path.device, sizeof(path.device), "%s", ctx->device);
	}
	cadge_fill(path_out, &path, sizeof(path));
	return CADGE_DONE;
}

void peregrine_library(struct cadge_library *library_out)
{
	const struct cadge_library library = {.name = "Peregrine engine",
					      .stated_version = PGR_VERSION_TEXT,
					      .symbol = (const void *)(uintptr_t)pgr_open};

	cadge_fill(library_out, &library, sizeof(library));
}

void peregrine_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out)
{
	const struct cadge_traits traits = {
		.protection = ctx->wire->protection,
		.control_transfer = CADGE_CONTROL_HANDLER,
		.flow = CADGE_FLOW_CREDITS,
		.waker = ctx->wait_mode == CADGE_WAIT_BLOCK ? ctx->wire->waker : CADGE_WAKER_NONE,
		.granule_bytes = (uint32_t)pgr_packet_bytes(ctx->pgr),
		.copies_on_send = ctx->wire->copies_on_send,
		.multiprogramming = 1,
	};

	cadge_fill(traits_out, &traits, sizeof(traits));
}

void peregrine_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out)
{
	const struct cadge_limits limits = {
		.caps = cadge_caps_granted(ctx->wire->caps, ctx->place, ctx->wait_mode) &
			~(ctx->lends ? 0 : CADGE_CAP_MEM_ALLOC),
		.message_bytes_max = ctx->message_bytes_max,
		.depth_max = DEPTH,
		.iov_max = PGR_IOV_MAX,
		.token_bytes = PGR_TOKEN_WIRE_BYTES,
		.wire_overhead_bytes = PGR_HEADER_WIRE_BYTES,
		.short_bytes_max = pgr_packet_bytes(ctx->pgr),
		.short_path = "one packet",
		.long_path =
			ctx->lends ? "blast of packets, then in the sender's memory" : "blast of packets",
	};

	cadge_fill(limits_out, &limits, sizeof(limits));
}

void peregrine_counters(const struct cadge_ctx *ctx,
			void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	struct pgr_stats stats = {.bytes = sizeof(stats)};

	pgr_stats(ctx->pgr, &stats);
	each(arg, "packets_sent", stats.packets_sent);
	each(arg, "packets_received", stats.packets_received);
	each(arg, "packets_dropped", stats.packets_dropped);
	each(arg, "retransmissions", stats.retransmissions);
	each(arg, "duplicates", stats.duplicates);
	each(arg, "challenges_sent", stats.challenges_sent);
	each(arg, "rejects_sent", stats.rejects_sent);
	each(arg, "rto_ns_now", stats.rto_ns);
}

const char *peregrine_why(const struct cadge_ctx *ctx)
{
	return ctx->why;
}

/* Only where long messages are to be read in it. */
void *peregrine_mem_alloc(struct cadge_ctx *ctx, size_t bytes)
{
	return ctx->lends ? pgr_alloc(ctx->pgr, bytes) : NULL;
}

void peregrine_mem_free(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	(void)bytes;
	pgr_free(ctx->pgr, base);
}

/* ---- life ---- */

void peregrine_close(struct cadge_ctx *ctx)
{
	if (!ctx)
		return;
	pgr_close(ctx->pgr);
	cadge_watch_close(&ctx->watch);
	while (ctx->blocks) {
		struct op_block *block = ctx->blocks;

		ctx->blocks = block->next;
		free(block);
	}
	free(ctx);
}

/* Names joined by '+'. */
static bool read_off(const char *text, uint32_t *off_out)
{
	static const char *const names[] = {"gather",          "no_conversion", "templates",
					    "no_thread_state", "in_place",      "early_copy"};
	uint32_t off = 0;

	if (strcmp(text, "all") == 0) {
		*off_out = PGR_OFF_ALL;
		return true;
	}
	while (*text) {
		const size_t length = strcspn(text, "+");
		unsigned int i = 0;

		while (i < 6 && (strlen(names[i]) != length || strncmp(names[i], text, length) != 0))
			i++;
		if (i == 6)
			return false;
		off |= 1u << i;
		text += length + (text[length] == '+');
	}
	*off_out = off;
	return true;
}

static const struct cadge_setting_rule rules[] = {
	{.name = "rto_min_us",
	 .kind = CADGE_SETTING_NUMBER,
	 .offset = offsetof(struct pgr_config, rto_min_ns),
	 .least = 1,
	 .most = 1000000,
	 .unit = 1000},
	{.name = "give_up_ms",
	 .kind = CADGE_SETTING_NUMBER,
	 .offset = offsetof(struct pgr_config, give_up_ns),
	 .least = 1,
	 .most = 1000000,
	 .unit = 1000000},
	{.name = "in_place_bytes",
	 .kind = CADGE_SETTING_NUMBER,
	 .offset = offsetof(struct pgr_config, in_place_bytes_min),
	 .least = 0,
	 .most = 1 << 30,
	 .unit = 1},
	{.name = NULL},
};

static int read_settings(const struct cadge_open_args *args, struct pgr_config *config)
{
	for (size_t i = 0; i < args->settings_count; i++)
		if (strcmp(args->settings[i].name, "off") == 0 &&
		    !read_off(args->settings[i].value, &config->off))
			return cadge_refuse(args, CADGE_E_ARGUMENT, "setting off cannot be '%.60s'",
					    args->settings[i].value);
	return cadge_settings_read(args, rules, config);
}

int peregrine_open(const struct peregrine_wire *wire, const struct cadge_open_args *args,
		   struct cadge_ctx **ctx_out)
{
	struct pgr_config config = {
		.bytes = sizeof(config),
		.wire = wire->name,
		.device = args->device,
		.address = args->address,
		.port_first = args->port_first,
		.port_last = args->port_last,
		.block = args->wait_mode == CADGE_WAIT_BLOCK,
		.peers_max = args->peers_max + 1,
		.clients_max = CLIENTS_MAX,
		.message_bytes_max = args->message_bytes_max,
		.give_up_ns = UINT64_C(5000000000),
		.error = args->error,
		.error_bytes = args->error_bytes,
	};
	struct cadge_ctx *ctx;
	int code = cadge_open_check(args, wire->caps, peregrine_options, CLIENTS_MAX);

	if (code == CADGE_DONE)
		code = read_settings(args, &config);
	if (code != CADGE_DONE)
		return code;
	if (config.in_place_bytes_min && !(wire->caps & CADGE_CAP_MEM_ALLOC))
		return cadge_refuse(args, CADGE_E_UNSUPPORTED,
				    "in_place_bytes: only peregrine-shm joins processes that can read each "
				    "other's memory");
	if (args->message_bytes_max > (UINT64_C(1) << 30) - 4096)
		return cadge_refuse(args, CADGE_E_ARGUMENT, "messages are shorter than 1 GiB");
	if (!config.message_bytes_max)
		config.message_bytes_max = 1;
	ctx = calloc(1, sizeof(*ctx) + args->peers_max * sizeof(ctx->chans[0]));
	if (!ctx)
		return cadge_refuse(args, CADGE_E_MEMORY, "out of memory");
	code = pgr_open(&config, &ctx->pgr);
	if (code != PGR_OK) {
		free(ctx);
		return code_of(code);
	}
	pgr_serve(ctx->pgr, HELLO, NULL, on_hello, ctx);
	pgr_serve(ctx->pgr, MESSAGE, NULL, on_message, ctx);
	pgr_serve(ctx->pgr, PGR_ANY_PROCEDURE, NULL, on_call, ctx);
	ctx->watch.fd = -1;
	ctx->peers = args->peers_max;
	ctx->place = args->place;
	ctx->wire = wire;
	ctx->wait_mode = args->wait_mode;
	ctx->memory = strcmp(wire->name, "shm") == 0;
	ctx->lends = config.in_place_bytes_min != 0;
	ctx->message_bytes_max = args->message_bytes_max;
	snprintf(ctx->device, sizeof(ctx->device), "%s", args->device);
	for (uint32_t i = 0; i < ctx->peers; i++) {
		ctx->chans[i].ctx = ctx;
		ctx->chans[i].peer = i;
	}
	*ctx_out = ctx;
	return CADGE_DONE;
}
