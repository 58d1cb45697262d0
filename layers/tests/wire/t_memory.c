/* SPDX-License-Identifier: BSD-3-Clause */
/* Remote memory: what quiet promises, rights and bounds, and who carries out what. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "cadge/check.h"
#include "tests/wire/wire_tests.h"

#define PAGE_BYTES   ((size_t)4096)
#define REGION_BYTES ((size_t)1 << 20)

static const uint8_t *arena; /* of the rank that is written to */

static enum cadge_keep all_there(struct end *end, uint32_t peer, void *data, size_t bytes)
{
	const uint64_t offset_bytes = cadge_load64(data), length = cadge_load64((uint8_t *)data + 8);

	(void)peer, (void)bytes;
	EXPECT(end->rank,
	       is_filled(arena + offset_bytes, length, (uint32_t)cadge_load64((uint8_t *)data + 16)),
	       "%llu bytes that were put before are not there", (unsigned long long)length);
	return CADGE_TAKEN;
}

static void tell(struct end *end, uint32_t peer, uint64_t offset_bytes, uint64_t length, uint64_t seed)
{
	uint8_t *packet;

	while (!(packet = cadge_wire_take(end->peer[peer].link)))
		end_poll_once(end);
	cadge_store64(packet, offset_bytes);
	cadge_store64(packet + 8, length);
	cadge_store64(packet + 16, seed);
	while (cadge_wire_send(end->peer[peer].link, packet, 24) == CADGE_BUSY)
		end_poll_once(end);
}

/* Writes, and tells by a packet when quiet has ended: the other finds all that was written. Reads it back as well. */
void test_put_quiet_packet(struct rank *rank)
{
	static const size_t lengths[] = {1, 8, 63, 64, 1000, 4096, 10000, 65536, 262144, REGION_BYTES};
	enum { LENGTHS = sizeof(lengths) / sizeof(*lengths), ROUNDS = 10 };
	struct cadge_region *region = NULL;
	struct cadge_remote *remote = NULL;
	uint8_t *base, *back;
	struct end end;

	end_pair(&end, rank, CADGE_WIRE_REMOTE);
	base = cadge_wire_alloc(end.wire, REGION_BYTES);
	back = cadge_wire_alloc(end.wire, REGION_BYTES);
	EXPECT(rank, base && back && (uintptr_t)base % PAGE_BYTES == 0 && !base[0] && !base[REGION_BYTES - 1],
	       "alloc gave %p", (void *)base);
	arena = base;
	end.packet = all_there;
	if (rank->number == 1)
		region = end_expose(&end, base, REGION_BYTES, CADGE_MAY_WRITE | CADGE_MAY_READ, 0);
	else
		remote = end_attach(&end, 1);
	for (unsigned int i = 0; i < LENGTHS * ROUNDS; i++) {
		const size_t bytes = lengths[i % LENGTHS];
		const uint64_t offset_bytes = (REGION_BYTES - bytes) * (i / LENGTHS) / ROUNDS;

		if (rank->number == 0) {
			fill(base, bytes, i);
			end_finish(&end, end_put(&end, base, bytes, remote, offset_bytes, 1), "a put");
			end_finish(&end, end_quiet(&end, 1), "quiet");
			tell(&end, 1, offset_bytes, bytes, i);
			end_finish(&end,
				   cadge_wire_get(end.peer[1].link, back, bytes, remote, offset_bytes, 9),
				   "a get");
			EXPECT(rank, is_filled(back, bytes, i), "%zu bytes read back differ", bytes);
		} else {
			end_await(&end, &end.peer[0].packets, i + 1, "what was told");
		}
		end_barrier(&end, 0, 2);
	}
	if (remote)
		cadge_wire_detach(remote);
	if (region)
		cadge_wire_unexpose(end.wire, region);
	cadge_wire_free(end.wire, base, REGION_BYTES);
	cadge_wire_free(end.wire, back, REGION_BYTES);
	end_close(&end);
}

