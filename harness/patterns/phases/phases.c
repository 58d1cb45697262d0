/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern phases: where the time of one message goes. Handing it over, its way, and taking it, on a host whose ends have
 * one clock: the receiver's answer says when it began the poll that delivered the message, and when it had it.
 */
#include "phases.params.h"

#include "traffic/ask.h"

/* an answer: head, and two readings of the clock, in ticks */
#define ANSWER_BYTES (DRV_HEAD_BYTES + 16u)

/* ---- the receiving side ---- */

struct receiver {
	/* first: callbacks get a pointer to it */
	struct drv_responder responder;
	size_t bytes;
	/* when the poll in progress began, and when the latest message was here and read, in ticks */
	uint64_t polled_at, taken_at;
	/* that poll's beginning */
	uint64_t taken_from;
};

static enum cadge_keep receiver_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data,
					size_t bytes, struct cadge_lend *lend)
{
	struct receiver *receiver = (struct receiver *)sink;
	struct drv_check *check = &receiver->responder.lines->check;
	uint64_t key;

	(void)peer, (void)lend;
	if (DRV_UNLIKELY(bytes != receiver->bytes)) {
		drv_check_wrong(check, "a message of %zu bytes instead of %zu", bytes, receiver->bytes);
		return CADGE_TAKEN;
	}
	key = drv_check_take(check, data, bytes);
	receiver->taken_at = drv_clock_now(&receiver->responder.port.engine->clock);
	receiver->taken_from = receiver->polled_at;
	drv_responder_due_latest(&receiver->responder, key);
	return CADGE_TAKEN;
}

DRV_INLINE void begin_poll(void *arg)
{
	struct receiver *receiver = arg;

	receiver->polled_at = drv_clock_now(&receiver->responder.port.engine->clock);
}

DRV_INLINE void write_answer(const struct drv_responder *responder, uint8_t *at)
{
	const struct receiver *receiver = (const struct receiver *)responder;

	drv_head_write(at, ANSWER_BYTES, responder->message.seed, responder->message.key);
	drv_store64(at + DRV_HEAD_BYTES, receiver->taken_from);
	drv_store64(at + DRV_HEAD_BYTES + 8, receiver->taken_at);
}

DRV_INLINE int drain(void *arg, struct drv_fail *fail)
{
	return drv_responder_drain_with(arg, write_answer, fail);
}

/* ---- the sending side ---- */

struct sender {
	/* first: callbacks get a pointer to it */
	struct drv_requester requester;
	size_t bytes;
	/* place self: that of this process; else NULL */
	struct receiver *receiver;
	/* of the next message, from 0 on */
	uint64_t number;
	/* what the latest answer says: when the poll began that delivered the message, and when it was taken */
	uint64_t taken_from, taken_at;
};

static enum cadge_keep sender_on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				      struct cadge_lend *lend)
{
	struct sender *sender = (struct sender *)sink;
	struct drv_requester *requester = &sender->requester;
	const uint8_t *at = data;

	(void)peer, (void)lend;
	if (DRV_UNLIKELY(!drv_ask_awaits(requester, data, bytes, ANSWER_BYTES)))
		return CADGE_TAKEN;
	requester->progress.check.checked++;
	sender->taken_from = drv_load64(at + DRV_HEAD_BYTES);
	sender->taken_at = drv_load64(at + DRV_HEAD_BYTES + 8);
	requester->answered_at = drv_clock_now(&requester->progress.port.engine->clock);
	return CADGE_TAKEN;
}

/* The other side of this process has to know when a poll began. */
static int turn(struct sender *sender, struct drv_fail *fail)
{
	struct drv_requester *requester = &sender->requester;

	if (sender->receiver)
		begin_poll(sender->receiver);
	return drv_progress_turn(&requester->progress, DRV_PROGRESS_WAIT_NS, fail);
}

/* In ticks; they add up to `one_way`. */
struct spans {
	uint64_t one_way, post, transfer, progress;
};

/*
 * Splits the way of a message that began at `begin` and was handed over at `posted`. It may be taken while its sender is
 * still in post, and the poll that delivers it may have begun before: what happens at the same time counts once, to
 * what came first.
 */
static void split(struct sender *sender, uint64_t begin, uint64_t posted, struct spans *spans_out)
{
	const uint64_t taken = sender->taken_at;
	const uint64_t post_end = posted < taken ? posted : taken;
	const uint64_t from = sender->taken_from > post_end ? sender->taken_from : post_end;

	if (DRV_UNLIKELY(taken < begin || taken > sender->requester.answered_at ||
			 sender->taken_from > taken)) {
		drv_check_wrong(
			&sender->requester.progress.check,
			"the two ends have no clock in common: a message was taken before it was sent, "
			"or after its answer came (%" PRIu64 ")",
			sender->number - 1);
		*spans_out = (struct spans){0};
		return;
	}
	*spans_out = (struct spans){taken - begin, post_end - begin, from - post_end, taken - from};
}

