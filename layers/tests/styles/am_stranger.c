/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that does not keep to anything: on the wire alone, with the tag and without. */
#include "am/am_state.h"
#include "tests/styles/am_end.h"

/* A window, and no more: an address has no key. */
static void write_head(struct cadge_blob_out *address)
{
	cadge_blob_u32(address, WINDOW);
}

static void read_head(struct cadge_blob_in *address)
{
	cadge_blob_take_u32(address);
}

struct thrown {
	uint8_t kind, handler, words, to, from, acks;
	uint64_t tag, offset_bytes, long_bytes, number;
	uint32_t bytes; /* of the packet */
};

static void throw(const struct thrown *thrown)
{
	uint8_t packet[128] = {thrown->kind, thrown->handler, thrown->words, thrown->to, thrown->from, 0,
			       thrown->acks};

	cadge_store64(packet + 8, thrown->tag);
	cadge_store64(packet + AM_HEAD_BYTES, thrown->offset_bytes);
	cadge_store64(packet + AM_HEAD_BYTES + 8, thrown->long_bytes);
	cadge_store64(packet + AM_HEAD_BYTES + 16, thrown->number);
	stranger_throw(packet, thrown->bytes);
}

enum { WHOLE = AM_HEAD_BYTES, WHOLE_LONG = AM_HEAD_BYTES + LONG_BYTES };

static void be_stranger(struct rank *rank)
{
	static const uint64_t lengths[] = {1, 8112, 8113, 40000, SEGMENT_BYTES};
	struct thrown ask = {.kind = KIND_LONG, .handler = TAKE, .tag = TAG + 1, .bytes = WHOLE_LONG};
	unsigned int heard = 0;

	stranger_begin(rank, write_head, read_head);
	for (unsigned int i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		ask.number = i;
		ask.long_bytes = lengths[i];
		throw(&ask);
		await(&stranger_received, ++heard, "an answer");
		EXPECT(rank,
		       stranger_last[0] == (KIND_RETURNED | KIND_LONG) && stranger_last[5] == AM_BAD_TAG &&
			       stranger_last_bytes == WHOLE_LONG,
		       "%llu bytes: kind %u, status %u, %zu bytes", (unsigned long long)lengths[i],
		       stranger_last[0], stranger_last[5], stranger_last_bytes);
		throw(&(struct thrown){
			.kind = KIND_PLACED, .tag = i, .bytes = WHOLE}); /* it was not granted */
		throw(&(struct thrown){.kind = KIND_LONG | KIND_UNASKED,
				       .handler = TAKE,
				       .tag = TAG + 1,
				       .long_bytes = lengths[i],
				       .bytes = WHOLE_LONG});
		await(&stranger_received, ++heard, "an answer");
		EXPECT(rank, stranger_last[0] == (KIND_RETURNED | KIND_LONG), "kind %u", stranger_last[0]);
	}
	ask.tag = TAG;
	ask.kind |= KIND_UNASKED; /* asks, where all ask */
	throw(&ask);
	await(&stranger_received, ++heard, "a grant");
	EXPECT(rank, stranger_last[0] == KIND_GRANT && stranger_last_bytes > WHOLE,
	       "who has the tag is answered by kind %u, %zu bytes", stranger_last[0], stranger_last_bytes);
	stranger_end();
}

/*
 * Who does not have the tag, and keeps to nothing: no key leaves the target, not with its address, nor with what comes
 * back, and what says that it was placed runs nothing. Who has it, and places nothing, is counted until its link ends.
 */
void test_stranger(struct rank *rank)
{
	if (rank->number) {
		be_stranger(rank);
		return;
	}
	am_begin(rank);
	am_set_handler(endpoint, TAKE, am_echo);
	connect_to(1);
	AWAIT(am_coming(endpoint) == 1, "nothing is granted");
	EXPECT(rank, counter("packets_refused") == 5 && counter("requests_returned") == 10 && !handled,
	       "%llu packets were refused, %llu returned, %u handled",
	       (unsigned long long)counter("packets_refused"),
	       (unsigned long long)counter("requests_returned"), handled);
	EXPECT(rank, is_zero(am_segment(endpoint), SEGMENT_BYTES), "a stranger wrote");
	poll_for_ms(100); /* the grant leaves */
	EXPECT(rank, am_disconnect(am, 1) == CADGE_DONE && am_coming(endpoint) == 0, "something still comes");
	say(rank, 1, "done", 4);
	am_close(am);
}

