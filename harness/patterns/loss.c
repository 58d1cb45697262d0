/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern loss: calls over messages that may be lost, each sent again until its answer is there. The client sends a
 * request again whenever a timeout has passed without its answer; the server executes each request once, and answers
 * one that it has executed already without doing so again. What losses cost, and that no call is executed twice or
 * never, is measured over any layer: what is lost is up to the layer, or to a shim around it.
 */
#include <inttypes.h>

#include "asker.h"
#include "loss.h"
#include "serve_loop.h"

#define REQUESTS 2u

enum quantity { LATENCY, RECOVERY, GOODPUT, RETRANSMITS, REPEATED };

struct parameters {
	uint64_t bytes, timeout_ns;
	uint32_t touch;
};

/* ---- the answering side ---- */

struct receiver {
	/* first: callbacks get a pointer to it */
	struct drv_answers answers;
	struct drv_message answer;
	/* of the latest request that was executed */
	uint64_t executed;
	/* requests that came again */
	uint64_t repeated, repeated_before;
};

static enum cadge_keep receiver_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data,
					size_t bytes, struct cadge_lend *lend)
{
	struct receiver *receiver = (struct receiver *)sink;
	uint64_t number;

	(void)peer, (void)lend;
	if (DRV_UNLIKELY(bytes != receiver->answer.bytes ||
			 drv_load64((const uint8_t *)data + 8) != receiver->answers.intake.seed)) {
		drv_intake_mismatch(&receiver->answers.intake, "a message of %zu bytes that is no request",
				    bytes);
		return CADGE_TAKEN;
	}
	number = drv_load64(data);
	if (DRV_LIKELY(number == receiver->executed + 1)) {
		drv_intake_take(&receiver->answers.intake, data, bytes);
		receiver->executed = number;
	} else if (number == receiver->executed) {
		receiver->repeated++;
	} else if (number < receiver->executed) {
		return CADGE_TAKEN; /* stale: the client has its answer */
	} else {
		drv_intake_mismatch(&receiver->answers.intake, "request %" PRIu64 " came after %" PRIu64,
				    number, receiver->executed);
		return CADGE_TAKEN;
	}
	receiver->answers.due = true;
	receiver->answer.key = number;
	receiver->answer.written = false;
	return CADGE_TAKEN;
}

DRV_INLINE int receiver_drain(void *arg, struct drv_fail *fail)
{
	struct receiver *receiver = arg;

	(void)drv_answers_post(&receiver->answers, &receiver->answer);
	return drv_answers_drained(&receiver->answers, fail);
}

static int receiver_start(struct receiver *receiver, const struct drv_play *play, struct drv_fail *fail)
{
	const struct parameters *parameters = play->parameters;
	const bool touch = parameters->touch != DRV_TOUCH_NONE;

	receiver->answer =
		(struct drv_message){.bytes = (size_t)parameters->bytes, .seed = ~play->seed, .touch = touch};
	return drv_answers_start(&receiver->answers, play, receiver_on_recv, (size_t)parameters->bytes, touch,
				 fail);
}

/* ---- the calling side ---- */

struct caller {
	/* first: callbacks get a pointer to it */
	struct drv_asker asker;
	size_t bytes;
	/* of the engine's pool: REQUESTS of `stride` bytes; a request that is sent again leaves from one that is not lent */
	uint8_t *requests;
	size_t stride;
	bool lent[REQUESTS];
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
	struct caller *caller = (struct caller *)sink;
	uint64_t number;

	(void)peer, (void)lend;
	if (DRV_UNLIKELY(bytes != caller->bytes ||
			 drv_load64((const uint8_t *)data + 8) != ~caller->asker.seed)) {
		drv_asker_mismatch(&caller->asker, "a message that is no answer, of so many bytes", bytes);
		return CADGE_TAKEN;
	}
	number = drv_load64(data);
	if (DRV_UNLIKELY(number > caller->number)) {
		drv_asker_mismatch(&caller->asker, "an answer to a call that was not made", number);
	} else if (DRV_LIKELY(number == caller->number && !caller->asker.answered_at)) {
		if (DRV_LIKELY(drv_asker_holds(&caller->asker, data, bytes, number)))
			caller->asker.checked++;
		else
			drv_asker_mismatch(&caller->asker, "an answer that holds other bytes", number);
		caller->asker.answered_at = drv_clock_now(&caller->asker.port.engine->clock);
	}
	/* else a call that was sent again is answered again */
	return CADGE_TAKEN;
}

