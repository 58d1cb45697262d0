/* SPDX-License-Identifier: BSD-3-Clause */
/* Only wait may sleep, and it must: idle costs nothing, and a message ends the sleep. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "cadge/check.h"
#include "conformance.h"
#include "launchers.h"

#define POLLS        10000u
#define SLOW_POLL_NS (200u * 1000u)
#define LIBRARY_SLEEPS                                                                                       \
	"; if the library sleeps and not the adapter, list poll_never_sleeps under known_faults in "         \
	"%s.layer.yml, with the function"

static enum cadge_keep any_recv(struct endpoint *ep, uint32_t peer, const void *data, size_t bytes,
				struct cadge_lend *lend)
{
	(void)peer;
	(void)data;
	(void)bytes;
	(void)lend;
	if (ep->arg)
		++*(unsigned int *)ep->arg;
	return CADGE_TAKEN;
}

void test_poll_never_sleeps(struct rank *r)
{
	uint64_t before, slept, began, took;
	unsigned int slow = 0, posts = 0;
	struct cadge_iov iov = {.bytes = 64};
	struct endpoint *ep;

	if (endpoint_start(r, &wishes_default, &ep) < 0)
		return;
	ep->arg = NULL;
	ep->on_recv = any_recv;
	if (oob_barrier(r) < 0)
		return;
	before = voluntary_switches();
	for (unsigned int i = 0; i < POLLS; i++) {
		began = now_ns();
		if (endpoint_poll(ep) < 0)
			return;
		took = now_ns() - began;
		slow += took > SLOW_POLL_NS;
	}
	slept = voluntary_switches() - before;
	if (slept > POLLS / 100) {
		fail(r,
		     "%llu of %u polls with nothing to do yielded the processor: only wait may "
		     "sleep" LIBRARY_SLEEPS,
		     (unsigned long long)slept, POLLS, r->layer->substrate);
		return;
	}
	if (slow > POLLS / 20) {
		fail(r, "%u of %u polls with nothing to do took more than %u us" LIBRARY_SLEEPS, slow, POLLS,
		     SLOW_POLL_NS / 1000, r->layer->substrate);
		return;
	}
	iov.base = buffer_new(ep, iov.bytes);
	if (!iov.base || oob_barrier(r) < 0)
		return;
	pattern_fill(iov.base, iov.bytes, 41, 0);
	before = voluntary_switches();
	for (unsigned int i = 0; i < 2000; i++) {
		uint64_t token = token_new(ep, NULL);
		int busy;

		if (token == UINT64_MAX)
			return;
		busy = endpoint_account(ep, ep->layer->post(ep->peer[0].chan, &iov, 1, 0, token), token,
					"post");
		if (busy < 0 || endpoint_poll(ep) < 0)
			return;
		posts += !busy;
	}
	slept = voluntary_switches() - before;
	if (slept > 2000 / 50) {
		fail(r,
		     "%llu of 2000 posts and polls yielded the processor (%u posts were "
		     "accepted)" LIBRARY_SLEEPS,
		     (unsigned long long)slept, posts, r->layer->substrate);
		return;
	}
	if (endpoint_drain(ep) < 0 || oob_barrier(r) < 0)
		return;
	buffer_free(ep, iov.base, iov.bytes);
	endpoint_stop(ep);
}

/* Waits with nothing to come: near its timeout, asleep, at no cost. */
static int idle_is_cheap(struct endpoint *ep)
{
	const uint64_t timeout_ns = 60 * NS_PER_MS, total_ns = 300 * NS_PER_MS;
	uint64_t began, cpu, switches, took, waits = 0, end;
	struct rank *r = ep->r;

	/* Whatever connecting left behind is not idleness. */
	for (end = now_ns() + 50 * NS_PER_MS; now_ns() < end;)
		if (endpoint_poll(ep) < 0 || ep->layer->wait(ep->ctx, NS_PER_MS) != CADGE_DONE)
			return fail(r, "wait failed with nothing to come");
	cpu = cpu_ns();
	switches = voluntary_switches();
	for (end = now_ns() + total_ns; now_ns() < end; waits++) {
		int rc;

		if (endpoint_poll(ep) < 0)
			return -1;
		began = now_ns();
		rc = ep->layer->wait(ep->ctx, timeout_ns);
		took = now_ns() - began;
		if (rc != CADGE_DONE)
			return fail(r, "wait returned %d (%s)", rc, cadge_code_name(rc));
		if (took > timeout_ns + 400 * NS_PER_MS)
			return fail(r, "wait(60 ms) came back after %llu ms",
				    (unsigned long long)(took / NS_PER_MS));
	}
	cpu = cpu_ns() - cpu;
	switches = voluntary_switches() - switches;
	if (cpu * 20 > total_ns * r->opt->scale)
		return fail(r,
			    "waiting 300 ms for nothing used %llu ms of CPU in %llu waits: it does not sleep",
			    (unsigned long long)(cpu / NS_PER_MS), (unsigned long long)waits);
	if (switches < 3)
		return fail(r, "%llu waits in 300 ms yielded the processor %llu times",
			    (unsigned long long)waits, (unsigned long long)switches);
	return 0;
}

