/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern ring, for tests: every endpoint sends a token around the ring of all and takes the time until it is back,
 * again and again, and passes on the tokens of the others meanwhile and afterwards. At place self the ring is made of
 * the channels of the one endpoint: what arrives on one leaves on the next.
 */
#include "ring.params.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/pattern.h"
#include "traffic/progress.h"
#include "traffic/payload.h"

#define WAIT_NS    UINT64_C(10000000)
#define LAPS       2u
#define SETTLE_NS  UINT64_C(500000000)
#define WORD_OWNER 0
#define WORD_LAP   8
#define HEAD       16u

/* One token on its way through here; slot number = owner. */
struct token {
	uint8_t *payload;
	uint32_t channel;
	bool waiting, in_flight;
};

struct ring {
	/* first: callbacks get a pointer to it */
	struct drv_port port;
	struct token tokens[DRV_ENDPOINTS_MAX];
	uint32_t first_channel, last_channel;
	uint32_t waiting, in_flight_count;
	uint64_t bytes, seed, serial;
	bool full, failed, home;
	uint64_t lap, laps, hops, checked, full_checked, mismatches;
	uint64_t key_posted, key_back;
	struct drv_samples *samples;
	struct drv_warmup warmup;
	struct drv_fail fail;
	char mismatch[160];
};

static void wrong(struct ring *ring, const char *what, uint64_t number)
{
	if (!ring->mismatches++)
		snprintf(ring->mismatch, sizeof(ring->mismatch), "%s %" PRIu64, what, number);
}

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct ring *ring = (struct ring *)sink;
	const struct drv_engine *engine = ring->port.engine;
	const uint64_t owner = bytes >= HEAD ? drv_load64((const uint8_t *)data + WORD_OWNER) : UINT64_MAX;
	struct token *token;

	(void)lend;
	if (bytes != ring->bytes || owner >= engine->launch->endpoints_count) {
		wrong(ring, "an unexpected message of bytes", bytes);
		return CADGE_TAKEN;
	}
	if (owner == (uint64_t)engine->endpoint && (!engine->self || peer == ring->last_channel)) {
		if (drv_load64((const uint8_t *)data + WORD_LAP) != ring->lap)
			wrong(ring, "a token came back in lap", ring->lap);
		else
			ring->checked++;
		if (ring->full) {
			ring->full_checked++;
			if (!drv_body_holds(data, bytes, ring->seed, ring->serial, ring->lap))
				wrong(ring, "a token came back with a wrong body in lap", ring->lap);
		}
		ring->key_back += ring->lap;
		ring->home = true;
		return CADGE_TAKEN;
	}
	token = &ring->tokens[owner];
	if (token->waiting) {
		wrong(ring, "a second token of endpoint", owner);
		return CADGE_TAKEN;
	}
	ring->hops++;
	memcpy(token->payload, data, bytes);
	token->channel = engine->self ? peer + 1 : ring->first_channel;
	token->waiting = true;
	ring->waiting++;
	return CADGE_TAKEN;
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t number, int code)
{
	struct ring *ring = (struct ring *)sink;

	(void)peer;
	if (number >= DRV_ENDPOINTS_MAX || !ring->tokens[number].in_flight) {
		wrong(ring, "an unexpected completion of token", number);
		return;
	}
	ring->tokens[number].in_flight = false;
	ring->in_flight_count--;
	if (code < 0 && !ring->failed) {
		ring->failed = true;
		drv_engine_fail("post", code, &ring->fail);
	}
}

/* Sends on what waits here. */
static int drain(void *arg, struct drv_fail *fail)
{
	struct ring *ring = arg;
	struct drv_engine *engine = ring->port.engine;

	for (uint32_t i = 0; ring->waiting && i < engine->launch->endpoints_count; i++) {
		struct token *token = &ring->tokens[i];
		struct cadge_iov iov = {.base = token->payload, .bytes = (size_t)ring->bytes};
		int code;

		if (!token->waiting || token->in_flight)
			continue;
		code = engine->layer->post(engine->channels[token->channel].chan, &iov, 1, 0, i);
		if (code == CADGE_BUSY)
			break;
		if (code < 0)
			return drv_engine_fail("post", code, fail);
		token->waiting = false;
		ring->waiting--;
		token->in_flight = code == CADGE_QUEUED;
		ring->in_flight_count += code == CADGE_QUEUED;
	}
	if (ring->failed)
		*fail = ring->fail;
	return ring->failed ? -1 : 0;
}