static void caller_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct caller *caller = (struct caller *)sink;

	(void)peer;
	if (DRV_UNLIKELY(token >= REQUESTS || !caller->lent[token])) {
		drv_asker_mismatch(&caller->asker, "a completion for a token that is not outstanding", token);
		return;
	}
	caller->lent[token] = false;
	drv_asker_sent(&caller->asker, code);
}

static int turn(struct caller *caller, uint64_t sleep_ns, struct drv_fail *fail)
{
	return drv_asker_turn(&caller->asker, receiver_drain, sleep_ns, fail);
}

/* Sends the request of the call in progress, from a buffer that is not lent. */
static int send(struct caller *caller, struct drv_fail *fail)
{
	struct drv_engine *engine = caller->asker.port.engine;
	struct drv_message message = {.bytes = caller->bytes,
				      .seed = caller->asker.seed,
				      .key = caller->number,
				      .full = caller->asker.full,
				      .touch = caller->asker.touch,
				      .phase = caller->asker.phase};

	for (;;) {
		uint32_t index = 0;
		int code = CADGE_BUSY;

		while (index < REQUESTS && caller->lent[index])
			index++;
		if (index < REQUESTS) {
			message.at = caller->requests + index * caller->stride;
			message.written = false;
			code = drv_message_post(engine, caller->asker.chan, &message, index);
		}
		if (DRV_LIKELY(code >= 0 && code != CADGE_BUSY)) {
			caller->lent[index] = code == CADGE_QUEUED;
			caller->asker.lents += code == CADGE_QUEUED;
			return 0;
		}
		if (DRV_UNLIKELY(code < 0))
			return drv_engine_fail("post", code, fail);
		/* an answer to what was sent before may come meanwhile */
		if (turn(caller, DRV_ASKER_WAIT_NS, fail))
			return -1;
		if (caller->asker.answered_at)
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
static int call(struct caller *caller, struct call *call_out, struct drv_fail *fail)
{
	struct drv_engine *engine = caller->asker.port.engine;
	const struct drv_clock *clock = &engine->clock;
	const uint64_t begin = drv_clock_now(clock);
	uint64_t due = begin + caller->timeout, sends = 1;

	caller->number++;
	caller->asker.answered_at = 0;
	caller->asker.posted++;
	caller->asker.key_sum += caller->number;
	if (send(caller, fail))
		return -1;
	while (!caller->asker.answered_at) {
		const uint64_t now = drv_clock_now(clock);

		if (DRV_UNLIKELY(now >= due)) {
			sends++;
			due = now + caller->timeout;
			if (send(caller, fail))
				return -1;
		} else if (turn(caller, engine->block ? drv_clock_to_ns(clock, due - now) + 1 : 0, fail)) {
			return -1;
		}
	}
	caller->retransmits += sends - 1;
	*call_out = (struct call){caller->asker.answered_at - begin, sends};
	return 0;
}

/* After calls that were sent again: polls until nothing has come for a while, so that no answer strays into what follows. */
static int calm_down(struct caller *caller, struct drv_fail *fail)
{
	const struct drv_engine *engine = caller->asker.port.engine;
	const uint64_t begin_ns = drv_now_ns();
	uint64_t quiet_ns = begin_ns, now_ns = begin_ns;

	if (caller->retransmits == caller->calm_at)
		return 0;
	while (now_ns - quiet_ns < DRV_QUIET_NS && now_ns - begin_ns < DRV_QUIET_MAX_NS) {
		const int events = engine->layer->poll(engine->ctx, caller->asker.sink);

		if (events < 0)
			return drv_engine_fail("poll", events, fail);
		if (caller->asker.other && receiver_drain(caller->asker.other, fail))
			return -1;
		now_ns = drv_now_ns();
		if (events > 0)
			quiet_ns = now_ns;
	}
	caller->calm_at = caller->retransmits;
	return 0;
}

static int caller_start(struct caller *caller, const struct drv_play *play, struct receiver *receiver,
			struct drv_fail *fail)
{
	const struct parameters *parameters = play->parameters;

	drv_asker_start(&caller->asker, play, receiver ? &receiver->answers : NULL, caller_on_recv,
			caller_on_sent, parameters->touch != DRV_TOUCH_NONE);
	caller->bytes = (size_t)parameters->bytes;
	caller->timeout = drv_clock_to_ticks(&play->engine->clock, parameters->timeout_ns);
	caller->stride = drv_memory_stride(parameters->bytes);
	caller->requests = drv_pool_take(play->engine, DRV_POOL_CLIENT, REQUESTS * caller->stride, fail);
	return caller->requests && drv_record_samples(play->record, LATENCY, fail) &&
			       drv_record_samples(play->record, RECOVERY, fail)
		       ? 0
		       : -1;
}

/* ---- the roles ---- */

/* Both sides; at place self on one context, with a sink that tells each event whose it is. */
struct both {
	struct drv_halves halves;
	struct caller caller;
	struct receiver receiver;
};

static int prepare_client(struct drv_play *play, struct drv_fail *fail)
{
	struct both *both = play->state;

	if (caller_start(&both->caller, play, NULL, fail))
		return -1;
	play->engine->sink = both->caller.asker.sink;
	play->sleep = DRV_SLEEP_EACH;
	return 0;
}

static int prepare_self(struct drv_play *play, struct drv_fail *fail)
{
	struct both *both = play->state;

	if (receiver_start(&both->receiver, play, fail) ||
	    caller_start(&both->caller, play, &both->receiver, fail))
		return -1;
	drv_asker_join(&both->caller.asker, &both->receiver.answers, &both->halves);
	play->sleep = DRV_SLEEP_IF_WAITED;
	return 0;
}

static int prepare_server(struct drv_play *play, struct drv_fail *fail)
{
	struct both *both = play->state;

	if (receiver_start(&both->receiver, play, fail))
		return -1;
	play->engine->sink = &both->receiver.answers.port.sink;
	play->sleep = DRV_SLEEP_EACH;
	return 0;
}

static int verify(struct drv_play *play, uint64_t serial, struct drv_fail *fail)
{
	struct caller *caller = &((struct both *)play->state)->caller;
	struct call ignored;
	int status;

	caller->asker.full = true;
	caller->asker.phase = serial;
	status = call(caller, &ignored, fail) || calm_down(caller, fail) ? -1 : 0;
	caller->asker.full = false;
	return status;
}

static int warmup(struct drv_play *play, uint64_t cap_ns, struct drv_fail *fail)
{
	struct caller *caller = &((struct both *)play->state)->caller;
	const struct drv_clock *clock = &play->engine->clock;
	struct drv_warmup *warmup = &caller->asker.warmup;
	struct call made = {0};
	int status;

	drv_warmup_start(warmup, drv_clock_now(clock), drv_clock_to_ticks(clock, DRV_ASKER_WINDOW_NS),
			 drv_clock_to_ticks(clock, cap_ns));
	do
		status = call(caller, &made, fail);
	while (!status && !drv_warmup_add(warmup, drv_clock_now(clock), made.span));
	drv_record_warmup(play->record, warmup);
	return status || calm_down(caller, fail) ? -1 : 0;
}

static int measure(struct drv_play *play, struct drv_fail *fail)
{
	struct caller *caller = &((struct both *)play->state)->caller;
	const struct drv_clock *clock = &play->engine->clock;
	const uint64_t begin = drv_clock_now(clock), span = drv_clock_to_ticks(clock, play->duration_ns);
	const uint64_t retransmits = caller->retransmits;
	struct drv_record *record = play->record;

	do {
		struct call made;
		uint64_t span_ns;

		if (call(caller, &made, fail))
			return -1;
		span_ns = drv_clock_to_ns(clock, made.span);
		record->operations++;
		drv_sample(record->values[LATENCY].samples, span_ns);
		if (DRV_UNLIKELY(made.sends > 1))
			drv_sample(record->values[RECOVERY].samples, span_ns);
	} while (drv_clock_now(clock) - begin < span);
	record->elapsed_ns = drv_clock_to_ns(clock, drv_clock_now(clock) - begin);
	record->bytes = record->operations * 2 * caller->bytes;
	drv_record_rate(record, GOODPUT, record->operations, record->elapsed_ns);
	drv_record_count(record, RETRANSMITS, caller->retransmits - retransmits);
	return calm_down(caller, fail);
}

/* A call that is given up may still be answered: the number of such an answer is of no call to come. */
static bool settle(struct drv_play *play)
{
	struct caller *caller = &((struct both *)play->state)->caller;
	struct drv_fail ignored;

	caller->retransmits++;
	return !calm_down(caller, &ignored) && caller->asker.lents == 0;
}

static int serve(struct drv_play *play, json_t **message_out, struct drv_fail *fail)
{
	struct drv_answers *answers = &((struct both *)play->state)->receiver.answers;

	return drv_serve_loop(play->engine, &answers->port.sink, answers, drv_answers_due, receiver_drain,
			      message_out, fail);
}

/* The audit: every call that was made was executed, and none twice, whatever was lost. */
static void phase_server(struct drv_play *play, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	struct receiver *receiver = &((struct both *)play->state)->receiver;

	drv_answers_phase(&receiver->answers, phase, counts_out);
	counts_out->exact = true;
	if (phase->ended == DRV_STEP_MEASURE && !phase->cancelled)
		drv_record_count(play->record, REPEATED, receiver->repeated - receiver->repeated_before);
	receiver->repeated_before = receiver->repeated;
}

static void phase_client(struct drv_play *play, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	const struct drv_asker *asker = &((const struct both *)play->state)->caller.asker;

	drv_asker_counts(asker, counts_out);
	if (asker->other)
		phase_server(play, phase, counts_out);
}

static void needs(const void *at, struct drv_needs *needs_out)
{
	needs_out->message_bytes = ((const struct parameters *)at)->bytes;
}

static int negotiate(const void *at, const struct drv_offer *offer, struct drv_fail *fail)
{
	return drv_negotiate_message(((const struct parameters *)at)->bytes, "message", &offer->both, fail);
}

#define CALLER_ROLE                                                                                          \
	.acts = true, .state_bytes = sizeof(struct both), .verify = verify, .warmup = warmup,                \
	.measure = measure, .settle = settle, .phase = phase_client

static const struct drv_role self = {.name = "both", .prepare = prepare_self, CALLER_ROLE};

static const struct drv_pattern loss = {
	.name = "loss",
	.parameters_bytes = sizeof(struct parameters),
	.parameters =
		(const struct drv_parameter[]){
			{"bytes", DRV_INTEGER, offsetof(struct parameters, bytes), NULL},
			{"timeout_ns", DRV_INTEGER, offsetof(struct parameters, timeout_ns), NULL},
			{"touch", DRV_CHOICE, offsetof(struct parameters, touch), drv_touch_words},
			{.name = NULL},
		},
	.quantities = (const struct drv_quantity[]){[LATENCY] = {"latency", DRV_HISTOGRAM},
						    [RECOVERY] = {"recovery", DRV_HISTOGRAM},
						    [GOODPUT] = {"goodput", DRV_RATE},
						    [RETRANSMITS] = {"retransmits", DRV_COUNT},
						    [REPEATED] = {"repeated", DRV_COUNT},
						    {.name = NULL}},
	.roles =
		(const struct drv_role[]){
			{.name = "client", .prepare = prepare_client, .channels_most = 1, CALLER_ROLE},
			{.name = "server",
			 .state_bytes = sizeof(struct both),
			 .prepare = prepare_server,
			 .channels_most = 1,
			 .serve = serve,
			 .phase = phase_server},
			{.name = NULL},
		},
	.self = &self,
	.needs = needs,
	.negotiate = negotiate,
};
DRV_PATTERN(loss);
