/* SPDX-License-Identifier: BSD-3-Clause */
/* Place self: one process plays both roles on one context. This sink tells each event whose it is. */
#ifndef DRV_BOTH_H
#define DRV_BOTH_H

#include "client.h"
#include "stream.h"

struct drv_both {
	struct drv_port port;
	struct drv_server *server;
	struct drv_client *client; /* pingpong, rpc */
	struct drv_stream *stream; /* stream */
	bool to_client;            /* bare messages: requests and replies take turns */
};

/* Puts the sink in front of a server and a client or a stream, whose `sink` it becomes. */
void drv_both_start(struct drv_both *both, struct drv_engine *engine, struct drv_server *server,
		    struct drv_client *client, struct drv_stream *stream);

#endif