/* The endpoint that asked is none. */
static void on_from_nowhere(struct am_token *token, const uint32_t *words, uint32_t count, void *payload,
			    size_t bytes)
{
	const struct cadge_iov piece = {am_segment(endpoint), 8};

	(void)words, (void)count, (void)payload, (void)bytes;
	handled++;
	wrong += am_reply_xfer(token, LONG_BACK, NULL, &piece, 1, 0, 0) !=
		 CADGE_QUEUED; /* it is not answered */
	wrong += am_reply(token, LONG_BACK, NULL, NULL, 0) != CADGE_E_REFUSED;
}

/* What makes no sense is refused and counted, or comes back; nothing outside of a packet, table or segment is looked at. */
void test_nonsense(struct rank *rank)
{
	static const struct thrown refused[] = {
		{.bytes = 1},
		{.bytes = WHOLE - 1},
		{.handler = COUNT, .words = 17, .tag = TAG, .bytes = 100},
		{.handler = COUNT, .words = 3, .tag = TAG, .bytes = WHOLE + 11},
		{.kind = KIND_REQUEST | KIND_LONG, .handler = COUNT, .tag = TAG, .bytes = WHOLE_LONG - 1},
		{.kind = KIND_REPLY, .handler = ANSWER, .bytes = WHOLE},
		{.kind = KIND_RETURNED, .handler = ECHO, .bytes = WHOLE},
		{.kind = KIND_ACK, .acks = 5, .bytes = WHOLE},
		{.kind = 9, .bytes = WHOLE},
		{.kind = KIND_REPLY, .handler = AM_RETURNED, .bytes = WHOLE},
		{.kind = KIND_REPLY | KIND_LONG, .handler = ANSWER, .long_bytes = 1, .bytes = WHOLE_LONG},
		{.kind = KIND_REPLY | KIND_LONG | KIND_UNASKED, .handler = ANSWER, .bytes = WHOLE_LONG},
		{.kind = KIND_RETURNED | KIND_LONG, .handler = ECHO, .bytes = WHOLE_LONG},
		{.kind = KIND_GRANT, .bytes = WHOLE},
		{.kind = KIND_GRANT, .tag = UINT64_MAX, .bytes = WHOLE + 60},
		{.kind = KIND_REJECTED, .bytes = WHOLE},
		{.kind = KIND_PLACED, .bytes = WHOLE},
	};
	static const struct thrown back[] = {
		{.handler = ECHO, .to = 9, .tag = TAG, .bytes = WHOLE},
		{.handler = ECHO, .tag = TAG + 1, .bytes = WHOLE},
		{.handler = AM_RETURNED, .tag = TAG, .bytes = WHOLE},
		{.handler = NOBODY, .tag = TAG, .bytes = WHOLE},
		{.kind = KIND_LONG,
		 .handler = ECHO,
		 .tag = TAG,
		 .offset_bytes = SEGMENT_BYTES,
		 .long_bytes = 1,
		 .bytes = WHOLE_LONG},
		{.kind = KIND_LONG,
		 .handler = ECHO,
		 .tag = TAG,
		 .offset_bytes = UINT64_MAX,
		 .long_bytes = 2,
		 .bytes = WHOLE_LONG},
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
		await(&stranger_received, BACK + GOOD + 1, "a request");
		throw(&(struct thrown){.kind = KIND_REPLY, .handler = AM_RETURNED, .bytes = WHOLE});
		stranger_end();
		return;
	}
	am_begin(rank);
	am_set_handler(endpoint, LONG, on_from_nowhere);
	connect_to(1);
	await(&handled, GOOD, "requests from nowhere");
	EXPECT(rank, counter("packets_refused") == REFUSED && counter("requests_returned") == BACK,
	       "%llu packets of %d were refused, %llu of %d returned",
	       (unsigned long long)counter("packets_refused"), REFUSED,
	       (unsigned long long)counter("requests_returned"), BACK);
	am_map(endpoint, 0, 1, 0, TAG);
	request(0, ECHO, NULL, NULL, 0); /* is answered by a reply to handler 0 */
	AWAIT(counter("packets_refused") == REFUSED + 1, "a reply to handler 0 is not refused");
	EXPECT(rank, !wrong && !answered && !returned, "something of it was taken");
	say(rank, 1, "done", 4);
	am_close(am);
}

