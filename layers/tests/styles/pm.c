/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What makes PM what it is, on its own calls: buffers that are built and read in place, order when a receiver has none,
 * the pin-down cache with its quotas, the context switch, remote writes.
 */

#include <string.h>

#include "pm/pm.h"
#include "tests/styles/frame.h"

enum { WINDOW = 16, BUFFERS = 8, PAGE = 4096 };

static struct pm *pm;
static uint32_t last_of[2][RANKS_MAX]; /* by channel and sender: the number of the message that came last */
static unsigned int came;
static uint32_t running; /* the channel that is looked at */

static unsigned int ended;

static void on_ended(void *arg, uint32_t peer, uint64_t token, int code)
{
	(void)arg, (void)peer, (void)token;
	EXPECT(self, code == CADGE_DONE, "ended: %s", cadge_code_name(code));
	ended++;
}

/* The next message, checked: its number, and content. NULL: none. */
static struct pm_packet *receive(uint32_t channel)
{
	struct pm_packet *packet;
	int code = pm_receive(pm, channel, &packet);
	uint32_t number;

	EXPECT(self, code >= 0, "receive: %s", cadge_code_name(code));
	give_way(code == CADGE_DONE);
	if (code != CADGE_DONE)
		return NULL;
	EXPECT(self, packet->bytes >= 4, "a message of %zu bytes", packet->bytes);
	number = cadge_load32(packet->data);
	EXPECT(self, number == last_of[channel][packet->peer] + 1,
	       "channel %u: message %u of rank %u came after %u", channel, number, packet->peer,
	       last_of[channel][packet->peer]);
	EXPECT(self, is_filled(packet->data + 4, packet->bytes - 4, number * 8 + channel * 4 + packet->peer),
	       "message %u of rank %u is not what was sent", number, packet->peer);
	last_of[channel][packet->peer] = number;
	came++;
	return packet;
}

/* Looks once, and gives back what came. */
static void progress_once(void)
{
	struct pm_packet *packet = receive(running);

	if (packet)
		pm_release_receive_buffer(pm, packet);
}

FRAME_CALLS(pm, progress_once);

static void begin(struct rank *rank)
{
	const struct pm_config config = {
		.packet_bytes = 1024,
		.window = WINDOW,
		.buffers = BUFFERS,
		.channels = 2,
		.operations = 4,
		.quota_bytes = {4 * PAGE, 4 * PAGE},
		.events = {.up = frame_up, .down = frame_down, .ended = on_ended},
	};
	const struct cadge_open_args args = rank_open_args(rank, WINDOW);

	frame_begin(rank, &frame_calls);
	EXPECT(rank, pm_open(&args, &config, &pm) == CADGE_DONE, "open: %s", args.error);
	connect_all();
}

static void end(void)
{
	barrier_all();
	pm_close(pm);
}

/* Builds message `number` and sends it; false: no buffer. */
static bool try_send(uint32_t channel, uint32_t to, uint32_t number, size_t bytes)
{
	uint8_t *buffer = pm_get_send_buffer(pm, channel, to, bytes);

	if (!buffer)
		return false;
	EXPECT(self, (uintptr_t)buffer % 8 == 0, "a send buffer at an odd address");
	cadge_store32(buffer, number);
	fill(buffer + 4, bytes - 4, number * 8 + channel * 4 + self->number);
	EXPECT(self, pm_send(pm, channel, to, buffer, bytes) == CADGE_DONE, "send");
	return true;
}

static void send_one(uint32_t channel, uint32_t to, uint32_t number, size_t bytes)
{
	AWAIT(try_send(channel, to, number, bytes), "no buffer for message %u", number);
}

static size_t length_of(uint32_t number)
{
	return number % 5 ? 4 + number * 37 % 900 : pm_packet_bytes(pm);
}

