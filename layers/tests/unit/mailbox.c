/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mailbox over a library that keeps no promise beyond what mailbox.h asks for: writes become visible in
 * any order, at any moment and in pieces down to single bytes, buffers are read as late as they are lent,
 * anything may say BUSY, notifications overtake writes. Two mailboxes of this process talk through two such
 * links, both ways at once. Each message is checked for content, length, order and number; each buffer is
 * scribbled over the moment it is ours again.
 *
 * With notifications each side sleeps whenever the mailbox allows it and only wakes for a notification or a
 * completion, so a lost wake-up ends in a deadlock, which the test finds. CADGE_TEST_SEED makes other runs.
 */
#include "wire/mailbox_state.h"
#include "mailbox_weather.h"

#define BUFFERS      8u
#define STALL_ROUNDS 200000u

struct buffer {
	uint8_t *data;
	size_t bytes;
	uint64_t filled; /* with message filled - 1 */
	bool busy;
};

struct side {
	struct cadge_sink sink; /* first: callbacks cast back */
	const char *name;
	struct cadge_mailbox *mailbox;
	struct link *link;
	uint8_t *area, *staging;
	uint64_t posted, received, to_post, to_receive, salt, peer_salt;
	struct buffer buffers[BUFFERS];
	uint32_t queued;
	unsigned int ups, downs, failed;
	bool asleep;
};

struct scenario {
	const char *name;
	struct cadge_mailbox_shape shape; /* lines 0: the one that the mailbox proposes */
	uint32_t depth;
	uint64_t message_bytes_max, messages,
		largest_share; /* largest_share: every so many-th message is of any size */
	bool put_anywhere, fence, notify;
	bool bland; /* all messages alike: writes of one lap cannot be told from the last lap's by content */
	struct weather weather;
};

static struct link links[2];
static struct side sides[2];
static const struct scenario *scenario;
static unsigned int tests_run, tests_failed;

void mailbox_before_load(void)
{
	write_blow(&links[0]);
	write_blow(&links[1]);
}

/* ---- the two callers ---- */

static uint8_t content(uint64_t salt, uint64_t number, size_t at)
{
	if (scenario->bland)
		return 0;
	return (uint8_t)((salt ^ number * 167) + at * 31 + (at >> 8) * 7);
}

static size_t length_of(uint64_t salt, uint64_t number)
{
	const uint64_t mixed = (salt ^ number) * UINT64_C(0xff51afd7ed558ccd) >> 20;

	if (scenario->bland)
		return 400;
	if (number % scenario->largest_share == scenario->largest_share - 1)
		return number % (2 * scenario->largest_share) == scenario->largest_share - 1
			       ? scenario->message_bytes_max
			       : mixed % (scenario->message_bytes_max + 1);
	return mixed % (scenario->message_bytes_max < 300 ? scenario->message_bytes_max + 1 : 300);
}

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct side *side = (struct side *)sink;
	const uint64_t number = side->received++;
	const size_t expected = length_of(side->peer_salt, number);
	const uint8_t *at = data;

	if (peer != 7 || lend)
		fault("%s: wrong peer or a lend", side->name);
	if (bytes != expected)
		fault("%s: message %" PRIu64 " has %zu bytes, expected %zu", side->name, number, bytes,
		      expected);
	for (size_t i = 0; i < bytes && !*trouble; i++)
		if (at[i] != content(side->peer_salt, number, i))
			fault("%s: message %" PRIu64 " of %zu differs at %zu", side->name, number, bytes, i);
	return CADGE_TAKEN;
}

static void buffer_back(struct buffer *buffer)
{
	memset(buffer->data, 0xee, buffer->bytes);
	buffer->filled = 0;
	buffer->busy = false;
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct side *side = (struct side *)sink;

	(void)peer;
	if (token >= BUFFERS || !side->buffers[token].busy) {
		fault("%s: sent for a token that is not outstanding", side->name);
		return;
	}
	side->failed += code != CADGE_DONE;
	side->queued--;
	buffer_back(&side->buffers[token]);
}

