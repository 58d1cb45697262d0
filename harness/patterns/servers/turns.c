/* SPDX-License-Identifier: BSD-3-Clause */
/* One connection under a lock: whose a reply is, and who sleeps where. */
#include "servers/turns.h"

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

#define SEATS_MAX 64u
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
	struct cadge_ctx *seat;
	struct cadge_chan *below;
};

/* A seat. To its thread it is a context. */
struct cadge_ctx {
	/* changes under the lock */
	_Alignas(ALIGN) atomic_uint state;
	/* notes so far: whoever has the lock adds one, the seat's thread takes it */
	atomic_uint added;
	struct note *notes;
	uint8_t *data;
	struct drv_turns *turns;
	uint32_t index;
	/* ends its sleep where it leads; -1 in poll mode */
	int wake_fd;
	struct cadge_chan chan;
	/* the thread's own: notes taken, whose the events of its poll are, whether it was told that the channel is down */
	_Alignas(ALIGN) atomic_uint taken;
	struct cadge_sink *sink;
	bool told;
};

struct drv_turns {
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
	/* under the lock, all of them: whose poll it is; NULL: nobody's who has a seat */
	struct cadge_ctx *polling;
	/* who sleeps on the descriptor, until when at the latest (CLOCK_MONOTONIC) */
	struct cadge_ctx *leader;
	uint64_t until_ns;
	/* who sleeps on a word; who is to be woken once the lock is free; the leader that is */
	uint64_t followers, woken;
	/* whose last call the layer was too busy for */
	uint64_t refused;
	struct cadge_ctx *deposed;
	uint64_t stray;
	/* `count` of them, and that of who dispatches */
	struct cadge_ctx seats[];
};

static uint64_t bit_of(const struct cadge_ctx *seat)
{
	return UINT64_C(1) << seat->index;
}

static void take_lock(struct drv_turns *turns)
{
	pthread_mutex_lock(&turns->lock);
}

/* Gives the lock back, and then wakes who is to be woken: whoever wakes wants the lock. */
static void give_lock(struct drv_turns *turns)
{
	struct cadge_ctx *deposed = turns->deposed;
	uint64_t woken = turns->woken;
	const uint64_t one = 1;

	turns->deposed = NULL;
	turns->woken = 0;
	pthread_mutex_unlock(&turns->lock);
	if (deposed)
		(void)!write(deposed->wake_fd, &one, sizeof(one));
	for (; woken; woken &= woken - 1)
		syscall(SYS_futex, &turns->seats[__builtin_ctzll(woken)].state, FUTEX_WAKE_PRIVATE, 1, NULL,
			NULL, 0);
}

/* Under the lock: it sleeps no longer, wherever it does. */
static void rouse(struct drv_turns *turns, struct cadge_ctx *seat)
{
	if (turns->leader == seat) {
		turns->leader = NULL;
		turns->deposed = seat;
	} else if (atomic_load_explicit(&seat->state, memory_order_relaxed) == FOLLOWS) {
		atomic_store_explicit(&seat->state, AWAKE, memory_order_release);
		turns->followers &= ~bit_of(seat);
		turns->woken |= bit_of(seat);
	}
}

/* Under the lock, after the layer did something: it may take now what it was too busy for. */
static void rouse_refused(struct drv_turns *turns)
{
	for (uint64_t left = turns->refused & turns->followers; left; left &= left - 1)
		rouse(turns, &turns->seats[__builtin_ctzll(left)]);
}

/* Under the lock, after a seat handed something over, or could not. Returns the code. */
static int handed_over(struct cadge_ctx *seat, int code)
{
	struct drv_turns *turns = seat->turns;

	if (DRV_UNLIKELY(code == CADGE_BUSY))
		turns->refused |= bit_of(seat);
	else
		turns->refused &= ~bit_of(seat);
	return code;
}

