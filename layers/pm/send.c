/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes out: posted, and so copied into a send buffer, or built in one. */
#include "pm/adapter.h"

/* A send buffer, behind the head of a message; NULL: none. */
static uint8_t *message_buffer(struct cadge_chan *chan, size_t bytes)
{
	uint8_t *packet =
		pm_get_send_buffer(chan->ctx->pm, PM_CHANNEL, chan->peer, bytes + PM_ADAPTER_HEAD_BYTES);

	if (UNLIKELY(!packet))
		return NULL;
	cadge_store64(packet, PM_MESSAGE);
	return packet + PM_ADAPTER_HEAD_BYTES;
}

static int send_message(struct cadge_chan *chan, uint8_t *message, size_t bytes)
{
	return pm_send(chan->ctx->pm, PM_CHANNEL, chan->peer, message - PM_ADAPTER_HEAD_BYTES,
		       bytes + PM_ADAPTER_HEAD_BYTES);
}

int cadge_slot_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		    uint64_t token)
{
	const size_t bytes = cadge_iov_bytes(iov, count);
	const int code = cadge_style_may_post(&chan->state, count, bytes, chan->ctx->asked.message_bytes_max);
	uint8_t *message;

	(void)flags;
	if (code != CADGE_DONE)
		return code;
	if (UNLIKELY(chan->out.phase != PM_IDLE))
		return CADGE_BUSY;
	if (bytes > chan->ctx->short_bytes_max)
		return pm_long_post(chan, iov, count, token);
	message = message_buffer(chan, bytes);
	if (UNLIKELY(!message))
		return CADGE_BUSY;
	cadge_iov_gather(iov, count, message);
	return send_message(chan, message, bytes);
}

int pm_slot_reserve(struct cadge_chan *chan, size_t bytes, uint32_t flags, void **base_out)
{
	int code = cadge_usable(&chan->state);
	void *base;

	(void)flags;
	if (chan->ctx->asked.off & CADGE_PART_ZERO_COPY_SEND)
		return CADGE_E_UNSUPPORTED;
	if (code != CADGE_DONE)
		return code;
	if (bytes > chan->ctx->asked.message_bytes_max)
		return CADGE_E_TOO_LARGE;
	if (bytes > chan->ctx->short_bytes_max)
		return pm_staging_take(chan, bytes, base_out);
	base = message_buffer(chan, bytes);
	if (!base)
		return CADGE_BUSY;
	*base_out = base;
	return CADGE_DONE;
}

int pm_slot_commit(struct cadge_chan *chan, void *base, size_t bytes, uint32_t flags, uint64_t token)
{
	const bool is_long = base == chan->staging;
	int code = cadge_usable(&chan->state);

	(void)flags;
	if (code == CADGE_DONE && UNLIKELY(chan->out.phase != PM_IDLE))
		return CADGE_BUSY;
	if (code == CADGE_DONE && is_long) {
		const struct cadge_iov iov = {.base = base, .bytes = bytes};

		code = pm_long_post(chan, &iov, 1, token);
	} else if (code == CADGE_DONE) {
		return send_message(chan, base, bytes);
	}
	if (code < 0)
		pm_slot_cancel(chan, base);
	return code;
}

void pm_slot_cancel(struct cadge_chan *chan, void *base)
{
	if (base == chan->staging)
		chan->staging_taken = false;
	else
		pm_return_send_buffer(chan->ctx->pm, PM_CHANNEL, chan->peer,
				      (uint8_t *)base - PM_ADAPTER_HEAD_BYTES);
}
