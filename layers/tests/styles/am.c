/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What makes Active Messages II what they are, on their own calls: words and payloads arrive with their handler, a request
 * has at most one reply and a reply none, credits bound what is outstanding, what cannot be delivered comes back with all
 * it carried, and a long message lies in the segment before its handler runs.
 */

#include <string.h>

#include "am/am.h"
#include "tests/styles/frame.h"

enum { WINDOW = 8, QUEUE = 4, SEGMENT_BYTES = 1 << 20, GUARD_BYTES = 64 };
enum { ECHO = 1, ANSWER, COUNT, BREAK_RULES, BREAK_MORE, LONG, LONG_BACK, BIG, NOBODY = 77 };
#define TAG UINT64_C(0x1122334455667788)

static uint32_t outstanding = WINDOW;
static struct am *am;
static struct am_endpoint *endpoint;
static uint32_t budget = UINT32_MAX; /* of requests, of a look */

/* What handlers and upcalls have seen. */
static unsigned int handled, answered, returned, ended, wrong;
static uint32_t words_seen[AM_WORDS_MAX], words_count;
static uint8_t payload_seen[10000];
static size_t payload_bytes;
static enum am_status status_seen;
static uint32_t handler_seen;

/* ---- frame ---- */

static void on_ended(void *arg, uint32_t peer, uint32_t handler, uint64_t token, int code)
{
	(void)arg, (void)peer, (void)handler;
	EXPECT(self, code == CADGE_DONE && token == 4711, "a transfer ended with %s", cadge_code_name(code));
	ended++;
}

static void poll_once(void)
{
	const int count = am_poll(am, budget);

	EXPECT(self, count >= 0, "poll: %s", cadge_code_name(count));
	give_way(count);
}

FRAME_CALLS(am, poll_once);

