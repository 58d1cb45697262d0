/* SPDX-License-Identifier: BSD-3-Clause */
/* What is refused: at every length, by every operation, and after withdrawal. */
#include <string.h>

#include "tests/styles/am_end.h"

static uint8_t source[SEGMENT_BYTES];
static bool mediums; /* what fits into a packet is a medium message */
static struct guard guard;

enum { TO_WRONG_TAG = 1, TO_NO_TAG, TO_NOBODY };

/* Leaves in the segment what came, wherever it came. */
static void on_take(struct am_token *token, const uint32_t *words, uint32_t count, void *payload,
		    size_t bytes)
{
	(void)words, (void)count;
	handled++;
	if (payload != am_segment(endpoint))
		memcpy(am_segment(endpoint), payload, bytes);
	wrong += am_reply(token, ANSWER, NULL, NULL, 0) != CADGE_DONE;
}

/* An answer, which leaves alone what is known of the last return. */
static void on_told(struct am_token *token, const uint32_t *words, uint32_t count, void *payload,
		    size_t bytes)
{
	(void)token, (void)words, (void)count, (void)payload, (void)bytes;
	answered++;
}

/* Whether so many bytes are one packet. */
static bool is_medium(size_t bytes)
{
	return mediums && bytes <= am_medium_bytes_max(am, 2);
}

static void send_pieces(uint32_t name, uint32_t handler, size_t bytes, uint32_t seed, uint64_t offset_bytes)
{
	const struct am_words words = {.count = 2, .word = {seed, 5}};
	const size_t first = bytes / 3;
	const struct cadge_iov pieces[] = {{source, first}, {source + first, bytes - first}};
	const uint32_t count = bytes % 2 ? 2 : 1; /* in one piece, or two */
	const struct cadge_iov whole = {source, bytes};
	int code;

	fill(source, bytes, seed);
	if (is_medium(bytes)) {
		request(name, handler, &words, count == 1 ? &whole : pieces, count);
		return;
	}
	AWAIT((code = am_request_xfer(endpoint, name, handler, &words, count == 1 ? &whole : pieces, count,
				      offset_bytes, 4711)) != CADGE_BUSY,
	      "a transfer does not begin");
	EXPECT(self, code == CADGE_QUEUED, "transfer: %s", cadge_code_name(code));
}

static void write_allowed(size_t bytes, uint32_t seed)
{
	const unsigned int answers = answered + 1, ends = ended + !is_medium(bytes);

	end_wanted = CADGE_DONE;
	send_pieces(0, TAKE, bytes, seed, 0);
	await(&answered, answers, "an answer");
	await(&ended, ends, "the end of a transfer");
}

static void expect_refusal(uint32_t name, uint32_t handler, size_t bytes, uint32_t seed,
			   uint64_t offset_bytes, enum am_status status)
{
	const struct am_words words = {.count = 2, .word = {seed, 5}};
	const unsigned int ends = ended + !is_medium(bytes);

	end_wanted = CADGE_E_REFUSED;
	send_pieces(name, handler, bytes, seed, offset_bytes);
	expect_return(status, handler, returned + 1, &words, bytes, seed);
	await(&ended, ends, "the end of a transfer");
}

static void try_wrong_tag(size_t bytes, uint32_t seed)
{
	expect_refusal(TO_WRONG_TAG, TAKE, bytes, seed, 0, AM_BAD_TAG);
}

static void try_old_tag(size_t bytes, uint32_t seed)
{
	expect_refusal(0, TAKE, bytes, seed, 0, AM_BAD_TAG);
}

static void try_no_tag(size_t bytes, uint32_t seed)
{
	expect_refusal(TO_NO_TAG, TAKE, bytes, seed, 0, AM_BAD_TAG);
}

static void try_handler(size_t bytes, uint32_t seed)
{
	expect_refusal(0, TAKE, bytes, seed, 0, AM_BAD_HANDLER);
}

static void try_nobody(size_t bytes, uint32_t seed)
{
	expect_refusal(0, NOBODY, bytes, seed, 0, AM_BAD_HANDLER);
}

static void try_no_endpoint(size_t bytes, uint32_t seed)
{
	expect_refusal(TO_NOBODY, TAKE, bytes, seed, 0, AM_BAD_ENDPOINT);
}