/* Sleeps until *count reaches want. */
static int sleep_until(struct endpoint *ep, const unsigned int *count, unsigned int want, uint64_t limit_ns)
{
	uint64_t began = now_ns();
	int got;

	while (*count < want) {
		got = endpoint_poll(ep);
		if (got < 0)
			return -1;
		if (got)
			continue;
		got = ep->layer->wait(ep->ctx, 5 * NS_PER_S);
		if (got != CADGE_DONE)
			return fail(ep->r, "wait returned %d (%s)", got, cadge_code_name(got));
		if (now_ns() - began > limit_ns)
			break;
	}
	if (now_ns() - began > limit_ns)
		return fail(ep->r,
			    "a message came while wait slept, but it kept sleeping: %llu ms instead of at "
			    "most %llu",
			    (unsigned long long)((now_ns() - began) / NS_PER_MS),
			    (unsigned long long)(limit_ns / NS_PER_MS));
	return 0;
}

/*
 * Moves this thread to a processor of its own, each of the two to another one. False: there is one only, where two
 * take turns without a sleep; that happens on several as well, where something else keeps all but one busy.
 */
static bool move_apart(const struct rank *r, cpu_set_t *before)
{
	cpu_set_t own;
	size_t cpu;

	if (sched_getaffinity(0, sizeof(*before), before) || CPU_COUNT(before) < 2)
		return false;
	if (rank_starts(r)) {
		for (cpu = 0; !CPU_ISSET(cpu, before); cpu++)
			;
	} else {
		for (cpu = CPU_SETSIZE - 1; !CPU_ISSET(cpu, before); cpu--)
			;
	}
	CPU_ZERO(&own);
	CPU_SET(cpu, &own);
	return sched_setaffinity(0, sizeof(own), &own) == 0;
}

void test_wait_sleeps_and_wakes(struct rank *r)
{
	struct timespec nap = {.tv_nsec = 30 * 1000 * 1000};
	struct cadge_iov iov = {.bytes = 64};
	unsigned int arrived = 0;
	struct endpoint *ep;
	cpu_set_t before;
	uint64_t switches;
	bool apart;
	int code;

	if (r->opt->wait_mode != CADGE_WAIT_BLOCK) {
		skip(r, "wait is called in block mode only");
		return;
	}
	if (endpoint_start(r, &wishes_default, &ep) < 0)
		return;
	if (!(ep->limits.caps & CADGE_CAP_WAIT)) {
		fail(r, "opened for block mode, but WAIT is not granted");
		return;
	}
	ep->arg = &arrived;
	ep->on_recv = any_recv;
	iov.base = buffer_new(ep, iov.bytes);
	if (!iov.base || idle_is_cheap(ep) < 0 || oob_barrier(r) < 0)
		return;
	pattern_fill(iov.base, iov.bytes, 42, 0);
	/* Woken out of a long sleep. */
	for (unsigned int i = 0; i < 5; i++) {
		if (rank_starts(r)) {
			nanosleep(&nap, NULL);
			if (endpoint_post(ep, 0, &iov, 1, 0, NULL, &code) < 0 || endpoint_drain(ep) < 0)
				return;
		} else if (sleep_until(ep, &arrived, i + 1, 2 * NS_PER_S) < 0) {
			return;
		}
		if (oob_barrier(r) < 0)
			return;
	}
	/*
	 * Back and forth without a pause: the gap between the last look and the sleep is where wake-ups get
	 * lost.
	 */
	arrived = 0;
	apart = move_apart(r, &before);
	if (oob_barrier(r) < 0)
		return;
	switches = voluntary_switches();
	for (unsigned int i = 0; i < 500; i++) {
		if (!rank_starts(r) && sleep_until(ep, &arrived, i + 1, 2 * NS_PER_S) < 0)
			return;
		if (endpoint_post(ep, 0, &iov, 1, 0, NULL, &code) < 0)
			return;
		if (rank_starts(r) && sleep_until(ep, &arrived, i + 1, 2 * NS_PER_S) < 0)
			return;
		if (endpoint_drain(ep) < 0)
			return;
	}
	switches = voluntary_switches() - switches;
	if (apart && switches < 50) {
		fail(r, "500 exchanges that waited in turn slept %llu times", (unsigned long long)switches);
		return;
	}
	if (apart)
		sched_setaffinity(0, sizeof(before), &before);
	if (oob_barrier(r) < 0)
		return;
	buffer_free(ep, iov.base, iov.bytes);
	endpoint_stop(ep);
}

