/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the adapters of the styles have in common. A module holds one style on one substrate, so the slots of all styles have
 * the same names: layers/<style>/adapter.c defines them once, and a table of them.
 */
#ifndef CADGE_WIRE_STYLE_H
#define CADGE_WIRE_STYLE_H

#include <string.h>

#include "cadge/layer.h"
#include "kit/adapter.h"
#include "wire/wire.h"

/* Slots of every style. style.c has open, wait and event, layers/<style>/adapter.c the others. */
int cadge_slot_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out);
void cadge_slot_close(struct cadge_ctx *ctx);
void cadge_slot_limits(const struct cadge_ctx *ctx, struct cadge_limits *limits_out);
int cadge_slot_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout);
int cadge_slot_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
		       struct cadge_chan **chan_out);
int cadge_slot_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan);
int cadge_slot_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		    uint64_t token);
int cadge_slot_poll(struct cadge_ctx *ctx, struct cadge_sink *sink);
int cadge_slot_wait(struct cadge_ctx *ctx, uint64_t timeout_ns);
int cadge_slot_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out);
int cadge_slot_describe_path(struct cadge_chan *chan, struct cadge_path *path_out);
void cadge_slot_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out);
void cadge_slot_counters(const struct cadge_ctx *ctx,
			 void (*each)(void *arg, const char *name, uint64_t value), void *arg);
const char *cadge_slot_why(const struct cadge_ctx *ctx);

#define CADGE_STYLE_IOV_MAX 4u

/* What the wire gives to every style of messages. */
#define CADGE_STYLE_CAPS                                                                                     \
	(CADGE_CAP_HOST | CADGE_CAP_NET | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED | CADGE_CAP_POST_IN_SINK |  \
	 CADGE_CAP_WAIT | CADGE_CAP_EVENT_FD | CADGE_CAP_COUNTERS | CADGE_CAP_WHY)

/* Without options, and without those that a substrate lacks which cannot sleep anywhere. */
#define CADGE_STYLE_SLOTS_BARE                                                                               \
	.abi = CADGE_ABI, .bytes = sizeof(struct cadge_layer), .substrate = cadge_wire_substrate,            \
	.open = cadge_slot_open, .close = cadge_slot_close, .limits = cadge_slot_limits,                     \
	.address = cadge_slot_address, .connect = cadge_slot_connect, .disconnect = cadge_slot_disconnect,   \
	.post = cadge_slot_post, .poll = cadge_slot_poll, .describe_path = cadge_slot_describe_path,         \
	.library = cadge_wire_library, .traits = cadge_slot_traits, .counters = cadge_slot_counters,         \
	.why = cadge_slot_why

#define CADGE_STYLE_SLOTS_SLEEP .wait = cadge_slot_wait, .event = cadge_slot_event

#define CADGE_STYLE_SLOTS_AWAKE CADGE_STYLE_SLOTS_BARE, .options = cadge_wire_options
#define CADGE_STYLE_SLOTS       CADGE_STYLE_SLOTS_AWAKE, CADGE_STYLE_SLOTS_SLEEP

/*
 * What a style defines at its adapter's end: the table, which the module's entry returns, and what the library does to a short
 * message, beside what the style does. layers/wire/<wire>/substrate.h says what differs between substrates: CADGE_SUBSTRATE, the
 * name; _CAPS(caps), those of the style that are left, and the library's own; _SLOTS, those of every style; and traits of packets
 * (`holds`: the style holds some), or of puts where messages are made of these.
 */
extern const struct cadge_layer cadge_style_layer;
extern const struct cadge_traits cadge_style_library_traits;

/* Room for one message of each peer, touched as far as it is used. DONE or E_MEMORY, with the reason in args->error. */
struct cadge_landings {
	uint8_t *base; /* NULL: not made */
	size_t stride_bytes;
	uint32_t peers;
};
int cadge_landings_make(const struct cadge_open_args *args, uint64_t message_bytes_max,
			struct cadge_landings *landings);
void cadge_landings_destroy(struct cadge_landings *landings);

static inline uint8_t *cadge_landing_of(const struct cadge_landings *landings, uint32_t peer)
{
	return landings->base + landings->stride_bytes * peer;
}

