/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern loss: calls over messages that may be lost, each sent again until its answer is there. The client sends a
 * request again whenever a timeout has passed without its answer; the server executes each request once, and answers
 * one that it has executed already without doing so again. What losses cost, and that no call is executed twice or
 * never, is measured over any layer: what is lost is up to the layer, or to a shim around it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "intake.h"
#include "loss.h"
#include "message.h"
#include "halves.h"
#include "pattern.h"
#include "serve_loop.h"

#define WAIT_NS   UINT64_C(10000000)
#define WINDOW_NS UINT64_C(100000)
#define ANSWERS   2u
#define REQUESTS  2u

enum quantity { LATENCY, RECOVERY, GOODPUT, RETRANSMITS, REPEATED };

struct parameters {
	uint64_t bytes, timeout_ns;
	uint32_t touch;
};

/* ---- the answering side ---- */

struct receiver {
	/* first: callbacks get a pointer to it */
	struct drv_port port;
	struct cadge_chan *chan;
	struct drv_intake intake;
	/* of the latest request that was executed */
	uint64_t executed;
	/* requests that came again */
	uint64_t repeated, repeated_before;
	/* of the engine's pool: ANSWERS of `stride` bytes */
	uint8_t *answers;
	size_t stride;
	bool lent[ANSWERS];
	bool answer_due, failed;
	struct drv_message answer;
	struct drv_fail fail;
};

static enum cadge_keep receiver_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data,
					size_t bytes, struct cadge_lend *lend)
{
	struct receiver *receiver = (struct receiver *)sink;
	uint64_t number;

	(void)peer, (void)lend;
	if (DRV_UNLIKELY(bytes != receiver->answer.bytes ||
			 drv_load64((const uint8_t *)data + 8) != receiver->intake.seed)) {
		drv_intake_mismatch(&receiver->intake, "a message of %zu bytes that is no request", bytes);
		return CADGE_TAKEN;
	}
	number = drv_load64(data);
	if (DRV_LIKELY(number == receiver->executed + 1)) {
		drv_intake_take(&receiver->intake, data, bytes);
		receiver->executed = number;
	} else if (number == receiver->executed) {
		receiver->repeated++;
	} else if (number < receiver->executed) {
		return CADGE_TAKEN; /* stale: the client has its answer */
	} else {
		drv_intake_mismatch(&receiver->intake, "request %" PRIu64 " came after %" PRIu64, number,
				    receiver->executed);
		return CADGE_TAKEN;
	}
	receiver->answer_due = true;
	receiver->answer.key = number;
	receiver->answer.written = false;
	return CADGE_TAKEN;
}

static void receiver_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct receiver *receiver = (struct receiver *)sink;
	const uint64_t index = token & ~DRV_TOKEN_ANSWER;

	(void)peer;
	if (DRV_UNLIKELY(!(token & DRV_TOKEN_ANSWER) || index >= ANSWERS || !receiver->lent[index])) {
		drv_intake_mismatch(&receiver->intake,
				    "a completion for token %016" PRIx64 " that is not outstanding", token);
		return;
	}
	receiver->lent[index] = false;
	if (DRV_UNLIKELY(code < 0) && code != CADGE_E_LOST && !receiver->failed) {
		receiver->failed = true;
		drv_engine_fail("post", code, &receiver->fail);
	}
}

/* Answers, if that is due and possible. 0, or -1 with receiver->fail. */
static int receiver_drain(struct receiver *receiver)
{
	uint32_t index = 0;
	int code;

	if (DRV_LIKELY(!receiver->answer_due))
		return receiver->failed ? -1 : 0;
	while (index < ANSWERS && receiver->lent[index])
		index++;
	if (index == ANSWERS)
		return 0;
	receiver->answer.at = receiver->answers + index * receiver->stride;
	receiver->answer.full = receiver->intake.full;
	receiver->answer.phase = receiver->intake.phase;
	code = drv_message_post(receiver->port.engine, receiver->chan, &receiver->answer,
				DRV_TOKEN_ANSWER | index);
	if (code == CADGE_BUSY)
		return 0;
	receiver->answer_due = false;
	receiver->lent[index] = code == CADGE_QUEUED;
	if (code < 0 && !receiver->failed) {
		receiver->failed = true;
		drv_engine_fail("post", code, &receiver->fail);
	}
	return receiver->failed ? -1 : 0;
}

