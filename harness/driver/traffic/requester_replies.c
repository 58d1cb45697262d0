/* SPDX-License-Identifier: BSD-3-Clause */
/* What arrives for the requester: its callbacks, and what a reply means. */
#include <string.h>

#include "traffic/requester_parts.h"

void drv_requester_stale(struct drv_requester *requester, const char *what, uint64_t number)
{
	struct drv_check *check = &requester->progress.check;

	if (!check->reliable && requester->late < requester->lost)
		requester->late++;
	else
		drv_check_wrong(check, "%s (%" PRIu64 "): nothing is outstanding that it is for", what,
				number);
}

/* The reply of a slot is here: the one time stamp of an iteration. */
DRV_INLINE void complete(struct drv_requester *requester, uint32_t index, const void *data, size_t bytes)
{
	const struct drv_engine *engine = requester->progress.port.engine;
	struct drv_check *check = &requester->progress.check;
	struct drv_op *op = &requester->ops[index];
	bool whole;
	uint64_t now;

	if (DRV_UNLIKELY(requester->copies) && DRV_LIKELY(bytes && bytes <= requester->exchange.reply_bytes))
		data = memcpy(op->result, data, bytes);
	whole = drv_check_body(check, data, bytes, op->key);
	now = drv_clock_now(&engine->clock);
	op->waiting = false;
	requester->completed++;
	requester->last = now;
	if (DRV_LIKELY(!requester->complete)) {
		drv_sample(requester->samples, drv_clock_to_ns(&engine->clock, now - op->start));
		if (DRV_UNLIKELY(now >= requester->end))
			requester->ending = true;
	} else if (!requester->complete(requester, op, now)) {
		requester->ending = true;
	}
	op->start = now;
	if (DRV_LIKELY(whole && bytes == requester->exchange.reply_bytes &&
		       drv_head_holds(data, bytes, check->seed, op->key)))
		check->checked++;
	else
		drv_check_wrong(check, "the reply to operation %" PRIu64 " has %zu bytes or a wrong %s",
				op->number, bytes, whole ? "head" : "body");
	if (DRV_LIKELY(!requester->progress.in_flight[index]))
		drv_requester_make_ready(requester, index);
}

/* The slot whose reply is named so; false: none waits for it. */
DRV_INLINE bool find_slot(const struct drv_requester *requester, uint64_t token, uint32_t *index_out)
{
	const uint32_t index = token & DRV_REQUESTER_SLOT_MASK;

	*index_out = index;
	return DRV_LIKELY(index < requester->exchange.depth && requester->ops[index].waiting &&
			  requester->ops[index].number == token >> DRV_REQUESTER_SLOT_BITS);
}

/* Bare messages have no identity but their place in the order, and from 1 byte on what they hold. */
static enum cadge_keep on_recv_bare(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				    struct cadge_lend *lend)
{
	struct drv_requester *requester = (struct drv_requester *)sink;
	const struct drv_check *check = &requester->progress.check;
	const struct drv_op *op = &requester->ops[0];

	(void)peer, (void)lend;
	if (DRV_UNLIKELY(!op->waiting || (!check->reliable && requester->late < requester->lost &&
					  !drv_head_holds(data, bytes, check->seed, op->key))))
		drv_requester_stale(requester, "an unexpected message", bytes);
	else
		complete(requester, 0, data, bytes);
	return CADGE_TAKEN;
}

/* The reply of a call is here, where nobody else takes it. */
DRV_INLINE enum cadge_keep take(struct drv_requester *requester, uint32_t index, const void *data,
				size_t bytes, struct cadge_lend *lend)
{
	if (DRV_UNLIKELY(requester->away))
		return drv_reply_thread_pass_on(requester, index, data, bytes, lend);
	complete(requester, index, data, bytes);
	return CADGE_TAKEN;
}

static enum cadge_keep on_recv_emulated(struct cadge_sink *sink, uint32_t peer, const void *data,
					size_t bytes, struct cadge_lend *lend)
{
	struct drv_requester *requester = (struct drv_requester *)sink;
	uint64_t token;
	uint32_t index;

	(void)peer;
	if (DRV_UNLIKELY(!drv_trailer_read(data, bytes, DRV_RPC_REPLY, &token)))
		drv_check_wrong(&requester->progress.check, "a message of %zu bytes is not a reply", bytes);
	else if (DRV_UNLIKELY(!find_slot(requester, token, &index)))
		drv_requester_stale(requester, "an unexpected reply", token >> DRV_REQUESTER_SLOT_BITS);
	else
		return take(requester, index, data, bytes - DRV_RPC_TRAILER_BYTES, lend);
	return CADGE_TAKEN;
}

static enum cadge_keep on_replied(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code,
				  enum cadge_placement placement, const void *data, size_t bytes,
				  struct cadge_lend *lend)
{
	struct drv_requester *requester = (struct drv_requester *)sink;
	uint32_t index;

	(void)peer;
	if (DRV_UNLIKELY(!find_slot(requester, token, &index))) {
		drv_requester_stale(requester, "an unexpected result", token >> DRV_REQUESTER_SLOT_BITS);
		return CADGE_TAKEN;
	}
	if (DRV_UNLIKELY(code < 0)) {
		requester->ops[index].waiting = false;
		requester->completed++;
		drv_requester_fail(requester, "call", code);
		return CADGE_TAKEN;
	}
	return take(requester, index, placement == CADGE_PLACED ? requester->ops[index].result : data, bytes,
		    lend);
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct drv_requester *requester = (struct drv_requester *)sink;
	const uint32_t index = token & DRV_REQUESTER_SLOT_MASK;
	bool *in_flight = requester->progress.in_flight;

	(void)peer;
	if (DRV_UNLIKELY(index >= requester->exchange.depth || !in_flight[index])) {
		drv_check_wrong(&requester->progress.check,
				"a completion for token %" PRIu64 " that is not outstanding", token);
		return;
	}
	in_flight[index] = false;
	requester->progress.in_flight_count--;
	if (!requester->ops[index].waiting) {
		if (DRV_UNLIKELY(requester->away))
			drv_reply_thread_free_again(requester, index);
		else
			drv_requester_make_ready(requester, index);
	}
	if (DRV_UNLIKELY(code < 0) && code != CADGE_E_LOST)
		drv_requester_fail(requester, "post", code);
}

/* Of two exchanges the trailers are alike but for the numbers. */
static bool matches_own(const struct drv_port *port, const void *data, size_t bytes)
{
	uint64_t token;

	return drv_trailer_read(data, bytes, DRV_RPC_REPLY, &token) &&
	       ((token & DRV_TOKEN_FLOW_1) != 0) == ((const struct drv_requester *)port)->exchange.flow_1;
}

void drv_requester_listen(struct drv_requester *requester)
{
	const enum drv_form form = requester->exchange.form;
	struct drv_port *port = &requester->progress.port;

	port->matches = matches_own;
	if (form == DRV_FORM_BARE)
		port->match = DRV_MATCH_ALTERNATE;
	else if (form == DRV_FORM_EMULATED)
		port->match = DRV_MATCH_TRAILER;
	port->sink.recv = form == DRV_FORM_BARE ? on_recv_bare : on_recv_emulated;
	port->sink.sent = on_sent;
	port->sink.replied = on_replied;
}
