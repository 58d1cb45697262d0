/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets: order, exactly once, the balance of take, drop and send, packets that are kept, sleep. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/wire/wire_tests.h"

enum { MESSAGES = 6000, HEAD_BYTES = 8 };

static size_t length_of(const struct end *end, uint64_t number)
{
	const size_t most_bytes = end->facts->packet_bytes_max;

	switch (number % 8) {
	case 0: return HEAD_BYTES;
	case 1: return most_bytes;
	case 2: return HEAD_BYTES + number % 97;
	case 3: return most_bytes - number % 11;
	default: return HEAD_BYTES + number * 2654435761u % (most_bytes / 8);
	}
}

static enum cadge_keep in_order(struct end *end, uint32_t peer, void *data, size_t bytes)
{
	const uint64_t wanted = end->peer[peer].packets - 1;
	const uint64_t number = cadge_load64(data);

	EXPECT(end->rank, number == wanted, "packet %llu came in place of %llu", (unsigned long long)number,
	       (unsigned long long)wanted);
	EXPECT(end->rank, bytes == length_of(end, number), "packet %llu has %zu bytes",
	       (unsigned long long)number, bytes);
	EXPECT(end->rank,
	       is_filled((const uint8_t *)data + HEAD_BYTES, bytes - HEAD_BYTES, (uint32_t)number * 2 + peer),
	       "packet %llu of %zu bytes is not what was sent", (unsigned long long)number, bytes);
	end->number += (uintptr_t)data % 8 != 0;
	return CADGE_TAKEN;
}

/* Both directions at once, all lengths; nobody waits for the other. */
void test_order_and_once(struct rank *rank)
{
	const uint32_t other = 1 - rank->number;
	struct end end;
	uint64_t sent = 0;

	end_open(&end, rank, 0);
	end.packet = in_order;
	end_connect(&end, other, other);
	end_up(&end, other);
	while (sent < MESSAGES) {
		uint8_t *packet = cadge_wire_take(end.peer[other].link);
		const size_t bytes = length_of(&end, sent);
		int code = CADGE_BUSY;

		if (packet) {
			cadge_store64(packet, sent);
			fill(packet + HEAD_BYTES, bytes - HEAD_BYTES, (uint32_t)sent * 2 + rank->number);
			code = cadge_wire_send(end.peer[other].link, packet, bytes);
			EXPECT(rank, code == CADGE_DONE || code == CADGE_BUSY, "send: %d", code);
			if (code == CADGE_BUSY)
				cadge_wire_drop(end.peer[other].link, packet);
		}
		sent += code == CADGE_DONE;
		if (code == CADGE_BUSY || sent % 7 == 0)
			end_poll_once(&end);
	}
	end_await(&end, &end.peer[other].packets, MESSAGES, "packets");
	end_barrier(&end, 0, 2);
	for (unsigned int i = 0; i < 1000; i++)
		end_poll_once(&end);
	EXPECT(rank, end.peer[other].packets == MESSAGES, "a packet came twice");
	end_close(&end);
}

/* Takes all packets that there are into `packets`. */
static unsigned int take_all(struct end *end, uint32_t peer, void **packets)
{
	unsigned int count = 0;
	void *packet;

	while ((packet = cadge_wire_take(end->peer[peer].link))) {
		EXPECT(end->rank, count < PACKETS, "more packets than there are");
		packets[count++] = packet;
	}
	return count;
}

void test_take_drop_send(struct rank *rank)
{
	const uint32_t other = 1 - rank->number;
	void *packets[PACKETS];
	struct end end;

	end_pair(&end, rank, 0);
	meet(rank, 0, 2);
	for (unsigned int round = 0; rank->number == 0 && round < 20; round++) {
		unsigned int count = 0, sent = 0;
		const uint64_t until_ns = clock_ns() + UINT64_C(10000000000);

		/* Sent ones come back when the other has looked. */
		for (;;) {
			count = take_all(&end, other, packets);
			if (count == PACKETS)
				break;
			for (unsigned int i = 0; i < count; i++)
				cadge_wire_drop(end.peer[other].link, packets[i]);
			end_poll_once(&end);
			EXPECT(rank, clock_ns() < until_ns, "only %u of %u packets are free", count, PACKETS);
		}
		for (unsigned int i = 0; i < PACKETS; i++) {
			const size_t bytes = i % 3 ? end.facts->packet_bytes_max : 100;

			if (i % 4 == 3) {
				cadge_wire_drop(end.peer[other].link, packets[i]);
				continue;
			}
			fill(packets[i], bytes, i);
			while (cadge_wire_send(end.peer[other].link, packets[i], bytes) == CADGE_BUSY)
				end_poll_once(&end);
			sent++;
		}
		say(rank, other, &sent, sizeof(sent));
	}
	for (unsigned int round = 0, sent; rank->number == 1 && round < 20; round++) {
		hear(rank, other, &sent, sizeof(sent));
		end.number += sent;
		end_await(&end, &end.peer[other].packets, end.number, "packets");
	}
	end_barrier(&end, 0, 2);
	EXPECT(rank, rank->number == 0 || end.peer[other].packets == end.number, "a packet came twice");
	end_close(&end);
}

