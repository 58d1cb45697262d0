/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern overlap: how much of a transfer's time its caller has for work of its own. The caller sends a message, or asks
 * for one, computes for as long as the transfer usually takes, without calling the layer, and then polls until the
 * answer is there. In turn with it the same transfer while the caller does nothing but poll.
 */
#include "overlap.params.h"

#include <inttypes.h>

#include "traffic/ask.h"

/* nobody looks at a deadline while the caller works */
#define WORK_MAX_NS UINT64_C(1000000000)
/* of the message that asks, or that says that all is there */
#define SHORT_BYTES DRV_HEAD_BYTES

static struct drv_exchange exchange_of(const struct drv_role_run *run)
{
	const struct parameters *parameters = run->parameters;
	const bool out = parameters->direction == DIRECTION_OUT;

	return (struct drv_exchange){.form = DRV_FORM_BARE,
				     .request_bytes = out ? parameters->bytes : SHORT_BYTES,
				     .reply_bytes = out ? SHORT_BYTES : parameters->bytes,
				     .depth = 1,
				     .seed = run->seed,
				     .touch = (enum drv_touch)parameters->touch};
}

struct worker {
	/* first: callbacks get a pointer to it */
	struct drv_requester requester;
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
	struct drv_requester *requester = &worker->requester;

	(void)peer, (void)lend;
	if (DRV_LIKELY(drv_ask_awaits(requester, data, bytes, worker->exchange.reply_bytes)))
		drv_ask_take(requester, data, bytes, requester->awaited);
	return CADGE_TAKEN;
}

struct spans {
	/* ticks: from before the request is written until the answer; until the request was handed over; of the work, with the
	 * readings of the clock at both ends */
	uint64_t whole, post, work;
};

/* One transfer and its answer. 1: the answer is lost; -1: *fail. Nothing is lent afterwards. */
static int transfer(struct worker *worker, bool works, struct spans *spans_out, struct drv_fail *fail)
{
	const struct drv_clock *clock = &worker->requester.progress.port.engine->clock;
	const uint64_t begin = drv_clock_now(clock);
	uint64_t sent, worked = 0;
	int status;

	if (drv_ask(&worker->requester, 0, (size_t)worker->exchange.request_bytes, worker->number++, fail))
		return -1;
	sent = drv_clock_now(clock);
	if (works)
		worked = drv_clock_compute(clock, worker->work) + worker->read_cost;
	status = drv_ask_finish(&worker->requester, fail);
	*spans_out = (struct spans){worker->requester.answered_at - begin, sent - begin, worked};
	return status;
}

static int prepare_client(struct drv_role_run *run, struct drv_fail *fail)
{
	struct worker *worker = run->state;
	const struct drv_exchange exchange = exchange_of(run);
	const struct drv_clock *clock = &run->engine->clock;

	if (drv_ask_start(run, on_recv, 1, (size_t)exchange.request_bytes, exchange.touch != DRV_TOUCH_NONE,
			  fail))
		return -1;
	worker->exchange = exchange;
	worker->read_cost = drv_clock_to_ticks(clock, clock->read_cost_ns);
	/* where it has worked the answer may be there */
	run->sleep = DRV_SLEEP_IF_WAITED;
	return drv_record_samples(run->record, BUSY, fail) && drv_record_samples(run->record, PURE, fail) &&
			       drv_record_samples(run->record, POST, fail)
		       ? 0
		       : -1;
}

/* ---- the roles ---- */

static int prepare_server(struct drv_role_run *run, struct drv_fail *fail)
{
	return drv_responder_role_prepare(run, exchange_of(run), fail);
}

/* A transfer without work. */
static int transfer_alone(struct drv_role_run *run, uint64_t *span_out, struct drv_fail *fail)
{
	struct worker *worker = run->state;
	struct spans spans = {0};
	const int status = transfer(worker, false, &spans, fail);

	*span_out = spans.whole;
	if (!status && worker->requester.step != DRV_STEP_VERIFY)
		drv_sample(run->record->values[PURE].samples,
			   drv_clock_to_ns(&run->engine->clock, spans.whole));
	return status;
}

/* One without, and one with it: that one is the operation. */
static int transfer_both(struct drv_role_run *run, uint64_t *span_out, struct drv_fail *fail)
{
	const struct drv_clock *clock = &run->engine->clock;
	struct drv_value *values = run->record->values;
	struct spans spans;
	int status;

	if (transfer_alone(run, span_out, fail) < 0)
		return -1;
	status = transfer(run->state, true, &spans, fail);
	if (status)
		return status;
	drv_sample(values[BUSY].samples,
		   drv_clock_to_ns(clock, spans.whole > spans.work ? spans.whole - spans.work : 0));
	drv_sample(values[POST].samples, drv_clock_to_ns(clock, spans.post));
	return 0;
}

static int verify(struct drv_role_run *run, uint64_t serial, struct drv_fail *fail)
{
	return drv_ask_verify(run, serial, transfer_alone, fail);
}

/* Finds how long a transfer usually takes. */
static int warmup(struct drv_role_run *run, uint64_t cap_ns, struct drv_fail *fail)
{
	struct worker *worker = run->state;
	const struct parameters *parameters = run->parameters;
	const struct drv_clock *clock = &run->engine->clock;
	uint64_t usual_ns;

	/* what verification gave is of no use, and neither is what this gives: the histogram becomes empty */
	if (!drv_record_samples(run->record, PURE, fail) || drv_ask_warmup(run, cap_ns, transfer_alone, fail))
		return -1;
	usual_ns = drv_histogram_quantile(&run->record->values[PURE].samples->histogram, 500000);
	worker->work = drv_clock_to_ticks(clock, usual_ns) * parameters->work_percent / 100;
	worker->requester.patience = drv_clock_to_ticks(clock, drv_loss_deadline_ns(usual_ns));
	if (usual_ns * parameters->work_percent / 100 > WORK_MAX_NS)
		return drv_fail_set(fail, DRV_DEADLINE,
				    "a transfer usually takes %" PRIu64
				    " us here, so that the work during one would take more than a second",
				    usual_ns / 1000);
	/* its samples are of no use: the histogram becomes empty */
	return drv_record_samples(run->record, PURE, fail) ? 0 : -1;
}

static double median(const struct drv_record *record, enum quantity quantity)
{
	return (double)drv_histogram_quantile(&record->values[quantity].samples->histogram, 500000);
}

static int measure(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct worker *worker = run->state;
	struct drv_record *record = run->record;

	if (drv_ask_measure(run, transfer_both, fail))
		return -1;
	record->bytes = record->operations * (worker->exchange.request_bytes + worker->exchange.reply_bytes);
	if (record->operations && median(record, PURE) > 0)
		drv_record_fit(record, AVAILABLE,
			       100.0 * (1.0 - median(record, BUSY) / median(record, PURE)));
	return 0;
}

static void needs(const void *at, struct drv_needs *needs_out)
{
	needs_out->message_bytes = ((const struct parameters *)at)->bytes;
}

static const struct drv_pattern overlap = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "client",
			 .channels_most = 1,
			 .state_bytes = sizeof(struct worker),
			 .prepare = prepare_client,
			 .verify = verify,
			 .warmup = warmup,
			 .measure = measure,
			 DRV_ASK_ROLE},
			{.name = "server", .prepare = prepare_server, .channels_most = 1, DRV_RESPONDER_ROLE},
			{.name = NULL},
		},
	.self = true,
	.needs = needs,
};
DRV_PATTERN(overlap);
