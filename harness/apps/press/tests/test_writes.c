/* SPDX-License-Identifier: BSD-3-Clause */
/* What others write into a node's memory: whole or torn, of this attempt or another one, in whatever order. */
#include <stdlib.h>
#include <string.h>

#include "press/links/links.h"
#include "press/links/writes.h"
#include "tap.h"

#define ATTEMPT 77
#define PEER    3u

static uint64_t region[PRESS_LANDING_AT / sizeof(uint64_t)];
static struct drv_engine engine;
static struct press_links links;
static uint32_t taken_count, taken_file[2 * PRESS_WINDOW], taken_load;

static void note(void *arg, uint32_t endpoint, const struct press_message *head, const void *content,
		 size_t bytes)
{
	(void)arg, (void)content;
	if (endpoint != PEER || bytes)
		abort();
	taken_load = head->load;
	if (head->type != PRESS_LOAD)
		taken_file[taken_count++ % (2 * PRESS_WINDOW)] = head->file;
}

static void begin(enum press_version version)
{
	static char remote;

	memset(region, 0, sizeof(region));
	engine.region_memory.base = (uint8_t *)region;
	links = (struct press_links){.port = {.engine = &engine},
				     .attempt = ATTEMPT,
				     .version = version,
				     .count = 1,
				     .taken = note};
	links.links[0] = (struct press_link){
		.endpoint = PEER, .attempt = ATTEMPT, .remote = (struct cadge_remote *)(void *)&remote};
	links.links[0].last = &links.links[0].first;
	taken_count = 0;
}

static uint8_t *slot_at(uint32_t number)
{
	return (uint8_t *)region + PRESS_RINGS_AT +
	       (PEER * PRESS_WINDOW + number % PRESS_WINDOW) * sizeof(struct press_slot);
}

static struct press_slot slot_of(uint64_t number, uint64_t attempt)
{
	struct press_slot slot = {
		.head = {.attempt = attempt, .type = PRESS_FORWARD, .file = 100 + (uint32_t)number},
		.number = number};

	press_slot_seal(&slot);
	return slot;
}

static void check_ring(void)
{
	struct press_slot slot;
	unsigned torn = 0;

	begin(PRESS_V2);
	tap_ok(press_read_region(&links) == 0, "memory that nobody has written holds nothing");
	slot = slot_of(0, ATTEMPT);
	/* its words in any order: all but one of them */
	for (size_t missing = 0; missing < sizeof(slot) / 8; missing++) {
		uint64_t words[sizeof(slot) / 8];

		memcpy(words, &slot, sizeof(slot));
		if (!words[missing])
			continue;
		words[missing] = 0;
		memcpy(slot_at(0), words, sizeof(slot));
		torn += press_read_region(&links) != 0;
	}
	tap_ok(torn == 0 && taken_count == 0, "a message of which a word is missing is not taken");
	memcpy(slot_at(0), &slot, sizeof(slot));
	tap_ok(press_read_region(&links) == 1 && taken_file[0] == 100 && links.links[0].taken == 1,
	       "when it is whole, it is, and can be told as taken");
	tap_ok(press_read_region(&links) == 0, "but once");
	slot = slot_of(2, ATTEMPT);
	memcpy(slot_at(2), &slot, sizeof(slot));
	tap_ok(press_read_region(&links) == 0, "one that has overtaken another waits for that");
	slot = slot_of(1, ATTEMPT);
	memcpy(slot_at(1), &slot, sizeof(slot));
	tap_ok(press_read_region(&links) == 2 && taken_file[1] == 101 && taken_file[2] == 102,
	       "and then both are there, in order");
	slot = slot_of(3, ATTEMPT - 1);
	memcpy(slot_at(3), &slot, sizeof(slot));
	tap_ok(press_read_region(&links) == 0, "what another attempt has left counts for nothing");
	for (uint32_t n = 3; n < 3 + 2 * PRESS_WINDOW; n++) {
		slot = slot_of(n, ATTEMPT);
		memcpy(slot_at(n), &slot, sizeof(slot));
		press_read_region(&links);
	}
	tap_ok(taken_count == 3 + 2 * PRESS_WINDOW && !links.failed, "twice round: %u messages", taken_count);
}

static void write_board(uint32_t taken, uint32_t load, uint64_t attempt, size_t bytes)
{
	struct press_board board = {.attempt = attempt, .taken = taken, .load = load};

	press_board_seal(&board);
	memcpy((uint8_t *)region + (size_t)PEER * PRESS_BOARD_STRIDE, &board, bytes);
}

static void check_board(void)
{
	struct press_link *link = &links.links[0];

	begin(PRESS_V1);
	link->sent = 5;
	write_board(3, 9, ATTEMPT, sizeof(struct press_board) - 1);
	tap_ok(press_read_region(&links) == 0 && link->taken_there == 0,
	       "a board that is half written says nothing");
	write_board(3, 9, ATTEMPT - 1, sizeof(struct press_board));
	tap_ok(press_read_region(&links) == 0 && link->taken_there == 0, "nor does that of another attempt");
	write_board(3, 9, ATTEMPT, sizeof(struct press_board));
	tap_ok(press_read_region(&links) == 1 && link->taken_there == 3 && taken_load == 9,
	       "when it is whole, credits and load are known");
	tap_ok(press_read_region(&links) == 0, "what has not changed is no news");
	write_board(2, 1, ATTEMPT, sizeof(struct press_board));
	press_read_region(&links);
	tap_ok(link->taken_there == 3 && !links.failed, "credits that were said before take nothing back");
	write_board(6, 1, ATTEMPT, sizeof(struct press_board));
	press_read_region(&links);
	tap_ok(links.failed, "more taken than was sent: refused, %s", links.fail.text);
}

static void check_looking(void)
{
	struct press_link *link = &links.links[0];
	struct press_message told = {.attempt = ATTEMPT, .type = PRESS_NOTIFY, .offset = 1};
	struct press_job job = {.next = NULL};
	struct press_slot slot = slot_of(0, ATTEMPT);

	begin(PRESS_V2);
	tap_ok(press_links_check_interval_ns(&links) == UINT64_MAX, "who waits for nothing may sleep");
	press_links_take(&links, link, &told, NULL, 0);
	tap_ok(press_links_check_interval_ns(&links) < UINT64_MAX,
	       "who was told of what is not there yet looks again");
	memcpy(slot_at(0), &slot, sizeof(slot));
	press_read_region(&links);
	tap_ok(press_links_check_interval_ns(&links) == UINT64_MAX, "until it is there");
	told.offset = 0;
	press_links_take(&links, link, &told, NULL, 0);
	told.offset = 1000;
	press_links_take(&links, link, &told, NULL, 0);
	tap_ok(press_links_check_interval_ns(&links) == UINT64_MAX,
	       "a late notification, or nonsense, changes nothing");
	link->sent = PRESS_WINDOW;
	press_link_put_first(link, &job);
	tap_ok(press_links_check_interval_ns(&links) < UINT64_MAX, "who waits for credits looks again");
}

int main(void)
{
	check_ring();
	check_board();
	check_looking();
	return tap_done();
}
