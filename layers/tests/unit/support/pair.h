/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two contexts of one layer in one process, for unit tests: loaded from CADGE_MODULES, connected over
 * 127.0.0.1, with a sink that notes what it is told.
 */
#ifndef CADGE_TESTS_PAIR_H
#define CADGE_TESTS_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadge/layer.h"

enum { PAIR_NOTES_MAX = 4096, PAIR_BLOB_BYTES = 2048 };

/* What a sink saw of one context. Received bytes are appended to `data` up to its room. */
struct pair_sink {
	struct cadge_sink sink;
	struct cadge_ctx *ctx;
	const struct cadge_layer *layer;
	int ups, downs, down_code, received, sent, sent_failed, replied, called;
	uint64_t received_bytes;
	uint64_t sent_tokens[PAIR_NOTES_MAX];
	size_t sizes[PAIR_NOTES_MAX]; /* of the messages received */
	unsigned char *data;
	size_t data_bytes, data_room_bytes;
	bool keep;
	struct cadge_lend *kept[PAIR_NOTES_MAX];
	const void *kept_data[PAIR_NOTES_MAX];
	int kept_count;
	/* Called at the end of recv, if set. */
	void (*on_recv)(struct pair_sink *self, const void *data, size_t bytes);
	void *arg;
};

struct pair_end {
	const struct cadge_layer *layer;
	struct cadge_ctx *ctx;
	struct cadge_chan *chan;
	struct pair_sink seen;
	unsigned char blob[PAIR_BLOB_BYTES];
	size_t blob_bytes;
};

/* The table of a module, checked; ends the program when there is none. */
const struct cadge_layer *pair_load(const char *name);

/* Is this module here, and does the machine let it open? */
bool pair_here(const char *name);

/* Arguments of open as the tests use them; error is a static buffer. */
struct cadge_open_args pair_args(enum cadge_wait_mode wait_mode);

/* Opens one end, and learns its address for peer 0. Returns open's code. */
int pair_open(struct pair_end *end, const struct cadge_layer *layer, const struct cadge_open_args *args);
void pair_close(struct pair_end *end);

/*
 * Connects both ends and polls until both are up. Returns false when that does not happen within two
 * seconds.
 */
bool pair_bring_up(struct pair_end *a, struct pair_end *b);

/* Polls one end, or two, until *number >= wanted or the deadline passed. Returns whether it was reached. */
bool pair_poll_until(struct pair_end *a, struct pair_end *b, const int *number, int wanted,
		     unsigned milliseconds);

/* Posts, polling while BUSY. Returns DONE, QUEUED or the error. */
int pair_post(struct pair_end *from, struct pair_end *other, const void *data, size_t bytes, uint64_t token);

uint64_t pair_now_ns(void);

/* Open file descriptors and threads of this process, and its resident memory in KiB. */
int pair_descriptors(void);
int pair_threads(void);
long pair_resident_kib(void);

/* Fills with bytes that depend on the seed and the place. */
void pair_fill(unsigned char *data, size_t bytes, unsigned seed);
bool pair_matches(const unsigned char *data, size_t bytes, unsigned seed);

#endif
