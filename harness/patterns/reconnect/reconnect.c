/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pattern reconnect: what it takes until a channel can be used. Each client has two channels to the server. One stays:
 * over it the two tell each other their addresses. The other is closed and opened, time after time, and each time
 * two messages go there and back on it. Several clients do so at the same time, each as fast as it can.
 *
 * A requester's channel stays as it is (requester.h), and here it is what is measured: the loops are its own, on progress.h.
 */
#include "reconnect.params.h"

#include <stdlib.h>
#include <string.h>

#include "launch/pattern.h"
#include "traffic/progress.h"
#include "measure/warmup.h"

/* While a channel comes up: not every library wakes who sleeps for messages of its own. */
#define NAP_NS UINT64_C(200000)
/* In front of an address: what tells such a message, and which connection it is for. */
#define OFFER_MAGIC      UINT64_C(0x7265666672646443)
#define OFFER_HEAD_BYTES 16u
#define ADDRESS_BYTES    4096u
#define OFFER_BYTES      (OFFER_HEAD_BYTES + ADDRESS_BYTES)
/* Ports and descriptors of closed connections stay with the kernel for a minute: a point does not use up all of them. */
#define ROUNDS_MOST 2000u
/* The numbers of a client's channels. */
enum { OFFERS, RENEWED };
/* A buffer of each kind, and the tokens of what is posted from it. */
enum { OFFER, MESSAGE, BUFFERS };

/* One end of a pair of channels. */
struct end {
	uint32_t offers, renewed;
	/* of this client's messages */
	uint64_t seed;
	/* of the engine's pool, by kind */
	uint8_t *buffers[BUFFERS];
	/* the peer's address came, for the connection with this number */
	bool offered;
	uint64_t number;
	uint8_t address[ADDRESS_BYTES];
	size_t address_bytes;
	/* server: a message is to be sent back; our own address is to be told, in so many bytes */
	bool answer_due, offer_due;
	size_t offer_bytes;
	/* of the message on its way, and how many there were before it */
	uint64_t key, messages;
};

struct reconnect {
	/* first: callbacks get a pointer to it; buffers are numbered from end to end */
	struct drv_progress progress;
	void (*usual_down)(struct cadge_sink *sink, uint32_t peer, int code);
	/* a client has one; the server one of each client; by channel, whose it is */
	struct end *ends;
	uint32_t ends_count;
	uint8_t end_of[DRV_PEERS_MAX];
	bool serves;
	uint64_t bytes;
	/* client: a message came back */
	bool answered;
	uint64_t posted, posted_keys;
	struct drv_samples *samples[QUANTITIES];
	struct drv_warmup warmup;
	bool in_flight[DRV_PEERS_MAX];
};

static struct end *end_of(struct reconnect *state, uint32_t channel)
{
	return &state->ends[channel < DRV_PEERS_MAX ? state->end_of[channel] : 0];
}

/* ---- what arrives ---- */

/* The peer's address, and that it has none of the connection before. */
static void take_offer(struct reconnect *state, struct end *end, const uint8_t *at, size_t bytes)
{
	const size_t address_bytes = bytes - OFFER_HEAD_BYTES;

	if (bytes < OFFER_HEAD_BYTES || address_bytes > ADDRESS_BYTES || drv_load64(at) != OFFER_MAGIC) {
		drv_check_wrong(&state->progress.check, "no address, but a message of %zu bytes", bytes);
		return;
	}
	if (end->offered || (!state->serves && drv_load64(at + 8) != end->number)) {
		drv_check_wrong(&state->progress.check, "an address for connection %" PRIu64,
				drv_load64(at + 8));
		return;
	}
	end->number = drv_load64(at + 8);
	memcpy(end->address, at + OFFER_HEAD_BYTES, address_bytes);
	end->address_bytes = address_bytes;
	end->offered = true;
}