/* An address slot's blob, and what it returns when the style has written it (`code`). */
static inline struct cadge_blob_out cadge_blob_open(void *blob, size_t room_bytes)
{
	return (struct cadge_blob_out){.at = blob, .room_bytes = room_bytes, .ok = true};
}

static inline int cadge_blob_close(const struct cadge_blob_out *out, int code, size_t *bytes_inout)
{
	if (code == CADGE_DONE)
		*bytes_inout = out->used_bytes;
	return code;
}

/* What some styles can do without, so that its price can be measured. Values of the setting `off`, by their names there. */
enum cadge_style_part {
	CADGE_PART_PROTECTION = 1,
	CADGE_PART_FLOW_CONTROL = 2,
	CADGE_PART_ZERO_COPY_SEND = 4,
	CADGE_PART_ZERO_COPY_RECEIVE = 8,
};

/* ---- what an adapter defines beside its slots ---- */

struct cadge_style_facts {
	size_t ctx_bytes;  /* of struct cadge_ctx, without its channels */
	size_t chan_bytes; /* of struct cadge_chan */
	uint64_t message_bytes_max;
	uint32_t depth_max;
	uint32_t separable; /* bits of enum cadge_style_part: what this style can do without */
	/* The usual longest packet, header included; 0: this style's packets have one size, which is not asked for. */
	uint32_t packet_bytes;
};
extern const struct cadge_style_facts cadge_style_facts;

/* What was asked for, as far as the style can do it. */
struct cadge_style_asked {
	enum cadge_place place;
	enum cadge_wait_mode wait_mode;
	uint32_t depth;
	uint64_t message_bytes_max;
	uint32_t off; /* setting `off`: bits of enum cadge_style_part; what it takes away is not granted */
	/*
	 * Setting packet_bytes: the longest packet, from CADGE_PACKET_BYTES_LEAST to what the substrate grants, so that the
	 * price of a packet's boundary, and of what is done for longer messages, can be measured.
	 */
	uint32_t packet_bytes;
};
#define CADGE_PACKET_BYTES_LEAST 512u

/*
 * Opens the style in *ctx, which is zero and has room for args->peers_max channels. DONE, or negative with a sentence in
 * args->error; then close takes back what there is.
 */
int cadge_style_open(const struct cadge_open_args *args, const struct cadge_style_asked *asked,
		     struct cadge_ctx *ctx);
/* The wire that wait and event sleep on; NULL: something is left to do that needs no news of it. */
struct cadge_wire *cadge_style_idle_wire(const struct cadge_ctx *ctx);

/* ---- limits, traits, messages ---- */

/*
 * Limits and traits of a context as far as the table, the library and what was asked for say; the adapter changes what
 * is otherwise with it.
 */
struct cadge_limits cadge_style_limits(const struct cadge_style_asked *asked, const struct cadge_wire *wire);
struct cadge_traits cadge_style_traits(const struct cadge_style_asked *asked, const struct cadge_wire *wire);
/* Fills *traits_out with the adapter's traits, less what is switched off. */
void cadge_style_fill_traits(const struct cadge_style_asked *asked, struct cadge_traits *traits,
			     struct cadge_traits *traits_out);

/* Whether post may go on with a message of so many pieces and bytes: DONE, BUSY, E_DOWN, E_ARGUMENT, E_TOO_LARGE. */
static inline int cadge_style_may_post(const struct cadge_state *state, uint32_t count, uint64_t bytes,
				       uint64_t bytes_max)
{
	const int code = cadge_usable(state);

	if (code != CADGE_DONE)
		return code;
	if (count > CADGE_STYLE_IOV_MAX)
		return CADGE_E_ARGUMENT;
	return bytes > bytes_max ? CADGE_E_TOO_LARGE : CADGE_DONE;
}

/*
 * What came in, where the caller is to see it: where it lies, or, without zero copy on receive, in room of the adapter's
 * (else NULL) for the longest message.
 */
static inline const void *cadge_style_received(void *room, const void *data, size_t bytes)
{
	return __builtin_expect(room && bytes, 0) ? memcpy(room, data, bytes) : data;
}

#endif
