/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/mail.h"

#include <stdlib.h>

#define PAGE_BYTES ((size_t)4096)

bool cadge_mail_may_sleep(const struct cadge_mail *mail)
{
	for (struct cadge_mailbox **at = mail->live; at != mail->live_end; at++)
		if (!cadge_mailbox_may_sleep(*at))
			return false;
	return true;
}

void cadge_mail_begin(struct cadge_box *box)
{
	struct cadge_mail *mail = box->mail;

	for (struct cadge_mailbox **at = mail->live; at != mail->live_end; at++)
		if (*at == box->mailbox)
			return;
	*mail->live_end++ = box->mailbox;
}

void cadge_mail_end(struct cadge_box *box)
{
	struct cadge_mail *mail = box->mail;

	for (struct cadge_mailbox **at = mail->live; at != mail->live_end; at++)
		if (*at == box->mailbox) {
			*at = *--mail->live_end;
			break;
		}
	cadge_mailbox_detach(box->mailbox);
	if (!box->inbox || !mail->style->unexpose)
		return;
	mail->style->unexpose(box);
	box->inbox = NULL;
}

/* ---- connecting ---- */

int cadge_mail_address(struct cadge_box *box, struct cadge_blob_out *blob)
{
	struct cadge_blob_out key = {.at = box->key, .room_bytes = sizeof(box->key), .ok = true};
	uint8_t card[CADGE_MAILBOX_CARD_BYTES];
	int code = CADGE_DONE;

	if (!box->inbox) {
		code = box->mail->style->expose(box, cadge_mailbox_area_bytes(&box->mail->shape), &key);
		box->key_bytes = key.used_bytes;
	}
	if (code != CADGE_DONE)
		return code;
	cadge_mailbox_card(box->mailbox, card);
	cadge_blob_raw(blob, card, sizeof(card));
	cadge_blob_bytes(blob, box->key, box->key_bytes);
	return blob->ok ? CADGE_DONE : CADGE_E_TOO_LARGE;
}

bool cadge_mail_take(struct cadge_blob_in *blob, struct cadge_mail_peer *peer_out)
{
	*peer_out = (struct cadge_mail_peer){.card = cadge_blob_take(blob, CADGE_MAILBOX_CARD_BYTES),
					     .key = {.ok = true}};
	peer_out->key.at = cadge_blob_take_bytes(blob, &peer_out->key.left_bytes);
	return blob->ok;
}

int cadge_mail_connect(struct cadge_box *box, void *link, struct cadge_mail_peer *peer)
{
	int code;

	box->link = link;
	code = box->mail->style->attach(box, &peer->key);
	if (code == CADGE_DONE && peer->key.left_bytes)
		code = CADGE_E_ARGUMENT;
	return code == CADGE_DONE
		       ? cadge_mailbox_attach(box->mailbox, peer->card, CADGE_MAILBOX_CARD_BYTES, box)
		       : code;
}

/* ---- what is said of messages ---- */

void cadge_mail_limits(const struct cadge_mail *mail, struct cadge_limits *limits)
{
	limits->iov_max = CADGE_MAILBOX_IOV_MAX;
	limits->wire_overhead_bytes = (uint32_t)cadge_mailbox_overhead_bytes();
	limits->short_bytes_max = mail->shape.short_bytes;
}

void cadge_mail_traits(const struct cadge_mail *mail, const struct cadge_style_asked *asked,
		       struct cadge_traits *traits)
{
	traits->flow = CADGE_FLOW_CREDITS;
	traits->granule_bytes = mail->shape.chunk_bytes;
	if (asked->wait_mode == CADGE_WAIT_BLOCK)
		traits->waker = CADGE_WAKER_CADGE;
}

void cadge_mail_counters(const struct cadge_mail *mail,
			 void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	for (uint32_t i = 0; i < mail->peers; i++)
		cadge_mailbox_counters(mail->boxes[i].mailbox, each, arg);
}

/* ---- life ---- */

/*
 * Memory that is mapped here is written and made visible in a few dozen nanoseconds, less than the check of a mailbox's entry
 * costs from here on. Elsewhere a second write costs more, and short messages may be as long as the mailbox allows.
 */