/* Under the lock: hands something to a seat. */
static void add_note(struct drv_turns *turns, struct cadge_ctx *seat, const struct note *note,
		     const void *data)
{
	const unsigned added = atomic_load_explicit(&seat->added, memory_order_relaxed);
	const size_t bytes = note->bytes < turns->stride ? note->bytes : turns->stride;

	if (added - atomic_load_explicit(&seat->taken, memory_order_acquire) > turns->mask) {
		turns->stray++;
		return;
	}
	seat->notes[added & turns->mask] = *note;
	seat->notes[added & turns->mask].bytes = bytes;
	if (data && bytes)
		memcpy(seat->data + (added & turns->mask) * turns->stride, data, bytes);
	atomic_store_explicit(&seat->added, added + 1, memory_order_release);
	rouse(turns, seat);
}

static bool has_notes(const struct cadge_ctx *seat)
{
	return atomic_load_explicit(&seat->added, memory_order_acquire) !=
	       atomic_load_explicit(&seat->taken, memory_order_relaxed);
}

/* The seat's thread takes what others found for it, without the lock. */
static int take_notes(struct cadge_ctx *seat, struct cadge_sink *sink)
{
	const struct drv_turns *turns = seat->turns;
	unsigned taken = atomic_load_explicit(&seat->taken, memory_order_relaxed);
	const unsigned added = atomic_load_explicit(&seat->added, memory_order_acquire);
	int events = 0;

	for (; taken != added; events++) {
		const struct note *note = &seat->notes[taken & turns->mask];
		const uint8_t *data = seat->data + (taken & turns->mask) * turns->stride;

		if (note->what == MESSAGE)
			sink->recv(sink, 0, data, note->bytes, NULL);
		else if (note->what == RESULT)
			sink->replied(sink, 0, note->token, note->code, note->placement, data, note->bytes,
				      NULL);
		else
			sink->sent(sink, 0, note->token, note->code);
		atomic_store_explicit(&seat->taken, ++taken, memory_order_release);
	}
	return events;
}

/* The first time that it asks after the channel broke. */
static int tell_down(struct cadge_ctx *seat, struct cadge_sink *sink)
{
	const int code = atomic_load_explicit(&seat->turns->down, memory_order_relaxed);

	if (DRV_LIKELY(!code) || seat->told)
		return 0;
	seat->told = true;
	sink->down(sink, 0, code);
	return 1;
}

/* ---- the layer's events: under the lock, or while no step is under way ---- */

static struct cadge_ctx *seat_of(struct drv_turns *turns, uint64_t token)
{
	const uint64_t seat = token >> (DRV_TURNS_NUMBER_BITS + DRV_REQUESTER_SLOT_BITS);

	return seat < turns->count ? &turns->seats[seat] : NULL;
}

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct drv_turns *turns = (struct drv_turns *)sink;
	struct note note = {.what = MESSAGE, .bytes = bytes};
	struct cadge_ctx *seat = turns->polling;

	/* what is no reply is wrong: whoever polls says so */
	if (DRV_LIKELY(drv_trailer_read(data, bytes, DRV_RPC_REPLY, &note.token)))
		seat = seat_of(turns, note.token);
	if (DRV_UNLIKELY(!seat))
		turns->stray++;
	else if (seat == turns->polling)
		return seat->sink->recv(seat->sink, peer, data, bytes, lend);
	else
		add_note(turns, seat, &note, data);
	return CADGE_TAKEN;
}

static enum cadge_keep on_replied(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code,
				  enum cadge_placement placement, const void *data, size_t bytes,
				  struct cadge_lend *lend)
{
	struct drv_turns *turns = (struct drv_turns *)sink;
	const struct note note = {RESULT, placement, code, token, bytes};
	struct cadge_ctx *seat = seat_of(turns, token);

	if (DRV_UNLIKELY(!seat))
		turns->stray++;
	else if (seat == turns->polling)
		return seat->sink->replied(seat->sink, peer, token, code, placement, data, bytes, lend);
	else
		add_note(turns, seat, &note, placement == CADGE_LENT ? data : NULL);
	return CADGE_TAKEN;
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct drv_turns *turns = (struct drv_turns *)sink;
	const struct note note = {.what = SENT, .code = code, .token = token};
	struct cadge_ctx *seat = seat_of(turns, token);

