/* SPDX-License-Identifier: BSD-3-Clause */
/* Long messages: placed before their handler runs, waiting for a poll, and ending with their link. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tests/styles/am_end.h"

/* ---- long messages ---- */

static uint32_t seed_of(uint64_t offset_bytes, size_t bytes)
{
	return (uint32_t)(offset_bytes * 31 + bytes);
}

/* Words: offset, bytes. Checks the segment, and answers by a transfer to the same place there. */
static void on_long(struct am_token *token, const uint32_t *words, uint32_t count, void *payload,
		    size_t bytes)
{
	const struct am_words back = {.count = 2, .word = {words[0], words[1]}};
	int code;

	handled++;
	wrong += count != 2 || payload != am_segment(endpoint) + words[0] || bytes != words[1] ||
		 !is_filled(payload, bytes, seed_of(words[0], bytes));
	code = am_reply_xfer(token, LONG_BACK, &back, &(struct cadge_iov){payload, bytes}, 1, words[0], 4711);
	wrong += code != CADGE_DONE && code != CADGE_QUEUED;
	ended += code == CADGE_DONE; /* only where nobody asks */
}

bool is_zero(const uint8_t *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (at[i])
			return false;
	return true;
}

static void on_long_back(struct am_token *token, const uint32_t *words, uint32_t count, void *payload,
			 size_t bytes)
{
	uint8_t *at = payload;

	(void)token;
	answered++;
	wrong += count != 2 || at != am_segment(endpoint) + words[0] || bytes != words[1] ||
		 !is_filled(at, bytes, seed_of(words[0], bytes));
	wrong += words[0] >= GUARD_BYTES && !is_zero(at - GUARD_BYTES, GUARD_BYTES);
	wrong += words[0] + bytes + GUARD_BYTES <= SEGMENT_BYTES && !is_zero(at + bytes, GUARD_BYTES);
	memset(at, 0, bytes);
}

static void send_long(uint8_t *content, uint32_t offset_bytes, uint32_t bytes)
{
	const struct am_words words = {.count = 2, .word = {offset_bytes, bytes}};
	const struct cadge_iov pieces[] = {{content, bytes / 4}, {content + bytes / 4, bytes - bytes / 4}};
	int code;

	fill(content, bytes, seed_of(offset_bytes, bytes));
	AWAIT((code = am_request_xfer(endpoint, 0, LONG, &words, pieces, 2, offset_bytes, 4711)) !=
		      CADGE_BUSY,
	      "a transfer does not begin");
	EXPECT(self, code == CADGE_DONE || code == CADGE_QUEUED, "transfer: %s", cadge_code_name(code));
	ended += code == CADGE_DONE;
}

static void send_to_and_fro(struct rank *rank)
{
	static uint8_t content[SEGMENT_BYTES];
	static const struct {
		uint32_t offset_bytes, bytes;
	} spots[] = {{0, 1},         {0, SEGMENT_BYTES}, {SEGMENT_BYTES - 1, 1},        {100, 0}, {101, 4099},
		     {4096, 300000}, {7, 65536},         {SEGMENT_BYTES - 10000, 10000}};
	enum { SPOTS = sizeof(spots) / sizeof(*spots), ROUNDS = 5 };

	am_begin(rank);
	am_set_handler(endpoint, LONG, on_long);
	am_set_handler(endpoint, LONG_BACK, on_long_back);
	map_other();
	barrier_all();
	for (unsigned int i = 0; rank->number && i < SPOTS * ROUNDS; i++) {
		send_long(content, spots[i % SPOTS].offset_bytes, spots[i % SPOTS].bytes);
		await(&ended, i + 1, "the end of a transfer");
		memset(content, 0xee, spots[i % SPOTS].bytes); /* it may be changed now */
		await(&answered, i + 1, "a transfer back");
	}
	if (rank->number == 0) {
		await(&handled, SPOTS * ROUNDS, "transfers");
		await(&ended, SPOTS * ROUNDS, "the end of transfers back");
	}
	EXPECT(rank, counter("grants_sent") == (trusting ? 1 : SPOTS * ROUNDS), "%llu grants of %d transfers",
	       (unsigned long long)counter("grants_sent"), SPOTS * ROUNDS);
	EXPECT(rank, am_coming(endpoint) == 0, "%u transfers are not there", am_coming(endpoint));
	am_end();
}

void test_long(struct rank *rank)
{
	send_to_and_fro(rank);
}

/* Without protection only the first one asks, for the key. */
void test_long_unasked(struct rank *rank)
{
	trusting = true;
	send_to_and_fro(rank);
}

static void on_queued(struct am_token *token, const uint32_t *words, uint32_t count, void *payload,
		      size_t bytes)
{
	(void)token;
	wrong += count != 1 || words[0] != handled || bytes != 20000 || !is_filled(payload, bytes, words[0]);
	handled++;
}

