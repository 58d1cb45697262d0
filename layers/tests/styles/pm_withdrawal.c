/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that PM withdraws is written to no more, whatever the length, the path and the way of withdrawal: a write is refused,
 * says why, and the memory is as before. Rank 0 owns memory, rank 1 holds handles.
 */
#include <signal.h>
#include <string.h>

#include "pm/pm.h"
#include "tests/styles/frame.h"

enum { PAGE = 4096, REGION = 96 * PAGE, PINS = 256, SEED = 5 };

static struct pm *pm;
static unsigned int wanted, ended;
static bool may_go_down, went_down;
static uint8_t handle[1024];
static size_t handle_bytes;

static void on_ended(void *arg, uint32_t peer, uint64_t token, int code)
{
	(void)arg, (void)peer, (void)token;
	EXPECT(self, code == CADGE_DONE || may_go_down, "ended: %s", cadge_code_name(code));
	ended++;
}

static void on_down(void *arg, uint32_t peer, int code)
{
	went_down = true;
	if (!may_go_down)
		frame_down(arg, peer, code);
}

static void progress_once(void)
{
	struct pm_packet *packet;
	int code = pm_receive(pm, 0, &packet);

	EXPECT(self, code == CADGE_BUSY, "receive: %s", cadge_code_name(code));
	give_way(0);
}

FRAME_CALLS(pm, progress_once);

static void begin(struct rank *rank, uint32_t packet_bytes)
{
	const struct pm_config config = {
		.packet_bytes = packet_bytes,
		.window = 16,
		.buffers = 8,
		.channels = 1,
		.operations = 4,
		.quota_bytes = {REGION, PINS * PAGE},
		.events = {.up = frame_up, .down = on_down, .ended = on_ended},
	};
	const struct cadge_open_args args = rank_open_args(rank, 16);

	frame_begin(rank, &frame_calls);
	EXPECT(rank, pm_open(&args, &config, &pm) == CADGE_DONE, "open: %s", args.error);
	connect_all();
}

static void end(void)
{
	barrier_all();
	pm_close(pm);
}

/* ---- the owner ---- */

static uint8_t *alloc(size_t bytes)
{
	uint8_t *memory = pm_alloc(pm, bytes);

	EXPECT(self, memory, "no memory");
	return memory;
}

/* Locks it, once what was withdrawn has left, and gives its handle to rank 1. */
static struct pm_pin *grant(uint8_t *memory, size_t bytes)
{
	struct cadge_blob_out out = {.at = handle, .room_bytes = sizeof(handle), .ok = true};
	struct pm_pin *pin = NULL;
	int code;

	AWAIT((code = pm_mlock(pm, PM_RECEIVE, memory, bytes, &pin)) != CADGE_BUSY, "it does not leave");
	EXPECT(self, code == CADGE_DONE, "lock: %s", cadge_code_name(code));
	EXPECT(self, pm_handle(pin, &out) == CADGE_DONE, "handle");
	say(self, 1, handle, out.used_bytes);
	return pin;
}

/* ---- the holder ---- */

static int attach_what_is_kept(struct pm_remote **remote_out)
{
	struct cadge_blob_in in = {.at = handle, .left_bytes = handle_bytes, .ok = true};

	return pm_attach(pm, 0, &in, remote_out);
}

static struct pm_remote *attach(void)
{
	struct pm_remote *remote = NULL;
	int code;

	handle_bytes = hear(self, 0, handle, sizeof(handle));
	code = attach_what_is_kept(&remote);
	EXPECT(self, code == CADGE_DONE, "attach: %s", cadge_code_name(code));
	return remote;
}

static uint8_t *content(size_t bytes, uint32_t seed)
{
	static uint8_t content[REGION];

	fill(content, bytes, seed);
	return content;
}

/* What pm_write says at last. */
static int write_one(const struct pm_remote *remote, uint64_t offset_bytes, size_t bytes, uint32_t seed)
{
	const uint8_t *from = content(bytes, seed);
	int code;

	AWAIT((code = pm_write(pm, 0, remote, offset_bytes, from, bytes, 1)) != CADGE_BUSY,
	      "a write of %zu bytes stays busy", bytes);
	wanted += code == CADGE_QUEUED;
	return code;
}

static void quiet(void)
{
	int code;

	AWAIT((code = pm_quiet(pm, 0, 2)) != CADGE_BUSY, "quiet stays busy");
	EXPECT(self, code >= 0, "quiet: %s", cadge_code_name(code));
	wanted += code == CADGE_QUEUED;
	AWAIT(ended >= wanted, "quiet does not end");
}

