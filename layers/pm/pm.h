/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PM 1.2 (Tezuka, Hori, Ishikawa and Sato 1997) over wire/wire.h: messages of one packet that are built in the
 * library's send buffers and read in the receiver's, modified ack/nack flow control, a context switch of channels,
 * remote write, and a pin-down cache (1998).
 *
 * Modified ack/nack. A receiver has one pool of buffers for all its peers, and promises none of them anything. A packet
 * that finds no buffer is refused by a NACK with its number, and later ones of that sender are dropped until it comes
 * again, so that order is kept. The sender keeps each packet, where it was built, until it is acknowledged. It stops at
 * a NACK, and sends again from there when the receiver says that buffers came back (ROOM): there is no timer, since the
 * wire itself loses nothing. Acknowledgements are cumulative; they travel in packets the other way, or by themselves
 * after half a window or when a poll finds nothing.
 *
 * Context switch. One channel runs at a time. pm_context_switch stops sending on it until nothing of it is under way,
 * that is, all was acknowledged or refused, and then lets the other run. What comes for a channel that does not run is
 * refused by a NACK, and asked for by ROOM when the channel is switched in.
 *
 * Pin-down cache. pm_mlock exposes memory on the wire. pm_munlock leaves it so until its quota needs the bytes, and the
 * least recently used goes first. Memory to send from and memory to receive into have quotas of their own, and what
 * does not fit is refused, never waited for: so no transfer holds one while it waits for the other (MPICH-PM).
 *
 * Withdrawal. Memory is withdrawn when it is evicted, by its quota, pm_forget or pm_free. Shared memory has no key that
 * could be revoked, so the library asks all connected peers, the same way on every path:
 * - until a peer has looked (pm_receive), its writes land as before; that memory stays pinned and counts in its quota;
 * - from that look on its pm_write says E_REFUSED, writes nothing, and pm_is_withdrawn says why; so does pm_attach. It is
 *   granted again by a new handle: the owner locks the memory anew and sends that, the holder detaches and attaches;
 * - a write that was under way ends as it would have, and lands before the peer answers;
 * - when all have answered the memory is unpinned: pm_forget is DONE, pm_mlock finds room, and no byte changes any more.
 * A peer that never looks keeps the memory pinned until its link goes down or is disconnected. Whoever disconnects a peer that
 * lives and is connected still has to expect its writes: it is no longer asked. The peer's library holds itself to all this;
 * a hostile one is stopped by a NIC alone, once the memory is unpinned.
 *
 * Where this differs from the published calls:
 * - Each call takes its context; peers are connected one by one, where PM's nodes were all of a cluster.
 * - Errors and "not now" are codes of the contract (BUSY for ENOBUFS), and pm_context_switch says BUSY until it is done.
 * - pm_receive gives a struct with address, length and sender; pm_next is its half that does not look at the wire.
 * - pm_return_send_buffer gives back what is not sent, and pm_forget withdraws memory that is about to vanish.
 * - The queues of a channel that is switched out stay where they are, since they are in the host's memory and not on a
 *   card, with the buffers in them: each channel has a pool. Only what runs is another. Remote writes are of no channel.
 * - Nobody switches all nodes together (no gang scheduling): each switches for itself, and what its peers send
 *   meanwhile is refused.
 * - PM's pm_write wanted both ends locked; here the local end need not be.
 */
#ifndef CADGE_PM_PM_H
#define CADGE_PM_PM_H

#include "wire/wire.h"

struct pm;
struct pm_pin;    /* memory that is locked */
struct pm_remote; /* a peer's, as seen from here */

#define PM_HEAD_BYTES       8u  /* of a packet */
#define PM_PACKET_BYTES_MIN 64u /* header included */
#define PM_CHANNELS_MAX     16u

/* A receive buffer. Read where it lies, until pm_release_receive_buffer. `data` is not aligned. */
struct pm_packet {
	const uint8_t *data;
	size_t bytes;
	uint32_t peer;
};

struct pm_events {
	void (*up)(void *arg, uint32_t peer);
	void (*down)(void *arg, uint32_t peer, int code);
	void (*ended)(void *arg, uint32_t peer, uint64_t token, int code); /* of pm_write and pm_quiet */
	void *arg;
};

enum pm_side { PM_SEND, PM_RECEIVE };

struct pm_config {
	uint32_t packet_bytes; /* longest packet, at least PM_PACKET_BYTES_MIN; may be granted less */
	uint32_t
		window; /* packets of a channel to a peer that are not acknowledged; a power of 2, 2 to 4096 */
	uint32_t buffers;        /* receive buffers of a channel, for all peers together; >= 1 */
	uint32_t channels;       /* 1 to PM_CHANNELS_MAX; channel 0 runs first */
	uint32_t operations;     /* writes and quiets of a peer that are under way at a time */
	uint64_t quota_bytes[2]; /* of memory that is pinned, by enum pm_side */
	struct pm_events events;
};

