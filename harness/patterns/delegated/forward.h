/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for patterns in which one server has another one do the work:
 * the role in between. It passes requests on to the server behind it, and,
 * where answers come back through it, those to the client.
 *
 * Over messages it passes on each message as it came, trailer included. What
 * the layer lends goes out from where it lies; else it is copied first, since
 * what is posted has to stay. Over the layer's own calls it delegates, or calls
 * anew and replies with the result.
 */
#ifndef DRV_FORWARD_H
#define DRV_FORWARD_H

#include "engine/engine.h"
#include "traffic/progress.h"
#include "traffic/responder.h"

/* How answers come to the client. */
enum drv_route {
	/* from the server straight to the client */
	DRV_ROUTE_DELEGATED,
	/* back through the role in between */
	DRV_ROUTE_RELAY,
	/* nobody stands in between: the client asks the server */
	DRV_ROUTE_DIRECT,
};

/* The numbers of the channels of the role in between. */
enum { DRV_FORWARD_CLIENT, DRV_FORWARD_SERVER };

/* Something to be passed on. */
struct drv_forward_request {
	/* of its own; `result` is for the result of a call that it makes itself */
	uint8_t *memory, *result;
	/* what goes out: in one of these, or lent */
	const void *data;
	size_t bytes;
	/* of the layer; NULL: nothing is lent */
	struct cadge_lend *lend;
	/* native: the client of the call */
	struct cadge_reply_to reply_to;
	/* to whom: DRV_FORWARD_CLIENT or DRV_FORWARD_SERVER */
	uint32_t to;
};

struct drv_forward {
	/* first: callbacks get a pointer to it */
	struct drv_progress progress;
	struct drv_exchange exchange;
	enum drv_route route;
	/* the layer takes what is sent from inside a callback */
	bool in_sink;
	struct drv_forward_request *requests;
	/* indices of requests that are free, and of those that wait for a busy layer,
   * in order; power of two */
	uint32_t *free_ring, *waiting_ring;
	uint32_t free_head, free_tail, waiting_head, waiting_tail, mask;
};

/* Makes buffers for one attempt. */
int drv_forward_start(struct drv_forward *forward, struct drv_engine *engine, struct drv_exchange exchange,
		      enum drv_route route, struct drv_fail *fail);
/* After the last phase: polls for a while until the layer has given back what
 * it was handed, and gives back what it lent. */
void drv_forward_settle(struct drv_forward *forward);
void drv_forward_stop(struct drv_forward *forward);

/* Passes on until a message comes from out of band: *message_out is a new
 * reference. */
int drv_forward_run(struct drv_forward *forward, json_t **message_out, struct drv_fail *fail);

struct drv_counts;

/* Adds what was wrong here to the counts of a phase: it executes nothing
 * itself. */
void drv_forward_counts(const struct drv_forward *forward, struct drv_counts *counts);

#endif
