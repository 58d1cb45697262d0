/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VMMC-2 (Dubnicki, Bilas, Chen, Damianakis and Li 1997) over wire/wire.h: a receiver exports memory with permissions, a
 * sender imports it, and from then on the sender updates it deliberately, from any local address to an offset in what it
 * imported, without the receiver's doing. An update can notify. What comes to an export can be redirected to the buffer
 * where it is wanted. Local memory is translated through a cache that the user's library manages.
 *
 * What each promises:
 * - An update outside of the export, or without the right to, is refused, and nothing is written. An import is refused to a
 *   peer that the export does not name, and where more is intended than allowed. The *sender's library* holds itself to
 *   that on shared memory and TCP: a hostile sender is not stopped (beyond what a NIC checks, where there is one).
 * - A notification comes after the bytes that it reports, once, and those of a link come in order. An update without one
 *   notifies nobody. Updates have no order among themselves; vmmc_quiet makes them visible.
 * - Redirection, see vmmc_redirect: what is sent after the sender's library has heard of it goes straight to the new buffer,
 *   without a copy; what had landed before is copied there, once, and nothing else is.
 * - The translation cache counts hits, misses and evictions, in pages, everywhere; it has a price only where registering
 *   memory costs something. With the wire's substrates of today a put reads any local memory: registration is free here.
 *
 * Where this differs from the published system:
 * - Import asked a daemon on the exporter's node. Here the exporter's key travels out of band, as the caller likes, and import
 *   looks at it at once. A key for one peer is bound to it by a nonce that the exporter gives to that peer in its address.
 * - A send blocked, or was waited for. Here it says how far it came: DONE, QUEUED (then `sent`), or BUSY.
 * - A notification called a handler, like a signal. Here it is an upcall inside vmmc_progress.
 * - Export and import work on bytes, not on pages.
 * - The end of an export is told to its importers by a packet. Updates that they begin before they look still land in memory
 *   that was exported; those after are refused, and they answer once the earlier ones are visible. Until then, or until
 *   their link is gone, the memory stays exposed: see vmmc_may_be_written. A key for all that ended while a peer was not
 *   connected is not known to that peer in its next life.
 * - Redirection was done by the receiver's card for each transfer that came. Here the sender's library is told, by a packet;
 *   it says what it has written so far, and writes to the new buffer from then on. So only exports that say so
 *   (VMMC_REDIRECTABLE) and name one peer can be redirected.
 * - Pages are not pinned: see above.
 * - There is no automatic update, which was hardware of SHRIMP's, and no remote read: exports for reading alone can be
 *   imported, and updates of them are refused.
 */
#ifndef CADGE_VMMC_VMMC_H
#define CADGE_VMMC_VMMC_H

#include "wire/wire.h"

struct vmmc;
struct vmmc_export; /* memory of ours */
struct vmmc_import; /* memory of a peer, as seen from here */

#define VMMC_EXPORTS_MAX 1024u /* at a time */
#define VMMC_PIECES_MAX  16u   /* see vmmc_redirect */

/* Names an operation to whoever began it; both are the caller's. */
struct vmmc_token {
	void *owner;
	uint64_t number;
};

/* Upcalls, inside vmmc_progress. In them all is legal but progress, connect, disconnect and close. */
struct vmmc_events {
	void (*up)(void *arg, uint32_t peer);
	void (*down)(void *arg, uint32_t peer, int code);
	/* An update or quiet that was QUEUED has ended. */
	void (*sent)(void *arg, uint32_t peer, struct vmmc_token token, int code);
	/* `bytes` at offset_bytes of our export are there. */
	void (*notified)(void *arg, uint32_t peer, struct vmmc_export *export, uint64_t offset_bytes,
			 uint64_t bytes);
	/*
	 * A redirection has begun, or ended. copied_bytes: what had landed before it began, and was copied. Negative: it
	 * did not begin (E_MEMORY), or the peer is gone; the export is as before. NULL where nothing is redirected.
	 */
	void (*redirected)(void *arg, struct vmmc_export *export, int code, uint64_t copied_bytes);
	void *arg;
};

struct vmmc_config {
	uint32_t operations;  /* updates and quiets of a link that are under way at a time, at most */
	uint32_t notes;       /* notifications of a link that have not left, at most; >= 1 */
	uint32_t cache_pages; /* of the translation cache; a power of two */
	bool trusting;        /* updates are not checked against the export's rights and bounds */
	struct vmmc_events events;
};