static void on_up(struct cadge_sink *sink, uint32_t peer)
{
	(void)peer;
	((struct side *)sink)->ups++;
}

static void on_down(struct cadge_sink *sink, uint32_t peer, int code)
{
	(void)peer;
	if (code != CADGE_E_DOWN)
		fault("down with code %d", code);
	((struct side *)sink)->downs++;
}

/* Posts the next message if a buffer is free. Returns the answer, BUSY without a buffer. */
static int post_next(struct side *side)
{
	const size_t bytes = length_of(side->salt, side->posted);
	struct cadge_iov iov[3] = {{0}};
	uint32_t number = 0, count = 1 + (uint32_t)random_below(3);
	struct buffer *buffer;
	size_t cut[2];
	int code;

	while (number < BUFFERS && side->buffers[number].busy)
		number++;
	if (number == BUFFERS)
		return CADGE_BUSY;
	buffer = &side->buffers[number];
	for (size_t i = 0; i < bytes && buffer->filled != side->posted + 1; i++)
		buffer->data[i] = content(side->salt, side->posted, i);
	buffer->filled = side->posted + 1;
	cut[0] = random_below(bytes + 1);
	cut[1] = cut[0] + random_below(bytes - cut[0] + 1);
	if (count == 1)
		cut[0] = cut[1] = bytes;
	if (count == 2)
		cut[1] = bytes;
	iov[0] = (struct cadge_iov){buffer->data, cut[0]};
	iov[1] = (struct cadge_iov){buffer->data + cut[0], cut[1] - cut[0]};
	iov[2] = (struct cadge_iov){buffer->data + cut[1], bytes - cut[1]};
	code = cadge_mailbox_post(side->mailbox, iov, count, number);
	if (code == CADGE_DONE || code == CADGE_QUEUED)
		side->posted++;
	if (code == CADGE_DONE)
		buffer_back(buffer);
	if (code == CADGE_QUEUED) {
		buffer->busy = true;
		if (++side->queued > scenario->depth)
			fault("%s: %u messages queued at depth %u", side->name, side->queued,
			      scenario->depth);
	}
	return code;
}

static bool side_is_done(const struct side *side)
{
	return side->posted == side->to_post && side->received == side->to_receive && !side->queued;
}

static void side_step(struct side *side)
{
	const bool wants = side->ups && side->posted < side->to_post;

	if (side->asleep)
		return;
	for (unsigned int burst = (unsigned int)random_below(6);
	     wants && burst > 0 && side->posted < side->to_post; burst--)
		if (post_next(side) == CADGE_BUSY)
			break;
	if (cadge_mailbox_poll(side->mailbox, &side->sink) == 0 && scenario->notify &&
	    (!wants || side->posted == side->to_post || post_next(side) == CADGE_BUSY))
		side->asleep = cadge_mailbox_may_sleep(side->mailbox);
}

/* ---- scenarios ---- */

static const struct cadge_mailbox_ops ops_plain = {fake_put, fake_quiet, NULL, NULL};
static const struct cadge_mailbox_ops ops_fence = {fake_put, fake_quiet, fake_fence, NULL};
static const struct cadge_mailbox_ops ops_notify = {fake_put, fake_quiet, NULL, fake_notify};

static void *aligned(size_t bytes)
{
	void *at = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	if (!at)
		abort();
	memset(at, 0xa5, (bytes + 63) & ~(size_t)63);
	return at;
}