static void expect_written(const struct pm_remote *remote, uint64_t offset_bytes, size_t bytes, uint32_t seed)
{
	const int code = write_one(remote, offset_bytes, bytes, seed);

	EXPECT(self, code >= 0, "a write of %zu bytes: %s", bytes, cadge_code_name(code));
}

/* ---- at every length ---- */

static uint8_t *guarded, *wanting; /* of the owner; `wanting` needs all of the quota */
static struct pm_pin *guarded_pin;
static struct pm_remote *to_guarded;

static void grant_guarded(size_t bytes)
{
	(void)bytes;
	guarded_pin = grant(guarded, REGION);
}

static void learn(size_t bytes)
{
	(void)bytes;
	to_guarded = attach();
}

static void write_to_guarded(size_t bytes, uint32_t seed)
{
	expect_written(to_guarded, 0, bytes, seed);
	quiet();
}

static void forget(size_t bytes)
{
	int code;

	EXPECT(self, pm_forget(pm, guarded, REGION) == CADGE_E_ARGUMENT, "locked memory was forgotten");
	pm_munlock(pm, guarded_pin);
	AWAIT((code = pm_forget(pm, guarded + bytes - 1, 1)) != CADGE_BUSY, "it does not leave");
	EXPECT(self, code == CADGE_DONE, "forget: %s", cadge_code_name(code));
}

static void withdraw(size_t bytes)
{
	(void)bytes;
	pm_withdraw(pm, guarded_pin);
	AWAIT(pm_forget(pm, guarded, 1) == CADGE_DONE, "it does not leave");
}

/* Other memory needs its quota. */
static void need_quota(size_t bytes)
{
	const uint64_t evictions = counter("pin_receive_evictions");
	struct pm_pin *pin;

	(void)bytes;
	pm_munlock(pm, guarded_pin);
	AWAIT(pm_mlock(pm, PM_RECEIVE, wanting, PINS * PAGE, &pin) == CADGE_DONE, "it does not leave");
	EXPECT(self, counter("pin_receive_evictions") == evictions + 1, "evictions");
	pm_withdraw(pm, pin);
}

/* All places of the cache are needed. */
static void need_places(size_t bytes)
{
	struct pm_pin *pins[PINS];

	(void)bytes;
	pm_munlock(pm, guarded_pin);
	for (unsigned int i = 0; i < PINS; i++)
		AWAIT(pm_mlock(pm, PM_RECEIVE, wanting + i, 1, &pins[i]) == CADGE_DONE, "it does not leave");
	for (unsigned int i = 0; i < PINS; i++)
		pm_withdraw(pm, pins[i]);
}

static void expect_refused(uint64_t offset_bytes, size_t bytes, uint32_t seed)
{
	const uint64_t refused = counter("writes_refused");
	const int code = write_one(to_guarded, offset_bytes, bytes, seed);

	EXPECT(self, code == CADGE_E_REFUSED, "a write of %zu bytes: %s", bytes, cadge_code_name(code));
	EXPECT(self, counter("writes_refused") == refused + 1, "it was not counted");
	quiet();
}

static void try_withdrawn(size_t bytes, uint32_t seed)
{
	struct pm_remote *again;

	expect_refused(0, bytes, seed);
	expect_refused(REGION - bytes, bytes, seed);
	EXPECT(self, pm_is_withdrawn(to_guarded), "nothing says why");
	EXPECT(self, attach_what_is_kept(&again) == CADGE_E_REFUSED, "an old handle was attached");
	pm_detach(to_guarded);
}

static void try_outside(size_t bytes, uint32_t seed)
{
	expect_refused(REGION - bytes + 1, bytes, seed);
	expect_refused(UINT64_MAX - bytes + 1, bytes, seed);
	EXPECT(self, !pm_is_withdrawn(to_guarded), "it was not withdrawn");
	pm_detach(to_guarded);
}

