/* SPDX-License-Identifier: BSD-3-Clause */
/* A layer that does as it is told, faults included. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

#define QUEUE    4096u
#define PER_POLL 8u
#define RANGES   8u

struct fake_orders fake;
uint64_t fake_messages, fake_scattered, fake_buffers, fake_mem_regs, fake_held;
uint32_t fake_registered, fake_lent, fake_queued_most;
static uint32_t queued;

enum entry_kind { ENTRY_MESSAGE, ENTRY_SENT, ENTRY_CALL, ENTRY_REPLY, ENTRY_NOTE };

struct entry {
	enum entry_kind kind;
	uint8_t *data;
	size_t bytes;
	uint64_t token;
	struct cadge_iov place;
};

struct cadge_ctx {
	struct entry queue[QUEUE];
	uint32_t head, tail, polls;
	uint64_t operations, reserves;
	void *reserved; /* one at a time: whoever asks again has forgotten it */
	/* what is registered, fake_registered of them; the buffer of the last put or get */
	struct cadge_iov ranges[RANGES];
	const void *buffer;
	bool up_due;
};

struct cadge_chan {
	struct cadge_ctx *ctx;
};
struct cadge_region {
	int unused;
};
struct cadge_remote {
	uint8_t *base;
};

static struct cadge_ctx context;
static struct cadge_chan channel = {&context};
static struct cadge_remote remote;
static struct cadge_region region;

static bool due(uint32_t every)
{
	return every && context.operations % every == 0;
}

/* True when this operation is to be refused. Each counts once, however often it is tried. */
static bool busy(void)
{
	static uint64_t refused;

	if (fake.busy_every == 1 || context.tail - context.head >= QUEUE / 2)
		return true;
	if (fake.busy_every && (context.operations + 1) % fake.busy_every == 0 &&
	    refused != context.operations) {
		refused = context.operations;
		return true;
	}
	context.operations++;
	return false;
}

static struct entry *append(enum entry_kind kind, uint64_t token)
{
	struct entry *entry = &context.queue[context.tail++ % QUEUE];

	memset(entry, 0, sizeof(*entry));
	entry->kind = kind;
	entry->token = token;
	return entry;
}

static struct entry *append_data(enum entry_kind kind, const struct cadge_iov *iov, uint32_t count,
				 uint64_t token)
{
	struct entry *entry = append(kind, token);

	for (uint32_t i = 0; i < count; i++)
		entry->bytes += iov[i].bytes;
	entry->data = malloc(entry->bytes ? entry->bytes : 1);
	if (!entry->data)
		abort();
	for (uint32_t i = 0, at = 0; i < count; at += (uint32_t)iov[i].bytes, i++)
		if (iov[i].bytes)
			memcpy(entry->data + at, iov[i].base, iov[i].bytes);
	if (entry->bytes >= fake.flip_least && due(fake.flip_every) && entry->bytes > fake.flip_at)
		entry->data[fake.flip_at] ^= 0x10;
	fake_messages++;
	return entry;
}

static int fake_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	(void)args;
	memset(&context, 0, sizeof(context));
	fake_messages = fake_scattered = fake_buffers = fake_mem_regs = fake_held = 0;
	fake_registered = fake_lent = fake_queued_most = queued = 0;
	*ctx_out = &context;
	return CADGE_DONE;
}

static void fake_close(struct cadge_ctx *ctx)
{
	for (; ctx && ctx->head != ctx->tail; ctx->head++)
		free(ctx->queue[ctx->head % QUEUE].data);
	free(context.reserved);
	context.reserved = NULL;
}

static void fake_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits)
{
	(void)ctx;
	limits->caps = CADGE_CAP_SELF | CADGE_CAP_PUT | CADGE_CAP_GET | CADGE_CAP_FETCH_ADD |
		       CADGE_CAP_COMPARE_SWAP | CADGE_CAP_NOTIFY;
	limits->caps |= fake.unreliable ? 0 : CADGE_CAP_RELIABLE;
	limits->caps |= fake.unreliable || fake.unordered ? 0 : CADGE_CAP_ORDERED;
	limits->caps |= fake.native ? CADGE_CAP_RPC | CADGE_CAP_REPLY_LATER : 0;
	limits->caps |= fake.in_sink ? CADGE_CAP_POST_IN_SINK : 0;
	limits->caps |= fake.native && fake.in_sink ? CADGE_CAP_REPLY_IN_SINK : 0;
	limits->caps |= fake.lends ? CADGE_CAP_LEND : 0;
	limits->caps |= fake.reserve ? CADGE_CAP_RESERVE : 0;
	limits->caps |= fake.registers ? CADGE_CAP_MEM_REG : 0;
	limits->message_bytes_max = 1 << 20;
	limits->rma_bytes_max = 1 << 20;
	limits->depth_max = 64;
	limits->iov_max = 4;
	limits->short_path = limits->long_path = "copy";
}

