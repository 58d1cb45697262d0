/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What pgr-bench takes: calls on this machine, those on shared memory beside one line of memory bounced between two cores, the
 * least that a call and its answer cost. --memory: long messages in memory of pgr_alloc, beside the same in memory of the
 * program's own (memory.c).
 */
#include "bench.h"

const struct reading readings[] = {
	{"two lines", "ns", lines_server, lines_client, NULL, .wire = NULL},
	{"shm null", "ns", calls_server, calls_client, "two lines", .wire = "shm"},
	{"shm 8 B", "ns", calls_server, calls_client, "two lines", .wire = "shm", .bytes = 8},
	{"shm rate, 64 outstanding", "1/s", calls_server, calls_deep_client, NULL, .wire = "shm"},
	{"shm 4 MiB", "GB/s", calls_server, calls_big_client, NULL, .wire = "shm"},
	{"udp null", "ns", calls_server, calls_client, NULL, .wire = "udp"},
	{"udp rate, 64 outstanding", "1/s", calls_server, calls_deep_client, NULL, .wire = "udp"},
	{"udp 4 MiB", "GB/s", calls_server, calls_big_client, NULL, .wire = "udp"},
};
const size_t readings_count = sizeof(readings) / sizeof(readings[0]);

const struct mode modes[] = {{"--memory", print_memory, .keeps = false}, {.option = NULL}};

void print_more(FILE *to, unsigned int rounds, bool json)
{
	(void)to, (void)rounds, (void)json;
}