static void on_sent_back(struct am_token *token, const uint32_t *words, uint32_t count, void *payload,
			 size_t bytes)
{
	wrong += am_returned_status(token) != AM_CONGESTION || count != 1 || words[0] != QUEUE + returned ||
		 bytes != 20000 || !is_filled(payload, bytes, words[0]);
	returned++;
}

/*
 * A long request has a place in the queue before it is placed, so that none comes back after that; who has no place comes back
 * with its payload.
 */
void test_long_in_the_queue(struct rank *rank)
{
	static uint8_t content[WINDOW][20000];

	am_begin(rank);
	am_set_handler(endpoint, LONG, on_queued);
	am_set_handler(endpoint, AM_RETURNED, on_sent_back);
	map_other();
	budget = rank->number ? UINT32_MAX : 0;
	end_any = true;
	barrier_all();
	/* All ask before one is placed: nobody looks at grants meanwhile. */
	for (uint32_t i = 0; rank->number && i < WINDOW; i++) {
		const struct am_words words = {.count = 1, .word = {i}};
		const struct cadge_iov piece = {content[i], sizeof(content[i])};

		fill(content[i], sizeof(content[i]), i);
		EXPECT(rank,
		       am_request_xfer(endpoint, 0, LONG, &words, &piece, 1, i * sizeof(content[i]), 4711) ==
			       CADGE_QUEUED,
		       "transfer %u", i);
	}
	if (rank->number) {
		await(&ended, WINDOW, "what was granted, and what was not");
		EXPECT(rank, returned == WINDOW - QUEUE, "%u came back", returned);
	} else {
		AWAIT(counter("requests_returned") == WINDOW - QUEUE, "nothing is returned");
	}
	barrier_all();
	if (rank->number == 0) {
		AWAIT(am_coming(endpoint) == 0, "%u transfers do not come", am_coming(endpoint));
		EXPECT(rank, !handled, "a budget of 0 ran %u handlers", handled);
		EXPECT(rank, is_zero(am_segment(endpoint) + QUEUE * 20000, SEGMENT_BYTES - QUEUE * 20000),
		       "what came back was placed");
		am_set_tag(endpoint, TAG + 9); /* what was granted before still comes */
		am_set_handler(endpoint, LONG, NULL);
		budget = 1;
		look();
		EXPECT(rank, handled == 1, "a budget of 1 ran %u handlers", handled);
		budget = UINT32_MAX;
		look();
		EXPECT(rank, handled == QUEUE, "%u of %d in the queue were handled", handled, QUEUE);
	}
	am_end();
}

/* A link ends with requests, replies and transfers under way, and its next life has all its credits. */
void test_new_life(struct rank *rank)
{
	static uint8_t content[300000];

	am_begin(rank);
	am_set_handler(endpoint, LONG, on_long);
	am_set_handler(endpoint, LONG_BACK, on_long_back);
	for (unsigned int life = 0; life < 5; life++) {
		answered = returned = handled = 0;
		map_other();
		barrier_all();
		if (rank->number) {
			for (unsigned int i = 0; i < WINDOW; i++)
				request(0, ECHO, NULL, &(struct cadge_iov){content, 3500}, 1);
			await(&answered, WINDOW, "replies");
			for (unsigned int i = 0; i < WINDOW - 1; i++) /* nobody waits for these */
				request(0, ECHO, NULL, &(struct cadge_iov){content, 3500}, 1);
			send_long(content, 4096, sizeof(content));
		} else {
			await(&handled, WINDOW, "requests");
		}
		meet(rank, 0, 2);
		EXPECT(rank, am_disconnect(am, 1 - rank->number) == CADGE_DONE, "disconnect");
		meet(rank, 0, 2);
		EXPECT(rank, am_coming(endpoint) == 0, "something comes on a link that has ended");
		memset(am_segment(endpoint), 0, SEGMENT_BYTES);
	}
	map_other();
	am_end();
}

/*
 * The target dies when it has granted: the transfer ends, by the library's word or with its link. The sender has the key already:
 * UCX 1.13 does not survive the key of memory that is gone (ucp_ep_rkey_unpack, where shmat fails).
 */
void test_target_dies(struct rank *rank)
{
	static uint8_t content[300000];

	am_begin(rank);
	am_set_handler(endpoint, LONG, on_long);
	am_set_handler(endpoint, LONG_BACK, on_long_back);
	map_other();
	may_lose_peer = true;
	if (rank->number)
		send_long(content, 0, sizeof(content));
	await(rank->number ? &answered : &handled, 1, "a transfer");
	await(&ended, 1, "the end of a transfer");
	barrier_all();
	if (rank->number == 0) {
		AWAIT(am_coming(endpoint) == 1, "nobody asks");
		poll_for_ms(100);
		rank_dies(rank, 1);
	}
	send_long(content, 0, sizeof(content));
	rank_sees_death(rank, 0);
	poll_for_ms(300);
	EXPECT(rank, ended <= 2 && am_disconnect(am, 0) == CADGE_DONE, "%u transfers ended", ended);
	am_close(am);
}
