/* SPDX-License-Identifier: BSD-3-Clause */
/* See bench.h: the engine, as a program would use it. */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

enum { NULL_CALL = 1, SINK_CALL, STOP_CALL };

/* ---- a wire that loses one packet in a hundred ---- */

static uint64_t chance = 88172645463325252;
static const struct pgr_wire_ops *sound;
static struct pgr_wire_ops lossy;

static int lossy_send(struct pgr_wire *wire, const struct pgr_to *to, const struct pgr_piece *pieces,
		      unsigned int count, bool more)
{
	chance ^= chance << 13, chance ^= chance >> 7, chance ^= chance << 17;
	return chance % 100 == 0 ? 0 : sound->send(wire, to, pieces, count, more);
}

static int lossy_open(const struct pgr_config *config, pgr_input *input, void *engine,
		      struct pgr_wire **wire_out)
{
	const int code = sound->open(config, input, engine, wire_out);

	if (code == PGR_OK)
		(*wire_out)->ops = &lossy;
	return code;
}

/* ---- both ends ---- */

static struct pgr *open_end(bool client)
{
	char error[256] = "";
	const struct pgr_config config = {
		.bytes = sizeof(config),
		.wire = reading->wire,
		.device = !reading->hosts ? NULL
			  : client        ? PAIR_CLIENT_DEVICE
					  : PAIR_SERVER_DEVICE,
		.address = !reading->hosts ? "127.0.0.1"
			   : client        ? PAIR_CLIENT_ADDRESS
					   : PAIR_SERVER_ADDRESS,
		.xdp_attach = reading->attach,
		.error = error,
		.error_bytes = sizeof(error),
	};
	struct pgr *pgr = NULL;
	int code;

	sound = pgr_wire_find(reading->wire);
	lossy = *sound;
	lossy.open = lossy_open;
	lossy.send = lossy_send;
	chance += client ? 0 : 1u << 20;
	code = pgr_open_on(reading->lossy ? &lossy : sound, &config, &pgr);
	if (code != PGR_OK) {
		fprintf(stderr, "%s\n", error);
		exit(code == PGR_E_PERMISSION ? PAIR_SKIPPED : PAIR_FAILED);
	}
	return pgr;
}

/* ---- server ---- */

static bool stopping;

static void on_call(void *arg, const struct pgr_request *request)
{
	pgr_reply(request->pgr, &request->token, NULL, 0, arg ? PGR_MORE : 0, NULL, NULL);
}

static void on_stop(void *arg, const struct pgr_request *request)
{
	on_call(arg, request);
	stopping = true;
}

void calls_server(void)
{
	struct pgr *pgr = open_end(false);
	size_t bytes = PGR_ADDRESS_BYTES;

	pgr_serve(pgr, NULL_CALL, NULL, on_call, NULL);
	pgr_serve(pgr, SINK_CALL, NULL, on_call, pgr);
	pgr_serve(pgr, STOP_CALL, NULL, on_stop, NULL);
	pgr_address(pgr, shared->address, &bytes);
	shared->ready = 1;
	while (!stopping && !*shared->stop)
		pgr_poll(pgr);
	while (!*shared->stop) /* what repeats its last call is answered */
		pgr_poll(pgr);
	pgr_close(pgr);
}

/* ---- client ---- */

static struct pgr *pgr;
static struct pgr_peer *peer;

static void begin_client(void)
{
	pgr = open_end(true);
	if (pgr_bind(pgr, shared->address, PGR_ADDRESS_BYTES, &peer) != PGR_OK)
		exit(PAIR_FAILED);
}

static void end_client(void)
{
	pgr_call_and_wait(peer, STOP_CALL, NULL, NULL, 0, NULL, 0, 0, NULL);
	pgr_close(pgr);
}

static void must(int code)
{
	if (code == PGR_OK)
		return;
	fprintf(stderr, "a call failed: %s\n", pgr_code_name(code));
	exit(PAIR_FAILED);
}

static bool done;

static void on_done(void *arg, int code, const void *result, size_t result_bytes)
{
	(void)arg, (void)result, (void)result_bytes;
	must(code);
	done = true;
}

