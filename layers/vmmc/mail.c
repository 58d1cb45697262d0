/* SPDX-License-Identifier: BSD-3-Clause */
#include "vmmc/mail.h"

#include <stdlib.h>

#define PAGE_BYTES ((size_t)4096)

/* ---- the mailbox's library ---- */

static int put(void *link, const void *local, size_t bytes, uint64_t offset_bytes,
	       struct cadge_mailbox_op *op)
{
	const struct vmmc_box *box = link;

	return vmmc_send(box->outbox, offset_bytes, local, bytes, box->mail->update_flags,
			 (struct vmmc_token){.owner = op});
}

static int quiet(void *link, struct cadge_mailbox_op *op)
{
	const struct vmmc_box *box = link;

	return vmmc_quiet(box->mail->vmmc, box->peer, (struct vmmc_token){.owner = op});
}

/* Where puts are in order. */
static int fence(void *link)
{
	(void)link;
	return CADGE_DONE;
}

static const struct cadge_mailbox_ops ops = {put, quiet, NULL, NULL};
static const struct cadge_mailbox_ops ordered_ops = {put, quiet, fence, NULL};

/* ---- looking ---- */

int vmmc_mail_look(struct vmmc_mail *mail, struct cadge_sink *sink)
{
	int events = 0;

	for (uint32_t i = 0; i < mail->live_count; i++)
		events += cadge_mailbox_poll(mail->live[i]->mailbox, sink);
	return events;
}

bool vmmc_mail_may_sleep(const struct vmmc_mail *mail)
{
	for (uint32_t i = 0; i < mail->live_count; i++)
		if (!cadge_mailbox_may_sleep(mail->live[i]->mailbox))
			return false;
	return true;
}

void vmmc_mail_begin(struct vmmc_box *box)
{
	struct vmmc_mail *mail = box->mail;

	for (uint32_t i = 0; i < mail->live_count; i++)
		if (mail->live[i] == box)
			return;
	mail->live[mail->live_count++] = box;
}

void vmmc_mail_end(struct vmmc_box *box)
{
	struct vmmc_mail *mail = box->mail;

	for (uint32_t i = 0; i < mail->live_count; i++)
		if (mail->live[i] == box)
			mail->live[i] = mail->live[--mail->live_count];
	cadge_mailbox_detach(box->mailbox);
	if (box->inbox)
		vmmc_unexport(box->inbox);
	box->inbox = NULL;
}

/* ---- connecting ---- */

int vmmc_mail_address(struct vmmc_box *box, struct cadge_blob_out *blob)
{
	struct cadge_blob_out key = {.at = box->key, .room_bytes = sizeof(box->key), .ok = true};
	const size_t bytes = cadge_mailbox_area_bytes(&box->mail->shape);
	uint8_t card[CADGE_MAILBOX_CARD_BYTES];
	int code = CADGE_DONE;

	if (!box->inbox) {
		code = vmmc_export(box->mail->vmmc, box->area, bytes, CADGE_MAY_WRITE, box->peer, 0, &key,
				   &box->inbox);
		box->key_bytes = key.used_bytes;
	}
	if (code != CADGE_DONE)
		return code;
	cadge_mailbox_card(box->mailbox, card);
	cadge_blob_raw(blob, card, sizeof(card));
	cadge_blob_raw(blob, box->key, box->key_bytes);
	return blob->ok ? CADGE_DONE : CADGE_E_TOO_LARGE;
}

int vmmc_mail_connect(struct vmmc_box *box, struct cadge_blob_in *blob)
{
	const void *card = cadge_blob_take(blob, CADGE_MAILBOX_CARD_BYTES);
	int code = CADGE_E_ARGUMENT;

	if (card)
		code = vmmc_import(box->mail->vmmc, box->peer, blob, CADGE_MAY_WRITE, &box->outbox);
	if (code == CADGE_DONE && blob->left_bytes)
		code = CADGE_E_ARGUMENT;
	return code == CADGE_DONE ? cadge_mailbox_attach(box->mailbox, card, CADGE_MAILBOX_CARD_BYTES, box)
				  : code;
}

