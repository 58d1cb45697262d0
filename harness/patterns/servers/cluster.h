/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for patterns with many clients: the serving side of all channels of one context, by the thread that polls
 * it. A server for each channel (server.h), which answers in place, and one sink that tells each event whose it is.
 * Requests may be passed on to other threads instead (handoff.h).
 */
#ifndef DRV_CLUSTER_H
#define DRV_CLUSTER_H

#include "servers/handoff.h"
#include "launch/pattern.h"
#include "traffic/server.h"

struct drv_cluster {
	/* first: callbacks get a pointer to it */
	struct drv_port port;
	/* by channel */
	struct drv_server *servers;
	uint32_t count;
	/* some of them have work that could not be done inside a callback */
	bool due;
	/* NULL: all are answered in place */
	struct drv_handoff *handoff;
};

/* Makes a server for each channel of the engine, for one attempt. It is its sink from now on. */
int drv_cluster_start(struct drv_cluster *cluster, struct drv_engine *engine, struct drv_exchange exchange,
		      struct drv_fail *fail);
/* From now on each works before it answers. To be called right after drv_cluster_start; `service` stays the caller's. */
void drv_cluster_serve(struct drv_cluster *cluster, struct drv_service *service);
/* From now on requests are passed on where `handoff` wants them; it was started, and stays the caller's. */
void drv_cluster_pass_on(struct drv_cluster *cluster, struct drv_handoff *handoff);
/* Legal without a start, on zeroes. */
void drv_cluster_stop(struct drv_cluster *cluster);

/* Serves until a message comes from out of band: *message_out is a new reference. */
int drv_cluster_run(struct drv_cluster *cluster, json_t **message_out, struct drv_fail *fail);

/* Ends a phase and begins the next one: adds to the counts. */
void drv_cluster_phase(struct drv_cluster *cluster, const struct drv_phase *phase,
		       struct drv_counts *counts_out);

#endif
