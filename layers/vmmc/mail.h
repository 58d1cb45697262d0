/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages made of updates: each peer has a mailbox (wire/mailbox.h) here, exported to it alone, and writes its messages
 * there; VMMC has the puts. A mailbox has one place where the next message appears, so that a look costs one line for each
 * peer that is up. In block mode each of these updates notifies, since an update alone wakes nobody.
 */
#ifndef CADGE_VMMC_MAIL_H
#define CADGE_VMMC_MAIL_H

#include "wire/mailbox.h"
#include "wire/style.h"
#include "vmmc/vmmc.h"

#define VMMC_MAIL_OPERATIONS    224u /* of a link, more than a mailbox ever has under way */
#define VMMC_MAIL_KEY_BYTES_MAX 512u

struct vmmc_box {
	struct vmmc_mail *mail;
	struct cadge_mailbox *mailbox;
	struct vmmc_export *inbox;  /* NULL: nobody asked for its key */
	struct vmmc_import *outbox; /* the peer's */
	uint8_t *area;
	uint32_t peer;
	size_t key_bytes; /* of inbox */
	uint8_t key[VMMC_MAIL_KEY_BYTES_MAX];
};

struct vmmc_mail {
	struct vmmc *vmmc;
	struct cadge_mailbox_shape shape;
	uint32_t update_flags, peers, live_count;
	struct vmmc_box *boxes, **live; /* live: those that are looked into */
	void *areas, *staging;
};

/* Boxes for all peers. DONE or E_MEMORY. What was made is to be destroyed, after vmmc_close: peers write until then. */
int vmmc_mail_create(struct vmmc_mail *mail, struct vmmc *vmmc, const struct cadge_open_args *args,
		     const struct cadge_style_asked *asked);
void vmmc_mail_destroy(struct vmmc_mail *mail);

/* What belongs to the box in an address, and its counterpart. vmmc_mail_end follows vmmc_disconnect. */
int vmmc_mail_address(struct vmmc_box *box, struct cadge_blob_out *blob);
int vmmc_mail_connect(struct vmmc_box *box, struct cadge_blob_in *blob);
void vmmc_mail_end(struct vmmc_box *box);
/* From now on it is looked into: the link is up, or down. */
void vmmc_mail_begin(struct vmmc_box *box);

/* Looks into all of them; returns the number of events. */
int vmmc_mail_look(struct vmmc_mail *mail, struct cadge_sink *sink);
bool vmmc_mail_may_sleep(const struct vmmc_mail *mail);

#endif