static void test_refused_at_every_length(struct rank *rank)
{
	static const size_t switches[] = {8, 64, 1024, PAGE, 8192, 16384, 65536, 131072, 262144, 0};
#define WITHDRAWN_BY(way)                                                                                    \
	{.name = #way,                                                                                       \
	 .allow = grant_guarded,                                                                             \
	 .learn = learn,                                                                                     \
	 .write = write_to_guarded,                                                                          \
	 .forbid = way,                                                                                      \
	 .attempt = try_withdrawn}
	static const struct guard_case cases[] = {
		WITHDRAWN_BY(forget),
		WITHDRAWN_BY(withdraw),
		WITHDRAWN_BY(need_quota),
		WITHDRAWN_BY(need_places),
		{.name = "outside",
		 .allow = grant_guarded,
		 .learn = learn,
		 .write = write_to_guarded,
		 .attempt = try_outside,
		 .after = withdraw},
	};
	enum { CASES = sizeof(cases) / sizeof(*cases) };
	struct guard guard = {.bytes = REGION, .switches = switches};
	size_t lengths[GUARD_LENGTHS_MAX];
	uint64_t times;

	begin(rank, 1024);
	if (rank->number == 0) {
		guard.memory = guarded = alloc(REGION);
		wanting = alloc(PINS * PAGE);
	}
	guard_try(&guard, cases, CASES);
	times = (uint64_t)CASES * guard_lengths(&guard, lengths);
	EXPECT(rank,
	       rank->number
		       ? counter("withdrawals_heard") == times
		       : counter("pin_withdrawals") == times && counter("pin_withdrawals_answered") == times,
	       "withdrawals were not counted");
	end();
}

/* ---- in all circumstances ---- */

/* Until the holder looks its writes land, and the owner is told that it is not over; after that none does. */
static void test_holder_does_not_look(struct rank *rank)
{
	begin(rank, 1024);
	if (!rank->number) {
		uint8_t *memory = alloc(REGION), copy[PAGE];
		struct pm_pin *pin = grant(memory, REGION);

		barrier_all();
		meet(rank, 0, 2);
		pm_munlock(pm, pin);
		EXPECT(rank, pm_forget(pm, memory, REGION) == CADGE_BUSY, "nobody looked, and it has left");
		meet(rank, 0, 2);
		for (const uint64_t until_ns = deadline(); !hears(rank, 1);) {
			EXPECT(rank, pm_forget(pm, memory, REGION) == CADGE_BUSY, "it has left too early");
			EXPECT(rank,
			       pm_mlock(pm, PM_RECEIVE, memory, REGION, &pin) == CADGE_BUSY &&
				       pm_mlock(pm, PM_RECEIVE, memory + 1, 1, &pin) == CADGE_BUSY,
			       "memory was locked that an earlier holder may write to");
			EXPECT(rank, clock_ns() < until_ns, "the holder does not come");
			look();
		}
		AWAIT(pm_forget(pm, memory, REGION) == CADGE_DONE, "it does not leave");
		EXPECT(rank, is_filled(memory, PAGE, SEED), "what was written before does not lie there");
		memcpy(copy, memory, sizeof(copy));
		barrier_all();
		EXPECT(rank, memcmp(copy, memory, sizeof(copy)) == 0, "it was written to");
	} else {
		struct pm_remote *remote = attach();

		barrier_all();
		meet(rank, 0, 2);
		meet(rank, 0, 2);
		const int code = pm_write(pm, 0, remote, 0, content(PAGE, SEED), PAGE, 1);

		EXPECT(rank, code >= 0 && code != CADGE_BUSY, "a write: %s", cadge_code_name(code));
		wanted += code == CADGE_QUEUED;
		rest_ms(50);
		say(rank, 0, "looks", 5);
		AWAIT(pm_is_withdrawn(remote), "nothing is heard of it");
		AWAIT(ended >= wanted, "the write does not end");
		EXPECT(rank, pm_write(pm, 0, remote, 0, content(PAGE, SEED), PAGE, 1) == CADGE_E_REFUSED,
		       "a write");
		barrier_all();
	}
	end();
}

/* The holder writes all the time, pieces of any length. */
static void test_writes_under_way(struct rank *rank)
{
	enum { ROUNDS = 12 };
	static uint8_t copy[REGION];

	begin(rank, 1024);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		if (!rank->number) {
			static uint8_t *memory;
			struct pm_pin *pin;

			if (!memory)
				memory = alloc(REGION);
			memset(memory, 0, REGION);
			pin = grant(memory, REGION);
			AWAIT(memory[0], "nothing is written");
			pm_munlock(pm, pin);
			AWAIT(pm_forget(pm, memory, REGION) == CADGE_DONE, "it does not leave");
			memcpy(copy, memory, REGION);
			poll_for_ms(5);
			barrier_all();
			EXPECT(rank, memcmp(copy, memory, REGION) == 0,
			       "round %u: it was written to after it had left", round);
		} else {
			struct pm_remote *remote = attach();
			unsigned int writes = 0;

			while (write_one(remote, (uint64_t)writes % 3 * PAGE,
					 (size_t)1 << (writes + round) % 18, SEED) >= 0)
				if (++writes % 5 == 0)
					look();
			EXPECT(rank, writes, "nothing was written");
			quiet();
			pm_detach(remote);
			barrier_all();
		}
	}
	end();
}