static void keep_what_came(const uint32_t *words, uint32_t count, const void *payload, size_t bytes)
{
	words_count = count;
	memcpy(words_seen, words, count * sizeof(*words));
	payload_bytes = bytes;
	if (bytes <= sizeof(payload_seen))
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

/* Answers with what came. */
static void on_echo(struct am_token *token, const uint32_t *words, uint32_t count, void *payload,
		    size_t bytes)
{
	struct am_words back = {.count = count};
	const struct cadge_iov piece = {.base = payload, .bytes = bytes};

	handled++;
	memcpy(back.word, words, count * sizeof(*words));
	wrong += am_reply(token, ANSWER, &back, &piece, 1) != CADGE_DONE;
}

static void on_answer(struct am_token *token, const uint32_t *words, uint32_t count, void *payload,
		      size_t bytes)
{
	(void)token;
	answered++;
	keep_what_came(words, count, payload, bytes);
}

/* Numbers that come in order. */
static void on_count(struct am_token *token, const uint32_t *words, uint32_t count, void *payload,
		     size_t bytes)
{
	(void)token, (void)payload;
	wrong += count != 1 || words[0] != handled || bytes != 0;
	handled++;
}

static bool untagged, uncredited;

static void begin(struct rank *rank)
{
	const struct am_config config = {
		.packet_bytes = 8128,
		.outstanding = outstanding,
		.queue = QUEUE,
		.untagged = untagged,
		.uncredited = uncredited,
		.calls = {.up = frame_up, .down = frame_down, .ended = on_ended},
	};
	const struct cadge_open_args args = rank_open_args(rank, WINDOW);

	frame_begin(rank, &frame_calls);
	EXPECT(rank, am_open(&args, &config, &am) == CADGE_DONE, "open: %s", args.error);
	endpoint = am_endpoint_allocate(am);
	am_set_tag(endpoint, TAG);
	am_set_handler(endpoint, AM_RETURNED, on_returned);
	am_set_handler(endpoint, ECHO, on_echo);
	am_set_handler(endpoint, ANSWER, on_answer);
	am_set_handler(endpoint, COUNT, on_count);
	EXPECT(rank, am_set_segment(endpoint, SEGMENT_BYTES) == CADGE_DONE, "segment");
}

/* Name 0 is the other's first endpoint. */
static void meet_other(void)
{
	const uint32_t other = 1 - self->number;

	connect_to(other);
	EXPECT(self, am_map(endpoint, 0, other, 0, TAG) == CADGE_DONE, "map");
}

static void end(void)
{
	meet_all();
	EXPECT(self, !wrong, "%u things were not as they must be", wrong);
	am_close(am);
}

static void request(uint32_t name, uint32_t handler, const struct am_words *words,
		    const struct cadge_iov *pieces, uint32_t count)
{
	int code;

	AWAIT((code = am_request(endpoint, name, handler, words, pieces, count)) != CADGE_BUSY,
	      "a request does not leave");
	EXPECT(self, code == CADGE_DONE, "request: %s", cadge_code_name(code));
}

/* ---- tests ---- */

static void fill_words(struct am_words *words, uint32_t count)
{
	words->count = count;
	for (uint32_t i = 0; i < count; i++)
		words->word[i] = 0xdeadbeefu * (i + 1) + count;
}

/* Every number of words, payloads of no byte up to all that a packet holds, in pieces. */
static void test_words_and_payloads(struct rank *rank)
{
	static uint8_t payload[8192];
	struct am_words words;
	unsigned int asked = 0;

	begin(rank);
	meet_other();
	meet_all();
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
	end();
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
	begin(rank);
	am_set_handler(endpoint, BREAK_RULES, on_break_rules);
	am_set_handler(endpoint, BREAK_MORE, on_break_more);
	meet_other();
	meet_all();
	if (rank->number) {
		request(0, BREAK_RULES, NULL, NULL, 0);
		await(&answered, 1, "a reply");
	} else {
		await(&handled, 1, "a request");
	}
	meet_all();
	EXPECT(rank, handled + answered == 1, "what was refused was sent: %u requests and %u replies",
	       handled, answered);
	end();
}

/* A window of requests leaves although nobody polls there, one more does not; without replies credits come back too. */
static void test_credits(struct rank *rank)
{
	enum { MESSAGES = 20 * WINDOW };
	struct am_words words = {.count = 1};
	unsigned int sent = 0;

	begin(rank);
	meet_other();
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
	meet_all();
	if (rank->number == 0)
		EXPECT(rank, counter("acknowledgements") >= MESSAGES / WINDOW, "who told the sender?");
	end();
}

/* Without tags a wrong one is taken; without credits more than a window leaves although nobody polls there. */
static void test_switched_off(struct rank *rank)
{
	enum { MESSAGES = 2 * WINDOW };
	struct am_words words = {.count = 1};
	unsigned int sent = 0;

	untagged = uncredited = true;
	begin(rank);
	meet_other();
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
	end();
}

static void expect_return(enum am_status status, uint32_t handler, unsigned int number,
			  const struct am_words *words, size_t bytes, uint32_t seed)
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

/* What cannot be delivered comes back with all it carried, and costs no credit. */
static void test_returned(struct rank *rank)
{
	static uint8_t payload[3000];
	const struct cadge_iov piece = {payload, sizeof(payload)};
	struct am_words words;

	begin(rank);
	meet_other();
	meet_all();
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
	end();
	EXPECT(rank, rank->number || handled == 3 * WINDOW, "%u requests were delivered", handled);
}

/* Two endpoints of a bundle, each with a tag and handlers of its own. */
static void test_endpoints(struct rank *rank)
{
	struct am_endpoint *second;

	begin(rank);
	second = am_endpoint_allocate(am);
	am_set_tag(second, TAG + 7);
	am_set_handler(second, COUNT, on_count);
	am_set_handler(second, ANSWER, on_answer);
	meet_other();
	am_map(endpoint, 1, 1 - rank->number, 1, TAG + 7);
	meet_all();
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
	end();
}

/* Who does not poll for requests has a queue; what comes beyond is returned, and nothing gets lost. */
static void test_full_endpoint(struct rank *rank)
{
	struct am_words words = {.count = 1};

	begin(rank);
	meet_other();
	budget = rank->number ? UINT32_MAX : 0;
	meet_all();
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
	meet_all();
	EXPECT(rank, !handled, "a budget of 0 ran %u handlers", handled);
	if (rank->number == 0) {
		budget = 1;
		look();
		EXPECT(rank, handled == 1, "a budget of 1 ran %u handlers", handled);
		budget = UINT32_MAX;
		look();
		EXPECT(rank, handled == QUEUE, "%u requests were in the queue of %d", handled, QUEUE);
	}
	meet_all();
	EXPECT(rank, returned == (rank->number ? WINDOW - QUEUE : 0), "%u were returned", returned);
	end();
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
	begin(rank);
	am_set_handler(endpoint, BIG, on_big);
	am_set_handler(endpoint, ANSWER, on_big_answer);
	meet_other();
	for (unsigned int round = 0; round < ROUNDS; round++) {
		meet_all();
		for (unsigned int i = 0; rank->number && i < MANY; i++)
			request(0, BIG, &(struct am_words){.count = 1, .word = {i}}, NULL, 0);
		if (rank->number)
			rest_ms(20); /* while it does not look, there is no room for all replies */
		await(rank->number ? &answered : &handled, (round + 1) * MANY, "the other");
	}
	if (rank->number == 0)
		EXPECT(rank, counter("answers_unsent") > 0, "there was room for %d replies", MANY);
	end();
}

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
	ended += code == CADGE_DONE;
}

