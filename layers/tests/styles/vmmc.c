/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What makes VMMC what it is, on its own calls: only what was exported can be written, by those whom it was exported to, and as
 * they were allowed to; notifications come after the bytes, once and in order; redirection lands where it was asked to, and
 * copies what had landed and nothing else; the translation cache counts what it says. Rank 0 exports, the others import.
 */

#include <string.h>

#include "tests/styles/frame.h"
#include "vmmc/state.h"

#define PAGE ((size_t)4096)

enum { OPERATIONS = 32, NOTES = 16, CACHE_PAGES = 8 };

static struct vmmc *vmmc;
static unsigned int ended, failed, noticed, redirected;
static int redirected_code;
static uint64_t redirected_bytes;

/* What a test does with a notification; NULL: it is counted. */
static void (*on_notice)(struct vmmc_export *export, uint64_t offset_bytes, uint64_t bytes);

static void on_sent(void *arg, uint32_t peer, struct vmmc_token token, int code)
{
	(void)arg, (void)peer;
	EXPECT(self, token.owner == &ended && token.number == 7, "`sent` has another token");
	ended++;
	failed += code != CADGE_DONE;
}

static void on_notified(void *arg, uint32_t peer, struct vmmc_export *export, uint64_t offset_bytes,
			uint64_t bytes)
{
	(void)arg, (void)peer;
	if (on_notice)
		on_notice(export, offset_bytes, bytes);
	noticed++;
}

static void on_redirected(void *arg, struct vmmc_export *export, int code, uint64_t copied_bytes)
{
	(void)arg, (void)export;
	redirected++;
	redirected_code = code;
	redirected_bytes = copied_bytes;
}

/* ---- life ---- */

static void progress_once(void)
{
	const int count = vmmc_progress(vmmc, 1);

	EXPECT(self, count >= 0, "progress: %s", cadge_code_name(count));
	give_way(count);
}

FRAME_CALLS(vmmc, progress_once);

static void begin(struct rank *rank)
{
	const struct vmmc_config config = {
		.operations = OPERATIONS,
		.notes = NOTES,
		.cache_pages = CACHE_PAGES,
		.events = {.up = frame_up,
			   .down = frame_down,
			   .sent = on_sent,
			   .notified = on_notified,
			   .redirected = on_redirected},
	};
	const struct cadge_open_args args = rank_open_args(rank, OPERATIONS);

	frame_begin(rank, &frame_calls);
	EXPECT(rank, vmmc_open(&args, &config, &vmmc) == CADGE_DONE, "open: %s", args.error);
	connect_all();
}

static void end(void)
{
	barrier_all();
	EXPECT(self, !failed, "%u operations failed", failed);
	vmmc_close(vmmc);
}

static uint8_t *memory(size_t bytes)
{
	uint8_t *base = vmmc_alloc(vmmc, bytes);

	EXPECT(self, base, "no memory");
	return base;
}

/* ---- exporting, importing, updating ---- */

struct key {
	size_t bytes;
	uint8_t data[1024];
};

/* Exports, and says the key to rank `to`. */
static struct vmmc_export *export_to(unsigned int to, void *base, size_t bytes, uint32_t rights,
				     uint32_t peer, uint32_t flags)
{
	struct key key;
	struct cadge_blob_out out = {.at = key.data, .room_bytes = sizeof(key.data), .ok = true};
	struct vmmc_export *export;
	int code = vmmc_export(vmmc, base, bytes, rights, peer, flags, &out, &export);

	EXPECT(self, code == CADGE_DONE, "export: %s", cadge_code_name(code));
	say(self, to, key.data, out.used_bytes);
	return export;
}

static struct key receive_key(unsigned int from)
{
	struct key key;

	key.bytes = hear(self, from, key.data, sizeof(key.data));
	return key;
}

static int import_as(uint32_t peer, const struct key *key, uint32_t intent, struct vmmc_import **import_out)
{
	struct cadge_blob_in in = {.at = key->data, .left_bytes = key->bytes, .ok = true};

	return vmmc_import(vmmc, peer, &in, intent, import_out);
}

static struct vmmc_import *import_from(uint32_t peer)
{
	const struct key key = receive_key(peer);
	struct vmmc_import *import;
	int code = import_as(peer, &key, CADGE_MAY_WRITE, &import);

	EXPECT(self, code == CADGE_DONE, "import: %s", cadge_code_name(code));
	return import;
}

static const struct vmmc_token token = {.owner = &ended, .number = 7};

/* Begins an update, looking while it is BUSY; returns whether `sent` follows. */
static unsigned int begin_update(struct vmmc_import *to, uint64_t offset_bytes, const void *from,
				 size_t bytes, uint32_t flags)
{
	int code;

	AWAIT((code = vmmc_send(to, offset_bytes, from, bytes, flags, token)) != CADGE_BUSY,
	      "waited in vain for an update that is BUSY");
	EXPECT(self, code >= 0, "an update of %zu bytes: %s", bytes, cadge_code_name(code));
	return code == CADGE_QUEUED;
}

/* An update whose buffer is free again. */
static void update(struct vmmc_import *to, uint64_t offset_bytes, const void *from, size_t bytes,
		   uint32_t flags)
{
	const unsigned int wanted = ended + begin_update(to, offset_bytes, from, bytes, flags);

	await(&ended, wanted, "the end of an update");
}

static void quiet(void)
{
	const unsigned int wanted = ended + 1;
	int code;

	AWAIT((code = vmmc_quiet(vmmc, 0, token)) != CADGE_BUSY, "waited in vain for quiet that is BUSY");
	if (code == CADGE_QUEUED)
		await(&ended, wanted, "quiet");
	EXPECT(self, code >= 0, "quiet: %s", cadge_code_name(code));
}

