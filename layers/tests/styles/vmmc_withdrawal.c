/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of an export while its importer writes: vmmc_may_be_written says how long, and no byte changes after that. Rank 0
 * exports, rank 1 imports.
 */
#include <string.h>

#include "tests/styles/frame.h"
#include "vmmc/vmmc.h"

enum { PAGE = 4096, REGION = 96 * PAGE, SEED = 5, ROUNDS = 12 };

static struct vmmc *vmmc;
static unsigned int wanted, ended;
static uint8_t *source;

static void on_sent(void *arg, uint32_t peer, struct vmmc_token token, int code)
{
	(void)arg, (void)peer, (void)token;
	EXPECT(self, code == CADGE_DONE, "sent: %s", cadge_code_name(code));
	ended++;
}

static void progress_once(void)
{
	const int count = vmmc_progress(vmmc, 1);

	EXPECT(self, count >= 0, "progress: %s", cadge_code_name(count));
	give_way(count);
}

FRAME_CALLS(vmmc, progress_once);

static uint8_t *memory(void)
{
	uint8_t *base = vmmc_alloc(vmmc, REGION);

	EXPECT(self, base, "no memory");
	return base;
}

static void begin(struct rank *rank)
{
	const struct vmmc_config config = {
		.operations = 8,
		.notes = 4,
		.cache_pages = 8,
		.events = {.up = frame_up, .down = frame_down, .sent = on_sent},
	};
	const struct cadge_open_args args = rank_open_args(rank, 8);

	frame_begin(rank, &frame_calls);
	EXPECT(rank, vmmc_open(&args, &config, &vmmc) == CADGE_DONE, "open: %s", args.error);
	connect_all();
	if (rank->number) {
		source = memory();
		fill(source, REGION, SEED);
	}
}

static void end(void)
{
	barrier_all();
	vmmc_close(vmmc);
}

static struct vmmc_export *export_it(uint8_t *base, uint32_t peer)
{
	uint8_t key[1024];
	struct cadge_blob_out out = {.at = key, .room_bytes = sizeof(key), .ok = true};
	struct vmmc_export *export = NULL;

	EXPECT(self, vmmc_export(vmmc, base, REGION, CADGE_MAY_WRITE, peer, 0, &out, &export) == CADGE_DONE,
	       "export");
	say(self, 1, key, out.used_bytes);
	return export;
}

static struct vmmc_import *import_it(void)
{
	uint8_t key[1024];
	struct cadge_blob_in in = {.at = key, .ok = true};
	struct vmmc_import *import = NULL;

	in.left_bytes = hear(self, 0, key, sizeof(key));
	EXPECT(self, vmmc_import(vmmc, 0, &in, CADGE_MAY_WRITE, &import) == CADGE_DONE, "import");
	return import;
}

static int update(struct vmmc_import *to, size_t offset_bytes, size_t bytes)
{
	int code;

	AWAIT((code = vmmc_send(to, offset_bytes, source, bytes, 0, (struct vmmc_token){.number = 1})) !=
		      CADGE_BUSY,
	      "an update stays busy");
	wanted += code == CADGE_QUEUED;
	return code;
}

/* Updates of any length until one is refused. */
static void update_until_refused(struct vmmc_import *to, unsigned int round)
{
	unsigned int updates = 0;
	int code;

	while ((code = update(to, (size_t)updates % 3 * PAGE, (size_t)1 << (updates + round) % 18)) >= 0)
		if (++updates % 5 == 0)
			look();
	EXPECT(self, code == CADGE_E_REFUSED && updates, "update %u: %s", updates, cadge_code_name(code));
	AWAIT(ended >= wanted, "an update does not end");
	vmmc_unimport(to);
}

