/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What makes Active Messages II what they are, on their own calls: words and payloads arrive with their handler, a request
 * has at most one reply and a reply none, credits bound what is outstanding, what cannot be delivered comes back with all
 * it carried, and a long message lies in the segment before its handler runs.
 */

#include <string.h>

#include "tests/styles/am_end.h"

/* Every number of words, payloads of no byte up to all that a packet holds, in pieces. */
static void test_words_and_payloads(struct rank *rank)
{
	static uint8_t payload[8192];
	struct am_words words;
	unsigned int asked = 0;

	am_begin(rank);
	map_other();
	barrier_all();
	for (uint32_t count = 0; rank->number && count <= AM_WORDS_MAX; count++) {
		const size_t most = am_medium_bytes_max(am, count);
		const size_t lengths[] = {0, 1, 7, 100, 2053, most - 1, most};

		fill_words(&words, count);
		for (unsigned int i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
			const size_t bytes = lengths[i], third = bytes / 3;
			const struct cadge_iov pieces[] = {
				{payload, third}, {payload + third, 0}, {payload + third, bytes - third}};

			fill(payload, bytes, count * 100 + i);
			request(0, ECHO, &words, pieces, 3);
			await(&answered, ++asked, "a reply");
			EXPECT(rank,
			       words_count == count &&
				       memcmp(words_seen, words.word, count * sizeof(*words_seen)) == 0 &&
				       payload_bytes == bytes &&
				       is_filled(payload_seen, bytes, count * 100 + i),
			       "%u words and %zu bytes came back as %u and %zu", count, bytes, words_count,
			       payload_bytes);
		}
		EXPECT(rank,
		       am_request(endpoint, 0, ECHO, &words, &(struct cadge_iov){payload, most + 1}, 1) ==
			       CADGE_E_TOO_LARGE,
		       "%zu bytes are not refused", most + 1);
	}
	words.count = AM_WORDS_MAX + 1;
	EXPECT(rank, am_request(endpoint, 0, ECHO, &words, NULL, 0) == CADGE_E_ARGUMENT, "17 words");
	EXPECT(rank, am_request(endpoint, 1, ECHO, NULL, NULL, 0) == CADGE_E_ARGUMENT, "a name of nobody");
	am_end();
}

static void on_zero_reply(struct am_token *token, const uint32_t *words, uint32_t count, void *payload,
			  size_t bytes)
{
	(void)words, (void)count, (void)payload, (void)bytes;
	handled++;
	wrong += am_reply(token, AM_RETURNED, NULL, NULL, 0) != CADGE_E_ARGUMENT;
	wrong += am_reply(token, AM_HANDLERS_MAX, NULL, NULL, 0) != CADGE_E_ARGUMENT;
	wrong += am_reply_xfer(token, AM_HANDLERS_MAX + ANSWER, NULL, NULL, 0, 0, 0) != CADGE_E_ARGUMENT;
	wrong += am_reply(token, ANSWER, NULL, NULL, 0) != CADGE_DONE;
}

/* The last handler and the last name work; what is beyond, and handler 0, is refused and not cut to what fits. */
static void test_tables(struct rank *rank)
{
	static const uint32_t wrong_handlers[] = {AM_RETURNED, AM_HANDLERS_MAX, AM_HANDLERS_MAX + ECHO, 300,
						  UINT32_MAX};
	const uint32_t last_handler = AM_HANDLERS_MAX - 1, last_name = AM_NAMES_MAX - 1;

	EXPECT(rank, AM_HANDLERS_MAX >= 256 && AM_NAMES_MAX >= 256, "the least that there has to be");
	am_begin(rank);
	EXPECT(rank,
	       am_set_handler(endpoint, last_handler, on_zero_reply) == CADGE_DONE &&
		       am_set_handler(endpoint, AM_HANDLERS_MAX, on_zero_reply) == CADGE_E_ARGUMENT,
	       "set_handler");
	map_other();
	EXPECT(rank,
	       am_map(endpoint, last_name, 1 - rank->number, 0, TAG) == CADGE_DONE &&
		       am_map(endpoint, AM_NAMES_MAX, 1 - rank->number, 0, TAG) == CADGE_E_ARGUMENT,
	       "map");
	barrier_all();
	for (unsigned int i = 0; i < sizeof(wrong_handlers) / sizeof(*wrong_handlers); i++)
		EXPECT(rank,
		       am_request(endpoint, 0, wrong_handlers[i], NULL, NULL, 0) == CADGE_E_ARGUMENT &&
			       am_request_xfer(endpoint, 0, wrong_handlers[i], NULL, NULL, 0, 0, 0) ==
				       CADGE_E_ARGUMENT,
		       "handler %u is not refused", wrong_handlers[i]);
	if (rank->number)
		request(last_name, last_handler, NULL, NULL, 0);
	await(rank->number ? &answered : &handled, 1, "the last handler");
	am_end();
	EXPECT(rank, handled + answered == 1, "%u requests and %u replies came", handled, answered);
}

