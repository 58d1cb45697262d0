/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/links/writes.h"

#include <string.h>

#include "press/links/links_state.h"
#include "traffic/payload.h"

#define CHECK_SEED UINT64_C(0x7072657373)

uint64_t press_region_bytes(enum press_version version)
{
	return version == PRESS_V0  ? 0
	       : version < PRESS_V3 ? PRESS_LANDING_AT
				    : PRESS_LANDING_AT + PRESS_LANDING_BYTES;
}

/* ---- check words ---- */

/* Of all words but the last one. */
static uint64_t check_of(const uint64_t *words, size_t count)
{
	uint64_t check = CHECK_SEED;

	for (size_t i = 0; i + 1 < count; i++)
		check = drv_mix(check, words[i]);
	return check;
}

#define WORDS(type) (sizeof(type) / sizeof(uint64_t))

void press_board_seal(struct press_board *board)
{
	uint64_t words[WORDS(*board)];

	memcpy(words, board, sizeof(words));
	board->check = check_of(words, WORDS(*board));
}

void press_slot_seal(struct press_slot *slot)
{
	uint64_t words[WORDS(*slot)];

	memcpy(words, slot, sizeof(words));
	slot->check = check_of(words, WORDS(*slot));
}

/* What is at `at` now, while it may be written; whether it is whole. */
static bool read_words(const uint8_t *at, uint64_t *words_out, size_t count)
{
	for (size_t i = 0; i < count; i++)
		words_out[i] = __atomic_load_n((const uint64_t *)(const void *)at + i, __ATOMIC_RELAXED);
	return words_out[count - 1] == check_of(words_out, count);
}

/* ---- out ---- */

static uint64_t token_of(uint32_t channel, uint32_t number)
{
	return (uint64_t)channel << 32 | number;
}

bool press_notified_by_layer(const struct press_links *links)
{
	return links->port.engine->offer.both.caps & CADGE_CAP_NOTIFY;
}

static bool goes_into_ring(enum press_version version, uint32_t type)
{
	return (version >= PRESS_V2 && (type == PRESS_FORWARD || type == PRESS_CACHING)) ||
	       (version >= PRESS_V3 && type == PRESS_FILE);
}

bool press_writes(const struct press_links *links, const struct press_link *link)
{
	const struct press_job *job = link->first;

	if (!link->remote || !goes_into_ring(links->version, job->head.type))
		return false;
	return !job->entry || job->head.landing != PRESS_NOWHERE;
}

static bool put(struct press_links *links, uint32_t channel, uint32_t number, const void *local, size_t bytes,
		uint64_t at, uint32_t flags)
{
	struct drv_engine *engine = links->port.engine;
	const int code =
		engine->layer->put(engine->channels[channel].chan, local, bytes, links->links[channel].remote,
				   at, flags, token_of(channel, number));

	if (!press_links_accepted(links, channel, number, code, "put"))
		return false;
	links->links[channel].dirty = true;
	links->counts[PRESS_PUTS]++;
	return true;
}

static bool write_message(struct press_links *links, uint32_t channel)
{
	struct press_link *link = &links->links[channel];
	const struct drv_engine *engine = links->port.engine;
	const uint32_t number = (uint32_t)__builtin_ctz(link->idle), type = link->first->head.type,
		       place = (uint32_t)engine->endpoint * PRESS_WINDOW + link->ring_written % PRESS_WINDOW;
	const bool notify = engine->block && press_notified_by_layer(links);
	struct press_slot *slot =
		(struct press_slot *)(void *)(link->buffers + (size_t)number * PRESS_MESSAGE_BYTES);

	if (!press_has_credit(link))
		return false;
	*slot = (struct press_slot){.head = press_link_head(links, link, &link->first->head),
				    .number = link->ring_written};
	press_slot_seal(slot);
	if (!put(links, channel, number, slot, sizeof(*slot), PRESS_RINGS_AT + place * sizeof(*slot),
		 notify ? CADGE_NOTIFY : 0))
		return false;
	link->ring_written++;
	link->sent++;
	link->credited = link->taken;
	link->load_sent = links->load;
	links->counts[PRESS_SENT + type]++;
	links->counts[PRESS_SENT_BYTES + type] += sizeof(*slot);
	links->counts[PRESS_SENT + PRESS_NOTIFY] += notify;
	link->notify = engine->block && !notify;
	press_link_end_first(link);
	return true;
}

