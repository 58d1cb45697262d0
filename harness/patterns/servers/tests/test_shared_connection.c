/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one thread of a shared connection finds for another: as much of it as there is room for, each part no longer than
 * agreed, in order; what is nobody's is counted.
 */
#include "servers/shared_connection.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "traffic/requester.h"
#include "measure/clock.h"
#include "tap.h"

enum { SLOTS = 2, SLOTS_MOST = 64, DEPTH = 3, NOTES = 16, BYTES = 64, LONG = 1000, TOKENS_MAX = 32 };

/* What a slot was told, in order. */
static struct {
	uint64_t tokens[TOKENS_MAX];
	size_t bytes[TOKENS_MAX];
	uint32_t count;
} delivered;

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	(void)sink, (void)peer, (void)data, (void)lend;
	delivered.tokens[delivered.count % TOKENS_MAX] = 0;
	delivered.bytes[delivered.count++ % TOKENS_MAX] = bytes;
	return CADGE_TAKEN;
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	(void)sink, (void)peer, (void)code;
	delivered.tokens[delivered.count++ % TOKENS_MAX] = token;
}

static const struct cadge_layer layer = {.name = "none"};

static uint64_t token_of(uint64_t slot, uint64_t number)
{
	return slot << (DRV_SHARED_NUMBER_BITS + DRV_REQUESTER_SLOT_BITS) | number;
}

/* A reply to a call of that slot comes, with so many bytes of payload. */
static void reply(struct drv_shared_connection *shared, uint64_t slot, size_t bytes)
{
	static uint8_t message[LONG + DRV_RPC_TRAILER_BYTES];
	struct cadge_sink *sink = drv_shared_connection_sink(shared);

	drv_trailer_write(message, bytes, token_of(slot, 1), DRV_RPC_REPLY);
	sink->recv(sink, 0, message, bytes + DRV_RPC_TRAILER_BYTES, NULL);
}

static void test_notes(void)
{
	struct cadge_sink own = {.recv = on_recv, .sent = on_sent};
	struct drv_engine engine = {.layer = &layer, .channels_count = 1}, slot = engine;
	const size_t agreed = BYTES + DRV_RPC_TRAILER_BYTES;
	struct drv_shared_connection *shared;
	struct cadge_sink *sink;
	struct drv_fail fail;
	bool in_order = true;

	if (drv_shared_connection_make(&engine, SLOTS, DEPTH, agreed, true, &shared, &fail)) {
		tap_ok(false, "two slots: %s", fail.text);
		return;
	}
	drv_shared_connection_take(shared, 1, &slot);
	sink = drv_shared_connection_sink(shared);
	for (uint64_t i = 0; i < NOTES; i++)
		sink->sent(sink, 0, token_of(1, i), CADGE_DONE);
	tap_ok(!drv_shared_connection_stale(shared), "%d notes have room", NOTES);
	sink->sent(sink, 0, token_of(1, NOTES), CADGE_DONE);
	tap_ok(drv_shared_connection_stale(shared) == 1, "one more has none, and is counted");
	tap_ok(slot.layer->poll(slot.ctx, &own) == NOTES && delivered.count == NOTES, "all of them come");
	for (uint32_t i = 0; i < delivered.count; i++)
		in_order &= delivered.tokens[i] == token_of(1, i);
	tap_ok(in_order, "in order");
	delivered.count = 0;
	reply(shared, 1, BYTES);
	reply(shared, 1, LONG);
	tap_ok(slot.layer->poll(slot.ctx, &own) == 2 && delivered.bytes[0] == agreed &&
		       delivered.bytes[1] > agreed && delivered.bytes[1] < LONG,
	       "a reply that is too long is cut, and stays too long: %zu of %d bytes", delivered.bytes[1],
	       LONG);
	reply(shared, SLOTS, BYTES);
	sink->sent(sink, 0, token_of(SLOTS, 0), CADGE_DONE);
	tap_ok(drv_shared_connection_stale(shared) == 3, "what names no slot is counted");
	drv_shared_connection_free(shared);
}

static void test_slots(void)
{
	struct drv_engine engine = {.layer = &layer, .channels_count = 1};
	struct drv_shared_connection *shared = NULL;
	struct drv_fail fail;
	const bool most =
		!drv_shared_connection_make(&engine, SLOTS_MOST, DEPTH, BYTES, true, &shared, &fail);

	drv_shared_connection_free(shared);
	shared = NULL;
	tap_ok(most && drv_shared_connection_make(&engine, SLOTS_MOST + 1, DEPTH, BYTES, true, &shared,
						  &fail),
	       "%d slots, and no more", SLOTS_MOST);
	drv_shared_connection_free(shared);
}

/* ---- who is woken ---- */

#define MS UINT64_C(1000000)
/* how long whoever is forgotten sleeps; what nobody forgets takes less, whatever else the machine does */
#define FORGOTTEN_NS (10000 * MS)
#define SOON_NS      (5000 * MS)

/* The layer below: what its calls come to from now on. */
static struct {
	_Atomic uint64_t due_ns;
	atomic_int post_code, event_code, events;
	/* how often it was asked for its descriptor, on which nothing ever comes */
	atomic_uint asked;
	int fd;
} below;

static int below_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		      uint64_t token)
{
	(void)chan, (void)iov, (void)count, (void)flags, (void)token;
	return below.post_code;
}

static int below_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	(void)ctx, (void)sink;
	return below.events;
}

static int below_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out)
{
	(void)ctx;
	*fd_out = below.fd;
	*due_ns_out = below.due_ns;
	below.asked++;
	return below.event_code;
}

static const struct cadge_layer sleepy = {
	.name = "sleepy", .post = below_post, .poll = below_poll, .event = below_event};

