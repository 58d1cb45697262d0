/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What makes BIP what it is, on its own calls: short messages through queues that are not controlled, long ones straight
 * into the receive that was posted and not before it was, one send and one receive of a tag at a time, any sender.
 */

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bip/bip.h"
#include "tests/styles/frame.h"

enum { TAGS = 8, SHORT_WORDS = 256, QUEUE = 16 };
#define MOST_WORDS ((uint32_t)1 << 18)

static struct bip *bip;
/* What a test is about: an error of the context; the end of a peer. */
static bool may_break, may_lose_peer;

static void on_down(void *arg, uint32_t peer, int code)
{
	if (!may_lose_peer)
		frame_down(arg, peer, code);
}

static void progress_once(void)
{
	const int count = bip_progress(bip);

	EXPECT(self, count >= 0 || may_break, "progress: %s, %s", cadge_code_name(count), bip_why(bip));
	give_way(count);
}

FRAME_CALLS(bip, progress_once);

static void begin(struct rank *rank)
{
	const struct bip_config config = {.tags = TAGS,
					  .short_words = SHORT_WORDS,
					  .queue = QUEUE,
					  .held = 2 * QUEUE,
					  .events = {.up = frame_up, .down = on_down}};
	const struct cadge_open_args args = rank_open_args(rank, 1);

	frame_begin(rank, &frame_calls);
	EXPECT(rank, bip_open(&args, &config, &bip) == CADGE_DONE, "open: %s", args.error);
	EXPECT(rank, bip_short_words(bip) == SHORT_WORDS, "short messages have up to %u words",
	       bip_short_words(bip));
	connect_all();
}

static void end(void)
{
	barrier_all();
	bip_close(bip);
}

/* ---- messages ---- */

static uint8_t *words_alloc(void)
{
	uint8_t *words = cadge_wire_alloc(bip_wire(bip), MOST_WORDS * BIP_WORD_BYTES);

	EXPECT(self, words, "no memory");
	return words;
}

static int try_send(uint32_t peer, uint32_t tag, uint8_t *data, uint32_t words)
{
	const struct cadge_iov piece = {.base = data, .bytes = (size_t)words * BIP_WORD_BYTES};

	return bip_tisend(bip, peer, tag, &piece, 1);
}

/* Begins to send. DONE or QUEUED. */
static int start_send(uint32_t peer, uint32_t tag, uint8_t *data, uint32_t words)
{
	int code;

	AWAIT((code = try_send(peer, tag, data, words)) != CADGE_BUSY, "a send stays BUSY");
	EXPECT(self, code == CADGE_DONE || code == CADGE_QUEUED, "send: %s", cadge_code_name(code));
	return code;
}

/* What the outstanding send ended with. */
static int finish_send(void)
{
	int code;

	AWAIT((code = bip_stest(bip)) != CADGE_BUSY, "a send does not end");
	return code;
}

static void send_words(uint32_t peer, uint32_t tag, uint8_t *data, uint32_t words)
{
	if (start_send(peer, tag, data, words) == CADGE_QUEUED)
		EXPECT(self, finish_send() == CADGE_DONE, "a send of %u words failed", words);
}

static void post(uint32_t tag, void *buffer, uint32_t words)
{
	const int code = bip_tirecv(bip, tag, buffer, words);

	EXPECT(self, code == CADGE_DONE, "receive: %s", cadge_code_name(code));
}

static int finish_receive(uint32_t tag, struct bip_received *received)
{
	int code;

	AWAIT((code = bip_rtest(bip, tag, received)) != CADGE_BUSY, "nothing comes for tag %u", tag);
	return code;
}

/* A receive that was posted ends with these words of rank `sender`. */
static void expect_words(uint32_t tag, const void *buffer, uint32_t sender, uint32_t words, uint32_t seed)
{
	struct bip_received received;

	EXPECT(self, finish_receive(tag, &received) == CADGE_DONE, "a receive failed");
	EXPECT(self, received.sender == sender && received.words == words,
	       "%u words of rank %u in place of %u of rank %u", received.words, received.sender, words,
	       sender);
	EXPECT(self, is_filled(buffer, (size_t)words * BIP_WORD_BYTES, seed), "%u words are wrong", words);
}

/* The next message of a tag's queue, as soon as it is there. */
static struct bip_message get(uint32_t tag)
{
	struct bip_message message;
	int code;