/* As the functions of the wire with these names; NULL is legal in close. Close takes all packets and pins back. */
int pm_open(const struct cadge_open_args *args, const struct pm_config *config, struct pm **pm_out);
void pm_close(struct pm *pm);
struct cadge_wire *pm_wire(const struct pm *pm);
int pm_address(struct pm *pm, uint32_t peer, struct cadge_blob_out *blob);
int pm_connect(struct pm *pm, uint32_t peer, struct cadge_blob_in *blob);
int pm_disconnect(struct pm *pm, uint32_t peer);
int pm_describe(struct pm *pm, uint32_t peer, struct cadge_path *path_out);
/* Longest message. */
uint32_t pm_packet_bytes(const struct pm *pm);

/* ---- messages ---- */

/*
 * pmGetSendBuffer: room for pm_packet_bytes, aligned to 8. NULL: no buffer (the window is full, or the wire's packets are
 * used up), `bytes` are too many, the channel does not run, or the peer is not up.
 */
void *pm_get_send_buffer(struct pm *pm, uint32_t channel, uint32_t peer, size_t bytes);
/* pmSend: DONE, and the buffer is the library's, or E_DOWN, and it is gone. */
int pm_send(struct pm *pm, uint32_t channel, uint32_t peer, void *buffer, size_t bytes);
void pm_return_send_buffer(struct pm *pm, uint32_t channel, uint32_t peer, void *buffer);

/*
 * pmReceive: the next message of the channel, of any peer; looks at the wire where none is there. DONE; BUSY: none, or
 * the channel does not run; negative: the context is broken.
 */
int pm_receive(struct pm *pm, uint32_t channel, struct pm_packet **packet_out);
/* The same, without a look at the wire. */
int pm_next(struct pm *pm, uint32_t channel, struct pm_packet **packet_out);
/* pmReleaseReceiveBuffer; also after its peer is gone. */
void pm_release_receive_buffer(struct pm *pm, struct pm_packet *packet);

/* DONE, BUSY: something of `from` is still under way, receive and try again; E_ARGUMENT: `from` does not run, or no `to`. */
int pm_context_switch(struct pm *pm, uint32_t from, uint32_t to);

/* Nothing is left to do that needs no news of the wire. */
bool pm_may_sleep(const struct pm *pm);

/* ---- remote writes ---- */

/* As the wire's; what is freed while it is being withdrawn goes when it has been. */
void *pm_alloc(struct pm *pm, size_t bytes);
void pm_free(struct pm *pm, void *base, size_t bytes);

/*
 * pmMLock. DONE; BUSY: what is locked fills the quota, or what was evicted has to be withdrawn first, from this memory or for
 * room: receive, and try again; E_TOO_LARGE (more than the quota), and as expose.
 */
int pm_mlock(struct pm *pm, enum pm_side side, void *base, size_t bytes, struct pm_pin **pin_out);
/* pmMUnlock, once for each lock; the memory stays pinned, and written to by who has its handle, until it is evicted. */
void pm_munlock(struct pm *pm, struct pm_pin *pin);
/* pm_munlock, and evicts it where that was its last lock: see pm_forget for when it has left. */
void pm_withdraw(struct pm *pm, struct pm_pin *pin);
/* The lock of just this memory; NULL: there is none. */
struct pm_pin *pm_locked(const struct pm *pm, enum pm_side side, const void *base, size_t bytes);
/*
 * Evicts what is pinned, and not locked, of this memory. DONE: nothing of it is pinned, and no peer writes to it; BUSY: a peer
 * has not answered yet, receive and try again; E_ARGUMENT: some of it is locked, and stays.
 */
int pm_forget(struct pm *pm, const void *base, size_t bytes);
/* The handle that peers attach, of memory to receive into. DONE, E_ARGUMENT (it is to send from) or E_TOO_LARGE. */
int pm_handle(struct pm_pin *pin, struct cadge_blob_out *handle);

/*
 * As attach, detach and reach of the wire. E_REFUSED: the memory was withdrawn. A remote lasts until detach, or the end of its
 * link, also when it is of no use any more.
 */
int pm_attach(struct pm *pm, uint32_t peer, struct cadge_blob_in *handle, struct pm_remote **remote_out);
void pm_detach(struct pm_remote *remote);
enum cadge_progress pm_reach(const struct pm_remote *remote);
/* The peer has withdrawn it. */
bool pm_is_withdrawn(const struct pm_remote *remote);
/* Whether attach made it of this handle. */
bool pm_is_of(const struct pm_remote *remote, struct cadge_blob_in handle);
/*
 * As put and quiet of the wire, where UINT64_MAX is no token (E_ARGUMENT). A write is E_REFUSED, and nothing was written, where
 * it is outside of the memory or that was withdrawn; BUSY also before `up`.
 */
int pm_write(struct pm *pm, uint32_t peer, const struct pm_remote *remote, uint64_t offset_bytes,
	     const void *local, size_t bytes, uint64_t token);
int pm_quiet(struct pm *pm, uint32_t peer, uint64_t token);

void pm_counters(const struct pm *pm, void (*each)(void *arg, const char *name, uint64_t value), void *arg);

#endif
