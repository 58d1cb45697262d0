/* SPDX-License-Identifier: BSD-3-Clause */
/* Long messages on PM: a request, a grant with the handle of a landing, remote writes, quiet, and the end. */
#include "pm/adapter.h"

/* ---- long messages: out ---- */

static void unlock_all(struct cadge_chan *chan)
{
	struct pm_out *out = &chan->out;

	for (uint32_t i = 0; i < CADGE_STYLE_IOV_MAX; i++)
		if (out->pins[i])
			pm_munlock(chan->ctx->pm, out->pins[i]);
	memset(out->pins, 0, sizeof(out->pins));
}

static int send_control(struct cadge_chan *chan, uint64_t head, const void *body, size_t bytes)
{
	uint8_t *packet =
		pm_get_send_buffer(chan->ctx->pm, PM_CHANNEL, chan->peer, PM_ADAPTER_HEAD_BYTES + bytes);

	if (!packet)
		return CADGE_BUSY;
	cadge_store64(packet, head);
	if (bytes)
		memcpy(packet + PM_ADAPTER_HEAD_BYTES, body, bytes);
	return pm_send(chan->ctx->pm, PM_CHANNEL, chan->peer, packet, PM_ADAPTER_HEAD_BYTES + bytes);
}

/* Quotas: what does not fit is tried again by the caller, unless it never fits. */
static int lock_all(struct cadge_chan *chan)
{
	struct pm_out *out = &chan->out;
	int code = CADGE_DONE;

	for (uint32_t i = 0; i < out->iov_count && code == CADGE_DONE; i++)
		if (out->iov[i].bytes)
			code = pm_mlock(chan->ctx->pm, PM_SEND, out->iov[i].base, out->iov[i].bytes,
					&out->pins[i]);
	return code;
}

int pm_long_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint64_t token)
{
	const uint64_t bytes = cadge_iov_bytes(iov, count);
	struct pm_out *out = &chan->out;
	int code;

	memcpy(out->iov, iov, count * sizeof(*iov));
	out->iov_count = count;
	out->iov_at = 0;
	out->offset_bytes = 0;
	out->token = token;
	out->waiting = 0;
	out->code = CADGE_DONE;
	code = lock_all(chan);
	if (code == CADGE_DONE)
		code = send_control(chan, bytes << PM_LENGTH_SHIFT | PM_ASK, NULL, 0);
	if (code != CADGE_DONE) {
		unlock_all(chan);
		return code;
	}
	out->phase = PM_ASKED;
	chan->ctx->unfinished++;
	return CADGE_QUEUED;
}

static void long_ended(struct cadge_chan *chan, int code)
{
	struct cadge_ctx *ctx = chan->ctx;
	struct pm_out *out = &chan->out;

	if (chan->staging_taken && out->iov_count == 1 && chan->staging <= (uint8_t *)out->iov[0].base &&
	    (uint8_t *)out->iov[0].base <= chan->staging + chan->staging_bytes)
		chan->staging_taken = false;
	unlock_all(chan);
	out->phase = PM_IDLE;
	ctx->unfinished--;
	ctx->events++;
	ctx->sink->sent(ctx->sink, chan->peer, out->token, code);
}

/* DONE: all of it was written, or is being written. */
static int write_on(struct cadge_chan *chan)
{
	const uint64_t most_bytes = cadge_wire_facts(pm_wire(chan->ctx->pm))->put_bytes_max;
	struct pm_out *out = &chan->out;

	for (; out->iov_at < out->iov_count; out->iov_at++) {
		struct cadge_iov *iov = &out->iov[out->iov_at];

		while (iov->bytes) {
			const size_t part = cadge_least(iov->bytes, most_bytes);
			int code = pm_write(chan->ctx->pm, chan->peer, out->remote, out->offset_bytes,
					    iov->base, part, PM_LONG_TOKEN);

			if (code == CADGE_BUSY || code < 0)
				return code;
			out->waiting += code == CADGE_QUEUED;
			out->offset_bytes += part;
			iov->base = (uint8_t *)iov->base + part;
			iov->bytes -= part;
		}
	}
	return CADGE_DONE;
}

/* Goes on with a message that was granted. DONE or an error: it has ended; QUEUED: waits; BUSY: no room. */
static int go_on(struct cadge_chan *chan)
{
	struct pm_out *out = &chan->out;
	int code = chan->state.broken ? CADGE_E_DOWN : out->code;

	if (code < 0)
		return code;
	if (out->phase == PM_WRITING) {
		code = write_on(chan);
		if (code == CADGE_DONE)
			code = pm_quiet(chan->ctx->pm, chan->peer, PM_LONG_TOKEN);
		if (code == CADGE_BUSY || code < 0)
			return code;
		out->waiting += code == CADGE_QUEUED;
		out->phase = PM_QUIETING;
	}
	if (out->phase == PM_ASKED || out->waiting)
		return CADGE_QUEUED;
	return send_control(chan, PM_END, NULL, 0);
}

/* ---- long messages: in ---- */