	AWAIT((code = bip_tgetmsg(bip, tag, &message)) != CADGE_BUSY,
	      "nothing comes into the queue of tag %u", tag);
	EXPECT(self, code == CADGE_DONE, "tgetmsg: %s", cadge_code_name(code));
	return message;
}

/* Waits until bip_ready has told `tag`. */
static void await_ready(uint32_t tag)
{
	uint32_t told = TAGS;

	AWAIT(bip_ready(bip, &told), "tag %u does not become ready", tag);
	EXPECT(self, told == tag, "tag %u became ready in place of %u", told, tag);
}

/* ---- tests ---- */

/* Lengths around the switch and the longest, in both directions at once, gathered from pieces of odd lengths. */
static void test_lengths(struct rank *rank)
{
	static const uint32_t lengths[] = {0,    1,    2,     SHORT_WORDS - 1, SHORT_WORDS, SHORT_WORDS + 1,
					   1000, 4097, 65536, MOST_WORDS - 1,  MOST_WORDS};
	enum { LENGTHS = sizeof(lengths) / sizeof(*lengths), ROUNDS = 12 };
	const uint32_t other = 1 - rank->number;
	uint8_t *out, *in;

	begin(rank);
	out = words_alloc();
	in = words_alloc();
	EXPECT(rank, bip_register(bip, in, MOST_WORDS * BIP_WORD_BYTES) == CADGE_DONE, "register");
	for (unsigned int i = 0; i < LENGTHS * ROUNDS; i++) {
		const uint32_t words = lengths[i % LENGTHS];
		const size_t bytes = (size_t)words * BIP_WORD_BYTES, cut = bytes * (i % 7) / 7;
		const struct cadge_iov pieces[] = {{out, cut}, {NULL, 0}, {out + cut, bytes - cut}};
		const bool early = (i + rank->number) % 2;
		int code;

		fill(out, bytes, 2 * i + rank->number);
		if (early)
			post(3, in, MOST_WORDS);
		while ((code = bip_tisend(bip, other, 3, pieces, 3)) == CADGE_BUSY)
			look();
		EXPECT(rank, code == (words > SHORT_WORDS ? CADGE_QUEUED : CADGE_DONE),
		       "%u words: tisend says %s", words, cadge_code_name(code));
		if (!early) {
			await_ready(3);
			post(3, in, MOST_WORDS);
		}
		expect_words(3, in, other, words, 2 * i + other);
		await_ready(3);
		if (code == CADGE_QUEUED)
			EXPECT(rank, finish_send() == CADGE_DONE, "a send of %u words failed", words);
		barrier_all();
	}
	EXPECT(rank, bip_unregister(bip, in) == CADGE_DONE && bip_unregister(bip, in) == CADGE_E_ARGUMENT,
	       "unregister");
	end();
}

static uint32_t number_in(const struct bip_message *message)
{
	return message->count ? cadge_load32(message->words) : UINT32_MAX;
}

/* A queue takes what it has room for; one more breaks the context, and what had come before is still there. */
static void test_overflow_is_fatal(struct rank *rank)
{
	enum { ROOM = 5 };
	uint8_t words[8] = {0};

	begin(rank);
	EXPECT(rank,
	       bip_taginit(bip, 2, ROOM) == CADGE_DONE && bip_taginit(bip, TAGS, 1) == CADGE_E_ARGUMENT &&
		       bip_taginit(bip, 2, 0) == CADGE_E_ARGUMENT,
	       "taginit");
	for (uint32_t i = 0; rank->number == 1 && i <= ROOM; i++) {
		if (i == ROOM)
			barrier_all();
		cadge_store32(words, i);
		send_words(0, 2, words, 2);
	}
	if (rank->number == 0) {
		const uint64_t until_ns = deadline();
		int code = CADGE_DONE;

		await_ready(2);
		poll_for_ms(100); /* a full queue is none too full */
		EXPECT(rank, bip_taginit(bip, 2, ROOM - 1) == CADGE_E_ARGUMENT,
		       "a queue became shorter than what is in it");
		EXPECT(rank, counter("queue_most") == ROOM && !*bip_why(bip), "%llu messages wait, why: %s",
		       (unsigned long long)counter("queue_most"), bip_why(bip));
		barrier_all();
		may_break = true;
		while ((code = bip_progress(bip)) >= 0)
			EXPECT(rank, clock_ns() < until_ns, "a message too many is no error");
		EXPECT(rank,
		       code == CADGE_E_LIBRARY && bip_progress(bip) == code && strstr(bip_why(bip), "tag 2"),
		       "progress says %s, %s", cadge_code_name(code), bip_why(bip));
		EXPECT(rank,
		       try_send(1, 0, words, 2) == CADGE_E_LIBRARY &&
			       bip_tirecv(bip, 0, words, 2) == CADGE_E_LIBRARY && !bip_may_sleep(bip),
		       "a broken context goes on");
		for (uint32_t i = 0; i < ROOM; i++) {
			const struct bip_message message = get(2);

			EXPECT(rank, message.count == 2 && number_in(&message) == i,
			       "message %u is number %u", i, number_in(&message));
			bip_tfreemsg(bip, &message);
		}
	} else {
		poll_for_ms(100);
	}
	end();
}

