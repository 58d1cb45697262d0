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

static void progress_once(void)
{
	extract(SIZE_MAX);
}

FRAME_CALLS(fm, progress_once);

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
	barrier_all();
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
	EXPECT(self,
	       fm_register_handler(fm, WHOLE, handle_whole) == CADGE_DONE &&
		       fm_register_handler(fm, ODD, handle_odd) == CADGE_DONE &&
		       fm_register_handler(fm, SHORT, handle_short) == CADGE_DONE,
	       "handlers");
}

static void test_pieces(struct rank *rank)
{
	static const size_t lengths[] = {0, 1, 100, 8000, 8100, 8108, 8112, 20000};
	enum { LENGTHS = sizeof(lengths) / sizeof(*lengths), ROUNDS = 60 };

	begin(rank, 8128);
	register_all();
	barrier_all();
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
		barrier_all(); /* all packets of the last turn have come */
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
	barrier_all();
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

		barrier_all();
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
		barrier_all();
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

/* ---- numbers and stacks, for messages of every length ---- */

/* Below, at and above what goes into one packet, and several. */
static const int beside_a_packet[] = {-900, -1, 0, 1, 2000};
enum { LENGTHS = sizeof(beside_a_packet) / sizeof(*beside_a_packet) };

/* `bytes` of content alone. */
static void send_content(uint32_t handler, size_t bytes)
{
	static uint8_t content[8192];
	struct fm_stream *out = begin_message(0, handler);

	fill(content, bytes, handler);
	send_piece(out, content, bytes);
	end_message(out);
}

static void send_all_lengths(uint32_t handler)
{
	for (unsigned int i = 0; i < LENGTHS; i++)
		send_content(handler, fm_packet_bytes(fm) + (size_t)beside_a_packet[i]);
}

static uint32_t right_number;

static void handle_right(struct fm_stream *in, uint32_t sender)
{
	uint8_t content[8192];
	const size_t bytes = fm_receive(in, content, sizeof(content));

	(void)sender;
	wrong += bytes < 100 || !is_filled(content, bytes, right_number);
	handled++;
}

static void handle_wrong(struct fm_stream *in, uint32_t sender)
{
	(void)in, (void)sender;
	wrong++;
}

/* Around each power of 2: a message comes to the handler of its number and to no other, and to none when that is gone. */
static void test_handler_numbers(struct rank *rank)
{
	static const uint32_t none[] = {FM_HANDLERS_MAX, FM_HANDLERS_MAX + 1, 65535, 65536 + 1, UINT32_MAX};
	uint64_t refused = 0;

	begin(rank, 1024);
	for (unsigned int i = 0; i < sizeof(none) / sizeof(*none); i++)
		EXPECT(rank,
		       fm_register_handler(fm, none[i], handle_wrong) == CADGE_E_ARGUMENT &&
			       !fm_begin_message(fm, 1 - rank->number, none[i]) &&
			       fm_why_not(fm, 1 - rank->number, none[i]) == CADGE_E_ARGUMENT,
		       "there is a handler %u", none[i]);
	EXPECT(rank, !fm_begin_message(fm, RANKS_MAX, 1) && fm_why_not(fm, RANKS_MAX, 1) == CADGE_E_ARGUMENT,
	       "there is one more peer");
	for (uint32_t id = 0; id < FM_HANDLERS_MAX; id++)
		EXPECT(rank, fm_register_handler(fm, id, handle_wrong) == CADGE_DONE, "handler %u", id);
	for (uint32_t power = 1; power <= FM_HANDLERS_MAX; power *= 2)
		for (uint32_t id = power - 1; id <= power + 1 && id < FM_HANDLERS_MAX; id++) {
			right_number = id;
			handled = 0;
			fm_register_handler(fm, id, handle_right);
			barrier_all();
			if (rank->number)
				send_all_lengths(id);
			else
				await(&handled, LENGTHS, "messages");
			fm_register_handler(fm, id, NULL);
			barrier_all();
			if (rank->number)
				send_all_lengths(id);
			else
				AWAIT(counter("packets_refused") == refused + LENGTHS,
				      "what nobody wants is not dropped");
			refused += LENGTHS;
			EXPECT(rank, !wrong, "a message for handler %u came to another, or is another", id);
			barrier_all();
			fm_register_handler(fm, id, handle_wrong);
		}
	end();
}

enum { LOCAL_BYTES = 300 << 10 };

/* Uses all of its locals, before it may stop and after. */
static void handle_with_locals(struct fm_stream *in, uint32_t sender)
{
	uint8_t locals[LOCAL_BYTES];
	size_t bytes;

	(void)sender;
	fill(locals, sizeof(locals), 1);
	bytes = fm_receive(in, locals, 8192);
	wrong += !is_filled(locals, bytes, ODD);
	fill(locals, sizeof(locals), 2);
	wrong += !is_filled(locals, sizeof(locals), 2);
	handled++;
}

/* Messages of one packet and of several have handlers on the same stack. */
static void test_stack(struct rank *rank)
{
	begin(rank, 1024);
	EXPECT(rank, fm_register_handler(fm, ODD, handle_with_locals) == CADGE_DONE, "handler");
	barrier_all();
	if (rank->number)
		send_all_lengths(ODD);
	else
		await(&handled, LENGTHS, "messages");
	end();
}

/* ---- a peer that does not keep to anything ---- */

static void write_window(struct cadge_blob_out *address)
{
	cadge_blob_u32(address, WINDOW);
}

static void read_window(struct cadge_blob_in *address)
{
	cadge_blob_take_u32(address);
}

/* What makes no sense is refused and counted; what comes after is taken all the same. */
static void test_nonsense(struct rank *rank)
{
	enum { FIRST = 1, LAST = 2, SHIFT = 3 };
	static const uint32_t refused[] = {FM_HANDLERS_MAX, FM_HANDLERS_MAX + ODD, UINT16_MAX >> SHIFT,
					   NOBODY};
	enum { REFUSED = sizeof(refused) / sizeof(*refused) };
	uint8_t packet[64];

	if (rank->number) {
		stranger_features = CADGE_WIRE_KEEP;
		stranger_begin(rank, write_window, read_window);
		meet(rank, 0, 2);
		for (size_t bytes = 1; bytes < FM_HEAD_BYTES; bytes++)
			stranger_throw(packet, bytes);
		for (unsigned int i = 0; i < REFUSED; i++) {
			cadge_store32(packet, refused[i] << SHIFT | FIRST | LAST);
			stranger_throw(packet, sizeof(packet));
		}
		cadge_store32(packet, LAST); /* of a message that never began */
		stranger_throw(packet, sizeof(packet));
		cadge_store32(packet, ODD << SHIFT | FIRST | LAST);
		stranger_throw(packet, FM_HEAD_BYTES + 24);
		stranger_end();
		return;
	}
	begin(rank, 1024);
	EXPECT(rank, fm_register_handler(fm, ODD, handle_wrong) == CADGE_DONE, "handler");
	meet(rank, 0, 2);
	AWAIT(wrong, "what was good does not come");
	EXPECT(rank, wrong == 1 && counter("packets_refused") == REFUSED + FM_HEAD_BYTES - 1,
	       "%llu packets were refused", (unsigned long long)counter("packets_refused"));
	say(rank, 1, "done", 4);
	fm_close(fm);
}

static void test_windows(struct rank *rank)
{
	static const uint32_t windows[] = {0, 3, 32768, 65536 + 8, UINT32_MAX};
	struct cadge_open_args args = rank_open_args(rank, WINDOW);

	for (unsigned int i = 0; i < sizeof(windows) / sizeof(*windows); i++) {
		const struct fm_config config = {.packet_bytes = 1024, .window = windows[i]};

		EXPECT(rank, fm_open(&args, &config, &fm) == CADGE_E_ARGUMENT, "a window of %u", windows[i]);
	}
}

int on_wire_conformance(int argc, char **argv)
{
	static const struct rank_test tests[] = {
		{.name = "pieces", .run = test_pieces, .ranks = 2},
		{.name = "handlers_interleave", .run = test_handlers_interleave, .ranks = 3},
		{.name = "budget_paces", .run = test_budget_paces, .ranks = 2},
		{.name = "switched_off", .run = test_switched_off, .ranks = 2},
		{.name = "what_nobody_wants", .run = test_what_nobody_wants, .ranks = 2},
		{.name = "ends_in_the_middle", .run = test_ends_in_the_middle, .ranks = 2},
		{.name = "handler_numbers", .run = test_handler_numbers, .ranks = 2},
		{.name = "stack", .run = test_stack, .ranks = 2},
		{.name = "nonsense", .run = test_nonsense, .ranks = 2},
		{.name = "windows", .run = test_windows, .ranks = 2},
	};

	return ranks_run_styles(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