	if (DRV_UNLIKELY(!seat))
		turns->stray++;
	else if (seat == turns->polling)
		seat->sink->sent(seat->sink, peer, token, code);
	else
		add_note(turns, seat, &note, NULL);
}

static void on_down(struct cadge_sink *sink, uint32_t peer, int code)
{
	struct drv_turns *turns = (struct drv_turns *)sink;

	turns->port_down(sink, peer, code);
	if (peer)
		return;
	atomic_store(&turns->down, code ? code : CADGE_E_DOWN);
	for (uint32_t i = 0; i <= turns->count; i++)
		rouse(turns, &turns->seats[i]);
}

/* ---- what a seat's thread calls ---- */

static int seat_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		     uint64_t token)
{
	struct drv_turns *turns = chan->seat->turns;
	int code;

	take_lock(turns);
	code = handed_over(chan->seat, turns->below->post(chan->below, iov, count, flags, token));
	give_lock(turns);
	return code;
}

static int seat_call(struct cadge_chan *chan, uint32_t op, const struct cadge_iov *in, uint32_t in_count,
		     const struct cadge_iov *out, uint32_t out_count, uint32_t flags, uint64_t token)
{
	struct drv_turns *turns = chan->seat->turns;
	int code;

	take_lock(turns);
	code = handed_over(chan->seat,
			   turns->below->call(chan->below, op, in, in_count, out, out_count, flags, token));
	give_lock(turns);
	return code;
}

static int seat_flush(struct cadge_chan *chan)
{
	struct drv_turns *turns = chan->seat->turns;
	int code;

	take_lock(turns);
	code = turns->below->flush(chan->below);
	give_lock(turns);
	return code;
}

/* Whoever finds the lock taken leaves it at that: another thread polls, or hands over. */
static int seat_poll(struct cadge_ctx *seat, struct cadge_sink *sink)
{
	struct drv_turns *turns = seat->turns;
	int events = take_notes(seat, sink);

	if (events || (events = tell_down(seat, sink)))
		return events;
	if (turns->dispatched || pthread_mutex_trylock(&turns->lock)) {
		drv_relax();
		return 0;
	}
	turns->polling = seat;
	seat->sink = sink;
	events = turns->below->poll(turns->ctx, &turns->port.sink);
	turns->polling = NULL;
	if (events)
		rouse_refused(turns);
	give_lock(turns);
	return events;
}

static struct timespec span_of(uint64_t span_ns)
{
	return (struct timespec){.tv_sec = (time_t)(span_ns / NS), .tv_nsec = (long)(span_ns % NS)};
}

/* Sleeps on the descriptor. Has the lock, and has armed under it; gives it back. */
static int lead(struct drv_turns *turns, struct cadge_ctx *seat, int fd, uint64_t now_ns, uint64_t span_ns)
{
	struct pollfd watched[2] = {{.fd = fd, .events = POLLIN}, {.fd = seat->wake_fd, .events = POLLIN}};
	const struct timespec span = span_of(span_ns);
	uint64_t count;
	bool failed;

	turns->leader = seat;
	turns->until_ns = now_ns + span_ns;
	give_lock(turns);
	failed = ppoll(watched, 2, &span, NULL) < 0 && errno != EINTR;
	take_lock(turns);
	if (turns->leader == seat)
		turns->leader = NULL;
	rouse_refused(turns);
	give_lock(turns);
	/* whoever woke it may be about to write still: then its next sleep ends early, which is legal */
	if (watched[1].revents)
		(void)!read(seat->wake_fd, &count, sizeof(count));
	return failed ? CADGE_E_LIBRARY : CADGE_DONE;
}

/* Sleeps until somebody wakes it. Has the lock; gives it back. */
static int follow(struct drv_turns *turns, struct cadge_ctx *seat, uint64_t span_ns)
{
	const struct timespec span = span_of(span_ns);

	atomic_store_explicit(&seat->state, FOLLOWS, memory_order_relaxed);
	turns->followers |= bit_of(seat);
	give_lock(turns);
	syscall(SYS_futex, &seat->state, FUTEX_WAIT_PRIVATE, FOLLOWS, &span, NULL, 0);
	if (atomic_load_explicit(&seat->state, memory_order_acquire) == AWAKE)
		return CADGE_DONE;
	take_lock(turns);
	atomic_store_explicit(&seat->state, AWAKE, memory_order_relaxed);
	turns->followers &= ~bit_of(seat);
	give_lock(turns);
	return CADGE_DONE;
}

