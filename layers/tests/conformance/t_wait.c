/* SPDX-License-Identifier: BSD-3-Clause */
/* Only wait may sleep, and it must: idle costs nothing, and a message ends the sleep. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cadge/check.h"
#include "conformance.h"

#define POLLS        10000u
#define SLOW_POLL_NS (200u * 1000u)

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
		fail(r, "%llu of %u polls with nothing to do gave the processor away: only wait may sleep",
		     (unsigned long long)slept, POLLS);
		return;
	}
	if (slow > POLLS / 20) {
		fail(r, "%u of %u polls with nothing to do took more than %u us", slow, POLLS,
		     SLOW_POLL_NS / 1000);
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
		fail(r, "%llu of 2000 posts and polls gave the processor away (%u posts were accepted)",
		     (unsigned long long)slept, posts);
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
	if (cpu * 20 > total_ns)
		return fail(r,
			    "waiting 300 ms for nothing used %llu ms of CPU in %llu waits: it does not sleep",
			    (unsigned long long)(cpu / NS_PER_MS), (unsigned long long)waits);
	if (switches < 3)
		return fail(r, "%llu waits in 300 ms gave the processor away %llu times",
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
		return fail(
			ep->r,
			"a message came while wait slept, and it slept on: %llu ms instead of at most %llu",
			(unsigned long long)((now_ns() - began) / NS_PER_MS),
			(unsigned long long)(limit_ns / NS_PER_MS));
	return 0;
}

void test_wait_sleeps_and_wakes(struct rank *r)
{
	struct timespec nap = {.tv_nsec = 30 * 1000 * 1000};
	struct cadge_iov iov = {.bytes = 64};
	unsigned int arrived = 0;
	struct endpoint *ep;
	uint64_t switches;
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
	/* Two processes on one busy processor take turns without a sleep; hence only a tenth. */
	if (switches < 50) {
		fail(r, "500 exchanges that waited in turn slept %llu times", (unsigned long long)switches);
		return;
	}
	if (oob_barrier(r) < 0)
		return;
	buffer_free(ep, iov.base, iov.bytes);
	endpoint_stop(ep);
}
