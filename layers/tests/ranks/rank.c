/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/conformance/launchers.h"
#include "tests/ranks/ranks.h"

enum { REASON_BYTES = 256, SKIPPED = 77 };

__attribute__((noreturn)) static void end_rank(const struct rank *rank, int status, const char *format,
					       va_list list)
{
	char reason[REASON_BYTES];
	int used = snprintf(reason, sizeof(reason), "rank %u: ", rank->number);

	used += vsnprintf(reason + used, sizeof(reason) - 1 - (size_t)used, format, list);
	if (rank->verdict == STDERR_FILENO && used < (int)sizeof(reason) - 1)
		strcpy(reason + used, "\n");
	if (write(rank->verdict, reason, strlen(reason)) < 0)
		status = 2;
	_exit(status);
}

void rank_fail(const struct rank *rank, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	end_rank(rank, 1, format, list);
}

void rank_skip(const struct rank *rank, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	end_rank(rank, SKIPPED, format, list);
}

void say(const struct rank *rank, unsigned int to, const void *data, size_t bytes)
{
	EXPECT(rank, send(rank->to[to], data, bytes, MSG_NOSIGNAL) == (ssize_t)bytes,
	       "rank %u does not hear: %s", to, strerror(errno));
}

size_t hear(const struct rank *rank, unsigned int from, void *data, size_t room_bytes)
{
	ssize_t bytes;

	do {
		bytes = recv(rank->to[from], data, room_bytes, 0);
	} while (bytes < 0 && errno == EINTR);
	EXPECT(rank, bytes > 0, "rank %u has ended", from);
	return (size_t)bytes;
}

bool hears(const struct rank *rank, unsigned int from)
{
	char data[16];
	const ssize_t bytes = recv(rank->to[from], data, sizeof(data), MSG_DONTWAIT);

	EXPECT(rank, bytes, "rank %u has ended", from);
	return bytes > 0;
}

void meet(const struct rank *rank, unsigned int first, unsigned int count)
{
	char byte = 'm';

	for (unsigned int i = first; i < first + count; i++)
		if (i != rank->number)
			say(rank, i, &byte, 1);
	for (unsigned int i = first; i < first + count; i++)
		if (i != rank->number)
			hear(rank, i, &byte, 1);
}

struct cadge_open_args rank_open_args(const struct rank *rank, uint32_t depth_max)
{
	static char error[REASON_BYTES], name[128];
	static struct cadge_setting setting;
	const char *asked = getenv("RANKS_SETTING");
	char *equals;

	error[0] = '\0';
	snprintf(name, sizeof(name), "%s", asked ? asked : "");
	equals = strchr(name, '=');
	if (equals) {
		*equals = '\0';
		setting = (struct cadge_setting){.name = name, .value = equals + 1};
	}
	return (struct cadge_open_args){
		.bytes = sizeof(struct cadge_open_args),
		.place = rank->place,
		.wait_mode = rank->wait_mode,
		.device = rank->device,
		.address = rank->address,
		.peers_max = RANKS_MAX,
		.depth_max = depth_max,
		.message_bytes_max = 1 << 20,
		.region_bytes_max = 1 << 20,
		.settings = equals ? &setting : NULL,
		.settings_count = equals ? 1 : 0,
		.error = error,
		.error_bytes = sizeof(error),
	};
}

uint64_t clock_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

void rest_ms(unsigned int ms)
{
	poll(NULL, 0, (int)ms);
}

void give_way(int found)
{
	if (!found)
		sched_yield();
}

void rank_dies(const struct rank *rank, unsigned int witness)
{
	const pid_t self = getpid();

	say(rank, witness, &self, sizeof(self));
	for (;;)
		raise(SIGKILL);
}

void rank_sees_death(const struct rank *rank, unsigned int of)
{
	pid_t pid;

	EXPECT(rank, hear(rank, of, &pid, sizeof(pid)) == sizeof(pid) && process_ends(pid, 5000),
	       "rank %u does not die", of);
}

void fill(uint8_t *data, size_t bytes, uint32_t seed)
{
	uint32_t state = seed * 2654435761u + 12345u;

	for (size_t i = 0; i < bytes; i++) {
		data[i] = (uint8_t)(state >> 24);
		state = state * 1664525u + 1013904223u;
	}
}

bool is_filled(const void *data, size_t bytes, uint32_t seed)
{
	const uint8_t *at = data;
	uint32_t state = seed * 2654435761u + 12345u;

	for (size_t i = 0; i < bytes; i++) {
		if (at[i] != (uint8_t)(state >> 24))
			return false;
		state = state * 1664525u + 1013904223u;
	}
	return true;
}
