/* SPDX-License-Identifier: BSD-3-Clause */
/* kit/greeting: two ends that meet in any order and over losses, and stamps of other lives, slots and strangers. */
#include "kit/greeting.h"
#include "tests/unit/support/tap.h"

/* One end; what it sends arrives at once, unless it is refused or lost. */
struct end {
	struct end *peer;
	struct cadge_greeting greeting;
	unsigned int refusals, sent[3];
	unsigned int losses; /* of hellos and welcomes, in the order of their sending */
	bool answers, up;
};

static bool deliver(void *arg, enum cadge_stamp_kind kind)
{
	struct end *end = arg;
	const uint32_t stamp = cadge_stamp(&end->greeting, kind);

	if (end->refusals) {
		end->refusals--;
		return false;
	}
	end->sent[kind]++;
	if (end->losses) {
		end->losses--;
		return true;
	}
	if (!cadge_stamp_fits(&end->peer->greeting, stamp))
		return true;
	if (kind == CADGE_STAMP_HELLO && end->answers)
		deliver(end->peer, CADGE_STAMP_WELCOME);
	else if (kind == CADGE_STAMP_HELLO)
		end->peer->greeting.hello_received = true;
	else
		end->peer->up = end->peer->greeting.welcome_received = true;
	return true;
}

static void connect_ends(struct end *a, struct end *b)
{
	*a = (struct end){.peer = b};
	*b = (struct end){.peer = a};
	ok(cadge_stamp_take(&a->greeting, cadge_stamp_given(&b->greeting, 3)) == CADGE_DONE &&
		   cadge_stamp_take(&b->greeting, cadge_stamp_given(&a->greeting, 5)) == CADGE_DONE,
	   "each has the other's stamp");
}

static void reliable(unsigned int refusals)
{
	struct end a, b;
	bool up_a = false, up_b = false;
	unsigned int turns = 0;

	connect_ends(&a, &b);
	a.refusals = refusals;
	b.refusals = refusals / 2;
	while ((!up_a || !up_b) && turns++ < 50) {
		up_a = up_a || cadge_greet(&a.greeting, deliver, &a);
		ok(!up_a || (a.greeting.hello_received && b.greeting.welcome_received),
		   "up: the other one knows");
		up_b = up_b || cadge_greet(&b.greeting, deliver, &b);
	}
	ok(up_a && up_b, "both are up after %u turns, %u sends refused", turns, refusals);
	ok(a.sent[CADGE_STAMP_HELLO] == 1 && a.sent[CADGE_STAMP_WELCOME] == 1 &&
		   b.sent[CADGE_STAMP_HELLO] == 1 && b.sent[CADGE_STAMP_WELCOME] == 1,
	   "each was sent once");
}

static void lossy(unsigned int losses)
{
	struct end a, b;
	uint64_t now_ns = 1;

	connect_ends(&a, &b);
	a.answers = b.answers = true;
	a.losses = losses;
	b.losses = losses / 2;
	for (unsigned int i = 0; i < 100 && (!a.up || !b.up); i++, now_ns += CADGE_HELLO_PERIOD_NS / 4) {
		if (!a.up)
			cadge_greet_again(&a.greeting, now_ns, deliver, &a);
		if (!b.up)
			cadge_greet_again(&b.greeting, now_ns, deliver, &b);
	}
	ok(a.up && b.up, "both are up although %u messages were lost", losses);
	ok(a.sent[CADGE_STAMP_HELLO] <= 1 + now_ns / CADGE_HELLO_PERIOD_NS, "a hello a period, not a poll");
}

static void stamps(void)
{
	struct cadge_greeting ours = {.generation = 7}, theirs = {0};
	const uint32_t given = cadge_stamp_given(&ours, 0xfffe);
	uint32_t stamp;

	ok(cadge_stamp_take(&theirs, given) == CADGE_DONE, "taken");
	stamp = cadge_stamp(&theirs, CADGE_STAMP_WELCOME);
	ok(cadge_stamp_slot(stamp) == 0xfffe && cadge_stamp_kind(stamp) == CADGE_STAMP_WELCOME &&
		   cadge_stamp_fits(&ours, stamp),
	   "slot, kind and generation come back");
	ok(cadge_stamp_take(&theirs, stamp) == CADGE_E_ARGUMENT && theirs.peer_stamp == given,
	   "an address holds no kind");
	ours = cadge_greeting_next(&ours);
	ok(!cadge_stamp_fits(&ours, stamp) && ours.generation == 8 && !ours.peer_stamp,
	   "not of the next life");
	ours.generation = CADGE_STAMP_GENERATION_MASK;
	stamp = cadge_stamp_given(&ours, 1);
	ok(cadge_stamp_take(&theirs, stamp) == CADGE_DONE && cadge_stamp_fits(&ours, stamp),
	   "the last generation");
	ours = cadge_greeting_next(&ours);
	ok(ours.generation == 0 && !cadge_stamp_fits(&ours, stamp), "and the first again");
}

int main(void)
{
	for (unsigned int count = 0; count < 4; count++) {
		reliable(count);
		lossy(count);
	}
	stamps();
	return tap_done();
}