/* The holder dies while it is asked. Where nothing tells, the owner ends the link. */
static void test_holder_dies(struct rank *rank)
{
	may_go_down = true;
	begin(rank, 1024);
	if (!rank->number) {
		uint8_t *memory = alloc(REGION);
		struct pm_pin *pin = grant(memory, REGION);

		barrier_all();
		pm_withdraw(pm, pin);
		rank_sees_death(rank, 1);
		poll_for_ms(300);
		if (!went_down)
			EXPECT(rank, pm_disconnect(pm, 1) == CADGE_DONE, "disconnect");
		EXPECT(rank, pm_forget(pm, memory, REGION) == CADGE_DONE, "the dead is waited for");
		EXPECT(rank, counter("pin_withdrawals_answered") == 1, "it was not counted");
		pm_close(pm);
	} else {
		expect_written(attach(), 0, REGION, SEED);
		quiet();
		barrier_all();
		rank_dies(rank, 0);
	}
}

/* What was withdrawn between two lives of a link is refused in the next, from a table of many small packets. */
static void test_withdrawn_between_lives(struct rank *rank)
{
	const uint32_t other = 1 - rank->number;
	static uint8_t handles[PINS][256];
	static struct pm_pin *pins[PINS];
	size_t bytes[PINS];
	uint8_t *memory = NULL;

	begin(rank, PM_PACKET_BYTES_MIN);
	if (!rank->number)
		memory = alloc(PINS * PAGE);
	for (unsigned int i = 0; i < PINS; i++)
		if (!rank->number)
			pins[i] = grant(memory + i * PAGE, PAGE);
		else
			bytes[i] = hear(rank, 0, handles[i], sizeof(handles[i]));
	barrier_all();
	EXPECT(rank, pm_disconnect(pm, other) == CADGE_DONE, "disconnect");
	for (unsigned int i = 0; !rank->number && i < PINS; i += 2) {
		pm_munlock(pm, pins[i]);
		EXPECT(rank, pm_forget(pm, memory + i * PAGE, PAGE) == CADGE_DONE, "nobody is connected");
	}
	connect_to(other);
	for (unsigned int i = 0; rank->number && i < PINS; i++) {
		struct cadge_blob_in in = {.at = handles[i], .left_bytes = bytes[i], .ok = true};
		struct pm_remote *remote;
		const int code = pm_attach(pm, 0, &in, &remote);

		EXPECT(rank, code == (i % 2 ? CADGE_DONE : CADGE_E_REFUSED), "attach %u: %s", i,
		       cadge_code_name(code));
		if (i % 2)
			expect_written(remote, 0, PAGE, SEED);
	}
	if (rank->number)
		quiet();
	barrier_all();
	for (unsigned int i = 0; !rank->number && i < PINS; i++)
		EXPECT(rank, is_filled(memory + i * PAGE, PAGE, SEED) == (i % 2 == 1), "page %u", i);
	end();
}

/* Memory is freed while it is written to: it stays until the holder has answered, and goes then. */
static void test_freed(struct rank *rank)
{
	enum { ROUNDS = 20 };

	begin(rank, 1024);
	for (unsigned int round = 1; round <= ROUNDS; round++) {
		if (!rank->number) {
			uint8_t *memory = alloc(REGION);
			struct pm_pin *pin = grant(memory, REGION);

			barrier_all();
			pm_munlock(pm, pin);
			pm_free(pm, memory, REGION);
			AWAIT(counter("pin_withdrawals_answered") == round, "it does not leave");
		} else {
			struct pm_remote *remote = attach();

			barrier_all();
			while (write_one(remote, round, (size_t)1 << (round % 18), SEED) >= 0)
				look();
			quiet();
			if (round % 2)
				pm_detach(remote);
		}
	}
	end();
}

int on_wire_conformance(int argc, char **argv)
{
	static const struct rank_test tests[] = {
		{.name = "refused_at_every_length", .run = test_refused_at_every_length, .ranks = 2},
		{.name = "holder_does_not_look", .run = test_holder_does_not_look, .ranks = 2},
		{.name = "writes_under_way", .run = test_writes_under_way, .ranks = 2},
		{.name = "holder_dies", .run = test_holder_dies, .ranks = 2, .dies = 2},
		{.name = "withdrawn_between_lives", .run = test_withdrawn_between_lives, .ranks = 2},
		{.name = "freed", .run = test_freed, .ranks = 2},
	};

	return ranks_run_styles(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
