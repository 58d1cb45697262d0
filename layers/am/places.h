/* SPDX-License-Identifier: BSD-3-Clause */
/* Places in a stretch of a segment: taken in turn by one owner, given back in any order. */
#ifndef CADGE_AM_PLACES_H
#define CADGE_AM_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#define AM_PLACES      64u
#define AM_PLACES_LINE 64u /* bytes; each place begins with a line */

struct am_places {
	uint64_t bytes;        /* of the stretch; a multiple of a line */
	uint64_t taken, given; /* bytes, ever */
	uint32_t first, count;
	struct {
		uint64_t end;
		bool used;
	} place[AM_PLACES];
};

/* The number of the place and its offset, or -1: there is no room now. */
static inline int am_places_take(struct am_places *places, uint64_t bytes, uint64_t *offset_out)
{
	uint64_t at = places->taken % (places->bytes ? places->bytes : 1), begin = places->taken;
	const uint32_t number = (places->first + places->count) % AM_PLACES;

	bytes = (bytes + AM_PLACES_LINE - 1) / AM_PLACES_LINE * AM_PLACES_LINE;
	if (at + bytes > places->bytes) { /* not around the end */
		begin += places->bytes - at;
		at = 0;
	}
	if (places->count == AM_PLACES || begin + bytes - places->given > places->bytes)
		return -1;
	places->taken = begin + bytes;
	places->place[number].end = places->taken;
	places->place[number].used = true;
	places->count++;
	*offset_out = at;
	return (int)number;
}

static inline void am_places_give(struct am_places *places, uint32_t number)
{
	places->place[number % AM_PLACES].used = false;
	while (places->count && !places->place[places->first].used) {
		places->given = places->place[places->first].end;
		places->first = (places->first + 1) % AM_PLACES;
		places->count--;
	}
	if (!places->count) /* begin at the front again, while it is warm */
		places->taken = places->given = 0;
}

#endif
