/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose an event is, where one context has two flows. */
#include "traffic/demux.h"

#include <stdlib.h>
#include <string.h>

#include "traffic/payload.h"

#define TABLE_ALIGN 64u

static struct drv_port *port_of(const struct drv_demux *demux, uint64_t token)
{
	return demux->flows[(token & demux->mark) != 0];
}

DRV_INLINE bool is_for(struct drv_port *port, const enum drv_match match, const void *data, size_t bytes)
{
	uint64_t id;

	switch (match) {
	case DRV_MATCH_TRAILER: return drv_trailer_read(data, bytes, DRV_RPC_REPLY, &id);
	case DRV_MATCH_HEAD:
		return bytes >= DRV_HEAD_BYTES && drv_load64((const uint8_t *)data + 8) == port->match_word;
	case DRV_MATCH_SIZE:
		return bytes == port->match_bytes && (!port->matches || port->matches(port, data, bytes));
	case DRV_MATCH_FUNCTION: return port->matches(port, data, bytes);
	case DRV_MATCH_ALTERNATE:
	case DRV_MATCH_NONE: break;
	}
	return false;
}

/* Compiled for each rule of the first flow, so that it is not asked which; two calls are fewer instructions than a choice. */
#define RECEIVE(name, match)                                                                                 \
	static enum cadge_keep name(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,  \
				    struct cadge_lend *lend)                                                 \
	{                                                                                                    \
		const struct drv_demux *demux = (const struct drv_demux *)sink;                              \
		struct drv_port *first = demux->flows[0], *second = demux->flows[1];                         \
                                                                                                             \
		if (is_for(first, match, data, bytes))                                                       \
			return first->sink.recv(&first->sink, peer, data, bytes, lend);                      \
		return second->sink.recv(&second->sink, peer, data, bytes, lend);                            \
	}
#define CALL(name, match)                                                                                    \
	static void name(struct cadge_sink *sink, uint32_t peer, uint32_t op, const void *args,              \
			 size_t bytes, const struct cadge_reply_to *reply_to)                                \
	{                                                                                                    \
		const struct drv_demux *demux = (const struct drv_demux *)sink;                              \
		const bool first = is_for(demux->flows[0], match, args, bytes);                              \
		struct cadge_sink *to = &demux->flows[first ? 0 : 1]->sink;                                  \
                                                                                                             \
		to->call(to, peer, op, args, bytes, reply_to);                                               \
	}
RECEIVE(on_recv, DRV_MATCH_NONE)
RECEIVE(on_recv_by_trailer, DRV_MATCH_TRAILER)
RECEIVE(on_recv_by_head, DRV_MATCH_HEAD)
RECEIVE(on_recv_by_function, DRV_MATCH_FUNCTION)
CALL(on_call, DRV_MATCH_NONE)
CALL(on_call_by_size, DRV_MATCH_SIZE)
CALL(on_call_by_function, DRV_MATCH_FUNCTION)

static enum cadge_keep on_recv_alternate(struct cadge_sink *sink, uint32_t peer, const void *data,
					 size_t bytes, struct cadge_lend *lend)
{
	struct drv_demux *demux = (struct drv_demux *)sink;
	struct drv_port *next = demux->next[0];

	demux->next[0] = demux->next[1];
	demux->next[1] = next;
	return next->sink.recv(&next->sink, peer, data, bytes, lend);
}

/* What has another size is not asked about. */
static enum cadge_keep on_recv_by_size(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				       struct cadge_lend *lend)
{
	const struct drv_demux *demux = (const struct drv_demux *)sink;
	struct drv_port *first = demux->flows[0], *second = demux->flows[1];

	if (DRV_LIKELY(bytes != first->match_bytes))
		return second->sink.recv(&second->sink, peer, data, bytes, lend);
	return first->matches ? on_recv_by_function(sink, peer, data, bytes, lend)
			      : first->sink.recv(&first->sink, peer, data, bytes, lend);
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct cadge_sink *to = &port_of((struct drv_demux *)sink, token)->sink;

	to->sent(to, peer, token, code);
}

static enum cadge_keep on_replied(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code,
				  enum cadge_placement placement, const void *data, size_t bytes,
				  struct cadge_lend *lend)
{
	struct cadge_sink *to = &port_of((struct drv_demux *)sink, token)->sink;