/* A message on the channel that was made: there, or back again. */
static void take_message(struct reconnect *state, struct end *end, const void *data, size_t bytes)
{
	const uint64_t wanted = state->serves ? end->messages : end->key;
	struct drv_check *check = &state->progress.check;
	uint64_t key;

	if (bytes != state->bytes || (state->serves ? end->answer_due : state->answered)) {
		drv_check_wrong(check, "an unexpected message of %zu bytes", bytes);
		return;
	}
	check->seed = state->serves ? end->seed : ~end->seed;
	check->by_number = true;
	check->next_number = wanted;
	key = drv_check_take(check, data, bytes);
	if (state->serves) {
		end->key = key;
		end->messages++;
		end->answer_due = true;
	} else {
		state->answered = true;
	}
}

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct reconnect *state = (struct reconnect *)sink;
	struct end *end = end_of(state, peer);

	(void)lend;
	if (peer == end->offers)
		take_offer(state, end, data, bytes);
	else
		take_message(state, end, data, bytes);
	return CADGE_TAKEN;
}

/* That the other end has taken down the channel which is made again is no fault. */
static void on_down(struct cadge_sink *sink, uint32_t peer, int code)
{
	struct reconnect *state = (struct reconnect *)sink;

	if (peer == end_of(state, peer)->offers)
		state->usual_down(sink, peer, code);
}

/* ---- what both ends do ---- */

/* The number of an end's buffer, and the token of what is posted from it. */
static uint32_t slot_of(const struct reconnect *state, const struct end *end, uint32_t buffer)
{
	return (uint32_t)(end - state->ends) * BUFFERS + buffer;
}

static bool is_in_flight(const struct reconnect *state, const struct end *end, uint32_t buffer)
{
	return state->in_flight[slot_of(state, end, buffer)];
}

/* Posts from a buffer. 1: done; 0: not now; -1: failed. */
static int post(struct reconnect *state, struct end *end, uint32_t channel, uint32_t buffer, size_t bytes,
		struct drv_fail *fail)
{
	const struct drv_engine *engine = state->progress.port.engine;
	const struct cadge_iov iov = {end->buffers[buffer], bytes};
	const uint32_t slot = slot_of(state, end, buffer);
	int code;

	if (state->in_flight[slot])
		return 0;
	code = engine->layer->post(engine->channels[channel].chan, &iov, 1, 0, slot);
	if (code == CADGE_BUSY)
		return 0;
	if (code < 0)
		return drv_engine_fail("post", code, fail);
	drv_progress_set(&state->progress, slot, code);
	return 1;
}

/* Takes the channel down. What was lent for it is nobody's any more. */
static int take_down(struct reconnect *state, struct end *end, struct drv_fail *fail)
{
	struct drv_engine *engine = state->progress.port.engine;
	struct drv_channel *channel = &engine->channels[end->renewed];
	struct cadge_chan *chan = channel->chan;
	int code;

	engine->up_count -= channel->up;
	channel->up = false;
	channel->chan = NULL;
	state->progress.in_flight_count -= is_in_flight(state, end, MESSAGE);
	state->in_flight[slot_of(state, end, MESSAGE)] = false;
	code = engine->layer->disconnect(engine->ctx, chan);
	return code < 0 ? drv_engine_fail("disconnect", code, fail) : 0;
}

/* Writes the address for the next connection into the buffer of offers. Returns bytes to be posted; 0: failed. */
static size_t make_offer(struct reconnect *state, struct end *end, struct drv_fail *fail)
{
	const struct drv_engine *engine = state->progress.port.engine;
	uint8_t *at = end->buffers[OFFER];
	size_t bytes = ADDRESS_BYTES;
	const int code = engine->layer->address(engine->ctx, end->renewed, at + OFFER_HEAD_BYTES, &bytes);

	drv_store64(at, OFFER_MAGIC);
	drv_store64(at + 8, end->number);
	if (code >= 0)
		return OFFER_HEAD_BYTES + bytes;
	drv_engine_fail("address", code, fail);
	return 0;
}

/* Begins to connect to the address that came. */
static int join(struct reconnect *state, struct end *end, struct drv_fail *fail)
{
	struct drv_engine *engine = state->progress.port.engine;
	const int code = engine->layer->connect(engine->ctx, end->renewed, end->address, end->address_bytes,
						&engine->channels[end->renewed].chan);

	end->offered = false;
	return code < 0 ? drv_engine_fail("connect", code, fail) : 0;
}

/* Returns its key. */
static uint64_t write_message(const struct reconnect *state, const struct end *end, uint64_t seed,
			      uint64_t number)
{
	struct drv_message message = {.at = end->buffers[MESSAGE],
				      .bytes = (size_t)state->bytes,
				      .seed = seed,
				      .key = number,
				      .full = state->progress.check.full,
				      .phase = state->progress.check.phase};

	drv_message_write(&message);
	return drv_head_key(message.at, message.bytes);
}

