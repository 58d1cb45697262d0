/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern overlap: how much of a transfer's time its caller has for work of its own. The caller sends a message, or asks
 * for one, computes for as long as the transfer usually takes, without calling the layer, and then polls until the
 * answer is there. In turn with it the same transfer while the caller does nothing but poll.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "caller.h"
#include "loss.h"
#include "message.h"
#include "pattern.h"

#define WAIT_NS   UINT64_C(10000000)
#define SETTLE_NS UINT64_C(500000000)
#define WINDOW_NS UINT64_C(100000)
/* nobody looks at a deadline while the caller works */
#define WORK_MAX_NS UINT64_C(1000000000)
/* of the message that asks, or that says that all is there */
#define SHORT_BYTES DRV_HEAD_BYTES

enum quantity { BUSY, PURE, POST, AVAILABLE };

static const char *const direction_words[] = {"out", "in", NULL};

struct parameters {
	uint64_t bytes, work_percent;
	uint32_t touch;
	enum { OUT, IN } direction;
};

static struct drv_exchange exchange_of(const struct drv_play *play)
{
	const struct parameters *parameters = play->parameters;
	const bool out = parameters->direction == OUT;

	return (struct drv_exchange){.form = DRV_FORM_BARE,
				     .request_bytes = out ? parameters->bytes : SHORT_BYTES,
				     .reply_bytes = out ? SHORT_BYTES : parameters->bytes,
				     .depth = 1,
				     .seed = play->seed,
				     .touch = (enum drv_touch)parameters->touch};
}

struct worker {
	/* first: callbacks get a pointer to it; at place self it is the sink of both sides */
	struct drv_port port;
	struct cadge_chan *chan;
	struct drv_exchange exchange;
	/* of the engine's pool: one request */
	uint8_t *request;
	bool reliable, lent, failed;
	/* this phase compares whole payloads, and which it is */
	bool full;
	uint64_t phase;
	/* of the next transfer, from 0 on; and when the answer to the latest came, in ticks; 0: not yet */
	uint64_t number, answered_at;
	/* ticks: to be computed; what a reading of the clock takes; when an answer is lost, over an unreliable layer */
	uint64_t work, read_cost, patience;
	uint32_t idle;
	uint64_t posted, key_sum, waits, lost, late;
	uint64_t checked, full_checked, mismatches;
	struct drv_warmup warmup;
	struct drv_fail fail;
	char mismatch[160];
	/* place self */
	struct drv_server server;
	bool plays_both;
};

static void __attribute__((cold, noinline)) note_mismatch(struct worker *worker, const char *what,
							  uint64_t number)
{
	if (!worker->mismatches++)
		snprintf(worker->mismatch, sizeof(worker->mismatch), "%s (%" PRIu64 ")", what, number);
}

/* Whether an answer to the latest request holds what its sender wrote. */
static bool is_whole(struct worker *worker, const void *data, size_t bytes, uint64_t key)
{
	const uint64_t seed = ~worker->exchange.seed;

	if (worker->full) {
		worker->full_checked++;
		return drv_body_holds(data, bytes, seed, worker->phase, key);
	}
	return worker->exchange.touch == DRV_TOUCH_NONE || drv_touch_read(data, bytes, seed, key);
}

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct worker *worker = (struct worker *)sink;
	uint64_t key;

	if (worker->plays_both && bytes >= DRV_HEAD_BYTES &&
	    drv_load64((const uint8_t *)data + 8) == worker->exchange.seed)
		return drv_server_on_recv(&worker->server.port.sink, peer, data, bytes, lend);
	if (DRV_UNLIKELY(bytes != worker->exchange.reply_bytes ||
			 drv_load64((const uint8_t *)data + 8) != ~worker->exchange.seed)) {
		note_mismatch(worker, "a message that is no answer, of so many bytes", bytes);
		return CADGE_TAKEN;
	}
	key = drv_load64(data);
	if (DRV_UNLIKELY(key + 1 != worker->number || worker->answered_at)) {
		if (worker->reliable || worker->late >= worker->lost)
			note_mismatch(worker, "an answer to no transfer outstanding", key);
		else
			worker->late++;
		return CADGE_TAKEN;
	}
	if (DRV_LIKELY(is_whole(worker, data, bytes, key)))
		worker->checked++;
	else
		note_mismatch(worker, "an answer that holds other bytes", key);
	worker->answered_at = drv_clock_now(&worker->port.engine->clock);
	return CADGE_TAKEN;
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct worker *worker = (struct worker *)sink;

	if (token & DRV_TOKEN_SERVER) {
		drv_server_on_sent(&worker->server.port.sink, peer, token, code);
		return;
	}
	if (DRV_UNLIKELY(token || !worker->lent)) {
		note_mismatch(worker, "a completion for a token that is not outstanding", token);
		return;
	}
	worker->lent = false;
	if (DRV_UNLIKELY(code < 0) && code != CADGE_E_LOST && !worker->failed) {
		worker->failed = true;
		drv_engine_fail("post", code, &worker->fail);
	}
}