static void send_numbers(uint32_t tag, uint32_t first, uint32_t count)
{
	uint8_t word[BIP_WORD_BYTES];

	for (uint32_t i = first; i < first + count; i++) {
		cadge_store32(word, i);
		send_words(0, tag, word, 1);
	}
}

/* What is in a queue when it grows stays, in its order, wherever in the ring it begins. */
static void test_queue_grows(struct rank *rank)
{
	enum { FEW = QUEUE - 3, MORE = QUEUE / 2, ROUNDS = 3 };
	uint32_t sent = 0, got = 0;

	begin(rank);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		if (rank->number == 1)
			send_numbers(1, sent, FEW);
		sent += FEW;
		if (rank->number == 0) {
			AWAIT(counter("short_queued") >= sent, "messages do not come into the queue");
			EXPECT(rank, bip_taginit(bip, 1, FEW + MORE + round) == CADGE_DONE, "taginit");
		}
		barrier_all();
		if (rank->number == 1)
			send_numbers(1, sent, MORE + round);
		sent += MORE + round;
		while (rank->number == 0 && got < sent) {
			struct bip_message message;

			AWAIT(counter("short_queued") >= sent, "messages do not come into the queue");
			message = get(1);
			EXPECT(rank, number_in(&message) == got, "message %u is number %u", got,
			       number_in(&message));
			bip_tfreemsg(bip, &message);
			got++;
		}
		barrier_all();
	}
	end();
}

/* A short one ends before anybody wants it, a long one waits for its receive, whoever looks. */
static void test_loose_rendezvous(struct rank *rank)
{
	enum { LONG_WORDS = 5000 };
	uint8_t *words;

	begin(rank);
	words = words_alloc();
	if (rank->number == 1) {
		fill(words, LONG_WORDS * BIP_WORD_BYTES, 7);
		EXPECT(rank, start_send(0, 1, words, SHORT_WORDS) == CADGE_DONE, "a short send waits");
		EXPECT(rank, start_send(0, 2, words, LONG_WORDS) == CADGE_QUEUED, "a long send is done");
		poll_for_ms(200);
		EXPECT(rank, bip_stest(bip) == CADGE_BUSY, "a long send ended without a receive");
		barrier_all();
		EXPECT(rank, finish_send() == CADGE_DONE, "the long send failed");
	} else {
		poll_for_ms(200);
		barrier_all();
		EXPECT(rank, bip_tgetmsg(bip, 2, &(struct bip_message){0}) == CADGE_E_TOO_LARGE,
		       "a long message is in a queue");
		post(2, words, LONG_WORDS);
		expect_words(2, words, 1, LONG_WORDS, 7);
		post(1, words, SHORT_WORDS);
		expect_words(1, words, 1, SHORT_WORDS, 7);
	}
	end();
}