static void refused(struct vmmc_import *to, uint64_t offset_bytes, const void *from, size_t bytes,
		    const char *what)
{
	const uint64_t before = counter("updates"), refusals = counter("updates_refused");
	int code = vmmc_send(to, offset_bytes, from, bytes, VMMC_NOTIFY, token);

	EXPECT(self, code == CADGE_E_REFUSED, "%s: %s, not refused", what, cadge_code_name(code));
	EXPECT(self, counter("updates") == before && counter("updates_refused") == refusals + 1,
	       "%s: it is not counted as refused", what);
}

/* ---- rights and bounds ---- */

struct outside {
	uint64_t offset_bytes, bytes;
};

/* The page between two guard pages is exported: what reaches beyond it by a byte is refused, and nothing is written. */
static void test_outside_is_refused(struct rank *rank)
{
	static const struct outside outside[] = {
		{PAGE, 1},       {PAGE - 1, 2},       {0, PAGE + 1},
		{UINT64_MAX, 1}, {UINT64_MAX - 3, 8}, {8, UINT64_MAX - 3},
	};
	uint8_t *base, *expected;

	begin(rank);
	base = memory(3 * PAGE);
	expected = memory(3 * PAGE);
	if (rank->number == 0) {
		fill(base, 3 * PAGE, 5);
		fill(expected, 3 * PAGE, 5);
		fill(expected + PAGE, PAGE, 6); /* what is allowed */
		export_to(1, base + PAGE, PAGE, CADGE_MAY_WRITE, CADGE_ALL_PEERS, 0);
		export_to(1, base + PAGE, PAGE, CADGE_MAY_READ, CADGE_ALL_PEERS, 0);
		export_to(1, base + PAGE, PAGE, CADGE_MAY_ALL, CADGE_ALL_PEERS, 0);
		barrier_all();
		EXPECT(rank, memcmp(base, expected, 3 * PAGE) == 0, "more was written than is allowed");
		EXPECT(rank, !noticed, "a refused update notified");
	} else {
		struct vmmc_import *import = import_from(0), *read_only;
		const struct key keys[2] = {receive_key(0), receive_key(0)};

		fill(base, 3 * PAGE, 9);
		for (unsigned int i = 0; i < sizeof(outside) / sizeof(*outside); i++)
			refused(import, outside[i].offset_bytes, base, outside[i].bytes,
				"an update outside of the export");
		for (unsigned int i = 0; i < 2; i++) {
			EXPECT(rank, import_as(0, &keys[i], CADGE_MAY_READ, &read_only) == CADGE_DONE,
			       "import to read");
			refused(read_only, 0, base, 8,
				i ? "an update that was not intended" : "an update of what may only be read");
		}
		fill(base, PAGE, 6);
		update(import, 0, base, PAGE, 0);
		update(import, PAGE, base, 0, 0); /* nothing, at the very end */
		quiet();
		barrier_all();
	}
	end();
}

/* A key is for whom it names, for what it allows, and of whom it is. */
static void test_import_is_refused(struct rank *rank)
{
	static const uint32_t beyond[] = {CADGE_MAY_READ, CADGE_MAY_ALL, CADGE_MAY_WRITE | CADGE_MAY_READ};
	struct vmmc_import *import;
	uint8_t *base;

	begin(rank);
	base = memory(PAGE);
	if (rank->number == 0) {
		struct key key;

		export_to(1, base, PAGE, CADGE_MAY_WRITE, 1, 0); /* to rank 1 alone */
		key = receive_key(2);
		EXPECT(rank, import_as(2, &key, CADGE_MAY_WRITE, &import) == CADGE_E_REFUSED,
		       "a key of another exporter, our own, is not refused");
		barrier_all();
		EXPECT(rank, is_filled(base, 100, 3), "an allowed update is not there");
	} else if (rank->number == 1) {
		const struct key key = receive_key(0);
		struct key cut = key;

		say(rank, 2, key.data, key.bytes);
		for (unsigned int i = 0; i < sizeof(beyond) / sizeof(*beyond); i++)
			EXPECT(rank, import_as(0, &key, beyond[i], &import) == CADGE_E_REFUSED,
			       "an import for %u of an export for %u is not refused", beyond[i],
			       CADGE_MAY_WRITE);
		EXPECT(rank, import_as(0, &key, 0, &import) == CADGE_E_ARGUMENT, "an import for nothing");
		while (cut.bytes-- > 0) {
			const int code = import_as(0, &cut, CADGE_MAY_WRITE, &import);

			EXPECT(rank, code == CADGE_E_ARGUMENT, "a key that is cut to %zu bytes: %s",
			       cut.bytes, cadge_code_name(code));
		}
		EXPECT(rank, import_as(0, &key, CADGE_MAY_WRITE, &import) == CADGE_DONE,
		       "an allowed import is refused");
		fill(base, 100, 3);
		update(import, 0, base, 100, 0);
		quiet();
		barrier_all();
	} else {
		const struct key key = receive_key(1);

		EXPECT(rank, import_as(0, &key, CADGE_MAY_WRITE, &import) == CADGE_E_REFUSED,
		       "a key for another peer is not refused");
		EXPECT(rank, counter("imports_refused") == 1, "the refused import is not counted");
		say(rank, 0, key.data, key.bytes);
		barrier_all();
	}
	end();
}

/* ---- notifications ---- */

enum { NOTICES = 120, NOTICE_ROOM = 300000 };

static uint8_t *notice_base;
static struct vmmc_export *notice_export;