/* ---- the client ---- */

static int turn(struct reconnect *state, struct drv_fail *fail)
{
	const struct drv_engine *engine = state->progress.port.engine;
	const bool whole = engine->up_count == engine->channels_count;

	return drv_progress_turn(&state->progress, whole ? DRV_PROGRESS_WAIT_NS : NAP_NS, fail);
}

/* Posts, as soon as there is room. */
static int send(struct reconnect *state, uint32_t channel, uint32_t buffer, size_t bytes,
		struct drv_fail *fail)
{
	for (;;) {
		const int status = post(state, &state->ends[0], channel, buffer, bytes, fail);

		if (status)
			return status < 0 ? -1 : 0;
		if (turn(state, fail))
			return -1;
	}
}

/* A message there and back. */
static int round_trip(struct reconnect *state, struct drv_fail *fail)
{
	struct end *end = &state->ends[0];

	if (send(state, end->renewed, MESSAGE, (size_t)state->bytes, fail))
		return -1;
	state->posted++;
	state->posted_keys += end->key;
	while (!state->answered)
		if (turn(state, fail))
			return -1;
	return 0;
}

/* The next message is ready before its time begins. */
static int prepare_message(struct reconnect *state, struct drv_fail *fail)
{
	struct end *end = &state->ends[0];

	while (is_in_flight(state, end, MESSAGE))
		if (turn(state, fail))
			return -1;
	state->answered = false;
	end->key = write_message(state, end, end->seed, end->messages++);
	return 0;
}

/* Takes the channel down, makes it again, and uses it; how long each of that took, in ticks. */
static int make_again(struct reconnect *state, uint64_t spans[QUANTITIES], struct drv_fail *fail)
{
	struct drv_engine *engine = state->progress.port.engine;
	const struct drv_clock *clock = &engine->clock;
	struct end *end = &state->ends[0];
	uint64_t before = drv_clock_now(clock), now;
	size_t bytes;

	if (take_down(state, end, fail))
		return -1;
	now = drv_clock_now(clock);
	spans[TEARDOWN] = now - before;
	before = now;
	end->number++;
	bytes = make_offer(state, end, fail);
	if (!bytes)
		return -1;
	now = drv_clock_now(clock);
	spans[SETUP] = now - before;
	before = now;
	if (send(state, end->offers, OFFER, bytes, fail))
		return -1;
	while (!end->offered)
		if (turn(state, fail))
			return -1;
	now = drv_clock_now(clock);
	spans[ADDRESSES] = now - before;
	before = now;
	if (join(state, end, fail))
		return -1;
	while (!engine->channels[end->renewed].up)
		if (turn(state, fail))
			return -1;
	spans[SETUP] += drv_clock_now(clock) - before;
	for (unsigned i = 0; i < 2; i++) {
		if (prepare_message(state, fail))
			return -1;
		before = drv_clock_now(clock);
		if (round_trip(state, fail))
			return -1;
		spans[i ? NEXT : FIRST] = drv_clock_now(clock) - before;
	}
	/* nothing of the channel is lent when it is taken down next */
	while (state->progress.in_flight_count > 0)
		if (turn(state, fail))
			return -1;
	return 0;
}

static int verify(struct drv_role_run *run, uint64_t serial, struct drv_fail *fail)
{
	struct reconnect *state = run->state;
	uint64_t spans[QUANTITIES];

	drv_check_phase(&state->progress.check, true, serial);
	return make_again(state, spans, fail);
}

static int warmup(struct drv_role_run *run, uint64_t cap_ns, struct drv_fail *fail)
{
	const struct drv_clock *clock = &run->engine->clock;
	struct reconnect *state = run->state;
	uint64_t spans[QUANTITIES];
	uint32_t rounds = 0;

	drv_check_phase(&state->progress.check, false, 0);
	drv_warmup_begin(&state->warmup, clock, cap_ns);
	do {
		if (make_again(state, spans, fail))
			return -1;
	} while (!drv_warmup_add(&state->warmup, drv_clock_now(clock), spans[SETUP]) &&
		 ++rounds < ROUNDS_MOST);
	drv_record_warmup(run->record, &state->warmup);
	return 0;
}