	return to->replied(to, peer, token, code, placement, data, bytes, lend);
}

/* Of regions, which the end that answers exposes. */
static void on_notified(struct cadge_sink *sink, uint32_t peer, struct cadge_region *region,
			uint64_t offset_bytes, uint64_t bytes)
{
	struct cadge_sink *to = &((struct drv_demux *)sink)->flows[1]->sink;

	to->notified(to, peer, region, offset_bytes, bytes);
}

static bool matches(const struct drv_port *port, const void *data, size_t bytes)
{
	const struct drv_demux *demux = (const struct drv_demux *)port;

	return is_for(demux->flows[0], demux->flows[0]->match, data, bytes) ||
	       is_for(demux->flows[1], demux->flows[1]->match, data, bytes);
}

void drv_demux_start(struct drv_demux *demux, struct drv_engine *engine, struct drv_port *first,
		     struct drv_port *second, uint64_t mark)
{
	enum cadge_keep (*const receivers[])(struct cadge_sink *, uint32_t, const void *, size_t,
					     struct cadge_lend *) = {
		[DRV_MATCH_NONE] = on_recv,
		[DRV_MATCH_ALTERNATE] = on_recv_alternate,
		[DRV_MATCH_TRAILER] = on_recv_by_trailer,
		[DRV_MATCH_HEAD] = on_recv_by_head,
		[DRV_MATCH_SIZE] = on_recv_by_size,
		[DRV_MATCH_FUNCTION] = on_recv_by_function,
	};

	memset(demux, 0, sizeof(*demux));
	drv_port_start(&demux->port, engine);
	demux->port.sink.recv = receivers[first->match];
	demux->port.sink.sent = on_sent;
	/* requests are calls where replies are results: only flows of responders have any to distinguish */
	demux->port.sink.call = first->match == DRV_MATCH_SIZE       ? on_call_by_size
				: first->match == DRV_MATCH_FUNCTION ? on_call_by_function
								     : on_call;
	demux->port.sink.replied = on_replied;
	demux->port.sink.notified = on_notified;
	demux->port.matches = matches;
	if (first->match != DRV_MATCH_NONE || second->match != DRV_MATCH_NONE)
		demux->port.match = DRV_MATCH_FUNCTION;
	demux->flows[0] = first;
	demux->flows[1] = second;
	demux->next[0] = second;
	demux->next[1] = first;
	demux->mark = mark;
}

static int nothing_due(void *state, struct drv_fail *fail)
{
	(void)state, (void)fail;
	return 0;
}

/* All sinks of ours are ports, so that a requester's loop need not know that it shares its process. */
static int poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	struct drv_demux *demux = ((const struct drv_port *)sink)->engine->demux;
	const int events = demux->below_poll(ctx, &demux->port.sink);

	if (DRV_LIKELY(!demux->flows[1]->due) || !demux->drain(demux->state, &demux->fail))
		return events;
	demux->failed = true;
	return CADGE_E_LIBRARY;
}

int drv_demux_self(struct drv_demux *demux, struct drv_engine *engine, struct cadge_sink *requester,
		   struct cadge_sink *responder, int (*drain)(void *state, struct drv_fail *fail),
		   void *state, struct drv_fail *fail)
{
	drv_demux_start(demux, engine, (struct drv_port *)requester, (struct drv_port *)responder,
			DRV_TOKEN_RESPONDER);
	demux->table = drv_zeroed(TABLE_ALIGN, sizeof(*demux->table));
	if (!demux->table)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for a layer's table");
	demux->drain = drain ? drain : nothing_due;
	demux->state = state;
	demux->below = engine->layer;
	demux->below_poll = engine->layer->poll;
	*demux->table = *engine->layer;
	demux->table->poll = poll;
	engine->layer = demux->table;
	engine->demux = demux;
	engine->sink = &demux->port.sink;
	return 0;
}

void drv_demux_end(struct drv_demux *demux)
{
	struct drv_engine *engine = demux->port.engine;

	if (demux->below)
		engine->layer = demux->below;
	if (engine)
		engine->demux = NULL;
	free(demux->table);
	memset(demux, 0, sizeof(*demux));
}