/* Polls once; now and then looks around. In block mode it sleeps where nothing came. */
static int turn(struct worker *worker, struct drv_fail *fail)
{
	struct drv_engine *engine = worker->port.engine;
	const int events = engine->layer->poll(engine->ctx, &worker->port.sink);

	if (DRV_UNLIKELY(worker->plays_both) && drv_server_drain(&worker->server)) {
		*fail = worker->server.fail;
		return -1;
	}
	if (DRV_UNLIKELY(worker->failed)) {
		*fail = worker->fail;
		return -1;
	}
	if (DRV_UNLIKELY(events < 0))
		return drv_engine_fail("poll", events, fail);
	if (engine->block && events == 0) {
		worker->waits++;
		if (drv_engine_wait(engine, WAIT_NS, fail))
			return -1;
	} else if (DRV_LIKELY(++worker->idle & 63)) {
		return 0;
	}
	return drv_engine_look(engine, drv_clock_now(&engine->clock), NULL, fail);
}

/* Writes the request and hands it over. */
static int hand_over(struct worker *worker, struct drv_fail *fail)
{
	struct drv_engine *engine = worker->port.engine;
	struct drv_message message = {.at = worker->request,
				      .bytes = (size_t)worker->exchange.request_bytes,
				      .seed = worker->exchange.seed,
				      .key = worker->number,
				      .full = worker->full,
				      .touch = worker->exchange.touch != DRV_TOUCH_NONE,
				      .phase = worker->phase};
	int code;

	worker->answered_at = 0;
	worker->number++;
	while (DRV_UNLIKELY((code = drv_message_post(engine, worker->chan, &message, 0)) == CADGE_BUSY))
		if (turn(worker, fail))
			return -1;
	if (DRV_UNLIKELY(code < 0))
		return drv_engine_fail("post", code, fail);
	worker->lent = code == CADGE_QUEUED;
	worker->posted++;
	worker->key_sum += message.key;
	return 0;
}

struct spans {
	/* ticks: from before the request is written until the answer; until the request was handed over; of the work */
	uint64_t whole, post, work;
};

/* Computes, and does not call the layer. Returns for how long, with the readings of the clock at both ends. */
static uint64_t work(const struct worker *worker)
{
	const struct drv_clock *clock = &worker->port.engine->clock;
	const uint64_t begin = drv_clock_now(clock);
	uint64_t now;

	do
		now = drv_clock_now(clock);
	while (now - begin < worker->work);
	return now - begin + worker->read_cost;
}

/* One transfer and its answer. 1: the answer is lost; -1: *fail. Nothing is lent afterwards. */
static int transfer(struct worker *worker, bool works, struct spans *spans_out, struct drv_fail *fail)
{
	const struct drv_clock *clock = &worker->port.engine->clock;
	const uint64_t begin = drv_clock_now(clock);
	uint64_t sent, worked = 0;
	int lost = 0;

	if (hand_over(worker, fail))
		return -1;
	sent = drv_clock_now(clock);
	if (works)
		worked = work(worker);
	while (!worker->answered_at && !lost) {
		if (turn(worker, fail))
			return -1;
		lost = !worker->reliable && !worker->answered_at &&
		       drv_clock_now(clock) - sent > worker->patience + worked;
	}
	worker->lost += (uint64_t)lost;
	*spans_out = (struct spans){worker->answered_at - begin, sent - begin, worked};
	while (worker->lent)
		if (turn(worker, fail))
			return -1;
	return lost;
}