/* Two senders; several puts, then a word, or a packet, without quiet: nothing of an earlier put is missing. */
void test_puts_in_order(struct rank *rank)
{
	enum {
		ROUNDS = 400,
		PARTS = 5,
		PART_BYTES = 20000,
		FLAG = PARTS * PART_BYTES,
		AREA_BYTES = FLAG + 64
	};
	struct cadge_remote *remote;
	uint8_t *base[RANKS_MAX];
	struct end end;

	end_open(&end, rank, CADGE_WIRE_REMOTE);
	if (!end.facts->puts_in_order)
		rank_skip(rank, "this wire promises no order of puts");
	for (unsigned int other = 0; other < 3; other++)
		if (other != rank->number && (other == 0 || rank->number == 0)) {
			base[other] = cadge_wire_alloc(end.wire, AREA_BYTES);
			end_connect(&end, other, other);
			end_up(&end, other);
			if (rank->number == 0)
				end_expose(&end, base[other], AREA_BYTES, CADGE_MAY_ALL, other);
		}
	for (unsigned int other = 1; rank->number == 0 && other < 3; other++)
		end_barrier(&end, other, 1);
	if (rank->number == 0) {
		for (unsigned int i = 0; i < 2 * ROUNDS; i++) {
			const unsigned int from = 1 + i % 2;
			const uint64_t round = i / 2 + 1, until_ns = clock_ns() + UINT64_C(10000000000);
			const uint8_t *flag = base[from] + FLAG;

			if (round % 2)
				end_await(&end, &end.peer[from].packets, (round + 1) / 2, "a packet");
			else
				while (cadge_load64(flag) != round) {
					end_poll_once(&end);
					EXPECT(rank, clock_ns() < until_ns, "the word does not come");
				}
			for (unsigned int part = 0; part < PARTS; part++)
				EXPECT(rank,
				       is_filled(base[from] + part * PART_BYTES,
						 1 + round * 977 * (part + 1) % PART_BYTES,
						 (uint32_t)round * PARTS + part),
				       "round %llu of rank %u: an earlier put is not there",
				       (unsigned long long)round, from);
			say(rank, from, "seen", 4);
		}
		end_close(&end);
		return;
	}
	remote = end_attach(&end, 0);
	end_barrier(&end, 0, 1);
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		const unsigned int before = end.ended;
		unsigned int queued = 0;
		uint8_t word[8];

		for (unsigned int part = 0; part < PARTS; part++) {
			const size_t bytes = 1 + round * 977 * (part + 1) % PART_BYTES;

			fill(base[0] + part * PART_BYTES, bytes, (uint32_t)round * PARTS + part);
			queued += end_put(&end, base[0] + part * PART_BYTES, bytes, remote, part * PART_BYTES,
					  0) == CADGE_QUEUED;
		}
		cadge_store64(word, round);
		if (round % 2)
			end_send(&end, 0, 8, 0);
		else
			queued += end_put(&end, word, sizeof(word), remote, FLAG, 0) == CADGE_QUEUED;
		while (end.ended < before + queued)
			end_poll_once(&end);
		end_receive(&end, 0);
	}
	end_close(&end);
}

static bool is_stopped(pid_t pid)
{
	char path[64], line[512] = "", *after;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	if (!file)
		return false;
	after = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
	fclose(file);
	return after && (after[2] == 'T' || after[2] == 't');
}

/* Begins the operation that `right` stands for while the target is stopped. Returns whether it also ended then. */
static bool ends_while_stopped(struct end *end, const struct cadge_remote *remote, uint32_t right,
			       uint8_t *local, uint64_t *before, int *left_out)
{
	struct cadge_link *link = end->peer[1].link;
	const unsigned int ms = cadge_wire_reach(remote, right) == CADGE_PROGRESS_DIRECT ? 3000 : 150;
	int code;

	*left_out = 0;
	if (right == CADGE_MAY_READ) {
		code = cadge_wire_get(link, local, 64, remote, 0, 1);
	} else if (right == CADGE_MAY_ATOMIC) {
		code = cadge_wire_fetch_add(link, 1, before, remote, 128, 1);
	} else {
		const unsigned int ended = end->ended;

		code = end_put(end, local, 64, remote, 0, 1);
		*left_out = code == CADGE_QUEUED;
		code = end_quiet(end, 1);
		if (code == CADGE_DONE)
			return true;
		*left_out += code == CADGE_QUEUED;
		for (const uint64_t until_ns = clock_ns() + ms * UINT64_C(1000000);
		     end->ended < ended + (unsigned int)*left_out && clock_ns() < until_ns;)
			end_poll_once(end);
		*left_out -= (int)(end->ended - ended);
		return *left_out == 0;
	}
	if (end_finishes(end, code, ms))
		return true;
	*left_out = 1;
	return false;
}

