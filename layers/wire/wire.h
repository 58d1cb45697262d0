/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A substrate as the styles of 1998 see it: packets that are built in the library's memory and read in place, and
 * remote writes. Each library has an implementation, and a layer's .mk names the one that it links
 * (WIRE: a folder beside this file), so that no call goes through a pointer. Styles add headers, credits,
 * matching and handlers; nothing here knows them.
 *
 * - A *packet* has 1 to packet_bytes_max bytes, is reliable, and packets of a link arrive in order. Longer things
 *   are a style's own business: packets of its own, or put and get.
 * - What comes in is not aligned (UCX over TCP: any byte): headers are read with bytes.h, never through a struct.
 * - Nothing blocks but open, close and wait. Upcalls run inside progress only. In them all is legal but progress,
 *   wait, connect, disconnect and close.
 * - `up` means that packets of any length can leave at once: whatever two libraries have to settle between them
 *   is settled, and neither the peer's nor our own library need run for what was sent to arrive, as soon as the
 *   peer looks.
 * - BUSY may last as long as the peer does not look, and no upcall says that room has come: whoever was told BUSY
 *   tries again after a later progress.
 * - Order between puts, and of a put before a later packet, is promised by quiet, or where facts say so.
 * - What reach calls DIRECT is carried out although the target's processes are stopped. On shared memory quiet is then DONE at
 *   once unless a put was QUEUED; where a device carries it out, quiet ends when the device has answered. Where it says LIBRARY
 *   a put may be DONE at once, but quiet, get and fetch_add end only when the target looks.
 * - Death. Over TCP `down` comes. On shared memory nothing comes, and what was sent to a dead peer stays with the
 *   library until close. So every life of a link (connect to disconnect) has packets of its own.
 */
#ifndef CADGE_WIRE_WIRE_H
#define CADGE_WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadge/layer.h"
#include "kit/bytes.h"

struct cadge_wire; /* a context of one thread */
struct cadge_link; /* one peer of it */

/* What a style needs beside packets. */
#define CADGE_WIRE_KEEP   1u /* packets can be kept: costs UCX a descriptor for each */
#define CADGE_WIRE_REMOTE 2u /* put, get, quiet, expose, attach, alloc */
/* The rest needs REMOTE. */
#define CADGE_WIRE_ATOMICS 4u  /* fetch_add and compare_swap, as far as the library has them: see facts */
#define CADGE_WIRE_NOTES   8u  /* note */
#define CADGE_WIRE_FLUSH   16u /* quiet asks the library also where nothing is known to be under way */

/* Upcalls. `arg` as given to open, `peer` as given to connect. */
struct cadge_wire_calls {
	void (*up)(void *arg, uint32_t peer);
	void (*down)(void *arg, uint32_t peer, int code); /* once a life */
	/* Lent until return; with CADGE_KEEP until cadge_wire_release(data). */
	enum cadge_keep (*packet)(void *arg, uint32_t peer, void *data, size_t bytes);
	/* A put, get, fetch_add or quiet that was QUEUED has ended. NULL without REMOTE. */
	void (*ended)(void *arg, uint32_t peer, uint64_t token, int code);
};

/* How a wire calls `ended`. Where a style and its wire are one unit (rdma/adapter.h), by name, so that it is no call. */
#ifndef CADGE_WIRE_ENDED
#define CADGE_WIRE_ENDED(wire) (wire)->calls->ended
#endif

struct cadge_wire_needs {
	uint32_t features;     /* CADGE_WIRE_*: open refuses where one cannot be had */
	uint32_t packet_bytes; /* longest packet wanted */
	/*
	 * Of a life, taken or under way at a time, at most. 0: there are none, and nothing is sent to greet: `up` follows
	 * connect, or where connections are the device's, its word that both ends are there.
	 */
	uint32_t packets;
	/*
	 * KEEP: packets of a link that are kept at a time, at most. So many are kept, and one more still comes in.
	 * Whoever keeps more stops its senders over libfabric; UCX takes memory without a bound instead.
	 */
	uint32_t held;
	uint32_t operations; /* REMOTE: puts, gets, quiets of a link that are under way at a time, at most */
	bool trusting;       /* REMOTE: rights and bounds are not looked at before a write */
	const struct cadge_option *options; /* all settings that are legal; NULL: cadge_wire_options */
	const struct cadge_wire_calls *calls;
	void *arg;
};