/* Two senders; the receiver holds all its buffers for a while, again and again. */
static void test_order_without_buffers(struct rank *rank)
{
	enum { MESSAGES = 600 };
	struct pm_packet *held[BUFFERS];
	unsigned int count = 0;
	const uint64_t until_ns = deadline();

	begin(rank);
	barrier_all();
	for (uint32_t i = 1; rank->number && i <= MESSAGES; i++)
		send_one(0, 0, i, length_of(i));
	while (!rank->number && came < 2 * MESSAGES) {
		held[count] = receive(0);
		count += held[count] != NULL;
		if (count < BUFFERS && came < 2 * MESSAGES)
			continue;
		for (unsigned int i = 0; i < 200; i++)
			EXPECT(rank, !receive(0), "a message without a buffer");
		for (unsigned int i = 0; i < count; i++)
			EXPECT(rank,
			       is_filled(held[i]->data + 4, held[i]->bytes - 4,
					 cadge_load32(held[i]->data) * 8 + held[i]->peer),
			       "what is held was changed");
		while (count)
			pm_release_receive_buffer(pm, held[--count]);
		EXPECT(rank, clock_ns() < until_ns, "%u messages came", came);
	}
	barrier_all();
	EXPECT(rank, rank->number || came == 2 * MESSAGES, "a message came twice");
	EXPECT(rank, rank->number || counter("nacks_sent") > 0, "nothing was refused");
	EXPECT(rank, !rank->number || counter("nacks_received") > 0, "nothing was refused");
	end();
}

/* A ping-pong acknowledges in the messages themselves; who only receives acknowledges alone. */
static void test_acks_ride_along(struct rank *rank)
{
	enum { ROUNDS = 500 };
	const uint32_t other = 1 - rank->number;
	uint64_t before;

	begin(rank);
	barrier_all();
	if (rank->number == 0)
		send_one(0, other, 1, 8);
	before = counter("acks_alone");
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		AWAIT(last_of[0][other] >= i, "message %u does not come", i);
		if (rank->number || i < ROUNDS)
			send_one(0, other, rank->number ? i : i + 1, 8);
	}
	EXPECT(rank, counter("acks_alone") == before, "%llu packets for acknowledgements",
	       (unsigned long long)(counter("acks_alone") - before));
	barrier_all();
	for (uint32_t i = ROUNDS + 1; rank->number == 0 && i < ROUNDS + 3 * WINDOW; i++)
		send_one(0, other, i, 8);
	barrier_all();
	/* What found no buffer was acknowledged by the refusal. */
	EXPECT(rank, !rank->number || counter("acks_alone") + counter("nacks_sent") > before,
	       "nothing was acknowledged");
	end();
}

/* No buffer where the window is taken, no copy between the caller's pointers and the packets, and back again. */
static void test_buffers_in_place(struct rank *rank)
{
	const uint64_t until_ns = deadline();
	void *buffers[WINDOW];

	begin(rank);
	barrier_all();
	meet(rank, 0, 2); /* nobody looks any more, and so takes what this test is about */
	EXPECT(rank, !pm_get_send_buffer(pm, 0, 1 - rank->number, pm_packet_bytes(pm) + 1), "too long");
	for (unsigned int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < WINDOW; i++) {
			buffers[i] = pm_get_send_buffer(pm, 0, 1 - rank->number, 8);
			EXPECT(rank, buffers[i], "no buffer %u", i);
			for (unsigned int k = 0; k < i; k++)
				EXPECT(rank, buffers[k] != buffers[i], "one buffer twice");
		}
		EXPECT(rank, !pm_get_send_buffer(pm, 0, 1 - rank->number, 8), "more buffers than the window");
		for (unsigned int i = 0; i < WINDOW; i++)
			pm_return_send_buffer(pm, 0, 1 - rank->number, buffers[i]);
	}
	if (rank->number == 0) {
		send_one(0, 1, 1, 100);
		send_one(0, 1, 2, 100);
	} else {
		struct pm_packet *first = NULL, *second = NULL;

		while (!second) {
			struct pm_packet **next = first ? &second : &first;

			*next = receive(0);
			EXPECT(rank, clock_ns() < until_ns, "two messages do not come");
		}
		EXPECT(rank,
		       first->data + first->bytes <= second->data ||
			       second->data + second->bytes <= first->data,
		       "two messages in one place");
		pm_release_receive_buffer(pm, second);
		pm_release_receive_buffer(pm, first);
	}
	end();
}

static void switch_to(uint32_t channel)
{
	int code;

	AWAIT((code = pm_context_switch(pm, running, channel)) != CADGE_BUSY, "the channel is not drained");
	EXPECT(self, code == CADGE_DONE, "switch: %s", cadge_code_name(code));
	running = channel;
}