static void test_one_at_a_time(struct rank *rank)
{
	enum { LONG_WORDS = 3000 };
	struct bip_received received;
	struct bip_message message;
	uint8_t *words;

	begin(rank);
	words = words_alloc();
	EXPECT(rank, bip_stest(bip) == CADGE_E_ARGUMENT && bip_rtest(bip, 1, &received) == CADGE_E_ARGUMENT,
	       "a test of nothing says something");
	if (rank->number == 1) {
		const struct cadge_iov half = {.base = words, .bytes = 6};

		fill(words, LONG_WORDS * BIP_WORD_BYTES, 8);
		EXPECT(rank, bip_tisend(bip, 0, 1, &half, 1) == CADGE_E_ARGUMENT, "half a word was sent");
		EXPECT(rank, start_send(0, 1, words, LONG_WORDS) == CADGE_QUEUED, "a long send is done");
		EXPECT(rank,
		       try_send(0, 2, words, LONG_WORDS) == CADGE_E_ARGUMENT &&
			       try_send(0, 2, words, 1) == CADGE_E_ARGUMENT,
		       "a second send was taken");
		barrier_all();
		EXPECT(rank, finish_send() == CADGE_DONE && bip_stest(bip) == CADGE_E_ARGUMENT,
		       "the long send failed, or ends twice");
		send_words(0, 2, words, 1);
	} else {
		barrier_all();
		post(1, words, LONG_WORDS);
		EXPECT(rank,
		       bip_tirecv(bip, 1, words, LONG_WORDS) == CADGE_E_ARGUMENT &&
			       bip_tgetmsg(bip, 1, &message) == CADGE_E_ARGUMENT,
		       "a second receive of a tag was taken");
		post(2, words + LONG_WORDS * BIP_WORD_BYTES, 1); /* of another tag it is */
		expect_words(1, words, 1, LONG_WORDS, 8);
		expect_words(2, words + LONG_WORDS * BIP_WORD_BYTES, 1, 1, 8);
	}
	end();
}

/* Messages are read where they lie, some at a time and while others come; what was given back has room for more. */
static void test_peek(struct rank *rank)
{
	enum { LENT = 10, MESSAGES = 20 * QUEUE, WORDS = 100 };
	uint8_t words[WORDS * BIP_WORD_BYTES];
	struct bip_message lent[LENT];

	begin(rank);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		struct bip_message *message = &lent[i % LENT];

		if (rank->number == 1) {
			fill(words, sizeof(words), i);
			send_words(0, 4, words, WORDS);
			if (i % QUEUE == QUEUE - 1)
				barrier_all();
			continue;
		}
		if (i >= LENT) {
			EXPECT(rank, is_filled(message->words, sizeof(words), i - LENT),
			       "message %u changed while it was lent", i - LENT);
			bip_tfreemsg(bip, message);
		}
		*message = get(4);
		EXPECT(rank, message->count == WORDS && message->sender == 1, "%u words of rank %u",
		       message->count, message->sender);
		if (i % QUEUE == QUEUE - 1)
			barrier_all();
	}
	if (rank->number == 0) {
		for (unsigned int i = 0; i < LENT; i++)
			bip_tfreemsg(bip, &lent[i]);
		EXPECT(rank, counter("short_queued") == MESSAGES && counter("short_copied") == 0,
		       "messages were copied");
	}
	end();
}

/* One tag, two senders, short and long: a receive takes what is the next, and the order of each sender is kept. */
static void test_any_sender(struct rank *rank)
{
	enum { MESSAGES = 60, TAG = 5 };
	static const uint32_t lengths[] = {1, SHORT_WORDS + 1, 3, SHORT_WORDS, 20000};
	uint32_t next[RANKS_MAX] = {0};
	uint8_t *words;

	begin(rank);
	words = words_alloc();
	barrier_all();
	for (uint32_t i = 0; rank->number && i < MESSAGES; i++) {
		const uint32_t length = lengths[(i + rank->number) % 5];

		/* Long ones among them wait for the receiver, so that its queue is never full. */
		fill(words, (size_t)length * BIP_WORD_BYTES, 4 * i + rank->number);
		cadge_store32(words, i);
		send_words(0, TAG, words, length);
	}
	for (uint32_t i = 0; !rank->number && i < 2 * MESSAGES; i++) {
		struct bip_received received;
		uint32_t number;

		post(TAG, words, MOST_WORDS);
		EXPECT(rank, finish_receive(TAG, &received) == CADGE_DONE, "a receive failed");
		number = next[received.sender]++;
		EXPECT(rank,
		       received.words == lengths[(number + received.sender) % 5] &&
			       cadge_load32(words) == number,
		       "message %u of rank %u is number %u of %u words", number, received.sender,
		       cadge_load32(words), received.words);
		cadge_store32(words, 0);
	}
	EXPECT(rank, rank->number || (next[1] == MESSAGES && next[2] == MESSAGES),
	       "of ranks 1 and 2 came %u and %u", next[1], next[2]);
	end();
}