/* An endpoint without a tag takes nothing; one for all takes every tag; what names "all" itself is a wrong tag elsewhere. */
static void test_tags(struct rank *rank)
{
	static const uint64_t tags[] = {AM_TAG_NONE, TAG, TAG + 1, AM_TAG_ALL};
	enum { TAGS = sizeof(tags) / sizeof(*tags) };
	struct am_words words = {.count = 1};
	struct am_endpoint *untagged;

	am_begin(rank);
	untagged = am_endpoint_allocate(am);
	am_set_handler(untagged, ECHO, am_echo);
	map_other();
	barrier_all();
	for (unsigned int i = 0; rank->number && i < TAGS; i++) {
		words.word[0] = i;
		am_map(endpoint, 1, 0, am_endpoint_number(untagged), tags[i]);
		request(1, ECHO, &words, NULL, 0);
		expect_return(AM_BAD_TAG, ECHO, i + 1, &words, 0, 0);
	}
	barrier_all();
	am_set_tag(untagged, AM_TAG_ALL);
	barrier_all();
	for (unsigned int i = 0; rank->number && i < TAGS; i++) {
		am_map(endpoint, 1, 0, am_endpoint_number(untagged), tags[i]);
		request(1, ECHO, &words, NULL, 0);
		await(&answered, i + 1, "a reply");
	}
	barrier_all();
	if (rank->number) {
		am_map(endpoint, 1, 0, 0, AM_TAG_ALL);
		request(1, ECHO, &words, NULL, 0);
		expect_return(AM_BAD_TAG, ECHO, TAGS + 1, &words, 0, 0);
	}
	am_end();
	EXPECT(rank, handled == (rank->number ? 0 : TAGS), "%u requests were delivered", handled);
}

static void on_break_rules(struct am_token *token, const uint32_t *words, uint32_t count, void *payload,
			   size_t bytes)
{
	(void)words, (void)count, (void)payload, (void)bytes;
	handled++;
	wrong += am_request(endpoint, 0, COUNT, NULL, NULL, 0) != CADGE_E_REFUSED;
	wrong += am_request_xfer(endpoint, 0, COUNT, NULL, NULL, 0, 0, 0) != CADGE_E_REFUSED;
	wrong += am_reply(token, BREAK_MORE, NULL, NULL, 0) != CADGE_DONE;
	wrong += am_reply(token, BREAK_MORE, NULL, NULL, 0) != CADGE_E_REFUSED;
	wrong += am_reply_xfer(token, BREAK_MORE, NULL, NULL, 0, 0, 0) != CADGE_E_REFUSED;
}

static void on_break_more(struct am_token *token, const uint32_t *words, uint32_t count, void *payload,
			  size_t bytes)
{
	(void)words, (void)count, (void)payload, (void)bytes;
	answered++;
	wrong += am_reply(token, ANSWER, NULL, NULL, 0) != CADGE_E_REFUSED;
	wrong += am_request(endpoint, 0, COUNT, NULL, NULL, 0) != CADGE_E_REFUSED;
}

static void test_one_reply_and_no_more(struct rank *rank)
{
	am_begin(rank);
	am_set_handler(endpoint, BREAK_RULES, on_break_rules);
	am_set_handler(endpoint, BREAK_MORE, on_break_more);
	map_other();
	barrier_all();
	if (rank->number) {
		request(0, BREAK_RULES, NULL, NULL, 0);
		await(&answered, 1, "a reply");
	} else {
		await(&handled, 1, "a request");
	}
	barrier_all();
	EXPECT(rank, handled + answered == 1, "what was refused was sent: %u requests and %u replies",
	       handled, answered);
	am_end();
}

/* A window of requests leaves although nobody polls there, one more does not; without replies credits come back too. */
static void test_credits(struct rank *rank)
{
	enum { MESSAGES = 20 * WINDOW };
	struct am_words words = {.count = 1};
	unsigned int sent = 0;

	am_begin(rank);
	map_other();
	meet(rank, 0, 2); /* nobody polls meanwhile */
	if (rank->number) {
		const uint64_t until_ns = clock_ns() + UINT64_C(200000000);

		while (clock_ns() < until_ns) {
			words.word[0] = sent;
			sent += am_request(endpoint, 0, COUNT, &words, NULL, 0) == CADGE_DONE;
			look();
		}
		EXPECT(rank, sent == WINDOW, "%u requests left, of a window of %d", sent, WINDOW);
		EXPECT(rank, counter("requests_without_credit") > 0, "refusals are not counted");
	}
	meet(rank, 0, 2);
	for (; rank->number && sent < MESSAGES; sent++) {
		words.word[0] = sent;
		request(0, COUNT, &words, NULL, 0);
	}
	if (rank->number == 0)
		await(&handled, MESSAGES, "requests");
	barrier_all();
	if (rank->number == 0)
		EXPECT(rank, counter("acknowledgements") >= MESSAGES / WINDOW, "who told the sender?");
	am_end();
}