/* Both switch in the middle of traffic, out of step; what is out is silent, and nothing is lost. */
static void test_context_switch(struct rank *rank)
{
	enum { MESSAGES = 400 };
	const uint32_t other = 1 - rank->number;
	uint32_t sent[2] = {0, 0};
	bool done = false;
	const uint64_t until_ns = deadline();
	struct pm_packet *packet;

	begin(rank);
	barrier_all();
	EXPECT(rank, pm_context_switch(pm, 1, 0) == CADGE_E_ARGUMENT,
	       "a channel that does not run was switched");
	/* Whoever has all goes on switching until the other has: its own last messages may have been refused. */
	for (unsigned int step = 0; !done || !hears(rank, other); step++) {
		if (!done && sent[0] + sent[1] + last_of[0][other] + last_of[1][other] == 4 * MESSAGES) {
			done = true;
			say(rank, other, "done", 4);
		}
		if (sent[running] < MESSAGES &&
		    try_send(running, other, sent[running] + 1, length_of(sent[running] + 1)))
			sent[running]++;
		look();
		EXPECT(rank,
		       !pm_get_send_buffer(pm, 1 - running, other, 8) &&
			       pm_next(pm, 1 - running, &packet) == CADGE_BUSY,
		       "a channel that is switched out works");
		if (step % (rank->number ? 97 : 61) == 60)
			switch_to(1 - running);
		EXPECT(rank, clock_ns() < until_ns, "%u and %u came, %u and %u were sent", last_of[0][other],
		       last_of[1][other], sent[0], sent[1]);
	}
	if (running)
		switch_to(0);
	EXPECT(rank, last_of[0][other] == MESSAGES && last_of[1][other] == MESSAGES, "too many came");
	end();
}

/* What is sent while the receiver's channel is out is refused, and comes when it is in again. */
static void test_switched_out_is_silent(struct rank *rank)
{
	begin(rank);
	barrier_all();
	if (rank->number) {
		switch_to(1);
		barrier_all();
		barrier_all(); /* all was sent meanwhile */
		for (unsigned int i = 0; i < 300; i++)
			look();
		EXPECT(rank, !came && counter("nacks_sent") == 1, "%u messages came, %llu refusals", came,
		       (unsigned long long)counter("nacks_sent"));
		switch_to(0);
		await(&came, BUFFERS, "messages");
	} else {
		barrier_all();
		for (uint32_t i = 1; i <= BUFFERS; i++)
			send_one(0, 1, i, 50);
		barrier_all();
	}
	barrier_all();
	EXPECT(rank, rank->number || counter("packets_sent_late_or_again") >= BUFFERS,
	       "nothing was sent again");
	end();
}

static void test_pin_cache(struct rank *rank)
{
	struct pm_pin *pin[5], *again;
	uint8_t *memory;

	begin(rank);
	memory = pm_alloc(pm, (size_t)8 * PAGE);
	EXPECT(rank, memory, "no memory");
	for (unsigned int i = 0; i < 4; i++)
		EXPECT(rank, pm_mlock(pm, PM_SEND, memory + i * PAGE, PAGE, &pin[i]) == CADGE_DONE, "lock %u",
		       i);
	EXPECT(rank, counter("pin_send_misses") == 4 && counter("pin_send_hits") == 0, "misses");
	EXPECT(rank, pm_mlock(pm, PM_SEND, memory + 4 * PAGE, PAGE, &pin[4]) == CADGE_BUSY,
	       "more is locked than the quota");
	EXPECT(rank, pm_mlock(pm, PM_SEND, memory, (size_t)5 * PAGE, &pin[4]) == CADGE_E_TOO_LARGE,
	       "too large");
	/* The deadlock rule: what is locked to send from takes nothing from what receives. */
	EXPECT(rank, pm_mlock(pm, PM_RECEIVE, memory + 4 * PAGE, (size_t)4 * PAGE, &pin[4]) == CADGE_DONE,
	       "one quota for both");
	pm_munlock(pm, pin[4]);
	pm_munlock(pm, pin[0]);
	pm_munlock(pm, pin[1]);
	EXPECT(rank, pm_mlock(pm, PM_SEND, memory, PAGE, &again) == CADGE_DONE && again == pin[0], "no hit");
	EXPECT(rank, counter("pin_send_hits") == 1 && counter("pin_send_evictions") == 0, "hits");
	/* Only number 1 is not locked. */
	EXPECT(rank, pm_mlock(pm, PM_SEND, memory + 5 * PAGE, PAGE, &pin[1]) == CADGE_DONE, "no eviction");
	EXPECT(rank, counter("pin_send_evictions") == 1, "evictions");
	pm_munlock(pm, again);
	pm_munlock(pm, pin[3]);
	/* The least recently used of 0 and 3 goes: 3. */
	EXPECT(rank, pm_mlock(pm, PM_SEND, memory + 6 * PAGE, PAGE, &pin[3]) == CADGE_DONE, "no eviction");
	EXPECT(rank,
	       pm_mlock(pm, PM_SEND, memory, PAGE, &again) == CADGE_DONE && counter("pin_send_hits") == 2,
	       "the one that was used last was evicted");
	EXPECT(rank, counter("pin_send_refusals") == 1, "refusals");
	pm_munlock(pm, again);
	for (unsigned int i = 1; i < 4; i++)
		pm_munlock(pm, pin[i]);
	pm_free(pm, memory, (size_t)8 * PAGE);
	end();
}