/* Under the lock, while another thread leads: arms again what this one's calls may have undone. True: that one has to look. */
static bool arm_again(struct drv_turns *turns, uint64_t now_ns, int *fd_out, uint64_t *due_ns_out,
		      int *code_out)
{
	*due_ns_out = UINT64_MAX;
	*code_out = turns->below->event(turns->ctx, fd_out, due_ns_out);
	return *code_out != CADGE_DONE ||
	       (*due_ns_out < UINT64_MAX - now_ns && now_ns + *due_ns_out < turns->until_ns);
}

static int wait_dispatched(struct drv_turns *turns, struct cadge_ctx *seat, uint64_t timeout_ns)
{
	uint64_t due_ns;
	int fd, code;

	if (!turns->leader || !arm_again(turns, drv_now_ns(), &fd, &due_ns, &code))
		return follow(turns, seat, timeout_ns);
	rouse(turns, turns->leader);
	if (!(turns->refused & bit_of(seat)))
		return follow(turns, seat, timeout_ns);
	/* what there is to do may be that it tries again */
	give_lock(turns);
	return CADGE_DONE;
}

static int seat_wait(struct cadge_ctx *seat, uint64_t timeout_ns)
{
	struct drv_turns *turns = seat->turns;
	const uint64_t now_ns = drv_now_ns();
	uint64_t due_ns;
	bool earlier;
	int fd = -1, code;

	take_lock(turns);
	if (has_notes(seat) || (atomic_load(&turns->down) && !seat->told)) {
		give_lock(turns);
		return CADGE_DONE;
	}
	if (turns->dispatched)
		return wait_dispatched(turns, seat, timeout_ns);
	earlier = arm_again(turns, now_ns, &fd, &due_ns, &code);
	if (code != CADGE_DONE) {
		rouse_refused(turns);
		give_lock(turns);
		return code == CADGE_BUSY ? CADGE_DONE : code;
	}
	if (turns->leader && !earlier)
		return follow(turns, seat, timeout_ns);
	if (turns->leader)
		rouse(turns, turns->leader);
	return lead(turns, seat, fd, now_ns, due_ns < timeout_ns ? due_ns : timeout_ns);
}

void drv_turns_leave(struct drv_turns *turns, uint32_t seat)
{
	uint64_t due_ns;
	int fd, code;

	(void)seat;
	if (!turns->block)
		return;
	take_lock(turns);
	if (turns->leader) {
		if (arm_again(turns, drv_now_ns(), &fd, &due_ns, &code))
			rouse(turns, turns->leader);
	} else if (turns->followers && !turns->dispatched) {
		rouse(turns, &turns->seats[__builtin_ctzll(turns->followers)]);
	}
	give_lock(turns);
}

int drv_turns_dispatch(struct drv_turns *turns, uint64_t timeout_ns)
{
	const uint64_t now_ns = drv_now_ns();
	uint64_t due_ns = UINT64_MAX;
	int fd = -1, code, events;

	take_lock(turns);
	events = turns->below->poll(turns->ctx, &turns->port.sink);
	if (events || !turns->block) {
		rouse_refused(turns);
		give_lock(turns);
		drv_relax();
		return events;
	}
	code = turns->below->event(turns->ctx, &fd, &due_ns);
	if (code != CADGE_DONE) {
		rouse_refused(turns);
		give_lock(turns);
		return code == CADGE_BUSY ? 0 : code;
	}
	code = lead(turns, &turns->seats[turns->count], fd, now_ns,
		    due_ns < timeout_ns ? due_ns : timeout_ns);
	return code < 0 ? code : 0;
}

void drv_turns_nudge(struct drv_turns *turns)
{
	take_lock(turns);
	if (turns->leader)
		rouse(turns, turns->leader);
	give_lock(turns);
}

