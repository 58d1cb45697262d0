/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern postpoll, for comparisons with native tools: what a layer takes for a message there and one back where nothing but
 * its own post and poll is called, on the same module, connection and buffers that the pattern pingpong has in the same
 * launch. What pingpong takes more is the driver's; what this takes more than the library's own tool is the adapter's.
 *
 * The clock is read once a batch, so that its cost is not in it. Polls only. Its loops are therefore its own: a turn of
 * progress.h or a payload's head would be part of what is measured.
 *
 * With `stamp: write+read` the first 16 bytes of each message are written anew before it leaves and read where it arrives, as the
 * other patterns do to know that it is the right one: so much of the driver's part is nothing but that.
 */
#include "postpoll.params.h"

#include <stddef.h>
#include <string.h>

#include "launch/pattern.h"
#include "traffic/demux.h"
#include "traffic/progress.h"

#define BATCH 64u

struct direct {
	/* first: callbacks get a pointer to it */
	struct drv_progress progress;
	struct cadge_chan *chan;
	/* of its tokens */
	uint64_t mark;
	struct cadge_iov iov;
	/* of each message, so many bytes are written and compared; what of the next one sent, and received */
	size_t stamp_bytes;
	uint64_t stamp[2], expected[2];
	bool answers_in_sink;
	/* answers that are due */
	uint32_t due;
	/* messages that came, and round trips that were begun and answered */
	uint64_t received, begun, answered;
	/* messages of ours that the library still has */
	uint64_t in_flight;
	struct drv_samples *samples;
};

/* Writes the next stamp into the message, or nothing. */
DRV_INLINE void write_stamp(struct direct *direct)
{
	if (!direct->stamp_bytes)
		return;
	memcpy(direct->iov.base, direct->stamp, direct->stamp_bytes);
	direct->stamp[0]++;
}

DRV_INLINE void read_stamp(struct direct *direct, const void *data)
{
	if (!direct->stamp_bytes)
		return;
	if (DRV_UNLIKELY(memcmp(data, direct->expected, direct->stamp_bytes) != 0) &&
	    !direct->progress.failed) {
		direct->progress.failed = true;
		drv_fail_set(&direct->progress.fail, DRV_PROTOCOL,
			     "a message has another stamp than its place");
	}
	direct->expected[0]++;
}

/* Sends the message, or polls until the layer takes it. */
DRV_INLINE int post(struct direct *direct, struct drv_fail *fail)
{
	const struct drv_engine *engine = direct->progress.port.engine;

	write_stamp(direct);
	for (;;) {
		const int code = engine->layer->post(direct->chan, &direct->iov, 1, 0, direct->mark);

		if (DRV_LIKELY(code == CADGE_DONE))
			return 0;
		if (code == CADGE_QUEUED) {
			direct->in_flight++;
			return 0;
		}
		if (code != CADGE_BUSY)
			return drv_engine_fail("post", code, fail);
		if (engine->layer->poll(engine->ctx, engine->sink) < 0)
			return drv_engine_fail("poll", code, fail);
	}
}

/* Answers where that may be done inside the callback and the layer is not busy, else puts it off. */
DRV_INLINE void answer(struct direct *direct)
{
	const struct drv_engine *engine = direct->progress.port.engine;

	if (direct->answers_in_sink) {
		int code;

		write_stamp(direct);
		code = engine->layer->post(direct->chan, &direct->iov, 1, 0, direct->mark);

		if (DRV_LIKELY(code == CADGE_DONE || code == CADGE_QUEUED)) {
			direct->in_flight += code == CADGE_QUEUED;
			direct->answered++;
			return;
		}
		direct->stamp[0]--; /* it is written again when it leaves */
	}
	direct->due++;
	direct->progress.port.due = true;
}

static enum cadge_keep client_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				   struct cadge_lend *lend)
{
	(void)peer, (void)bytes, (void)lend;
	read_stamp((struct direct *)sink, data);
	((struct direct *)sink)->received++;
	return CADGE_TAKEN;
}

static enum cadge_keep server_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				   struct cadge_lend *lend)
{
	(void)peer, (void)bytes, (void)lend;
	read_stamp((struct direct *)sink, data);
	answer((struct direct *)sink);
	return CADGE_TAKEN;
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct direct *direct = (struct direct *)sink;

	(void)peer, (void)token;
	direct->in_flight--;
	if (code < 0)
		drv_progress_fail(&direct->progress, "post", code);
}

static bool due(void *arg)
{
	return ((const struct direct *)arg)->progress.port.due;
}

static int drain(void *arg, struct drv_fail *fail)
{
	struct direct *direct = arg;

	for (; direct->due; direct->due--, direct->answered++)
		if (post(direct, fail))
			return -1;
	direct->progress.port.due = false;
	return 0;
}

