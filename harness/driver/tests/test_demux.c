/* SPDX-License-Identifier: BSD-3-Clause */
/* Two flows on one context: whose an event is, and the work of one end in the polls of the other. */
#include <string.h>

#include "traffic/demux.h"
#include "launch/pattern.h"
#include "traffic/payload.h"
#include "tap.h"

#define WORD UINT64_C(0x0123456789abcdef)

struct flow {
	struct drv_port port;
	unsigned recv, sent, call, replied, notified;
};

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	(void)peer, (void)data, (void)bytes, (void)lend;
	((struct flow *)sink)->recv++;
	return CADGE_TAKEN;
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	(void)peer, (void)token, (void)code;
	((struct flow *)sink)->sent++;
}

static void on_call(struct cadge_sink *sink, uint32_t peer, uint32_t op, const void *args, size_t bytes,
		    const struct cadge_reply_to *reply_to)
{
	(void)peer, (void)op, (void)args, (void)bytes, (void)reply_to;
	((struct flow *)sink)->call++;
}

static enum cadge_keep on_replied(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code,
				  enum cadge_placement placement, const void *data, size_t bytes,
				  struct cadge_lend *lend)
{
	(void)peer, (void)token, (void)code, (void)placement, (void)data, (void)bytes, (void)lend;
	((struct flow *)sink)->replied++;
	return CADGE_TAKEN;
}

static void on_notified(struct cadge_sink *sink, uint32_t peer, struct cadge_region *region,
			uint64_t offset_bytes, uint64_t bytes)
{
	(void)peer, (void)region, (void)offset_bytes, (void)bytes;
	((struct flow *)sink)->notified++;
}

static void start(struct flow *flow, struct drv_engine *engine, enum drv_match match)
{
	memset(flow, 0, sizeof(*flow));
	drv_port_start(&flow->port, engine);
	flow->port.sink.recv = on_recv;
	flow->port.sink.sent = on_sent;
	flow->port.sink.call = on_call;
	flow->port.sink.replied = on_replied;
	flow->port.sink.notified = on_notified;
	flow->port.match = match;
}

static bool holds_word(const struct drv_port *port, const void *data, size_t bytes)
{
	(void)port, (void)bytes;
	return drv_load64((const uint8_t *)data + 8) == WORD;
}

static bool is_short(const struct drv_port *port, const void *data, size_t bytes)
{
	(void)port, (void)data;
	return bytes < 16;
}

/* How many of these messages the first of two flows gets. */
static unsigned first_gets(struct drv_demux *demux, const void *data, const size_t *bytes, size_t count)
{
	struct flow *first = (struct flow *)demux->flows[0], *second = (struct flow *)demux->flows[1];
	struct cadge_sink *sink = &demux->port.sink;

	first->recv = second->recv = 0;
	for (size_t i = 0; i < count; i++)
		sink->recv(sink, 0, data, bytes[i], NULL);
	return first->recv + second->recv == count ? first->recv : UINT32_MAX;
}

static void check_messages(struct drv_engine *engine)
{
	const size_t sizes[] = {0, 7, 8, 15, 16, 24, 32};
	struct flow first, second;
	struct drv_demux demux;
	uint64_t words[8] = {0};

	start(&second, engine, DRV_MATCH_NONE);
	start(&first, engine, DRV_MATCH_NONE);
	drv_demux_start(&demux, engine, &first.port, &second.port, DRV_TOKEN_RESPONDER);
	tap_ok(first_gets(&demux, words, sizes, 7) == 0, "a flow that matches nothing gets no message");
	start(&first, engine, DRV_MATCH_ALTERNATE);
	drv_demux_start(&demux, engine, &first.port, &second.port, DRV_TOKEN_RESPONDER);
	tap_ok(first_gets(&demux, words, sizes, 1) == 0 && first_gets(&demux, words, sizes, 1) == 1 &&
		       first_gets(&demux, words, sizes, 6) == 3,
	       "in turns the first message is the other flow's, and the second one's own");
	start(&first, engine, DRV_MATCH_TRAILER);
	drv_trailer_write((uint8_t *)words, 8, 1, DRV_RPC_REPLY);
	drv_demux_start(&demux, engine, &first.port, &second.port, DRV_TOKEN_RESPONDER);
	tap_ok(first_gets(&demux, words, sizes, 7) == 1, "by the trailer of a reply at the end");
	tap_ok(first_gets(&demux, words + 2, sizes, 4) == 0, "of messages that have room for it");
	drv_trailer_write((uint8_t *)words, 8, 1, DRV_RPC_REQUEST);
	tap_ok(first_gets(&demux, words, sizes, 7) == 0, "and not by that of a request");
	start(&first, engine, DRV_MATCH_HEAD);
	words[1] = first.port.match_word = WORD;
	drv_demux_start(&demux, engine, &first.port, &second.port, DRV_TOKEN_RESPONDER);
	tap_ok(first_gets(&demux, words, sizes, 7) == 3, "by the second half of a head");
	start(&first, engine, DRV_MATCH_SIZE);
	first.port.match_bytes = 16;
	drv_demux_start(&demux, engine, &first.port, &second.port, DRV_TOKEN_RESPONDER);
	tap_ok(first_gets(&demux, words, sizes, 7) == 1, "by a size");
	first.port.matches = holds_word;
	tap_ok(first_gets(&demux, words, sizes, 7) == 1 && first_gets(&demux, words + 2, sizes, 5) == 0,
	       "and of that size as the flow says");
	demux.port.sink.call(&demux.port.sink, 0, 1, words, 8, NULL);
	demux.port.sink.call(&demux.port.sink, 0, 1, words, 16, NULL);
	tap_ok(first.call == 1 && second.call == 1, "so with calls");
	start(&first, engine, DRV_MATCH_FUNCTION);
	first.port.matches = is_short;
	drv_demux_start(&demux, engine, &first.port, &second.port, DRV_TOKEN_RESPONDER);
	tap_ok(first_gets(&demux, words, sizes, 7) == 4, "as the flow says");
	demux.port.sink.call(&demux.port.sink, 0, 1, words, 8, NULL);
	demux.port.sink.call(&demux.port.sink, 0, 1, words, 16, NULL);
	tap_ok(first.call == 1 && second.call == 2, "so with calls");
}