static struct {
	struct drv_shared_connection *shared;
	struct drv_engine slots[3];
} clients;

static void set_up(bool dispatched)
{
	struct drv_engine engine = {.layer = &sleepy, .channels_count = 1, .block = true};
	struct drv_fail fail;

	below.due_ns = UINT64_MAX;
	below.post_code = below.event_code = CADGE_DONE;
	below.events = 0;
	below.asked = 0;
	below.fd = eventfd(0, EFD_CLOEXEC);
	if (drv_shared_connection_make(&engine, 3, DEPTH, BYTES, dispatched, &clients.shared, &fail))
		exit(77);
	for (uint32_t i = 0; i < 3; i++) {
		clients.slots[i] = engine;
		drv_shared_connection_take(clients.shared, i, &clients.slots[i]);
	}
}

static void take_down(void)
{
	drv_shared_connection_free(clients.shared);
	close(below.fd);
}

static int post_from(uint32_t slot)
{
	return clients.slots[slot].layer->post(clients.slots[slot].channels[0].chan, NULL, 0, 0, 0);
}

/* A thread that sleeps in a slot, or dispatches. */
struct sleeper {
	pthread_t thread;
	int slot; /* -1: dispatches */
	uint64_t took_ns;
};

static void *sleep_well(void *arg)
{
	struct sleeper *sleeper = arg;
	const uint64_t begun_ns = drv_now_ns();

	if (sleeper->slot < 0)
		drv_shared_connection_dispatch(clients.shared, FORGOTTEN_NS);
	else
		clients.slots[sleeper->slot].layer->wait(clients.slots[sleeper->slot].ctx, FORGOTTEN_NS);
	sleeper->took_ns = drv_now_ns() - begun_ns;
	return NULL;
}

/* Returns once it sleeps: it has asked the layer under the lock, which it then gave back. `asks`: it does so. */
static void start(struct sleeper *sleeper, int slot, bool asks)
{
	const unsigned before = below.asked;
	const int code = below.post_code;

	sleeper->slot = slot;
	if (pthread_create(&sleeper->thread, NULL, sleep_well, sleeper))
		exit(77);
	while (asks && below.asked == before)
		sched_yield();
	if (!asks) /* nothing tells: the test cannot fail where this is too short */
		usleep(20000);
	below.post_code = CADGE_DONE;
	post_from(2);
	below.post_code = code;
}

static bool woken(struct sleeper *sleeper)
{
	pthread_join(sleeper->thread, NULL);
	return sleeper->took_ns < SOON_NS;
}

/* One that the layer was too busy for follows one that leads. */
static void start_refused(struct sleeper *leader, struct sleeper *refused)
{
	start(leader, 0, true);
	below.post_code = CADGE_BUSY;
	post_from(1);
	below.post_code = CADGE_DONE;
	start(refused, 1, true);
}

static void test_leaders(void)
{
	struct sleeper leader, refused;
	struct drv_engine *other = &clients.slots[1];
	uint64_t begun_ns;

	set_up(false);
	drv_shared_connection_sink(clients.shared)
		->sent(drv_shared_connection_sink(clients.shared), 0, token_of(1, 7), CADGE_DONE);
	begun_ns = drv_now_ns();
	other->layer->wait(other->ctx, FORGOTTEN_NS);
	tap_ok(drv_now_ns() - begun_ns < SOON_NS, "nobody sleeps on what another found for it");
	take_down();

	set_up(false);
	start(&leader, 0, true);
	below.due_ns = 20 * MS;
	begun_ns = drv_now_ns();
	other->layer->wait(other->ctx, FORGOTTEN_NS);
	tap_ok(drv_now_ns() - begun_ns < SOON_NS, "what is due earlier is seen to");
	tap_ok(woken(&leader), "by one that leads in place of who did");
	take_down();

	set_up(false);
	below.due_ns = 500 * MS;
	start_refused(&leader, &refused);
	tap_ok(woken(&leader) && woken(&refused), "who leads no longer wakes one that was refused");
	take_down();

	set_up(false);
	start_refused(&leader, &refused);
	below.events = 1;
	clients.slots[2].layer->poll(clients.slots[2].ctx, NULL);
	tap_ok(woken(&refused), "so does who finds something");
	drv_shared_connection_wake(clients.shared);
	tap_ok(woken(&leader), "a wake ends the leader's sleep");
	take_down();

	set_up(false);
	start_refused(&leader, &refused);
	below.event_code = CADGE_BUSY;
	clients.slots[2].layer->wait(clients.slots[2].ctx, FORGOTTEN_NS);
	tap_ok(woken(&refused), "and who is told that there is something");
	drv_shared_connection_wake(clients.shared);
	woken(&leader);
	take_down();
}

static void test_dispatcher(void)
{
	struct sleeper sleeper;

	for (int found = 0; found < 2; found++) {
		set_up(true);
		below.post_code = CADGE_BUSY;
		post_from(1);
		start(&sleeper, 1, false);
		below.events = found;
		below.event_code = CADGE_BUSY;
		drv_shared_connection_dispatch(clients.shared, FORGOTTEN_NS);
		tap_ok(woken(&sleeper), "the dispatcher wakes one that was refused when it %s",
		       found ? "finds something" : "is told that there is something");
		take_down();
	}
	set_up(true);
	start(&sleeper, -1, true);
	drv_shared_connection_wake(clients.shared);
	tap_ok(woken(&sleeper), "a wake ends the dispatcher's sleep");
	take_down();
}

int main(void)
{
	test_leaders();
	test_dispatcher();
	test_notes();
	test_slots();
	return tap_done();
}
