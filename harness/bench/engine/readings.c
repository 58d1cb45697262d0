/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine beside what the machine can do at best: what pgr-floors takes. --sizes: calls on shared memory of 8 B to 16 MiB,
 * all data written and read, beside the best bare ring (sizes.c), of which --keep writes {"schema": "pgr.sizes/1", "rounds",
 * "sizes": [{bytes, part, engine, ring}]}, engine and ring one a round. --memory: as pgr-bench.
 */
#include "floors.h"

#define LINE_DATA_BYTES 56u /* of a line, beside its stamp */

const struct reading readings[] = {
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
const size_t readings_count = sizeof(readings) / sizeof(readings[0]);

const struct mode modes[] = {
	{"--sizes", print_sizes, .keeps = true},
	{"--memory", print_memory, .keeps = false},
	{.option = NULL},
};

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
static void print_derived(FILE *to, const struct derived *one, unsigned int rounds, bool json)
{
	double from[ROUNDS_MAX];
	struct summary all;

	for (size_t k = 0; k < 4 && one->of[k]; k++)
		if (!values_of(one->of[k], rounds))
			return;
	for (unsigned int round = 0; round < rounds; round++) {
		double of[4] = {0};

		for (size_t k = 0; k < 4 && one->of[k]; k++)
			of[k] = values_of(one->of[k], rounds)[round];
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

void print_more(FILE *to, unsigned int rounds, bool json)
{
	for (size_t i = 0; i < sizeof(derived) / sizeof(derived[0]); i++)
		print_derived(to, &derived[i], rounds, json);
}