/* Skips where this context does not sleep; -1 after skip or fail, as begin of a test. */
static int start_sleeping(struct rank *r, struct endpoint **ep_out)
{
	if (r->opt->wait_mode != CADGE_WAIT_BLOCK) {
		skip(r, "wait is called in block mode only");
		return -1;
	}
	return endpoint_open(r, &wishes_default, ep_out);
}

static void nap_ms(unsigned int ms)
{
	struct timespec nap = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	nanosleep(&nap, NULL);
}

/*
 * What brings a channel up, and the first message on it, come while the receiver sleeps in one long wait: a
 * wake that gets lost there is hidden from a caller that never sleeps for long.
 */
void test_wait_after_connect(struct rank *r)
{
	struct cadge_iov iov = {.bytes = 64};
	unsigned int arrived = 0;
	struct endpoint *ep;
	uint64_t began;
	int code;

	if (start_sleeping(r, &ep) < 0)
		return;
	for (unsigned int round = 0; round < 3; round++) {
		ep->long_waits = true;
		began = now_ns();
		/* The one comes first, then the other: which of them dials is the layer's business. */
		if (r->count > 1 && r->number == round % 2)
			nap_ms(100);
		if (endpoint_connect(ep) < 0)
			return;
		if (now_ns() - began > 3 * NS_PER_S) {
			fail(r, "connecting took %llu ms: wait slept while there was something to do",
			     (unsigned long long)((now_ns() - began) / NS_PER_MS));
			return;
		}
		ep->long_waits = false;
		arrived = 0;
		ep->arg = &arrived;
		ep->on_recv = any_recv;
		iov.base = buffer_new(ep, iov.bytes);
		if (!iov.base)
			return;
		pattern_fill(iov.base, iov.bytes, 43, round);
		if (rank_starts(r)) {
			nap_ms(100);
			if (endpoint_post(ep, 0, &iov, 1, 0, NULL, &code) < 0 || endpoint_drain(ep) < 0)
				return;
		}
		if (rank_answers(r) && sleep_until(ep, &arrived, 1, 2 * NS_PER_S) < 0)
			return;
		if (oob_barrier(r) < 0)
			return;
		buffer_free(ep, iov.base, iov.bytes);
		ep->may_lose_peer = true;
		if (oob_barrier(r) < 0 || endpoint_disconnect(ep) < 0 || oob_barrier(r) < 0)
			return;
		ep->may_lose_peer = false;
	}
	endpoint_close(ep);
}

#define FLOOD_MAX 20000u

/* Floods a peer that does not look until BUSY, sleeps in one long wait, and is woken when the peer makes room. */
void test_wait_after_busy(struct rank *r)
{
	struct cadge_iov iov = {.bytes = 16384};
	unsigned int posts = 0;
	bool was_busy = false;
	struct endpoint *ep;
	uint64_t began, took;
	int rc, busy = 0;

	if (start_sleeping(r, &ep) < 0 || endpoint_connect(ep) < 0)
		return;
	if (iov.bytes > ep->limits.message_bytes_max)
		iov.bytes = (size_t)ep->limits.message_bytes_max;
	ep->arg = NULL;
	ep->on_recv = any_recv;
	iov.base = buffer_new(ep, iov.bytes);
	if (!iov.base || oob_barrier(r) < 0)
		return;
	pattern_fill(iov.base, iov.bytes, 44, 0);
	if (!rank_starts(r)) {
		nap_ms(400); /* nobody polls here now: the sender fills what there is */
		if (oob_barrier(r) < 0)
			return;
		buffer_free(ep, iov.base, iov.bytes);
		endpoint_stop(ep);
		return;
	}
	for (began = now_ns(); posts < FLOOD_MAX && !busy && now_ns() - began < 250 * NS_PER_MS;) {
		const uint64_t token = token_new(ep, NULL);

		busy = endpoint_account(ep, ep->layer->post(ep->peer[0].chan, &iov, 1, 0, token), token,
					"post");
		if (busy < 0)
			return;
		posts += !busy;
	}
	was_busy = busy > 0;
	for (began = now_ns(); was_busy && busy > 0;) {
		const uint64_t token = token_new(ep, NULL);
		int got;

		busy = endpoint_account(ep, ep->layer->post(ep->peer[0].chan, &iov, 1, 0, token), token,
					"post");
		got = busy < 0 ? -1 : endpoint_poll(ep);
		if (got < 0)
			return;
		if (got || !busy)
			continue;
		rc = ep->layer->wait(ep->ctx, LONG_WAIT_NS);
		if (rc != CADGE_DONE) {
			fail(r, "wait returned %d (%s)", rc, cadge_code_name(rc));
			return;
		}
		took = now_ns() - began;
		if (took > 3 * NS_PER_S) {
			fail(r,
			     "after %u posts one was BUSY; the peer began to receive 400 ms later, and wait "
			     "kept sleeping: %llu ms",
			     posts, (unsigned long long)(took / NS_PER_MS));
			return;
		}
	}
	if (endpoint_drain(ep) < 0 || oob_barrier(r) < 0)
		return;
	buffer_free(ep, iov.base, iov.bytes);
	endpoint_stop(ep);
}