static enum cadge_keep as_held(struct end *end, uint32_t peer, void *data, size_t bytes)
{
	EXPECT(end->rank, is_filled(data, bytes, (uint32_t)bytes), "packet %llu of peer %u was changed",
	       (unsigned long long)end->peer[peer].packets, peer);
	return CADGE_TAKEN;
}

/*
 * A packet that is held comes as often as it is sent, as it was filled once; dropped while the library may have it, it is
 * free only when the library has not.
 */
void test_held_sent_again(struct rank *rank)
{
	enum { TIMES = 50 };
	const uint32_t other = 1 - rank->number;
	void *packets[PACKETS];
	struct end end;

	end_pair(&end, rank, 0);
	end.packet = as_held;
	end_barrier(&end, 0, 2);
	for (unsigned int round = 0; rank->number == 0 && round < 2; round++) {
		const size_t bytes = round ? end.facts->packet_bytes_max : 64;
		const uint64_t until_ns = clock_ns() + UINT64_C(10000000000);
		void *packet = cadge_wire_take(end.peer[other].link);
		unsigned int others;

		EXPECT(rank, packet, "no packet");
		fill(packet, bytes, (uint32_t)bytes);
		for (unsigned int sent = 0; sent < TIMES;) {
			int code = cadge_wire_send_held(end.peer[other].link, packet, bytes);

			EXPECT(rank, code == CADGE_DONE || code == CADGE_BUSY, "send_held: %d", code);
			sent += code == CADGE_DONE;
			if (code == CADGE_BUSY)
				end_poll_once(&end);
			EXPECT(rank, clock_ns() < until_ns, "a held packet is not sent again");
		}
		others = take_all(&end, other, packets);
		EXPECT(rank, others == PACKETS - 1, "%u packets beside one that is held", others);
		while (others)
			cadge_wire_drop(end.peer[other].link, packets[--others]);
		cadge_wire_drop(end.peer[other].link, packet);
		for (unsigned int count = 0; count < PACKETS;) {
			count = take_all(&end, other, packets);
			for (unsigned int i = 0; i < count; i++)
				cadge_wire_drop(end.peer[other].link, packets[i]);
			end_poll_once(&end);
			EXPECT(rank, clock_ns() < until_ns, "%u of %u packets are free", count, PACKETS);
		}
	}
	if (rank->number == 1)
		end_await(&end, &end.peer[other].packets, 2 * TIMES, "packets");
	end_barrier(&end, 0, 2);
	EXPECT(rank, rank->number == 0 || end.peer[other].packets == 2 * TIMES, "a packet came twice");
	end_close(&end);
}

/*
 * Packets of nine lengths leave at once, though neither library runs: the receiver's from `up` on until all are sent, the
 * sender's from then on.
 */
void test_up_means_at_once(struct rank *rank)
{
	const uint32_t other = 1 - rank->number;
	struct end end;
	char text[8];

	end_pair(&end, rank, 0);
	meet(rank, 0, 2); /* nobody looks from here on */
	for (unsigned int sender = 0; sender < 2; sender++) {
		const size_t lengths[] = {1, 8, 64, 93, 200, 1000, 1024, 4000, end.facts->packet_bytes_max};
		enum { LENGTHS = sizeof(lengths) / sizeof(*lengths) };

		if (rank->number == sender) {
			for (unsigned int i = 0; i < LENGTHS; i++) {
				const size_t bytes = lengths[i] < end.facts->packet_bytes_max
							     ? lengths[i]
							     : end.facts->packet_bytes_max;
				void *packet = cadge_wire_take(end.peer[other].link);

				EXPECT(rank, packet, "no packet for the one of %zu bytes", bytes);
				fill(packet, bytes, i);
				EXPECT(rank,
				       cadge_wire_send(end.peer[other].link, packet, bytes) == CADGE_DONE,
				       "a packet of %zu bytes did not leave", bytes);
			}
			say(rank, other, "sent", 4);
			hear(rank, other, text, sizeof(text));
		} else {
			hear(rank, other, text, sizeof(text));
			end_await(&end, &end.peer[other].packets, LENGTHS, "packets that were sent at once");
			say(rank, other, "came", 4);
		}
	}
	end_close(&end);
}

