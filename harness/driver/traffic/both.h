/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Driver helper for patterns that exchange requests and replies, at place self: one process plays both sides on one
 * context. This sink tells each event whose it is.
 */
#ifndef DRV_BOTH_H
#define DRV_BOTH_H

#include "traffic/client.h"

struct drv_both {
	struct drv_port port;
	struct drv_server *server;
	struct drv_client *client;
	/* bare messages: requests and replies take turns */
	bool to_client;
};

/* Puts the sink in front of a server and a client, whose `sink` it becomes. */
void drv_both_start(struct drv_both *both, struct drv_engine *engine, struct drv_server *server,
		    struct drv_client *client);

#endif
