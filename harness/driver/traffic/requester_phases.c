/* SPDX-License-Identifier: BSD-3-Clause */
/* A requester's memory and channels, the phases that its loop runs, and what it counted. */
#include <stdlib.h>
#include <string.h>

#include "traffic/requester_parts.h"

const char *const drv_payload_words[] = {"usual", "solicited", "unsolicited", "copied", NULL};

_Static_assert(DRV_REQUESTER_DEPTH_MAX <= 1u << DRV_REQUESTER_SLOT_BITS,
	       "a slot number fits its bits of the token");
_Static_assert(DRV_FLOW_1_NUMBER << DRV_REQUESTER_SLOT_BITS == DRV_TOKEN_FLOW_1,
	       "numbers of a second exchange mark its tokens");

/* ---- start and stop ---- */

static int make_slots(struct drv_requester *requester, struct drv_fail *fail)
{
	const uint32_t depth = requester->exchange.depth;
	bool *in_flight = calloc(depth, sizeof(*in_flight));

	requester->progress.in_flight = in_flight;
	requester->progress.slots = depth;
	while (requester->ready_mask + 1 < depth)
		requester->ready_mask = 2 * requester->ready_mask + 1;
	requester->ready = calloc(requester->ready_mask + 1u, sizeof(*requester->ready));
	requester->ops = calloc(depth, sizeof(*requester->ops));
	if (in_flight && requester->ready && requester->ops)
		return 0;
	drv_requester_stop(requester);
	return drv_fail_set(fail, DRV_MEMORY, "no memory for the slots of %u operations", depth);
}

/* Requests, and behind all of them replies, where these have a place of their own. */
static int make_buffers(struct drv_requester *requester, struct drv_fail *fail)
{
	const struct drv_exchange *exchange = &requester->exchange;
	const size_t request_stride =
		drv_memory_stride(drv_form_bytes(exchange->form, exchange->request_bytes));
	const bool has_results = exchange->form == DRV_FORM_NATIVE || requester->copies || requester->away;
	const size_t result_stride = has_results ? drv_memory_stride(exchange->reply_bytes) : 0;
	struct drv_engine *engine = requester->progress.port.engine;
	uint8_t *memory =
		drv_pool_take(engine, exchange->flow_1 ? DRV_POOL_REQUESTER_FLOW_1 : DRV_POOL_REQUESTER,
			      exchange->depth * (request_stride + result_stride), fail);

	if (!memory) {
		drv_requester_stop(requester);
		return -1;
	}
	for (uint32_t index = 0; index < exchange->depth; index++) {
		struct drv_op *op = &requester->ops[index];

		op->chan = engine->channels[0].chan;
		op->payload = memory + index * request_stride;
		if (result_stride)
			op->result = memory + exchange->depth * request_stride + index * result_stride;
	}
	return 0;
}

int drv_requester_start(struct drv_requester *requester, struct drv_engine *engine,
			struct drv_exchange exchange, struct drv_samples *samples, struct drv_fail *fail)
{
	memset(requester, 0, sizeof(*requester));
	if (exchange.depth > DRV_REQUESTER_DEPTH_MAX)
		return drv_fail_set(fail, DRV_DEPTH_TOO_DEEP,
				    "wanted %u operations outstanding, tokens have room for %u",
				    exchange.depth, DRV_REQUESTER_DEPTH_MAX);
	drv_progress_start(&requester->progress, engine, NULL, NULL, 0);
	requester->progress.check.seed = ~exchange.seed;
	requester->progress.check.touch = exchange.touch != DRV_TOUCH_NONE;
	drv_check_phase(&requester->progress.check, false, 0);
	requester->exchange = exchange;
	requester->message = drv_message_of(engine, exchange.request_bytes, exchange.seed,
					    exchange.touch != DRV_TOUCH_NONE);
	requester->message.lossy = !requester->progress.check.reliable;
	requester->message.trailer = exchange.form == DRV_FORM_EMULATED ? DRV_RPC_REQUEST : 0;
	requester->message.in_place &= exchange.form != DRV_FORM_NATIVE;
	requester->places =
		exchange.form == DRV_FORM_NATIVE && exchange.reply_bytes &&
		(exchange.payload == DRV_PAYLOAD_USUAL || exchange.payload == DRV_PAYLOAD_SOLICITED);
	requester->copies = exchange.payload == DRV_PAYLOAD_COPIED;
	requester->away = exchange.reply != DRV_REPLY_CONT;
	requester->samples = samples;
	requester->patience = drv_clock_to_ticks(&engine->clock, DRV_LOSS_MAX_NS);
	requester->next_number = exchange.flow_1 ? DRV_FLOW_1_NUMBER : 0;
	drv_requester_listen(requester);
	if (make_slots(requester, fail) || make_buffers(requester, fail))
		return -1;
	return drv_reply_thread_start(requester, fail);
}