static int fake_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes)
{
	(void)ctx, (void)peer, (void)blob;
	*bytes = 0;
	return CADGE_DONE;
}

static int fake_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
			struct cadge_chan **chan)
{
	(void)peer, (void)blob, (void)bytes;
	ctx->up_due = true;
	*chan = &channel;
	return CADGE_DONE;
}

static int fake_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	(void)ctx, (void)chan;
	return CADGE_DONE;
}

static int send_message(const struct cadge_iov *iov, uint32_t count, uint64_t token)
{
	if (busy())
		return CADGE_BUSY;
	if (!due(fake.drop_every))
		append_data(ENTRY_MESSAGE, iov, count, 0);
	if (due(fake.twice_every))
		append_data(ENTRY_MESSAGE, iov, count, 0);
	if (!fake.queued)
		return CADGE_DONE;
	append(ENTRY_SENT, token);
	if (++queued > fake_queued_most)
		fake_queued_most = queued;
	return CADGE_QUEUED;
}

static int fake_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		     uint64_t token)
{
	(void)chan, (void)flags;
	fake_scattered += count != 1 || (uintptr_t)iov[0].base % 64 != 0;
	return fake.reserve ? CADGE_E_ARGUMENT : send_message(iov, count, token);
}

static int fake_reserve(struct cadge_chan *chan, size_t bytes, uint32_t flags, void **base)
{
	(void)chan, (void)flags;
	if (context.reserved)
		return CADGE_E_ARGUMENT;
	if (fake.busy_every && ++context.reserves % (fake.busy_every + 1) == 0)
		return CADGE_BUSY;
	context.reserved = malloc(bytes ? bytes : 1);
	if (!context.reserved)
		abort();
	*base = context.reserved;
	return CADGE_DONE;
}

static void fake_cancel(struct cadge_chan *chan, void *base)
{
	(void)chan;
	free(base);
	context.reserved = NULL;
}

static int fake_commit(struct cadge_chan *chan, void *base, size_t bytes, uint32_t flags, uint64_t token)
{
	const struct cadge_iov iov = {.base = base, .bytes = bytes};
	int code;

	(void)flags;
	if (base != context.reserved)
		return CADGE_E_ARGUMENT;
	code = send_message(&iov, 1, token);
	if (code != CADGE_BUSY)
		fake_cancel(chan, base);
	return code;
}

static int fake_call(struct cadge_chan *chan, uint32_t op, const struct cadge_iov *in, uint32_t in_count,
		     const struct cadge_iov *out, uint32_t out_count, uint32_t flags, uint64_t token)
{
	struct entry *entry;

	(void)chan, (void)op, (void)flags;
	if (busy())
		return CADGE_BUSY;
	entry = append_data(ENTRY_CALL, in, in_count, token);
	if (out_count)
		entry->place = *out;
	return CADGE_QUEUED;
}

static int fake_reply(struct cadge_ctx *ctx, const struct cadge_reply_to *to, const struct cadge_iov *iov,
		      uint32_t count, uint32_t flags, uint64_t token)
{
	struct entry *entry;

	(void)ctx, (void)flags;
	if (busy())
		return CADGE_BUSY;
	entry = append_data(ENTRY_REPLY, iov, count, to->word[0]);
	entry->place.base = (void *)(uintptr_t)to->word[1];
	entry->place.bytes = (size_t)to->word[2];
	if (!fake.queued)
		return CADGE_DONE;
	append(ENTRY_SENT, token);
	return CADGE_QUEUED;
}

static int fake_fail(struct cadge_ctx *ctx, const struct cadge_reply_to *to, int code, uint32_t flags)
{
	(void)ctx, (void)to, (void)code, (void)flags;
	return CADGE_E_UNSUPPORTED;
}

static void deliver(struct entry *entry, struct cadge_sink *sink)
{
	const struct cadge_reply_to to = {
		{entry->token, (uintptr_t)entry->place.base, entry->place.bytes, 0}};
	const bool lends = fake.lends && (!fake.lends_most || entry->bytes <= fake.lends_most);
	struct cadge_lend *lend = lends ? (struct cadge_lend *)entry->data : NULL;
	enum cadge_keep keep = CADGE_TAKEN;

	switch (entry->kind) {
	case ENTRY_MESSAGE: keep = sink->recv(sink, 0, entry->data, entry->bytes, lend); break;
	case ENTRY_SENT:
		queued -= queued > 0;
		sink->sent(sink, 0, entry->token, CADGE_DONE);
		break;
	case ENTRY_NOTE: sink->notified(sink, 0, &region, entry->token, entry->bytes); break;
	case ENTRY_CALL: sink->call(sink, 0, 1, entry->data, entry->bytes, &to); break;
	case ENTRY_REPLY:
		if (entry->place.base) {
			memcpy(entry->place.base, entry->data, entry->bytes);
			sink->replied(sink, 0, entry->token, CADGE_DONE, CADGE_PLACED, NULL, entry->bytes,
				      NULL);
		} else {
			keep = sink->replied(sink, 0, entry->token, CADGE_DONE, CADGE_LENT, entry->data,
					     entry->bytes, lend);
		}
		break;
	}
	if (keep == CADGE_KEEP) {
		fake_held++;
		fake_lent++;
	} else {
		free(entry->data);
	}
}

