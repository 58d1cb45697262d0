/* SPDX-License-Identifier: BSD-3-Clause */
/* One connection under a lock: whose a reply is, and who sleeps where. */
#include "servers/shared_connection.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "traffic/requester.h"
#include "base/relax.h"

#define SLOTS_MAX 64u
/* Two lines: processors fetch lines in pairs. */
#define ALIGN 128u
#define NS    UINT64_C(1000000000)

enum what { MESSAGE, RESULT, SENT };

/* Something that another thread found. */
struct note {
	enum what what;
	enum cadge_placement placement;
	int code;
	uint64_t token;
	size_t bytes;
};

/* The word that a thread sleeps on: follows, and is to be woken by it. */
enum { AWAKE, FOLLOWS };

struct cadge_chan {
	struct cadge_ctx *slot;
	struct cadge_chan *below;
};

/* A slot. To its thread it is a context. */
struct cadge_ctx {
	/* changes under the lock */
	_Alignas(ALIGN) atomic_uint state;
	/* notes so far: whoever has the lock adds one, the slot's thread takes it */
	atomic_uint added;
	struct note *notes;
	uint8_t *data;
	struct drv_shared_connection *shared;
	uint32_t index;
	/* ends its sleep where it leads; -1 in poll mode */
	int wake_fd;
	struct cadge_chan chan;
	/* the thread's own: notes taken, whose the events of its poll are, whether it was told that the channel is down */
	_Alignas(ALIGN) atomic_uint taken;
	struct cadge_sink *sink;
	bool down_reported;
};

struct drv_shared_connection {
	/* first: callbacks get a pointer to it */
	struct drv_port port;
	void (*port_down)(struct cadge_sink *sink, uint32_t peer, int code);
	const struct cadge_layer *below;
	struct cadge_ctx *ctx;
	_Alignas(ALIGN) struct cadge_layer table;
	bool block, dispatched;
	uint32_t count, mask;
	size_t stride;
	/* 0, or why the channel is down */
	atomic_int down;
	_Alignas(ALIGN) pthread_mutex_t lock;
	/* under the lock, all of them: whose poll it is; NULL: nobody's who has a slot */
	struct cadge_ctx *polling;
	/* who sleeps on the descriptor, until when at the latest (CLOCK_MONOTONIC) */
	struct cadge_ctx *leader;
	uint64_t until_ns;
	/* who sleeps on a word; who is to be woken once the lock is free; the leader that is */
	uint64_t followers, woken;
	/* whose last call the layer was too busy for */
	uint64_t refused;
	struct cadge_ctx *deposed;
	uint64_t stale;
	/* `count` of them, and that of who dispatches */
	struct cadge_ctx slots[];
};

static uint64_t bit_of(const struct cadge_ctx *slot)
{
	return UINT64_C(1) << slot->index;
}

static void take_lock(struct drv_shared_connection *shared)
{
	pthread_mutex_lock(&shared->lock);
}

/* Gives the lock back, and then wakes who is to be woken: whoever wakes wants the lock. */
static void give_lock(struct drv_shared_connection *shared)
{
	struct cadge_ctx *deposed = shared->deposed;
	uint64_t woken = shared->woken;
	const uint64_t one = 1;

	shared->deposed = NULL;
	shared->woken = 0;
	pthread_mutex_unlock(&shared->lock);
	if (deposed)
		(void)!write(deposed->wake_fd, &one, sizeof(one));
	for (; woken; woken &= woken - 1)
		syscall(SYS_futex, &shared->slots[__builtin_ctzll(woken)].state, FUTEX_WAKE_PRIVATE, 1, NULL,
			NULL, 0);
}

/* Under the lock: it sleeps no longer, wherever it does. */
static void wake_slot(struct drv_shared_connection *shared, struct cadge_ctx *slot)
{
	if (shared->leader == slot) {
		shared->leader = NULL;
		shared->deposed = slot;
	} else if (atomic_load_explicit(&slot->state, memory_order_relaxed) == FOLLOWS) {
		atomic_store_explicit(&slot->state, AWAKE, memory_order_release);
		shared->followers &= ~bit_of(slot);
		shared->woken |= bit_of(slot);
	}
}

/* Under the lock, after the layer did something: it may take now what it was too busy for. */
static void rouse_refused(struct drv_shared_connection *shared)
{
	for (uint64_t left = shared->refused & shared->followers; left; left &= left - 1)
		wake_slot(shared, &shared->slots[__builtin_ctzll(left)]);
}

