/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern overlap: how much of a transfer's time its caller has for work of its own. The caller sends a message, or asks
 * for one, computes for as long as the transfer usually takes, without calling the layer, and then polls until the
 * answer is there. In turn with it the same transfer while the caller does nothing but poll.
 */
#include "overlap.params.h"

#include <inttypes.h>

#include "traffic/asker.h"
#include "traffic/roles.h"
#include "traffic/loss.h"

/* nobody looks at a deadline while the caller works */
#define WORK_MAX_NS UINT64_C(1000000000)
/* of the message that asks, or that says that all is there */
#define SHORT_BYTES DRV_HEAD_BYTES

static struct drv_exchange exchange_of(const struct drv_play *play)
{
	const struct parameters *parameters = play->parameters;
	const bool out = parameters->direction == DIRECTION_OUT;

	return (struct drv_exchange){.form = DRV_FORM_BARE,
				     .request_bytes = out ? parameters->bytes : SHORT_BYTES,
				     .reply_bytes = out ? SHORT_BYTES : parameters->bytes,
				     .depth = 1,
				     .seed = play->seed,
				     .touch = (enum drv_touch)parameters->touch};
}

struct worker {
	/* first: callbacks get a pointer to it */
	struct drv_asker asker;
	struct drv_exchange exchange;
	/* of the next transfer, from 0 on */
	uint64_t number;
	/* ticks: to be computed; what a reading of the clock takes */
	uint64_t work, read_cost;
};

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct worker *worker = (struct worker *)sink;
	struct drv_asker *asker = &worker->asker;

	(void)peer, (void)lend;
	if (DRV_LIKELY(drv_asker_awaits(asker, data, bytes, worker->exchange.reply_bytes)))
		drv_asker_take(asker, data, bytes, asker->awaited);
	return CADGE_TAKEN;
}

struct spans {
	/* ticks: from before the request is written until the answer; until the request was handed over; of the work */
	uint64_t whole, post, work;
};

/* Computes, and does not call the layer. Returns for how long, with the readings of the clock at both ends. */
static uint64_t work(const struct worker *worker)
{
	const struct drv_clock *clock = &worker->asker.progress.port.engine->clock;
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
	const struct drv_clock *clock = &worker->asker.progress.port.engine->clock;
	const uint64_t begin = drv_clock_now(clock);
	uint64_t sent, worked = 0;
	int status;

	if (drv_ask(&worker->asker, 0, (size_t)worker->exchange.request_bytes, worker->number++, fail))
		return -1;
	sent = drv_clock_now(clock);
	if (works)
		worked = work(worker);
	status = drv_asker_await(&worker->asker, fail);
	*spans_out = (struct spans){worker->asker.answered_at - begin, sent - begin, worked};
	return status < 0 || drv_asker_reclaim(&worker->asker, fail) ? -1 : status;
}

static int prepare_client(struct drv_play *play, struct drv_fail *fail)
{
	struct worker *worker = play->state;
	const struct drv_exchange exchange = exchange_of(play);
	const struct drv_clock *clock = &play->engine->clock;

	if (drv_asker_start(&worker->asker, play, on_recv, 1, (size_t)exchange.request_bytes,
			    exchange.touch != DRV_TOUCH_NONE, fail))
		return -1;
	worker->exchange = exchange;
	worker->read_cost = drv_clock_to_ticks(clock, clock->read_cost_ns);
	/* where it has worked the answer may be there */
	play->sleep = DRV_SLEEP_IF_WAITED;
	return drv_record_samples(play->record, BUSY, fail) && drv_record_samples(play->record, PURE, fail) &&
			       drv_record_samples(play->record, POST, fail)
		       ? 0
		       : -1;
}

/* ---- the roles ---- */

static int prepare_server(struct drv_play *play, struct drv_fail *fail)
{
	return drv_answerer_prepare(play, exchange_of(play), fail);
}

static int verify(struct drv_play *play, uint64_t serial, struct drv_fail *fail)
{
	struct worker *worker = play->state;
	struct spans ignored;
	int status;

	drv_asker_phase(&worker->asker, true, serial);
	status = transfer(worker, false, &ignored, fail);
	drv_asker_phase(&worker->asker, false, serial);
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

	drv_warmup_start(&worker->asker.warmup, drv_clock_now(clock),
			 drv_clock_to_ticks(clock, DRV_ASKER_WINDOW_NS), drv_clock_to_ticks(clock, cap_ns));
	while (status >= 0 && !over) {
		status = transfer(worker, false, &spans, fail);
		over = status ? drv_warmup_expired(&worker->asker.warmup, drv_clock_now(clock))
			      : drv_warmup_add(&worker->asker.warmup, drv_clock_now(clock), spans.whole);
		if (!status)
			drv_sample(pure, drv_clock_to_ns(clock, spans.whole));
	}
	drv_record_warmup(play->record, &worker->asker.warmup);
	usual_ns = drv_histogram_quantile(&pure->histogram, 500000);
	worker->work = drv_clock_to_ticks(clock, usual_ns) * parameters->work_percent / 100;
	worker->asker.patience = drv_clock_to_ticks(clock, drv_loss_deadline_ns(usual_ns));
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
	const struct drv_clock *clock = &worker->asker.progress.port.engine->clock;
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
	const uint64_t begin = drv_clock_now(clock),
		       end = drv_engine_end(play->engine, begin, play->duration_ns);
	const uint64_t lost = worker->asker.lost, late = worker->asker.late;
	struct drv_record *record = play->record;

	do
		if (measure_once(worker, record, fail))
			return -1;
	while (drv_clock_now(clock) < end && record->operations < drv_engine_operations(play->engine));
	record->elapsed_ns = drv_clock_to_ns(clock, drv_clock_now(clock) - begin);
	record->bytes = record->operations * (worker->exchange.request_bytes + worker->exchange.reply_bytes);
	record->lost = worker->asker.lost - lost;
	record->late = worker->asker.late - late;
	if (record->operations && median(record, PURE) > 0)
		drv_record_fit(record, AVAILABLE,
			       100.0 * (1.0 - median(record, BUSY) / median(record, PURE)));
	return 0;
}

static bool settle(struct drv_play *play)
{
	return drv_asker_settle(&((struct worker *)play->state)->asker);
}

static void phase_client(struct drv_play *play, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	(void)phase;
	drv_asker_counts(&((struct worker *)play->state)->asker, counts_out);
}

static void needs(const void *at, struct drv_needs *needs_out)
{
	needs_out->message_bytes = ((const struct parameters *)at)->bytes;
}

#define WORKER_ROLE                                                                                          \
	.acts = true, .state_bytes = sizeof(struct worker), .verify = verify, .warmup = warmup,              \
	.measure = measure, .settle = settle, .phase = phase_client

static const struct drv_pattern overlap = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "client", .prepare = prepare_client, .channels_most = 1, WORKER_ROLE},
			{.name = "server", .prepare = prepare_server, .channels_most = 1, DRV_ANSWERER_ROLE},
			{.name = NULL},
		},
	.self = true,
	.needs = needs,
};
DRV_PATTERN(overlap);