static int worker_start(struct worker *worker, struct drv_play *play, struct drv_fail *fail)
{
	struct drv_engine *engine = play->engine;

	drv_port_start(&worker->port, engine);
	worker->port.sink.recv = on_recv;
	worker->port.sink.sent = on_sent;
	worker->chan = engine->channels[0].chan;
	worker->exchange = exchange_of(play);
	worker->reliable = (engine->offer.both.caps & CADGE_CAP_RELIABLE) != 0;
	worker->read_cost = drv_clock_to_ticks(&engine->clock, engine->clock.read_cost_ns);
	worker->patience = drv_clock_to_ticks(&engine->clock, DRV_LOSS_MAX_NS);
	worker->request = drv_pool_take(engine, DRV_POOL_CLIENT,
					drv_memory_stride(worker->exchange.request_bytes), fail);
	play->engine->sink = &worker->port.sink;
	/* where it has worked the answer may be there */
	play->sleep = DRV_SLEEP_IF_WAITED;
	return worker->request && drv_record_samples(play->record, BUSY, fail) &&
			       drv_record_samples(play->record, PURE, fail) &&
			       drv_record_samples(play->record, POST, fail)
		       ? 0
		       : -1;
}

/* ---- the roles ---- */

static int prepare_client(struct drv_play *play, struct drv_fail *fail)
{
	return worker_start(play->state, play, fail);
}

static int prepare_self(struct drv_play *play, struct drv_fail *fail)
{
	struct worker *worker = play->state;

	if (drv_server_start(&worker->server, play->engine, exchange_of(play), fail))
		return -1;
	drv_server_phase(&worker->server, true, 1);
	worker->plays_both = true;
	return worker_start(worker, play, fail);
}

static int prepare_server(struct drv_play *play, struct drv_fail *fail)
{
	return drv_answerer_prepare(play, exchange_of(play), fail);
}

static void stop_client(struct drv_play *play)
{
	drv_server_stop(&((struct worker *)play->state)->server);
}

static int verify(struct drv_play *play, uint64_t serial, struct drv_fail *fail)
{
	struct worker *worker = play->state;
	struct spans ignored;
	int status;

	worker->full = true;
	worker->phase = serial;
	status = transfer(worker, false, &ignored, fail);
	worker->full = false;
	return status < 0 ? -1 : 0;
}

/* Finds how long a transfer usually takes. */
static int warmup(struct drv_play *play, uint64_t cap_ns, struct drv_fail *fail)
{
	struct worker *worker = play->state;
	const struct parameters *parameters = play->parameters;
	struct drv_samples *pure = play->record->values[PURE].samples;
	const struct drv_clock *clock = &play->engine->clock;
	struct spans spans = {0};
	uint64_t usual_ns;
	bool over = false;
	int status = 0;

	drv_warmup_start(&worker->warmup, drv_clock_now(clock), drv_clock_to_ticks(clock, WINDOW_NS),
			 drv_clock_to_ticks(clock, cap_ns));
	while (status >= 0 && !over) {
		status = transfer(worker, false, &spans, fail);
		over = status ? drv_warmup_expired(&worker->warmup, drv_clock_now(clock))
			      : drv_warmup_add(&worker->warmup, drv_clock_now(clock), spans.whole);
		if (!status)
			drv_sample(pure, drv_clock_to_ns(clock, spans.whole));
	}
	drv_record_warmup(play->record, &worker->warmup);
	usual_ns = drv_histogram_quantile(&pure->histogram, 500000);
	worker->work = drv_clock_to_ticks(clock, usual_ns) * parameters->work_percent / 100;
	worker->patience = drv_clock_to_ticks(clock, drv_loss_deadline_ns(usual_ns));
	if (status >= 0 && usual_ns * parameters->work_percent / 100 > WORK_MAX_NS)
		return drv_fail_set(fail, DRV_DEADLINE,
				    "a transfer usually takes %" PRIu64
				    " us here, so that the work during one would take more than a second",
				    usual_ns / 1000);
	/* its samples are of no use: the histogram becomes empty */
	return status < 0 || !drv_record_samples(play->record, PURE, fail) ? -1 : 0;
}

/* One transfer without work, and one with it. */
static int measure_once(struct worker *worker, struct drv_record *record, struct drv_fail *fail)
{
	const struct drv_clock *clock = &worker->port.engine->clock;
	struct spans spans;
	int status = transfer(worker, false, &spans, fail);

	if (status < 0)
		return -1;
	if (!status)
		drv_sample(record->values[PURE].samples, drv_clock_to_ns(clock, spans.whole));
	status = transfer(worker, true, &spans, fail);
	if (status)
		return status < 0 ? -1 : 0;
	record->operations++;
	drv_sample(record->values[BUSY].samples,
		   drv_clock_to_ns(clock, spans.whole > spans.work ? spans.whole - spans.work : 0));
	drv_sample(record->values[POST].samples, drv_clock_to_ns(clock, spans.post));
	return 0;
}