/* Under the lock, after a slot handed something over, or could not. Returns the code. */
static int after_post(struct cadge_ctx *slot, int code)
{
	struct drv_shared_connection *shared = slot->shared;

	if (DRV_UNLIKELY(code == CADGE_BUSY))
		shared->refused |= bit_of(slot);
	else
		shared->refused &= ~bit_of(slot);
	return code;
}

/* Under the lock: hands something to a slot. */
static void add_note(struct drv_shared_connection *shared, struct cadge_ctx *slot, const struct note *note,
		     const void *data)
{
	const unsigned added = atomic_load_explicit(&slot->added, memory_order_relaxed);
	const size_t bytes = note->bytes < shared->stride ? note->bytes : shared->stride;

	if (added - atomic_load_explicit(&slot->taken, memory_order_acquire) > shared->mask) {
		shared->stale++;
		return;
	}
	slot->notes[added & shared->mask] = *note;
	slot->notes[added & shared->mask].bytes = bytes;
	if (data && bytes)
		memcpy(slot->data + (added & shared->mask) * shared->stride, data, bytes);
	atomic_store_explicit(&slot->added, added + 1, memory_order_release);
	wake_slot(shared, slot);
}

static bool has_notes(const struct cadge_ctx *slot)
{
	return atomic_load_explicit(&slot->added, memory_order_acquire) !=
	       atomic_load_explicit(&slot->taken, memory_order_relaxed);
}

/* The slot's thread takes what others found for it, without the lock. */
static int take_notes(struct cadge_ctx *slot, struct cadge_sink *sink)
{
	const struct drv_shared_connection *shared = slot->shared;
	unsigned taken = atomic_load_explicit(&slot->taken, memory_order_relaxed);
	const unsigned added = atomic_load_explicit(&slot->added, memory_order_acquire);
	int events = 0;

	for (; taken != added; events++) {
		const struct note *note = &slot->notes[taken & shared->mask];
		const uint8_t *data = slot->data + (taken & shared->mask) * shared->stride;

		if (note->what == MESSAGE)
			sink->recv(sink, 0, data, note->bytes, NULL);
		else if (note->what == RESULT)
			sink->replied(sink, 0, note->token, note->code, note->placement, data, note->bytes,
				      NULL);
		else
			sink->sent(sink, 0, note->token, note->code);
		atomic_store_explicit(&slot->taken, ++taken, memory_order_release);
	}
	return events;
}

/* The first time that it asks after the channel broke. */
static int report_down(struct cadge_ctx *slot, struct cadge_sink *sink)
{
	const int code = atomic_load_explicit(&slot->shared->down, memory_order_relaxed);

	if (DRV_LIKELY(!code) || slot->down_reported)
		return 0;
	slot->down_reported = true;
	sink->down(sink, 0, code);
	return 1;
}

/* ---- the layer's events: under the lock, or while no step is under way ---- */

static struct cadge_ctx *slot_of(struct drv_shared_connection *shared, uint64_t token)
{
	const uint64_t slot = token >> (DRV_SHARED_NUMBER_BITS + DRV_REQUESTER_SLOT_BITS);

	return slot < shared->count ? &shared->slots[slot] : NULL;
}

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct drv_shared_connection *shared = (struct drv_shared_connection *)sink;
	struct note note = {.what = MESSAGE, .bytes = bytes};
	struct cadge_ctx *slot = shared->polling;

	/* what is no reply is wrong: whoever polls says so */
	if (DRV_LIKELY(drv_trailer_read(data, bytes, DRV_RPC_REPLY, &note.token)))
		slot = slot_of(shared, note.token);
	if (DRV_UNLIKELY(!slot))
		shared->stale++;
	else if (slot == shared->polling)
		return slot->sink->recv(slot->sink, peer, data, bytes, lend);
	else
		add_note(shared, slot, &note, data);
	return CADGE_TAKEN;
}

static enum cadge_keep on_replied(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code,
				  enum cadge_placement placement, const void *data, size_t bytes,
				  struct cadge_lend *lend)
{
	struct drv_shared_connection *shared = (struct drv_shared_connection *)sink;
	const struct note note = {RESULT, placement, code, token, bytes};
	struct cadge_ctx *slot = slot_of(shared, token);

