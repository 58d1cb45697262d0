/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Landing buffers for active messages that come by rendezvous. UCX only offers such a message; the receiver
 * names the memory. The pool fetches each offer into a free buffer, at most fetching_max at a time; while none may
 * be fetched offers wait, in order, which holds their senders back. All memory is made at creation and touched
 * lazily, the last buffer freed is the first to be used again.
 */
#ifndef CADGE_WIRE_UCX_LANDING_H
#define CADGE_WIRE_UCX_LANDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucp/api/ucp.h>

#include "cadge/layer.h"

struct cadge_ucx_landings;

/*
 * A message has landed: `bytes` at `data` belong to the callee until it returns, or with KEEP until
 * cadge_ucx_landing_free. data is NULL and status an error where it was lost. `life` is what cadge_ucx_land
 * was given.
 */
typedef enum cadge_keep (*cadge_ucx_landed_fn)(void *user, uint32_t life, void *data, size_t bytes,
					       ucs_status_t status);

/*
 * Buffers for messages of at most `bytes_max`, for at most offers_max offers at a time. NULL: out of
 * memory.
 */
struct cadge_ucx_landings *cadge_ucx_landings_create(ucp_worker_h worker, size_t bytes_max,
						     uint32_t offers_max, uint32_t fetching_max,
						     cadge_ucx_landed_fn landed);
/* NULL is legal. The worker must be gone: it may still write to buffers. */
void cadge_ucx_landings_destroy(struct cadge_ucx_landings *pool);

/*
 * Inside a handler: takes an offer. true: `landed` will be called with `user`, perhaps at once, and the
 * handler has to return UCS_INPROGRESS. false: longer than bytes_max or too many offers; the handler refuses
 * it with UCS_OK.
 */
bool cadge_ucx_land(struct cadge_ucx_landings *pool, void *offer, size_t bytes, void *user, uint32_t life);
/* True where `data` is inside a landing buffer. */
bool cadge_ucx_landing_owns(const struct cadge_ucx_landings *pool, const void *data);
/* Gives a kept buffer back. */
void cadge_ucx_landing_free(struct cadge_ucx_landings *pool, const void *data);
/* True where a buffer is in use, by the library or by who kept it. */
bool cadge_ucx_landings_used(const struct cadge_ucx_landings *pool);
/* True where an offer waits and may be fetched: cadge_ucx_landings_resume then has work. */
bool cadge_ucx_landings_waiting(const struct cadge_ucx_landings *pool);
void cadge_ucx_landings_resume(struct cadge_ucx_landings *pool);

#endif