static void fake_release(struct cadge_ctx *ctx, struct cadge_lend *lend)
{
	(void)ctx;
	/* whoever looks at it later sees that it is gone */
	*(uint8_t *)lend ^= 0xff;
	free(lend);
	fake_lent--;
}

static int fake_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	const uint32_t waiting = ctx->tail - ctx->head;
	int events = 0;

	if (fake.fail_after && ++ctx->polls > fake.fail_after)
		return CADGE_E_LIBRARY;
	if (ctx->up_due) {
		ctx->up_due = false;
		sink->up(sink, 0);
		return 1;
	}
	/* only what was there before: what callbacks post comes with the next poll */
	for (uint32_t i = 0; i < waiting && i < PER_POLL; i++, events++) {
		struct entry entry;

		if (fake.unordered) {
			/* the newest of what was there takes the place of the oldest */
			const uint32_t newest = ctx->head + (waiting - 1 - i);

			entry = ctx->queue[newest % QUEUE];
			ctx->queue[newest % QUEUE] = ctx->queue[ctx->head % QUEUE];
			ctx->head++;
		} else {
			entry = ctx->queue[ctx->head++ % QUEUE];
		}
		deliver(&entry, sink);
	}
	return events;
}

static int fake_path(struct cadge_chan *chan, struct cadge_path *path)
{
	(void)chan;
	path->medium = CADGE_MEDIUM_PROCESS;
	path->as_asked = 1;
	return CADGE_DONE;
}

static void fake_library(struct cadge_library *library)
{
	library->name = "fake";
	library->stated_version = "1";
	library->symbol = NULL;
}

static void fake_semantics(const struct cadge_ctx *ctx, struct cadge_semantics *semantics)
{
	(void)ctx;
	semantics->message = CADGE_PROGRESS_LIBRARY;
	semantics->put = semantics->get = semantics->fetch_add = semantics->compare_swap =
		CADGE_PROGRESS_DIRECT;
}

static int fake_expose(struct cadge_ctx *ctx, void *base, size_t bytes, uint32_t rights, uint32_t peer,
		       uint32_t flags, void *key, size_t *key_bytes, struct cadge_region **out)
{
	(void)ctx, (void)bytes, (void)rights, (void)peer, (void)flags;
	memcpy(key, &base, sizeof(base));
	*key_bytes = sizeof(base);
	*out = &region;
	return CADGE_DONE;
}

static void fake_unexpose(struct cadge_ctx *ctx, struct cadge_region *which)
{
	(void)ctx, (void)which;
}

static int fake_attach(struct cadge_chan *chan, const void *key, size_t bytes, uint32_t intent,
		       uint32_t flags, struct cadge_remote **out)
{
	(void)chan, (void)intent, (void)flags;
	if (bytes != sizeof(remote.base))
		return CADGE_E_ARGUMENT;
	memcpy(&remote.base, key, sizeof(remote.base));
	*out = &remote;
	return CADGE_DONE;
}

static void fake_detach(struct cadge_chan *chan, struct cadge_remote *which)
{
	(void)chan, (void)which;
}

static int finish(uint64_t token)
{
	if (!fake.queued)
		return CADGE_DONE;
	append(ENTRY_SENT, token);
	return CADGE_QUEUED;
}

static int fake_mem_reg(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	fake_mem_regs++;
	if (fake_registered == RANGES || (fake.reg_fails && fake_mem_regs % fake.reg_fails == 0))
		return CADGE_E_MEMORY;
	ctx->ranges[fake_registered++] = (struct cadge_iov){base, bytes};
	return CADGE_DONE;
}

static int fake_mem_dereg(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	for (uint32_t i = 0; i < fake_registered; i++)
		if (ctx->ranges[i].base == base && ctx->ranges[i].bytes == bytes) {
			ctx->ranges[i] = ctx->ranges[--fake_registered];
			return CADGE_DONE;
		}
	return CADGE_E_ARGUMENT;
}