static void start(const struct scenario *s)
{
	scenario = s;
	*trouble = '\0';
	for (unsigned int i = 0; i < 2; i++) {
		struct side *side = &sides[i];
		struct cadge_mailbox_config config = {
			.shape = s->shape,
			.ops = s->notify  ? &ops_notify
			       : s->fence ? &ops_fence
					  : &ops_plain,
			.put_anywhere = s->put_anywhere,
			.peer = 7,
			.depth_max = s->depth,
			.message_bytes_max = s->message_bytes_max,
			.key = random_next(),
		};

		memset(side, 0, sizeof(*side));
		memset(&links[i], 0, sizeof(links[i]));
		side->sink =
			(struct cadge_sink){.up = on_up, .down = on_down, .recv = on_recv, .sent = on_sent};
		side->name = i ? "right" : "left";
		side->link = &links[i];
		side->to_post = s->messages;
		side->to_receive = s->messages;
		side->salt = 1000 + i;
		side->peer_salt = 1001 - i;
		side->area = config.area = aligned(cadge_mailbox_area_bytes(&s->shape));
		side->staging = config.staging =
			aligned(cadge_mailbox_staging_bytes(&s->shape, s->put_anywhere));
		for (unsigned int k = 0; k < BUFFERS; k++) {
			side->buffers[k].bytes = (size_t)s->message_bytes_max;
			side->buffers[k].data = aligned((size_t)s->message_bytes_max + 1);
		}
		links[i].weather = &s->weather;
		links[i].area_bytes = cadge_mailbox_area_bytes(&s->shape);
		links[i].from_asleep = &side->asleep;
		links[i].to_asleep = &sides[1 - i].asleep;
		if (cadge_mailbox_create(&config, &side->mailbox) != CADGE_DONE)
			abort();
	}
}

static void attach(void)
{
	for (unsigned int i = 0; i < 2; i++) {
		uint8_t card[CADGE_MAILBOX_CARD_BYTES];

		links[i].to = sides[1 - i].mailbox;
		links[i].area = sides[1 - i].area;

		cadge_mailbox_card(sides[1 - i].mailbox, card);
		if (cadge_mailbox_attach(sides[i].mailbox, card, sizeof(card), &links[i]) != CADGE_DONE)
			fault("attach refused");
	}
}

static void run(void)
{
	uint64_t last = 0;
	uint32_t stalled = 0;

	while (!*trouble && !(side_is_done(&sides[0]) && side_is_done(&sides[1]))) {
		const uint64_t moved =
			sides[0].posted + sides[1].posted + sides[0].received + sides[1].received;

		side_step(&sides[random_below(2)]);
		link_step(&links[random_below(2)]);
		stalled = moved == last ? stalled + 1 : 0;
		last = moved;
		if (stalled > STALL_ROUNDS)
			fault("stalled: posted %" PRIu64 "/%" PRIu64 ", received %" PRIu64 "/%" PRIu64
			      ", asleep %d/%d",
			      sides[0].posted, sides[1].posted, sides[0].received, sides[1].received,
			      sides[0].asleep, sides[1].asleep);
	}
}

static void stop(void)
{
	for (unsigned int i = 0; i < 2; i++) {
		while (links[i].writes_count)
			write_drop(&links[i], 0);
		cadge_mailbox_destroy(sides[i].mailbox);
		free(sides[i].area);
		free(sides[i].staging);
		for (unsigned int k = 0; k < BUFFERS; k++)
			free(sides[i].buffers[k].data);
	}
}

static void report(const char *name)
{
	tests_run++;
	if (*trouble) {
		tests_failed++;
		printf("not ok %u - %s: %s\n", tests_run, name, trouble);
	} else {
		printf("ok %u - %s\n", tests_run, name);
	}
}

static void expect_ups(void)
{
	if (sides[0].ups != 1 || sides[1].ups != 1 || sides[0].downs || sides[1].downs)
		fault("ups %u/%u, downs %u/%u", sides[0].ups, sides[1].ups, sides[0].downs, sides[1].downs);
}

static void traffic(const struct scenario *s)
{
	start(s);
	attach();
	run();
	expect_ups();
	stop();
	report(s->name);
}

/* A second life of the same areas, while writes of the first still arrive. */
static void second_life(const struct scenario *s)
{
	start(s);
	attach();
	run();
	for (unsigned int i = 0; i < 2; i++) {
		cadge_mailbox_detach(sides[i].mailbox);
		for (uint32_t k = 0; k < links[i].writes_count; k++)
			links[i].writes[k].op = NULL;
		links[i].quiet_op = NULL;
		links[i].notes_count = 0;
	}
	for (unsigned int i = 0; i < 2; i++) {
		apply_all(&links[i]);
		sides[i].posted = sides[i].received = 0;
		sides[i].ups = 0;
		sides[i].asleep = false;
	}
	attach();
	run();
	expect_ups();
	stop();
	report("second life of a connection");
}