static size_t notice_bytes(unsigned int number)
{
	static const size_t lengths[] = {1, 8, 100, 4096, 5000, 65536, 250000};

	return lengths[number % (sizeof(lengths) / sizeof(*lengths))];
}

/* Which of the updates come with a notification. */
static bool notifies(unsigned int number)
{
	return number % 4 != 3;
}

static unsigned int next_notice; /* the update that the next notification has to be of */

static void check_notice(struct vmmc_export *export, uint64_t offset_bytes, uint64_t bytes)
{
	while (!notifies(next_notice))
		next_notice++;
	EXPECT(self,
	       export == notice_export && offset_bytes == next_notice && bytes == notice_bytes(next_notice),
	       "a notification of %llu bytes at %llu where that of update %u was due",
	       (unsigned long long)bytes, (unsigned long long)offset_bytes, next_notice);
	EXPECT(self, is_filled(notice_base + offset_bytes, bytes, next_notice),
	       "update %u was notified before its %llu bytes were there", next_notice,
	       (unsigned long long)bytes);
	next_notice++;
	say(self, 1, "seen", 4);
}

/* One at a time, so that each can be looked at: notified when it is there, once, in order; the others tell nobody. */
static void test_notified_when_there(struct rank *rank)
{
	begin(rank);
	notice_base = memory(NOTICE_ROOM);
	if (rank->number == 0) {
		on_notice = check_notice;
		notice_export = export_to(1, notice_base, NOTICE_ROOM, CADGE_MAY_WRITE, 1, 0);
		await(&noticed, NOTICES - NOTICES / 4, "notifications");
		barrier_all();
		look();
		EXPECT(rank, noticed == NOTICES - NOTICES / 4, "%u notifications came of %d", noticed,
		       NOTICES - NOTICES / 4);
		EXPECT(rank, is_filled(notice_base + NOTICES - 1, notice_bytes(NOTICES - 1), NOTICES - 1),
		       "the last update, without a notification, is not there");
	} else {
		struct vmmc_import *import = import_from(0);

		for (unsigned int i = 0; i < NOTICES; i++) {
			fill(notice_base, notice_bytes(i), i);
			update(import, i, notice_base, notice_bytes(i), notifies(i) ? VMMC_NOTIFY : 0);
			if (notifies(i))
				AWAIT(hears(rank, 0), "notification %u is not seen", i);
		}
		quiet();
		barrier_all();
	}
	end();
}

enum { BURST = 400, BURST_BYTES = 3000 };

static void check_burst(struct vmmc_export *export, uint64_t offset_bytes, uint64_t bytes)
{
	(void)export;
	EXPECT(self,
	       offset_bytes == noticed * (uint64_t)BURST_BYTES && bytes == 1 + noticed * 7 % BURST_BYTES,
	       "notification %u is of %llu bytes at %llu", noticed, (unsigned long long)bytes,
	       (unsigned long long)offset_bytes);
	EXPECT(self, is_filled(notice_base + offset_bytes, bytes, noticed), "update %u is not there",
	       noticed);
}

/* Many under way at a time while nobody looks: BUSY, at last, and none is lost, repeated or out of order. */
static void test_notified_in_order(struct rank *rank)
{
	begin(rank);
	notice_base = memory(BURST * BURST_BYTES);
	if (rank->number == 0) {
		on_notice = check_burst;
		notice_export = export_to(1, notice_base, BURST * BURST_BYTES, CADGE_MAY_WRITE, 1, 0);
		rest_ms(100);
		await(&noticed, BURST, "notifications");
		barrier_all();
		look();
		EXPECT(rank, noticed == BURST, "%u notifications came of %d", noticed, BURST);
	} else {
		struct vmmc_import *import = import_from(0);
		unsigned int queued = 0;

		for (unsigned int i = 0; i < BURST; i++) {
			uint8_t *at = notice_base + i * BURST_BYTES;

			fill(at, 1 + i * 7 % BURST_BYTES, i);
			queued += begin_update(import, i * BURST_BYTES, at, 1 + i * 7 % BURST_BYTES,
					       VMMC_NOTIFY);
		}
		await(&ended, queued, "the ends of updates");
		barrier_all();
	}
	end();
}

/* ---- redirection ---- */

enum { ROOM = 40000 };

static void redirect(struct vmmc_export *export, void *to, size_t bytes, uint64_t copied_bytes)
{
	const unsigned int wanted = redirected + 1;
	int code = vmmc_redirect(export, to, bytes);

	EXPECT(self, code == CADGE_QUEUED, "redirect: %s", cadge_code_name(code));
	EXPECT(self, vmmc_redirect(export, to, bytes) == CADGE_BUSY, "a second one while that is under way");
	await(&redirected, wanted, "redirection");
	EXPECT(self, redirected_code == CADGE_DONE && redirected_bytes == copied_bytes,
	       "redirection: %s, %llu bytes were copied, of %llu that had landed",
	       cadge_code_name(redirected_code), (unsigned long long)redirected_bytes,
	       (unsigned long long)copied_bytes);
}