/* Whether a buffer may be used: it has to lie in what is registered. */
static bool may_use(const void *buffer, size_t bytes)
{
	const uintptr_t from = (uintptr_t)buffer;

	fake_buffers += buffer != context.buffer;
	context.buffer = buffer;
	for (uint32_t i = 0; i < fake_registered; i++) {
		const uintptr_t base = (uintptr_t)context.ranges[i].base;

		if (from >= base && from + bytes <= base + context.ranges[i].bytes)
			return true;
	}
	return !fake.registers;
}

static int fake_put(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *to,
		    uint64_t offset, uint32_t flags, uint64_t token)
{
	(void)chan;
	if (!may_use(local, bytes))
		return CADGE_E_ARGUMENT;
	if (busy())
		return CADGE_BUSY;
	if (!due(fake.put_lost))
		memcpy(to->base + offset, local, bytes);
	if (flags & CADGE_NOTIFY && !due(fake.note_lost))
		append(ENTRY_NOTE, offset)->bytes = bytes;
	if (flags & CADGE_NOTIFY && due(fake.note_twice))
		append(ENTRY_NOTE, offset)->bytes = bytes;
	return finish(token);
}

static int fake_get(struct cadge_chan *chan, void *local, size_t bytes, struct cadge_remote *from,
		    uint64_t offset, uint32_t flags, uint64_t token)
{
	(void)chan, (void)flags;
	if (!may_use(local, bytes))
		return CADGE_E_ARGUMENT;
	if (busy())
		return CADGE_BUSY;
	memcpy(local, from->base + offset, bytes);
	if (due(fake.flip_every) && bytes > fake.flip_at)
		((uint8_t *)local)[fake.flip_at] ^= 0x10;
	return finish(token);
}

static int fake_fetch_add(struct cadge_chan *chan, uint64_t addend, uint64_t *before, struct cadge_remote *at,
			  uint64_t offset, uint32_t flags, uint64_t token)
{
	uint64_t value;

	(void)chan, (void)flags;
	if (busy())
		return CADGE_BUSY;
	memcpy(&value, at->base + offset, sizeof(value));
	*before = value;
	value += due(fake.add_twice) ? 2 * addend : addend;
	memcpy(at->base + offset, &value, sizeof(value));
	return finish(token);
}

static int fake_compare_swap(struct cadge_chan *chan, uint64_t expected, uint64_t desired, uint64_t *before,
			     struct cadge_remote *at, uint64_t offset, uint32_t flags, uint64_t token)
{
	(void)chan, (void)flags;
	if (busy())
		return CADGE_BUSY;
	memcpy(before, at->base + offset, sizeof(*before));
	if (*before == expected && !due(fake.swap_lost))
		memcpy(at->base + offset, &desired, sizeof(desired));
	return finish(token);
}

static int fake_quiet(struct cadge_chan *chan, uint32_t flags, uint64_t token)
{
	(void)chan, (void)flags;
	return busy() ? CADGE_BUSY : finish(token);
}

static void fake_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits)
{
	(void)ctx;
	traits->order = CADGE_ORDER_CHANNEL;
}

const struct cadge_layer *fake_layer(void)
{
	static const struct cadge_layer layer = {
		.abi = CADGE_ABI,
		.bytes = sizeof(layer),
		.name = "fake-self",
		.style = "fake",
		.substrate = "self",
		.caps = CADGE_CAP_SELF | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED | CADGE_CAP_POST_IN_SINK |
			CADGE_CAP_RPC | CADGE_CAP_REPLY_IN_SINK | CADGE_CAP_REPLY_LATER | CADGE_CAP_PUT |
			CADGE_CAP_GET | CADGE_CAP_FETCH_ADD | CADGE_CAP_COMPARE_SWAP | CADGE_CAP_RESERVE |
			CADGE_CAP_NOTIFY | CADGE_CAP_MEM_REG | CADGE_CAP_LEND,
		.open = fake_open,
		.close = fake_close,
		.limits = fake_limits,
		.address = fake_address,
		.connect = fake_connect,
		.disconnect = fake_disconnect,
		.post = fake_post,
		.poll = fake_poll,
		.describe_path = fake_path,
		.library = fake_library,
		.semantics = fake_semantics,
		.traits = fake_traits,
		.release = fake_release,
		.reserve = fake_reserve,
		.commit = fake_commit,
		.cancel = fake_cancel,
		.call = fake_call,
		.reply = fake_reply,
		.fail = fake_fail,
		.expose = fake_expose,
		.unexpose = fake_unexpose,
		.attach = fake_attach,
		.detach = fake_detach,
		.put = fake_put,
		.get = fake_get,
		.fetch_add = fake_fetch_add,
		.compare_swap = fake_compare_swap,
		.quiet = fake_quiet,
		.mem_reg = fake_mem_reg,
		.mem_dereg = fake_mem_dereg,
	};

	return &layer;
}
