/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern loss: calls over messages that may be lost, each sent again until its answer is there. The client sends a
 * request again whenever a timeout has passed without its answer; the server executes each request once, and answers
 * one that it has executed already without doing so again. What losses cost, and that no call is executed twice or
 * never, is measured over any layer: what is lost is up to the layer, or to a shim around it.
 */
#include "loss.params.h"

#include <inttypes.h>

#include "traffic/ask.h"

/* buffers: a request that is sent again leaves from one that is not lent */
#define REQUESTS 2u

/* ---- the answering side ---- */

struct receiver {
	/* first: callbacks get a pointer to it */
	struct drv_responder responder;
	/* of the latest request that was executed */
	uint64_t executed;
	/* requests that came again */
	uint64_t repeated, repeated_before;
};

static enum cadge_keep receiver_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data,
					size_t bytes, struct cadge_lend *lend)
{
	struct receiver *receiver = (struct receiver *)sink;
	struct drv_check *check = &receiver->responder.lines->check;
	const uint64_t word = bytes < DRV_HEAD_BYTES ? 0 : drv_load64((const uint8_t *)data + 8);
	uint64_t number;

	(void)peer, (void)lend;
	if (DRV_UNLIKELY(bytes != receiver->responder.answer_bytes ||
			 (word != check->seed && !drv_check_phased(check, word)))) {
		drv_check_wrong(check, "a message of %zu bytes that is no request", bytes);
		return CADGE_TAKEN;
	}
	number = drv_load64(data);
	if (DRV_LIKELY(number == receiver->executed + 1)) {
		drv_check_take(check, data, bytes);
		receiver->executed = number;
	} else if (number == receiver->executed) {
		receiver->repeated++;
	} else if (number < receiver->executed) {
		return CADGE_TAKEN; /* stale: the client has its answer */
	} else {
		drv_check_wrong(check, "request %" PRIu64 " came after %" PRIu64, number, receiver->executed);
		return CADGE_TAKEN;
	}
	drv_responder_due_latest(&receiver->responder, number);
	return CADGE_TAKEN;
}

/* ---- the calling side ---- */

struct loss {
	/* first: callbacks get a pointer to it */
	struct drv_requester requester;
	size_t bytes;
	/* of the call in progress */
	uint64_t number;
	/* ticks */
	uint64_t timeout;
	/* since the attempt began, and when it last calmed down */
	uint64_t retransmits, calm_at;
};

static enum cadge_keep caller_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				      struct cadge_lend *lend)
{
	struct loss *loss = (struct loss *)sink;
	struct drv_check *check = &loss->requester.progress.check;
	uint64_t number;

	(void)peer, (void)lend;
	if (DRV_UNLIKELY(bytes != loss->bytes || drv_load64((const uint8_t *)data + 8) != check->seed)) {
		drv_check_wrong(check, "a message of %zu bytes that is no answer", bytes);
		return CADGE_TAKEN;
	}
	number = drv_load64(data);
	if (DRV_UNLIKELY(number > loss->number)) {
		drv_check_wrong(check, "an answer to a call that was not made (%" PRIu64 ")", number);
	} else if (DRV_LIKELY(number == loss->number && !loss->requester.answered_at)) {
		if (DRV_LIKELY(drv_check_body(check, data, bytes, number)))
			check->checked++;
		else
			drv_check_wrong(check, "an answer that holds other bytes (%" PRIu64 ")", number);
		loss->requester.answered_at = drv_clock_now(&loss->requester.progress.port.engine->clock);
	}
	/* else a call that was sent again is answered again */
	return CADGE_TAKEN;
}

static int turn(struct loss *loss, uint64_t sleep_ns, struct drv_fail *fail)
{
	return drv_progress_turn(&loss->requester.progress, sleep_ns, fail);
}

/* Sends the request of the call in progress, from a buffer that is not lent. */
static int send(struct loss *loss, struct drv_fail *fail)
{
	struct drv_requester *requester = &loss->requester;
	struct drv_engine *engine = requester->progress.port.engine;

	for (;;) {
		uint32_t index = 0;
		int code = CADGE_BUSY;

		while (index < REQUESTS && requester->progress.in_flight[index])
			index++;
		if (index < REQUESTS) {
			struct drv_message *message =
				drv_ask_message(requester, index, loss->bytes, loss->number);

			code = drv_message_post(engine, requester->ops[index].chan, message, index);
		}
		if (DRV_LIKELY(code >= 0 && code != CADGE_BUSY)) {
			drv_progress_set(&requester->progress, index, code);
			return 0;
		}
		if (DRV_UNLIKELY(code < 0))
			return drv_engine_fail("post", code, fail);
		/* an answer to what was sent before may come meanwhile */
		if (turn(loss, DRV_PROGRESS_WAIT_NS, fail))
			return -1;
		if (requester->answered_at)
			return 0;
	}
}

struct call {
	/* ticks from before the request is written until its answer */
	uint64_t span;
	/* how often it was sent */
	uint64_t sends;
};

/* One call: sent until it is answered. The deadline of the attempt ends it otherwise. */
static int call(struct loss *loss, struct call *call_out, struct drv_fail *fail)
{
	struct drv_engine *engine = loss->requester.progress.port.engine;
	const struct drv_clock *clock = &engine->clock;
	const uint64_t begin = drv_clock_now(clock);
	uint64_t due = begin + loss->timeout, sends = 1;

	loss->number++;
	loss->requester.answered_at = 0;
	loss->requester.posted++;
	loss->requester.key_sum += loss->number;
	if (send(loss, fail))
		return -1;
	while (!loss->requester.answered_at) {
		const uint64_t now = drv_clock_now(clock);

		if (DRV_UNLIKELY(now >= due)) {
			sends++;
			due = now + loss->timeout;
			if (send(loss, fail))
				return -1;
		} else if (turn(loss, engine->block ? drv_clock_to_ns(clock, due - now) + 1 : 0, fail)) {
			return -1;
		}
	}
	loss->retransmits += sends - 1;
	*call_out = (struct call){loss->requester.answered_at - begin, sends};
	return 0;
}

