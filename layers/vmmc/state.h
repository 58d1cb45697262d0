/* SPDX-License-Identifier: BSD-3-Clause */
/* What VMMC's files share: vmmc.c has life, updates and control messages, memory.c exports and imports, redirect.c redirection. */
#ifndef CADGE_VMMC_STATE_H
#define CADGE_VMMC_STATE_H

#include "kit/adapter.h"
#include "vmmc/utlb.h"
#include "vmmc/vmmc.h"

#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/*
 * A control message is a packet: its head, little-endian, and for some kinds more bytes. Those of a link leave in order, each
 * after the puts that were begun before it are visible.
 */
enum control_kind {
	CONTROL_NOTIFY = 1,   /* to the exporter: bytes at offset_bytes were written */
	CONTROL_UNEXPORT,     /* to importers: it has ended */
	CONTROL_REDIRECT,     /* to the importer: the key of the new buffer */
	CONTROL_REDIRECT_ACK, /* its answer: the pieces that it wrote before; `detail` 1: it could not follow */
	CONTROL_REDIRECT_DONE, /* to the importer: they are copied */
	CONTROL_RESTORE,       /* to the importer: back to the export's own memory */
	CONTROL_RESTORE_ACK,   /* its answer */
	CONTROL_UNEXPORT_ACK, /* answers UNEXPORT, whose offset_bytes is the number of the withdrawal: no update follows */
};

struct vmmc_head {
	uint32_t kind, slot, generation, detail;
	uint64_t offset_bytes, bytes;
};

#define HEAD_BYTES  32u
#define MORE_BYTES  512u /* a wire's key, or pieces */
#define PIECE_BYTES 16u
_Static_assert(VMMC_PIECES_MAX *PIECE_BYTES <= MORE_BYTES, "pieces fit into a control message");

/* One that has to wait. */
struct vmmc_control {
	struct vmmc_control *next;
	uint64_t number;
	uint32_t bytes;
	bool pooled; /* else from malloc */
	uint8_t data[HEAD_BYTES + MORE_BYTES];
};

struct vmmc_op {
	struct vmmc_op *next;
	struct vmmc_token token;
};

struct vmmc_piece {
	uint64_t first, end;
};

/* A redirectable export of a peer's, as its importer's library sees it. */
struct vmmc_source {
	struct vmmc_source *next;
	uint32_t slot, generation;
	struct cadge_remote *instead; /* NULL: it is not redirected */
	bool copying;                 /* the exporter copies the pieces */
	uint32_t pieces_count;        /* written to the export's own memory; kept until they are copied */
	struct vmmc_piece pieces[VMMC_PIECES_MAX];
};

struct vmmc_import {
	struct vmmc_import *next;
	struct vmmc_link *link;
	struct cadge_remote *remote;
	struct vmmc_source *source; /* NULL: it cannot be redirected */
	uint32_t slot, generation;
	bool writes; /* intended, and the export has not ended */
};

/* A peer. */
struct vmmc_link {
	struct vmmc *vmmc;
	struct cadge_link *wire; /* NULL: not connected */
	uint32_t peer;
	bool up, down;
	uint64_t nonce_for_peer;        /* ours, in keys for this peer alone, of this life */
	uint64_t nonce_all, nonce_mine; /* the peer's: in its keys for all, and for us */
	struct vmmc_op *ops, *idle_ops;
	struct vmmc_import *imports;
	struct vmmc_source *sources;
	/* control messages */
	struct vmmc_control *pool, *idle_controls, *first, **last;
	uint64_t written; /* control messages so far; the last one's number */
	uint64_t visible; /* those up to this number may leave */
	uint64_t asked;   /* what the quiet that is under way will bring `visible` to */
	bool quieting;
	/* Of our exports that have ended: those before this life, and those up to which it has answered. */
	uint64_t withdrawals_before, withdrawals_answered;
	uint32_t gone[VMMC_EXPORTS_MAX]; /* of the peer's exports: those up to this generation have ended */
};