static int measure(struct drv_role_run *run, struct drv_fail *fail)
{
	const struct drv_clock *clock = &run->engine->clock;
	struct drv_record *record = run->record;
	struct reconnect *state = run->state;
	const uint64_t started = drv_clock_now(clock);
	const uint64_t end = drv_engine_end(run->engine, started, run->duration_ns);
	uint64_t spans[QUANTITIES], now;

	do {
		if (make_again(state, spans, fail))
			return -1;
		for (unsigned i = 0; i < QUANTITIES; i++)
			drv_sample(state->samples[i], drv_clock_to_ns(clock, spans[i]));
		now = drv_clock_now(clock);
		record->operations++;
	} while (now < end && record->operations < ROUNDS_MOST &&
		 record->operations < drv_engine_operations(run->engine));
	record->elapsed_ns = drv_clock_to_ns(clock, now - started);
	record->bytes = record->operations * 4 * state->bytes;
	return 0;
}

/* Both ends have to have the channel, and nothing of it on its way. */
static bool settle(struct drv_role_run *run)
{
	struct reconnect *state = run->state;

	return drv_progress_settle(&state->progress, NULL, NULL) &&
	       run->engine->channels[state->ends[0].renewed].up && state->answered;
}

/* ---- the server ---- */

static bool due(void *arg)
{
	const struct reconnect *state = arg;

	for (uint32_t i = 0; i < state->ends_count; i++)
		if (state->ends[i].offered || state->ends[i].offer_due || state->ends[i].answer_due)
			return true;
	return state->progress.failed;
}

/* The client has taken its end down, and said where the next one is. We do the same, and wait there for it. */
static int follow(struct reconnect *state, struct end *end, struct drv_fail *fail)
{
	if (take_down(state, end, fail))
		return -1;
	end->offer_bytes = make_offer(state, end, fail);
	end->offer_due = true;
	return end->offer_bytes ? join(state, end, fail) : -1;
}

static int drain_end(struct reconnect *state, struct end *end, struct drv_fail *fail)
{
	int status;

	if (end->offered && !is_in_flight(state, end, OFFER) && follow(state, end, fail))
		return -1;
	if (end->offer_due) {
		status = post(state, end, end->offers, OFFER, end->offer_bytes, fail);
		if (status < 0)
			return -1;
		end->offer_due = status == 0;
	}
	if (end->answer_due && !is_in_flight(state, end, MESSAGE)) {
		write_message(state, end, ~end->seed, end->key);
		status = post(state, end, end->renewed, MESSAGE, (size_t)state->bytes, fail);
		if (status < 0)
			return -1;
		end->answer_due = status == 0;
	}
	return 0;
}

static int drain(void *arg, struct drv_fail *fail)
{
	struct reconnect *state = arg;

	for (uint32_t i = 0; i < state->ends_count; i++)
		if (drain_end(state, &state->ends[i], fail))
			return -1;
	if (state->progress.failed)
		*fail = state->progress.fail;
	return state->progress.failed ? -1 : 0;
}

static int serve(struct drv_role_run *run, json_t **message_out, struct drv_fail *fail)
{
	struct reconnect *state = run->state;

	return drv_poll_until_message(run->engine, state->progress.sink, state, due, drain, message_out,
				      fail);
}

/* ---- both roles ---- */

/* Of the two channels to a peer the first is that for offers. */
static void find_ends(struct reconnect *state, const struct drv_role_run *run)
{
	const struct drv_engine *engine = run->engine;

	for (uint32_t i = 0; i < engine->channels_count; i++) {
		const int there = engine->channels[i].endpoint,
			  client = state->serves ? there : engine->endpoint;
		uint32_t first = 0;

		while (engine->channels[first].endpoint != there)
			first++;
		if (first == i) {
			state->ends[state->ends_count].offers = i;
			state->ends[state->ends_count].seed = drv_mix(run->seed, (uint64_t)client);
			state->end_of[i] = (uint8_t)state->ends_count++;
		} else {
			state->end_of[i] = state->end_of[first];
			state->ends[state->end_of[i]].renewed = i;
		}
	}
}

