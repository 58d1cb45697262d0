/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls with MORE: the client calls a table of ours, which gives the flag; everywhere else nothing is added. */
#include "servers/batch.h"

#include "traffic/client_parts.h"
#include "traffic/progress.h"

/* What the table of this thread stands on. Slots have no argument of ours. */
static _Thread_local const struct cadge_layer *below;

static int post_more(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		     uint64_t token)
{
	return below->post(chan, iov, count, flags | CADGE_MORE, token);
}

static int call_more(struct cadge_chan *chan, uint32_t op, const struct cadge_iov *in, uint32_t in_count,
		     const struct cadge_iov *out, uint32_t out_count, uint32_t flags, uint64_t token)
{
	return below->call(chan, op, in, in_count, out, out_count, flags | CADGE_MORE, token);
}

/* One batch, or as much of it as the layer takes; the rest waits for the next. Nothing stays behind unflushed. */
static int hand_over(struct drv_client *client, uint32_t batch, struct drv_fail *fail)
{
	uint32_t taken = 0;
	int code;

	while (taken < batch && drv_client_push(client))
		taken++;
	code = taken ? below->flush(client->slots[0].chan) : CADGE_DONE;
	return code < 0 ? drv_engine_fail("flush", code, fail) : 0;
}

static int loop(struct drv_client *client, uint32_t batch, struct drv_fail *fail)
{
	struct drv_engine *engine = client->port.engine;

	for (;;) {
		const uint64_t before = client->completed;
		int events, status;

		if (client->failed) {
			*fail = client->fail;
			return -1;
		}
		if (client->ending && drv_client_rests(client))
			return 0;
		if (!client->ending && client->ready_tail - client->ready_head >= batch &&
		    hand_over(client, batch, fail))
			return -1;
		events = engine->layer->poll(engine->ctx, client->sink);
		if (DRV_LIKELY(client->completed != before))
			continue;
		status = drv_progress_rest(engine, events, DRV_PROGRESS_WAIT_NS, &client->idle, fail);
		if (DRV_LIKELY(status == 0))
			continue;
		if (status < 0 || drv_client_look(client, fail))
			return -1;
	}
}

int drv_batch_measure(struct drv_client *client, uint32_t batch, uint64_t duration_ns,
		      struct drv_record *record, struct drv_fail *fail)
{
	struct drv_engine *engine = client->port.engine;
	const struct cadge_layer *layer = engine->layer;
	const struct drv_client_begun begun = drv_client_begin(client);
	struct cadge_layer table = *layer;
	int status;

	below = layer;
	table.post = post_more;
	table.call = call_more;
	engine->layer = &table;
	drv_client_open(client, drv_engine_end(engine, begun.started, duration_ns),
			drv_engine_operations(engine));
	status = loop(client, batch, fail);
	if (!status)
		status = drv_client_close(client, fail);
	engine->layer = layer;
	drv_client_total(client, &begun, 0, record);
	return status;
}