#define CADGE_WIRE_GUARDS_BOUNDS 1u /* what lies outside of the exposed pages */
#define CADGE_WIRE_GUARDS_RIGHTS 2u /* what is exposed without the right */
#define CADGE_WIRE_GUARDS_ALL    3u

struct cadge_wire_facts {
	uint32_t packet_bytes_max; /* granted; may be less than wanted, never more */
	uint64_t put_bytes_max;    /* of a put or get; 0 without REMOTE */
	bool sleeps;               /* wait and event exist in this place and mode */
	bool puts_in_order;        /* no later put or packet of a link is visible before an earlier put */
	bool threads_move;         /* the library's threads have a part in moving messages */
	/* expose refuses what is not of cadge_wire_alloc; what puts send from needs no announcement. */
	bool window_only;
	bool any_memory; /* puts are always as direct to any exposed memory as to that of cadge_wire_alloc */
	bool registers; /* what puts send from elsewhere than memory of cadge_wire_alloc is registered for each */
	bool reads_late;     /* the library may read what a put sends after the link has ended */
	bool adds, swaps;    /* fetch_add, compare_swap are there */
	uint32_t operations; /* granted, of those wanted */
	/* CADGE_WIRE_GUARDS_*: what the target's device itself refuses; the initiator is then told by `ended`. */
	uint32_t device_guards;
	uint32_t wire_overhead_bytes;
};

/* The option that every style has: see `off` of struct cadge_style_asked in wire/style.h. */
#define CADGE_WIRE_OPTION_OFF                                                                                \
	{"off", "",                                                                                          \
	 "what is switched off, to see its price, joined by '+', where the style can do without: "           \
	 "protection, "                                                                                      \
	 "flow_control, zero_copy_send, zero_copy_receive"}

/* See packet_bytes there. */
#define CADGE_WIRE_OPTION_PACKET_BYTES                                                                       \
	{"packet_bytes", "",                                                                                 \
	 "longest packet, where the style's packets may differ; empty: the style's usual one"}

/* The name of its folder, the longest packet that can be granted, and the settings of the substrate. */
extern const char cadge_wire_substrate[];
extern const uint32_t cadge_wire_packet_bytes_max;
extern const struct cadge_option cadge_wire_options[];

/* As open of the contract, refusals of settings, place and wait mode included. */
int cadge_wire_open(const struct cadge_open_args *args, const struct cadge_wire_needs *needs,
		    struct cadge_wire **wire_out);
/* All that was kept has been released. Never waits for a peer; NULL is legal. */
void cadge_wire_close(struct cadge_wire *wire);
const struct cadge_wire_facts *cadge_wire_facts(const struct cadge_wire *wire);

/* What `peer` needs to connect to us; a style appends its own items (window, tag) to the blob. DONE or negative. */
int cadge_wire_address(struct cadge_wire *wire, uint32_t peer, struct cadge_blob_out *blob);
int cadge_wire_connect(struct cadge_wire *wire, uint32_t peer, struct cadge_blob_in *blob,
		       struct cadge_link **link_out);
/*
 * Ends a life: no upcall of it follows, its remotes are detached, packets that were taken are the wire's again.
 * What was kept stays until it is released. Does not flush.
 */
int cadge_wire_disconnect(struct cadge_link *link);

/* As describe_path, library, counters and why of the contract. */
int cadge_wire_describe(struct cadge_link *link, struct cadge_path *path_out);
void cadge_wire_library(struct cadge_library *library_out);
void cadge_wire_counters(const struct cadge_wire *wire,
			 void (*each)(void *arg, const char *name, uint64_t value), void *arg);
const char *cadge_wire_why(const struct cadge_wire *wire);

/*
 * Looks up to `rounds` times and ends at the first look with upcalls. Returns the number of upcalls, or negative:
 * the context is broken. Not bounded by packets or bytes: a budget is the style's, by KEEP.
 */
int cadge_wire_progress(struct cadge_wire *wire, unsigned int rounds);
/* As wait and event of the contract; only where facts say `sleeps`. */
int cadge_wire_wait(struct cadge_wire *wire, uint64_t timeout_ns);
int cadge_wire_event(struct cadge_wire *wire, int *fd_out, uint64_t *due_ns_out);