static bool due(void *arg)
{
	const struct ring *ring = arg;

	return ring->waiting > 0 || ring->failed;
}

/* One lap of our token. */
static int lap(struct ring *ring, struct drv_fail *fail)
{
	struct drv_engine *engine = ring->port.engine;
	struct token *token = &ring->tokens[engine->endpoint];
	uint32_t idle = 0;

	while (token->in_flight || token->waiting)
		if (engine->layer->poll(engine->ctx, &ring->port.sink) < 0 || drain(ring, fail))
			return -1;
	ring->home = false;
	drv_store64(token->payload + WORD_OWNER, (uint64_t)engine->endpoint);
	drv_store64(token->payload + WORD_LAP, ++ring->lap);
	if (ring->full)
		drv_body_fill(token->payload, (size_t)ring->bytes, ring->seed, ring->serial, ring->lap);
	ring->key_posted += ring->lap;
	token->channel = ring->first_channel;
	token->waiting = true;
	ring->waiting++;
	while (!ring->home) {
		int events;

		if (ring->waiting && drain(ring, fail))
			return -1;
		events = engine->layer->poll(engine->ctx, &ring->port.sink);
		if (events < 0)
			return drv_engine_fail("poll", events, fail);
		if (events == 0 && engine->block && !ring->waiting) {
			if (drv_engine_wait(engine, WAIT_NS, fail))
				return -1;
		} else if (++idle & 63) {
			continue;
		}
		if (drv_engine_poll_oob(engine, drv_clock_now(&engine->clock), NULL, fail))
			return -1;
	}
	ring->laps++;
	return 0;
}

static int prepare(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;
	struct drv_engine *engine = run->engine;
	const size_t stride = drv_memory_stride(parameters->bytes), tokens = engine->launch->endpoints_count;
	struct ring *ring = run->state;
	uint8_t *memory;

	drv_port_start(&ring->port, engine);
	ring->port.sink.recv = on_recv;
	ring->port.sink.sent = on_sent;
	ring->bytes = parameters->bytes;
	ring->seed = run->seed;
	ring->full = true;
	ring->serial = 1;
	ring->last_channel = engine->channels_count - 1;
	if (!engine->self && parameters->way == 0)
		ring->first_channel = ring->last_channel;
	memory = drv_pool_take(engine, DRV_POOL_REQUESTER, tokens * stride, fail);
	ring->samples = drv_record_samples(run->record, LAP, fail);
	if (!memory || !ring->samples)
		return -1;
	for (size_t i = 0; i < tokens; i++)
		ring->tokens[i].payload = memory + i * stride;
	engine->sink = &ring->port.sink;
	return 0;
}

static int verify(struct drv_role_run *run, uint64_t serial, struct drv_fail *fail)
{
	struct ring *ring = run->state;

	ring->full = true;
	ring->serial = serial;
	for (uint32_t i = 0; i < LAPS; i++)
		if (lap(ring, fail))
			return -1;
	return 0;
}

static int warmup(struct drv_role_run *run, uint64_t cap_ns, struct drv_fail *fail)
{
	const struct drv_clock *clock = &run->engine->clock;
	struct ring *ring = run->state;
	uint64_t before = drv_clock_now(clock), now;

	drv_warmup_start(&ring->warmup, before, drv_clock_to_ticks(clock, 100000),
			 drv_clock_to_ticks(clock, cap_ns));
	do {
		if (lap(ring, fail))
			return -1;
		now = drv_clock_now(clock);
	} while (!drv_warmup_add(&ring->warmup, now, now - before) && (before = now));
	drv_record_warmup(run->record, &ring->warmup);
	return 0;
}

