/* SPDX-License-Identifier: BSD-3-Clause */
/* native-zmq where the first port of the range is taken: what ZeroMQ reports of the failed bind is not the end of a channel. */
#include "tests/unit/support/pair.h"
#include "tests/unit/support/tap.h"

enum { LIVES = 8, MESSAGES = 200 }; /* who connects is decided by chance, and so whether it matters */

static bool life(const struct cadge_layer *layer, const struct cadge_open_args *args)
{
	struct pair_end a, b;
	bool good;

	if (pair_open(&a, layer, args) != CADGE_DONE || pair_open(&b, layer, args) != CADGE_DONE)
		return false;
	good = pair_bring_up(&a, &b);
	for (int i = 0; good && i < MESSAGES; i++) /* the monitor is looked at now and then */
		good = pair_post(&a, &b, "message", 8, 1) >= CADGE_DONE;
	good = good && pair_poll_until(&a, &b, &b.seen.received, MESSAGES, 2000);
	good = good && !a.seen.downs && !b.seen.downs;
	pair_close(&a);
	pair_close(&b);
	return good;
}

int main(void)
{
	struct cadge_open_args args = pair_args(CADGE_WAIT_POLL);
	const struct cadge_layer *layer;

	if (!pair_here("native-zmq"))
		tap_skip_all("native-zmq is not here");
	layer = pair_load("native-zmq");
	args.place = CADGE_PLACE_NET;
	args.port_first = 18850;
	args.port_last = 18859;
	for (int i = 0; i < LIVES; i++)
		ok(life(layer, &args), "two ends, of which one found the first port taken, life %d", i + 1);
	return tap_done();
}