static bool is_zero(const uint8_t *at, size_t bytes)
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

static void test_long(struct rank *rank)
{
	static uint8_t content[SEGMENT_BYTES];
	static const struct {
		uint32_t offset_bytes, bytes;
	} spots[] = {{0, 1},         {0, SEGMENT_BYTES}, {SEGMENT_BYTES - 1, 1},        {100, 0}, {101, 4099},
		     {4096, 300000}, {7, 65536},         {SEGMENT_BYTES - 10000, 10000}};
	enum { SPOTS = sizeof(spots) / sizeof(*spots), ROUNDS = 5 };

	begin(rank);
	am_set_handler(endpoint, LONG, on_long);
	am_set_handler(endpoint, LONG_BACK, on_long_back);
	meet_other();
	meet_all();
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
	end();
}

/* A byte outside of the segment: refused, and nothing is written. */
static void test_long_outside(struct rank *rank)
{
	static uint8_t content[SEGMENT_BYTES + 1];
	static const struct {
		uint64_t offset_bytes;
		uint32_t bytes;
	} spots[] = {{0, SEGMENT_BYTES + 1},
		     {SEGMENT_BYTES, 1},
		     {SEGMENT_BYTES - 9, 10},
		     {UINT64_MAX, 1},
		     {UINT64_MAX - 3, 5}};

	begin(rank);
	meet_other();
	meet_all();
	memset(content, 0x77, sizeof(content));
	for (unsigned int i = 0; rank->number && i < sizeof(spots) / sizeof(*spots); i++)
		EXPECT(rank,
		       am_request_xfer(endpoint, 0, COUNT, NULL, &(struct cadge_iov){content, spots[i].bytes},
				       1, spots[i].offset_bytes, 0) == CADGE_E_REFUSED,
		       "%u bytes at %llu are not refused", spots[i].bytes,
		       (unsigned long long)spots[i].offset_bytes);
	meet_all();
	EXPECT(rank, is_zero(am_segment(endpoint), SEGMENT_BYTES) && !handled, "something was written");
	end();
}

/* A link ends with requests, replies and transfers under way, and its next life has all its credits. */
static void test_new_life(struct rank *rank)
{
	static uint8_t content[300000];

	begin(rank);
	am_set_handler(endpoint, LONG, on_long);
	am_set_handler(endpoint, LONG_BACK, on_long_back);
	for (unsigned int life = 0; life < 5; life++) {
		answered = returned = handled = 0;
		meet_other();
		meet_all();
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
		memset(am_segment(endpoint), 0, SEGMENT_BYTES);
	}
	meet_other();
	end();
}

/* ---- a peer that does not keep to anything ---- */

/* As a bundle that has no endpoint. */
static void write_head(struct cadge_blob_out *address)
{
	cadge_blob_u32(address, WINDOW);
	cadge_blob_u32(address, 0);
}

/* The victim's window, and one endpoint. */
static void read_head(struct cadge_blob_in *address)
{
	size_t key_bytes;

	cadge_blob_take_u64(address);
	cadge_blob_take_u64(address);
	cadge_blob_take_bytes(address, &key_bytes);
}

struct thrown {
	uint8_t kind, handler, words, to, from, acks;
	uint64_t tag, offset_bytes, long_bytes;
	uint32_t bytes; /* of the packet */
};

static void throw(const struct thrown *thrown)
{
	uint8_t packet[128] = {thrown->kind, thrown->handler, thrown->words, thrown->to, thrown->from, 0,
			       thrown->acks};

	cadge_store64(packet + 8, thrown->tag);
	cadge_store64(packet + AM_HEAD_BYTES, thrown->offset_bytes);
	cadge_store64(packet + AM_HEAD_BYTES + 8, thrown->long_bytes);
	stranger_throw(packet, thrown->bytes);
}