/* Long messages are put where they belong and nowhere else; an announced buffer needs one key, others one each. */
static void test_straight_into_the_buffer(struct rank *rank)
{
	enum { ROUNDS = 6, WORDS = 30001, GUARD_BYTES = 4096 };
	const size_t bytes = (size_t)WORDS * BIP_WORD_BYTES, room_bytes = bytes + 2 * GUARD_BYTES;
	uint8_t *of_wire, *other;
	uint32_t rounds;

	begin(rank);
	rounds = cadge_wire_facts(bip_wire(bip))->window_only ? ROUNDS : 2 * ROUNDS;
	of_wire = words_alloc();
	other = malloc(room_bytes);
	EXPECT(rank, other, "no memory");
	if (rank->number == 0)
		EXPECT(rank, bip_register(bip, of_wire, room_bytes) == CADGE_DONE, "register");
	for (uint32_t i = 0; i < rounds; i++) {
		uint8_t *base = i < ROUNDS ? of_wire : other;

		if (rank->number == 1) {
			fill(of_wire, bytes, i);
			send_words(0, i % TAGS, of_wire, WORDS);
		} else {
			memset(base, 0x5a, room_bytes);
			post(i % TAGS, base + GUARD_BYTES, WORDS);
			expect_words(i % TAGS, base + GUARD_BYTES, 1, WORDS, i);
			for (size_t j = 0; j < GUARD_BYTES; j++)
				EXPECT(rank, base[j] == 0x5a && base[room_bytes - 1 - j] == 0x5a,
				       "byte %zu beside the buffer was written", j);
		}
		barrier_all();
		if (i == ROUNDS - 1) {
			const uint64_t direct = counter("long_direct"),
				       by_library = counter("long_by_library");

			EXPECT(rank, rank->number || counter("keys_sent") == 1, "%llu keys for one buffer",
			       (unsigned long long)counter("keys_sent"));
			EXPECT(rank,
			       !rank->number ||
				       (rank->place == CADGE_PLACE_HOST ? direct : by_library) == ROUNDS,
			       "%llu messages were put directly, %llu by the library",
			       (unsigned long long)direct, (unsigned long long)by_library);
		}
	}
	EXPECT(rank, counter("short_copied") == 0 && counter("short_queued") == 0, "a message was copied");
	EXPECT(rank, rank->number || counter("keys_sent") == 1 + rounds - ROUNDS, "%llu keys",
	       (unsigned long long)counter("keys_sent"));
	EXPECT(rank, !rank->number || counter("long_direct") + counter("long_by_library") == rounds,
	       "not all messages were put");
	barrier_all();
	free(other);
	end();
}

/* A message that is longer than the receive breaks the context, a short one as well as a long one, early or late. */
static void too_long(struct rank *rank, uint32_t words, bool late)
{
	struct bip_received received;
	uint8_t *data;
	int code = CADGE_DONE;

	begin(rank);
	data = words_alloc();
	if (rank->number == 1) {
		start_send(0, 6, data, words);
		poll_for_ms(100);
	} else {
		const uint64_t until_ns = deadline();

		memset(data, 0x5a, MOST_WORDS * BIP_WORD_BYTES);
		if (late)
			await_ready(6);
		post(6, data, words - 1);
		may_break = true;
		while ((code = bip_progress(bip)) >= 0)
			EXPECT(rank, clock_ns() < until_ns, "a message that is too long is no error");
		EXPECT(rank,
		       code == CADGE_E_LIBRARY && strstr(bip_why(bip), "tag 6") &&
			       bip_rtest(bip, 6, &received) == CADGE_E_TOO_LARGE,
		       "progress says %s, %s", cadge_code_name(code), bip_why(bip));
		for (size_t i = 0; i < MOST_WORDS * BIP_WORD_BYTES; i++)
			EXPECT(rank, data[i] == 0x5a, "byte %zu of the buffer was written", i);
	}
	end();
}

static void test_too_long_short(struct rank *rank)
{
	too_long(rank, 20, false);
}

static void test_too_long_at_the_switch(struct rank *rank)
{
	too_long(rank, SHORT_WORDS, true);
}

static void test_too_long_above_the_switch(struct rank *rank)
{
	too_long(rank, SHORT_WORDS + 1, true);
}

static void test_too_long_long(struct rank *rank)
{
	too_long(rank, 2000, false);
}

/* ---- at every length ---- */

#define GUARDED_WORDS ((uint32_t)40000)