/* Whether memory that is not the wire's own can be exposed: MPI's window has only what MPI allocated. */
static bool exposes_other(struct end *end, void *base)
{
	uint8_t key[2048];
	struct cadge_blob_out out = {.at = key, .room_bytes = sizeof(key), .ok = true};
	struct cadge_region *region;
	const int code = cadge_wire_expose(end->wire, base, PAGE_BYTES, CADGE_MAY_ALL, &out, &region);

	if (code == CADGE_DONE)
		cadge_wire_unexpose(end->wire, region);
	EXPECT(end->rank, code == CADGE_DONE || (code == CADGE_E_ARGUMENT && !end->facts->any_memory),
	       "expose of other memory: %s", cadge_code_name(code));
	return code == CADGE_DONE;
}

/* DIRECT: ends, and is there, while the target is stopped. LIBRARY: ends only when the target looks. */
void test_reach_proved(struct rank *rank)
{
	static const uint32_t rights[] = {CADGE_MAY_WRITE, CADGE_MAY_READ, CADGE_MAY_ATOMIC};
	struct cadge_remote *remote[2];
	uint8_t *base[2], local[64];
	const uint32_t other = 1 - rank->number;
	unsigned int memories;
	struct end end;
	pid_t pid = getpid();

	end_pair(&end, rank, CADGE_WIRE_REMOTE | CADGE_WIRE_ATOMICS);
	base[0] = cadge_wire_alloc(end.wire, PAGE_BYTES);
	base[1] = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(rank, base[0] && base[1] != MAP_FAILED, "no memory");
	memories = exposes_other(&end, base[1]) ? 2 : 1;
	for (unsigned int i = 0; i < memories; i++)
		if (rank->number == 1)
			end_expose(&end, base[i], PAGE_BYTES, CADGE_MAY_ALL, 0);
		else
			remote[i] = end_attach(&end, 1);
	if (rank->number == 1)
		say(rank, 0, &pid, sizeof(pid));
	else
		hear(rank, 1, &pid, sizeof(pid));
	end_barrier(&end, 0, 2);
	for (unsigned int i = 0; i < 3 * memories; i++) {
		const uint32_t right = rights[i % 3], seed = 100 + i;
		enum cadge_progress reach;
		uint64_t before = 0;
		bool stopped_end;
		int left;

		if (rank->number == 1) { /* does not look until it has checked */
			bool direct;

			memset(base[i / 3], 0x11, PAGE_BYTES);
			say(rank, 0, "set", 3);
			hear(rank, 0, &direct, sizeof(direct));
			EXPECT(rank, !direct || right != CADGE_MAY_WRITE || is_filled(base[i / 3], 64, seed),
			       "a put is not there although quiet has ended");
			EXPECT(rank, !direct || right != CADGE_MAY_ATOMIC || base[i / 3][128] == 0x12,
			       "an atomic operation has ended and is not there");
			end_barrier(&end, 0, 2);
			continue;
		}
		hear(rank, other, local, sizeof(local));
		reach = cadge_wire_reach(remote[i / 3], right);
		EXPECT(rank, kill(pid, SIGSTOP) == 0, "stop");
		while (!is_stopped(pid))
			rest_ms(1);
		fill(local, sizeof(local), seed);
		stopped_end = ends_while_stopped(&end, remote[i / 3], right, local, &before, &left);
		EXPECT(rank, kill(pid, SIGCONT) == 0, "go on");
		say(rank, other, &stopped_end, sizeof(stopped_end));
		EXPECT(rank, stopped_end == (reach == CADGE_PROGRESS_DIRECT),
		       "%s on %s memory: it says %s, and %s while the target was stopped",
		       right == CADGE_MAY_WRITE  ? "put and quiet"
		       : right == CADGE_MAY_READ ? "get"
						 : "fetch_add",
		       i < 3 ? "its own" : "other", reach == CADGE_PROGRESS_DIRECT ? "DIRECT" : "LIBRARY",
		       stopped_end ? "ended" : "did not end");
		for (const unsigned int wanted = end.ended + (unsigned int)left; end.ended < wanted;)
			end_poll_once(&end);
		EXPECT(rank, !end.failed, "an operation failed");
		EXPECT(rank, right != CADGE_MAY_READ || (local[0] == 0x11 && local[63] == 0x11),
		       "get read something else");
		EXPECT(rank, right != CADGE_MAY_ATOMIC || before == UINT64_C(0x1111111111111111),
		       "fetch_add fetched something else");
		end_barrier(&end, 0, 2);
	}
	if (rank->number == 0 && end.facts->any_memory)
		EXPECT(rank,
		       cadge_wire_reach(remote[0], CADGE_MAY_WRITE) ==
			       cadge_wire_reach(remote[1], CADGE_MAY_WRITE),
		       "it says `any_memory`, and other memory is not as direct");
	end_barrier(&end, 0, 2);
	end_close(&end);
}