/* A medium message has no place in the segment. */
static void try_outside(size_t bytes, uint32_t seed)
{
	const bool had = mediums;

	mediums = false;
	expect_refusal(0, TAKE, bytes, seed, SEGMENT_BYTES - bytes + 1, AM_BAD_SEGMENT);
	mediums = had;
}

static void try_full_queue(size_t bytes, uint32_t seed)
{
	const unsigned int answers = answered + QUEUE;

	for (unsigned int i = 0; i < QUEUE; i++)
		request(0, ECHO, NULL, NULL, 0);
	expect_refusal(0, TAKE, bytes, seed, 0, AM_CONGESTION);
	await(&answered, answers, "what was in the queue");
}

static void change_tag(size_t bytes)
{
	(void)bytes;
	am_set_tag(endpoint, TAG + 9);
	EXPECT(self, am_coming(endpoint) == 0, "something comes for the old tag");
}

static void take_no_tag(size_t bytes)
{
	(void)bytes;
	am_set_tag(endpoint, AM_TAG_NONE);
}

static void restore_tag(size_t bytes)
{
	(void)bytes;
	am_set_tag(endpoint, TAG);
}

static void take_handler(size_t bytes)
{
	(void)bytes;
	am_set_handler(endpoint, TAKE, NULL);
}

static void restore_handler(size_t bytes)
{
	(void)bytes;
	am_set_handler(endpoint, TAKE, on_take);
}

static uint64_t returned_before;

/* Runs no handler until something was returned. */
static void look_at_nothing(size_t bytes)
{
	(void)bytes;
	returned_before = counter("requests_returned");
	budget = 0;
}

static void look_again(void)
{
	if (budget == 0 && counter("requests_returned") > returned_before)
		budget = UINT32_MAX;
}

static void refuse_at_every_length(struct rank *rank)
{
	static const struct guard_case cases[] = {
		{.name = "wrong tag", .write = write_allowed, .attempt = try_wrong_tag},
		{.name = "changed tag",
		 .write = write_allowed,
		 .forbid = change_tag,
		 .attempt = try_old_tag,
		 .after = restore_tag},
		{.name = "no tag",
		 .write = write_allowed,
		 .forbid = take_no_tag,
		 .attempt = try_no_tag,
		 .after = restore_tag},
		{.name = "handler withdrawn",
		 .write = write_allowed,
		 .forbid = take_handler,
		 .attempt = try_handler,
		 .after = restore_handler},
		{.name = "no handler", .write = write_allowed, .attempt = try_nobody},
		{.name = "no endpoint", .write = write_allowed, .attempt = try_no_endpoint},
		{.name = "outside", .write = write_allowed, .attempt = try_outside},
		{.name = "full queue",
		 .write = write_allowed,
		 .forbid = look_at_nothing,
		 .attempt = try_full_queue},
	};
	size_t switches[] = {0, 8192, 40000, 0};

	am_begin(rank);
	am_set_handler(endpoint, TAKE, on_take);
	am_set_handler(endpoint, ANSWER, on_told);
	map_other();
	am_map(endpoint, TO_WRONG_TAG, 1 - rank->number, 0, TAG + 1);
	am_map(endpoint, TO_NO_TAG, 1 - rank->number, 0, AM_TAG_NONE);
	am_map(endpoint, TO_NOBODY, 1 - rank->number, 3, TAG);
	switches[0] = am_medium_bytes_max(am, 2);
	guard = (struct guard){.bytes = SEGMENT_BYTES, .switches = switches};
	if (rank->number == 0) {
		guard.memory = am_segment(endpoint);
		after_poll = look_again;
	}
	guard_try(&guard, cases, sizeof(cases) / sizeof(*cases));
	am_end();
}

void test_refused_long(struct rank *rank)
{
	refuse_at_every_length(rank);
}

void test_refused_medium(struct rank *rank)
{
	mediums = true;
	refuse_at_every_length(rank);
}

/* ---- replies ---- */

/* What rank 1 wants to be asked, so that it can reply: bytes, seed, and how. */
static struct am_words wish;
enum { WISH = 40, REPLY_TO_WISH, RIGHT = 0, TO_NO_HANDLER, OUTSIDE };

static void on_wish(struct am_token *token, const uint32_t *words, uint32_t count, void *payload,
		    size_t bytes)
{
	(void)token, (void)payload, (void)bytes;
	wish.count = count;
	memcpy(wish.word, words, count * sizeof(*words));
}