static void check_tokens(struct drv_engine *engine)
{
	const uint64_t bit = UINT64_C(1) << 62;
	struct flow first, second;
	struct drv_demux demux;
	struct cadge_sink *sink = &demux.port.sink;

	start(&first, engine, DRV_MATCH_NONE);
	start(&second, engine, DRV_MATCH_NONE);
	drv_demux_start(&demux, engine, &first.port, &second.port, bit);
	sink->sent(sink, 0, 5, CADGE_DONE);
	sink->sent(sink, 0, DRV_TOKEN_RESPONDER | 5, CADGE_DONE);
	sink->sent(sink, 0, bit | 5, CADGE_DONE);
	sink->replied(sink, 0, 5, CADGE_DONE, CADGE_PLACED, NULL, 0, NULL);
	sink->replied(sink, 0, bit | 5, CADGE_DONE, CADGE_PLACED, NULL, 0, NULL);
	sink->notified(sink, 0, NULL, 0, 8);
	sink->call(sink, 0, 1, NULL, 0, NULL);
	tap_ok(first.sent == 2 && second.sent == 1 && first.replied == 1 && second.replied == 1,
	       "the mark of a token says whose it is");
	tap_ok(!first.notified && second.notified == 1 && !first.call && second.call == 1,
	       "regions and calls are the second flow's");
}

/* ---- place self ---- */

static struct cadge_sink *polled;
static int poll_gives;
static unsigned drained;
static bool drain_fails;

static int poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	(void)ctx;
	polled = sink;
	return poll_gives;
}

static int drain(void *state, struct drv_fail *fail)
{
	(void)state;
	drained++;
	return drain_fails ? drv_fail_set(fail, DRV_MEMORY, "none left") : 0;
}

static void check_self(struct drv_engine *engine)
{
	static const struct cadge_layer layer = {.poll = poll};
	struct flow first, second;
	struct drv_demux demux = {.failed = false};
	struct drv_fail fail;

	engine->layer = &layer;
	drv_demux_end(&demux);
	tap_ok(engine->layer == &layer, "to end what was not begun is legal");
	start(&first, engine, DRV_MATCH_NONE);
	start(&second, engine, DRV_MATCH_NONE);
	tap_ok(!drv_demux_self(&demux, engine, &first.port.sink, &second.port.sink, drain, NULL, &fail) &&
		       engine->sink == &demux.port.sink,
	       "it is the engine's sink");
	poll_gives = 3;
	tap_ok(engine->layer->poll(NULL, &first.port.sink) == 3 && polled == &demux.port.sink && drained == 1,
	       "whichever sink a loop polls with, and the other end does what is due");
	second.port.due = false;
	tap_ok(engine->layer->poll(NULL, engine->sink) == 3 && drained == 1, "but not where nothing is due");
	second.port.due = drain_fails = true;
	tap_ok(engine->layer->poll(NULL, engine->sink) < 0 && demux.failed && demux.fail.reason == DRV_MEMORY,
	       "what fails there fails the poll, and is kept");
	drain_fails = false;
	poll_gives = CADGE_E_DOWN;
	tap_ok(engine->layer->poll(NULL, engine->sink) == CADGE_E_DOWN,
	       "a poll that fails says its own code");
	drv_demux_end(&demux);
	tap_ok(engine->layer == &layer && !engine->demux, "after its end the layer is called itself");
	tap_ok(!drv_demux_self(&demux, engine, &first.port.sink, &second.port.sink, NULL, NULL, &fail) &&
		       engine->layer->poll(NULL, engine->sink) == CADGE_E_DOWN,
	       "an end that never has anything to do is not asked");
	drv_demux_end(&demux);
}

int main(void)
{
	struct drv_engine engine = {.self = true};

	check_messages(&engine);
	check_tokens(&engine);
	check_self(&engine);
	return tap_done();
}