	if (DRV_UNLIKELY(!slot))
		shared->stale++;
	else if (slot == shared->polling)
		return slot->sink->replied(slot->sink, peer, token, code, placement, data, bytes, lend);
	else
		add_note(shared, slot, &note, placement == CADGE_LENT ? data : NULL);
	return CADGE_TAKEN;
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct drv_shared_connection *shared = (struct drv_shared_connection *)sink;
	const struct note note = {.what = SENT, .code = code, .token = token};
	struct cadge_ctx *slot = slot_of(shared, token);

	if (DRV_UNLIKELY(!slot))
		shared->stale++;
	else if (slot == shared->polling)
		slot->sink->sent(slot->sink, peer, token, code);
	else
		add_note(shared, slot, &note, NULL);
}

static void on_down(struct cadge_sink *sink, uint32_t peer, int code)
{
	struct drv_shared_connection *shared = (struct drv_shared_connection *)sink;

	shared->port_down(sink, peer, code);
	if (peer)
		return;
	atomic_store(&shared->down, code ? code : CADGE_E_DOWN);
	for (uint32_t i = 0; i <= shared->count; i++)
		wake_slot(shared, &shared->slots[i]);
}

/* ---- what a slot's thread calls ---- */

static int slot_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		     uint64_t token)
{
	struct drv_shared_connection *shared = chan->slot->shared;
	int code;

	take_lock(shared);
	code = after_post(chan->slot, shared->below->post(chan->below, iov, count, flags, token));
	give_lock(shared);
	return code;
}

static int slot_call(struct cadge_chan *chan, uint32_t op, const struct cadge_iov *in, uint32_t in_count,
		     const struct cadge_iov *out, uint32_t out_count, uint32_t flags, uint64_t token)
{
	struct drv_shared_connection *shared = chan->slot->shared;
	int code;

	take_lock(shared);
	code = after_post(chan->slot,
			  shared->below->call(chan->below, op, in, in_count, out, out_count, flags, token));
	give_lock(shared);
	return code;
}

static int slot_flush(struct cadge_chan *chan)
{
	struct drv_shared_connection *shared = chan->slot->shared;
	int code;

	take_lock(shared);
	code = shared->below->flush(chan->below);
	give_lock(shared);
	return code;
}

/* Whoever finds the lock taken leaves it at that: another thread polls, or hands over. */
static int slot_poll(struct cadge_ctx *slot, struct cadge_sink *sink)
{
	struct drv_shared_connection *shared = slot->shared;
	int events = take_notes(slot, sink);

	if (events || (events = report_down(slot, sink)))
		return events;
	if (shared->dispatched || pthread_mutex_trylock(&shared->lock)) {
		drv_relax();
		return 0;
	}
	shared->polling = slot;
	slot->sink = sink;
	events = shared->below->poll(shared->ctx, &shared->port.sink);
	shared->polling = NULL;
	if (events)
		rouse_refused(shared);
	give_lock(shared);
	return events;
}

static struct timespec span_of(uint64_t span_ns)
{
	return (struct timespec){.tv_sec = (time_t)(span_ns / NS), .tv_nsec = (long)(span_ns % NS)};
}

/* Sleeps on the descriptor. Has the lock, and has armed under it; gives it back. */
static int lead(struct drv_shared_connection *shared, struct cadge_ctx *slot, int fd, uint64_t now_ns,
		uint64_t span_ns)
{
	struct pollfd watched[2] = {{.fd = fd, .events = POLLIN}, {.fd = slot->wake_fd, .events = POLLIN}};
	const struct timespec span = span_of(span_ns);
	uint64_t count;
	bool failed;

	shared->leader = slot;
	shared->until_ns = now_ns + span_ns;
	give_lock(shared);
	failed = ppoll(watched, 2, &span, NULL) < 0 && errno != EINTR;
	take_lock(shared);
	if (shared->leader == slot)
		shared->leader = NULL;
	rouse_refused(shared);
	give_lock(shared);
	/* whoever woke it may be about to write still: then its next sleep ends early, which is legal */
	if (watched[1].revents)
		(void)!read(slot->wake_fd, &count, sizeof(count));
	return failed ? CADGE_E_LIBRARY : CADGE_DONE;
}