static int prepare(struct drv_role_run *run, bool serves, struct drv_fail *fail)
{
	const struct parameters *parameters = run->parameters;
	const size_t strides[BUFFERS] = {drv_memory_stride(OFFER_BYTES),
					 drv_memory_stride(parameters->bytes)};
	struct drv_engine *engine = run->engine;
	struct reconnect *state = run->state;
	uint8_t *memory;

	drv_progress_start(&state->progress, engine, on_recv, state->in_flight, engine->channels_count);
	state->usual_down = state->progress.port.sink.down;
	state->progress.port.sink.down = on_down;
	drv_check_phase(&state->progress.check, true, 1);
	state->serves = serves;
	state->bytes = parameters->bytes;
	state->ends = calloc(engine->channels_count, sizeof(*state->ends));
	if (!state->ends)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for %u channels", engine->channels_count);
	find_ends(state, run);
	memory = drv_pool_take(engine, serves ? DRV_POOL_RESPONDER : DRV_POOL_REQUESTER,
			       state->ends_count * (strides[OFFER] + strides[MESSAGE]), fail);
	if (!memory)
		return -1;
	for (uint32_t i = 0; i < state->ends_count; i++)
		for (unsigned j = 0; j < BUFFERS; memory += strides[j++])
			state->ends[i].buffers[j] = memory;
	engine->sink = state->progress.sink;
	/* library and kernel sleep for reasons of their own while channels come and go */
	run->sleep = DRV_SLEEP_UNJUDGED;
	return 0;
}

static int prepare_client(struct drv_role_run *run, struct drv_fail *fail)
{
	struct reconnect *state = run->state;

	for (unsigned i = 0; i < QUANTITIES; i++) {
		state->samples[i] = drv_record_samples(run->record, i, fail);
		if (!state->samples[i])
			return -1;
	}
	return prepare(run, false, fail);
}

static int prepare_server(struct drv_role_run *run, struct drv_fail *fail)
{
	return prepare(run, true, fail);
}

static void stop(struct drv_role_run *run)
{
	free(((struct reconnect *)run->state)->ends);
}

static void phase(struct drv_role_run *run, const struct drv_phase *phase, struct drv_counts *counts_out)
{
	struct reconnect *state = run->state;

	counts_out->posts = !state->serves;
	counts_out->posted = state->posted;
	counts_out->posted_keys = state->posted_keys;
	if (state->serves)
		drv_check_executed(&state->progress.check, counts_out);
	else
		drv_check_counts(&state->progress.check, counts_out);
	drv_check_phase(&state->progress.check, phase->full, phase->serial);
}

static void needs(const void *at, struct drv_needs *needs_out)
{
	const uint64_t bytes = ((const struct parameters *)at)->bytes;

	needs_out->message_bytes = bytes > OFFER_BYTES ? bytes : OFFER_BYTES;
	/* one message at a time on each channel */
	needs_out->depth = 1;
}

static int negotiate(const void *at, const struct drv_offer *offer, struct drv_fail *fail)
{
	if (offer->both.caps & CADGE_CAP_ONE_INIT)
		return drv_fail_set(fail, DRV_NO_CAP,
				    "wanted channels to be made again, and the library makes all of them "
				    "when it starts, once a process");
	if (!(offer->both.caps & CADGE_CAP_RELIABLE))
		return drv_fail_set(fail, DRV_NO_CAP,
				    "wanted a channel for addresses, on which no message may be lost");
	return drv_negotiate_message(OFFER_BYTES, "address", &offer->both, fail) ||
			       drv_negotiate_message(((const struct parameters *)at)->bytes, "message",
						     &offer->both, fail)
		       ? -1
		       : 0;
}

static const struct drv_pattern reconnect = {
	PATTERN_TABLE,
	.roles =
		(const struct drv_role[]){
			{.name = "server",
			 .state_bytes = sizeof(struct reconnect),
			 .prepare = prepare_server,
			 .stop = stop,
			 .serve = serve,
			 .phase = phase},
			{.name = "client",
			 .measures = true,
			 .channels_most = 2,
			 .state_bytes = sizeof(struct reconnect),
			 .prepare = prepare_client,
			 .stop = stop,
			 .verify = verify,
			 .warmup = warmup,
			 .measure = measure,
			 .settle = settle,
			 .phase = phase},
			{.name = NULL},
		},
	.needs = needs,
	.negotiate = negotiate,
};
DRV_PATTERN(reconnect);
