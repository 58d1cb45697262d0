/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What makes Fast Messages what they are, on their own calls: pieces are gathered and pulled in other pieces, handlers of
 * two senders are in the middle of their messages at a time, an extraction has a budget, and who is not extracted from
 * runs out of credits.
 */

#include <string.h>

#include "fm/fm.h"
#include "tests/styles/frame.h"

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

enum { WINDOW = 8, WHOLE = 1, ODD = 2, SHORT = 3, NOBODY = 9 };

static struct fm *fm;

/* What handlers have seen. */
static unsigned int handled, wrong, open_now, open_most;
static uint64_t last_of[RANKS_MAX];

static int extract(size_t budget_bytes)
{
	int count = fm_extract(fm, budget_bytes);

	EXPECT(self, count >= 0, "extract: %s", cadge_code_name(count));
	give_way(count);
	return count;
}

static void look_once(void)
{
	extract(SIZE_MAX);
}

FRAME_CALLS(fm, look_once);

static bool uncredited;

static void begin(struct rank *rank, uint32_t packet_bytes)
{
	const struct fm_config config = {.packet_bytes = packet_bytes,
					 .window = WINDOW,
					 .uncredited = uncredited,
					 .events = {.up = frame_up, .down = frame_down}};
	const struct cadge_open_args args = rank_open_args(rank, WINDOW);

	frame_begin(rank, &frame_calls);
	EXPECT(rank, fm_open(&args, &config, &fm) == CADGE_DONE, "open: %s", args.error);
	connect_all();
}

static void end(void)
{
	meet_all();
	EXPECT(self, !wrong, "%u messages were not what was sent", wrong);
	fm_close(fm);
}

/* Sends a whole piece and extracts while it has to wait. */
static void send_piece(struct fm_stream *out, const uint8_t *piece, size_t bytes)
{
	size_t at = 0;

	AWAIT((at += fm_send_piece(out, piece + at, bytes - at)) == bytes, "a piece stays");
}

static struct fm_stream *begin_message(uint32_t peer, uint32_t handler)
{
	struct fm_stream *out;

	AWAIT((out = fm_begin_message(fm, peer, handler)), "no credit comes");
	return out;
}

static void end_message(struct fm_stream *out)
{
	int code;

	AWAIT((code = fm_end_message(out)) != CADGE_BUSY, "a message does not end");
	EXPECT(self, code == CADGE_DONE, "end: %s", cadge_code_name(code));
}

/* A message: its number and length, 16 bytes, and content; gathered from pieces of `piece` bytes. */
static void send_message(uint32_t handler, uint64_t number, size_t bytes, size_t piece)
{
	static uint8_t content[200000];
	struct fm_stream *out = begin_message(0, handler);
	uint8_t head[16];

	cadge_store64(head, number);
	cadge_store64(head + 8, bytes);
	fill(content, bytes, (uint32_t)number * 4 + self->number);
	send_piece(out, head, sizeof(head));
	for (size_t at = 0; at < bytes; at += piece)
		send_piece(out, content + at, least(piece, bytes - at));
	end_message(out);
}

/* Pulls a message in pieces of its own choice. */
static void pull(struct fm_stream *in, uint32_t sender, size_t piece)
{
	uint8_t head[16], content[200000 / 8]; /* on the fiber's stack */
	uint64_t number, bytes, at = 0;
	bool good = fm_receive(in, head, sizeof(head)) == sizeof(head);

	open_now++;
	open_most = open_now > open_most ? open_now : open_most;
	number = cadge_load64(head);
	bytes = cadge_load64(head + 8);
	good = good && number == last_of[sender] + 1 && bytes <= sizeof(content);
	last_of[sender] = number;
	while (good && at < bytes) {
		const size_t part = least(piece, bytes - at);

		good = fm_receive(in, content + at, part) == part;
		at += part;
	}
	good = good && is_filled(content, bytes, (uint32_t)number * 4 + sender);
	good = good && fm_receive(in, head, 1) == 0; /* that was all of it */
	wrong += !good;
	open_now--;
	handled++;
}

static void handle_whole(struct fm_stream *in, uint32_t sender)
{
	pull(in, sender, SIZE_MAX);
}

static void handle_odd(struct fm_stream *in, uint32_t sender)
{
	pull(in, sender, 977);
}

/* Wants the number alone. */
static void handle_short(struct fm_stream *in, uint32_t sender)
{
	uint8_t head[8];

	wrong += fm_receive(in, head, sizeof(head)) != sizeof(head) ||
		 cadge_load64(head) != last_of[sender] + 1;
	last_of[sender]++;
	handled++;
}

static void register_all(void)
{
	fm_register_handler(fm, WHOLE, handle_whole);
	fm_register_handler(fm, ODD, handle_odd);
	fm_register_handler(fm, SHORT, handle_short);
}

static void test_pieces(struct rank *rank)
{
	static const size_t lengths[] = {0, 1, 100, 8000, 8100, 8108, 8112, 20000};
	enum { LENGTHS = sizeof(lengths) / sizeof(*lengths), ROUNDS = 60 };

	begin(rank, 8128);
	register_all();
	meet_all();
	if (rank->number == 0)
		await(&handled, LENGTHS * ROUNDS, "messages");
	for (unsigned int i = 0; rank->number && i < LENGTHS * ROUNDS; i++)
		send_message(i % 2 ? WHOLE : ODD, i + 1, lengths[i % LENGTHS],
			     i % 3 ? 1 + i * 37 % 3000 : SIZE_MAX);
	end();
}

