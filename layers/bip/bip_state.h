/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of BIP share: bip.c has life and progress, bip_send.c sending, bip_receive.c queues and receives. */
#ifndef CADGE_BIP_BIP_STATE_H
#define CADGE_BIP_BIP_STATE_H

#include "bip/bip.h"
#include "kit/adapter.h"

#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define KEY_BYTES_MAX       512u
#define GRANT_BYTES         (BIP_HEAD_BYTES + 12u)
#define REQUEST_BYTES       (BIP_HEAD_BYTES + 4u)

/*
 * Of a packet, whose head is kind, nothing, and tag (16 bits, little-endian). Then follow: the words of a short message;
 * of a request how many words; of a grant a region (32 bits), an offset (64 bits), and its key where the sender lacks it.
 */
enum bip_kind { SHORT = 1, REQUEST = 2, GRANT = 3, END = 4 };

/* Steps of the long send that is outstanding; from PUTTING on, progress has to do something for it. */
enum bip_send_step { IDLE, ASKED, ENDED, PUTTING, QUIETING, ENDING, DRAINING };

struct bip_send {
	enum bip_send_step step;
	uint32_t peer, tag;
	uint64_t serial; /* what ends is of this send, not of one before */
	struct cadge_iov pieces[BIP_PIECES_MAX];
	uint32_t count, at;
	const struct cadge_remote *remote;
	uint64_t offset_bytes;
	uint32_t pending; /* puts and quiets that the wire has */
	int code;
};

struct bip_entry {
	uint8_t *data; /* the packet; NULL: a long message that waits for a receive */
	uint32_t peer, words;
};

/* OWED: the wire had no room for the grant. */
enum bip_receive_step { NONE, POSTED, OWED, GRANTED, FINISHED };

struct bip_tag {
	struct bip_entry *ring; /* in the order of their coming; empty where a receive is POSTED */
	uint32_t first, count, room;
	enum bip_receive_step step;
	uint8_t *buffer;
	uint32_t room_words;
	struct bip_received received;
	struct cadge_region *exposed; /* for this receive alone */
	int code;
	bool ready; /* in the list of those that bip_ready tells */
	struct bip_tag *next_ready;
};

struct bip_peer {
	struct cadge_link *link; /* NULL: not connected */
	bool up, down;
	uint32_t short_bytes; /* that both sides take */
	uint32_t held;
	uint32_t tags;      /* of the peer: those below it */
	uint32_t announced; /* bits of our regions whose key it has */
	/* Its regions as far as it announced them; the last one is of a receive alone. */
	struct cadge_remote *regions[BIP_REGIONS_MAX + 1];
};

struct bip_region {
	struct cadge_region *region; /* NULL: free */
	const uint8_t *base;
	size_t bytes, key_bytes;
	uint8_t key[KEY_BYTES_MAX];
};

struct bip {
	struct cadge_wire *wire;
	struct bip_events events;
	uint32_t peers, tags, short_words, held_max;
	bool in_order; /* puts need no quiet */
	bool stuck;    /* the wire had no room */
	bool owed;     /* a grant is */
	int broken;    /* E_LIBRARY after an error of the context */
	char why[160];
	struct bip_tag *tag;
	struct bip_tag *ready, **ready_end;
	struct bip_send send;
	struct bip_region region[BIP_REGIONS_MAX];
	uint64_t short_queued, short_copied, queue_most, long_direct, long_by_library, keys_sent,
		packets_refused;
	struct bip_peer peer[];
};

/* bip.c: breaks the context; its first error is the one that counts. */
__attribute__((format(printf, 2, 3))) void bip_fail(struct bip *bip, const char *format, ...);

/* bip_send.c: what the wire told, and another try of what was refused. */
void bip_on_grant(struct bip *bip, uint32_t peer, uint32_t tag, const uint8_t *data, size_t bytes);
void bip_on_ended(void *arg, uint32_t peer, uint64_t token, int code);
void bip_send_on(struct bip *bip);
/* The connection has ended, and with it a send to this peer. */
void bip_forget_send(struct bip *bip, uint32_t peer);

/* bip_receive.c */
enum cadge_keep bip_on_packet(void *arg, uint32_t peer, void *data, size_t bytes);
void bip_grant_owed(struct bip *bip);
/* The connection has ended, and with it receives from this peer; with `all` its short messages go as well. */
void bip_forget_messages(struct bip *bip, uint32_t peer, bool all);
void bip_free_tags(struct bip *bip);

static inline uint32_t bip_tag_number(const struct bip *bip, const struct bip_tag *tag)
{
	return (uint32_t)(tag - bip->tag);
}

/* An empty packet with its head; NULL: the wire has no room. */
static inline uint8_t *bip_take(struct bip *bip, const struct bip_peer *peer, enum bip_kind kind,
				uint32_t tag)
{
	uint8_t *packet = cadge_wire_take(peer->link);

	if (UNLIKELY(!packet)) {
		bip->stuck = true;
		return NULL;
	}
	packet[0] = (uint8_t)kind;
	packet[1] = 0;
	packet[2] = (uint8_t)tag;
	packet[3] = (uint8_t)(tag >> 8);
	return packet;
}

/* DONE, BUSY or E_DOWN; the packet is gone. */
static inline int bip_send_packet(struct bip *bip, const struct bip_peer *peer, uint8_t *packet, size_t bytes)
{
	const int code = cadge_wire_send(peer->link, packet, bytes);

	if (UNLIKELY(code == CADGE_BUSY)) {
		cadge_wire_drop(peer->link, packet);
		bip->stuck = true;
	}
	return code;
}

#endif