double calls_client(void)
{
	static uint8_t room[65536];
	const struct pgr_iov in = {room, reading->bytes};

	begin_client();
	for (unsigned int i = 0; i < CALLS + WARM_UP; i++) {
		const uint64_t begin = __rdtsc();

		done = false;
		if (pgr_call(peer, NULL_CALL, NULL, &in, reading->bytes ? 1 : 0, NULL, 0, 0, on_done, NULL) !=
		    PGR_QUEUED)
			exit(PAIR_FAILED);
		while (!done)
			pgr_poll(pgr);
		if (i >= WARM_UP)
			samples[i - WARM_UP] = (uint32_t)(__rdtsc() - begin);
	}
	end_client();
	return p50(CALLS);
}

/* ---- touched: see bench.h ---- */

/* A longer result has a place of its own, as it arrives in several packets; a shorter one is read where it lies. */
#define PLACED_BYTES 16385u

static uint8_t *results[2]; /* in turn: one may still be on its way */

/* A result that is told when it has gone is not copied. */
static void on_gone(void *arg, int code)
{
	(void)arg, (void)code;
}

/* Where a side's message lies. */
static void *message_of(struct pgr *end)
{
	return reading->in_place ? pgr_alloc(end, reading->bytes) : malloc(reading->bytes);
}

static void message_free(struct pgr *end, void *message)
{
	if (reading->in_place)
		pgr_free(end, message);
	else
		free(message);
}

static void on_touched(void *arg, const struct pgr_request *request)
{
	static unsigned int calls;
	uint8_t *const result = results[++calls % 2];
	const struct pgr_iov out = {result, reading->bytes};

	(void)arg;
	shared->sum += sum_of(request->args, request->args_bytes);
	if (reading->again) {
		on_call(NULL, request);
		return;
	}
	memset(result, (int)calls, reading->bytes);
	pgr_reply(request->pgr, &request->token, &out, 1, 0, on_gone, NULL);
}

void touched_server(void)
{
	struct pgr *server = open_end(false);
	size_t bytes = PGR_ADDRESS_BYTES;

	results[0] = message_of(server);
	results[1] = message_of(server);
	pgr_serve(server, NULL_CALL, NULL, on_touched, NULL);
	pgr_serve(server, STOP_CALL, NULL, on_stop, NULL);
	pgr_address(server, shared->address, &bytes);
	shared->ready = 1;
	while (!stopping && !*shared->stop)
		pgr_poll(server);
	message_free(server, results[0]);
	message_free(server, results[1]);
	pgr_close(server);
}

static void on_read(void *arg, int code, const void *result, size_t result_bytes)
{
	must(code);
	*(uint64_t *)arg += sum_of(result, result_bytes);
	done = true;
}

double touched_client(void)
{
	const bool placed = reading->bytes >= PLACED_BYTES && !reading->in_place && !reading->again;
	uint8_t *answer = malloc(reading->bytes), *message;
	const struct pgr_iov out = {answer, reading->bytes};
	uint64_t sum = 0;
	struct pgr_iov in;

	begin_client();
	message = message_of(pgr);
	in = (struct pgr_iov){message, reading->bytes};
	memset(message, 1, reading->bytes);
	for (unsigned int i = 0; i < touched_rounds(); i++) {
		const uint64_t begin = __rdtsc();

		if (!reading->again)
			memset(message, (int)i, reading->bytes);
		done = false;
		if (pgr_call(peer, NULL_CALL, NULL, &in, 1, &out, placed, 0, placed ? on_done : on_read,
			     &sum) != PGR_QUEUED)
			exit(PAIR_FAILED);
		while (!done)
			pgr_poll(pgr);
		if (placed)
			sum += sum_of(answer, reading->bytes);
		samples[i] = (uint32_t)(__rdtsc() - begin);
	}
	message_free(pgr, message);
	end_client();
	shared->sum += sum;
	free(answer);
	return p50(touched_rounds());
}

static uint32_t ended;

static void on_counted(void *arg, int code, const void *result, size_t result_bytes)
{
	(void)arg, (void)result, (void)result_bytes;
	must(code);
	ended++;
}

double calls_deep_client(void)
{
	const uint32_t calls = strcmp(reading->wire, "shm") == 0 ? 2000000 : 200000;
	uint32_t begun = 0;
	uint64_t begin_ns;

	begin_client();
	ended = 0;
	begin_ns = now_ns();
	while (ended < calls) {
		while (begun < calls && pgr_call(peer, SINK_CALL, NULL, NULL, 0, NULL, 0, PGR_MORE,
						 on_counted, NULL) == PGR_QUEUED)
			begun++;
		pgr_flush(pgr);
		pgr_poll(pgr);
	}
	begin_ns = now_ns() - begin_ns;
	end_client();
	return calls * 1e9 / (double)begin_ns;
}