/* The endpoint that asked is none. */
static void on_from_nowhere(struct am_token *token, const uint32_t *words, uint32_t count, void *payload,
			    size_t bytes)
{
	const struct cadge_iov piece = {am_segment(endpoint), 8};

	(void)words, (void)count, (void)payload, (void)bytes;
	handled++;
	wrong += am_reply_xfer(token, LONG_BACK, NULL, &piece, 1, 0, 0) != CADGE_E_REFUSED;
	wrong += am_reply(token, LONG_BACK, NULL, NULL, 0) != CADGE_DONE;
}

/* What makes no sense is refused and counted, or comes back; nothing outside of a packet, table or segment is looked at. */
static void test_nonsense(struct rank *rank)
{
	enum { REQUEST, REPLY, RETURNED, ACK, LONGER = 16, WHOLE = AM_HEAD_BYTES };
	static const struct thrown refused[] = {
		{.bytes = 1},
		{.bytes = WHOLE - 1},
		{.handler = COUNT, .words = 17, .tag = TAG, .bytes = 100},
		{.handler = COUNT, .words = 3, .tag = TAG, .bytes = WHOLE + 11},
		{.kind = REQUEST | LONGER, .handler = COUNT, .tag = TAG, .bytes = WHOLE + 15},
		{.kind = REPLY, .handler = ANSWER, .bytes = WHOLE},
		{.kind = RETURNED, .handler = ECHO, .bytes = WHOLE},
		{.kind = ACK, .acks = 5, .bytes = WHOLE},
		{.kind = 9, .bytes = WHOLE},
	};
	static const struct thrown back[] = {
		{.handler = ECHO, .to = 9, .tag = TAG, .bytes = WHOLE},
		{.handler = ECHO, .tag = TAG + 1, .bytes = WHOLE},
		{.handler = AM_RETURNED, .tag = TAG, .bytes = WHOLE},
		{.handler = NOBODY, .tag = TAG, .bytes = WHOLE},
		{.kind = LONGER,
		 .handler = ECHO,
		 .tag = TAG,
		 .offset_bytes = SEGMENT_BYTES,
		 .long_bytes = 1,
		 .bytes = 32},
		{.kind = LONGER,
		 .handler = ECHO,
		 .tag = TAG,
		 .offset_bytes = UINT64_MAX,
		 .long_bytes = 2,
		 .bytes = 32},
	};
	static const struct thrown good[] = {
		{.handler = LONG, .from = 255, .tag = TAG, .bytes = WHOLE},
		{.handler = LONG, .from = AM_ENDPOINTS_MAX, .tag = TAG, .bytes = WHOLE},
		{.handler = LONG, .tag = TAG, .bytes = WHOLE},
	};
	enum {
		REFUSED = sizeof(refused) / sizeof(*refused),
		BACK = sizeof(back) / sizeof(*back),
		GOOD = sizeof(good) / sizeof(*good),
	};

	if (rank->number) {
		stranger_begin(rank, write_head, read_head);
		for (unsigned int i = 0; i < REFUSED; i++)
			throw(&refused[i]);
		for (unsigned int i = 0; i < BACK; i++)
			throw(&back[i]);
		for (unsigned int i = 0; i < GOOD; i++)
			throw(&good[i]);
		stranger_end();
		return;
	}
	begin(rank);
	am_set_handler(endpoint, LONG, on_from_nowhere);
	connect_to(1);
	await(&handled, GOOD, "requests from nowhere");
	EXPECT(rank, counter("packets_refused") == REFUSED && counter("requests_returned") == BACK,
	       "%llu packets of %d were refused, %llu of %d returned",
	       (unsigned long long)counter("packets_refused"), REFUSED,
	       (unsigned long long)counter("requests_returned"), BACK);
	EXPECT(rank, !wrong && !answered && !returned, "something of it was taken");
	say(rank, 1, "done", 4);
	am_close(am);
}

int style_conformance(int argc, char **argv)
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
		{.name = "long", .run = test_long, .ranks = 2},
		{.name = "long_outside", .run = test_long_outside, .ranks = 2},
		{.name = "new_life", .run = test_new_life, .ranks = 2},
		{.name = "nonsense", .run = test_nonsense, .ranks = 2},
	};

	return ranks_run_styles(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