/* Sleeps until somebody wakes it. Has the lock; gives it back. */
static int follow(struct drv_shared_connection *shared, struct cadge_ctx *slot, uint64_t span_ns)
{
	const struct timespec span = span_of(span_ns);

	atomic_store_explicit(&slot->state, FOLLOWS, memory_order_relaxed);
	shared->followers |= bit_of(slot);
	give_lock(shared);
	syscall(SYS_futex, &slot->state, FUTEX_WAIT_PRIVATE, FOLLOWS, &span, NULL, 0);
	if (atomic_load_explicit(&slot->state, memory_order_acquire) == AWAKE)
		return CADGE_DONE;
	take_lock(shared);
	atomic_store_explicit(&slot->state, AWAKE, memory_order_relaxed);
	shared->followers &= ~bit_of(slot);
	give_lock(shared);
	return CADGE_DONE;
}

/* Under the lock, while another thread leads: arms again what this one's calls may have undone. True: that one has to look. */
static bool arm_again(struct drv_shared_connection *shared, uint64_t now_ns, int *fd_out,
		      uint64_t *due_ns_out, int *code_out)
{
	*due_ns_out = UINT64_MAX;
	*code_out = shared->below->event(shared->ctx, fd_out, due_ns_out);
	return *code_out != CADGE_DONE ||
	       (*due_ns_out < UINT64_MAX - now_ns && now_ns + *due_ns_out < shared->until_ns);
}

static int wait_dispatched(struct drv_shared_connection *shared, struct cadge_ctx *slot, uint64_t timeout_ns)
{
	uint64_t due_ns;
	int fd, code;

	if (!shared->leader || !arm_again(shared, drv_now_ns(), &fd, &due_ns, &code))
		return follow(shared, slot, timeout_ns);
	wake_slot(shared, shared->leader);
	if (!(shared->refused & bit_of(slot)))
		return follow(shared, slot, timeout_ns);
	/* what there is to do may be that it tries again */
	give_lock(shared);
	return CADGE_DONE;
}

static int slot_wait(struct cadge_ctx *slot, uint64_t timeout_ns)
{
	struct drv_shared_connection *shared = slot->shared;
	const uint64_t now_ns = drv_now_ns();
	uint64_t due_ns;
	bool earlier;
	int fd = -1, code;

	take_lock(shared);
	if (has_notes(slot) || (atomic_load(&shared->down) && !slot->down_reported)) {
		give_lock(shared);
		return CADGE_DONE;
	}
	if (shared->dispatched)
		return wait_dispatched(shared, slot, timeout_ns);
	earlier = arm_again(shared, now_ns, &fd, &due_ns, &code);
	if (code != CADGE_DONE) {
		rouse_refused(shared);
		give_lock(shared);
		return code == CADGE_BUSY ? CADGE_DONE : code;
	}
	if (shared->leader && !earlier)
		return follow(shared, slot, timeout_ns);
	if (shared->leader)
		wake_slot(shared, shared->leader);
	return lead(shared, slot, fd, now_ns, due_ns < timeout_ns ? due_ns : timeout_ns);
}

void drv_shared_connection_leave(struct drv_shared_connection *shared, uint32_t slot)
{
	uint64_t due_ns;
	int fd, code;

	(void)slot;
	if (!shared->block)
		return;
	take_lock(shared);
	if (shared->leader) {
		if (arm_again(shared, drv_now_ns(), &fd, &due_ns, &code))
			wake_slot(shared, shared->leader);
	} else if (shared->followers && !shared->dispatched) {
		wake_slot(shared, &shared->slots[__builtin_ctzll(shared->followers)]);
	}
	give_lock(shared);
}

int drv_shared_connection_dispatch(struct drv_shared_connection *shared, uint64_t timeout_ns)
{
	const uint64_t now_ns = drv_now_ns();
	uint64_t due_ns = UINT64_MAX;
	int fd = -1, code, events;

	take_lock(shared);
	events = shared->below->poll(shared->ctx, &shared->port.sink);
	if (events || !shared->block) {
		rouse_refused(shared);
		give_lock(shared);
		drv_relax();
		return events;
	}
	code = shared->below->event(shared->ctx, &fd, &due_ns);
	if (code != CADGE_DONE) {
		rouse_refused(shared);
		give_lock(shared);
		return code == CADGE_BUSY ? 0 : code;
	}
	code = lead(shared, &shared->slots[shared->count], fd, now_ns,
		    due_ns < timeout_ns ? due_ns : timeout_ns);
	return code < 0 ? code : 0;
}