/* What is sent after a redirection lands there, is copied nowhere, and goes back afterwards. */
static void test_redirected_without_a_copy(struct rank *rank)
{
	uint8_t *base, *to;

	begin(rank);
	base = memory(ROOM);
	to = memory(ROOM);
	if (rank->number == 0) {
		struct vmmc_export *export = export_to(1, base, ROOM, CADGE_MAY_WRITE, 1, VMMC_REDIRECTABLE);

		fill(base, ROOM, 1);
		EXPECT(rank,
		       vmmc_redirect(export, to, ROOM + 1) == CADGE_E_TOO_LARGE &&
			       vmmc_redirect(export, NULL, 0) == CADGE_E_ARGUMENT,
		       "wrong redirections");
		for (unsigned int round = 0; round < 3; round++) {
			memset(to, 0x77, ROOM);
			redirect(export, to, ROOM / 2, 0);
			barrier_all();
			await(&noticed, 2 * round + 1, "a notification");
			EXPECT(rank,
			       is_filled(to + 100, 15000, 10 + round) && to[99] == 0x77 && to[15100] == 0x77,
			       "an update is not in the new buffer");
			EXPECT(rank, is_filled(base, ROOM, 1), "the export's own memory was written");
			redirect(export, NULL, 0, 0);
			barrier_all();
			await(&noticed, 2 * round + 2, "a notification");
			EXPECT(rank, is_filled(base + 100, 15000, 20 + round), "an update is not back home");
			EXPECT(rank, is_filled(to + 100, 15000, 10 + round), "the new buffer was written");
			fill(base, ROOM, 1);
			barrier_all();
			/* What landed at home has to be taken out of account: a redirection would copy it. */
			if (round == 0) {
				redirect(export, to, ROOM, 15000);
				EXPECT(rank, memcmp(to + 100, base + 100, 15000) == 0, "the copy is wrong");
				redirect(export, NULL, 0, 0);
			} else {
				redirect(export, to, 200, 100);
				redirect(export, NULL, 0, 0);
			}
		}
		EXPECT(rank, counter("redirection_copied_bytes") == 15200 && counter("redirections") == 6,
		       "%llu bytes were copied in all",
		       (unsigned long long)counter("redirection_copied_bytes"));
		barrier_all();
	} else {
		struct vmmc_import *import = import_from(0);

		for (unsigned int round = 0; round < 3; round++) {
			barrier_all();
			fill(base, 15000, 10 + round);
			refused(import, ROOM / 2 - 1, base, 2, "an update beyond the new buffer");
			update(import, 100, base, 15000, VMMC_NOTIFY);
			barrier_all();
			fill(base, 15000, 20 + round);
			update(import, 100, base, 15000, VMMC_NOTIFY);
			barrier_all();
		}
		EXPECT(rank, counter("updates_redirected") == 3, "%llu updates were redirected",
		       (unsigned long long)counter("updates_redirected"));
		barrier_all();
	}
	end();
}

static const struct outside pieces[] = {
	{0, 10}, {10, 500}, {2000, 1}, {9000, 3000}, {11000, 2000}, {1999, 1}, {39000, 1000}, {300, 50},
};

enum { PIECES = sizeof(pieces) / sizeof(*pieces), PIECES_BYTES = 510 + 2 + 4000 + 1000 };

/* The content that `to` has to have when what had landed is copied, and what is sent meanwhile elsewhere has come or not. */
static void expect_copied(const uint8_t *to, uint8_t *expected)
{
	fill(expected, ROOM, 2);
	for (unsigned int i = 0; i < PIECES; i++)
		fill(expected + pieces[i].offset_bytes, pieces[i].bytes, 30 + i);
	memcpy(expected + 20000, to + 20000, 500);
	EXPECT(self, memcmp(to, expected, ROOM) == 0, "the new buffer is not what had landed");
}

static void export_and_redirect_late(struct rank *rank, uint8_t *base, uint8_t *to, uint8_t *expected)
{
	struct vmmc_export *export = export_to(1, base, ROOM, CADGE_MAY_WRITE, 1, VMMC_REDIRECTABLE);

	barrier_all(); /* all pieces are there */
	fill(to, ROOM, 2);
	EXPECT(rank, vmmc_redirect(export, to, ROOM) == CADGE_QUEUED, "redirect");
	EXPECT(rank, vmmc_redirect(export, to, ROOM) == CADGE_BUSY, "a second one while that is under way");
	say(rank, 1, "begun", 5);
	hear(rank, 1, expected, PAGE); /* it has heard of it, and we look at nothing */
	await(&redirected, 1, "redirection");
	EXPECT(rank, redirected_code == CADGE_DONE && redirected_bytes == PIECES_BYTES,
	       "%s, %llu bytes were copied, of %d that had landed", cadge_code_name(redirected_code),
	       (unsigned long long)redirected_bytes, PIECES_BYTES);
	EXPECT(rank, counter("redirection_copied_bytes") == PIECES_BYTES, "the copy is not counted");
	expect_copied(to, expected);
	barrier_all(); /* the importer goes on */
	await(&noticed, 2, "notifications");
	fill(expected + 20000, 500, 60);
	fill(expected, 10, 70);
	EXPECT(rank, memcmp(to, expected, ROOM) == 0, "what came after it is not in its place");
	barrier_all();
}

/* What had landed when it was redirected, and nothing else, is copied; what comes then is newer, also on the same place. */
static void test_late_redirection_copies(struct rank *rank)
{
	const uint64_t until_ns = deadline();
	struct vmmc_import *import;
	uint8_t *base, *to, *expected;
	unsigned int queued = 0;
	int code;

	begin(rank);
	base = memory(ROOM);
	to = memory(ROOM);
	expected = memory(ROOM);
	if (rank->number == 0) {
		export_and_redirect_late(rank, base, to, expected);
		end();
		return;
	}
	import = import_from(0);
	for (unsigned int i = 0; i < PIECES; i++) {
		fill(base, pieces[i].bytes, 30 + i);
		update(import, pieces[i].offset_bytes, base, pieces[i].bytes, 0);
	}
	quiet();
	barrier_all();
	hear(rank, 0, expected, PAGE);
	fill(base, 10, 30); /* as it is there: until we hear of the redirection it lands at home */
	while ((code = vmmc_send(import, 0, base, 10, 0, token)) != CADGE_BUSY) {
		EXPECT(rank, code >= 0, "an update: %s", cadge_code_name(code));
		queued += code == CADGE_QUEUED;
		look();
		EXPECT(rank, clock_ns() < until_ns, "an update of what is copied is never BUSY");
	}
	fill(to, 500, 60);
	queued += begin_update(import, 20000, to, 500, VMMC_NOTIFY);
	EXPECT(rank, counter("updates_redirected") == 1, "an update elsewhere did not go to the new buffer");
	say(rank, 0, "heard", 5);
	await(&ended, queued, "the ends of updates");
	barrier_all();
	fill(base, 10, 70);
	update(import, 0, base, 10, VMMC_NOTIFY);
	barrier_all();
	end();
}