/* A remote write lands, and one outside of what is locked is refused and writes nothing. */
static void test_remote_write(struct rank *rank)
{
	uint8_t raw[1024], *memory, content[1000];
	struct pm_pin *pin;

	begin(rank);
	memory = pm_alloc(pm, (size_t)3 * PAGE);
	EXPECT(rank, memory, "no memory");
	fill(content, sizeof(content), 77);
	if (rank->number) {
		struct cadge_blob_out out = {.at = raw, .room_bytes = sizeof(raw), .ok = true};

		EXPECT(rank, pm_mlock(pm, PM_RECEIVE, memory + PAGE, PAGE, &pin) == CADGE_DONE, "lock");
		EXPECT(rank, pm_handle(pin, &out) == CADGE_DONE, "handle");
		say(rank, 0, raw, out.used_bytes);
		barrier_all();
		EXPECT(rank, is_filled(memory + PAGE + 17, sizeof(content), 77), "the write did not land");
		for (unsigned int i = 0; i < 3 * PAGE; i++)
			EXPECT(rank, !memory[i] || (i >= PAGE + 17 && i < PAGE + 17 + sizeof(content)),
			       "byte %u was written to", i);
		pm_munlock(pm, pin);
	} else {
		struct cadge_blob_in in = {.at = raw, .ok = true};
		struct pm_remote *remote;
		unsigned int wanted = 0;

		in.left_bytes = hear(rank, 1, raw, sizeof(raw));
		EXPECT(rank, pm_attach(pm, 1, &in, &remote) == CADGE_DONE, "attach");
		wanted += pm_write(pm, 1, remote, 17, content, sizeof(content), 1) == CADGE_QUEUED;
		EXPECT(rank,
		       pm_write(pm, 1, remote, PAGE - 999, content, 1000, 2) == CADGE_E_REFUSED &&
			       pm_write(pm, 1, remote, UINT64_MAX - 8, content, 100, 3) == CADGE_E_REFUSED,
		       "a write outside was not refused");
		wanted += pm_quiet(pm, 1, 4) == CADGE_QUEUED;
		AWAIT(ended >= wanted, "quiet does not end");
		pm_detach(remote);
		barrier_all();
	}
	pm_free(pm, memory, (size_t)3 * PAGE);
	end();
}

/* A life ends with messages that were refused, not received and not acknowledged; the next begins anew. */
static void test_new_life(struct rank *rank)
{
	const uint32_t other = 1 - rank->number;

	begin(rank);
	for (unsigned int life = 0; life < 4; life++) {
		struct pm_packet *held[BUFFERS];
		unsigned int count = 0;
		const uint64_t until_ns = deadline();

		barrier_all();
		for (uint32_t i = 1; rank->number && i <= WINDOW; i++)
			send_one(0, 0, i, length_of(i));
		while (!rank->number && count < BUFFERS) {
			held[count] = receive(0);
			count += held[count] != NULL;
			EXPECT(rank, clock_ns() < until_ns, "%u messages came", count);
		}
		for (unsigned int i = 0; i < 100; i++)
			EXPECT(rank, !receive(0), "a message without a buffer");
		/* The sender looks until the receiver has what it holds: else a packet may not have left. */
		while (rank->number && !hears(rank, other)) {
			EXPECT(rank, !receive(0), "a message from who sends none");
			EXPECT(rank, clock_ns() < until_ns, "the receiver does not come");
		}
		say(rank, other, "end", 3);
		for (char text[8]; !rank->number && !hear(rank, other, text, sizeof(text));)
			;
		EXPECT(rank, pm_disconnect(pm, other) == CADGE_DONE, "disconnect");
		while (count)
			pm_release_receive_buffer(pm, held[--count]); /* after its link */
		last_of[0][other] = 0;
		connect_to(other);
	}
	end();
}

