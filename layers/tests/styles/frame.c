/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/styles/frame.h"

#include <string.h>

enum { PATIENCE_S = 30 };

struct rank *self;
static const struct frame_calls *style;
static bool ups[RANKS_MAX];
static bool meeting, met[RANKS_MAX]; /* whether all are met, and who has come */

void frame_begin(struct rank *rank, const struct frame_calls *calls)
{
	self = rank;
	style = calls;
}

void frame_up(void *arg, uint32_t peer)
{
	(void)arg;
	ups[peer] = true;
}

/* Whoever comes to a meeting says so before it goes on, and perhaps ends the link. */
static bool has_arrived(uint32_t other)
{
	met[other] = met[other] || (meeting && hears(self, other));
	return met[other];
}

void frame_down(void *arg, uint32_t peer, int code)
{
	(void)arg, (void)code;
	EXPECT(self, has_arrived(peer), "peer %u is down", peer);
}

void connect_to(uint32_t other)
{
	uint8_t ours[2048], theirs[2048];
	struct cadge_blob_out out = {.at = ours, .room_bytes = sizeof(ours), .ok = true};
	struct cadge_blob_in in = {.at = theirs, .ok = true};

	ups[other] = false;
	EXPECT(self, style->address(other, &out) == CADGE_DONE, "address");
	say(self, other, ours, out.used_bytes);
	in.left_bytes = hear(self, other, theirs, sizeof(theirs));
	EXPECT(self, style->connect(other, &in) == CADGE_DONE && !in.left_bytes, "connect");
	AWAIT(ups[other], "up does not come");
}

void connect_all(void)
{
	for (uint32_t other = 0; other < self->count; other++)
		if (other != self->number && (other == 0 || self->number == 0))
			connect_to(other);
}

void look(void)
{
	style->look();
}

void poll_for_ms(unsigned int ms)
{
	for (const uint64_t until_ns = clock_ns() + ms * UINT64_C(1000000); clock_ns() < until_ns;)
		look();
}

uint64_t deadline(void)
{
	return clock_ns() + PATIENCE_S * UINT64_C(1000000000);
}

void await(const unsigned int *count, unsigned int wanted, const char *what)
{
	AWAIT(*count >= wanted, "waited in vain for %s: %u of %u", what, *count, wanted);
}

void barrier_all(void)
{
	meeting = true;
	for (unsigned int i = 0; i < self->count; i++)
		if (i != self->number)
			say(self, i, "met", 3);
	for (unsigned int i = 0; i < self->count; i++)
		if (i != self->number)
			AWAIT(has_arrived(i), "rank %u does not come", i);
	meeting = false;
	memset(met, 0, sizeof(met));
}

struct wanted {
	const char *name;
	uint64_t value;
};

static void pick(void *arg, const char *name, uint64_t value)
{
	struct wanted *wanted = arg;

	if (strcmp(name, wanted->name) == 0)
		wanted->value = value;
}

uint64_t counter(const char *name)
{
	struct wanted wanted = {.name = name, .value = UINT64_MAX};

	style->counters(pick, &wanted);
	EXPECT(self, wanted.value != UINT64_MAX, "there is no counter %s", name);
	return wanted.value;
}
