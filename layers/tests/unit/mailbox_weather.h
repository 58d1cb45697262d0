/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A communication library that keeps no promise beyond what mailbox.h asks for. Writes become visible in any
 * order, at any moment and in pieces down to single bytes, lent buffers are read as late as they are lent,
 * anything may say BUSY, notifications overtake writes. All of it follows from one seed.
 */
#ifndef CADGE_TEST_MAILBOX_WEATHER_H
#define CADGE_TEST_MAILBOX_WEATHER_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/mailbox.h"

#define WRITES_MAX    256u
#define FRAGMENTS_MAX 96u
#define NOTES_MAX     64u

/* How often, in percent: the library is busy; keeps a buffer; gets something done in a step. */
struct weather {
	unsigned int busy_pct, queued_pct, apply_pct;
};

struct write {
	const uint8_t *from; /* the lent buffer, or `copy` */
	uint8_t *to, *copy;
	size_t bytes, fragment_bytes;
	struct cadge_mailbox_op *op; /* NULL: reported already */
	uint32_t fragments, applied, order[FRAGMENTS_MAX];
	uint64_t serial;
};

struct link {
	const struct weather *weather;
	struct cadge_mailbox *to; /* at the far end */
	uint8_t *area;            /* of the far end */
	size_t area_bytes;
	bool *from_asleep, *to_asleep;
	struct write writes[WRITES_MAX];
	uint32_t writes_count;
	struct cadge_mailbox_op *quiet_op;
	uint64_t serial, quiet_serial;
	uint64_t fenced_serial; /* writes up to it go before all later ones */
	uint8_t notes[NOTES_MAX][CADGE_MAILBOX_NOTE_BYTES];
	uint32_t notes_count;
	bool broken;
};

static uint64_t random_state;
static char trouble[256]; /* the first thing that went wrong */