/* Without tags a wrong one is taken; without credits more than a window leaves although nobody polls there. */
static void test_switched_off(struct rank *rank)
{
	enum { MESSAGES = 2 * WINDOW };
	struct am_words words = {.count = 1};
	unsigned int sent = 0;

	trusting = uncredited = true;
	am_begin(rank);
	map_other();
	EXPECT(rank, am_map(endpoint, 0, 1 - rank->number, 0, TAG + 1) == CADGE_DONE, "map");
	meet(rank, 0, 2); /* nobody polls meanwhile */
	for (const uint64_t until_ns = deadline(); rank->number && sent < MESSAGES;) {
		words.word[0] = sent;
		sent += am_request(endpoint, 0, COUNT, &words, NULL, 0) == CADGE_DONE;
		EXPECT(rank, clock_ns() < until_ns, "%u requests left, no more than a window of %d", sent,
		       WINDOW);
	}
	meet(rank, 0, 2);
	if (rank->number == 0)
		await(&handled, MESSAGES, "requests");
	EXPECT(rank, !returned && !counter("requests_without_credit"), "something was looked at");
	am_end();
}

/* What cannot be delivered comes back with all it carried, and costs no credit. */
static void test_returned(struct rank *rank)
{
	static uint8_t payload[3000];
	const struct cadge_iov piece = {payload, sizeof(payload)};
	struct am_words words;

	am_begin(rank);
	map_other();
	barrier_all();
	fill_words(&words, 5);
	fill(payload, sizeof(payload), 9);
	for (unsigned int i = 0; rank->number && i < 3 * WINDOW; i++) {
		am_map(endpoint, 1, 0, 0, TAG + 1);
		request(1, ECHO, &words, &piece, 1);
		expect_return(AM_BAD_TAG, ECHO, 3 * i + 1, &words, sizeof(payload), 9);
		request(0, NOBODY, &words, &piece, 1);
		expect_return(AM_BAD_HANDLER, NOBODY, 3 * i + 2, &words, sizeof(payload), 9);
		am_map(endpoint, 1, 0, 3, TAG);
		request(1, ECHO, &words, &piece, 1);
		expect_return(AM_BAD_ENDPOINT, ECHO, 3 * i + 3, &words, sizeof(payload), 9);
		request(0, ECHO, &words, &piece, 1);
		await(&answered, i + 1, "a reply");
	}
	am_end();
	EXPECT(rank, rank->number || handled == 3 * WINDOW, "%u requests were delivered", handled);
}

/* Two endpoints of a bundle, each with a tag and handlers of its own. */
static void test_endpoints(struct rank *rank)
{
	struct am_endpoint *second;

	am_begin(rank);
	second = am_endpoint_allocate(am);
	am_set_tag(second, TAG + 7);
	am_set_handler(second, COUNT, am_count);
	am_set_handler(second, ANSWER, am_answer);
	map_other();
	am_map(endpoint, 1, 1 - rank->number, 1, TAG + 7);
	barrier_all();
	if (rank->number) {
		struct am_words words;

		fill_words(&words, 1);
		request(1, ECHO, &words, NULL, 0); /* the second has no such handler */
		expect_return(AM_BAD_HANDLER, ECHO, 1, &words, 0, 0);
		words.word[0] = 0;
		request(1, COUNT, &words, NULL, 0);
		request(0, ECHO, &words, NULL, 0);
		await(&answered, 1, "a reply");
		am_map(second, 0, 0, 0, TAG);
		EXPECT(rank, am_request(second, 0, ECHO, &words, NULL, 0) == CADGE_DONE, "second endpoint");
		await(&answered, 2, "a reply to the second endpoint");
	} else {
		await(&handled, 3, "requests");
	}
	am_end();
}

