/* SPDX-License-Identifier: BSD-3-Clause */
/* One sink in front of a client and a server of the same process. */
#include "traffic/both.h"

#include <string.h>

/* Compiled for servers that work before they answer, and for those that do not. */
DRV_INLINE enum cadge_keep hand_on(struct drv_both *both, uint32_t peer, const void *data, size_t bytes,
				   struct cadge_lend *lend, const bool serves)
{
	uint64_t id;
	bool to_client;

	if (both->client->exchange.form == DRV_FORM_BARE) {
		to_client = both->to_client;
		both->to_client = !to_client;
	} else {
		to_client = drv_trailer_read(data, bytes, DRV_RPC_REPLY, &id);
	}
	if (to_client)
		return both->client->port.sink.recv(&both->client->port.sink, peer, data, bytes, lend);
	return serves ? drv_server_on_recv_serving(&both->server->port.sink, peer, data, bytes, lend)
		      : drv_server_on_recv(&both->server->port.sink, peer, data, bytes, lend);
}

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	return hand_on((struct drv_both *)sink, peer, data, bytes, lend, false);
}

static enum cadge_keep on_recv_serving(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
				       struct cadge_lend *lend)
{
	return hand_on((struct drv_both *)sink, peer, data, bytes, lend, true);
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct drv_both *both = (struct drv_both *)sink;

	if (token & DRV_TOKEN_SERVER)
		drv_server_on_sent(&both->server->port.sink, peer, token, code);
	else
		both->client->port.sink.sent(&both->client->port.sink, peer, token, code);
}

static void on_call(struct cadge_sink *sink, uint32_t peer, uint32_t op, const void *args, size_t bytes,
		    const struct cadge_reply_to *reply_to)
{
	drv_server_on_call(&((struct drv_both *)sink)->server->port.sink, peer, op, args, bytes, reply_to);
}

static void on_call_serving(struct cadge_sink *sink, uint32_t peer, uint32_t op, const void *args,
			    size_t bytes, const struct cadge_reply_to *reply_to)
{
	drv_server_on_call_serving(&((struct drv_both *)sink)->server->port.sink, peer, op, args, bytes,
				   reply_to);
}

static enum cadge_keep on_replied(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code,
				  enum cadge_placement placement, const void *data, size_t bytes,
				  struct cadge_lend *lend)
{
	struct cadge_sink *client = &((struct drv_both *)sink)->client->port.sink;

	return client->replied(client, peer, token, code, placement, data, bytes, lend);
}

void drv_both_start(struct drv_both *both, struct drv_engine *engine, struct drv_server *server,
		    struct drv_client *client)
{
	memset(both, 0, sizeof(*both));
	drv_port_start(&both->port, engine);
	both->port.sink.recv = server->service ? on_recv_serving : on_recv;
	both->port.sink.sent = on_sent;
	both->port.sink.call = server->service ? on_call_serving : on_call;
	both->port.sink.replied = on_replied;
	both->server = server;
	both->client = client;
	client->sink = &both->port.sink;
}