/*
 * The connection breaks: down once, every queued message fails, later posts say so. Either the library
 * answers with an error, or the adapter is told by other means while nothing is being put.
 */
static void breaks(const struct scenario *s, bool told)
{
	int code = CADGE_DONE;

	start(s);
	attach();
	while (!*trouble && (sides[0].received < 20 || !sides[0].queued) &&
	       sides[0].posted < sides[0].to_post) {
		side_step(&sides[random_below(2)]);
		link_step(&links[random_below(2)]);
	}
	links[0].broken = true;
	if (told)
		cadge_mailbox_fail(sides[0].mailbox);
	for (unsigned int i = 0; i < 100000 && !(code == CADGE_E_DOWN && sides[0].downs && !sides[0].queued);
	     i++) {
		cadge_mailbox_poll(sides[0].mailbox, &sides[0].sink);
		code = post_next(&sides[0]);
		if (!told)
			side_step(&sides[1]);
		link_step(&links[0]);
		link_step(&links[1]);
	}
	cadge_mailbox_poll(sides[0].mailbox, &sides[0].sink);
	if (code != CADGE_E_DOWN || sides[0].downs != 1)
		fault("post says %d, %u downs", code, sides[0].downs);
	if (sides[0].queued)
		fault("%u messages never reported", sides[0].queued);
	stop();
	report(told ? "a connection said to be broken" : "a broken connection");
}

