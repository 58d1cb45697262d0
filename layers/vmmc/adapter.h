/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VMMC's adapter: adapter.c has messages and channels, onesided.c one-sided operations. A substrate's table names the slots, those
 * here beyond those of every style.
 */
#ifndef CADGE_VMMC_ADAPTER_H
#define CADGE_VMMC_ADAPTER_H

#include "vmmc/vmmc.h"
#include "wire/mail.h"

struct cadge_chan {
	struct cadge_ctx *ctx;
	struct cadge_box *box;
	uint32_t peer, outstanding; /* of the caller's operations */
};

struct cadge_ctx {
	struct vmmc *vmmc;
	struct cadge_mail mail;
	struct cadge_mail_style mail_style;
	struct cadge_mailbox_ops mailbox_ops;
	struct cadge_sink *sink;
	struct cadge_style_asked asked;
	int events;
	uint32_t update_flags; /* of messages */
	unsigned int skipped;  /* polls without progress of the library */
	bool direct, proved;   /* all peers so far are reached directly; there was one */
	struct cadge_chan chans[];
};

void cadge_slot_semantics(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out);
int cadge_slot_expose(struct cadge_ctx *ctx, void *base, size_t bytes, uint32_t rights, uint32_t peer,
		      uint32_t flags, void *key, size_t *key_bytes_inout, struct cadge_region **region_out);
void cadge_slot_unexpose(struct cadge_ctx *ctx, struct cadge_region *region);
int cadge_slot_attach(struct cadge_chan *chan, const void *key, size_t key_bytes, uint32_t intent,
		      uint32_t flags, struct cadge_remote **remote_out);
void cadge_slot_detach(struct cadge_chan *chan, struct cadge_remote *remote);
int cadge_slot_put(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *remote,
		   uint64_t offset_bytes, uint32_t flags, uint64_t token);
int cadge_slot_quiet(struct cadge_chan *chan, uint32_t flags, uint64_t token);
void *cadge_slot_mem_alloc(struct cadge_ctx *ctx, size_t bytes);
void cadge_slot_mem_free(struct cadge_ctx *ctx, void *base, size_t bytes);

#define VMMC_CAPS                                                                                            \
	(CADGE_STYLE_CAPS | CADGE_CAP_FLOW_CONTROL | CADGE_CAP_PUT | CADGE_CAP_RIGHTS | CADGE_CAP_NOTIFY |   \
	 CADGE_CAP_MEM_ALLOC)

#define VMMC_SLOTS                                                                                           \
	.semantics = cadge_slot_semantics, .expose = cadge_slot_expose, .unexpose = cadge_slot_unexpose,     \
	.attach = cadge_slot_attach, .detach = cadge_slot_detach, .put = cadge_slot_put,                     \
	.quiet = cadge_slot_quiet, .mem_alloc = cadge_slot_mem_alloc, .mem_free = cadge_slot_mem_free

#endif
