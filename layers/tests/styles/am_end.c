/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank of the tests of Active Messages: a bundle with one endpoint, and what its handlers have seen. */
#include "tests/styles/am_end.h"

#include <string.h>

uint32_t outstanding = WINDOW;
struct am *am;
struct am_endpoint *endpoint;
uint32_t budget = UINT32_MAX; /* of requests, of a look */

/* What handlers and upcalls have seen. */
unsigned int handled, answered, returned, ended, wrong;
uint32_t words_seen[AM_WORDS_MAX], words_count;
uint8_t payload_seen[SEGMENT_BYTES];
size_t payload_bytes;
enum am_status status_seen;
uint32_t handler_seen;
int end_wanted = CADGE_DONE;
bool end_any;
void (*after_poll)(void);
bool may_lose_peer;

/* ---- frame ---- */

static void on_ended(void *arg, uint32_t peer, uint32_t handler, uint64_t token, int code)
{
	(void)arg, (void)peer, (void)handler;
	EXPECT(self, (code == end_wanted || may_lose_peer || end_any) && token == 4711,
	       "a transfer ended with %s, not %s", cadge_code_name(code), cadge_code_name(end_wanted));
	ended++;
}

static void poll_once(void)
{
	const int count = am_poll(am, budget);

	EXPECT(self, count >= 0 || may_lose_peer, "poll: %s", cadge_code_name(count));
	if (after_poll)
		after_poll();
	give_way(count);
}

FRAME_CALLS(am, poll_once);

static void on_down(void *arg, uint32_t peer, int code)
{
	if (!may_lose_peer)
		frame_down(arg, peer, code);
}

static void keep_what_came(const uint32_t *words, uint32_t count, const void *payload, size_t bytes)
{
	words_count = count;
	memcpy(words_seen, words, count * sizeof(*words));
	payload_bytes = bytes;
	if (bytes && bytes <= sizeof(payload_seen))
		memcpy(payload_seen, payload, bytes);
}

static void on_returned(struct am_token *token, const uint32_t *words, uint32_t count, void *payload,
			size_t bytes)
{
	returned++;
	status_seen = am_returned_status(token);
	handler_seen = am_returned_handler(token);
	keep_what_came(words, count, payload, bytes);
	wrong += am_reply(token, ANSWER, NULL, NULL, 0) != CADGE_E_REFUSED;
}

void am_echo(struct am_token *token, const uint32_t *words, uint32_t count, void *payload, size_t bytes)
{
	struct am_words back = {.count = count};
	const struct cadge_iov piece = {.base = payload, .bytes = bytes};

	handled++;
	memcpy(back.word, words, count * sizeof(*words));
	wrong += am_reply(token, ANSWER, &back, &piece, 1) != CADGE_DONE;
}

void am_answer(struct am_token *token, const uint32_t *words, uint32_t count, void *payload, size_t bytes)
{
	(void)token;
	answered++;
	keep_what_came(words, count, payload, bytes);
}

void am_count(struct am_token *token, const uint32_t *words, uint32_t count, void *payload, size_t bytes)
{
	(void)token, (void)payload;
	wrong += count != 1 || words[0] != handled || bytes != 0;
	handled++;
}

bool trusting, uncredited;

void am_begin(struct rank *rank)
{
	const struct am_config config = {
		.packet_bytes = 8128,
		.outstanding = outstanding,
		.queue = QUEUE,
		.trusting = trusting,
		.uncredited = uncredited,
		.calls = {.up = frame_up, .down = on_down, .ended = on_ended},
	};
	const struct cadge_open_args args = rank_open_args(rank, WINDOW);

	frame_begin(rank, &frame_calls);
	EXPECT(rank, am_open(&args, &config, &am) == CADGE_DONE, "open: %s", args.error);
	endpoint = am_endpoint_allocate(am);
	am_set_tag(endpoint, TAG);
	EXPECT(rank,
	       am_set_handler(endpoint, AM_RETURNED, on_returned) == CADGE_DONE &&
		       am_set_handler(endpoint, ECHO, am_echo) == CADGE_DONE &&
		       am_set_handler(endpoint, ANSWER, am_answer) == CADGE_DONE &&
		       am_set_handler(endpoint, COUNT, am_count) == CADGE_DONE,
	       "handlers");
	EXPECT(rank, am_set_segment(endpoint, SEGMENT_BYTES) == CADGE_DONE, "segment");
}

/* Name 0 is the other's first endpoint. */
void map_other(void)
{
	const uint32_t other = 1 - self->number;

	connect_to(other);
	EXPECT(self, am_map(endpoint, 0, other, 0, TAG) == CADGE_DONE, "map");
}

void am_end(void)
{
	barrier_all();
	EXPECT(self, !wrong, "%u things were not as they must be", wrong);
	am_close(am);
}

void request(uint32_t name, uint32_t handler, const struct am_words *words, const struct cadge_iov *pieces,
	     uint32_t count)
{
	int code;

	AWAIT((code = am_request(endpoint, name, handler, words, pieces, count)) != CADGE_BUSY,
	      "a request does not leave");
	EXPECT(self, code == CADGE_DONE, "request: %s", cadge_code_name(code));
}

void fill_words(struct am_words *words, uint32_t count)
{
	words->count = count;
	for (uint32_t i = 0; i < count; i++)
		words->word[i] = 0xdeadbeefu * (i + 1) + count;
}

void expect_return(enum am_status status, uint32_t handler, unsigned int number, const struct am_words *words,
		   size_t bytes, uint32_t seed)
{
	await(&returned, number, "a return");
	EXPECT(self, status_seen == status && handler_seen == handler,
	       "status %d of handler %u, not %d of %u", (int)status_seen, handler_seen, (int)status, handler);
	EXPECT(self,
	       words_count == words->count &&
		       memcmp(words_seen, words->word, words->count * sizeof(*words_seen)) == 0 &&
		       payload_bytes == bytes && is_filled(payload_seen, bytes, seed),
	       "it did not come back with all it carried");
}