/* ---- a peer that does not keep to anything ---- */

struct thrown {
	uint8_t kind, channel, number, ack;
	bool whole_table;
	uint32_t bytes; /* of the packet */
};

/* What follows the head is message 1 of rank 1. */
static void throw(const struct thrown *thrown)
{
	uint8_t packet[128] = {thrown->kind, thrown->channel, thrown->number, 0, thrown->ack};

	if (thrown->whole_table) { /* of no pins, and so the last part of it */
		packet[PM_HEAD_BYTES + 20] = 1;
	} else {
		cadge_store32(packet + PM_HEAD_BYTES, 1);
		fill(packet + PM_HEAD_BYTES + 4, 60, 1 * 8 + 1);
	}
	stranger_throw(packet, thrown->bytes);
}

/* What makes no sense is refused and counted, what is out of turn is dropped; what comes after is taken all the same. */
static void test_nonsense(struct rank *rank)
{
	enum { DATA, ACK, NACK, ROOM, PINS, LEFT, WHOLE = PM_HEAD_BYTES };
	static const struct thrown refused[] = {
		{.bytes = 1},
		{.bytes = WHOLE - 1},
		{.channel = 2, .bytes = WHOLE + 64},
		{.channel = 255, .bytes = WHOLE + 64},
		{.kind = 9, .bytes = WHOLE},
		{.kind = ACK, .ack = 5, .bytes = WHOLE}, /* of what was never sent */
		{.kind = NACK, .ack = 5, .bytes = WHOLE},
		{.kind = ROOM, .ack = 5, .bytes = WHOLE},
		{.kind = PINS, .bytes = WHOLE},
		{.kind = PINS, .bytes = WHOLE + 23},
		{.kind = PINS, .bytes = WHOLE + 24}, /* of slots that there are not */
		{.kind = PINS, .bytes = WHOLE + 64},
		{.kind = PINS, .whole_table = true, .bytes = WHOLE + 24}, /* a second one */
		{.kind = LEFT, .bytes = WHOLE},
		{.kind = LEFT, .bytes = WHOLE + 8}, /* of what was never asked */
	};
	static const struct thrown dropped[] = {
		{.kind = DATA, .number = 7, .bytes = WHOLE + 64},
		{.kind = DATA, .number = 1, .bytes = WHOLE + 64},
	};
	static const struct thrown table = {.kind = PINS, .whole_table = true, .bytes = WHOLE + 24};
	static const struct thrown good = {.kind = DATA, .bytes = WHOLE + 64};
	enum { REFUSED = sizeof(refused) / sizeof(*refused), DROPPED = sizeof(dropped) / sizeof(*dropped) };

	if (rank->number) {
		stranger_begin(rank, NULL, NULL);
		throw(&table);
		for (unsigned int i = 0; i < REFUSED; i++)
			throw(&refused[i]);
		for (unsigned int i = 0; i < DROPPED; i++)
			throw(&dropped[i]);
		throw(&good);
		stranger_end();
		return;
	}
	begin(rank);
	AWAIT(came, "what was good does not come");
	EXPECT(rank,
	       counter("packets_refused") == REFUSED && counter("packets_dropped_after_nack") == DROPPED,
	       "%llu packets of %d were refused, %llu of %d dropped",
	       (unsigned long long)counter("packets_refused"), REFUSED,
	       (unsigned long long)counter("packets_dropped_after_nack"), DROPPED);
	say(rank, 1, "done", 4);
	pm_close(pm);
}

int on_wire_conformance(int argc, char **argv)
{
	static const struct rank_test tests[] = {
		{.name = "order_without_buffers", .run = test_order_without_buffers, .ranks = 3},
		{.name = "acks_ride_along", .run = test_acks_ride_along, .ranks = 2},
		{.name = "buffers_in_place", .run = test_buffers_in_place, .ranks = 2},
		{.name = "context_switch", .run = test_context_switch, .ranks = 2},
		{.name = "switched_out_is_silent", .run = test_switched_out_is_silent, .ranks = 2},
		{.name = "pin_cache", .run = test_pin_cache, .ranks = 2},
		{.name = "remote_write", .run = test_remote_write, .ranks = 2},
		{.name = "new_life", .run = test_new_life, .ranks = 2},
		{.name = "nonsense", .run = test_nonsense, .ranks = 2},
	};

	return ranks_run_styles(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
