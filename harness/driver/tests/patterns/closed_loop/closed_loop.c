/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern closed_loop: a closed loop of requests and answers of two sizes, one at a time, with the stock responder.
 * The shortest pattern with a loop of its own.
 */
#include "closed_loop.params.h"

#include "traffic/dialog.h"

struct state {
	struct drv_dialog dialog;
	struct drv_asker asker;
	struct drv_responder responder;
	uint64_t number;
};

static int prepare_server(struct drv_play *play, struct drv_fail *fail)
{
	const struct parameters *parameters = play->parameters;

	return drv_dialog_responder(play, &((struct state *)play->state)->responder, NULL,
				    (size_t)parameters->reply_bytes, true, fail);
}

static int prepare_client(struct drv_play *play, struct drv_fail *fail)
{
	const struct parameters *parameters = play->parameters;

	return drv_dialog_requester(play, &((struct state *)play->state)->asker, NULL, 1,
				    (size_t)parameters->request_bytes, true, fail) ||
			       !drv_record_samples(play->record, 0, fail)
		       ? -1
		       : 0;
}

static int call(struct drv_play *play, uint64_t *span_out, struct drv_fail *fail)
{
	const struct parameters *parameters = play->parameters;
	struct state *state = play->state;

	return drv_call(&state->asker, (size_t)parameters->request_bytes,
			drv_ask_key(state->number++, (size_t)parameters->reply_bytes), span_out, fail);
}

static int verify(struct drv_play *play, uint64_t serial, struct drv_fail *fail)
{
	struct drv_asker *asker = &((struct state *)play->state)->asker;
	uint64_t ignored;
	int status;

	drv_asker_phase(asker, true, serial);
	status = call(play, &ignored, fail);
	drv_asker_phase(asker, false, serial);
	return status < 0 ? -1 : 0;
}

static int warmup(struct drv_play *play, uint64_t cap_ns, struct drv_fail *fail)
{
	const struct drv_clock *clock = &play->engine->clock;
	struct drv_warmup *warmup = &((struct state *)play->state)->asker.warmup;
	uint64_t span = 0;
	bool over = false;
	int status = 0;

	drv_warmup_start(warmup, drv_clock_now(clock), drv_clock_to_ticks(clock, DRV_ASKER_WINDOW_NS),
			 drv_clock_to_ticks(clock, cap_ns));
	while (status >= 0 && !over) {
		status = call(play, &span, fail);
		over = status ? drv_warmup_expired(warmup, drv_clock_now(clock))
			      : drv_warmup_add(warmup, drv_clock_now(clock), span);
	}
	drv_record_warmup(play->record, warmup);
	return status < 0 ? -1 : 0;
}

static int measure(struct drv_play *play, struct drv_fail *fail)
{
	const struct parameters *parameters = play->parameters;
	const struct drv_clock *clock = &play->engine->clock;
	const uint64_t begin = drv_clock_now(clock);
	const uint64_t end = drv_engine_end(play->engine, begin, play->duration_ns);
	struct drv_asker *asker = &((struct state *)play->state)->asker;
	const uint64_t lost = asker->lost, late = asker->late;
	struct drv_record *record = play->record;
	uint64_t span;

	do {
		const int status = call(play, &span, fail);

		if (status < 0)
			return -1;
		if (status)
			continue;
		record->operations++;
		drv_sample(record->values[0].samples, drv_clock_to_ns(clock, span));
	} while (drv_clock_now(clock) < end && record->operations < drv_engine_operations(play->engine));
	record->elapsed_ns = drv_clock_to_ns(clock, drv_clock_now(clock) - begin);
	record->bytes = record->operations * (parameters->request_bytes + parameters->reply_bytes);
	record->lost = asker->lost - lost;
	record->late = asker->late - late;
	return 0;
}

static void needs(const void *at, struct drv_needs *needs_out)
{
	const struct parameters *parameters = at;

	needs_out->message_bytes = parameters->request_bytes > parameters->reply_bytes
					   ? parameters->request_bytes
					   : parameters->reply_bytes;
}

#define CLIENT                                                                                               \
	.acts = true, .state_bytes = sizeof(struct state), .prepare = prepare_client, .verify = verify,      \
	.warmup = warmup, .measure = measure, .settle = drv_dialog_settle, .phase = drv_dialog_phase

static const struct drv_pattern closed_loop = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "client", .channels_most = 1, CLIENT},
			{.name = "server",
			 .state_bytes = sizeof(struct state),
			 .channels_most = 1,
			 .prepare = prepare_server,
			 .serve = drv_responder_serve,
			 .drain = drv_responder_drain,
			 .phase = drv_dialog_phase},
			{.name = NULL},
		},
	.self = true,
	.needs = needs,
};
DRV_PATTERN(closed_loop);