/* More pieces than can be told apart: those that landed are all there. */
static void test_many_pieces(struct rank *rank)
{
	enum { MANY = 60, STEP = 500 };
	uint8_t *base, *to;

	begin(rank);
	base = memory(ROOM);
	to = memory(ROOM);
	if (rank->number == 0) {
		struct vmmc_export *export = export_to(1, base, ROOM, CADGE_MAY_WRITE, 1, VMMC_REDIRECTABLE);

		barrier_all();
		EXPECT(rank, vmmc_redirect(export, to, ROOM) == CADGE_QUEUED, "redirect");
		await(&redirected, 1, "redirection");
		EXPECT(rank, redirected_bytes >= MANY * 20 && redirected_bytes <= MANY * STEP,
		       "%llu bytes were copied", (unsigned long long)redirected_bytes);
		for (unsigned int i = 0; i < MANY; i++)
			EXPECT(rank, is_filled(to + i * STEP, 20, i), "piece %u was not copied", i);
	} else {
		struct vmmc_import *import = import_from(0);

		for (unsigned int i = 0; i < MANY; i++) {
			const unsigned int at = i * 37 % MANY;

			fill(base, 20, at);
			update(import, at * STEP, base, 20, 0);
		}
		quiet();
		barrier_all();
	}
	end();
}

enum { REDIRECTIONS = 60, WORDS = 64 };

static uint64_t newest_of(const uint8_t *base, const uint8_t *to, unsigned int word)
{
	const uint64_t here = cadge_load64(base + 8 * word), there = cadge_load64(to + 8 * word);

	return here > there ? here : there;
}

/* To and fro, while updates come: no word that had come is missing in the new buffer. */
static void redirect_often(struct rank *rank, struct vmmc_export *export, const uint8_t *base, uint8_t *to)
{
	uint64_t newest[WORDS] = {0};

	for (unsigned int i = 0; i < REDIRECTIONS; i++) {
		EXPECT(rank, vmmc_redirect(export, to, PAGE) == CADGE_QUEUED, "redirect");
		await(&redirected, 2 * i + 1, "redirection");
		EXPECT(rank, redirected_code == CADGE_DONE, "redirection: %s",
		       cadge_code_name(redirected_code));
		for (unsigned int word = 0; word < WORDS; word++)
			EXPECT(rank, cadge_load64(to + 8 * word) >= newest[word],
			       "redirection %u: word %u went back from %llu to %llu", i, word,
			       (unsigned long long)newest[word],
			       (unsigned long long)cadge_load64(to + 8 * word));
		rest_ms(i % 3);
		look();
		EXPECT(rank, vmmc_redirect(export, NULL, 0) == CADGE_QUEUED, "back");
		await(&redirected, 2 * i + 2, "the way back");
		for (unsigned int word = 0; word < WORDS; word++)
			newest[word] = newest_of(base, to, word);
	}
}

/* A stream of updates over one place, with redirections at any time: the last of each word is the last one. */
static void test_redirection_loses_nothing(struct rank *rank)
{
	uint8_t *base, *to;

	begin(rank);
	base = memory(PAGE);
	to = memory(PAGE);
	if (rank->number == 0) {
		struct vmmc_export *export = export_to(1, base, PAGE, CADGE_MAY_WRITE, 1, VMMC_REDIRECTABLE);
		uint64_t last;

		redirect_often(rank, export, base, to);
		barrier_all();
		barrier_all();
		last = newest_of(base, to, WORDS);
		EXPECT(rank, last > WORDS, "only %llu updates came", (unsigned long long)last);
		for (unsigned int word = 0; word < WORDS; word++)
			EXPECT(rank, newest_of(base, to, word) + WORDS > last,
			       "word %u has %llu, and the last update was %llu", word,
			       (unsigned long long)newest_of(base, to, word), (unsigned long long)last);
	} else {
		struct vmmc_import *import = import_from(0);
		uint64_t number = 0;

		do {
			cadge_store64(base, ++number);
			update(import, 8 * (number % WORDS), base, 8, 0);
			quiet(); /* else an older one may come last */
			look();
		} while (!hears(rank, 0));
		say(rank, 0, "met", 3);
		update(import, 8 * WORDS, base, 8, 0);
		quiet();
		barrier_all();
	}
	end();
}

/* ---- at every length ---- */

#define GUARDED_BYTES ((size_t)150000)

static uint8_t *guarded, *source, *elsewhere;
static struct vmmc_export *guarded_export;
static struct vmmc_import *to_all, *to_read, *to_one; /* for any update; for reading alone; of one attempt */

static void update_filled(struct vmmc_import *to, size_t bytes, uint32_t seed, uint32_t flags)
{
	fill(source, bytes, seed);
	update(to, 0, source, bytes, flags);
	quiet();
}