/* A word is swapped only where it holds what was expected; and each operation tells what stood there before. */
void test_swaps_and_adds(struct rank *rank)
{
	const uint32_t other = 1 - rank->number;
	struct cadge_remote *remote;
	struct cadge_link *link;
	uint64_t *words, before = 0;
	struct end end;

	end_pair(&end, rank, CADGE_WIRE_REMOTE | CADGE_WIRE_ATOMICS);
	words = cadge_wire_alloc(end.wire, PAGE_BYTES);
	EXPECT(rank, words, "no memory");
	words[1] = 41;
	if (rank->number == 1) {
		end_expose(&end, words, PAGE_BYTES, CADGE_MAY_ALL, 0);
		end_barrier(&end, 0, 2);
		EXPECT(rank,
		       words[1] == (end.facts->swaps  ? 7
				    : end.facts->adds ? 42
						      : 41),
		       "the word is %llu", (unsigned long long)words[1]);
		end_barrier(&end, 0, 2);
		end_close(&end);
		return;
	}
	remote = end_attach(&end, 1);
	link = end.peer[other].link;
	if (end.facts->adds) {
		end_finish(&end, cadge_wire_fetch_add(link, 1, &before, remote, 8, 1), "fetch_add");
		EXPECT(rank, before == 41, "fetch_add fetched %llu", (unsigned long long)before);
	}
	if (end.facts->swaps) {
		const uint64_t now = end.facts->adds ? 42 : 41;

		end_finish(&end, cadge_wire_compare_swap(link, 40, 6, &before, remote, 8, 2), "compare_swap");
		EXPECT(rank, before == now, "a swap that does not fit fetched %llu",
		       (unsigned long long)before);
		end_finish(&end, cadge_wire_compare_swap(link, now, 7, &before, remote, 8, 3),
			   "compare_swap");
		EXPECT(rank, before == now, "compare_swap fetched %llu", (unsigned long long)before);
		EXPECT(rank,
		       cadge_wire_compare_swap(link, 7, 8, &before, remote, 12, 4) == CADGE_E_ARGUMENT &&
			       cadge_wire_compare_swap(link, 7, 8, &before, remote, PAGE_BYTES, 5) ==
				       CADGE_E_REFUSED,
		       "a word that is not aligned, or is outside, was taken");
	} else {
		EXPECT(rank,
		       cadge_wire_compare_swap(link, 41, 7, &before, remote, 8, 2) == CADGE_E_UNSUPPORTED,
		       "compare_swap is taken, and facts have none");
	}
	EXPECT(rank, !end.failed, "an operation failed");
	end_barrier(&end, 0, 2);
	end_barrier(&end, 0, 2);
	end_close(&end);
}

static uint64_t mapped_pages(const struct rank *rank)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	EXPECT(rank, file && fscanf(file, "%lu", &pages) == 1, "what is mapped is not told");
	fclose(file);
	return pages;
}

/* What was allocated, exposed and not freed goes with close. */
void test_memory_goes_with_close(struct rank *rank)
{
	enum { TIMES = 20, BYTES = 8 << 20, FEW = 3 };
	uint64_t before = 0;

	for (unsigned int i = 0; i < TIMES; i++) {
		struct end end;
		uint8_t key[1024];
		struct cadge_blob_out blob = {.at = key, .room_bytes = sizeof(key), .ok = true};
		struct cadge_region *region;
		void *base;

		end_open(&end, rank, CADGE_WIRE_REMOTE);
		base = cadge_wire_alloc(end.wire, BYTES);
		EXPECT(rank, base, "no memory");
		EXPECT(rank,
		       cadge_wire_expose(end.wire, base, BYTES, CADGE_MAY_ALL, &blob, &region) == CADGE_DONE,
		       "expose");
		cadge_wire_close(end.wire);
		if (i == FEW) /* libraries keep some things for the next time */
			before = mapped_pages(rank);
	}
	EXPECT(rank, mapped_pages(rank) < before + (TIMES - FEW) / 2 * (BYTES / PAGE_BYTES),
	       "memory of contexts that were closed is still mapped");
}