/* As the functions of the wire with these names. NULL is legal in close. */
int vmmc_open(const struct cadge_open_args *args, const struct vmmc_config *config, struct vmmc **vmmc_out);
void vmmc_close(struct vmmc *vmmc);
struct cadge_wire *vmmc_wire(const struct vmmc *vmmc);
int vmmc_address(struct vmmc *vmmc, uint32_t peer, struct cadge_blob_out *blob);
int vmmc_connect(struct vmmc *vmmc, uint32_t peer, struct cadge_blob_in *blob);
/* What was imported from the peer is gone. Keys that were made for it are of no use in its next life. */
int vmmc_disconnect(struct vmmc *vmmc, uint32_t peer);
int vmmc_describe(struct vmmc *vmmc, uint32_t peer, struct cadge_path *path_out);
/*
 * Memory that updates reach as directly as any; free drops its pages from the translation cache, and gives it back when nobody may
 * write to it.
 */
void *vmmc_alloc(struct vmmc *vmmc, size_t bytes);
void vmmc_free(struct vmmc *vmmc, void *base, size_t bytes);

#define VMMC_REDIRECTABLE 1u

/*
 * Exports memory of the caller's for `rights` (CADGE_MAY_*) to `peer`, or to CADGE_ALL_PEERS. `key` is what an importer
 * needs. DONE, E_ARGUMENT, E_MEMORY, E_TOO_LARGE (no room for the key), E_LIBRARY.
 */
int vmmc_export(struct vmmc *vmmc, void *base, size_t bytes, uint32_t rights, uint32_t peer, uint32_t flags,
		struct cadge_blob_out *key, struct vmmc_export **export_out);
/*
 * Tells the importers and forgets it: no event of it follows. Updates that they begin once they have looked are refused. Memory
 * that may still be written by one who has not looked yet is to stay as long as vmmc_may_be_written says so.
 */
void vmmc_unexport(struct vmmc_export *export);
/* An importer of an export of this memory that has ended has not answered yet, and is not gone: progress. */
bool vmmc_may_be_written(const struct vmmc *vmmc, const void *base, size_t bytes);

/*
 * DONE; E_REFUSED: the key is for another peer, of another exporter or life, allows less than intended, or the export has
 * ended as far as we were told; E_ARGUMENT: that is no key; E_MEMORY; E_DOWN.
 */
int vmmc_import(struct vmmc *vmmc, uint32_t peer, struct cadge_blob_in *key, uint32_t intent,
		struct vmmc_import **import_out);
void vmmc_unimport(struct vmmc_import *import);
/* As cadge_wire_reach, for updates. */
enum cadge_progress vmmc_reach(const struct vmmc_import *import);

#define VMMC_NOTIFY 1u

/*
 * Deliberate update. DONE: the buffer may be reused; QUEUED: it is lent until `sent`; BUSY: nothing was written, try again
 * after progress; E_REFUSED: outside, not intended, or the export has ended, and nothing was written; E_TOO_LARGE, E_DOWN.
 * A notification leaves by itself when the bytes are visible, which may be after `sent`.
 */
int vmmc_send(struct vmmc_import *to, uint64_t offset_bytes, const void *from, size_t bytes, uint32_t flags,
	      struct vmmc_token token);
/* DONE, QUEUED or BUSY: every earlier update of this link is visible. */
int vmmc_quiet(struct vmmc *vmmc, uint32_t peer, struct vmmc_token token);

/*
 * Redirects an export to `to`, at most as long as the export: while that lasts the export is `bytes` long, and what is sent
 * lands in `to`. With NULL and 0 it goes back to the export's own memory. QUEUED, and `redirected` follows once all that
 * was sent so far lies in one of the two: before it notifications are of bytes in the old buffer, after it of bytes in
 * the new one. Then `to` holds what had landed in the export's memory since it was exported, or last came back to it.
 * That is exact for up to VMMC_PIECES_MAX separate pieces; of more, gaps are copied as well. While a piece is copied an
 * update that overlaps it is BUSY. Other codes: BUSY (a redirection is under way, or the peer is not up), E_ARGUMENT,
 * E_TOO_LARGE, E_MEMORY, E_DOWN.
 */
int vmmc_redirect(struct vmmc_export *export, void *to, size_t bytes);

/* Looks up to `rounds` times. Returns the number of upcalls, or negative: the context is broken. */
int vmmc_progress(struct vmmc *vmmc, unsigned int rounds);
/* Nothing is left to do that needs no news of the wire. */
bool vmmc_may_sleep(const struct vmmc *vmmc);
void vmmc_counters(const struct vmmc *vmmc, void (*each)(void *arg, const char *name, uint64_t value),
		   void *arg);

#endif
