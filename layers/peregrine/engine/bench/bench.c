/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine beside what the machine can do at best, in one run: rounds of both in turn, on the same two
 *cores, a fresh pair of processes for each reading. Prints a table: median of the engine, of the floor, and
 *of their ratio in each round.
 *
 *	bench [--json] [ROUNDS [NAME]]     6 rounds; only readings whose name contains NAME
 *
 * --json: {"schema": "pgr.bench/1", "readings": [{name, unit, median, low, high, of, ratio, ratio_low,
 *ratio_high}]}, where low and high are the extremes of the rounds.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../engine.h"

#define CALLS      60000u
#define LINES      128u /* pairs of lines that the floor goes through */
#define BIG_BYTES  (4u << 20)
#define BIG_ROUNDS 60u
#define ROUNDS_MAX 64u
#define NULL_CALL  1u
#define SINK_CALL  2u
#define STOP_CALL  3u

/* Between the two processes of one reading. */
struct shared {
	_Alignas(64) _Atomic int ready;
	uint8_t address[PGR_ADDRESS_BYTES];
	struct sockaddr_in name;
	double value;
	_Alignas(64) uint64_t sums[16];
	_Alignas(4096) struct line {
		_Alignas(64) _Atomic uint64_t word;
	} lines[2 * LINES];
	_Alignas(4096) uint8_t big[2][BIG_BYTES];
};
static struct shared *shared;
static uint32_t samples[CALLS];

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static int by_value(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static double p50(uint32_t count)
{
	qsort(samples, count, sizeof(samples[0]), by_value);
	return samples[count / 2];
}

/* ---- floors ---- */

/* Two lines a round trip, one each way; every pair of the ring in turn. */
static void bounce_server(bool pause)
{
	shared->ready = 1;
	for (uint64_t i = 1; i <= CALLS + 1000; i++) {
		struct line *pair = &shared->lines[i % LINES * 2];

		while (atomic_load_explicit(&pair[0].word, memory_order_acquire) != i)
			if (pause)
				__builtin_ia32_pause();
		atomic_store_explicit(&pair[1].word, i, memory_order_release);
	}
}

static double bounce_client(bool pause)
{
	for (uint64_t i = 1; i <= CALLS + 1000; i++) {
		struct line *pair = &shared->lines[i % LINES * 2];
		const uint64_t begin = __builtin_ia32_rdtsc();

		atomic_store_explicit(&pair[0].word, i, memory_order_release);
		while (atomic_load_explicit(&pair[1].word, memory_order_acquire) != i)
			if (pause)
				__builtin_ia32_pause();
		if (i > 1000)
			samples[i - 1001] = (uint32_t)(__builtin_ia32_rdtsc() - begin);
	}
	return p50(CALLS);
}

static void plain_server(void)
{
	bounce_server(false);
}
static void pause_server(void)
{
	bounce_server(true);
}
static double plain_client(void)
{
	return bounce_client(false);
}
static double pause_client(void)
{
	return bounce_client(true);
}

/* The system calls that the udp wire makes, bare: recvmsg, and sendmsg of a header and nothing else. */
static int bare_socket(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		exit(1);
	return fd;
}

static void bare_udp_server(void)
{
	const int fd = bare_socket();
	socklen_t length = sizeof(shared->name);
	uint8_t room[2048];

	getsockname(fd, (struct sockaddr *)&shared->name, &length);
	shared->ready = 1;
	for (unsigned int i = 0; i < CALLS + 1000; i++) {
		struct sockaddr_in from;
		struct iovec iov = {room, sizeof(room)};
		struct msghdr message = {
			.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1};
		ssize_t got;

		while ((got = recvmsg(fd, &message, MSG_DONTWAIT)) < 0)
			;
		iov.iov_len = got < 48 ? (size_t)got : 48; /* a result without data */
		sendmsg(fd, &message, MSG_DONTWAIT);
	}
}

static double bare_udp(size_t bytes)
{
	const int fd = bare_socket();
	uint8_t room[2048] = {0};

	for (unsigned int i = 0; i < CALLS + 1000; i++) {
		struct sockaddr_in to = shared->name;
		struct iovec iov = {room, 48 + bytes};
		struct msghdr message = {
			.msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = &iov, .msg_iovlen = 1};
		const uint64_t begin = __builtin_ia32_rdtsc();

		sendmsg(fd, &message, MSG_DONTWAIT);
		iov.iov_len = sizeof(room);
		while (recvmsg(fd, &message, MSG_DONTWAIT) < 0)
			;
		if (i >= 1000)
			samples[i - 1000] = (uint32_t)(__builtin_ia32_rdtsc() - begin);
	}
	return p50(CALLS);
}

static double bare_udp_client(void)
{
	return bare_udp(0);
}

static double bare_udp_1k(void)
{
	return bare_udp(1024);
}

/* One copy of a source that is dirty in the other core's cache; bytes a second. */
static void dirty_server(void)
{
	shared->ready = 1;
	for (unsigned int i = 1; i <= BIG_ROUNDS; i++) {
		for (size_t at = 0; at < BIG_BYTES; at += 64)
			shared->big[0][at] = (uint8_t)i;
		atomic_store(&shared->lines[0].word, i);
		while (atomic_load(&shared->lines[1].word) != i)
			;
	}
}

static double copy_client(void)
{
	static uint8_t *to;
	uint64_t best_ns[BIG_ROUNDS];

	to = malloc(BIG_BYTES);
	memset(to, 1, BIG_BYTES);
	for (unsigned int i = 1; i <= BIG_ROUNDS; i++) {
		uint64_t begin;

		while (atomic_load(&shared->lines[0].word) != i)
			;
		begin = now_ns();
		memcpy(to, shared->big[0], BIG_BYTES);
		best_ns[i - 1] = now_ns() - begin;
		atomic_store(&shared->lines[1].word, i);
	}
	for (unsigned int i = 0; i < BIG_ROUNDS; i++)
		samples[i] = (uint32_t)best_ns[i];
	return BIG_BYTES / p50(BIG_ROUNDS);
}

/* ---- the engine ---- */

/* A wire that loses one packet in a hundred, on both sides. */
static uint64_t chance = 88172645463325252;
static bool lossy;

static int lossy_send(struct pgr_wire *wire, const struct pgr_to *to, const struct pgr_piece *pieces,
		      unsigned int count, bool more)
{
	chance ^= chance << 13, chance ^= chance >> 7, chance ^= chance << 17;
	return chance % 100 == 0 ? 0 : pgr_wire_udp.send(wire, to, pieces, count, more);
}

static struct pgr_wire_ops lossy_ops;

static int lossy_open(const struct pgr_config *config, pgr_input *input, void *engine,
		      struct pgr_wire **wire_out)
{
	const int code = pgr_wire_udp.open(config, input, engine, wire_out);

	if (code == PGR_OK)
		(*wire_out)->ops = &lossy_ops;
	return code;
}

static bool stop;

static void on_null(void *arg, const struct pgr_request *request)
{
	(void)arg;
	pgr_reply(request->pgr, &request->token, NULL, 0, arg ? PGR_MORE : 0, NULL, NULL);
}

static void on_stop(void *arg, const struct pgr_request *request)
{
	on_null(arg, request);
	stop = true;
}

static struct pgr *open_one(const char *wire)
{
	char error[256] = "";
	const struct pgr_config config = {
		.bytes = sizeof(config),
		.wire = wire,
		.address = "127.0.0.1",
		.error = error,
		.error_bytes = sizeof(error),
	};
	struct pgr *pgr = NULL;

	lossy_ops = pgr_wire_udp;
	lossy_ops.open = lossy_open;
	lossy_ops.send = lossy_send;
	if ((lossy ? pgr_open_on(&lossy_ops, &config, &pgr) : pgr_open(&config, &pgr)) != PGR_OK) {
		fprintf(stderr, "%s: %s\n", wire, error);
		exit(1);
	}
	return pgr;
}

static void engine_server(const char *wire)
{
	struct pgr *pgr = open_one(wire);
	size_t bytes = PGR_ADDRESS_BYTES;

	pgr_serve(pgr, NULL_CALL, NULL, on_null, NULL);
	pgr_serve(pgr, SINK_CALL, NULL, on_null, pgr);
	pgr_serve(pgr, STOP_CALL, NULL, on_stop, NULL);
	pgr_address(pgr, shared->address, &bytes);
	shared->ready = 1;
	while (!stop)
		pgr_poll(pgr);
	for (unsigned int i = 0; i < 1000; i++)
		pgr_poll(pgr);
	pgr_close(pgr);
}

static struct pgr_peer *meet(struct pgr *pgr)
{
	struct pgr_peer *peer = NULL;

	if (pgr_bind(pgr, shared->address, PGR_ADDRESS_BYTES, &peer) != PGR_OK)
		exit(1);
	return peer;
}

static void farewell(struct pgr *pgr, struct pgr_peer *peer)
{
	pgr_call_and_wait(peer, STOP_CALL, NULL, NULL, 0, NULL, 0, NULL);
	pgr_close(pgr);
}

static bool done;

static void on_done(void *arg, int code, const void *result, size_t result_bytes)
{
	(void)arg, (void)result, (void)result_bytes;
	if (code != PGR_OK) {
		fprintf(stderr, "a call failed: %s\n", pgr_code_name(code));
		exit(1);
	}
	done = true;
}

static double engine_null(const char *wire, size_t bytes)
{
	struct pgr *pgr = open_one(wire);
	struct pgr_peer *peer = meet(pgr);
	static uint8_t room[65536];
	const struct pgr_iov in = {room, bytes};

	for (unsigned int i = 0; i < CALLS + 1000; i++) {
		const uint64_t begin = __builtin_ia32_rdtsc();

		done = false;
		if (pgr_call(peer, NULL_CALL, NULL, &in, bytes ? 1 : 0, NULL, 0, 0, on_done, NULL) !=
		    PGR_QUEUED)
			exit(1);
		while (!done)
			pgr_poll(pgr);
		if (i >= 1000)
			samples[i - 1000] = (uint32_t)(__builtin_ia32_rdtsc() - begin);
	}
	farewell(pgr, peer);
	return p50(CALLS);
}

static uint32_t ended;

static void on_counted(void *arg, int code, const void *result, size_t result_bytes)
{
	(void)arg, (void)result, (void)result_bytes;
	if (code != PGR_OK)
		exit(1);
	ended++;
}

/* Null calls a second, 64 outstanding. */
static double engine_rate(const char *wire)
{
	struct pgr *pgr = open_one(wire);
	struct pgr_peer *peer = meet(pgr);
	const uint32_t calls = strcmp(wire, "shm") == 0 ? 2000000 : 200000;
	uint32_t begun = 0;
	uint64_t begin_ns;

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
	farewell(pgr, peer);
	return calls * 1e9 / (double)begin_ns;
}

/* Arguments of 4 MiB; bytes a second. */
static double engine_blast(const char *wire)
{
	struct pgr *pgr = open_one(wire);
	struct pgr_peer *peer = meet(pgr);
	uint8_t *big = malloc(BIG_BYTES);
	const struct pgr_iov in = {big, BIG_BYTES};

	for (unsigned int i = 0; i < BIG_ROUNDS; i++) {
		uint64_t begin;

		for (size_t at = 0; at < BIG_BYTES; at += 64)
			big[at] = (uint8_t)i;
		begin = now_ns();
		if (pgr_call_and_wait(peer, NULL_CALL, NULL, &in, 1, NULL, 0, NULL) != PGR_OK)
			exit(1);
		samples[i] = (uint32_t)(now_ns() - begin);
	}
	farewell(pgr, peer);
	return BIG_BYTES / p50(BIG_ROUNDS);
}

static uint64_t begun_at[64];
static uint32_t slot_numbers[64], samples_count;

static void on_timed(void *arg, int code, const void *result, size_t result_bytes)
{
	const uint32_t slot = *(uint32_t *)arg;

	(void)result, (void)result_bytes;
	if (code != PGR_OK)
		exit(1);
	if (samples_count < CALLS)
		samples[samples_count++] = (uint32_t)(now_ns() - begun_at[slot]);
	begun_at[slot] = 0;
	ended++;
}

/* p99.9 of calls at depth 64 with loss, in time-outs: the one in force at the end. */
static double lossy_tail(void)
{
	struct pgr *pgr;
	struct pgr_peer *peer;
	struct pgr_stats stats;
	double tail_ns;

	lossy = true;
	pgr = open_one("udp");
	peer = meet(pgr);
	ended = samples_count = 0;
	while (ended < CALLS) {
		for (uint32_t i = 0; i < 64; i++) {
			if (begun_at[i])
				continue;
			slot_numbers[i] = i;
			begun_at[i] = now_ns();
			if (pgr_call(peer, SINK_CALL, NULL, NULL, 0, NULL, 0, PGR_MORE, on_timed,
				     &slot_numbers[i]) != PGR_QUEUED) {
				begun_at[i] = 0;
				break;
			}
		}
		pgr_flush(pgr);
		pgr_poll(pgr);
	}
	pgr_stats(pgr, &stats);
	qsort(samples, samples_count, sizeof(samples[0]), by_value);
	tail_ns = samples[samples_count - samples_count / 1000 - 1];
	farewell(pgr, peer);
	return tail_ns / (double)stats.rto_ns;
}

/* Datagrams of a packet's size, header and all, as fast as the receiver takes them; bytes of data a second.
 */
#define FRAME_DATA 65427u

static void stream_server(void)
{
	const int fd = bare_socket();
	socklen_t length = sizeof(shared->name);
	static uint8_t room[65536];
	int buffer = 4 << 20;
	uint64_t got = 0;

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
	getsockname(fd, (struct sockaddr *)&shared->name, &length);
	shared->ready = 1;
	for (;;)
		if (recv(fd, room, sizeof(room), MSG_DONTWAIT) > 0)
			atomic_store(&shared->lines[0].word, ++got);
}

static double stream_client(void)
{
	const int fd = bare_socket();
	uint8_t head[PGR_HEADER_BYTES] = {0}, *big = malloc(BIG_BYTES);
	uint64_t sent = 0;

	memset(big, 1, BIG_BYTES);
	for (unsigned int i = 0; i < BIG_ROUNDS; i++) {
		const uint64_t begin = now_ns();

		for (size_t at = 0; at < BIG_BYTES; at += FRAME_DATA) {
			const size_t part = BIG_BYTES - at < FRAME_DATA ? BIG_BYTES - at : FRAME_DATA;
			struct iovec iov[2] = {{head, sizeof(head)}, {big + at, part}};
			const struct msghdr message = {.msg_name = &shared->name,
						       .msg_namelen = sizeof(shared->name),
						       .msg_iov = iov,
						       .msg_iovlen = 2};

			while (sent - atomic_load(&shared->lines[0].word) >
			       2) /* what its buffer surely holds */
				;
			if (sendmsg(fd, &message, 0) > 0)
				sent++;
		}
		while (atomic_load(&shared->lines[0].word) != sent)
			;
		samples[i] = (uint32_t)(now_ns() - begin);
	}
	return BIG_BYTES / p50(BIG_ROUNDS);
}

static void lossy_server(void)
{
	lossy = true;
	chance += 7; /* not the client's */
	engine_server("udp");
}

static double lossy_rate(void)
{
	lossy = true;
	return engine_rate("udp");
}

static double lossy_blast(void)
{
	lossy = true;
	return engine_blast("udp");
}

static void shm_server(void)
{
	engine_server("shm");
}
static void udp_server(void)
{
	engine_server("udp");
}
static double shm_null(void)
{
	return engine_null("shm", 0);
}
static double shm_8(void)
{
	return engine_null("shm", 8);
}
static double udp_null(void)
{
	return engine_null("udp", 0);
}
static double udp_8(void)
{
	return engine_null("udp", 8);
}

static double udp_1k(void)
{
	return engine_null("udp", 1024);
}
static double shm_rate(void)
{
	return engine_rate("shm");
}
static double udp_rate(void)
{
	return engine_rate("udp");
}
static double shm_blast(void)
{
	return engine_blast("shm");
}
static double udp_blast(void)
{
	return engine_blast("udp");
}

/* ---- readings ---- */

static const struct reading {
	const char *name, *unit;
	void (*server)(void);
	double (*client)(void);
	const char *floor; /* name of the reading that it is divided by; NULL: it is a floor itself */
} readings[] = {
	{"two lines", "ns", plain_server, plain_client, NULL},
	{"two lines, pause", "ns", pause_server, pause_client, NULL},
	{"shm null", "ns", shm_server, shm_null, "two lines"},
	{"shm 8 B", "ns", shm_server, shm_8, "two lines"},
	{"shm rate, 64 outstanding", "1/s", shm_server, shm_rate, NULL},
	{"one copy", "GB/s", dirty_server, copy_client, NULL},
	{"shm 4 MiB", "GB/s", shm_server, shm_blast, "one copy"},
	{"bare udp", "ns", bare_udp_server, bare_udp_client, NULL},
	{"udp null", "ns", udp_server, udp_null, "bare udp"},
	{"udp 8 B", "ns", udp_server, udp_8, "bare udp"},
	{"bare udp 1 KiB", "ns", bare_udp_server, bare_udp_1k, NULL},
	{"udp 1 KiB", "ns", udp_server, udp_1k, "bare udp 1 KiB"},
	{"udp rate, 64 outstanding", "1/s", udp_server, udp_rate, NULL},
	{"raw udp stream", "GB/s", stream_server, stream_client, NULL},
	{"udp 4 MiB", "GB/s", udp_server, udp_blast, "raw udp stream"},
	{"udp rate, 1 % lost", "1/s", lossy_server, lossy_rate, "udp rate, 64 outstanding"},
	{"udp 4 MiB, 1 % lost", "GB/s", lossy_server, lossy_blast, "udp 4 MiB"},
	{"udp p99.9, 1 % lost", "RTO", lossy_server, lossy_tail, NULL},
};
#define READINGS (sizeof(readings) / sizeof(readings[0]))
static double values[READINGS][ROUNDS_MAX];

static double read_once(const struct reading *reading)
{
	pid_t server, client;

	memset(shared, 0, offsetof(struct shared, big));
	server = fork();
	if (server == 0) {
		pin(1);
		reading->server();
		_exit(0);
	}
	client = fork();
	if (client == 0) {
		pin(0);
		alarm(60);
		while (!shared->ready)
			;
		shared->value = reading->client();
		_exit(0);
	}
	if (waitpid(client, NULL, 0) != client)
		exit(1);
	usleep(1000);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	return shared->value;
}

static int by_double(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const double *from, unsigned int count)
{
	double copy[ROUNDS_MAX];

	memcpy(copy, from, count * sizeof(copy[0]));
	qsort(copy, count, sizeof(copy[0]), by_double);
	return copy[count / 2];
}

static size_t find(const char *name)
{
	for (size_t i = 0; i < READINGS; i++)
		if (strcmp(readings[i].name, name) == 0)
			return i;
	abort();
}

static double extreme(const double *from, unsigned int count, bool high)
{
	double found = from[0];

	for (unsigned int i = 1; i < count; i++)
		if (high ? from[i] > found : from[i] < found)
			found = from[i];
	return found;
}

static void print(size_t i, unsigned int rounds, bool json, bool first)
{
	const struct reading *reading = &readings[i];
	double ratios[ROUNDS_MAX] = {0};

	for (unsigned int round = 0; reading->floor && round < rounds; round++)
		ratios[round] = values[i][round] / values[find(reading->floor)][round];
	if (json) {
		printf("%s\n {\"name\": \"%s\", \"unit\": \"%s\", \"median\": %.6g, \"low\": %.6g, \"high\": "
		       "%.6g",
		       first ? "" : ",", reading->name, reading->unit, median(values[i], rounds),
		       extreme(values[i], rounds, false), extreme(values[i], rounds, true));
		if (reading->floor)
			printf(", \"of\": \"%s\", \"ratio\": %.4f, \"ratio_low\": %.4f, \"ratio_high\": %.4f",
			       reading->floor, median(ratios, rounds), extreme(ratios, rounds, false),
			       extreme(ratios, rounds, true));
		printf("}");
		return;
	}
	printf("%-28s %12.4g %-6s", reading->name, median(values[i], rounds), reading->unit);
	if (reading->floor)
		printf(" %8.3f [%.3f, %.3f] of %s", median(ratios, rounds), extreme(ratios, rounds, false),
		       extreme(ratios, rounds, true), reading->floor);
	printf("\n");
}

/* Ticks of the time stamp counter become ns. */
static double ns_a_tick(void)
{
	const uint64_t begin_ns = now_ns(), begin = __builtin_ia32_rdtsc();

	while (now_ns() - begin_ns < 50000000)
		;
	return (double)(now_ns() - begin_ns) / (double)(__builtin_ia32_rdtsc() - begin);
}

static bool is_wanted(size_t i, const char *only)
{
	bool wanted = strstr(readings[i].name, only) != NULL;

	for (size_t k = 0; k < READINGS && !wanted; k++)
		wanted = readings[k].floor && strstr(readings[k].name, only) &&
			 strcmp(readings[k].floor, readings[i].name) == 0;
	return wanted;
}

int main(int argc, char **argv)
{
	const bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
	char **rest = argv + (json ? 2 : 1);
	const int left = argc - (json ? 2 : 1);
	const unsigned int rounds = left > 0 ? (unsigned int)atoi(rest[0]) : 6;
	const char *only = left > 1 ? rest[1] : "";
	const double tick_ns = ns_a_tick();
	bool first = true;

	if (!rounds || rounds > ROUNDS_MAX || sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		fprintf(stderr, "usage: bench [--json] [ROUNDS [NAME]], on a machine of two cores or more\n");
		return 2;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	for (unsigned int round = 0; round < rounds; round++)
		for (size_t i = 0; i < READINGS; i++)
			if (is_wanted(i, only))
				values[i][round] = read_once(&readings[i]) *
						   (strcmp(readings[i].unit, "ns") == 0 ? tick_ns : 1);
	if (json)
		printf("{\"schema\": \"pgr.bench/1\", \"rounds\": %u, \"readings\": [", rounds);
	for (size_t i = 0; i < READINGS; i++)
		if (values[i][0] != 0) {
			print(i, rounds, json, first);
			first = false;
		}
	if (json)
		printf("\n]}\n");
	return 0;
}
