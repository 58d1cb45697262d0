/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of a style that has remote writes alone: each peer has a mailbox (wire/mailbox.h) here, and writes its messages there.
 * The style says how such memory is opened to a peer, and puts. A mailbox has one place where the next message appears, so that a
 * look costs one line for each peer that is up.
 */
#ifndef CADGE_WIRE_MAIL_H
#define CADGE_WIRE_MAIL_H

#include "wire/mailbox.h"
#include "wire/style.h"

#define CADGE_MAIL_OPERATIONS    224u /* of a link, more than a mailbox ever has under way */
#define CADGE_MAIL_KEY_BYTES_MAX 1024u

struct cadge_box {
	struct cadge_mail *mail;
	struct cadge_mailbox *mailbox;
	void *link, *inbox,
		*outbox; /* the style's: of the life; our area, NULL until somebody asks for its key; the peer's */
	uint8_t *area;
	uint32_t peer;
	size_t key_bytes; /* of inbox */
	uint8_t key[CADGE_MAIL_KEY_BYTES_MAX];
};

struct cadge_mail_style {
	/* Their `link` is the box; `put` goes to its outbox. */
	const struct cadge_mailbox_ops *ops;
	/* Opens the area, of so many bytes, to the peer: sets inbox and writes its key. */
	int (*expose)(struct cadge_box *box, size_t bytes, struct cadge_blob_out *key);
	/* NULL: what was opened stays open until the context ends. */
	void (*unexpose)(struct cadge_box *box);
	/* Sets outbox from such a key. */
	int (*attach)(struct cadge_box *box, struct cadge_blob_in *key);
	/* Peers' memory is mapped here if the place and the settings allow: a message has two paths then. */
	bool maps;
	bool put_anywhere; /* see cadge_mailbox_config */
};

struct cadge_mail {
	const struct cadge_mail_style *style;
	void *user; /* the style's */
	struct cadge_mailbox_shape shape;
	uint32_t peers;
	struct cadge_box *boxes;
	struct cadge_mailbox **live, **live_end; /* those that are looked into */
	void *areas, *staging;                   /* not the wire's */
};

/*
 * Boxes for all peers. DONE or a refusal of open. What was made is to be destroyed, after the wire was closed: peers
 * write until then.
 */
int cadge_mail_create(struct cadge_mail *mail, const struct cadge_mail_style *style, void *user,
		      struct cadge_wire *wire, const struct cadge_open_args *args,
		      const struct cadge_style_asked *asked);
void cadge_mail_destroy(struct cadge_mail *mail);

/* What belongs to the box in an address, and its counterpart: taken before the link is connected, so that nothing is begun with half an address. */
int cadge_mail_address(struct cadge_box *box, struct cadge_blob_out *blob);
struct cadge_mail_peer {
	const void *card;
	struct cadge_blob_in key;
};
bool cadge_mail_take(struct cadge_blob_in *blob, struct cadge_mail_peer *peer_out);
/* Where that is refused, our address stays as it was. */
int cadge_mail_connect(struct cadge_box *box, void *link, struct cadge_mail_peer *peer);
/* Follows the end of the link. */
void cadge_mail_end(struct cadge_box *box);
/* From now on it is looked into: the link is up, or down. */
void cadge_mail_begin(struct cadge_box *box);

/* Limits and traits of messages, and counters. */
void cadge_mail_limits(const struct cadge_mail *mail, struct cadge_limits *limits);
void cadge_mail_traits(const struct cadge_mail *mail, const struct cadge_style_asked *asked,
		       struct cadge_traits *traits);
void cadge_mail_counters(const struct cadge_mail *mail,
			 void (*each)(void *arg, const char *name, uint64_t value), void *arg);

/* Looks into all of them, and counts the events. By address: what the caller keeps in memory anyway costs no register. */
static inline void cadge_mail_poll(const struct cadge_mail *mail, struct cadge_sink *const *sink, int *events)
{
	for (struct cadge_mailbox **at = mail->live; at != mail->live_end; at++)
		*events += cadge_mailbox_poll(*at, *sink);
}

bool cadge_mail_may_sleep(const struct cadge_mail *mail);

#endif
