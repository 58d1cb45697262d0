/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rounds of all readings in turn, so that what disturbs the machine disturbs all of them; a fresh pair of
 * processes for each. Prints a table: median and extremes over the rounds, and the same of the ratio to the
 * reading's floor in each round; then what several readings of one round say together. A reading that the
 * machine cannot take is a row that says so.
 *
 *	pgr-bench [--json] [--keep FILE] [ROUNDS [NAME]]
 *	pgr-bench --sizes [--keep FILE] [ROUNDS]
 *	pgr-bench --memory [ROUNDS]
 *
 * 6 rounds; with NAME only readings whose name contains it, and their floors. --sizes: calls on shared memory of 8 B to 16
 * MiB, all data written and read, beside the best bare ring (sizes.c). --memory: long messages in memory of pgr_alloc, beside
 * the same in memory of the program's own (memory.c). --json: {"schema":
 * "pgr.bench/1", "readings": [{name, unit, median, low, high, of, ratio, ratio_low, ratio_high, values}]}, where values are
 * one a round. --keep: the same into a file, beside the table; of --sizes {"schema": "pgr.sizes/1", "rounds", "sizes":
 * [{bytes, part, engine, ring}]}, engine and ring one a round
 */
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define SECONDS         60u
#define LINE_DATA_BYTES 56u /* of a line, beside its stamp */

static const struct reading readings[] = {
	{"two lines", "ns", lines_server, lines_client, NULL, .wire = NULL},
	{"two lines, pause", "ns", lines_server, lines_client, NULL, .pause = true},
	{"bare one-line ring", "ns", line_rings_server, line_rings_client, NULL, .bytes = LINE_DATA_BYTES,
	 .part = LINE_DATA_BYTES},
	{"shm null", "ns", calls_server, calls_client, "two lines", .wire = "shm"},
	{"shm 8 B", "ns", calls_server, calls_client, "two lines", .wire = "shm", .bytes = 8},
	{"shm rate, 64 outstanding", "1/s", calls_server, calls_deep_client, NULL, .wire = "shm"},
	{"one copy", "GB/s", copy_server, copy_client, NULL, .wire = NULL},
	{"one copy by the kernel", "GB/s", copy_server, copy_client, "one copy", .pull = true},
	{"shm 4 MiB", "GB/s", calls_server, calls_big_client, "one copy", .wire = "shm"},
	{"16 MiB alone, shm", "GB/s", calls_server, calls_long_client, NULL, .wire = "shm"},
	{"null beside 16 MiB, shm", "ns", calls_server, calls_beside_client, "shm null", .wire = "shm"},
	{"null beside 16 MiB, shm, p99", "ns", .floor = "shm null", .run = "null beside 16 MiB, shm"},
	{"16 MiB beside null, shm", "GB/s", .floor = "16 MiB alone, shm", .run = "null beside 16 MiB, shm",
	 .more = 1},

	{"bare udp", "ns", datagrams_server, datagrams_client, NULL, .wire = "udp"},
	{"udp null", "ns", calls_server, calls_client, "bare udp", .wire = "udp"},
	{"connected udp", "ns", datagrams_server, datagrams_client, NULL, .wire = "udp", .connected = true},
	{"udp null beside connected", "ns", calls_server, calls_client, "connected udp", .wire = "udp"},
	{"udp 8 B", "ns", calls_server, calls_client, "bare udp", .wire = "udp", .bytes = 8},
	{"bare udp 1 KiB", "ns", datagrams_server, datagrams_client, NULL, .wire = "udp", .bytes = 1024},
	{"udp 1 KiB", "ns", calls_server, calls_client, "bare udp 1 KiB", .wire = "udp", .bytes = 1024},
	{"udp rate, 64 outstanding", "1/s", calls_server, calls_deep_client, NULL, .wire = "udp"},
	{"raw udp stream", "GB/s", datagram_stream_server, datagram_stream_client, NULL, .wire = "udp"},
	{"udp 4 MiB", "GB/s", calls_server, calls_big_client, "raw udp stream", .wire = "udp"},
	{"16 MiB alone, udp", "GB/s", calls_server, calls_long_client, NULL, .wire = "udp"},
	{"null beside 16 MiB, udp", "ns", calls_server, calls_beside_client, "udp null", .wire = "udp"},
	{"null beside 16 MiB, udp, p99", "ns", .floor = "udp null", .run = "null beside 16 MiB, udp"},
	{"16 MiB beside null, udp", "GB/s", .floor = "16 MiB alone, udp", .run = "null beside 16 MiB, udp",
	 .more = 1},
	{"udp rate, 1 % lost", "1/s", calls_server, calls_deep_client, "udp rate, 64 outstanding",
	 .wire = "udp", .lossy = true},
	{"udp 4 MiB, 1 % lost", "GB/s", calls_server, calls_big_client, "udp 4 MiB", .wire = "udp",
	 .lossy = true},
	{"udp p99.9, 1 % lost", "RTO", calls_server, calls_tail_client, NULL, .wire = "udp", .lossy = true},
	{"udp time-out, 1 % lost", "us", calls_server, calls_time_out_client, NULL, .wire = "udp",
	 .lossy = true},

	{"bare ip", "ns", datagrams_server, datagrams_client, NULL, .wire = "ip"},
	{"ip null", "ns", calls_server, calls_client, "bare ip", .wire = "ip"},

	{"raw udp stream between hosts", "GB/s", datagram_stream_server, datagram_stream_client, NULL,
	 .wire = "udp", .hosts = true},
	{"udp 4 MiB between hosts", "GB/s", calls_server, calls_big_client, "raw udp stream between hosts",
	 .wire = "udp", .hosts = true},
	{"raw frame", "ns", frames_server, frames_client, NULL, .attach = "generic", .hosts = true},
	{"xdp null", "ns", calls_server, calls_client, "raw frame", .wire = "xdp", .attach = "generic",
	 .hosts = true},
	{"raw frame 1 KiB", "ns", frames_server, frames_client, NULL, .attach = "generic", .bytes = 1024,
	 .hosts = true},
	{"xdp 1 KiB", "ns", calls_server, calls_client, "raw frame 1 KiB", .wire = "xdp", .attach = "generic",
	 .bytes = 1024, .hosts = true},
	{"raw frames, 64 outstanding", "1/s", frames_server, frames_deep_client, NULL, .attach = "generic",
	 .hosts = true},
	{"xdp rate, 64 outstanding", "1/s", calls_server, calls_deep_client, "raw frames, 64 outstanding",
	 .wire = "xdp", .attach = "generic", .hosts = true},
	{"raw frame stream", "GB/s", frames_stream_server, frames_stream_client, NULL, .attach = "generic",
	 .hosts = true},
	{"raw frame stream, touched", "GB/s", frames_stream_server, frames_stream_client, NULL,
	 .attach = "generic", .hosts = true, .touch = true},
	{"xdp 4 MiB", "GB/s", calls_server, calls_big_client, "raw frame stream", .wire = "xdp",
	 .attach = "generic", .hosts = true},
};
#define READINGS (sizeof(readings) / sizeof(readings[0]))