/* One piece, from the cache or from a buffer. */
static bool write_piece(struct press_links *links, uint32_t channel)
{
	struct press_link *link = &links->links[channel];
	struct press_job *job = link->first;
	const uint32_t number = (uint32_t)__builtin_ctz(link->idle), offset = job->head.offset;
	const uint64_t most = links->version >= PRESS_V5 ? links->port.engine->offer.both.rma_bytes_max
							 : PRESS_MESSAGE_BYTES;
	const uint64_t left = job->entry->bytes - offset, bytes = left < most ? left : most;
	uint8_t *buffer = link->buffers + (size_t)number * PRESS_MESSAGE_BYTES;
	const uint8_t *from = job->entry->data + offset;

	if (links->version >= PRESS_V5) {
		press_entry_pin(job->entry);
		link->operations[number].entry = job->entry;
	} else {
		memcpy(buffer, from, bytes);
		from = buffer;
	}
	if (!put(links, channel, number, from, bytes, job->head.landing + (uint64_t)offset, 0)) {
		if (link->operations[number].entry)
			press_entry_unpin(job->entry);
		link->operations[number].entry = NULL;
		return false;
	}
	links->counts[PRESS_COPIED] += links->version >= PRESS_V5 ? 0 : bytes;
	links->counts[PRESS_SENT_BYTES + PRESS_FILE] += bytes;
	job->head.offset += (uint32_t)bytes;
	return true;
}

/* All pieces are on their way: its message has to wait until they can be seen. */
static bool write_quiet(struct press_links *links, uint32_t channel)
{
	struct drv_engine *engine = links->port.engine;
	struct press_link *link = &links->links[channel];
	struct press_job *job = link->first;
	const uint32_t number = (uint32_t)__builtin_ctz(link->idle);

	press_link_take_first(link);
	link->operations[number].job = job;
	if (press_links_accepted(
		    links, channel, number,
		    engine->layer->quiet(engine->channels[channel].chan, 0, token_of(channel, number)),
		    "quiet")) {
		links->counts[PRESS_QUIETS]++;
		return true;
	}
	link->operations[number].job = NULL;
	press_link_put_first(link, job);
	return false;
}

bool press_write_first(struct press_links *links, uint32_t channel)
{
	const struct press_link *link = &links->links[channel];
	const struct press_job *job = link->first;

	if (!link->idle)
		return false;
	if (!job->entry)
		return write_message(links, channel);
	return job->head.offset < job->entry->bytes ? write_piece(links, channel)
						    : write_quiet(links, channel);
}

void press_write_board(struct press_links *links, uint32_t channel)
{
	struct press_link *link = &links->links[channel];
	const uint32_t type = link->credited == link->taken ? PRESS_LOAD : PRESS_CREDIT;
	struct press_board *board = (struct press_board *)(void *)press_link_board(link);

	if (link->board_busy)
		return;
	*board = (struct press_board){.attempt = link->attempt, .taken = link->taken, .load = links->load};
	press_board_seal(board);
	if (!put(links, channel, PRESS_BUFFERS, board, sizeof(*board),
		 (uint64_t)links->port.engine->endpoint * PRESS_BOARD_STRIDE, 0))
		return;
	link->credited = link->taken;
	link->load_sent = links->load;
	links->counts[PRESS_SENT + type]++;
	links->counts[PRESS_SENT_BYTES + type] += sizeof(*board);
}

/* ---- in ---- */

static bool read_board(struct press_links *links, struct press_link *link, const uint8_t *region)
{
	const uint8_t *at = region + (size_t)link->endpoint * PRESS_BOARD_STRIDE;
	uint64_t words[WORDS(struct press_board)];
	struct press_board board;

	if (__atomic_load_n((const uint64_t *)(const void *)(at + offsetof(struct press_board, check)),
			    __ATOMIC_RELAXED) == link->board_read ||
	    !read_words(at, words, WORDS(board)))
		return false;
	memcpy(&board, words, sizeof(board));
	link->board_read = board.check;
	if (board.attempt != link->attempt)
		return false;
	press_links_credit(links, link, board.taken);
	links->taken(links->arg, link->endpoint,
		     &(struct press_message){.type = PRESS_LOAD, .load = board.load}, NULL, 0);
	return true;
}

static bool read_slot(struct press_links *links, struct press_link *link, const uint8_t *region)
{
	const uint32_t place = link->endpoint * PRESS_WINDOW + link->ring_read % PRESS_WINDOW;
	const uint8_t *at = region + PRESS_RINGS_AT + place * sizeof(struct press_slot);
	uint64_t words[WORDS(struct press_slot)];
	struct press_slot slot;

	/* the number first: as long as nothing comes, this one line is all that is looked at */
	if (__atomic_load_n((const uint64_t *)(const void *)(at + offsetof(struct press_slot, number)),
			    __ATOMIC_RELAXED) != link->ring_read ||
	    !read_words(at, words, WORDS(slot)))
		return false;
	memcpy(&slot, words, sizeof(slot));
	if (slot.head.attempt != link->attempt)
		return false;
	/* the file that it names was there before */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	link->ring_read++;
	press_links_take(links, link, &slot.head, NULL, 0);
	return true;
}

int press_read_region(struct press_links *links)
{
	const uint8_t *region = links->port.engine->region_memory.base;
	int events = 0;

	if (links->version == PRESS_V0 || !region)
		return 0;
	for (uint32_t i = 0; i < links->count; i++) {
		struct press_link *link = &links->links[i];

		if (!link->remote)
			continue;
		events += read_board(links, link, region);
		for (uint32_t n = 0; n < PRESS_WINDOW && !links->failed && read_slot(links, link, region);
		     n++)
			events++;
	}
	return events;
}