/* Who does not poll for requests has a queue; what comes beyond is returned, and nothing gets lost. */
static void test_full_endpoint(struct rank *rank)
{
	struct am_words words = {.count = 1};

	am_begin(rank);
	map_other();
	budget = rank->number ? UINT32_MAX : 0;
	barrier_all();
	for (unsigned int i = 0; rank->number && i < WINDOW; i++) {
		words.word[0] = i;
		request(0, COUNT, &words, NULL, 0);
	}
	meet(rank, 0, 2);
	if (rank->number) {
		await(&returned, WINDOW - QUEUE, "returns");
		EXPECT(rank, status_seen == AM_CONGESTION && handler_seen == COUNT, "status %d",
		       (int)status_seen);
	} else {
		AWAIT(counter("requests_returned") >= WINDOW - QUEUE, "nothing is returned");
	}
	barrier_all();
	EXPECT(rank, !handled, "a budget of 0 ran %u handlers", handled);
	if (rank->number == 0) {
		budget = 1;
		look();
		EXPECT(rank, handled == 1, "a budget of 1 ran %u handlers", handled);
		budget = UINT32_MAX;
		look();
		EXPECT(rank, handled == QUEUE, "%u requests were in the queue of %d", handled, QUEUE);
	}
	barrier_all();
	EXPECT(rank, returned == (rank->number ? WINDOW - QUEUE : 0), "%u were returned", returned);
	am_end();
}

/*
 * Replies as long as a packet, to a sender whose window is longer than what the server's wire holds: they wait, and none is
 * lost.
 */
enum { MANY = 2000 };

static void on_big(struct am_token *token, const uint32_t *words, uint32_t count, void *payload, size_t bytes)
{
	static uint8_t back[8192];
	const struct am_words number = {.count = 1, .word = {words[0]}};
	const struct cadge_iov piece = {back, am_medium_bytes_max(am, 1)};

	(void)payload, (void)count, (void)bytes;
	handled++;
	fill(back, piece.bytes, words[0]);
	wrong += am_reply(token, ANSWER, &number, &piece, 1) != CADGE_DONE;
}

static void on_big_answer(struct am_token *token, const uint32_t *words, uint32_t count, void *payload,
			  size_t bytes)
{
	(void)token;
	wrong += count != 1 || words[0] != answered % MANY || bytes != am_medium_bytes_max(am, 1) ||
		 !is_filled(payload, bytes, words[0]);
	answered++;
}

static void test_replies_find_room(struct rank *rank)
{
	enum { ROUNDS = 3 };

	outstanding = rank->number ? MANY : WINDOW;
	am_begin(rank);
	am_set_handler(endpoint, BIG, on_big);
	am_set_handler(endpoint, ANSWER, on_big_answer);
	map_other();
	for (unsigned int round = 0; round < ROUNDS; round++) {
		barrier_all();
		for (unsigned int i = 0; rank->number && i < MANY; i++)
			request(0, BIG, &(struct am_words){.count = 1, .word = {i}}, NULL, 0);
		if (rank->number)
			rest_ms(20); /* while it does not look, there is no room for all replies */
		await(rank->number ? &answered : &handled, (round + 1) * MANY, "the other");
	}
	if (rank->number == 0)
		EXPECT(rank, counter("answers_unsent") > 0, "there was room for %d replies", MANY);
	am_end();
}

int on_wire_conformance(int argc, char **argv)
{
	static const struct rank_test tests[] = {
		{.name = "words_and_payloads", .run = test_words_and_payloads, .ranks = 2},
		{.name = "one_reply_and_no_more", .run = test_one_reply_and_no_more, .ranks = 2},
		{.name = "credits", .run = test_credits, .ranks = 2},
		{.name = "switched_off", .run = test_switched_off, .ranks = 2},
		{.name = "returned", .run = test_returned, .ranks = 2},
		{.name = "endpoints", .run = test_endpoints, .ranks = 2},
		{.name = "full_endpoint", .run = test_full_endpoint, .ranks = 2},
		{.name = "replies_find_room", .run = test_replies_find_room, .ranks = 2},
		{.name = "tables", .run = test_tables, .ranks = 2},
		{.name = "tags", .run = test_tags, .ranks = 2},
		{.name = "long", .run = test_long, .ranks = 2},
		{.name = "long_unasked", .run = test_long_unasked, .ranks = 2},
		{.name = "long_in_the_queue", .run = test_long_in_the_queue, .ranks = 2},
		{.name = "long_outside", .run = test_long_outside, .ranks = 2},
		{.name = "refused_long", .run = test_refused_long, .ranks = 2},
		{.name = "refused_medium", .run = test_refused_medium, .ranks = 2},
		{.name = "refused_reply", .run = test_refused_reply, .ranks = 2},
		{.name = "new_life", .run = test_new_life, .ranks = 2},
		{.name = "target_dies", .run = test_target_dies, .ranks = 2, .dies = 1},
		{.name = "stranger", .run = test_stranger, .ranks = 2},
		{.name = "nonsense", .run = test_nonsense, .ranks = 2},
		{.name = "noise", .run = test_noise, .ranks = 2},
	};
	enum { TESTS = sizeof(tests) / sizeof(*tests), FIRST_LONG = 10 };
	/* Each test is a job of mpirun's own: there, what depends on remote memory. */
	const size_t first = ranks_by_mpirun ? FIRST_LONG : 0;

	return ranks_run_styles(argc, argv, tests + first, TESTS - first);
}