static int receiver_start(struct receiver *receiver, const struct drv_play *play, struct drv_fail *fail)
{
	const struct parameters *parameters = play->parameters;
	struct drv_engine *engine = play->engine;

	drv_port_start(&receiver->port, engine);
	receiver->port.sink.recv = receiver_on_recv;
	receiver->port.sink.sent = receiver_on_sent;
	receiver->chan = engine->channels[0].chan;
	receiver->intake.seed = play->seed;
	receiver->intake.touch = parameters->touch != DRV_TOUCH_NONE;
	receiver->answer = (struct drv_message){
		.bytes = (size_t)parameters->bytes, .seed = ~play->seed, .touch = receiver->intake.touch};
	receiver->stride = drv_memory_stride(parameters->bytes);
	receiver->answers = drv_pool_take(engine, DRV_POOL_SERVER, ANSWERS * receiver->stride, fail);
	drv_intake_phase(&receiver->intake, true, 1);
	return receiver->answers ? 0 : -1;
}

/* ---- the calling side ---- */

struct caller {
	/* first: callbacks get a pointer to it */
	struct drv_port port;
	struct cadge_chan *chan;
	size_t bytes;
	uint64_t seed;
	bool touch;
	/* this phase compares whole payloads, and which it is */
	bool full;
	uint64_t phase;
	/* of the engine's pool: REQUESTS of `stride` bytes; a request that is sent again leaves from one that is not lent */
	uint8_t *requests;
	size_t stride;
	bool lent[REQUESTS];
	uint32_t lents, idle;
	/* of the call in progress, and when its answer came, in ticks; 0: not yet */
	uint64_t number, answered_at;
	/* ticks */
	uint64_t timeout;
	/* since the attempt began */
	uint64_t posted, key_sum, waits, retransmits;
	/* retransmits when it last calmed down */
	uint64_t calm_at;
	uint64_t checked, full_checked, mismatches;
	struct drv_warmup warmup;
	/* place self */
	struct receiver *receiver;
	struct cadge_sink *sink;
	bool failed;
	struct drv_fail fail;
	char mismatch[160];
};

static void __attribute__((cold, noinline)) note_mismatch(struct caller *caller, const char *what,
							  uint64_t number)
{
	if (!caller->mismatches++)
		snprintf(caller->mismatch, sizeof(caller->mismatch), "%s (%" PRIu64 ")", what, number);
}

/* Whether an answer holds what its sender wrote. */
static bool is_whole(struct caller *caller, const void *data, size_t bytes, uint64_t number)
{
	if (caller->full) {
		caller->full_checked++;
		return drv_body_holds(data, bytes, ~caller->seed, caller->phase, number);
	}
	return !caller->touch || drv_touch_read(data, bytes, ~caller->seed, number);
}

static enum cadge_keep caller_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				      struct cadge_lend *lend)
{
	struct caller *caller = (struct caller *)sink;
	uint64_t number;

	(void)peer, (void)lend;
	if (DRV_UNLIKELY(bytes != caller->bytes || drv_load64((const uint8_t *)data + 8) != ~caller->seed)) {
		note_mismatch(caller, "a message that is no answer, of so many bytes", bytes);
		return CADGE_TAKEN;
	}
	number = drv_load64(data);
	if (DRV_UNLIKELY(number > caller->number)) {
		note_mismatch(caller, "an answer to a call that was not made", number);
	} else if (DRV_LIKELY(number == caller->number && !caller->answered_at)) {
		if (DRV_LIKELY(is_whole(caller, data, bytes, number)))
			caller->checked++;
		else
			note_mismatch(caller, "an answer that holds other bytes", number);
		caller->answered_at = drv_clock_now(&caller->port.engine->clock);
	}
	/* else a call that was sent again is answered again */
	return CADGE_TAKEN;
}

static void caller_on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct caller *caller = (struct caller *)sink;

	(void)peer;
	if (DRV_UNLIKELY(token >= REQUESTS || !caller->lent[token])) {
		note_mismatch(caller, "a completion for a token that is not outstanding", token);
		return;
	}
	caller->lent[token] = false;
	caller->lents--;
	if (DRV_UNLIKELY(code < 0) && code != CADGE_E_LOST && !caller->failed) {
		caller->failed = true;
		drv_engine_fail("post", code, &caller->fail);
	}
}

