/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open, meet, exchange, close, a thousand times (fifty under sanitizers, whose quarantine grows by itself):
 * the process has as many descriptors, threads and about as much memory afterwards as before.
 */
#include <string.h>

#include "cadge/sanitized.h"
#include "tests/unit/support/pair.h"
#include "tests/unit/support/tap.h"

enum { ROUNDS = CADGE_SANITIZED ? 50 : 1000, WARM_UP = 20, GROWTH_KIB_MAX = 256 };

static bool one_round(const struct cadge_layer *layer, int round)
{
	static unsigned char payload[200000];
	const struct cadge_open_args args = pair_args(CADGE_WAIT_POLL);
	struct pair_end a, b;
	size_t bytes = layer->caps & CADGE_CAP_RELIABLE ? sizeof(payload) : 1000;
	bool good;

	if (pair_open(&a, layer, &args) < 0 || pair_open(&b, layer, &args) < 0)
		tap_bail(args.error);
	good = pair_bring_up(&a, &b) && pair_post(&a, &b, payload, bytes, 1) >= 0 &&
	       pair_poll_until(&a, &b, &b.seen.received, 1, 1000);
	/* Close with work outstanding every other time. */
	if (round % 2)
		(void)pair_post(&b, &a, payload, bytes, 2);
	pair_close(round % 3 ? &a : &b);
	pair_close(round % 3 ? &b : &a);
	return good;
}

int main(void)
{
	static const char *const names[] = {"sockets-tcp", "sockets-unix", "sockets-udp", "sockets-uring"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const struct cadge_layer *layer = pair_here(names[i]) ? pair_load(names[i]) : NULL;
		int descriptors, threads, round = 0;
		long resident_kib, grown_kib;

		if (!layer)
			continue;
		while (round < WARM_UP && one_round(layer, round))
			round++;
		descriptors = pair_descriptors();
		threads = pair_threads();
		resident_kib = pair_resident_kib();
		while (round < WARM_UP + ROUNDS && one_round(layer, round))
			round++;
		ok(round == WARM_UP + ROUNDS, "%s: opened and closed %d times", names[i], round);
		ok(pair_descriptors() == descriptors && pair_threads() == threads,
		   "%s: no descriptor and no thread more than before", names[i]);
		grown_kib = pair_resident_kib() - resident_kib;
		if (!CADGE_SANITIZED)
			ok(grown_kib <= GROWTH_KIB_MAX, "%s: memory grew by %ld KiB", names[i], grown_kib);
	}
	return tap_done();
}
