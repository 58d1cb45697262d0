/* SPDX-License-Identifier: BSD-3-Clause */
/* One end of the contract in a rank: what each sketch of a program needs before it begins. */
#ifndef CADGE_TESTS_SKETCHES_END_H
#define CADGE_TESTS_SKETCHES_END_H

#include "cadge/layer.h"
#include "tests/ranks/ranks.h"

enum { DEPTH = 16, MESSAGE_BYTES = 4096 };

struct end {
	struct cadge_sink sink; /* first: callbacks get a pointer to it */
	struct rank *rank;
	struct cadge_layer layer;
	struct cadge_ctx *ctx;
	struct cadge_limits limits;
	struct cadge_chan *chans[RANKS_MAX];
	bool up[RANKS_MAX], down[RANKS_MAX];
	unsigned int unsent; /* posts that were QUEUED */
	void (*on_message)(struct end *end, uint32_t peer, const uint8_t *data, size_t bytes);
	void *arg;
};

/* Loads and opens the layer, for all ranks as peers; skips where it was not built or does not open here. */
void end_open(struct end *end, struct rank *rank, const char *layer);
/* Exchanges addresses with a rank, which becomes `peer`; both call it, and poll until `up`. */
void end_connect(struct end *end, uint32_t peer, uint32_t other);
void end_close(struct end *end);
/* Polls once. Returns the number of events. */
int end_poll(struct end *end);
/* Posts a message, polling while the layer is busy and until its buffer may be used again. */
void end_send(struct end *end, uint32_t peer, const void *data, size_t bytes);
/* Polls until *flag is true. */
void end_await(struct end *end, const bool *flag, const char *what);

#endif
