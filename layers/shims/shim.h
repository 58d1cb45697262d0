/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What shims share. A shim is a layer around another one: its open gets that layer's table in args->inner.
 *
 * A shim's context and channels begin with the two structs below, and its table has a function of this file in each
 * slot that it passes on as it is. Its own functions are what it changes.
 *
 * Settings: the caller gives a shim and its inner layer one array. A shim takes the settings whose name
 * begins with its own substrate and a dot ("delay.delay_ns" is option delay_ns of shim-delay) and hands all
 * others on untouched, so the caller strips nothing. One shim deep is what ABI 1 allows: open refuses an
 * inner layer of style "shim".
 *
 * A shim's granted capabilities are those of the inner context, less what the shim cannot keep: a caller that
 * wraps a layer asks limits, not the table. `library` has no context and so cannot speak of the inner layer:
 * ask the inner table.
 */
#ifndef CADGE_SHIM_H
#define CADGE_SHIM_H

#include <stdint.h>

#include "cadge/fill.h"
#include "cadge/layer.h"
#include "kit/bytes.h"

struct cadge_chan {
	struct cadge_ctx *ctx;
	struct cadge_chan *inner;
	uint32_t peer;
};

struct cadge_ctx {
	/* What the inner layer calls, by default the functions below: first, so that it leads back here. */
	struct cadge_sink sink;
	struct cadge_sink *outer; /* the sink of the poll that runs */
	const struct cadge_layer *inner;
	struct cadge_ctx *inner_ctx;
	uint32_t peers;
	struct cadge_chan **chans; /* by peer, NULL where not connected */
};

/* What a shim can let through that looks at messages alone: no native calls, one-sided operations or batches. */
#define SHIM_CAPS_OF_MESSAGES                                                                                \
	(CADGE_CAP_SELF | CADGE_CAP_HOST | CADGE_CAP_NET | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED |          \
	 CADGE_CAP_FLOW_CONTROL | CADGE_CAP_LEND | CADGE_CAP_POST_IN_SINK | CADGE_CAP_WAIT |                 \
	 CADGE_CAP_EVENT_FD | CADGE_CAP_MEM_ALLOC | CADGE_CAP_MEM_REG | CADGE_CAP_COUNTERS |                 \
	 CADGE_CAP_OWN_THREADS | CADGE_CAP_ONE_INIT | CADGE_CAP_RAW_LINK | CADGE_CAP_WHY)

/* What concerns a peer's memory; messages do without. */
#define SHIM_CAPS_ONE_SIDED                                                                                  \
	(CADGE_CAP_PUT | CADGE_CAP_GET | CADGE_CAP_FETCH_ADD | CADGE_CAP_COMPARE_SWAP | CADGE_CAP_RIGHTS |   \
	 CADGE_CAP_NOTIFY)

/* ---- life ---- */

/*
 * Makes a context of so many bytes, all zero but for what is common, for the caller to fill and for shim_open_inner.
 * NULL: there is no memory; args->error says so. shim_close ends it, opened or not.
 */
void *shim_new(const struct cadge_open_args *args, size_t bytes);

/*
 * Takes one of the shim's own settings, its prefix stripped. Returns DONE, or E_ARGUMENT when the shim does
 * not know the name or the value.
 */
typedef int (*shim_setting_fn)(struct cadge_ctx *ctx, const char *name, const char *value);

/*
 * Opens the layer inside: gives the shim's settings to take(ctx, ...) and the rest to the inner open. Returns
 * DONE, the inner open's code, E_ARGUMENT or E_MEMORY; args->error has the reason.
 */
int shim_open_inner(struct cadge_ctx *ctx, const struct cadge_open_args *args, const char *substrate,
		    shim_setting_fn take);

/* Fills args->error and returns `code`. */
int shim_refuse(const struct cadge_open_args *args, int code, const char *reason);