/* Polls once; now and then looks around. In block mode it sleeps where nothing came, for `sleep_ns` at most; 0: not. */
static int turn(struct caller *caller, uint64_t sleep_ns, struct drv_fail *fail)
{
	struct drv_engine *engine = caller->port.engine;
	const int events = engine->layer->poll(engine->ctx, caller->sink);

	if (DRV_UNLIKELY(caller->receiver != NULL) && receiver_drain(caller->receiver)) {
		*fail = caller->receiver->fail;
		return -1;
	}
	if (DRV_UNLIKELY(caller->failed)) {
		*fail = caller->fail;
		return -1;
	}
	if (DRV_UNLIKELY(events < 0))
		return drv_engine_fail("poll", events, fail);
	if (sleep_ns && engine->block && events == 0) {
		caller->waits++;
		if (drv_engine_wait(engine, sleep_ns, fail))
			return -1;
	} else if (DRV_LIKELY(++caller->idle & 63)) {
		return 0;
	}
	return drv_engine_look(engine, drv_clock_now(&engine->clock), NULL, fail);
}

/* Sends the request of the call in progress, from a buffer that is not lent. */
static int send(struct caller *caller, struct drv_fail *fail)
{
	struct drv_engine *engine = caller->port.engine;
	struct drv_message message = {.bytes = caller->bytes,
				      .seed = caller->seed,
				      .key = caller->number,
				      .full = caller->full,
				      .touch = caller->touch,
				      .phase = caller->phase};

	for (;;) {
		uint32_t index = 0;
		int code = CADGE_BUSY;

		while (index < REQUESTS && caller->lent[index])
			index++;
		if (index < REQUESTS) {
			message.at = caller->requests + index * caller->stride;
			message.written = false;
			code = drv_message_post(engine, caller->chan, &message, index);
		}
		if (DRV_LIKELY(code >= 0 && code != CADGE_BUSY)) {
			caller->lent[index] = code == CADGE_QUEUED;
			caller->lents += code == CADGE_QUEUED;
			return 0;
		}
		if (DRV_UNLIKELY(code < 0))
			return drv_engine_fail("post", code, fail);
		/* an answer to what was sent before may come meanwhile */
		if (turn(caller, WAIT_NS, fail))
			return -1;
		if (caller->answered_at)
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
	struct drv_engine *engine = caller->port.engine;
	const struct drv_clock *clock = &engine->clock;
	const uint64_t begin = drv_clock_now(clock);
	uint64_t due = begin + caller->timeout, sends = 1;

	caller->number++;
	caller->answered_at = 0;
	caller->posted++;
	caller->key_sum += caller->number;
	if (send(caller, fail))
		return -1;
	while (!caller->answered_at) {
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
	*call_out = (struct call){caller->answered_at - begin, sends};
	return 0;
}

/* After calls that were sent again: polls until nothing has come for a while, so that no answer strays into what follows. */
static int calm_down(struct caller *caller, struct drv_fail *fail)
{
	const struct drv_engine *engine = caller->port.engine;
	const uint64_t begin_ns = drv_now_ns();
	uint64_t quiet_ns = begin_ns, now_ns = begin_ns;

	if (caller->retransmits == caller->calm_at)
		return 0;
	while (now_ns - quiet_ns < DRV_QUIET_NS && now_ns - begin_ns < DRV_QUIET_MAX_NS) {
		const int events = engine->layer->poll(engine->ctx, caller->sink);

		if (events < 0)
			return drv_engine_fail("poll", events, fail);
		if (caller->receiver && receiver_drain(caller->receiver)) {
			*fail = caller->receiver->fail;
			return -1;
		}
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
	struct drv_engine *engine = play->engine;

	drv_port_start(&caller->port, engine);
	caller->port.sink.recv = caller_on_recv;
	caller->port.sink.sent = caller_on_sent;
	caller->sink = &caller->port.sink;
	caller->chan = engine->channels[0].chan;
	caller->bytes = (size_t)parameters->bytes;
	caller->seed = play->seed;
	caller->touch = parameters->touch != DRV_TOUCH_NONE;
	caller->timeout = drv_clock_to_ticks(&engine->clock, parameters->timeout_ns);
	caller->receiver = receiver;
	caller->stride = drv_memory_stride(parameters->bytes);
	caller->requests = drv_pool_take(engine, DRV_POOL_CLIENT, REQUESTS * caller->stride, fail);
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
	play->engine->sink = both->caller.sink;
	play->sleep = DRV_SLEEP_EACH;
	return 0;
}

static int prepare_self(struct drv_play *play, struct drv_fail *fail)
{
	struct both *both = play->state;

	if (receiver_start(&both->receiver, play, fail) ||
	    caller_start(&both->caller, play, &both->receiver, fail))
		return -1;
	drv_halves_start(&both->halves, play->engine, &both->caller.port.sink, &both->receiver.port.sink,
			 play->seed);
	both->caller.sink = &both->halves.port.sink;
	play->sleep = DRV_SLEEP_IF_WAITED;
	return 0;
}

static int prepare_server(struct drv_play *play, struct drv_fail *fail)
{
	struct both *both = play->state;

	if (receiver_start(&both->receiver, play, fail))
		return -1;
	play->engine->sink = &both->receiver.port.sink;
	play->sleep = DRV_SLEEP_EACH;
	return 0;
}

static int verify(struct drv_play *play, uint64_t serial, struct drv_fail *fail)
{
	struct caller *caller = &((struct both *)play->state)->caller;
	struct call ignored;
	int status;

	caller->full = true;
	caller->phase = serial;
	status = call(caller, &ignored, fail) || calm_down(caller, fail) ? -1 : 0;
	caller->full = false;
	return status;
}

static int warmup(struct drv_play *play, uint64_t cap_ns, struct drv_fail *fail)
{
	struct caller *caller = &((struct both *)play->state)->caller;
	const struct drv_clock *clock = &play->engine->clock;
	struct call made = {0};
	int status;

	drv_warmup_start(&caller->warmup, drv_clock_now(clock), drv_clock_to_ticks(clock, WINDOW_NS),
			 drv_clock_to_ticks(clock, cap_ns));
	do
		status = call(caller, &made, fail);
	while (!status && !drv_warmup_add(&caller->warmup, drv_clock_now(clock), made.span));
	drv_record_warmup(play->record, &caller->warmup);
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
	return !calm_down(caller, &ignored) && caller->lents == 0;
}

DRV_INLINE bool serve_due(void *arg)
{
	const struct receiver *receiver = arg;

	return receiver->answer_due || receiver->failed;
}

DRV_INLINE int serve_drain(void *arg, struct drv_fail *fail)
{
	struct receiver *receiver = arg;

	if (!receiver_drain(receiver))
		return 0;
	*fail = receiver->fail;
	return -1;
}

static int serve(struct drv_play *play, json_t **message_out, struct drv_fail *fail)
{
	struct receiver *receiver = &((struct both *)play->state)->receiver;

	return drv_serve_loop(play->engine, &receiver->port.sink, receiver, serve_due, serve_drain,
			      message_out, fail);
}

/* The audit: every call that was made was executed, and none twice, whatever was lost. */
static void phase_server(struct drv_play *play, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	struct receiver *receiver = &((struct both *)play->state)->receiver;

	drv_intake_counts(&receiver->intake, counts_out);
	counts_out->exact = true;
	drv_intake_phase(&receiver->intake, phase->full, phase->serial);
	if (phase->ended == DRV_STEP_MEASURE && !phase->cancelled)
		drv_record_count(play->record, REPEATED, receiver->repeated - receiver->repeated_before);
	receiver->repeated_before = receiver->repeated;
}

static void phase_client(struct drv_play *play, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	const struct caller *caller = &((const struct both *)play->state)->caller;

	counts_out->posts = true;
	counts_out->posted = caller->posted;
	counts_out->posted_keys = caller->key_sum;
	counts_out->waits = caller->waits;
	counts_out->checked = caller->checked;
	counts_out->full_checked = caller->full_checked;
	counts_out->mismatches = caller->mismatches;
	memcpy(counts_out->mismatch, caller->mismatch, sizeof(counts_out->mismatch));
	if (caller->receiver)
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