static void write_to_all(size_t bytes, uint32_t seed)
{
	update_filled(to_all, bytes, seed, 0);
}

static void write_to_one(size_t bytes, uint32_t seed)
{
	update_filled(to_one, bytes, seed, 0);
}

static void notify_one(size_t bytes, uint32_t seed)
{
	update_filled(to_one, bytes, seed, VMMC_NOTIFY);
}

static void try_outside(size_t bytes, uint32_t seed)
{
	fill(source, bytes, seed);
	refused(to_all, GUARDED_BYTES - bytes + 1, source, bytes, "an update that ends a byte too far");
}

static void try_to_read(size_t bytes, uint32_t seed)
{
	fill(source, bytes, seed);
	refused(to_read, 0, source, bytes, "an update of what may only be read");
}

static void export_for_one(size_t bytes)
{
	(void)bytes;
	guarded_export = export_to(1, guarded, GUARDED_BYTES, CADGE_MAY_WRITE, 1, VMMC_REDIRECTABLE);
}

static void learn_one(size_t bytes)
{
	(void)bytes;
	to_one = import_from(0);
}

static void withdraw(size_t bytes)
{
	(void)bytes;
	vmmc_unexport(guarded_export);
}

static void try_withdrawn(size_t bytes, uint32_t seed)
{
	AWAIT(vmmc_send(to_one, 0, source, 0, 0, token) != CADGE_DONE, "the end of an export is not told");
	fill(source, bytes, seed);
	refused(to_one, 0, source, bytes, "an update after the end of its export");
	vmmc_unimport(to_one);
}

static void redirect_to_less(size_t bytes)
{
	const unsigned int wanted = redirected + 1;

	EXPECT(self, vmmc_redirect(guarded_export, elsewhere, bytes) == CADGE_QUEUED, "redirect");
	await(&redirected, wanted, "redirection");
	memset(elsewhere, 0x55, GUARDED_BYTES);
}

/* The redirected export is as long as `elsewhere` is there. */
static void try_redirected(size_t bytes, uint32_t seed)
{
	fill(source, bytes, seed);
	AWAIT(vmmc_send(to_one, 1, source, bytes, 0, token) != CADGE_BUSY, "what had landed is never copied");
	refused(to_one, 1, source, bytes, "an update beyond where its export is redirected to");
	vmmc_unimport(to_one);
}

static void come_back(size_t bytes)
{
	(void)bytes;
	for (size_t i = 0; i < GUARDED_BYTES; i++)
		EXPECT(self, elsewhere[i] == 0x55, "byte %zu of where it is redirected to was written", i);
	redirect(guarded_export, NULL, 0, 0);
	vmmc_unexport(guarded_export);
}

/* What is not allowed, or not any more, leaves the memory as it was, however long it is and with a notification or without. */
static void test_refused_at_every_length(struct rank *rank)
{
	static const size_t switches[] = {8, 64, PAGE, 8192, 65536, 131072, 0};
	static const struct guard_case cases[] = {
		{.name = "outside", .write = write_to_all, .attempt = try_outside},
		{.name = "read only", .write = write_to_all, .attempt = try_to_read},
		{.name = "withdrawn",
		 .allow = export_for_one,
		 .learn = learn_one,
		 .write = write_to_one,
		 .forbid = withdraw,
		 .attempt = try_withdrawn},
		{.name = "redirected",
		 .allow = export_for_one,
		 .learn = learn_one,
		 .write = notify_one,
		 .forbid = redirect_to_less,
		 .attempt = try_redirected,
		 .after = come_back},
	};
	struct guard guard = {.bytes = GUARDED_BYTES, .switches = switches};

	begin(rank);
	source = memory(GUARDED_BYTES);
	if (rank->number == 0) {
		guard.memory = guarded = memory(GUARDED_BYTES);
		elsewhere = memory(GUARDED_BYTES);
		export_to(1, guarded, GUARDED_BYTES, CADGE_MAY_WRITE, CADGE_ALL_PEERS, 0);
		export_to(1, guarded, GUARDED_BYTES, CADGE_MAY_READ, CADGE_ALL_PEERS, 0);
	} else {
		const struct key keys[2] = {receive_key(0), receive_key(0)};

		EXPECT(rank,
		       import_as(0, &keys[0], CADGE_MAY_WRITE, &to_all) == CADGE_DONE &&
			       import_as(0, &keys[1], CADGE_MAY_READ, &to_read) == CADGE_DONE,
		       "import");
	}
	guard_try(&guard, cases, sizeof(cases) / sizeof(*cases));
	end();
}

/* ---- translation ---- */

static void expect_pages(uint64_t hits, uint64_t misses, uint64_t evictions, const char *what)
{
	static uint64_t before[3];
	const uint64_t now[3] = {counter("translation_hits"), counter("translation_misses"),
				 counter("translation_evictions")};

	EXPECT(self,
	       now[0] - before[0] == hits && now[1] - before[1] == misses && now[2] - before[2] == evictions,
	       "%s: %llu hits, %llu misses, %llu evictions", what, (unsigned long long)(now[0] - before[0]),
	       (unsigned long long)(now[1] - before[1]), (unsigned long long)(now[2] - before[2]));
	memcpy(before, now, sizeof(before));
}