/*
 * The peer is killed while nothing is under way. A layer need not notice (that is the out-of-band channel's
 * work), but what its poll can tell must end a wait.
 */
void test_wait_peer_dies(struct rank *r)
{
	uint64_t began, slept = 0;
	struct endpoint *ep;
	int rc;

	if (start_sleeping(r, &ep) < 0 || endpoint_connect(ep) < 0)
		return;
	ep->may_lose_peer = true;
	if (oob_barrier(r) < 0)
		return;
	if (!rank_starts(r)) {
		for (;;)
			nap_ms(1000);
	}
	while (endpoint_poll(ep) > 0)
		;
	note(r, "killing the peer");
	if (kill(r->pids[1], SIGKILL) < 0) {
		fail(r, "the suite cannot kill the peer");
		return;
	}
	if (!process_ends(r->pids[1], 5000)) { /* with the files it had open */
		fail(r, "the peer did not end");
		return;
	}
	note(r, "sleeping after the peer's death");
	for (began = now_ns(); !ep->peer[0].downs && now_ns() - began < 2 * NS_PER_S;) {
		const uint64_t before = now_ns();

		rc = ep->layer->wait(ep->ctx, 2 * NS_PER_S);
		slept = now_ns() - before;
		if (rc < 0)
			break;
		if (endpoint_poll(ep) < 0)
			break;
	}
	if (r->verdict == VERDICT_NONE && ep->peer[0].downs && slept > 1900 * NS_PER_MS)
		fail(r, "the peer died, poll reported it, but wait kept sleeping for %llu ms",
		     (unsigned long long)(slept / NS_PER_MS));
	endpoint_close(ep);
}

/* One wait of a program's own event loop for its contexts. 1: something may have come; -1 after fail(). */
static int loop_wait(int epoll, struct endpoint *const eps[2], int fds[2], uint64_t most_ns)
{
	struct epoll_event events[2];
	struct rank *r = eps[0]->r;

	for (unsigned int i = 0; i < 2 && eps[i]; i++) {
		uint64_t due_ns = 0;
		int fd = -1, rc = eps[i]->layer->event(eps[i]->ctx, &fd, &due_ns);

		if (rc == CADGE_BUSY)
			return 1;
		if (rc != CADGE_DONE || fd < 0)
			return fail(r, "event returned %d (%s) and descriptor %d", rc, cadge_code_name(rc),
				    fd);
		if (fds[i] < 0) {
			struct epoll_event event = {.events = EPOLLIN, .data = {.u32 = i}};

			if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
				return fail(r, "the descriptor of event cannot be watched: %s",
					    strerror(errno));
			fds[i] = fd;
		}
		if (fds[i] != fd)
			return fail(r, "event gave descriptor %d, and before it was %d", fd, fds[i]);
		most_ns = due_ns < most_ns ? due_ns : most_ns;
	}
	/* Rounded up, so that the last millisecond is no spinning. */
	if (epoll_wait(epoll, events, 2, (int)((most_ns + NS_PER_MS - 1) / NS_PER_MS)) < 0 && errno != EINTR)
		return fail(r, "epoll_wait: %s", strerror(errno));
	return 1;
}

static int loop_poll(struct endpoint *const eps[2])
{
	for (unsigned int i = 0; i < 2 && eps[i]; i++)
		if (endpoint_poll(eps[i]) < 0)
			return -1;
	return 0;
}