static enum cadge_keep keep_all(struct end *end, uint32_t peer, void *data, size_t bytes)
{
	struct end_peer *from = &end->peer[peer];

	if (from->kept_count == KEPT)
		return CADGE_TAKEN; /* the credit */
	from->kept[from->kept_count] = data;
	from->kept_bytes[from->kept_count++] = bytes;
	return CADGE_KEEP;
}

/* All packets of two senders are kept, and one more still comes in. What was kept stays as it was, also after its link. */
void test_all_kept_and_one_more(struct rank *rank)
{
	struct end end;

	end_open(&end, rank, CADGE_WIRE_KEEP);
	end.packet = keep_all;
	for (unsigned int other = 0; other < 3; other++)
		if (other != rank->number && (other == 0 || rank->number == 0)) {
			end_connect(&end, other, other);
			end_up(&end, other);
		}
	for (unsigned int round = 0; round < 5; round++) {
		if (rank->number) {
			for (unsigned int i = 0; i <= KEPT; i++)
				end_send(&end, 0, 1 + (i * 977 + rank->number) % end.facts->packet_bytes_max,
					 i * 3 + rank->number);
			if (round < 4)
				end_await(&end, &end.peer[0].packets, round + 1, "an answer");
			continue;
		}
		for (unsigned int i = 1; i < 3; i++)
			end_await(&end, &end.peer[i].packets, (round + 1) * (KEPT + 1),
				  "what follows on kept packets");
		for (unsigned int i = 1; i < 3; i++) {
			struct end_peer *from = &end.peer[i];

			if (round == 4)
				EXPECT(rank, cadge_wire_disconnect(from->link) == CADGE_DONE, "disconnect");
			for (unsigned int k = 0; k < KEPT; k++) {
				EXPECT(rank,
				       from->kept_bytes[k] ==
						       1 + (k * 977 + i) % end.facts->packet_bytes_max &&
					       is_filled(from->kept[k], from->kept_bytes[k], k * 3 + i),
				       "a kept packet changed");
				cadge_wire_release(end.wire, from->kept[k]);
			}
			from->kept_count = 0;
			if (round < 4)
				end_send(&end, i, 1, 0);
		}
	}
	while (rank->number && end.peer[0].kept_count)
		cadge_wire_release(end.wire, end.peer[0].kept[--end.peer[0].kept_count]);
	end_barrier(&end, 0, 3);
	end_close(&end);
}

static uint64_t cpu_ns(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return ((uint64_t)usage.ru_utime.tv_sec + (uint64_t)usage.ru_stime.tv_sec) * UINT64_C(1000000000) +
	       ((uint64_t)usage.ru_utime.tv_usec + (uint64_t)usage.ru_stime.tv_usec) * 1000;
}

/* Looks, and sleeps while there is nothing. */
static void sleep_until(struct end *end, const uint64_t *value, uint64_t wanted)
{
	const uint64_t until_ns = clock_ns() + UINT64_C(10000000000);

	while (*value < wanted) {
		if (end_poll_once(end))
			continue;
		EXPECT(end->rank, cadge_wire_wait(end->wire, UINT64_C(5000000000)) == CADGE_DONE, "wait");
		EXPECT(end->rank, clock_ns() < until_ns, "a wake was lost");
	}
}

void test_sleeps_and_wakes(struct rank *rank)
{
	enum { ROUNDS = 200, RESTS = 5, REST_MS = 40 };
	const uint32_t other = 1 - rank->number;
	struct end end;
	uint64_t begin_ns, used_ns;

	end_pair(&end, rank, 0);
	EXPECT(rank, end.facts->sleeps, "it opened in block mode and does not sleep");
	meet(rank, 0, 2);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		if (rank->number == 0)
			end_send(&end, other, 1 + round * 37 % 1000, round);
		sleep_until(&end, &end.peer[other].packets, round + 1);
		if (rank->number == 1)
			end_send(&end, other, 1, round);
	}
	begin_ns = clock_ns();
	used_ns = cpu_ns();
	for (unsigned int round = 0; round < RESTS; round++) {
		if (rank->number == 0) {
			rest_ms(REST_MS);
			end_send(&end, other, 8, round);
		}
		sleep_until(&end, &end.peer[other].packets, ROUNDS + round + 1);
		if (rank->number == 1)
			end_send(&end, other, 8, round);
	}
	used_ns = cpu_ns() - used_ns;
	EXPECT(rank, used_ns * 2 < clock_ns() - begin_ns, "%llu ms of %llu were spent awake",
	       (unsigned long long)(used_ns / 1000000),
	       (unsigned long long)((clock_ns() - begin_ns) / 1000000));
	end_barrier(&end, 0, 2);
	end_close(&end);
}