static int prepare(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;
	struct drv_engine *engine = run->engine;
	struct direct *direct = run->state;

	if (engine->block)
		return drv_fail_set(fail, DRV_NO_CAP, "wanted to block, the direct loop only polls");
	drv_progress_start(&direct->progress, engine, run->role->measures ? client_recv : server_recv, NULL,
			   0);
	direct->progress.port.match = DRV_MATCH_ALTERNATE;
	direct->progress.port.due = false;
	direct->mark = run->role->measures ? 0 : DRV_TOKEN_RESPONDER;
	direct->progress.port.sink.sent = on_sent;
	direct->chan = engine->channels[0].chan;
	direct->answers_in_sink = (engine->offer.both.caps & CADGE_CAP_POST_IN_SINK) != 0;
	direct->iov.bytes = (size_t)parameters->bytes;
	if (parameters->stamp)
		direct->stamp_bytes =
			direct->iov.bytes < sizeof(direct->stamp) ? direct->iov.bytes : sizeof(direct->stamp);
	direct->iov.base =
		drv_pool_take(engine, run->role->measures ? DRV_POOL_REQUESTER : DRV_POOL_RESPONDER,
			      drv_memory_stride(parameters->bytes), fail);
	if (!direct->iov.base)
		return -1;
	if (run->role->measures) {
		direct->samples = drv_record_samples(run->record, 0, fail);
		if (!direct->samples)
			return -1;
	}
	run->sleep = DRV_SLEEP_UNJUDGED;
	engine->sink = &direct->progress.port.sink;
	return 0;
}

/* One message there and one back. */
DRV_INLINE int round_trip(struct direct *direct, struct drv_fail *fail)
{
	const struct drv_engine *engine = direct->progress.port.engine;
	const struct cadge_layer *layer = engine->layer;
	const uint64_t wanted = direct->received + 1;
	uint32_t idle = 0;

	direct->begun++;
	if (post(direct, fail))
		return -1;
	/* the message may leave from the same buffer next time only when the library has given it back */
	while (direct->received != wanted || DRV_UNLIKELY(direct->in_flight > 0)) {
		const int events = layer->poll(engine->ctx, &direct->progress.port.sink);

		if (DRV_UNLIKELY(events < 0))
			return drv_engine_fail("poll", events, fail);
		if (DRV_UNLIKELY(!(++idle & 1023)) &&
		    drv_engine_poll_oob(direct->progress.port.engine, drv_clock_now(&engine->clock), NULL,
					fail))
			return -1;
	}
	return 0;
}

static int batch(struct direct *direct, struct drv_fail *fail)
{
	int status = 0;

	for (uint32_t i = 0; i < BATCH && !status; i++)
		status = round_trip(direct, fail);
	if (!status && direct->progress.failed)
		*fail = direct->progress.fail;
	return direct->progress.failed ? -1 : status;
}

static int verify(struct drv_role_run *run, uint64_t serial, struct drv_fail *fail)
{
	(void)serial;
	return batch(run->state, fail);
}

static int warmup(struct drv_role_run *run, uint64_t cap_ns, struct drv_fail *fail)
{
	const struct drv_clock *clock = &run->engine->clock;
	const uint64_t end = drv_engine_end(run->engine, drv_clock_now(clock), cap_ns);
	const struct direct *direct = run->state;
	const uint64_t begun = direct->begun;

	do
		if (batch(run->state, fail))
			return -1;
	while (drv_clock_now(clock) < end && direct->begun - begun < drv_engine_operations(run->engine));
	return 0;
}

static int measure(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct drv_clock *clock = &run->engine->clock;
	struct direct *direct = run->state;
	const uint64_t begun = direct->begun, started = drv_clock_now(clock);
	const uint64_t end = drv_engine_end(run->engine, started, run->duration_ns);
	uint64_t before = started, now;

	do {
		if (batch(direct, fail))
			return -1;
		now = drv_clock_now(clock);
		drv_sample(direct->samples, drv_clock_to_ns(clock, now - before));
		before = now;
	} while (now < end && direct->begun - begun < drv_engine_operations(run->engine));
	run->record->elapsed_ns = drv_clock_to_ns(clock, now - started);
	run->record->operations = direct->begun - begun;
	run->record->bytes = 2 * run->record->operations * direct->iov.bytes;
	return 0;
}

static bool waits(void *arg)
{
	return ((const struct direct *)arg)->in_flight > 0;
}

static bool settle(struct drv_role_run *run)
{
	return drv_progress_settle(&((struct direct *)run->state)->progress, waits, run->state);
}

static int serve(struct drv_role_run *run, json_t **message_out, struct drv_fail *fail)
{
	struct direct *direct = run->state;

	return drv_poll_until_message(run->engine, &direct->progress.port.sink, direct, due, drain,
				      message_out, fail);
}

static void phase(struct drv_role_run *run, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	const struct direct *direct = run->state;

	(void)phase;
	counts_out->posts = run->role->measures;
	counts_out->posted = direct->begun;
	counts_out->executes = !run->role->measures;
	counts_out->executed = direct->answered;
}

static void needs(const void *parameters, struct drv_needs *needs_out)
{
	needs_out->message_bytes = ((const struct parameters *)parameters)->bytes;
}

#define CLIENT                                                                                               \
	.measures = true, .channels_most = 1, .state_bytes = sizeof(struct direct), .prepare = prepare,      \
	.verify = verify, .warmup = warmup, .measure = measure, .settle = settle, .phase = phase

static const struct drv_pattern postpoll = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "client", CLIENT},
			{.name = "server",
			 .channels_most = 1,
			 .state_bytes = sizeof(struct direct),
			 .prepare = prepare,
			 .serve = serve,
			 .drain = drain,
			 .phase = phase},
			{.name = NULL},
		},
	.self = true,
	.needs = needs,
};
DRV_PATTERN(postpoll);