const struct reading *reading;
struct shared *shared;
uint32_t samples[CALLS];
static double values[READINGS][ROUNDS_MAX]; /* NaN: not taken */
static char why_not[READINGS][256];

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int by_value(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

double p50(uint32_t count)
{
	qsort(samples, count, sizeof(samples[0]), by_value);
	return samples[count / 2];
}

/* ---- taking a reading ---- */

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static int server(struct pair *pair, void *arg)
{
	(void)arg;
	shared->stop = &pair->stop;
	pin(1);
	reading->server();
	return PAIR_PASSED;
}

static int client(struct pair *pair, void *arg)
{
	(void)arg;
	shared->stop = &pair->stop;
	pin(0);
	while (!shared->ready)
		if (!pair_server_lives())
			return PAIR_PASSED; /* it says itself what ailed it */
	shared->value = reading->client();
	return PAIR_PASSED;
}

static double in_unit(const struct reading *one, double value, double tick_ns)
{
	return strcmp(one->unit, "ns") == 0 ? value * tick_ns : value;
}

double take_reading(const struct reading *one, double tick_ns, char *why, size_t why_bytes)
{
	reading = one;
	memset(shared, 0, offsetof(struct shared, big));
	shared->value = NAN;
	for (unsigned int i = 0; i < MORE_MAX; i++)
		shared->more[i] = NAN;
	switch (pair_run(reading->hosts, SECONDS, server, client, NULL)) {
	case PAIR_PASSED: return in_unit(reading, shared->value, tick_ns);
	case PAIR_SKIPPED: snprintf(why, why_bytes, "%s", pair_why()); return NAN;
	default: fprintf(stderr, "%s: %s\n", reading->name, pair_why()); exit(1);
	}
}

unsigned int touched_rounds(void)
{
	const size_t rounds = (64u << 20) / reading->bytes;

	return rounds > 20000 ? 20000 : rounds < 32 ? 32 : (unsigned int)rounds;
}

typedef uint64_t pair __attribute__((vector_size(16)));

static inline pair load(const uint8_t *at)
{
	pair value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* Four pairs of words at a time: no addition waits for the one before it, so memory sets the pace. */
uint64_t sum_of(const uint8_t *at, size_t bytes)
{
	pair one = {0}, two = {0}, three = {0}, four = {0};
	uint64_t sum;

	for (; bytes >= 4 * sizeof(pair); at += 4 * sizeof(pair), bytes -= 4 * sizeof(pair)) {
		one += load(at);
		two += load(at + sizeof(pair));
		three += load(at + 2 * sizeof(pair));
		four += load(at + 3 * sizeof(pair));
	}
	one += two + three + four;
	sum = one[0] + one[1];
	for (; bytes; bytes--)
		sum += *at++;
	return sum;
}

/* Ticks of the time stamp counter become ns. */
static double ns_a_tick(void)
{
	const uint64_t begin_ns = now_ns(), begin = __rdtsc();

	while (now_ns() - begin_ns < 50000000)
		;
	return (double)(now_ns() - begin_ns) / (double)(__rdtsc() - begin);
}

/* ---- telling it ---- */

static int by_double(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct summary sum_up(const double *from, unsigned int count)
{
	double copy[ROUNDS_MAX];

	memcpy(copy, from, count * sizeof(copy[0]));
	qsort(copy, count, sizeof(copy[0]), by_double);
	return (struct summary){copy[count / 2], copy[0], copy[count - 1]};
}

static size_t find(const char *name)
{
	for (size_t i = 0; i < READINGS; i++)
		if (strcmp(readings[i].name, name) == 0)
			return i;
	abort();
}

void print_values(FILE *to, const char *name, const double *from, unsigned int count)
{
	fprintf(to, ", \"%s\": [", name);
	for (unsigned int i = 0; i < count; i++)
		fprintf(to, "%s%.6g", i ? ", " : "", from[i]);
	fprintf(to, "]");
}

static void print(FILE *to, size_t i, unsigned int rounds, bool json, bool first)
{
	const char *const floor = readings[i].floor;
	const struct summary all = sum_up(values[i], rounds);
	double ratios[ROUNDS_MAX] = {0};
	struct summary ratio;

	for (unsigned int round = 0; floor && round < rounds; round++)
		ratios[round] = values[i][round] / values[find(floor)][round];
	ratio = sum_up(ratios, rounds);
	if (json) {
		fprintf(to,
			"%s\n {\"name\": \"%s\", \"unit\": \"%s\", \"median\": %.6g, \"low\": %.6g, "
			"\"high\": "
			"%.6g",
			first ? "" : ",", readings[i].name, readings[i].unit, all.median, all.low, all.high);
		if (floor)
			fprintf(to,
				", \"of\": \"%s\", \"ratio\": %.4f, \"ratio_low\": %.4f, \"ratio_high\": "
				"%.4f",
				floor, ratio.median, ratio.low, ratio.high);
		print_values(to, "values", values[i], rounds);
		fprintf(to, "}");
		return;
	}
	fprintf(to, "%-30s %12.4g %-6s", readings[i].name, all.median, readings[i].unit);
	if (floor)
		fprintf(to, " %8.3f [%.3f, %.3f] of %s", ratio.median, ratio.low, ratio.high, floor);
	fprintf(to, "\n");
}

/* ---- what several readings of one round say together ---- */

struct derived {
	const char *name, *unit;
	const char *of[4]; /* the readings it is made of */
	double (*value)(const double *of);
};

static double beside_the_better(const double *of)
{
	return of[0] / (of[1] < of[2] ? of[1] : of[2]);
}

static double ratio_of_two(const double *of)
{
	return of[0] / of[1];
}

/* (1 KiB - its floor) - (null - its floor), as a share of the null call. */
static double more_by_1_kib(const double *of)
{
	return (of[2] - of[3] - (of[0] - of[1])) / of[0];
}

static const struct derived derived[] = {
	{"shm null / the better floor",
	 "1",
	 {"shm null", "two lines", "two lines, pause"},
	 beside_the_better},
	{"shm null / one-line ring", "1", {"shm null", "bare one-line ring"}, ratio_of_two},
	{"shm 8 B / one-line ring", "1", {"shm 8 B", "bare one-line ring"}, ratio_of_two},
	{"xdp 4 MiB / frames, touched", "1", {"xdp 4 MiB", "raw frame stream, touched"}, ratio_of_two},
	{"udp, 1 KiB more above floor",
	 "1",
	 {"udp null", "bare udp", "udp 1 KiB", "bare udp 1 KiB"},
	 more_by_1_kib},
	{"xdp, 1 KiB more above floor",
	 "1",
	 {"xdp null", "raw frame", "xdp 1 KiB", "raw frame 1 KiB"},
	 more_by_1_kib},
};
#define DERIVED (sizeof(derived) / sizeof(derived[0]))

static bool was_taken(size_t i, unsigned int rounds)
{
	for (unsigned int round = 0; round < rounds; round++)
		if (isnan(values[i][round]) || values[i][round] == 0)
			return false;
	return true;
}

static void print_derived(FILE *to, const struct derived *one, unsigned int rounds, bool json)
{
	double from[ROUNDS_MAX];
	struct summary all;

	for (size_t k = 0; k < 4 && one->of[k]; k++)
		if (!was_taken(find(one->of[k]), rounds))
			return;
	for (unsigned int round = 0; round < rounds; round++) {
		double of[4] = {0};

		for (size_t k = 0; k < 4 && one->of[k]; k++)
			of[k] = values[find(one->of[k])][round];
		from[round] = one->value(of);
	}
	all = sum_up(from, rounds);
	if (!json) {
		fprintf(to, "%-30s %12.3f        [%.3f, %.3f]\n", one->name, all.median, all.low, all.high);
		return;
	}
	fprintf(to,
		",\n {\"name\": \"%s\", \"unit\": \"%s\", \"median\": %.6g, \"low\": %.6g, \"high\": %.6g",
		one->name, one->unit, all.median, all.low, all.high);
	print_values(to, "values", from, rounds);
	fprintf(to, "}");
}

/* All that was taken, as a table or as JSON. */
static void tell(FILE *to, unsigned int rounds, bool json)
{
	bool first = true;

	if (json)
		fprintf(to, "{\"schema\": \"pgr.bench/1\", \"rounds\": %u, \"readings\": [", rounds);
	for (size_t i = 0; i < READINGS; i++) {
		const char *const floor = readings[i].floor;

		if (was_taken(i, rounds) && (!floor || was_taken(find(floor), rounds))) {
			print(to, i, rounds, json, first);
			first = false;
		} else if (why_not[i][0]) {
			fprintf(json ? stderr : to, "%-30s not here: %s\n", readings[i].name, why_not[i]);
		}
	}
	for (size_t i = 0; i < DERIVED; i++)
		print_derived(to, &derived[i], rounds, json);
	if (json)
		fprintf(to, "\n]}\n");
}

static bool is_wanted(size_t i, const char *only)
{
	bool wanted = strstr(readings[i].name, only) != NULL;

	for (size_t k = 0; k < READINGS && !wanted; k++)
		wanted = strstr(readings[k].name, only) &&
			 ((readings[k].floor && strcmp(readings[k].floor, readings[i].name) == 0) ||
			  (readings[k].run && strcmp(readings[k].run, readings[i].name) == 0));
	return wanted;
}

static void take_round(unsigned int round, const char *only, double tick_ns)
{
	for (size_t i = 0; i < READINGS; i++) {
		const struct reading *one = &readings[i];

		if (!is_wanted(i, only))
			continue;
		values[i][round] = one->run ? in_unit(one, shared->more[one->more], tick_ns)
					    : take_reading(one, tick_ns, why_not[i], sizeof(why_not[i]));
	}
}

static FILE *keep_in(const char *name)
{
	FILE *file = fopen(name, "w");

	if (!file) {
		perror(name);
		exit(1);
	}
	return file;
}

int main(int argc, char **argv)
{
	bool json = false, by_size = false, memory = false;
	FILE *keep = NULL;
	int at = 1;
	unsigned int rounds;
	const char *only;
	const double tick_ns = ns_a_tick();

	for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
		if (strcmp(argv[at], "--keep") == 0 && at + 1 < argc)
			keep = keep_in(argv[++at]);
		json |= strcmp(argv[at], "--json") == 0;
		by_size |= strcmp(argv[at], "--sizes") == 0;
		memory |= strcmp(argv[at], "--memory") == 0;
	}
	rounds = at < argc ? (unsigned int)atoi(argv[at]) : 6;
	only = at + 1 < argc ? argv[at + 1] : "";
	if (!rounds || rounds > ROUNDS_MAX || sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		fprintf(stderr,
			"usage: pgr-bench [--json] [--keep FILE] [ROUNDS [NAME]] | --sizes [--keep FILE] "
			"[ROUNDS] | --memory [ROUNDS], on a machine of two cores or more; at most 64 "
			"rounds\n");
		return 2;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	if (by_size) {
		print_sizes(rounds, tick_ns, keep);
	} else if (memory) {
		print_memory(rounds, tick_ns);
	} else {
		for (unsigned int round = 0; round < rounds; round++)
			take_round(round, only, tick_ns);
		tell(stdout, rounds, json);
		if (keep)
			tell(keep, rounds, true);
	}
	return keep && fclose(keep) != 0;
}