/* ---- making it ---- */

static bool make_seat(struct drv_turns *turns, uint32_t index, struct cadge_chan *chan)
{
	struct cadge_ctx *seat = &turns->seats[index];
	const size_t places = turns->mask + 1u;

	seat->turns = turns;
	seat->index = index;
	seat->chan = (struct cadge_chan){.seat = seat, .below = chan};
	seat->wake_fd = turns->block ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
	seat->notes = calloc(places, sizeof(*seat->notes));
	seat->data = calloc(places, turns->stride);
	return seat->notes && seat->data && (!turns->block || seat->wake_fd >= 0);
}

static void make_table(struct drv_turns *turns)
{
	turns->table = *turns->below;
	turns->table.post = seat_post;
	turns->table.poll = seat_poll;
	turns->table.wait = seat_wait;
	turns->table.event = NULL;
	turns->table.call = turns->below->call ? seat_call : NULL;
	turns->table.flush = turns->below->flush ? seat_flush : NULL;
	/* messages are built by whoever posts, in its own memory */
	turns->table.reserve = NULL;
	turns->table.commit = NULL;
	turns->table.cancel = NULL;
}

int drv_turns_make(struct drv_engine *engine, uint32_t seats, uint32_t depth, size_t message_bytes,
		   bool dispatched, struct drv_turns **turns_out, struct drv_fail *fail)
{
	const size_t bytes = sizeof(struct drv_turns) + (seats + 1) * sizeof(struct cadge_ctx);
	struct drv_turns *turns = aligned_alloc(ALIGN, (bytes + ALIGN - 1) / ALIGN * ALIGN);
	pthread_mutexattr_t spins_first;
	bool made = true;
	uint32_t places = 1;

	if (!turns || seats > SEATS_MAX) {
		free(turns);
		return drv_fail_set(fail, DRV_MEMORY, "no memory for %u threads", seats);
	}
	memset(turns, 0, bytes);
	drv_port_start(&turns->port, engine);
	turns->port_down = turns->port.sink.down;
	turns->port.sink.recv = on_recv;
	turns->port.sink.replied = on_replied;
	turns->port.sink.sent = on_sent;
	turns->port.sink.down = on_down;
	turns->below = engine->layer;
	turns->ctx = engine->ctx;
	turns->block = engine->block;
	turns->dispatched = dispatched;
	/* a reply and a completion of each, and where some get lost as many that are late */
	while (places < 4 * depth)
		places *= 2;
	turns->mask = places - 1;
	/* one byte more than is right: what is longer stays wrong when it is cut */
	turns->stride = drv_memory_stride(message_bytes + 1);
	make_table(turns);
	pthread_mutexattr_init(&spins_first);
	pthread_mutexattr_settype(&spins_first, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(&turns->lock, &spins_first);
	pthread_mutexattr_destroy(&spins_first);
	for (; turns->count <= seats; turns->count++)
		made = make_seat(turns, turns->count, engine->channels[0].chan) && made;
	turns->count = seats;
	*turns_out = turns;
	if (made)
		return 0;
	drv_turns_free(turns);
	*turns_out = NULL;
	return drv_fail_set(fail, DRV_MEMORY, "no memory or no descriptor for %u threads", seats);
}

void drv_turns_free(struct drv_turns *turns)
{
	for (uint32_t i = 0; turns && i <= turns->count; i++) {
		if (turns->seats[i].wake_fd >= 0)
			close(turns->seats[i].wake_fd);
		free(turns->seats[i].notes);
		free(turns->seats[i].data);
	}
	if (turns)
		pthread_mutex_destroy(&turns->lock);
	free(turns);
}

struct cadge_sink *drv_turns_sink(struct drv_turns *turns)
{
	return &turns->port.sink;
}

void drv_turns_sit(struct drv_turns *turns, uint32_t seat, struct drv_engine *engine)
{
	engine->layer = &turns->table;
	engine->ctx = &turns->seats[seat];
	engine->channels[0].chan = &turns->seats[seat].chan;
}

uint64_t drv_turns_stray(const struct drv_turns *turns)
{
	return turns->stray;
}
