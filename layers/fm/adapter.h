/* SPDX-License-Identifier: BSD-3-Clause */
/* The slots of fm-*, bound once; a substrate's file is a table of them. */
#ifndef CADGE_FM_ADAPTER_H
#define CADGE_FM_ADAPTER_H

#include "cadge/layer.h"
#include "common/adapter.h"
#include "fm/fm.h"

int fm_slot_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out);
void fm_slot_close(struct cadge_ctx *ctx);
void fm_slot_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out);
int fm_slot_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout);
int fm_slot_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
		    struct cadge_chan **chan_out);
int fm_slot_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan);
int fm_slot_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		 uint64_t token);
int fm_slot_poll(struct cadge_ctx *ctx, struct cadge_sink *sink);
int fm_slot_wait(struct cadge_ctx *ctx, uint64_t timeout_ns);
int fm_slot_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out);
int fm_slot_describe_path(struct cadge_chan *chan, struct cadge_path *path_out);
void fm_slot_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out);
void fm_slot_counters(const struct cadge_ctx *ctx, void (*each)(void *arg, const char *name, uint64_t value),
		      void *arg);
const char *fm_slot_why(const struct cadge_ctx *ctx);

/* What a substrate's file defines: its table, and what its library does to a short message beside FM's copy each way. */
extern const struct cadge_layer fm_layer;
extern const struct cadge_traits fm_traits_of_library;

#define FM_CAPS                                                                                              \
	(CADGE_CAP_HOST | CADGE_CAP_NET | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED | CADGE_CAP_FLOW_CONTROL |  \
	 CADGE_CAP_POST_IN_SINK | CADGE_CAP_WAIT | CADGE_CAP_EVENT_FD | CADGE_CAP_COUNTERS | CADGE_CAP_WHY)

#define FM_SLOTS                                                                                             \
	.options = cadge_wire_options, .open = fm_slot_open, .close = fm_slot_close,                         \
	.limits = fm_slot_limits, .address = fm_slot_address, .connect = fm_slot_connect,                    \
	.disconnect = fm_slot_disconnect, .post = fm_slot_post, .poll = fm_slot_poll,                        \
	.describe_path = fm_slot_describe_path, .library = cadge_wire_library,                               \
	.semantics = cadge_semantics_of_messages, .traits = fm_slot_traits, .wait = fm_slot_wait,            \
	.event = fm_slot_event, .counters = fm_slot_counters, .why = fm_slot_why

#endif