/*
 * An empty packet of packet_bytes_max bytes, aligned to 64. NULL: none is free, or the link is not up. It ends in
 * exactly one of send and drop, or with its life; one that is held, in drop or with its life.
 */
void *cadge_wire_take(struct cadge_link *link);
void cadge_wire_drop(struct cadge_link *link, void *packet);
/*
 * DONE: the packet is the library's; no event follows, take sees when it is free again. BUSY: it is still the
 * caller's. E_DOWN: it is gone.
 */
int cadge_wire_send(struct cadge_link *link, void *packet, size_t bytes);
/*
 * As send, but the packet stays the caller's in every case, unchanged, may be sent again, and ends with drop. BUSY also
 * while the library still has it; who drops it then gives it to the library.
 */
int cadge_wire_send_held(struct cadge_link *link, void *packet, size_t bytes);
/* Gives back what the upcall `packet` kept, also after its link has ended. */
void cadge_wire_release(struct cadge_wire *wire, void *data);

/* ---- remote memory ---- */

/*
 * Aligned to a page, zeroed, reached directly by puts where anything is; NULL: there is none. What is not freed goes with
 * close, after the library has stopped: peers that still write to exposed memory do so until then.
 */
void *cadge_wire_alloc(struct cadge_wire *wire, size_t bytes);
void cadge_wire_free(struct cadge_wire *wire, void *base, size_t bytes);
/*
 * `rights` are CADGE_MAY_*, and travel in the key, as address and length do. The sender's library holds itself to
 * them, the NIC as well where there is one. DONE, E_MEMORY, E_TOO_LARGE (no room for the key), E_LIBRARY; E_ARGUMENT: this
 * wire exposes only memory of cadge_wire_alloc.
 */
int cadge_wire_expose(struct cadge_wire *wire, void *base, size_t bytes, uint32_t rights,
		      struct cadge_blob_out *key, struct cadge_region **region_out);
void cadge_wire_unexpose(struct cadge_wire *wire, struct cadge_region *region);
/* DONE, E_ARGUMENT (that is no key), E_MEMORY, E_DOWN. */
int cadge_wire_attach(struct cadge_link *link, struct cadge_blob_in *key, struct cadge_remote **remote_out);
void cadge_wire_detach(struct cadge_remote *remote);
/* Who carries out what `right` stands for (one of CADGE_MAY_*) on it: DIRECT, LIBRARY, or NONE where it is not allowed. */
enum cadge_progress cadge_wire_reach(const struct cadge_remote *remote, uint32_t right);

/*
 * DONE; QUEUED, then `ended`; BUSY; E_REFUSED: no right to, or outside of the region, and nothing was written;
 * E_DOWN; E_TOO_LARGE. The buffer of a put is the caller's again with DONE or `ended`, that of a get is filled.
 */
int cadge_wire_put(struct cadge_link *link, const void *local, size_t bytes,
		   const struct cadge_remote *remote, uint64_t offset_bytes, uint64_t token);
int cadge_wire_get(struct cadge_link *link, void *local, size_t bytes, const struct cadge_remote *remote,
		   uint64_t offset_bytes, uint64_t token);
/* On the 64-bit word at offset_bytes; E_ARGUMENT where that is not aligned, E_UNSUPPORTED where facts have none. */
int cadge_wire_fetch_add(struct cadge_link *link, uint64_t addend, uint64_t *before_out,
			 const struct cadge_remote *remote, uint64_t offset_bytes, uint64_t token);
int cadge_wire_compare_swap(struct cadge_link *link, uint64_t expected, uint64_t desired,
			    uint64_t *before_out, const struct cadge_remote *remote, uint64_t offset_bytes,
			    uint64_t token);
/* DONE or `ended`: every earlier put of the link is visible to the peer's CPU. */
int cadge_wire_quiet(struct cadge_link *link, uint64_t token);
/*
 * NOTES. Wakes a peer that sleeps: these bytes, which are copied, come to its upcall `packet`. They may overtake puts, and are
 * never lost. Where each put wakes the peer by itself, nothing is sent. DONE, BUSY or E_DOWN.
 */
#define CADGE_WIRE_NOTE_BYTES 16u
int cadge_wire_note(struct cadge_link *link, const void *note);

#endif
