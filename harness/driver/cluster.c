/* SPDX-License-Identifier: BSD-3-Clause */
/* Many servers on one context: whose an event is, and who has work left. */
#include "cluster.h"

#include <stdlib.h>
#include <string.h>

#include "serve_loop.h"

static bool has_work(const struct drv_server *server)
{
	return server->work_head != server->work_tail || server->failed;
}

/* A layer that made up a channel would have failed its conformance suite; memory is kept from it all the same. */
static struct drv_server *server_of(struct drv_cluster *cluster, uint32_t peer)
{
	return &cluster->servers[peer < cluster->count ? peer : 0];
}

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct drv_cluster *cluster = (struct drv_cluster *)sink;
	struct drv_server *server = server_of(cluster, peer);
	const enum cadge_keep keep = server->port.sink.recv(&server->port.sink, peer, data, bytes, lend);

	cluster->due |= has_work(server);
	return keep;
}

static void on_call(struct cadge_sink *sink, uint32_t peer, uint32_t op, const void *args, size_t bytes,
		    const struct cadge_reply_to *reply_to)
{
	struct drv_cluster *cluster = (struct drv_cluster *)sink;
	struct drv_server *server = server_of(cluster, peer);

	server->port.sink.call(&server->port.sink, peer, op, args, bytes, reply_to);
	cluster->due |= has_work(server);
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct drv_cluster *cluster = (struct drv_cluster *)sink;
	struct drv_server *server = server_of(cluster, peer);

	drv_server_on_sent(&server->port.sink, peer, token, code);
	cluster->due |= has_work(server);
}

int drv_cluster_start(struct drv_cluster *cluster, struct drv_engine *engine, struct drv_exchange exchange,
		      struct drv_fail *fail)
{
	const size_t bytes = drv_server_bytes(&exchange);
	uint8_t *replies;

	memset(cluster, 0, sizeof(*cluster));
	drv_port_start(&cluster->port, engine);
	cluster->port.sink.recv = on_recv;
	cluster->port.sink.call = on_call;
	cluster->port.sink.sent = on_sent;
	cluster->servers = calloc(engine->channels_count, sizeof(*cluster->servers));
	if (!cluster->servers)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for a server of %u channels",
				    engine->channels_count);
	replies = drv_pool_take(engine, DRV_POOL_SERVER, engine->channels_count * bytes, fail);
	if (!replies)
		return -1;
	for (; cluster->count < engine->channels_count; cluster->count++) {
		struct drv_server *server = &cluster->servers[cluster->count];

		if (drv_server_start_on(server, engine, cluster->count, replies + cluster->count * bytes,
					exchange, fail))
			return -1;
		drv_server_phase(server, true, 1);
	}
	engine->sink = &cluster->port.sink;
	return 0;
}

void drv_cluster_serve(struct drv_cluster *cluster, struct drv_service *service)
{
	for (uint32_t i = 0; i < cluster->count; i++)
		drv_server_serve(&cluster->servers[i], service);
}

void drv_cluster_stop(struct drv_cluster *cluster)
{
	for (uint32_t i = 0; i < cluster->count; i++)
		drv_server_stop(&cluster->servers[i]);
	free(cluster->servers);
	memset(cluster, 0, sizeof(*cluster));
}

DRV_INLINE bool due(void *arg)
{
	return ((const struct drv_cluster *)arg)->due;
}

static int __attribute__((noinline)) drain(void *arg, struct drv_fail *fail)
{
	struct drv_cluster *cluster = arg;

	cluster->due = false;
	for (uint32_t i = 0; i < cluster->count; i++) {
		struct drv_server *server = &cluster->servers[i];

		if (!has_work(server))
			continue;
		if (server->service ? drv_server_drain_serving(server) : drv_server_drain(server)) {
			*fail = server->fail;
			return -1;
		}
		cluster->due |= has_work(server);
	}
	return 0;
}

int drv_cluster_run(struct drv_cluster *cluster, json_t **message_out, struct drv_fail *fail)
{
	return drv_serve_loop(cluster->port.engine, &cluster->port.sink, cluster, due, drain, message_out,
			      fail);
}

void drv_cluster_phase(struct drv_cluster *cluster, const struct drv_phase *phase,
		       struct drv_counts *counts_out)
{
	for (uint32_t i = 0; i < cluster->count; i++) {
		drv_intake_counts(&cluster->servers[i].intake, counts_out);
		drv_server_phase(&cluster->servers[i], phase->full, phase->serial);
	}
}