/* One message and its answer. 1: the answer is lost; -1: *fail. Nothing is lent afterwards. */
static int send_one(struct sender *sender, struct spans *spans_out, uint64_t *trip_out, struct drv_fail *fail)
{
	const struct drv_clock *clock = &sender->requester.progress.port.engine->clock;
	const uint64_t begin = drv_clock_now(clock);
	uint64_t posted;
	int lost = 0;

	if (drv_ask(&sender->requester, 0, sender->bytes, sender->number++, fail))
		return -1;
	posted = drv_clock_now(clock);
	while (!sender->requester.answered_at && !lost) {
		if (turn(sender, fail))
			return -1;
		lost = drv_ask_lost(&sender->requester, posted);
	}
	if (!lost) {
		*trip_out = sender->requester.answered_at - begin;
		split(sender, begin, posted, spans_out);
	}
	return drv_ask_reclaim(&sender->requester, fail) ? -1 : lost;
}

/* ---- the roles ---- */

static int prepare_server(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;
	struct receiver *receiver = run->state;

	if (drv_responder_role_prepare_asked(run, receiver_on_recv, ANSWER_BYTES,
					     parameters->touch != DRV_TOUCH_NONE, fail))
		return -1;
	receiver->bytes = (size_t)parameters->bytes;
	receiver->responder.lines->check.by_number = true; /* one at a time */
	return 0;
}

static int prepare_client(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;
	struct sender *sender = run->state;

	if (drv_ask_start(run, sender_on_recv, 1, (size_t)parameters->bytes,
			  parameters->touch != DRV_TOUCH_NONE, fail))
		return -1;
	sender->bytes = (size_t)parameters->bytes;
	sender->receiver = run->responder ? run->responder->state : NULL;
	for (unsigned quantity = ONE_WAY; quantity <= PROGRESS; quantity++)
		if (!drv_record_samples(run->record, quantity, fail))
			return -1;
	return 0;
}

static int ask(struct drv_role_run *run, uint64_t *span_out, struct drv_fail *fail)
{
	const struct drv_clock *clock = &run->engine->clock;
	struct drv_value *values = run->record->values;
	struct sender *sender = run->state;
	struct spans spans = {0};
	const int status = send_one(sender, &spans, span_out, fail);

	if (status || sender->requester.step != DRV_STEP_MEASURE)
		return status;
	drv_sample(values[ONE_WAY].samples, drv_clock_to_ns(clock, spans.one_way));
	drv_sample(values[POST].samples, drv_clock_to_ns(clock, spans.post));
	drv_sample(values[TRANSFER].samples, drv_clock_to_ns(clock, spans.transfer));
	drv_sample(values[PROGRESS].samples, drv_clock_to_ns(clock, spans.progress));
	return 0;
}

static int verify(struct drv_role_run *run, uint64_t serial, struct drv_fail *fail)
{
	return drv_ask_verify(run, serial, ask, fail);
}

static int warmup(struct drv_role_run *run, uint64_t cap_ns, struct drv_fail *fail)
{
	return drv_ask_warmup(run, cap_ns, ask, fail);
}

static int measure(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct sender *sender = run->state;
	const int status = drv_ask_measure(run, ask, fail);

	run->record->bytes = run->record->operations * (sender->bytes + ANSWER_BYTES);
	return status;
}

static int serve(struct drv_role_run *run, json_t **message_out, struct drv_fail *fail)
{
	struct receiver *receiver = run->state;

	return drv_poll_until_message_from(run->engine, &receiver->responder.port.sink, receiver, begin_poll,
					   drv_responder_loop_due, drain, message_out, fail);
}

static void needs(const void *at, struct drv_needs *needs_out)
{
	const struct parameters *parameters = at;

	needs_out->message_bytes = parameters->bytes < ANSWER_BYTES ? ANSWER_BYTES : parameters->bytes;
}

static int negotiate(const void *at, const struct drv_offer *offer, struct drv_fail *fail)
{
	return drv_negotiate_message(((const struct parameters *)at)->bytes, "message", &offer->both, fail) ||
			       drv_negotiate_message(ANSWER_BYTES, "answer", &offer->both, fail)
		       ? -1
		       : 0;
}

static const struct drv_pattern phases = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "client",
			 .channels_most = 1,
			 .state_bytes = sizeof(struct sender),
			 .prepare = prepare_client,
			 .verify = verify,
			 .warmup = warmup,
			 .measure = measure,
			 DRV_ASK_ROLE},
			{.name = "server",
			 .state_bytes = sizeof(struct receiver),
			 .prepare = prepare_server,
			 .channels_most = 1,
			 .stop = drv_responder_role_stop,
			 .serve = serve,
			 .drain = drain,
			 .phase = drv_responder_role_phase},
			{.name = NULL},
		},
	.self = true,
	.needs = needs,
	.negotiate = negotiate,
};
DRV_PATTERN(phases);
