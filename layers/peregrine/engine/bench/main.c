/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rounds of all readings in turn, so that what disturbs the machine disturbs all of them; a fresh pair of
 * processes for each. Prints a table: median and extremes over the rounds, and the same of the ratio to the
 * reading's floor in each round; then what several readings of one round say together. A reading that the
 * machine cannot take is a row that says so.
 *
 *	PROGRAM [--json] [--keep FILE] [ROUNDS [NAME]]
 *	PROGRAM MODE [--keep FILE] [ROUNDS]
 *
 * 6 rounds; with NAME only readings whose name contains it, and their floors. What is read, and which modes there are, is in
 * the program's readings.c. --json: {"schema": "pgr.bench/1", "readings": [{name, unit, median, low, high, of, ratio, ratio_low,
 * ratio_high, values}]}, where values are one a round. --keep: the same into a file, beside the table.
 */
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define SECONDS      60u
#define READINGS_MAX 64u

const struct reading *reading;
struct shared *shared;
uint32_t samples[CALLS];
static double values[READINGS_MAX][ROUNDS_MAX]; /* NaN: not taken */
static char why_not[READINGS_MAX][256];

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
	for (size_t i = 0; i < readings_count; i++)
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

static bool was_taken(size_t i, unsigned int rounds)
{
	for (unsigned int round = 0; round < rounds; round++)
		if (isnan(values[i][round]) || values[i][round] == 0)
			return false;
	return true;
}

const double *values_of(const char *name, unsigned int rounds)
{
	const size_t i = find(name);

	return was_taken(i, rounds) ? values[i] : NULL;
}

/* All that was taken, as a table or as JSON. */
static void print_results(FILE *to, unsigned int rounds, bool json)
{
	bool first = true;

	if (json)
		fprintf(to, "{\"schema\": \"pgr.bench/1\", \"rounds\": %u, \"readings\": [", rounds);
	for (size_t i = 0; i < readings_count; i++) {
		const char *const floor = readings[i].floor;

		if (was_taken(i, rounds) && (!floor || was_taken(find(floor), rounds))) {
			print(to, i, rounds, json, first);
			first = false;
		} else if (why_not[i][0]) {
			fprintf(json ? stderr : to, "%-30s not here: %s\n", readings[i].name, why_not[i]);
		}
	}
	print_more(to, rounds, json);
	if (json)
		fprintf(to, "\n]}\n");
}

static bool is_wanted(size_t i, const char *only)
{
	bool wanted = strstr(readings[i].name, only) != NULL;

	for (size_t k = 0; k < readings_count && !wanted; k++)
		wanted = strstr(readings[k].name, only) &&
			 ((readings[k].floor && strcmp(readings[k].floor, readings[i].name) == 0) ||
			  (readings[k].run && strcmp(readings[k].run, readings[i].name) == 0));
	return wanted;
}

static void take_round(unsigned int round, const char *only, double tick_ns)
{
	for (size_t i = 0; i < readings_count; i++) {
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

static int usage(const char *program)
{
	fprintf(stderr, "usage: %s [--json] [--keep FILE] [ROUNDS [NAME]]", program);
	for (const struct mode *mode = modes; mode->option; mode++)
		fprintf(stderr, " | %s%s [ROUNDS]", mode->option, mode->keeps ? " [--keep FILE]" : "");
	fprintf(stderr, ", on a machine of two cores or more; at most %u rounds\n", ROUNDS_MAX);
	return 2;
}

int main(int argc, char **argv)
{
	const struct mode *mode = NULL;
	bool json = false;
	FILE *keep = NULL;
	int at = 1;
	unsigned int rounds;
	const char *only;
	const double tick_ns = ns_a_tick();

	for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
		if (strcmp(argv[at], "--keep") == 0 && at + 1 < argc)
			keep = keep_in(argv[++at]);
		json |= strcmp(argv[at], "--json") == 0;
		for (const struct mode *one = modes; one->option; one++)
			if (strcmp(argv[at], one->option) == 0)
				mode = one;
	}
	rounds = at < argc ? (unsigned int)atoi(argv[at]) : 6;
	only = at + 1 < argc ? argv[at + 1] : "";
	if (!rounds || rounds > ROUNDS_MAX || sysconf(_SC_NPROCESSORS_ONLN) < 2)
		return usage(argv[0]);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	if (mode) {
		mode->run(rounds, tick_ns, keep);
	} else {
		for (unsigned int round = 0; round < rounds; round++)
			take_round(round, only, tick_ns);
		print_results(stdout, rounds, json);
		if (keep)
			print_results(keep, rounds, true);
	}
	return keep && fclose(keep) != 0;
}