static void grant_wish(void)
{
	if (wish.count && am_request(endpoint, 0, REPLY_TO_WISH, &wish, NULL, 0) == CADGE_DONE)
		wish.count = 0;
}

static void on_reply_to_wish(struct am_token *token, const uint32_t *words, uint32_t count, void *payload,
			     size_t bytes)
{
	const struct cadge_iov piece = {source, words[0]};
	const uint64_t offset_bytes = words[2] == OUTSIDE ? SEGMENT_BYTES - words[0] + 1 : 0;

	(void)count, (void)payload, (void)bytes;
	fill(source, words[0], words[1]);
	wrong += am_reply_xfer(token, AM_RETURNED, NULL, &piece, 1, 0, 4711) != CADGE_E_ARGUMENT;
	wrong += am_reply_xfer(token, words[2] == TO_NO_HANDLER ? NOBODY : ANSWER, NULL, &piece, 1,
			       offset_bytes, 4711) != CADGE_QUEUED;
}

static void reply_with(size_t bytes, uint32_t seed, uint32_t how)
{
	const unsigned int ends = ended + 1, answers = answered + 1;

	end_wanted = how == RIGHT ? CADGE_DONE : CADGE_E_REFUSED;
	request(0, WISH, &(struct am_words){.count = 3, .word = {(uint32_t)bytes, seed, how}}, NULL, 0);
	await(&ended, ends, "the end of a reply");
	request(0, ECHO, NULL, NULL, 0); /* comes after it */
	await(&answered, answers, "an answer");
}

static void write_reply(size_t bytes, uint32_t seed)
{
	reply_with(bytes, seed, RIGHT);
}

static void try_reply_to_nobody(size_t bytes, uint32_t seed)
{
	reply_with(bytes, seed, TO_NO_HANDLER);
}

static void try_reply_outside(size_t bytes, uint32_t seed)
{
	reply_with(bytes, seed, OUTSIDE);
}

/* A reply is looked at before it is placed as well, and its request is answered whatever it was. */
void test_refused_reply(struct rank *rank)
{
	static const struct guard_case cases[] = {
		{.name = "reply to no handler", .write = write_reply, .attempt = try_reply_to_nobody},
		{.name = "reply outside", .write = write_reply, .attempt = try_reply_outside},
	};
	static const size_t switches[] = {8112, 40000, 0};

	am_begin(rank);
	am_set_handler(endpoint, WISH, on_wish);
	am_set_handler(endpoint, REPLY_TO_WISH, on_reply_to_wish);
	after_poll = grant_wish;
	map_other();
	guard = (struct guard){.bytes = SEGMENT_BYTES, .switches = switches};
	if (rank->number == 0)
		guard.memory = am_segment(endpoint);
	guard_try(&guard, cases, sizeof(cases) / sizeof(*cases));
	EXPECT(rank, rank->number || counter("packets_refused") == answered,
	       "%llu replies were refused, %u came", (unsigned long long)counter("packets_refused"),
	       answered);
	am_end();
}

/* A byte outside of the segment, at its edges and where sums overflow: it comes back, and nothing is written. */
void test_long_outside(struct rank *rank)
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

	am_begin(rank);
	map_other();
	barrier_all();
	end_wanted = CADGE_E_REFUSED;
	for (unsigned int i = 0; rank->number && i < sizeof(spots) / sizeof(*spots); i++) {
		fill(content, spots[i].bytes, i);
		EXPECT(rank,
		       am_request_xfer(endpoint, 0, COUNT, NULL, &(struct cadge_iov){content, spots[i].bytes},
				       1, spots[i].offset_bytes, 4711) == CADGE_QUEUED,
		       "%u bytes at %llu", spots[i].bytes, (unsigned long long)spots[i].offset_bytes);
		await(&returned, i + 1, "a return");
		await(&ended, i + 1, "an end");
		EXPECT(rank, status_seen == AM_BAD_SEGMENT && payload_bytes == spots[i].bytes,
		       "%u bytes at %llu came back as %zu with status %d", spots[i].bytes,
		       (unsigned long long)spots[i].offset_bytes, payload_bytes, (int)status_seen);
	}
	barrier_all();
	EXPECT(rank, is_zero(am_segment(endpoint), SEGMENT_BYTES) && !handled, "something was written");
	am_end();
}