static uint8_t *source, *guarded;

static void send_filled(uint32_t tag, size_t bytes, uint32_t seed)
{
	fill(source, bytes, seed);
	send_words(0, tag, source, (uint32_t)(bytes / BIP_WORD_BYTES));
}

static void receive_posted(size_t bytes)
{
	post(1, guarded, (uint32_t)(bytes / BIP_WORD_BYTES));
}

static void write_posted(size_t bytes, uint32_t seed)
{
	send_filled(1, bytes, seed);
}

static void expect_posted(size_t bytes)
{
	struct bip_received received;

	EXPECT(self, finish_receive(1, &received) == CADGE_DONE && received.words == bytes / BIP_WORD_BYTES,
	       "a receive of %zu bytes failed", bytes);
}

/* A tag that the receiver does not have. */
static void try_no_tag(size_t bytes, uint32_t seed)
{
	static const uint32_t tags[] = {TAGS,       TAGS + 1,       255,       256, 257,
					UINT16_MAX, UINT16_MAX + 2, UINT32_MAX};

	fill(source, bytes, seed);
	for (unsigned int i = 0; i < sizeof(tags) / sizeof(*tags); i++)
		EXPECT(self,
		       try_send(0, tags[i], source, (uint32_t)(bytes / BIP_WORD_BYTES)) == CADGE_E_ARGUMENT,
		       "%zu bytes for tag %u are not refused", bytes, tags[i]);
}

static void try_half_a_word(size_t bytes, uint32_t seed)
{
	const struct cadge_iov piece = {.base = source, .bytes = bytes - 1};

	fill(source, bytes, seed);
	EXPECT(self, bip_tisend(bip, 0, 1, &piece, 1) == CADGE_E_ARGUMENT, "%zu bytes are not refused",
	       bytes - 1);
}

static void register_and_post(size_t bytes)
{
	EXPECT(self, bip_register(bip, guarded, (size_t)GUARDED_WORDS * BIP_WORD_BYTES) == CADGE_DONE,
	       "register");
	receive_posted(bytes);
}

/* The buffer that was announced is not any more, and the next message goes elsewhere. */
static void unregister_and_post(size_t bytes)
{
	EXPECT(self, bip_unregister(bip, guarded) == CADGE_DONE, "unregister");
	post(1, source, (uint32_t)(bytes / BIP_WORD_BYTES));
}

/* What is refused, or for another buffer, leaves this one as it was, whatever its length. */
static void test_refused_at_every_length(struct rank *rank)
{
	static const size_t switches[] = {SHORT_WORDS * BIP_WORD_BYTES, 8192, 65536, 0};
	static const struct guard_case cases[] = {
		{.name = "no tag",
		 .allow = receive_posted,
		 .write = write_posted,
		 .arrived = expect_posted,
		 .attempt = try_no_tag},
		{.name = "half a word",
		 .allow = receive_posted,
		 .write = write_posted,
		 .arrived = expect_posted,
		 .attempt = try_half_a_word},
		{.name = "unregistered",
		 .allow = register_and_post,
		 .write = write_posted,
		 .arrived = expect_posted,
		 .forbid = unregister_and_post,
		 .attempt = write_posted,
		 .after = expect_posted},
	};
	struct guard guard = {.bytes = (size_t)GUARDED_WORDS * BIP_WORD_BYTES,
			      .switches = switches,
			      .unit = BIP_WORD_BYTES};

	begin(rank);
	source = words_alloc();
	if (rank->number == 0)
		guard.memory = guarded = words_alloc();
	guard_try(&guard, cases, sizeof(cases) / sizeof(*cases));
	end();
}

/*
 * A link ends while a long message is on its way: asked for; granted as well; or written, as far as that goes while its
 * receiver does not look. Both ends are told, and the next life begins anew.
 */
