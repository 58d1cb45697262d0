/* SPDX-License-Identifier: BSD-3-Clause */
/* See rma.h. */
#include <string.h>
#include <sys/uio.h>

#include "cadge/check.h"
#include "rma.h"

struct key_parcel {
	uint64_t base;
	uint64_t bytes;
	unsigned char key[2048];
};

int rma_open(struct rma *rma, struct endpoint *ep, size_t bytes)
{
	struct key_parcel parcel;
	struct rank *r = ep->r;
	size_t key_bytes = sizeof(parcel.key), got;
	int rc;

	memset(rma, 0, sizeof(*rma));
	rma->ep = ep;
	rma->bytes = bytes;
	rma->local = buffer_new(ep, bytes);
	if (!rma->local)
		return -1;
	if (rank_answers(r)) {
		rma->base = buffer_new(ep, bytes);
		if (!rma->base)
			return -1;
		memset(rma->base, 0, bytes);
		rc = ep->layer->expose(ep->ctx, rma->base, bytes, CADGE_MAY_ALL, CADGE_ALL_PEERS, 0,
				       parcel.key, &key_bytes, &rma->region);
		if (rc != CADGE_DONE)
			return fail(r, "expose returned %d (%s)", rc, cadge_code_name(rc));
		if (key_bytes > sizeof(parcel.key))
			return fail(r, "expose wrote a key of %zu bytes where 2048 were given", key_bytes);
		parcel.base = (uint64_t)(uintptr_t)rma->base;
		parcel.bytes = key_bytes;
		if (oob_send(r, ep->peer[0].rank, &parcel, sizeof(parcel)) < 0)
			return -1;
	}
	if (rank_starts(r)) {
		if (oob_recv(r, ep->peer[0].rank, &parcel, sizeof(parcel), &got) < 0)
			return -1;
		rc = ep->layer->attach(ep->peer[0].chan, parcel.key, (size_t)parcel.bytes, CADGE_MAY_ALL, 0,
				       &rma->remote);
		if (rc != CADGE_DONE)
			return fail(r, "attach returned %d (%s)", rc, cadge_code_name(rc));
		memset(parcel.key, 0x5a, sizeof(parcel.key));
		rma->peer_base = parcel.base;
		rma->can_peek = rma_peek(rma, 0, parcel.key, 1) == 0;
		if (oob_send(r, ep->peer[0].rank, &rma->can_peek, sizeof(rma->can_peek)) < 0)
			return -1;
	}
	if (rank_answers(r) && oob_recv(r, ep->peer[0].rank, &rma->can_peek, sizeof(rma->can_peek), &got) < 0)
		return -1;
	return oob_barrier(r);
}

int rma_close(struct rma *rma)
{
	struct endpoint *ep = rma->ep;

	if (endpoint_drain(ep) < 0)
		return -1;
	if (rma->remote)
		ep->layer->detach(ep->peer[0].chan, rma->remote);
	if (oob_barrier(ep->r) < 0)
		return -1;
	if (rma->region)
		ep->layer->unexpose(ep->ctx, rma->region);
	buffer_free(ep, rma->base, rma->bytes);
	buffer_free(ep, rma->local, rma->bytes);
	return 0;
}

/* After BUSY: makes progress; -1 when that takes too long. */
static int again(struct rma *rma, const char *what, uint64_t *began_ns)
{
	int got = endpoint_poll(rma->ep);

	if (got < 0)
		return -1;
	if (!got)
		endpoint_idle(rma->ep);
	if (!*began_ns)
		*began_ns = now_ns();
	else if (now_ns() - *began_ns > 8 * NS_PER_S)
		return fail(rma->ep->r, "%s stayed BUSY for 8 s", what);
	return 0;
}

int rma_put(struct rma *rma, const void *local, size_t bytes, uint64_t offset_bytes)
{
	return rma_put_with(rma, local, bytes, offset_bytes, 0);
}

int rma_put_with(struct rma *rma, const void *local, size_t bytes, uint64_t offset_bytes, uint32_t flags)
{
	struct endpoint *ep = rma->ep;
	uint64_t began = 0, token;
	int busy;

	do {
		token = token_new(ep, NULL);
		busy = endpoint_account(ep,
					ep->layer->put(ep->peer[0].chan, local, bytes, rma->remote,
						       offset_bytes, flags, token),
					token, "put");
		if (busy > 0 && again(rma, "put", &began) < 0)
			return -1;
	} while (busy > 0);
	return busy;
}

int rma_get(struct rma *rma, void *local, size_t bytes, uint64_t offset_bytes)
{
	struct endpoint *ep = rma->ep;
	uint64_t began = 0, token;
	int busy;

	do {
		token = token_new(ep, NULL);
		busy = endpoint_account(
			ep,
			ep->layer->get(ep->peer[0].chan, local, bytes, rma->remote, offset_bytes, 0, token),
			token, "get");
		if (busy > 0 && again(rma, "get", &began) < 0)
			return -1;
	} while (busy > 0);
	return busy;
}

int rma_fetch_add(struct rma *rma, uint64_t addend, uint64_t *before_out, uint64_t offset_bytes)
{
	struct endpoint *ep = rma->ep;
	uint64_t began = 0, token;
	int busy;

	do {
		token = token_new(ep, NULL);
		busy = endpoint_account(ep,
					ep->layer->fetch_add(ep->peer[0].chan, addend, before_out,
							     rma->remote, offset_bytes, 0, token),
					token, "fetch_add");
		if (busy > 0 && again(rma, "fetch_add", &began) < 0)
			return -1;
	} while (busy > 0);
	return busy;
}

int rma_compare_swap(struct rma *rma, uint64_t expected, uint64_t desired, uint64_t *before_out,
		     uint64_t offset_bytes)
{
	struct endpoint *ep = rma->ep;
	uint64_t began = 0, token;
	int busy;

	do {
		token = token_new(ep, NULL);
		busy = endpoint_account(ep,
					ep->layer->compare_swap(ep->peer[0].chan, expected, desired,
								before_out, rma->remote, offset_bytes, 0,
								token),
					token, "compare_swap");
		if (busy > 0 && again(rma, "compare_swap", &began) < 0)
			return -1;
	} while (busy > 0);
	return busy;
}

int rma_quiet(struct rma *rma)
{
	struct endpoint *ep = rma->ep;
	uint64_t began = 0, token;
	int busy;

	do {
		token = token_new(ep, NULL);
		busy = endpoint_account(ep, ep->layer->quiet(ep->peer[0].chan, 0, token), token, "quiet");
		if (busy > 0 && again(rma, "quiet", &began) < 0)
			return -1;
	} while (busy > 0);
	return busy;
}

int rma_quiet_again(struct rma *rma)
{
	struct endpoint *ep = rma->ep;
	const uint64_t token = token_new(ep, NULL);
	const int code = ep->layer->quiet(ep->peer[0].chan, 0, token);

	return endpoint_account(ep, code, token, "quiet") < 0 ? -1 : code == CADGE_DONE;
}

int rma_peek(const struct rma *rma, uint64_t offset_bytes, void *out, size_t bytes)
{
	struct iovec local = {.iov_base = out, .iov_len = bytes};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)(rma->peer_base + offset_bytes),
			       .iov_len = bytes};
	pid_t pid = rma->ep->r->pids[rma->ep->peer[0].rank];

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)bytes ? 0 : -1;
}