static double median(const struct drv_record *record, enum quantity quantity)
{
	return (double)drv_histogram_quantile(&record->values[quantity].samples->histogram, 500000);
}

static int measure(struct drv_play *play, struct drv_fail *fail)
{
	struct worker *worker = play->state;
	const struct drv_clock *clock = &play->engine->clock;
	const uint64_t begin = drv_clock_now(clock), span = drv_clock_to_ticks(clock, play->duration_ns);
	const uint64_t lost = worker->lost, late = worker->late;
	struct drv_record *record = play->record;

	do
		if (measure_once(worker, record, fail))
			return -1;
	while (drv_clock_now(clock) - begin < span);
	record->elapsed_ns = drv_clock_to_ns(clock, drv_clock_now(clock) - begin);
	record->bytes = record->operations * (worker->exchange.request_bytes + worker->exchange.reply_bytes);
	record->lost = worker->lost - lost;
	record->late = worker->late - late;
	if (record->operations && median(record, PURE) > 0)
		drv_record_fit(record, AVAILABLE,
			       100.0 * (1.0 - median(record, BUSY) / median(record, PURE)));
	return 0;
}

static bool settle(struct drv_play *play)
{
	struct worker *worker = play->state;
	struct drv_engine *engine = play->engine;
	const uint64_t until_ns = drv_now_ns() + SETTLE_NS;
	/* an answer may still be under way: a reliable channel is not clean then */
	const bool waits = worker->reliable && worker->posted > 0;

	while ((worker->lent || (waits && !worker->answered_at)) && !engine->down_code &&
	       drv_now_ns() < until_ns)
		if (engine->layer->poll(engine->ctx, &worker->port.sink) < 0 ||
		    (worker->plays_both && drv_server_drain(&worker->server)))
			return false;
	return !worker->lent && (worker->answered_at || !waits);
}

static void phase_client(struct drv_play *play, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	struct worker *worker = play->state;

	counts_out->posts = true;
	counts_out->posted = worker->posted;
	counts_out->posted_keys = worker->key_sum;
	counts_out->waits = worker->waits;
	counts_out->checked = worker->checked;
	counts_out->full_checked = worker->full_checked;
	counts_out->mismatches = worker->mismatches;
	memcpy(counts_out->mismatch, worker->mismatch, sizeof(counts_out->mismatch));
	if (!worker->plays_both)
		return;
	drv_intake_counts(&worker->server.intake, counts_out);
	drv_server_phase(&worker->server, phase->full, phase->serial);
}

static void needs(const void *at, struct drv_needs *needs_out)
{
	needs_out->message_bytes = ((const struct parameters *)at)->bytes;
}

static int negotiate(const void *at, const struct drv_offer *offer, struct drv_fail *fail)
{
	return drv_negotiate_message(((const struct parameters *)at)->bytes, "message", &offer->both, fail);
}

#define WORKER_ROLE                                                                                          \
	.acts = true, .state_bytes = sizeof(struct worker), .stop = stop_client, .verify = verify,           \
	.warmup = warmup, .measure = measure, .settle = settle, .phase = phase_client

static const struct drv_role self = {.name = "both", .prepare = prepare_self, WORKER_ROLE};

static const struct drv_pattern overlap = {
	.name = "overlap",
	.parameters_bytes = sizeof(struct parameters),
	.parameters =
		(const struct drv_parameter[]){
			{"bytes", DRV_INTEGER, offsetof(struct parameters, bytes), NULL},
			{"work_percent", DRV_INTEGER, offsetof(struct parameters, work_percent), NULL},
			{"touch", DRV_CHOICE, offsetof(struct parameters, touch), drv_touch_words},
			{"direction", DRV_CHOICE, offsetof(struct parameters, direction), direction_words},
			{.name = NULL},
		},
	.quantities = (const struct drv_quantity[]){[BUSY] = {"busy", DRV_HISTOGRAM},
						    [PURE] = {"pure", DRV_HISTOGRAM},
						    [POST] = {"post", DRV_HISTOGRAM},
						    [AVAILABLE] = {"available", DRV_FIT},
						    {.name = NULL}},
	.roles =
		(const struct drv_role[]){
			{.name = "client", .prepare = prepare_client, .channels_most = 1, WORKER_ROLE},
			{.name = "server", .prepare = prepare_server, .channels_most = 1, DRV_ANSWERER_ROLE},
			{.name = NULL},
		},
	.self = &self,
	.needs = needs,
	.negotiate = negotiate,
};
DRV_PATTERN(overlap);