/* A cache of eight pages. */
static void test_translation_counts(struct rank *rank)
{
	uint8_t *base;

	begin(rank);
	base = memory(32 * PAGE);
	if (rank->number == 0) {
		export_to(1, base, 32 * PAGE, CADGE_MAY_WRITE, 1, 0);
	} else {
		struct vmmc_import *import = import_from(0);

		update(import, 0, base + 100, 8, 0);
		expect_pages(0, 1, 0, "the first page");
		update(import, 0, base + 200, PAGE - 200, 0);
		expect_pages(1, 0, 0, "the same page");
		update(import, 0, base + 200, 0, 0);
		expect_pages(0, 0, 0, "no byte");
		update(import, 0, base + PAGE - 1, 2, 0);
		expect_pages(1, 1, 0, "over the edge of a page");
		update(import, 0, base, 8 * PAGE, 0);
		expect_pages(2, 6, 0, "as many as there is room for");
		update(import, 0, base + 3 * PAGE + 5, 2 * PAGE, 0);
		expect_pages(3, 0, 0, "three of them");
		update(import, 0, base + 8 * PAGE, PAGE, 0);
		expect_pages(0, 1, 1, "one more, in the place of the first");
		update(import, 0, base + PAGE, PAGE, 0);
		expect_pages(1, 0, 0, "the second is still there");
		update(import, 0, base, 1, 0);
		expect_pages(0, 1, 1, "the first is not");
		update(import, 0, base, 20 * PAGE, 0);
		expect_pages(8, 12, 12, "more than there is room for");
		update(import, 0, base + 12 * PAGE, 8 * PAGE, 0);
		expect_pages(8, 0, 0, "the last eight of them");
		update(import, 0, base, PAGE, 0);
		expect_pages(0, 1, 1, "the first of them");
		quiet();
	}
	end();
}

/* ---- ends ---- */

/* After the end of an export updates are refused and write nothing, and its key is of no use; others go on. */
static void test_unexported(struct rank *rank)
{
	uint8_t *base;

	begin(rank);
	base = memory(2 * PAGE);
	if (rank->number == 0) {
		struct vmmc_export *export = export_to(1, base, PAGE, CADGE_MAY_WRITE, CADGE_ALL_PEERS, 0);

		export_to(1, base + PAGE, PAGE, CADGE_MAY_WRITE, 1, 0);
		barrier_all();
		EXPECT(rank, is_filled(base, 50, 1) && is_filled(base + PAGE, 50, 1),
		       "updates are not there");
		vmmc_unexport(export);
		fill(base, PAGE, 9);
		barrier_all();
		barrier_all();
		EXPECT(rank, is_filled(base, PAGE, 9), "a refused update wrote");
		export_to(1, base, PAGE, CADGE_MAY_WRITE, CADGE_ALL_PEERS, 0); /* in its place */
		barrier_all();
		EXPECT(rank, is_filled(base + PAGE, 50, 2), "the other export does not go on");
		EXPECT(rank, is_filled(base, 50, 3), "the new export in the same place does not work");
		EXPECT(rank, !noticed, "a refused update notified");
	} else {
		const struct key key = receive_key(0);
		struct vmmc_import *import, *other = import_from(0), *again;

		EXPECT(rank, import_as(0, &key, CADGE_MAY_WRITE, &import) == CADGE_DONE, "import");
		fill(base, 50, 1);
		update(import, 0, base, 50, 0);
		update(other, 0, base, 50, 0);
		quiet();
		barrier_all();
		barrier_all();
		AWAIT(vmmc_send(import, 0, base, 0, 0, token) != CADGE_DONE,
		      "waited in vain for the end of the export");
		fill(base, 50, 2);
		refused(import, 0, base, 50, "an update after the end");
		EXPECT(rank, import_as(0, &key, CADGE_MAY_WRITE, &again) == CADGE_E_REFUSED,
		       "an import after the end is not refused");
		barrier_all();
		update(other, 0, base, 50, 0);
		again = import_from(0);
		fill(base, 50, 3);
		update(again, 0, base, 50, 0);
		quiet();
		vmmc_unimport(import);
		vmmc_unimport(again);
		barrier_all();
	}
	end();
}

/* Lives of a link: keys for a peer end with its life, keys for all do not; what was under way ends with it. */
static void test_new_life(struct rank *rank)
{
	const uint32_t other = 1 - rank->number;
	struct vmmc_export *all = NULL, *one = NULL;
	struct vmmc_import *import;
	struct key keys[2] = {{0}};
	uint8_t *base, *to;

	begin(rank);
	base = memory(2 * PAGE);
	to = memory(PAGE);
	if (rank->number == 0)
		all = export_to(1, base, PAGE, CADGE_MAY_WRITE, CADGE_ALL_PEERS, 0);
	else
		keys[0] = receive_key(0);
	for (unsigned int life = 0; life < 4; life++) {
		if (rank->number == 0) {
			one = export_to(1, base + PAGE, PAGE, CADGE_MAY_WRITE, 1, VMMC_REDIRECTABLE);
			await(&noticed, 2 * (life + 1), "notifications");
			EXPECT(rank, is_filled(base, 200, life) && is_filled(base + PAGE, 200, life),
			       "updates of life %u are not there", life);
			EXPECT(rank, vmmc_redirect(one, to, PAGE) == CADGE_QUEUED, "redirect");
		} else {
			if (life)
				EXPECT(rank,
				       import_as(0, &keys[1], CADGE_MAY_WRITE, &import) == CADGE_E_REFUSED,
				       "a key for this peer is of use in its next life");
			keys[1] = receive_key(0);
			fill(base, 200, life);
			for (unsigned int i = 0; i < 2; i++) {
				EXPECT(rank, import_as(0, &keys[i], CADGE_MAY_WRITE, &import) == CADGE_DONE,
				       "import in life %u", life);
				update(import, 0, base, 200, VMMC_NOTIFY);
			}
		}
		barrier_all();
		EXPECT(rank, vmmc_disconnect(vmmc, other) == CADGE_DONE, "disconnect");
		if (rank->number == 0) {
			EXPECT(rank, vmmc_redirect(one, to, PAGE) != CADGE_QUEUED, "redirect without a peer");
			vmmc_unexport(one);
		}
		connect_to(other);
	}
	if (all)
		vmmc_unexport(all);
	end();
}