/* ---- life ---- */

/*
 * Memory that is mapped here is written and made visible in a few dozen nanoseconds, less than the check of a mailbox's entry
 * costs from here on. Elsewhere a second write costs more, and short messages may be as long as the mailbox allows.
 */
#define MAPPED_SHORT_BYTES 640u
#define LONG_BYTES         8192u /* for every shape */

static void choose_shape(struct vmmc_mail *mail, const struct cadge_open_args *args,
			 const struct cadge_style_asked *asked, bool any_memory)
{
	const uint64_t bytes = asked->message_bytes_max;
	const bool two_paths = asked->place == CADGE_PLACE_HOST && !any_memory &&
			       !*cadge_setting_of(args, "transports", "") && bytes > MAPPED_SHORT_BYTES;

	cadge_mailbox_shape(asked->depth, two_paths && bytes < LONG_BYTES ? LONG_BYTES : bytes, &mail->shape);
	if (two_paths)
		mail->shape.short_bytes = MAPPED_SHORT_BYTES;
}

static int make_boxes(struct vmmc_mail *mail, uint8_t *areas, struct cadge_mailbox_config *config,
		      uint32_t peers)
{
	const size_t area_bytes = cadge_mailbox_area_bytes(&config->shape);
	const size_t staging_bytes = cadge_mailbox_staging_bytes(&config->shape, config->put_anywhere);
	uint8_t *staging = mail->staging;
	int code = CADGE_DONE;

	for (; code == CADGE_DONE && mail->peers < peers; mail->peers++) {
		struct vmmc_box *box = &mail->boxes[mail->peers];

		box->mail = mail;
		box->peer = config->peer = mail->peers;
		box->area = config->area = areas + mail->peers * area_bytes;
		config->staging = staging + mail->peers * staging_bytes;
		code = cadge_nonce(&config->key);
		if (code == CADGE_DONE)
			code = cadge_mailbox_create(config, &box->mailbox);
	}
	return code;
}

int vmmc_mail_create(struct vmmc_mail *mail, struct vmmc *vmmc, const struct cadge_open_args *args,
		     const struct cadge_style_asked *asked)
{
	const struct cadge_wire_facts *facts = cadge_wire_facts(vmmc_wire(vmmc));
	struct cadge_mailbox_config config = {
		.ops = facts->puts_in_order ? &ordered_ops : &ops,
		.put_anywhere = true,
		.depth_max = asked->depth,
		.message_bytes_max = asked->message_bytes_max,
	};
	size_t areas_bytes;
	void *areas;

	mail->vmmc = vmmc;
	mail->update_flags = asked->wait_mode == CADGE_WAIT_BLOCK ? VMMC_NOTIFY : 0;
	choose_shape(mail, args, asked, facts->any_memory);
	config.shape = mail->shape;
	areas_bytes =
		(args->peers_max * cadge_mailbox_area_bytes(&mail->shape) / PAGE_BYTES + 1) * PAGE_BYTES;
	/* Memory of the wire's goes when that is closed; other memory is as good where the wire says so. */
	if (facts->any_memory)
		areas = mail->areas = aligned_alloc(PAGE_BYTES, areas_bytes);
	else
		areas = vmmc_alloc(vmmc, areas_bytes);
	mail->staging = aligned_alloc(64, args->peers_max * cadge_mailbox_staging_bytes(&mail->shape, true));
	mail->boxes = calloc(args->peers_max, sizeof(*mail->boxes));
	mail->live = calloc(args->peers_max, sizeof(struct vmmc_box *));
	if (!areas || !mail->staging || !mail->boxes || !mail->live)
		return CADGE_E_MEMORY;
	return make_boxes(mail, areas, &config, args->peers_max);
}

void vmmc_mail_destroy(struct vmmc_mail *mail)
{
	for (uint32_t i = 0; i < mail->peers; i++)
		cadge_mailbox_destroy(mail->boxes[i].mailbox);
	free(mail->areas);
	free(mail->staging);
	free(mail->boxes);
	free(mail->live);
}
