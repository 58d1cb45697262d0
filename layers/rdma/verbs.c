/* SPDX-License-Identifier: BSD-3-Clause */
/* rdma-verbs: libibverbs alone, between hosts. Buffers can be announced to the device (MEM_REG). */
#include "rdma/adapter.h"
#include "wire/verbs/memory.c"
#include "wire/verbs/remote.c"
#include "wire/verbs/wire.c"

static enum cadge_progress expected(const struct cadge_wire *wire, uint32_t right)
{
	return right != CADGE_MAY_ATOMIC || wire->facts.adds ? CADGE_PROGRESS_DIRECT : CADGE_PROGRESS_NONE;
}

static void note(const struct cadge_chan *chan, char *text, size_t bytes)
{
	const struct cadge_wire *wire = chan->ctx->wire;

	snprintf(text, bytes, "put, get and atomics: carried out by the device%s%s",
		 wire->verbs.device.attr.atomic_cap == IBV_ATOMIC_HCA
			 ? ", atomics only against others of its own"
			 : "",
		 wire->notes ? "; notification after each write of a message (block)" : "");
}

static int rdma_mem_reg(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	struct verbs_registered *one = calloc(1, sizeof(*one));
	int code;

	if (!one)
		return CADGE_E_MEMORY;
	code = verbs_register(&ctx->wire->verbs, one, base, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (code != CADGE_DONE)
		free(one);
	return code;
}

static int rdma_mem_dereg(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	struct verbs *verbs = &ctx->wire->verbs;
	struct verbs_registered *one = verbs->registered;

	/* A region of the same bytes may be among them: that one peers may write, and it stays. */
	while (one &&
	       (one == &verbs->own || one->mr->addr != base || one->mr->length != bytes || one->exposed))
		one = one->next;
	if (!one)
		return CADGE_E_ARGUMENT;
	verbs_deregister(verbs, one);
	free(one);
	return CADGE_DONE;
}

static const struct cadge_option options[] = {{NULL, NULL, NULL}};

static const struct rdma_substrate substrate = {
	.options = options,
	.depth_max = 1024,
	.operations_each = 1,
	.operations_more = 16,
	.short_path = "mailbox, one write",
	.long_path = "mailbox, writes of pieces, quiet, a write that describes each",
	.expected = expected,
	.note = note,
};

#include "rdma/adapter.c"

const struct cadge_traits cadge_style_library_traits = {
	.protection = CADGE_PROTECT_KERNEL_OR_NIC,
	.control_transfer = CADGE_CONTROL_POLL,
	.copies_on_send = 1,
};

const struct cadge_layer cadge_style_layer = {
	.name = "rdma-verbs",
	.caps = (RDMA_CAPS & ~CADGE_CAP_HOST) | CADGE_CAP_MEM_REG,
	CADGE_STYLE_SLOTS_BARE,
	CADGE_STYLE_SLOTS_SLEEP,
	RDMA_SLOTS,
	.mem_reg = rdma_mem_reg,
	.mem_dereg = rdma_mem_dereg,
};