/*
 * After calls that were sent again: polls until nothing has come for a while, so that no answer strays into what follows.
 * No turn of progress.h: it ends by time alone, and never sleeps.
 */
static int wait_quiet(struct loss *loss, struct drv_fail *fail)
{
	const struct drv_engine *engine = loss->requester.progress.port.engine;
	const uint64_t begin_ns = drv_now_ns();
	uint64_t quiet_ns = begin_ns, now_ns = begin_ns;

	if (loss->retransmits == loss->calm_at)
		return 0;
	while (now_ns - quiet_ns < DRV_QUIET_NS && now_ns - begin_ns < DRV_QUIET_MAX_NS) {
		const int events = engine->layer->poll(engine->ctx, loss->requester.progress.sink);

		if (events < 0)
			return drv_engine_fail("poll", events, fail);
		now_ns = drv_now_ns();
		if (events > 0)
			quiet_ns = now_ns;
	}
	loss->calm_at = loss->retransmits;
	return 0;
}

/* ---- the roles ---- */

static int prepare_server(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;

	return drv_responder_role_prepare_asked(run, receiver_on_recv, (size_t)parameters->bytes,
						parameters->touch != DRV_TOUCH_NONE, fail);
}

static int prepare_client(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;
	struct loss *loss = run->state;

	if (drv_ask_start(run, caller_on_recv, REQUESTS, (size_t)parameters->bytes,
			  parameters->touch != DRV_TOUCH_NONE, fail))
		return -1;
	loss->bytes = (size_t)parameters->bytes;
	loss->timeout = drv_clock_to_ticks(&run->engine->clock, parameters->timeout_ns);
	return drv_record_samples(run->record, LATENCY, fail) &&
			       drv_record_samples(run->record, RECOVERY, fail)
		       ? 0
		       : -1;
}

static int ask(struct drv_role_run *run, uint64_t *span_out, struct drv_fail *fail)
{
	struct loss *loss = run->state;
	struct drv_value *values = run->record->values;
	struct call made;
	uint64_t span_ns;

	if (call(loss, &made, fail))
		return -1;
	*span_out = made.span;
	if (loss->requester.step != DRV_STEP_MEASURE)
		return 0;
	span_ns = drv_clock_to_ns(&run->engine->clock, made.span);
	drv_sample(values[LATENCY].samples, span_ns);
	if (DRV_UNLIKELY(made.sends > 1))
		drv_sample(values[RECOVERY].samples, span_ns);
	return 0;
}

static int verify(struct drv_role_run *run, uint64_t serial, struct drv_fail *fail)
{
	return drv_ask_verify(run, serial, ask, fail) || wait_quiet(run->state, fail) ? -1 : 0;
}

static int warmup(struct drv_role_run *run, uint64_t cap_ns, struct drv_fail *fail)
{
	return drv_ask_warmup(run, cap_ns, ask, fail) || wait_quiet(run->state, fail) ? -1 : 0;
}

static int measure(struct drv_role_run *run, struct drv_fail *fail)
{
	struct loss *loss = run->state;
	const uint64_t retransmits = loss->retransmits;
	struct drv_record *record = run->record;

	if (drv_ask_measure(run, ask, fail))
		return -1;
	record->bytes = record->operations * 2 * loss->bytes;
	drv_record_rate(record, GOODPUT, record->operations, record->elapsed_ns);
	drv_record_count(record, RETRANSMITS, loss->retransmits - retransmits);
	return wait_quiet(loss, fail);
}

/* A call that is given up may still be answered: the number of such an answer is of no call to come. */
static bool settle(struct drv_role_run *run)
{
	struct loss *loss = run->state;
	struct drv_fail ignored;

	loss->retransmits++;
	return !wait_quiet(loss, &ignored) && loss->requester.progress.in_flight_count == 0;
}

/* The audit: every call that was made was executed, and none twice, whatever was lost. */
static void phase_server(struct drv_role_run *run, const struct drv_phase *phase,
			 struct drv_counts *counts_out)
{
	struct receiver *receiver = run->state;

	drv_responder_role_phase(run, phase, counts_out);
	counts_out->exact = true;
	if (phase->ended == DRV_STEP_MEASURE && !phase->cancelled)
		drv_record_count(run->record, REPEATED, receiver->repeated - receiver->repeated_before);
	receiver->repeated_before = receiver->repeated;
}

static void needs(const void *at, struct drv_needs *needs_out)
{
	needs_out->message_bytes = ((const struct parameters *)at)->bytes;
}

static const struct drv_pattern loss = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "client",
			 .measures = true,
			 .channels_most = 1,
			 .state_bytes = sizeof(struct loss),
			 .prepare = prepare_client,
			 .stop = drv_requester_role_stop,
			 .verify = verify,
			 .warmup = warmup,
			 .measure = measure,
			 .settle = settle,
			 .phase = drv_requester_role_phase},
			{.name = "server",
			 .state_bytes = sizeof(struct receiver),
			 .prepare = prepare_server,
			 .channels_most = 1,
			 .phase = phase_server,
			 DRV_RESPONDER_ROLE_LATEST},
			{.name = NULL},
		},
	.self = true,
	.needs = needs,
};
DRV_PATTERN(loss);