#define MAPPED_SHORT_BYTES 640u
#define LONG_BYTES         8192u /* for every shape */

static void choose_shape(struct cadge_mail *mail, const struct cadge_open_args *args,
			 const struct cadge_style_asked *asked)
{
	const uint64_t bytes = asked->message_bytes_max;
	const bool two_paths = mail->style->maps && asked->place == CADGE_PLACE_HOST &&
			       !*cadge_setting_of(args, "transports", "") && bytes > MAPPED_SHORT_BYTES;

	cadge_mailbox_shape(asked->depth, two_paths && bytes < LONG_BYTES ? LONG_BYTES : bytes, &mail->shape);
	if (two_paths)
		mail->shape.short_bytes = MAPPED_SHORT_BYTES;
}

/* Whole pages: some libraries register no page twice. */
static size_t area_stride_bytes(const struct cadge_mailbox_shape *shape)
{
	return (cadge_mailbox_area_bytes(shape) + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static int make_boxes(struct cadge_mail *mail, uint8_t *areas, uint8_t *staging,
		      const struct cadge_style_asked *asked, uint32_t peers)
{
	struct cadge_mailbox_config config = {
		.shape = mail->shape,
		.ops = mail->style->ops,
		.put_anywhere = mail->style->put_anywhere,
		.depth_max = asked->depth,
		.message_bytes_max = asked->message_bytes_max,
	};
	const size_t area_bytes = area_stride_bytes(&config.shape);
	const size_t staging_bytes = cadge_mailbox_staging_bytes(&config.shape, config.put_anywhere);
	int code = CADGE_DONE;

	for (; code == CADGE_DONE && mail->peers < peers; mail->peers++) {
		struct cadge_box *box = &mail->boxes[mail->peers];

		box->mail = mail;
		box->peer = config.peer = mail->peers;
		box->area = config.area = areas + mail->peers * area_bytes;
		config.staging = staging + mail->peers * staging_bytes;
		code = cadge_nonce(&config.key);
		if (code == CADGE_DONE)
			code = cadge_mailbox_create(&config, &box->mailbox);
	}
	return code;
}

/* Memory of the wire's goes when that is closed. */
static void *take(struct cadge_wire *wire, size_t bytes, bool of_wire, void **own_out)
{
	const size_t rounded_bytes = (bytes / PAGE_BYTES + 1) * PAGE_BYTES;

	if (of_wire)
		return cadge_wire_alloc(wire, rounded_bytes);
	return *own_out = aligned_alloc(PAGE_BYTES, rounded_bytes);
}

int cadge_mail_create(struct cadge_mail *mail, const struct cadge_mail_style *style, void *user,
		      struct cadge_wire *wire, const struct cadge_open_args *args,
		      const struct cadge_style_asked *asked)
{
	const struct cadge_wire_facts *facts = cadge_wire_facts(wire);
	const uint32_t peers = args->peers_max;
	int code = CADGE_E_MEMORY;
	void *areas, *staging;

	mail->style = style;
	mail->user = user;
	choose_shape(mail, args, asked);
	/* Other memory is as good where the wire says so. */
	areas = take(wire, peers * area_stride_bytes(&mail->shape), !facts->any_memory || facts->registers,
		     &mail->areas);
	staging = take(wire, peers * cadge_mailbox_staging_bytes(&mail->shape, style->put_anywhere),
		       facts->registers || facts->reads_late, &mail->staging);
	mail->boxes = calloc(peers, sizeof(*mail->boxes));
	mail->live = mail->live_end = calloc(peers, sizeof(struct cadge_mailbox *));
	if (areas && staging && mail->boxes && mail->live)
		code = make_boxes(mail, areas, staging, asked, peers);
	return code == CADGE_DONE
		       ? code
		       : cadge_refuse(args, code, "no memory for the mailboxes of %u peers%s%s", peers,
				      *cadge_wire_why(wire) ? ": " : "", cadge_wire_why(wire));
}

void cadge_mail_destroy(struct cadge_mail *mail)
{
	for (uint32_t i = 0; i < mail->peers; i++)
		cadge_mailbox_destroy(mail->boxes[i].mailbox);
	free(mail->areas);
	free(mail->staging);
	free(mail->boxes);
	free(mail->live);
}