void drv_requester_call_on(struct drv_requester *requester, struct cadge_chan *chan)
{
	for (uint32_t index = 0; index < requester->exchange.depth; index++)
		requester->ops[index].chan = chan;
}

void drv_requester_stop(struct drv_requester *requester)
{
	drv_reply_thread_stop(requester);
	free(requester->progress.in_flight);
	free(requester->ready);
	free(requester->ops);
	requester->progress.in_flight = NULL;
	requester->ready = NULL;
	requester->ops = NULL;
}

void drv_requester_counts(const struct drv_requester *requester, struct drv_counts *counts)
{
	counts->posts = true;
	counts->posted += requester->posted;
	counts->posted_keys += requester->key_sum;
	drv_check_counts(&requester->progress.check, counts);
	drv_check_counts(&requester->thread.check, counts);
}

/* ---- phases ---- */

static bool complete_nothing(struct drv_requester *requester, const struct drv_op *op, uint64_t now)
{
	(void)requester, (void)op, (void)now;
	return true;
}

static bool complete_warmup(struct drv_requester *requester, const struct drv_op *op, uint64_t now)
{
	return !drv_warmup_add(&requester->warmup, now, now - op->start);
}

static void begin(struct drv_requester *requester, enum drv_step step, drv_complete_fn complete)
{
	const uint64_t operations = drv_engine_operations(requester->progress.port.engine);

	requester->step = step;
	requester->complete = complete;
	requester->end = UINT64_MAX;
	/* of launches that count operations: after how many this phase ends */
	requester->limit = operations == UINT64_MAX ? UINT64_MAX : requester->posted + operations;
}

int drv_requester_verify(struct drv_requester *requester, uint64_t phase, struct drv_fail *fail)
{
	const struct drv_exchange *exchange = &requester->exchange;

	begin(requester, DRV_STEP_VERIFY, complete_nothing);
	requester->limit =
		requester->posted + drv_full_messages(exchange->request_bytes > exchange->reply_bytes
							      ? exchange->request_bytes
							      : exchange->reply_bytes,
						      exchange->depth);
	drv_check_phase(&requester->progress.check, true, phase);
	if (drv_requester_run(requester, fail))
		return -1;
	drv_check_phase(&requester->progress.check, false, 0);
	return 0;
}

int drv_requester_warmup(struct drv_requester *requester, uint64_t cap_ns, struct drv_fail *fail)
{
	const struct drv_clock *clock = &requester->progress.port.engine->clock;
	struct drv_warmup *warmup = &requester->warmup;

	begin(requester, DRV_STEP_WARMUP, complete_warmup);
	drv_warmup_begin(warmup, clock, cap_ns);
	if (drv_requester_run(requester, fail))
		return -1;
	requester->patience = drv_warmup_patience(warmup, clock);
	return 0;
}

int drv_requester_measure(struct drv_requester *requester, uint64_t duration_ns, struct drv_record *record,
			  struct drv_fail *fail)
{
	const struct drv_engine *engine = requester->progress.port.engine;
	const uint64_t completed = requester->completed, lost = requester->lost, late = requester->late;
	uint64_t last;
	int status;

