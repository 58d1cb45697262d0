/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of PM share: pm.c has messages, channels and life, remote.c memory that peers write to, pin.c the pin-down
 * cache.
 */
#ifndef CADGE_PM_STATE_H
#define CADGE_PM_STATE_H

#include "kit/adapter.h"
#include "pm/pin.h"
#include "pm/pm.h"

#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/*
 * A packet's head: kind, channel, its number, and how many packets of the other end were taken (16 bits each,
 * little-endian, as they count modulo 2^16), and nothing (2 bytes). That of all but data has no number; that of PINS and
 * LEFT, which are of no channel, has the kind alone. See remote.c for what follows it there.
 */
enum kind { DATA, ACK, NACK, ROOM, PINS, LEFT };

/* What a receiver has to say of a packet that it did not take. */
enum refused { NONE, UNREPORTED, REPORTED };

struct held {
	uint8_t *packet;
	uint32_t bytes;
};

/* One channel to one peer. */
struct flow {
	/* out: numbers up to `acked` are the peer's, up to `sent` were sent, up to `next` are held */
	uint16_t acked, sent, next;
	uint16_t taken; /* send buffers that the caller has */
	bool stopped;   /* by a NACK */
	/* in */
	uint16_t expected, credited; /* taken, and said so */
	enum refused refused;
	bool report_queued; /* in the list of flows that have something to report */
	struct flow *next_report;
	uint32_t peer;
	uint8_t channel;
	struct held *held; /* a ring of a window */
};

struct buffer {
	struct pm_packet packet; /* first: it is what the caller has */
	struct buffer *next;     /* free, or the next that came */
	uint8_t *at;             /* what the wire keeps; NULL: free */
	struct channel *channel;
};

struct channel {
	struct buffer *idle, *first, *last;
	struct buffer *buffers;
	uint32_t idle_count;
	uint32_t refused; /* flows that wait for ROOM */
	bool stopping;    /* is about to be switched out */
	struct flow *flows;
};

struct peer {
	struct cadge_link *link; /* NULL: not connected; then all else is 0 */
	bool wire_up, down;
	bool up; /* both ends know which pins of the other have left */
	/* Our pins, as this peer was told: see pin.h for numbers of withdrawals. */
	uint32_t slots_sent; /* of the table that it gets first */
	bool table_begun, table_sent;
	uint64_t withdrawals_sent, withdrawals_answered;
	/* Its pins, as we were told. */
	bool table_received;
	uint64_t nonce;                   /* in handles of its context */
	uint64_t valid_from[PM_PINS_MAX]; /* by slot: pins of lower numbers have left */
	struct pm_remote *remotes;
	uint64_t withdrawals_received;
	uint64_t quiet_asked, quiet; /* writes before this withdrawal are, or will be, visible */
	bool quieting;
	uint64_t withdrawals_replied;
};

struct pm {
	struct cadge_wire *wire;
	struct pm_events events;
	uint32_t peers, packet_bytes, window, buffers, channels;
	uint32_t running;
	struct flow *reports;
	bool remote_due; /* remote.c has something to send, or to find out */
	struct pm_pins pins;
	uint64_t no_send_buffer, nacks_sent, nacks_received, acks_alone, packets_again, dropped_after_nack,
		refused;
	uint64_t writes_refused, withdrawals_received;
	struct channel channel[PM_CHANNELS_MAX];
	struct held *held;
	struct flow *flows;
	struct peer peer[];
};

/* ---- remote.c ---- */

#define PM_TABLE_HEAD_BYTES  24u /* of PINS, behind the packet's head */
#define PM_TABLE_ENTRY_BYTES 8u
#define PM_QUIET_TOKEN       UINT64_MAX

/* PINS or LEFT; false: that is no packet of a peer of ours. */
bool pm_remote_packet(struct pm *pm, uint32_t peer, const uint8_t *data, size_t bytes);
/* The wire can send to this peer; it is gone; a quiet of ours has ended. */
void pm_remote_up(struct pm *pm, uint32_t peer);
void pm_remote_down(struct pm *pm, uint32_t peer);
void pm_remote_quiet_ended(struct pm *pm, uint32_t peer, int code);
/* Its link has ended: as if it had never been. */
void pm_remote_forget(struct pm *pm, uint32_t peer);
/* Sends what is due and drops pins that have left. Outside of upcalls. */
void pm_remote_settle(struct pm *pm);

#endif