static void test_importer_does_not_look(struct rank *rank)
{
	begin(rank);
	if (rank->number == 0) {
		uint8_t *base = memory(), copy[PAGE];
		struct vmmc_export *export = export_it(base, CADGE_ALL_PEERS);

		barrier_all();
		meet(rank, 0, 2);
		vmmc_unexport(export);
		meet(rank, 0, 2);
		for (const uint64_t until_ns = deadline(); !hears(rank, 1);) {
			EXPECT(rank, vmmc_may_be_written(vmmc, base + REGION - 1, 1),
			       "the importer has not looked");
			EXPECT(rank, !vmmc_may_be_written(vmmc, base + REGION, 1), "what was never exported");
			EXPECT(rank, clock_ns() < until_ns, "the importer does not come");
			look();
		}
		AWAIT(!vmmc_may_be_written(vmmc, base, REGION), "it is never over");
		EXPECT(rank, is_filled(base, PAGE, SEED), "what was written before does not lie there");
		memcpy(copy, base, PAGE);
		barrier_all();
		EXPECT(rank, memcmp(copy, base, PAGE) == 0, "it was written to");
		EXPECT(rank, counter("withdrawals") == 1 && counter("withdrawals_answered") == 1,
		       "not counted");
	} else {
		struct vmmc_import *import = import_it();

		barrier_all();
		meet(rank, 0, 2);
		meet(rank, 0, 2);
		const int code = vmmc_send(import, 0, source, PAGE, 0, (struct vmmc_token){.number = 1});

		EXPECT(rank, code == CADGE_DONE || code == CADGE_QUEUED, "an update: %s",
		       cadge_code_name(code));
		wanted += code == CADGE_QUEUED;
		rest_ms(50);
		say(rank, 0, "looks", 5);
		AWAIT(vmmc_send(import, 0, source, 0, 0, (struct vmmc_token){.number = 1}) == CADGE_E_REFUSED,
		      "nothing is heard of the end");
		AWAIT(ended >= wanted, "the update does not end");
		barrier_all();
	}
	end();
}

static void test_updates_under_way(struct rank *rank)
{
	static uint8_t copy[REGION];
	uint8_t *base = NULL;

	begin(rank);
	if (rank->number == 0)
		base = memory();
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct vmmc_export *export;

		if (rank->number) {
			update_until_refused(import_it(), round);
			barrier_all();
			continue;
		}
		memset(base, 0, REGION);
		export = export_it(base, round % 2 ? 1 : CADGE_ALL_PEERS);
		AWAIT(base[0], "nothing is written");
		vmmc_unexport(export);
		AWAIT(!vmmc_may_be_written(vmmc, base, REGION), "it is never over");
		memcpy(copy, base, REGION);
		poll_for_ms(5);
		barrier_all();
		EXPECT(rank, memcmp(copy, base, REGION) == 0,
		       "round %u: it was written to when that was over", round);
	}
	end();
}

/* Memory is freed while it is written to: it goes when that is over. */
static void test_freed(struct rank *rank)
{
	begin(rank);
	for (unsigned int round = 1; round <= ROUNDS; round++) {
		if (rank->number) {
			update_until_refused(import_it(), round);
		} else {
			uint8_t *base = memory();
			struct vmmc_export *export = export_it(base, CADGE_ALL_PEERS);

			AWAIT(base[0] || base[1], "nothing is written");
			vmmc_unexport(export);
			vmmc_free(vmmc, base, REGION);
			AWAIT(counter("withdrawals_answered") == round, "it is never over");
		}
		barrier_all();
	}
	end();
}

/* An importer that is gone is not waited for. */
static void test_importer_is_gone(struct rank *rank)
{
	begin(rank);
	if (rank->number == 0) {
		uint8_t *base = memory();
		struct vmmc_export *export = export_it(base, 1);

		barrier_all();
		meet(rank, 0, 2);
		vmmc_unexport(export);
		EXPECT(rank, vmmc_may_be_written(vmmc, base, REGION), "nobody has looked");
		EXPECT(rank, vmmc_disconnect(vmmc, 1) == CADGE_DONE, "disconnect");
		EXPECT(rank, !vmmc_may_be_written(vmmc, base, REGION), "nobody is there");
	} else {
		import_it();
		barrier_all();
		meet(rank, 0, 2);
		EXPECT(rank, vmmc_disconnect(vmmc, 0) == CADGE_DONE, "disconnect");
	}
	connect_to(1 - rank->number);
	end();
}

int on_wire_conformance(int argc, char **argv)
{
	static const struct rank_test tests[] = {
		{.name = "importer_does_not_look", .run = test_importer_does_not_look, .ranks = 2},
		{.name = "updates_under_way", .run = test_updates_under_way, .ranks = 2},
		{.name = "freed", .run = test_freed, .ranks = 2},
		{.name = "importer_is_gone", .run = test_importer_is_gone, .ranks = 2},
	};

	return ranks_run_styles(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
