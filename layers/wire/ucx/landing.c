/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/ucx/landing.h"

#include <stdlib.h>
#include <sys/mman.h>

#define PAGE_BYTES       ((size_t)4096)
#define POOL_BYTES_MAX   ((size_t)256 << 20)
#define POOL_BUFFERS_MIN ((size_t)2)

struct landing {
	struct cadge_ucx_landings *pool;
	void *user;
	uint32_t life;
};

struct offer {
	void *desc;
	void *user;
	size_t bytes;
	uint32_t life;
};

struct cadge_ucx_landings {
	ucp_worker_h worker;
	cadge_ucx_landed_fn landed;
	size_t bytes_max, buffer_bytes, pool_bytes;
	unsigned char *base;
	struct landing *landings;
	uint32_t *idle;
	struct offer *offers; /* a ring */
	uint32_t buffers, idle_count, offers_max, offers_first, offers_count;
	uint32_t fetching, fetching_max;
};

struct cadge_ucx_landings *cadge_ucx_landings_create(ucp_worker_h worker, size_t bytes_max,
						     uint32_t offers_max, uint32_t fetching_max,
						     cadge_ucx_landed_fn landed)
{
	struct cadge_ucx_landings *pool = calloc(1, sizeof(*pool));
	size_t most;
	void *base;

	if (!pool)
		return NULL;
	pool->worker = worker;
	pool->landed = landed;
	pool->bytes_max = bytes_max;
	pool->offers_max = offers_max;
	pool->fetching_max = fetching_max;
	pool->buffer_bytes = (bytes_max / PAGE_BYTES + 1) * PAGE_BYTES;
	most = POOL_BYTES_MAX / pool->buffer_bytes;
	most = most < POOL_BUFFERS_MIN ? POOL_BUFFERS_MIN : most;
	pool->buffers = most < offers_max ? (uint32_t)most : offers_max;
	pool->landings = calloc(pool->buffers, sizeof(*pool->landings));
	pool->idle = calloc(pool->buffers, sizeof(*pool->idle));
	pool->offers = calloc(offers_max, sizeof(*pool->offers));
	if (!pool->landings || !pool->idle || !pool->offers)
		goto fail;
	pool->pool_bytes = pool->buffer_bytes * pool->buffers;
	base = mmap(NULL, pool->pool_bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		goto fail;
	pool->base = base;
	while (pool->idle_count < pool->buffers) {
		pool->landings[pool->idle_count].pool = pool;
		pool->idle[pool->idle_count] = pool->buffers - 1 - pool->idle_count;
		pool->idle_count++;
	}
	return pool;
fail:
	cadge_ucx_landings_destroy(pool);
	return NULL;
}

void cadge_ucx_landings_destroy(struct cadge_ucx_landings *pool)
{
	if (!pool)
		return;
	if (pool->base)
		munmap(pool->base, pool->pool_bytes);
	free(pool->landings);
	free(pool->idle);
	free(pool->offers);
	free(pool);
}

static void *buffer_of(const struct landing *landing)
{
	return landing->pool->base +
	       (size_t)(landing - landing->pool->landings) * landing->pool->buffer_bytes;
}

bool cadge_ucx_landing_owns(const struct cadge_ucx_landings *pool, const void *data)
{
	return (uintptr_t)data - (uintptr_t)pool->base < pool->pool_bytes;
}

void cadge_ucx_landing_free(struct cadge_ucx_landings *pool, const void *data)
{
	pool->idle[pool->idle_count++] =
		(uint32_t)(((uintptr_t)data - (uintptr_t)pool->base) / pool->buffer_bytes);
}

static void deliver(struct landing *landing, size_t bytes, ucs_status_t status)
{
	struct cadge_ucx_landings *pool = landing->pool;
	void *data = buffer_of(landing);

	pool->fetching--;
	if (pool->landed(landing->user, landing->life, status == UCS_OK ? data : NULL, bytes, status) !=
	    CADGE_KEEP)
		cadge_ucx_landing_free(pool, data);
}

static void on_landed(void *request, ucs_status_t status, size_t bytes, void *arg)
{
	ucp_request_free(request);
	deliver(arg, bytes, status);
}

/* Fetches one offer: it may, and there is a free buffer. */
static void fetch(struct cadge_ucx_landings *pool, const struct offer *offer)
{
	struct landing *landing = &pool->landings[pool->idle[--pool->idle_count]];
	const ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
		.cb.recv_am = on_landed,
		.user_data = landing,
	};
	void *request;

	landing->user = offer->user;
	landing->life = offer->life;
	pool->fetching++;
	request = ucp_am_recv_data_nbx(pool->worker, offer->desc, buffer_of(landing), offer->bytes, &param);
	if (!UCS_PTR_IS_PTR(request))
		deliver(landing, offer->bytes, UCS_PTR_STATUS(request));
}

static bool may_fetch(const struct cadge_ucx_landings *pool)
{
	return pool->idle_count && pool->fetching < pool->fetching_max;
}

bool cadge_ucx_land(struct cadge_ucx_landings *pool, void *offer, size_t bytes, void *user, uint32_t life)
{
	const struct offer made = {.desc = offer, .user = user, .bytes = bytes, .life = life};

	if (bytes > pool->bytes_max || pool->offers_count == pool->offers_max)
		return false;
	if (may_fetch(pool) && !pool->offers_count)
		fetch(pool, &made);
	else
		pool->offers[(pool->offers_first + pool->offers_count++) % pool->offers_max] = made;
	return true;
}

bool cadge_ucx_landings_used(const struct cadge_ucx_landings *pool)
{
	return pool->idle_count < pool->buffers;
}

bool cadge_ucx_landings_waiting(const struct cadge_ucx_landings *pool)
{
	return pool->offers_count && may_fetch(pool);
}

void cadge_ucx_landings_resume(struct cadge_ucx_landings *pool)
{
	while (cadge_ucx_landings_waiting(pool)) {
		struct offer offer = pool->offers[pool->offers_first];

		pool->offers_first = (pool->offers_first + 1) % pool->offers_max;
		pool->offers_count--;
		fetch(pool, &offer);
	}
}