	begin(requester, DRV_STEP_MEASURE, requester->measured);
	requester->began = drv_clock_now(&engine->clock);
	requester->end = drv_engine_end(engine, requester->began, duration_ns);
	status = drv_requester_run(requester, fail);
	/* a loss at the end took time as well, which no completion marks */
	last = requester->lost == lost ? requester->last : drv_clock_now(&engine->clock);
	record->elapsed_ns = drv_clock_to_ns(&engine->clock, last - requester->began);
	record->operations = requester->completed - completed;
	record->bytes =
		record->operations * (requester->exchange.request_bytes + requester->exchange.reply_bytes);
	record->lost = requester->lost - lost;
	record->late = requester->late - late;
	return status;
}

static bool waits(void *arg)
{
	const struct drv_requester *requester = arg;

	if (requester->asks)
		return requester->progress.in_flight_count > 0 ||
		       (requester->progress.check.reliable && requester->posted > 0 &&
			!requester->answered_at);
	return requester->progress.in_flight_count > 0 || drv_requester_outstanding(requester) > 0;
}

bool drv_requester_settle(struct drv_requester *requester)
{
	/* nothing is recorded any more, and nothing starts */
	requester->complete = complete_nothing;
	requester->ending = true;
	return drv_progress_settle(&requester->progress, waits, requester);
}

/* ---- what an exchange asks of a layer ---- */

enum drv_form drv_call_form(const struct drv_ability *both)
{
	return both->caps & CADGE_CAP_RPC ? DRV_FORM_NATIVE : DRV_FORM_EMULATED;
}

void drv_calls_need(uint64_t request_bytes, uint64_t reply_bytes, uint64_t depth, struct drv_needs *needs_out)
{
	needs_out->message_bytes =
		(request_bytes > reply_bytes ? request_bytes : reply_bytes) + DRV_RPC_TRAILER_BYTES;
	needs_out->depth = (uint32_t)depth;
}

int drv_exchange_negotiate(const struct drv_exchange *exchange, const char *request, const char *reply,
			   const struct drv_offer *offer, struct drv_fail *fail)
{
	if (exchange->depth > DRV_REQUESTER_DEPTH_MAX)
		return drv_fail_set(fail, DRV_DEPTH_TOO_DEEP,
				    "wanted %u operations outstanding, the driver keeps at most %u",
				    exchange->depth, DRV_REQUESTER_DEPTH_MAX);
	if (drv_reply_thread_negotiate(exchange, &offer->both, fail))
		return -1;
	return drv_negotiate_message(drv_form_bytes(exchange->form, exchange->request_bytes), request,
				     &offer->both, fail) ||
			       drv_negotiate_message(drv_form_bytes(exchange->form, exchange->reply_bytes),
						     reply, &offer->both, fail)
		       ? -1
		       : 0;
}

/* ---- the role ---- */

int drv_requester_role_prepare(struct drv_role_run *run, struct drv_exchange exchange, struct drv_fail *fail)
{
	struct drv_requester *requester = run->state;
	struct drv_samples *samples = drv_record_first_samples(run->record, fail);

	if (!samples || drv_requester_start(requester, run->engine, exchange, samples, fail))
		return -1;
	run->engine->sink = requester->progress.sink;
	run->sleep = exchange.depth == 1 ? DRV_SLEEP_EACH : DRV_SLEEP_FREE;
	return 0;
}

void drv_requester_role_stop(struct drv_role_run *run)
{
	drv_requester_stop(run->state);
}

int drv_requester_role_verify(struct drv_role_run *run, uint64_t serial, struct drv_fail *fail)
{
	return drv_requester_verify(run->state, serial, fail);
}

int drv_requester_role_warmup(struct drv_role_run *run, uint64_t cap_ns, struct drv_fail *fail)
{
	struct drv_requester *requester = run->state;
	const int status = drv_requester_warmup(requester, cap_ns, fail);

	drv_record_warmup(run->record, &requester->warmup);
	return status;
}

int drv_requester_role_measure(struct drv_role_run *run, struct drv_fail *fail)
{
	return drv_requester_measure(run->state, run->duration_ns, run->record, fail);
}

bool drv_requester_role_settle(struct drv_role_run *run)
{
	return drv_requester_settle(run->state);
}

void drv_requester_role_phase(struct drv_role_run *run, const struct drv_phase *phase,
			      struct drv_counts *counts_out)
{
	(void)phase;
	drv_requester_counts(run->state, counts_out);
}
