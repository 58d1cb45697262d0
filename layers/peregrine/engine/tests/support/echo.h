/* SPDX-License-Identifier: BSD-3-Clause */
/* A server that turns every bit of what it gets, and a client that looks at every byte of what comes back. */
#ifndef PGR_TEST_ECHO_H
#define PGR_TEST_ECHO_H

#include "pair.h"

#define ECHO_PROCEDURE 1u

/* Serves until the client stops, and closes the endpoint. */
int echo_serve(struct pair *pair, struct pgr *pgr, bool block);

/* So many calls, `outstanding` of them at once; the n-th has sizes[n % sizes_count] bytes. */
struct echo_calls {
	const char *what;
	const uint32_t *sizes;
	uint32_t sizes_count, calls, outstanding;
};
int echo_call(struct pair *pair, struct pgr *pgr, struct pgr_peer *peer, bool block,
	      const struct echo_calls *calls);

#endif