/* Two senders send a packet at a time, in turns: one's handler waits in its middle while the other's runs. */
static void test_handlers_interleave(struct rank *rank)
{
	enum { PACKETS = 6 };
	uint8_t content[PACKETS * 1000], head[16];
	struct fm_stream *out = NULL;

	begin(rank, 1024);
	register_all();
	for (unsigned int i = 0; i <= PACKETS; i++) {
		meet_all(); /* all packets of the last turn have come */
		if (rank->number == 0)
			continue;
		if (i == 0) {
			cadge_store64(head, 1);
			cadge_store64(head + 8, sizeof(content));
			fill(content, sizeof(content), 4 + rank->number);
			out = begin_message(0, ODD);
			send_piece(out, head, sizeof(head));
		}
		if (i < PACKETS)
			send_piece(out, content + i * 1000, 1000);
		else
			end_message(out);
	}
	if (rank->number == 0) {
		await(&handled, 2, "messages");
		EXPECT(rank, open_most == 2, "only %u handler was in the middle of a message at a time",
		       open_most);
	}
	end();
}

/* A budget of a byte is one packet; who sends more than a window waits, and goes on when it was extracted from. */
static void test_budget_paces(struct rank *rank)
{
	enum { MESSAGES = 3 * WINDOW };
	unsigned int sent = 0;

	begin(rank, 1024);
	register_all();
	meet(rank, 0, 2); /* nobody extracts meanwhile */
	if (rank->number) {
		const uint64_t until_ns = clock_ns() + UINT64_C(300000000);

		while (clock_ns() < until_ns && sent < MESSAGES) {
			struct fm_stream *out = fm_begin_message(fm, 0, SHORT);
			uint8_t number[8];

			extract(0);
			if (!out)
				continue;
			cadge_store64(number, ++sent);
			send_piece(out, number, sizeof(number));
			end_message(out);
		}
		EXPECT(rank, sent == WINDOW,
		       "%u messages left without having been extracted, of a window of %d", sent, WINDOW);
		meet(rank, 0, 2);
		while (sent < MESSAGES)
			send_message(SHORT, ++sent, 0, 1);
	} else {
		meet(rank, 0, 2); /* nothing was extracted so far */
		for (unsigned int i = 1; i <= WINDOW; i++) {
			const uint64_t until_ns = deadline();

			while (handled < i) {
				const unsigned int before = handled;

				extract(1);
				EXPECT(rank, handled - before <= 1, "%u messages for a budget of a byte",
				       handled - before);
				EXPECT(rank, clock_ns() < until_ns, "message %u does not come", i);
			}
		}
		await(&handled, MESSAGES, "messages");
	}
	end();
}

/* What a handler leaves, and what has no handler, is dropped, and costs nobody credits. */
static void test_what_nobody_wants(struct rank *rank)
{
	enum { MESSAGES = 40 };
	uint64_t number = 0;

	begin(rank, 1024);
	register_all();
	meet_all();
	for (unsigned int i = 0; rank->number && i < MESSAGES; i++) {
		send_message(SHORT, ++number, i * 500 % 9000, 700);
		send_message(NOBODY, 0, i * 300, 700);
	}
	if (rank->number == 0)
		await(&handled, MESSAGES, "messages");
	end();
}

/* A link ends in the middle of a message, and in its next life the other end's handler begins anew. */
static void test_ends_in_the_middle(struct rank *rank)
{
	begin(rank, 1024);
	register_all();
	for (unsigned int life = 0; life < 4; life++) {
		const uint32_t other = 1 - rank->number;

		meet_all();
		if (rank->number) {
			uint8_t head[16], content[3000] = {0};
			struct fm_stream *out;

			send_message(WHOLE, 1, 2500, 800);
			out = begin_message(0, WHOLE);
			cadge_store64(head, 2);
			cadge_store64(head + 8, 5000);
			send_piece(out, head, sizeof(head));
			send_piece(out, content, sizeof(content));
		} else {
			await(&handled, life + 1, "a message");
			/* Those of former lives never ended. */
			AWAIT(open_now > life, "the second message does not begin");
		}
		meet_all();
		last_of[1] = 0;
		EXPECT(rank, fm_disconnect(fm, other) == CADGE_DONE, "disconnect");
		connect_to(other);
	}
	end();
}

/* Without credits more than a window leaves although nobody extracts there, and all of it is handled later. */
static void test_switched_off(struct rank *rank)
{
	enum { MESSAGES = WINDOW + 2 };
	const uint64_t until_ns = deadline();

	uncredited = true;
	begin(rank, 1024);
	register_all();
	meet(rank, 0, 2);
	for (unsigned int sent = 0; rank->number && sent < MESSAGES;) {
		struct fm_stream *out = fm_begin_message(fm, 0, SHORT);
		uint8_t number[8];

		EXPECT(rank, clock_ns() < until_ns, "%u messages left, no more than a window of %d", sent,
		       WINDOW);
		if (!out) {
			extract(0);
			continue;
		}
		cadge_store64(number, ++sent);
		send_piece(out, number, sizeof(number));
		end_message(out);
	}
	meet(rank, 0, 2); /* so far nobody extracted */
	if (!rank->number)
		await(&handled, MESSAGES, "messages");
	end();
}

int style_conformance(int argc, char **argv)
{
	static const struct rank_test tests[] = {
		{.name = "pieces", .run = test_pieces, .ranks = 2},
		{.name = "handlers_interleave", .run = test_handlers_interleave, .ranks = 3},
		{.name = "budget_paces", .run = test_budget_paces, .ranks = 2},
		{.name = "switched_off", .run = test_switched_off, .ranks = 2},
		{.name = "what_nobody_wants", .run = test_what_nobody_wants, .ranks = 2},
		{.name = "ends_in_the_middle", .run = test_ends_in_the_middle, .ranks = 2},
	};

	return ranks_run_styles(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