enum redirection { NOT_REDIRECTED, REDIRECTING, REDIRECTED, RESTORING };

struct vmmc_export {
	struct vmmc_export *next; /* that has ended, and whose importers have not all answered */
	uint64_t withdrawal;
	struct vmmc *vmmc;
	uint32_t slot, generation, rights, peer, flags;
	uint8_t *base;
	size_t bytes;
	uint64_t binding; /* the nonce in its key */
	struct cadge_region *region;
	enum redirection redirection;
	uint8_t *to;
	size_t to_bytes;
	struct cadge_region *to_region;
};

/* Memory that is freed once nobody may write to it. */
struct vmmc_late_free {
	struct vmmc_late_free *next;
	void *base;
	size_t bytes;
};

struct vmmc {
	struct cadge_wire *wire;
	struct vmmc_events events;
	uint32_t peers, operations, notes;
	bool in_order; /* packets come after the puts before them, without quiet */
	bool stuck;    /* the wire had no room for a control message or a quiet */
	int happened;
	uint64_t nonce_all;
	struct utlb utlb;
	struct vmmc_export *exports[VMMC_EXPORTS_MAX];
	uint32_t generations[VMMC_EXPORTS_MAX];
	struct vmmc_export *ending;
	struct vmmc_late_free *late_frees;
	bool answers; /* some have come */
	uint64_t withdrawals, withdrawals_answered;
	uint64_t updates, updates_refused, updates_redirected, imports_refused;
	uint64_t notes_sent, notes_received, controls_refused, controls_late;
	uint64_t redirections, copied_bytes;
	struct vmmc_link *links;
};

/* ---- vmmc.c ---- */

/* Sends a control message, now or later. DONE or E_MEMORY; a note always finds room where link->idle_controls is not NULL. */
int vmmc_send_control(struct vmmc_link *link, const struct vmmc_head *head, const void *more,
		      size_t more_bytes);

/* ---- memory.c ---- */

/* The export that a control message of `peer` names, and that this peer may import; NULL: there is none (any more). */
struct vmmc_export *vmmc_find_export(struct vmmc *vmmc, uint32_t peer, const struct vmmc_head *head);
void vmmc_unexported(struct vmmc_link *link, const struct vmmc_head *head);
/* The answer to it; false: nobody asked. */
bool vmmc_unexport_answered(struct vmmc_link *link, const struct vmmc_head *head);
/* Drops exports whose importers have all answered, or are gone. Outside of upcalls. */
void vmmc_drop_answered(struct vmmc *vmmc);
/* Before the wire is closed. */
void vmmc_forget_exports(struct vmmc *vmmc);
/* Frees imports and sources of a life that has ended; the wire has detached what they name. */
void vmmc_forget_imports(struct vmmc_link *link);

/* ---- redirect.c ---- */

/* The source of a peer's export; NULL: out of memory. */
struct vmmc_source *vmmc_source_of(struct vmmc_link *link, uint32_t slot, uint32_t generation);
void vmmc_forget_source(struct vmmc_link *link, uint32_t slot, uint32_t generation);
/* Where an update of a redirectable export goes; NULL: not now. */
struct cadge_remote *vmmc_steer(const struct vmmc_import *to, uint64_t offset_bytes, size_t bytes);
/* It was sent there. */
void vmmc_steered(struct vmmc_import *to, uint64_t offset_bytes, size_t bytes);
/* Letters about redirection; false: what no peer of ours sends, or about an export that has ended. */
bool vmmc_redirect_control(struct vmmc_link *link, const struct vmmc_head *head, const uint8_t *more,
			   size_t more_bytes);
/* Ends the redirections of a peer that is gone; `reports`: by upcalls. */
void vmmc_end_redirections(struct vmmc_link *link, bool reports);

#endif
