/* SPDX-License-Identifier: BSD-3-Clause */
/* Many servers on one context: whose an event is, and who has work left. */
#include "servers/cluster.h"

#include <stdlib.h>
#include <string.h>

#include "traffic/progress.h"

/* A layer that made up a channel would have failed its conformance suite; memory is kept from it all the same. */
static struct drv_server *server_of(struct drv_cluster *cluster, uint32_t peer)
{
	return &cluster->servers[peer < cluster->count ? peer : 0];
}

/* Passes a request on. False: it is to be answered in place. */
static bool pass_on(struct drv_cluster *cluster, uint32_t channel, const void *request, size_t bytes,
		    const struct drv_work *work)
{
	struct drv_server *server = &cluster->servers[channel];

	if (!drv_handoff_wants(cluster->handoff))
		return false;
	if (drv_handoff_pass(cluster->handoff, server, channel, request, bytes, work))
		return true;
	if (cluster->handoff->jobs.policy == DRV_POLICY_SHARED)
		return false;
	/* where losses are known this one counts as lost */
	if (server->check.reliable)
		drv_check_wrong(&server->check, "more requests at a time than the client has outstanding");
	return true;
}

static bool pass_message(struct drv_cluster *cluster, uint32_t channel, const void *data, size_t bytes)
{
	const size_t request_bytes = (size_t)cluster->servers[channel].exchange.request_bytes;
	struct drv_work work = {.peer = channel};

	return bytes == request_bytes + DRV_RPC_TRAILER_BYTES &&
	       drv_trailer_read(data, bytes, DRV_RPC_REQUEST, &work.id) &&
	       pass_on(cluster, channel, data, request_bytes, &work);
}

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct drv_cluster *cluster = (struct drv_cluster *)sink;
	struct drv_server *server = server_of(cluster, peer);
	const uint32_t channel = (uint32_t)(server - cluster->servers);
	enum cadge_keep keep;

	if (cluster->handoff && pass_message(cluster, channel, data, bytes))
		return CADGE_TAKEN;
	keep = server->port.sink.recv(&server->port.sink, peer, data, bytes, lend);
	if (cluster->handoff)
		drv_handoff_answered(cluster->handoff, channel);
	cluster->due |= server->port.due;
	return keep;
}

static void on_call(struct cadge_sink *sink, uint32_t peer, uint32_t op, const void *args, size_t bytes,
		    const struct cadge_reply_to *reply_to)
{
	struct drv_cluster *cluster = (struct drv_cluster *)sink;
	struct drv_server *server = server_of(cluster, peer);
	const uint32_t channel = (uint32_t)(server - cluster->servers);
	const struct drv_work work = {.peer = channel, .reply_to = *reply_to};

	if (cluster->handoff && bytes == server->exchange.request_bytes &&
	    pass_on(cluster, channel, args, bytes, &work))
		return;
	server->port.sink.call(&server->port.sink, peer, op, args, bytes, reply_to);
	if (cluster->handoff)
		drv_handoff_answered(cluster->handoff, channel);
	cluster->due |= server->port.due;
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct drv_cluster *cluster = (struct drv_cluster *)sink;
	struct drv_server *server = server_of(cluster, peer);

	if (cluster->handoff && (token & DRV_TOKEN_HANDED_OFF) &&
	    drv_handoff_sent(cluster->handoff, token, code))
		return;
	drv_server_on_sent(&server->port.sink, peer, token, code);
	cluster->due |= server->port.due;
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

void drv_cluster_pass_on(struct drv_cluster *cluster, struct drv_handoff *handoff)
{
	cluster->handoff = handoff;
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
	const struct drv_cluster *cluster = arg;

	return cluster->due || (cluster->handoff && drv_handoff_due(cluster->handoff));
}

/* What servers could not answer at once. */
static int __attribute__((noinline)) drain_servers(struct drv_cluster *cluster, struct drv_fail *fail)
{
	cluster->due = false;
	for (uint32_t i = 0; i < cluster->count; i++) {
		struct drv_server *server = &cluster->servers[i];

		if (!server->port.due)
			continue;
		if (drv_server_drain(server, fail))
			return -1;
		cluster->due |= server->port.due;
	}
	return 0;
}

DRV_INLINE int drain(void *arg, struct drv_fail *fail)
{
	struct drv_cluster *cluster = arg;

	if (cluster->due && drain_servers(cluster, fail))
		return -1;
	if (!cluster->handoff || !drv_handoff_drain(cluster->handoff))
		return 0;
	*fail = cluster->handoff->fail;
	return -1;
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
		drv_check_executed(&cluster->servers[i].check, counts_out);
		drv_server_phase(&cluster->servers[i], phase->full, phase->serial);
	}
}