static int make_landing(struct cadge_chan *chan)
{
	struct pm *pm = chan->ctx->pm;

	if (chan->landing_bytes >= chan->incoming_bytes)
		return CADGE_DONE;
	if (chan->landing)
		pm_free(pm, chan->landing, chan->landing_bytes);
	chan->landing_bytes = PM_PAGE_BYTES;
	while (chan->landing_bytes < chan->incoming_bytes)
		chan->landing_bytes *= 2;
	chan->landing = pm_alloc(pm, chan->landing_bytes);
	if (chan->landing)
		return CADGE_DONE;
	chan->landing_bytes = 0;
	return CADGE_E_MEMORY;
}

/* DONE; BUSY: there is no room now. Without memory the sender waits. */
static int grant(struct cadge_chan *chan)
{
	uint8_t body[2048];
	struct cadge_blob_out out = {.at = body, .room_bytes = sizeof(body), .ok = true};
	int code = make_landing(chan);

	if (code == CADGE_DONE && !chan->landing_pin)
		code = pm_mlock(chan->ctx->pm, PM_RECEIVE, chan->landing, chan->landing_bytes,
				&chan->landing_pin);
	if (code != CADGE_DONE)
		return CADGE_BUSY;
	pm_handle(chan->landing_pin, &out);
	if (send_control(chan, PM_GRANT, body, out.used_bytes) == CADGE_BUSY)
		return CADGE_BUSY;
	chan->asked = false;
	chan->ctx->unfinished--;
	return CADGE_DONE;
}

static void on_ask(struct cadge_chan *chan, uint64_t bytes)
{
	if (chan->asked || chan->landing_pin || bytes > chan->ctx->asked.message_bytes_max)
		return; /* not a peer of ours */
	chan->incoming_bytes = bytes;
	chan->asked = true;
	chan->ctx->unfinished++;
}

static void on_grant(struct cadge_chan *chan, const uint8_t *body, size_t bytes)
{
	struct cadge_blob_in in = {.at = body, .left_bytes = bytes, .ok = true};
	struct pm_out *out = &chan->out;

	if (out->phase != PM_ASKED)
		return;
	out->phase = PM_WRITING;
	if (out->remote && pm_is_of(out->remote, in))
		return;
	if (out->remote)
		pm_detach(out->remote);
	out->remote = NULL;
	out->code = pm_attach(chan->ctx->pm, chan->peer, &in, &out->remote);
}

static void on_end(struct cadge_chan *chan)
{
	struct cadge_ctx *ctx = chan->ctx;

	if (!chan->landing_pin || chan->asked)
		return;
	pm_munlock(ctx->pm, chan->landing_pin);
	chan->landing_pin = NULL;
	ctx->events++;
	ctx->sink->recv(ctx->sink, chan->peer, chan->landing, chan->incoming_bytes, NULL);
}

void pm_long_arrived(struct cadge_chan *chan, uint64_t head, const uint8_t *body, size_t bytes)
{
	switch (head & PM_KIND_MASK) {
	case PM_ASK: on_ask(chan, head >> PM_LENGTH_SHIFT); break;
	case PM_GRANT: on_grant(chan, body, bytes); break;
	case PM_END: on_end(chan); break;
	default: break;
	}
}

void pm_long_go_on(struct cadge_ctx *ctx)
{
	ctx->stuck = false;
	for (uint32_t i = 0; i < ctx->peers; i++) {
		struct cadge_chan *chan = &ctx->chans[i];
		int code;

		if (chan->asked && !chan->state.broken && grant(chan) == CADGE_BUSY)
			ctx->stuck = true;
		if (chan->out.phase == PM_IDLE)
			continue;
		code = go_on(chan);
		ctx->stuck |= code == CADGE_BUSY;
		if (code == CADGE_DONE || code < 0)
			long_ended(chan, code);
	}
}

int pm_staging_take(struct cadge_chan *chan, size_t bytes, void **base_out)
{
	struct pm *pm = chan->ctx->pm;

	if (chan->staging_taken)
		return CADGE_BUSY;
	if (chan->staging_bytes < bytes) {
		if (chan->staging)
			pm_free(pm, chan->staging, chan->staging_bytes);
		chan->staging_bytes = (bytes / PM_PAGE_BYTES + 1) * PM_PAGE_BYTES;
		chan->staging = pm_alloc(pm, chan->staging_bytes);
		if (!chan->staging) {
			chan->staging_bytes = 0;
			return CADGE_E_MEMORY;
		}
	}
	chan->staging_taken = true;
	*base_out = chan->staging;
	return CADGE_DONE;
}

void pm_long_forget(struct cadge_chan *chan)
{
	struct cadge_ctx *ctx = chan->ctx;

	ctx->unfinished -= (chan->out.phase != PM_IDLE) + (uint32_t)chan->asked;
	unlock_all(chan);
	chan->out = (struct pm_out){.phase = PM_IDLE};
	chan->staging_taken = chan->asked = false;
	if (chan->landing_pin)
		pm_munlock(ctx->pm, chan->landing_pin);
	chan->landing_pin = NULL;
}