static void test_ends_in_the_middle(struct rank *rank)
{
	enum { LIVES = 6, WORDS = 10000, TAG = 7 };
	const uint32_t other = 1 - rank->number;
	struct bip_received received;
	struct bip_message message;
	uint8_t *words;

	begin(rank);
	words = words_alloc();
	if (rank->number == 0)
		EXPECT(rank, bip_register(bip, words, MOST_WORDS) == CADGE_DONE, "register");
	for (uint32_t life = 0; life < LIVES; life++) {
		const bool granted = life % 3, written = life % 3 == 2;
		int code;

		barrier_all();
		if (rank->number) {
			fill(words, WORDS * BIP_WORD_BYTES, life);
			send_words(0, TAG, words, WORDS);
			send_words(0, 1, words, 3); /* nobody takes it */
			EXPECT(rank, start_send(0, TAG, words, WORDS) == CADGE_QUEUED, "a long send is done");
			meet(rank, 0, 2); /* and looks no more: the grant finds nobody */
		} else {
			post(TAG, words, WORDS);
			expect_words(TAG, words, 1, WORDS, life);
			meet(rank, 0, 2);
			AWAIT(bip_tgetmsg(bip, TAG, &message) == CADGE_E_TOO_LARGE,
			      "the second message does not come");
			if (granted)
				post(TAG, words, WORDS);
			EXPECT(rank, !granted || bip_rtest(bip, TAG, &received) == CADGE_BUSY,
			       "a receive ended");
		}
		meet(rank, 0, 2);
		if (rank->number && written)
			poll_for_ms(50);
		meet(rank, 0, 2);
		EXPECT(rank, bip_disconnect(bip, other) == CADGE_DONE, "disconnect");
		code = rank->number ? bip_stest(bip) : CADGE_DONE;
		if (rank->number)
			EXPECT(rank, code == CADGE_E_DOWN || (written && code == CADGE_DONE),
			       "the send ended with %s", cadge_code_name(code));
		else
			EXPECT(rank,
			       bip_rtest(bip, TAG, &received) == (granted ? CADGE_E_DOWN : CADGE_E_ARGUMENT),
			       "the receive did not end");
		EXPECT(rank,
		       bip_tgetmsg(bip, TAG, &message) == CADGE_BUSY &&
			       bip_tgetmsg(bip, 1, &message) == CADGE_BUSY,
		       "messages of a life that ended are there");
		EXPECT(rank, try_send(other, 1, words, 1) == CADGE_E_DOWN, "a send to nobody");
		connect_to(other);
	}
	end();
}

/*
 * The receiver dies when it has granted and nothing was written yet. The sender has its memory attached already: a new key
 * of memory that is gone ends a process inside UCX 1.13 (ucp_ep_rkey_unpack, where shmat fails).
 */
static void receiver_dies(struct rank *rank, uint32_t tag)
{
	enum { WORDS = 50000 };
	uint8_t *words;

	begin(rank);
	words = words_alloc();
	may_lose_peer = may_break = true; /* libfabric's shm does not say whose end it was */
	if (rank->number == 1) {
		EXPECT(rank, bip_register(bip, words, (size_t)WORDS * BIP_WORD_BYTES) == CADGE_DONE,
		       "register");
		post(0, words, WORDS);
		expect_words(0, words, 0, WORDS, 1);
		meet(rank, 0, 2);
		post(0, words, WORDS);
		post(1, words + (size_t)WORDS * BIP_WORD_BYTES, WORDS); /* a key of its own */
		poll_for_ms(100);
		rank_dies(rank, 0);
	}
	fill(words, (size_t)WORDS * BIP_WORD_BYTES, 1);
	send_words(1, 0, words, WORDS);
	meet(rank, 0, 2);
	EXPECT(rank, start_send(1, tag, words, WORDS) == CADGE_QUEUED, "a long send is done");
	rank_sees_death(rank, 1);
	poll_for_ms(200);
	EXPECT(rank, bip_disconnect(bip, 1) == CADGE_DONE && bip_stest(bip) != CADGE_BUSY,
	       "the send did not end");
	bip_close(bip);
}

static void test_receiver_dies(struct rank *rank)
{
	receiver_dies(rank, 0);
}

static void test_receiver_of_a_key_dies(struct rank *rank)
{
	receiver_dies(rank, 1);
}

/* ---- a peer that does not keep to anything ---- */

static void write_head(struct cadge_blob_out *address)
{
	cadge_blob_u32(address, SHORT_WORDS);
	cadge_blob_u32(address, TAGS);
}

static void read_head(struct cadge_blob_in *address)
{
	cadge_blob_take_u32(address);
	cadge_blob_take_u32(address);
}

/*
 * What makes no sense is refused and counted: packets that are cut short, of no kind, for no tag, ends and grants that
 * nobody waits for, a grant whose key is none, or for more than there is.
 */