/* ---- what no peer of ours sends ---- */

static void send_control(uint32_t kind, uint32_t slot, uint32_t generation, uint64_t offset_bytes,
			 uint64_t bytes, size_t length)
{
	struct cadge_link *link = vmmc->links[0].wire;
	uint8_t *packet;

	AWAIT((packet = cadge_wire_take(link)), "waited in vain for a packet");
	memset(packet, 0xff, length);
	if (length >= HEAD_BYTES) {
		cadge_store32(packet, kind);
		cadge_store32(packet + 4, slot);
		cadge_store32(packet + 8, generation);
		cadge_store64(packet + 16, offset_bytes);
		cadge_store64(packet + 24, bytes);
	}
	AWAIT(cadge_wire_send(link, packet, length) != CADGE_BUSY, "waited in vain for a packet to leave");
}

/* Notifications of what is not exported, not for this peer, or outside; answers to nothing; pieces outside; other bytes. */
static void test_strange_letters(struct rank *rank)
{
	uint8_t *base;

	begin(rank);
	base = memory(PAGE);
	if (rank->number == 0) {
		export_to(1, base, PAGE, CADGE_MAY_WRITE, CADGE_ALL_PEERS, 0); /* slot 0, generation 1 */
		export_to(1, base, PAGE, CADGE_MAY_WRITE, 2, 0);               /* slot 1: not for rank 1 */
		export_to(1, base, PAGE, CADGE_MAY_READ, 1, 0); /* slot 2: nobody writes there */
		barrier_all();
		await(&noticed, 1, "the only good letter");
		EXPECT(rank, noticed == 1, "a strange notification was told");
		EXPECT(rank, counter("letters_refused") == 17, "%llu letters were refused",
		       (unsigned long long)counter("letters_refused"));
		barrier_all();
	} else {
		for (unsigned int i = 0; i < 3; i++)
			receive_key(0);
		barrier_all();
		send_control(0, 0, 0, 0, 0, 1);
		send_control(0, 0, 0, 0, 0, HEAD_BYTES - 1);
		send_control(CONTROL_NOTIFY, 0, 2, 0, 1, HEAD_BYTES);
		send_control(CONTROL_NOTIFY, 1, 1, 0, 1, HEAD_BYTES);
		send_control(CONTROL_NOTIFY, 2, 1, 0, 1, HEAD_BYTES);
		send_control(CONTROL_NOTIFY, 3, 0, 0, 1, HEAD_BYTES);
		send_control(CONTROL_NOTIFY, UINT32_MAX, 1, 0, 1, HEAD_BYTES);
		send_control(CONTROL_NOTIFY, 0, 1, PAGE, 1, HEAD_BYTES);
		send_control(CONTROL_NOTIFY, 0, 1, UINT64_MAX, 2, HEAD_BYTES);
		send_control(CONTROL_NOTIFY, 0, 1, 8, UINT64_MAX - 3, HEAD_BYTES);
		send_control(CONTROL_UNEXPORT, VMMC_EXPORTS_MAX, 1, 0, 0, HEAD_BYTES);
		send_control(CONTROL_REDIRECT_ACK, 0, 1, 0, 0, HEAD_BYTES + 32);
		send_control(CONTROL_REDIRECT_DONE, 5, 1, 0, 0, HEAD_BYTES);
		send_control(CONTROL_RESTORE, 5, 1, 0, 0, HEAD_BYTES);
		send_control(CONTROL_RESTORE_ACK, 0, 1, 0, 0, HEAD_BYTES);
		send_control(77, 0, 1, 0, 0, HEAD_BYTES);
		send_control(0, 0, 0, 0, 0, HEAD_BYTES + 100);
		send_control(CONTROL_REDIRECT, 6, 1, 0, 0,
			     HEAD_BYTES + 3); /* is answered: it cannot be followed */
		send_control(CONTROL_NOTIFY, 0, 1, 0, 1, HEAD_BYTES);
		AWAIT(counter("letters_refused"), "no answer to a letter comes");
		barrier_all();
	}
	end();
}

int on_wire_conformance(int argc, char **argv)
{
	static const struct rank_test tests[] = {
		{.name = "outside_is_refused", .run = test_outside_is_refused, .ranks = 2},
		{.name = "refused_at_every_length", .run = test_refused_at_every_length, .ranks = 2},
		{.name = "import_is_refused", .run = test_import_is_refused, .ranks = 3},
		{.name = "notified_when_there", .run = test_notified_when_there, .ranks = 2},
		{.name = "notified_in_order", .run = test_notified_in_order, .ranks = 2},
		{.name = "redirected_without_a_copy", .run = test_redirected_without_a_copy, .ranks = 2},
		{.name = "late_redirection_copies", .run = test_late_redirection_copies, .ranks = 2},
		{.name = "many_pieces", .run = test_many_pieces, .ranks = 2},
		{.name = "redirection_loses_nothing", .run = test_redirection_loses_nothing, .ranks = 2},
		{.name = "translation_counts", .run = test_translation_counts, .ranks = 2},
		{.name = "unexported", .run = test_unexported, .ranks = 2},
		{.name = "new_life", .run = test_new_life, .ranks = 2},
		{.name = "strange_letters", .run = test_strange_letters, .ranks = 2},
	};

	return ranks_run_styles(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