double calls_big_client(void)
{
	uint8_t *big = malloc(BIG_BYTES);
	const struct pgr_iov in = {big, BIG_BYTES};

	begin_client();
	for (unsigned int i = 0; i < BIG_ROUNDS; i++) {
		uint64_t begin_ns;

		for (size_t at = 0; at < BIG_BYTES; at += 64)
			big[at] = (uint8_t)i;
		begin_ns = now_ns();
		must(pgr_call_and_wait(peer, NULL_CALL, NULL, &in, 1, NULL, 0, 0, NULL));
		samples[i] = (uint32_t)(now_ns() - begin_ns);
	}
	end_client();
	return BIG_BYTES / p50(BIG_ROUNDS);
}

static uint64_t begun_ns[DEPTH];
static uint32_t samples_count;

static void on_timed(void *arg, int code, const void *result, size_t result_bytes)
{
	uint64_t *const begun = arg;

	(void)result, (void)result_bytes;
	must(code);
	if (samples_count < CALLS)
		samples[samples_count++] = (uint32_t)(now_ns() - *begun);
	*begun = 0;
	ended++;
}

/* Calls with DEPTH outstanding; fills and sorts the samples, returns the time-out that is in force at the
 * end. */
static uint64_t time_deep_calls(void)
{
	struct pgr_stats stats = {.bytes = sizeof(stats)};

	begin_client();
	ended = samples_count = 0;
	while (ended < CALLS) {
		for (uint32_t i = 0; i < DEPTH; i++) {
			if (begun_ns[i])
				continue;
			begun_ns[i] = now_ns();
			if (pgr_call(peer, SINK_CALL, NULL, NULL, 0, NULL, 0, PGR_MORE, on_timed,
				     &begun_ns[i]) != PGR_QUEUED) {
				begun_ns[i] = 0;
				break;
			}
		}
		pgr_flush(pgr);
		pgr_poll(pgr);
	}
	pgr_stats(pgr, &stats);
	qsort(samples, samples_count, sizeof(samples[0]), by_value);
	end_client();
	return stats.rto_ns;
}

double calls_tail_client(void)
{
	const uint64_t rto_ns = time_deep_calls();

	return samples[samples_count - samples_count / 1000 - 1] / (double)rto_ns;
}

double calls_time_out_client(void)
{
	return (double)time_deep_calls() / 1000;
}

/* ---- short calls beside a long one ---- */

static uint64_t null_begun;
static bool null_out;

static void on_null(void *arg, int code, const void *result, size_t result_bytes)
{
	(void)arg, (void)result, (void)result_bytes;
	must(code);
	if (samples_count < CALLS)
		samples[samples_count++] = (uint32_t)(__rdtsc() - null_begun);
	null_out = false;
}

static void begin_null(void)
{
	null_begun = __rdtsc();
	null_out = true;
	if (pgr_call(peer, NULL_CALL, NULL, NULL, 0, NULL, 0, 0, on_null, NULL) != PGR_QUEUED)
		exit(PAIR_FAILED);
}

/* A long call at a time, and a null call at a time where `beside`. Returns bytes of the long ones a ns. */
static double carry(bool beside)
{
	uint8_t *big = malloc(LONG_BYTES);
	const struct pgr_iov in = {big, LONG_BYTES};
	uint64_t begin_ns = 0;

	memset(big, 1, LONG_BYTES);
	begin_client();
	samples_count = 0;
	for (unsigned int i = 0; i <= LONG_CALLS; i++) { /* the first one warms up */
		if (i == 1) {
			samples_count = 0;
			begin_ns = now_ns();
		}
		done = false;
		if (pgr_call(peer, NULL_CALL, NULL, &in, 1, NULL, 0, 0, on_done, NULL) != PGR_QUEUED)
			exit(PAIR_FAILED);
		while (!done) {
			if (beside && !null_out)
				begin_null();
			pgr_poll(pgr);
		}
	}
	begin_ns = now_ns() - begin_ns;
	while (null_out)
		pgr_poll(pgr);
	end_client();
	free(big);
	return (double)LONG_CALLS * LONG_BYTES / (double)begin_ns;
}

double calls_long_client(void)
{
	return carry(false);
}

double calls_beside_client(void)
{
	shared->more[1] = carry(true);
	qsort(samples, samples_count, sizeof(samples[0]), by_value);
	shared->more[0] = samples[samples_count - samples_count / 100 - 1];
	return samples[samples_count / 2];
}