/* Runs the loop until *count reaches want, at most limit_ns. */
static int loop_until(int epoll, struct endpoint *const eps[2], int fds[2], const unsigned int *count,
		      unsigned int want, uint64_t limit_ns)
{
	const uint64_t began = now_ns();

	while (*count < want) {
		if (loop_wait(epoll, eps, fds, LONG_WAIT_NS) < 0)
			return -1;
		if (loop_poll(eps) < 0)
			return -1;
		if (now_ns() - began > limit_ns)
			return fail(
				eps[0]->r,
				"a message came while the event loop slept, but it kept sleeping: %llu ms",
				(unsigned long long)((now_ns() - began) / NS_PER_MS));
	}
	return 0;
}

/* Whether the device has room for one context: a second open says that the transport is not there. */
static bool has_one_user(struct rank *r)
{
	struct cadge_open_args args;
	struct cadge_ctx *ctx = NULL;
	char error[256];
	int rc;

	endpoint_args(r, &wishes_default, error, sizeof(error), &args);
	rc = r->layer->open(&args, &ctx);
	if (rc == CADGE_DONE)
		r->layer->close(ctx);
	return rc == CADGE_E_TRANSPORT;
}

/* Two contexts in one event loop (or one, where there can be no more), which sleeps in epoll alone. */
void test_event_tells(struct rank *r)
{
	struct cadge_iov iov = {.bytes = 64};
	struct endpoint *eps[2] = {NULL, NULL};
	unsigned int arrived = 0, slept = 0;
	int fds[2] = {-1, -1}, epoll, code;
	uint64_t end, cpu, switches;

	if (start_sleeping(r, &eps[0]) < 0)
		return;
	if (!(eps[0]->limits.caps & CADGE_CAP_EVENT_FD)) {
		endpoint_close(eps[0]);
		skip(r, "EVENT_FD is not granted");
		return;
	}
	if (!has_one_user(r) && endpoint_open(r, &wishes_default, &eps[1]) < 0)
		return;
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0) {
		fail(r, "the suite has no epoll");
		return;
	}
	for (unsigned int i = 0; i < 2 && eps[i]; i++) {
		if (endpoint_connect(eps[i]) < 0)
			return;
		eps[i]->arg = &arrived;
		eps[i]->on_recv = any_recv;
	}
	iov.base = buffer_new(eps[0], iov.bytes);
	if (!iov.base || oob_barrier(r) < 0)
		return;
	pattern_fill(iov.base, iov.bytes, 45, 0);
	/* Nothing to come: the loop sleeps. What connecting left behind is done first. */
	for (end = now_ns() + 100 * NS_PER_MS; now_ns() < end;)
		if (loop_wait(epoll, eps, fds, 5 * NS_PER_MS) < 0 || loop_poll(eps) < 0)
			return;
	cpu = cpu_ns();
	for (end = now_ns() + 300 * NS_PER_MS; now_ns() < end;)
		if (loop_wait(epoll, eps, fds, end - now_ns()) < 0 || loop_poll(eps) < 0)
			return;
	cpu = cpu_ns() - cpu;
	if (cpu * 10 > 300 * NS_PER_MS) {
		fail(r, "an event loop with nothing to do used %llu ms of CPU in 300 ms",
		     (unsigned long long)(cpu / NS_PER_MS));
		return;
	}
	arrived = 0;
	if (oob_barrier(r) < 0)
		return;
	for (unsigned int i = 0; i < 300; i++) {
		struct endpoint *ep = eps[eps[1] ? i * 7 / 3 % 2 : 0];

		switches = voluntary_switches();
		if (!rank_starts(r) && loop_until(epoll, eps, fds, &arrived, i + 1, 2 * NS_PER_S) < 0)
			return;
		slept += voluntary_switches() > switches;
		if (i < 10)
			nap_ms(30); /* the other one's loop falls asleep, and a message has to end that */
		if (endpoint_post(ep, 0, &iov, 1, 0, NULL, &code) < 0 || endpoint_drain(ep) < 0)
			return;
		switches = voluntary_switches();
		if (rank_starts(r) && loop_until(epoll, eps, fds, &arrived, i + 1, 2 * NS_PER_S) < 0)
			return;
		slept += voluntary_switches() > switches;
	}
	/* Of the others nothing is asked: where arming takes longer than a peer's answer, nobody sleeps. */
	if (slept < 9) {
		fail(r, "an event loop slept %u times for 10 messages that came 30 ms later", slept);
		return;
	}
	if (oob_barrier(r) < 0)
		return;
	buffer_free(eps[0], iov.base, iov.bytes);
	close(epoll);
	for (unsigned int i = 0; i < 2 && eps[i]; i++) {
		r->polled = eps[i];
		if (endpoint_stop(eps[i]) < 0)
			return;
	}
}