void drv_shared_connection_wake(struct drv_shared_connection *shared)
{
	take_lock(shared);
	if (shared->leader)
		wake_slot(shared, shared->leader);
	give_lock(shared);
}

/* ---- making it ---- */

static bool make_slot(struct drv_shared_connection *shared, uint32_t index, struct cadge_chan *chan)
{
	struct cadge_ctx *slot = &shared->slots[index];
	const size_t places = shared->mask + 1u;

	slot->shared = shared;
	slot->index = index;
	slot->chan = (struct cadge_chan){.slot = slot, .below = chan};
	slot->wake_fd = shared->block ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
	slot->notes = calloc(places, sizeof(*slot->notes));
	slot->data = calloc(places, shared->stride);
	return slot->notes && slot->data && (!shared->block || slot->wake_fd >= 0);
}

static void make_table(struct drv_shared_connection *shared)
{
	shared->table = *shared->below;
	shared->table.post = slot_post;
	shared->table.poll = slot_poll;
	shared->table.wait = slot_wait;
	shared->table.event = NULL;
	shared->table.call = shared->below->call ? slot_call : NULL;
	shared->table.flush = shared->below->flush ? slot_flush : NULL;
	/* messages are built by whoever posts, in its own memory */
	shared->table.reserve = NULL;
	shared->table.commit = NULL;
	shared->table.cancel = NULL;
}

int drv_shared_connection_make(struct drv_engine *engine, uint32_t slots, uint32_t depth,
			       size_t message_bytes, bool dispatched,
			       struct drv_shared_connection **shared_out, struct drv_fail *fail)
{
	const size_t bytes = sizeof(struct drv_shared_connection) + (slots + 1) * sizeof(struct cadge_ctx);
	struct drv_shared_connection *shared = drv_zeroed(ALIGN, bytes);
	pthread_mutexattr_t spins_first;
	bool made = true;
	uint32_t places = 1;

	if (!shared || slots > SLOTS_MAX) {
		free(shared);
		return drv_fail_set(fail, DRV_MEMORY, "no memory for %u threads", slots);
	}
	drv_port_start(&shared->port, engine);
	shared->port_down = shared->port.sink.down;
	shared->port.sink.recv = on_recv;
	shared->port.sink.replied = on_replied;
	shared->port.sink.sent = on_sent;
	shared->port.sink.down = on_down;
	shared->below = engine->layer;
	shared->ctx = engine->ctx;
	shared->block = engine->block;
	shared->dispatched = dispatched;
	/* a reply and a completion of each, and where some get lost as many that are late */
	while (places < 4 * depth)
		places *= 2;
	shared->mask = places - 1;
	/* one byte more than is right: what is longer stays wrong when it is cut */
	shared->stride = drv_memory_stride(message_bytes + 1);
	make_table(shared);
	pthread_mutexattr_init(&spins_first);
	pthread_mutexattr_settype(&spins_first, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(&shared->lock, &spins_first);
	pthread_mutexattr_destroy(&spins_first);
	for (; shared->count <= slots; shared->count++)
		made = make_slot(shared, shared->count, engine->channels[0].chan) && made;
	shared->count = slots;
	*shared_out = shared;
	if (made)
		return 0;
	drv_shared_connection_free(shared);
	*shared_out = NULL;
	return drv_fail_set(fail, DRV_MEMORY, "no memory or no descriptor for %u threads", slots);
}

void drv_shared_connection_free(struct drv_shared_connection *shared)
{
	for (uint32_t i = 0; shared && i <= shared->count; i++) {
		if (shared->slots[i].wake_fd >= 0)
			close(shared->slots[i].wake_fd);
		free(shared->slots[i].notes);
		free(shared->slots[i].data);
	}
	if (shared)
		pthread_mutex_destroy(&shared->lock);
	free(shared);
}

struct cadge_sink *drv_shared_connection_sink(struct drv_shared_connection *shared)
{
	return &shared->port.sink;
}

void drv_shared_connection_take(struct drv_shared_connection *shared, uint32_t slot,
				struct drv_engine *engine)
{
	engine->layer = &shared->table;
	engine->ctx = &shared->slots[slot];
	engine->channels[0].chan = &shared->slots[slot].chan;
}

uint64_t drv_shared_connection_stale(const struct drv_shared_connection *shared)
{
	return shared->stale;
}