static void test_nonsense(struct rank *rank)
{
	static const struct {
		uint8_t bytes[24], count;
	} thrown[] = {
		{{0}, 1},          {{1}, 1},           {{1, 0, 0}, 3},        {{1, 0, 0, 0, 1, 2}, 6},
		{{1, 0, 9, 0}, 4}, {{1, 0, 0, 9}, 4},  {{2, 0, 0, 0}, 4},     {{2, 0, 0, 0, 0, 0, 0, 0}, 8},
		{{2, 0, 99}, 8},   {{4, 0, 0, 0}, 4},  {{4, 0, 255, 255}, 4}, {{99, 0, 0, 0, 1, 1, 1, 1}, 8},
		{{3, 0, 0, 0}, 4}, {{3, 0, 0, 0}, 16}, {{3, 0, 0, 0}, 24},    {{0}, 24},
	};
	enum { THROWN = sizeof(thrown) / sizeof(*thrown), LAST_GRANTS = 3 };
	static const uint8_t last_grants[LAST_GRANTS][24] = {
		{3, 0, 5, 0, 0}, {3, 0, 5, 0, 8}, {3, 0, 5, 0, 255, 255, 255, 255}};
	static const uint8_t lengths[LAST_GRANTS] = {16, 24, 20};
	static const uint8_t good[] = {1, 0, 2, 0, 'g', 'o', 'o', 'd'};
	struct bip_message message;
	uint8_t *words;

	if (rank->number) {
		stranger_begin(rank, write_head, read_head);
		for (unsigned int i = 0; i < THROWN; i++)
			stranger_throw(thrown[i].bytes, thrown[i].count);
		stranger_throw(good, sizeof(good));
		for (unsigned int i = 0; i < LAST_GRANTS; i++) {
			await(&stranger_received, i + 1, "a request");
			stranger_throw(last_grants[i], lengths[i]);
		}
		stranger_throw(good, sizeof(good));
		stranger_end();
		return;
	}
	begin(rank);
	words = words_alloc();
	message = get(2);
	EXPECT(rank, message.count == 1 && memcmp(message.words, "good", 4) == 0, "a good message is not");
	bip_tfreemsg(bip, &message);
	EXPECT(rank, counter("packets_refused") == THROWN, "%llu packets of %d were refused",
	       (unsigned long long)counter("packets_refused"), THROWN);
	for (unsigned int i = 0; i < LAST_GRANTS; i++) {
		EXPECT(rank, start_send(1, 5, words, 5000) == CADGE_QUEUED, "a long send is done");
		EXPECT(rank, finish_send() == CADGE_E_REFUSED, "a grant of nothing was taken");
	}
	message = get(2);
	bip_tfreemsg(bip, &message);
	say(rank, 1, "done", 4);
	bip_close(bip);
}

int on_wire_conformance(int argc, char **argv)
{
	static const struct rank_test tests[] = {
		{.name = "lengths", .run = test_lengths, .ranks = 2},
		{.name = "overflow_is_fatal", .run = test_overflow_is_fatal, .ranks = 2},
		{.name = "queue_grows", .run = test_queue_grows, .ranks = 2},
		{.name = "loose_rendezvous", .run = test_loose_rendezvous, .ranks = 2},
		{.name = "one_at_a_time", .run = test_one_at_a_time, .ranks = 2},
		{.name = "peek", .run = test_peek, .ranks = 2},
		{.name = "any_sender", .run = test_any_sender, .ranks = 3},
		{.name = "straight_into_the_buffer", .run = test_straight_into_the_buffer, .ranks = 2},
		{.name = "too_long_short", .run = test_too_long_short, .ranks = 2},
		{.name = "too_long_at_the_switch", .run = test_too_long_at_the_switch, .ranks = 2},
		{.name = "too_long_above_the_switch", .run = test_too_long_above_the_switch, .ranks = 2},
		{.name = "too_long_long", .run = test_too_long_long, .ranks = 2},
		{.name = "refused_at_every_length", .run = test_refused_at_every_length, .ranks = 2},
		{.name = "ends_in_the_middle", .run = test_ends_in_the_middle, .ranks = 2},
		{.name = "receiver_dies", .run = test_receiver_dies, .ranks = 2, .dies = 2},
		{.name = "receiver_of_a_key_dies", .run = test_receiver_of_a_key_dies, .ranks = 2, .dies = 2},
		{.name = "nonsense", .run = test_nonsense, .ranks = 2},
	};

	return ranks_run_styles(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