/* Reads a decimal number from 0 to most. DONE or E_ARGUMENT. */
int shim_number(const char *text, uint64_t most, uint64_t *number_out);

/* The slot `connect`, with a channel of so many bytes, all zero but for what is common. */
int shim_connect_as(struct cadge_ctx *ctx, size_t chan_bytes, uint32_t peer, const void *blob, size_t bytes,
		    struct cadge_chan **chan_out);

/* ---- parts of slots ---- */

/* The inner limits, less what messages alone do without, and with what the shim counts. */
struct cadge_limits shim_limits_of_messages(const struct cadge_ctx *ctx);

/* Adds to the note of a path, after what the inner layer says there. */
void __attribute__((format(printf, 2, 3))) shim_add_note(struct cadge_path *path, const char *format, ...);

/* CLOCK_MONOTONIC. */
uint64_t shim_now_ns(void);

/* ---- slots as they are: passed on, or E_UNSUPPORTED or nothing where the inner layer has none ---- */

void shim_close(struct cadge_ctx *ctx);
int shim_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout);
int shim_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
		 struct cadge_chan **chan_out);
int shim_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan);
/* Events are then the inner layer's own: ctx->sink sees none. */
int shim_poll(struct cadge_ctx *ctx, struct cadge_sink *sink);
/* What a shim's slot says: it has no library of its own, and no context to ask the inner layer. */
void shim_library(struct cadge_library *library_out);
void shim_semantics(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out);
/* The same, without one-sided operations. */
void shim_semantics_of_messages(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out);
void shim_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out);
int shim_wait(struct cadge_ctx *ctx, uint64_t timeout_ns);
int shim_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out);
void shim_release(struct cadge_ctx *ctx, struct cadge_lend *lend);
int shim_expose(struct cadge_ctx *ctx, void *base, size_t bytes, uint32_t rights, uint32_t peer,
		uint32_t flags, void *key, size_t *key_bytes_inout, struct cadge_region **region_out);
void shim_unexpose(struct cadge_ctx *ctx, struct cadge_region *region);
int shim_attach(struct cadge_chan *chan, const void *key, size_t key_bytes, uint32_t intent, uint32_t flags,
		struct cadge_remote **remote_out);
void shim_detach(struct cadge_chan *chan, struct cadge_remote *remote);
int shim_quiet(struct cadge_chan *chan, uint32_t flags, uint64_t token);
void *shim_mem_alloc(struct cadge_ctx *ctx, size_t bytes);
void shim_mem_free(struct cadge_ctx *ctx, void *base, size_t bytes);
int shim_mem_reg(struct cadge_ctx *ctx, void *base, size_t bytes);
int shim_mem_dereg(struct cadge_ctx *ctx, void *base, size_t bytes);
void shim_counters(const struct cadge_ctx *ctx, void (*each)(void *arg, const char *name, uint64_t value),
		   void *arg);
const char *shim_why(const struct cadge_ctx *ctx);

/* ---- events as they are: passed on to ctx->outer ---- */

void shim_on_up(struct cadge_sink *self, uint32_t peer);
void shim_on_down(struct cadge_sink *self, uint32_t peer, int code);
enum cadge_keep shim_on_recv(struct cadge_sink *self, uint32_t peer, const void *data, size_t bytes,
			     struct cadge_lend *lend);
void shim_on_sent(struct cadge_sink *self, uint32_t peer, uint64_t token, int code);
void shim_on_call(struct cadge_sink *self, uint32_t peer, uint32_t op, const void *args, size_t bytes,
		  const struct cadge_reply_to *reply_to);
enum cadge_keep shim_on_replied(struct cadge_sink *self, uint32_t peer, uint64_t token, int code,
				enum cadge_placement placement, const void *data, size_t bytes,
				struct cadge_lend *lend);
void shim_on_notified(struct cadge_sink *self, uint32_t peer, struct cadge_region *region,
		      uint64_t offset_bytes, uint64_t bytes);

#endif