static uint64_t random_next(void)
{
	uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static uint64_t random_below(uint64_t limit)
{
	return random_next() % limit;
}

static bool chance(unsigned int pct)
{
	return random_below(100) < pct;
}

__attribute__((format(printf, 1, 2))) static void fault(const char *format, ...)
{
	va_list list;

	if (*trouble)
		return;
	va_start(list, format);
	vsnprintf(trouble, sizeof(trouble), format, list);
	va_end(list);
}

static void write_drop(struct link *link, uint32_t number)
{
	free(link->writes[number].copy);
	link->writes[number] = link->writes[--link->writes_count];
}

static void write_report(struct link *link, struct write *write)
{
	struct cadge_mailbox_op *op = write->op;

	if (!op)
		return;
	if (write->from !=
	    write->copy) { /* the buffer is no longer ours: what is not applied yet was read by now */
		memcpy(write->copy, write->from, write->bytes);
		write->from = write->copy;
	}
	write->op = NULL;
	*link->from_asleep = false;
	cadge_mailbox_done(op, CADGE_DONE);
}

/* A fence holds back what came after it while anything before it is not applied. */
static bool write_is_held(const struct link *link, const struct write *write)
{
	if (write->serial <= link->fenced_serial)
		return false;
	for (uint32_t i = 0; i < link->writes_count; i++)
		if (link->writes[i].serial <= link->fenced_serial)
			return true;
	return false;
}

/* One fragment more becomes visible. */
static void write_apply(struct write *write)
{
	size_t at, bytes;

	if (write->applied == write->fragments)
		return;
	at = write->order[write->applied++] * write->fragment_bytes;
	bytes = write->bytes - at < write->fragment_bytes ? write->bytes - at : write->fragment_bytes;
	memcpy(write->to + at, write->from + at, bytes);
}

/* Applies one fragment; reports and forgets the write after its last. */
static void write_step(struct link *link, uint32_t number)
{
	struct write *write = &link->writes[number];

	if (write_is_held(link, write))
		return;
	write_apply(write);
	if (write->op && chance(30))
		write_report(link, write);
	write = &link->writes[number]; /* a report may have made the mailbox put more */
	if (write->applied == write->fragments) {
		write_report(link, write);
		write_drop(link, number);
	}
}

/* Between two loads of a mailbox: nothing is reported, but memory changes. */
static void write_blow(struct link *link)
{
	struct write *write;

	if (!link->writes_count || !chance(20))
		return;
	write = &link->writes[random_below(link->writes_count)];
	if (!write_is_held(link, write))
		write_apply(write);
}

static void apply_all(struct link *link)
{
	while (link->writes_count)
		for (uint32_t i = link->writes_count; i > 0; i--)
			if (i <= link->writes_count)
				write_step(link, i - 1);
}

static int fake_put(void *opaque, const void *local, size_t bytes, uint64_t offset_bytes,
		    struct cadge_mailbox_op *op)
{
	struct link *link = opaque;
	struct write *write;

	if (link->broken)
		return CADGE_E_DOWN;
	if (link->writes_count == WRITES_MAX || chance(link->weather->busy_pct))
		return CADGE_BUSY;
	if (!bytes || offset_bytes + bytes > link->area_bytes)
		fault("put of %zu bytes at %" PRIu64 " leaves the area", bytes, offset_bytes);
	write = &link->writes[link->writes_count++];
	write->bytes = bytes;
	write->to = link->area + offset_bytes;
	write->copy = malloc(bytes);
	write->op = chance(link->weather->queued_pct) ? op : NULL;
	write->from = local;
	write->serial = ++link->serial;
	if (!write->op) {
		memcpy(write->copy, local, bytes);
		write->from = write->copy;
	}
	write->fragment_bytes = 1 + random_below(bytes < 64 ? 12 : 40);
	while (write->fragment_bytes * FRAGMENTS_MAX < bytes)
		write->fragment_bytes = write->fragment_bytes * 2 + random_below(7);
	write->fragments = (uint32_t)((bytes + write->fragment_bytes - 1) / write->fragment_bytes);
	write->applied = 0;
	for (uint32_t i = 0; i < write->fragments; i++) {
		const uint32_t other = (uint32_t)random_below(i + 1);

		write->order[i] = write->order[other];
		write->order[other] = i;
	}
	return write->op ? CADGE_QUEUED : CADGE_DONE;
}

static int fake_quiet(void *opaque, struct cadge_mailbox_op *op)
{
	struct link *link = opaque;

	if (link->broken)
		return CADGE_E_DOWN;
	if (chance(link->weather->busy_pct))
		return CADGE_BUSY;
	if (link->quiet_op)
		fault("two quiets at a time");
	if (chance(20)) {
		apply_all(link);
		return CADGE_DONE;
	}
	link->quiet_op = op;
	link->quiet_serial = link->serial;
	return CADGE_QUEUED;
}

static int fake_fence(void *opaque)
{
	struct link *link = opaque;

	if (link->broken)
		return CADGE_E_DOWN;
	if (chance(link->weather->busy_pct))
		return CADGE_BUSY;
	if (link->fenced_serial && link->fenced_serial != link->serial)
		for (uint32_t i = 0; i < link->writes_count;
		     i++) /* an earlier fence still counts: keep it simple */
			if (link->writes[i].serial <= link->fenced_serial) {
				apply_all(link);
				break;
			}
	link->fenced_serial = link->serial;
	return CADGE_DONE;
}

static int fake_notify(void *opaque, const void *note)
{
	struct link *link = opaque;

	if (link->broken)
		return CADGE_E_DOWN;
	if (link->notes_count == NOTES_MAX || chance(link->weather->busy_pct))
		return CADGE_BUSY;
	memcpy(link->notes[link->notes_count++], note, CADGE_MAILBOX_NOTE_BYTES);
	return CADGE_DONE;
}

/* One random thing happens, if anything is under way. */
static void link_step(struct link *link)
{
	if (link->writes_count && chance(link->weather->apply_pct))
		write_step(link, (uint32_t)random_below(link->writes_count));
	if (link->quiet_op) {
		struct cadge_mailbox_op *op = link->quiet_op;
		bool done = true;

		for (uint32_t i = 0; i < link->writes_count; i++)
			done = done && link->writes[i].serial > link->quiet_serial;
		if (done) {
			link->quiet_op = NULL;
			*link->from_asleep = false;
			cadge_mailbox_done(op, CADGE_DONE);
		}
	}
	if (link->notes_count && chance(60)) { /* notifications keep their order, not that of writes */
		cadge_mailbox_notified(link->to, link->notes[0]);
		memmove(link->notes[0], link->notes[1], --link->notes_count * sizeof(link->notes[0]));
		*link->to_asleep = false;
	}
}

#endif