/* Wrong use and wrong cards are refused, sizes over the limit too. */
static void refusals(const struct scenario *s)
{
	uint8_t card[CADGE_MAILBOX_CARD_BYTES], wrong[CADGE_MAILBOX_CARD_BYTES];
	struct cadge_iov iov[CADGE_MAILBOX_IOV_MAX + 1] = {{0}};
	struct cadge_mailbox *mailbox;
	struct cadge_mailbox_config config = {.shape = s->shape, .ops = &ops_plain, .depth_max = 1};

	start(s);
	cadge_mailbox_card(sides[1].mailbox, card);
	for (unsigned int bit = 0; bit < 4 * 32; bit++) { /* every field of the card but the last two words */
		memcpy(wrong, card, sizeof(wrong));
		wrong[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (cadge_mailbox_attach(sides[0].mailbox, wrong, sizeof(wrong), &links[0]) == CADGE_DONE)
			cadge_mailbox_detach(
				sides[0].mailbox); /* another sound shape, e.g. a shorter short_bytes */
	}
	memcpy(wrong, card, sizeof(wrong));
	wrong[0] ^= 1;
	if (cadge_mailbox_attach(sides[0].mailbox, wrong, sizeof(wrong), &links[0]) != CADGE_E_ARGUMENT)
		fault("a card with the wrong magic was taken");
	if (cadge_mailbox_attach(sides[0].mailbox, card, sizeof(card) - 1, &links[0]) != CADGE_E_ARGUMENT)
		fault("a short card was taken");
	if (cadge_mailbox_post(sides[0].mailbox, iov, 1, 0) != CADGE_BUSY)
		fault("post before up is not BUSY");
	attach();
	while (!*trouble && !(sides[0].ups && sides[1].ups)) {
		for (unsigned int i = 0; i < 2; i++) {
			cadge_mailbox_poll(sides[i].mailbox, &sides[i].sink);
			link_step(&links[i]);
		}
	}
	if (cadge_mailbox_post(sides[0].mailbox, iov, CADGE_MAILBOX_IOV_MAX + 1, 0) != CADGE_E_ARGUMENT)
		fault("too many entries were taken");
	iov[0] = (struct cadge_iov){sides[0].buffers[0].data, (size_t)s->message_bytes_max + 1};
	if (cadge_mailbox_post(sides[0].mailbox, iov, 1, 0) != CADGE_E_TOO_LARGE)
		fault("a message over the limit was taken");
	config.shape.lines = 48;
	if (cadge_mailbox_create(&config, &mailbox) != CADGE_E_ARGUMENT)
		fault("a ring of 48 lines was taken");
	stop();
	report("refusals");
}

/* Without a reader the sender sees BUSY, and never more than the ring holds is under way. */
static void fills_up(const struct scenario *s)
{
	uint64_t posted;

	start(s);
	attach();
	while (!*trouble && !(sides[0].ups && sides[1].ups)) {
		for (unsigned int i = 0; i < 2; i++) {
			cadge_mailbox_poll(sides[i].mailbox, &sides[i].sink);
			link_step(&links[i]);
		}
	}
	for (unsigned int idle = 0; idle < 200 && sides[0].posted < sides[0].to_post;) {
		idle = post_next(&sides[0]) == CADGE_BUSY ? idle + 1 : 0;
		cadge_mailbox_poll(sides[0].mailbox, &sides[0].sink);
		apply_all(&links[0]);
	}
	posted = sides[0].posted;
	if (posted == sides[0].to_post)
		fault("%" PRIu64 " messages went into a ring that nobody reads", posted);
	run();
	stop();
	report("fills up, says BUSY, goes on");
}

int main(void)
{
	const struct cadge_mailbox_shape small = {
		.lines = 32, .short_bytes = 200, .bulk_bytes = 2048, .chunk_bytes = 512};
	const struct cadge_mailbox_shape tiny = {
		.lines = 16, .short_bytes = 24, .bulk_bytes = 256, .chunk_bytes = 64};
	const struct cadge_mailbox_shape proposed = {0};
	const struct cadge_mailbox_shape flat = {.lines = 64, .short_bytes = 500};
	/* clang-format off */
	struct scenario list[] = {
		/* name, shape, depth, longest, messages, every so many-th long, put_anywhere, fence, notify, bland, weather */
		{"small ring, lent buffers", small, 4, 5000, 3000, 7, true, false, false, false, {5, 50, 90}},
		{"small ring, staged", small, 4, 5000, 3000, 7, false, false, false, false, {5, 50, 90}},
		{"small ring, fence", small, 4, 5000, 3000, 7, true, true, false, false, {5, 50, 90}},
		{"small ring, sleeping", small, 4, 5000, 3000, 7, true, false, true, false, {10, 50, 70}},
		{"tiny ring, depth 1", tiny, 1, 400, 3000, 3, true, false, false, false, {20, 80, 50}},
		{"tiny ring, sleeping, staged", tiny, 8, 400, 3000, 3, false, false, true, false, {20, 80, 50}},
		{"short messages only", flat, 8, 500, 6000, 5, true, false, false, false, {5, 30, 95}},
		{"late writes of bytes that were there already", flat, 8, 500, 6000, 5, true, false, false, true, {5, 10, 50}},
		{"up to 4 MiB, proposed shape", proposed, 6, 4u << 20, 60, 5, true, false, false, false, {2, 50, 100}},
		{"up to 4 MiB, staged, sleeping", proposed, 6, 4u << 20, 40, 5, false, false, true, false, {2, 50, 100}},
	};
	/* clang-format on */
	const char *seed = getenv("CADGE_TEST_SEED"), *share = getenv("CADGE_TEST_SHARE");

	random_state = seed ? strtoull(seed, NULL, 0) : 20261121;
	printf("# seed %" PRIu64 "\n", random_state);
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		if (!list[i].shape.lines)
			cadge_mailbox_shape(list[i].depth, list[i].message_bytes_max, &list[i].shape);
		if (share && strtoull(share, NULL, 0))
			list[i].messages = list[i].messages / strtoull(share, NULL, 0) + 1;
		traffic(&list[i]);
	}
	second_life(&list[0]);
	breaks(&list[0], false);
	breaks(&list[1], false);
	breaks(&list[0], true);
	refusals(&list[0]);
	fills_up(&list[6]);
	fills_up(&list[0]);
	printf("1..%u\n", tests_run);
	return tests_failed ? 1 : 0;
}
