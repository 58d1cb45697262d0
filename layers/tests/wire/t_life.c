/* SPDX-License-Identifier: BSD-3-Clause */
/* Lives of links: packets of one never come in another, peers that die, and a new life with all its packets. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tests/wire/wire_tests.h"

enum { LIVES = 12 };

static enum cadge_keep of_this_life(struct end *end, uint32_t peer, void *data, size_t bytes)
{
	(void)peer;
	EXPECT(end->rank, bytes >= 8 && cadge_load64(data) == end->number,
	       "a packet of life %llu came in life %llu", (unsigned long long)cadge_load64(data),
	       (unsigned long long)end->number);
	return CADGE_TAKEN;
}

/* Sends until no packet is free, without looking. */
static unsigned int send_all(struct end *end, uint32_t peer, uint64_t mark)
{
	unsigned int count = 0;
	void *packet;

	while (count < PACKETS && (packet = cadge_wire_take(end->peer[peer].link))) {
		const size_t bytes = count % 2 ? end->facts->packet_bytes_max : 8;

		cadge_store64(packet, mark);
		if (cadge_wire_send(end->peer[peer].link, packet, bytes) != CADGE_DONE)
			break;
		count++;
	}
	return count;
}

/* A link ends while packets are under way both ways, and begins anew. */
void test_lives_do_not_mix(struct rank *rank)
{
	const uint32_t other = 1 - rank->number;
	struct end end;

	end_open(&end, rank, CADGE_WIRE_REMOTE);
	end.packet = of_this_life;
	for (end.number = 0; end.number < LIVES; end.number++) {
		end_connect(&end, other, other);
		end_up(&end, other);
		end_barrier(&end, 0, 2);
		EXPECT(rank, send_all(&end, other, end.number) > 0, "nothing could be sent in life %llu",
		       (unsigned long long)end.number);
		if (end.number % 3 == 0)
			end_await(&end, &end.peer[other].packets, 1, "a packet");
		if (end.number % 3 == 0)
			end_barrier(&end, 0, 2);
		EXPECT(rank, cadge_wire_disconnect(end.peer[other].link) == CADGE_DONE, "disconnect");
		/* What is under way comes in while there is no link, or in its next life. */
		if (end.number % 2)
			end_barrier(&end, 0, 2);
		else
			meet(rank, 0, 2);
	}
	end_close(&end);
}

/* Over the network `down` comes; within a host sends end as BUSY, E_DOWN, or as if nothing had happened. */
void test_peer_dies(struct rank *rank)
{
	const uint32_t other = 1 - rank->number;
	struct end end;

	end_pair(&end, rank, 0);
	end_send(&end, other, 8, 0);
	end_await(&end, &end.peer[other].packets, 1, "a packet");
	end_barrier(&end, 0, 2);
	if (rank->number == 1)
		rank_dies(rank, 0);
	rank_sees_death(rank, 1);
	if (rank->place == CADGE_PLACE_NET) {
		const uint64_t until_ns = clock_ns() + UINT64_C(5000000000);

		while (!end.peer[1].down && clock_ns() < until_ns) {
			void *packet = cadge_wire_take(end.peer[1].link);
			int code = packet ? cadge_wire_send(end.peer[1].link, packet, 100) : CADGE_DONE;

			if (packet && code == CADGE_BUSY)
				cadge_wire_drop(end.peer[1].link, packet);
			end_poll_once(&end);
			rest_ms(1);
		}
		EXPECT(rank, end.peer[1].down, "no `down` of a peer that died");
		EXPECT(rank, !cadge_wire_take(end.peer[1].link), "a packet could be taken after `down`");
	} else {
		send_all(&end, 1, 0);
		for (unsigned int i = 0; i < 1000; i++)
			end_poll_once(&end);
	}
	EXPECT(rank, cadge_wire_disconnect(end.peer[1].link) == CADGE_DONE, "disconnect");
	end_close(&end);
}

/* Sends for as long as packets come back, which they do while the library has room for what nobody takes. */
static void fill_the_dead(struct end *end)
{
	unsigned int sent = 0;

	for (unsigned int look = 0; look < 300; look++) {
		sent += send_all(end, 1, 0);
		if (end->rank->place == CADGE_PLACE_NET && cadge_wire_progress(end->wire, 1) < 0)
			break; /* its end broke the connection */
		if (end->rank->place == CADGE_PLACE_HOST)
			end_poll_once(end);
	}
	EXPECT(end->rank, sent >= 1, "nothing could be sent");
}

/* What was sent to the dead stays with the library; the next peer of that number has all packets all the same. */
void test_new_life_after_death(struct rank *rank)
{
	struct end end;

	end_open(&end, rank, CADGE_WIRE_REMOTE);
	if (rank->number == 2) {
		end_connect(&end, 0, 1);
		end_up(&end, 1);
		end_await(&end, &end.peer[1].packets, PACKETS, "all packets of the new life");
		end_barrier(&end, 2, 1);
		end_send(&end, 1, 8, 0);
		end_barrier(&end, 0, 1);
		end_close(&end);
		return;
	}
	end_connect(&end, 1 - rank->number, 1);
	end_up(&end, 1);
	meet(rank, 0, 2);
	if (rank->number == 1)
		rank_dies(rank, 0);
	rank_sees_death(rank, 1);
	fill_the_dead(&end);
	EXPECT(rank, cadge_wire_disconnect(end.peer[1].link) == CADGE_DONE, "disconnect");
	end_connect(&end, 2, 1);
	end_up(&end, 1);
	EXPECT(rank, send_all(&end, 1, 1) == PACKETS, "not all packets are there in the new life");
	end_await(&end, &end.peer[1].packets, 1, "an answer");
	end_barrier(&end, 2, 1);
	end_close(&end);
}