static int measure(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct drv_clock *clock = &run->engine->clock;
	struct ring *ring = run->state;
	const uint64_t laps = ring->laps, hops = ring->hops, started = drv_clock_now(clock);
	const uint64_t end = drv_engine_end(run->engine, started, run->duration_ns);
	uint64_t before = started, now;

	do {
		if (lap(ring, fail))
			return -1;
		now = drv_clock_now(clock);
		drv_sample(ring->samples, drv_clock_to_ns(clock, now - before));
		before = now;
	} while (now < end && ring->laps - laps < drv_engine_operations(run->engine));
	run->record->elapsed_ns = drv_clock_to_ns(clock, now - started);
	run->record->operations = ring->laps - laps;
	run->record->bytes = run->record->operations * ring->bytes;
	drv_record_count(run->record, HOPS, ring->hops - hops);
	drv_record_fit(run->record, PER_HOP,
		       (double)run->record->elapsed_ns / (double)run->record->operations /
			       (double)(run->engine->self ? run->engine->channels_count
							  : run->engine->launch->endpoints_count));
	return 0;
}

static bool settle(struct drv_role_run *run)
{
	struct ring *ring = run->state;
	const uint64_t until_ns = drv_now_ns() + SETTLE_NS;
	struct drv_fail ignored;

	while ((ring->in_flight_count || ring->waiting) && drv_now_ns() < until_ns)
		if (run->engine->layer->poll(run->engine->ctx, &ring->port.sink) < 0 || drain(ring, &ignored))
			return false;
	/* a token of ours that is somewhere could come back in the next attempt */
	return !ring->in_flight_count && !ring->waiting && ring->home;
}

static int serve(struct drv_role_run *run, json_t **message_out, struct drv_fail *fail)
{
	struct ring *ring = run->state;

	return drv_poll_until_message(run->engine, &ring->port.sink, ring, due, drain, message_out, fail);
}

static void phase(struct drv_role_run *run, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	struct ring *ring = run->state;

	counts_out->posts = counts_out->executes = true;
	counts_out->posted = ring->lap;
	counts_out->posted_keys = ring->key_posted;
	counts_out->executed = ring->laps;
	counts_out->executed_keys = ring->key_back;
	counts_out->checked = ring->checked;
	counts_out->full_checked = ring->full_checked;
	counts_out->mismatches = ring->mismatches;
	snprintf(counts_out->mismatch, sizeof(counts_out->mismatch), "%s", ring->mismatch);
	ring->full = phase->full;
	ring->serial = phase->serial;
}

static void needs(const void *parameters, struct drv_needs *needs_out)
{
	needs_out->message_bytes = ((const struct parameters *)parameters)->bytes;
	needs_out->depth = DRV_ENDPOINTS_MAX;
}

static int negotiate(const void *at, const struct drv_offer *offer, struct drv_fail *fail)
{
	const uint64_t bytes = ((const struct parameters *)at)->bytes;

	if (bytes < HEAD)
		return drv_fail_set(fail, DRV_NO_CAP, "wanted a token of %" PRIu64 " bytes, its head has %u",
				    bytes, HEAD);
	if (!(offer->both.caps & CADGE_CAP_RELIABLE))
		return drv_fail_set(fail, DRV_NO_CAP, "wanted a ring, where no token may be lost");
	return drv_negotiate_message(bytes, "token", &offer->both, fail);
}

#define NODE                                                                                                 \
	.name = "node", .measures = true, .threads = true, .state_bytes = sizeof(struct ring),               \
	.prepare = prepare, .verify = verify, .warmup = warmup, .measure = measure, .settle = settle,        \
	.serve = serve, .phase = phase

static const struct drv_pattern ring = {
	PATTERN_TABLE,          .roles = (const struct drv_role[]){{NODE}, {.name = NULL}},
	.self = true,           .needs = needs,
	.negotiate = negotiate,
};
DRV_PATTERN(ring);