enum { NOISE = 4000 };

/* A packet whose fields are each one of a few that may mean something. */
static void throw_noise(uint32_t *state)
{
	static const uint8_t kinds[] = {KIND_REQUEST,
					KIND_REPLY,
					KIND_RETURNED,
					KIND_ACK,
					KIND_GRANT,
					KIND_REJECTED,
					KIND_PLACED,
					KIND_REQUEST | KIND_LONG,
					KIND_REPLY | KIND_LONG,
					KIND_RETURNED | KIND_LONG,
					KIND_REQUEST | KIND_LONG | KIND_UNASKED,
					KIND_REPLY | KIND_LONG | KIND_UNASKED,
					7,
					KIND_LONG | 9,
					64,
					255};
	static const uint8_t handlers[] = {AM_RETURNED, ECHO, ANSWER, NOBODY};
	static const uint64_t numbers[] = {0, 1, UINT64_C(1) << 32, UINT64_C(2) << 32 | 1, UINT64_MAX};
	static const uint64_t lengths[] = {0, 1, SEGMENT_BYTES, SEGMENT_BYTES + 1, UINT64_MAX};
	static const uint32_t bytes[] = {1, WHOLE - 1, WHOLE, WHOLE + 8, WHOLE_LONG, WHOLE_LONG + 8, 120};
	uint32_t draw[8];

	for (unsigned int i = 0; i < 8; i++) {
		*state = *state * 1664525u + 1013904223u;
		draw[i] = *state >> 8;
	}
	throw(&(struct thrown){.kind = kinds[draw[0] % sizeof(kinds)],
			       .handler = handlers[draw[1] % 4],
			       .words = (uint8_t)(draw[2] % 8 ? 0 : draw[2] % 20),
			       .to = (uint8_t)(draw[3] % 8 ? 0 : draw[3] % 255),
			       .from = draw[3] % 7 ? 0 : 200,
			       .acks = (uint8_t)(draw[4] % 4 ? 0 : draw[4] % 5),
			       .tag = draw[4] % 2 ? TAG : numbers[draw[5] % 5],
			       .offset_bytes = lengths[draw[5] % 5],
			       .long_bytes = lengths[draw[6] % 5],
			       .number = numbers[draw[6] % 5],
			       .bytes = bytes[draw[7] % 7]});
}

/* Whatever a peer sends, right tag or not, while we send to it: nothing is written but by a put, and both tables stay whole. */
void test_noise(struct rank *rank)
{
	static uint8_t source[40000];
	const struct cadge_iov piece = {source, sizeof(source)};
	uint32_t state = 20261128;

	if (rank->number) {
		stranger_begin(rank, write_head, read_head);
		for (unsigned int i = 0; i < NOISE; i++)
			throw_noise(&state);
		say(rank, 0, "all", 3);
		stranger_end();
		return;
	}
	am_begin(rank);
	may_lose_peer = true; /* transfers end in any way */
	connect_to(1);
	am_map(endpoint, 0, 1, 0, TAG);
	for (const uint64_t until_ns = deadline(); !hears(rank, 1);) {
		budget = state++ % 3;
		look();
		am_request_xfer(endpoint, 0, ECHO, NULL, &piece, 1, 0, 4711);
		EXPECT(rank, clock_ns() < until_ns, "the stranger does not end");
	}
	budget = UINT32_MAX;
	poll_for_ms(100);
	AWAIT(counter("packets_refused") > NOISE / 10 && counter("requests_returned") > NOISE / 20,
	      "%llu packets were refused, %llu returned", (unsigned long long)counter("packets_refused"),
	      (unsigned long long)counter("requests_returned"));
	EXPECT(rank, am_coming(endpoint) <= QUEUE + WINDOW, "%u transfers are expected", am_coming(endpoint));
	EXPECT(rank, is_zero(am_segment(endpoint), SEGMENT_BYTES), "a packet wrote into the segment");
	EXPECT(rank, am_disconnect(am, 1) == CADGE_DONE && am_coming(endpoint) == 0, "something still comes");
	say(rank, 1, "done", 4);
	am_close(am);
}
