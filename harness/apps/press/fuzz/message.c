/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arbitrary messages of other nodes for a node at work, over a layer that takes everything and loses it: requests of
 * theirs that it reads from its disk, files that it never asked for, credits, load, and what they say that they hold. And
 * requests of clients, so that some of the files are what it asked for.
 *
 * The input is a row of messages: who sends it, how many bytes of content follow, the head's fields in short, the content.
 */
#include <stdlib.h>
#include <string.h>

#include "press/service.h"

#define ENDPOINTS 4
#define ATTEMPT   1
#define HEAD      8

static struct cadge_chan *const nowhere = NULL;
static struct press_node node;
static struct drv_engine engine;
static struct drv_endpoint endpoints[ENDPOINTS];
static struct drv_launch launch = {.endpoints = endpoints, .endpoints_count = ENDPOINTS};

static int take_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		     uint64_t token)
{
	(void)chan, (void)iov, (void)count, (void)flags, (void)token;
	return CADGE_DONE;
}

static int poll_nothing(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	(void)ctx, (void)sink;
	return 0;
}

static const struct cadge_layer layer = {.post = take_post, .poll = poll_nothing};

/* Engine 1 of four; the client is endpoint 0. */
static void start(void)
{
	const struct press_setting setting = {.workload = PRESS_CLARKNET,
					      .cache_bytes = 64 << 10,
					      .working_bytes = 256 << 10,
					      .seed = ATTEMPT};
	struct drv_fail fail;

	memset(&node, 0, sizeof(node));
	memset(&engine, 0, sizeof(engine));
	engine.launch = &launch;
	engine.layer = &layer;
	engine.endpoint = 1;
	engine.channels_count = ENDPOINTS - 1;
	for (int i = 0, to = 0; to < ENDPOINTS; to++)
		if (to != 1)
			engine.channels[i++] =
				(struct drv_channel){.chan = nowhere, .endpoint = to, .up = true};
	if (press_node_start(&node, &engine, &setting, &fail))
		abort();
}

/* A client's request, without a client: its connection is gone at once. */
static void ask(uint32_t file)
{
	struct press_connection connection = {.state = PRESS_SERVING};

	connection.all = &node.connections;
	/* whatever is answered now goes to /dev/null */
	connection.busy = true;
	connection.parser.request.status = 200;
	snprintf(connection.parser.request.target, PRESS_TARGET_BYTES, "/f/%u", file % node.files.count);
	press_service_request(&node, &connection);
	if (connection.task)
		press_service_gone(&node, &connection);
	if (connection.entry)
		press_entry_unpin(connection.entry);
}

static void deliver(uint8_t who, const uint8_t *fields, const uint8_t *content, size_t bytes)
{
	const uint32_t channel = who % (ENDPOINTS - 1), file = fields[1] % node.files.count;
	const uint32_t total = node.files.bytes[file];
	/* what can be guessed is made right as often as not */
	const struct press_message head = {
		.attempt = ATTEMPT - (fields[0] & 64 ? 1 : 0),
		.type = fields[0] & 15,
		.load = fields[2],
		.credits = fields[3] & 3,
		.file = fields[0] & 128 ? file * 1000u : file,
		.tag = (uint64_t)(fields[4] & 7) << 32 | fields[5],
		.offset = fields[6] & 1 ? fields[6] * 100u : 0,
		.total = fields[7] & 1 ? fields[7] : total,
		.status = fields[7] & 2 ? fields[7] : 200,
	};
	uint8_t *message = malloc(sizeof(head) + bytes);

	memcpy(message, &head, sizeof(head));
	memcpy(message + sizeof(head), content, bytes);
	node.links.port.sink.recv(&node.links.port.sink, channel, message,
				  fields[0] & 32 ? bytes : sizeof(head) + bytes, NULL);
	free(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct drv_fail fail;

	start();
	while (bytes >= 2 + HEAD && !node.failed && !node.links.failed) {
		const uint8_t who = data[0];
		/* one in sixteen is long enough for a whole file */
		const size_t asked = (size_t)data[1] << (who & 15 ? 0 : 6), left = bytes - 2 - HEAD;
		const size_t length = asked < left ? asked : left;

		if (who >= 192)
			ask(data[1]);
		else
			deliver(who, data + 2, data + 2 + HEAD, length);
		if (press_links_turn(&node.links, &fail) < 0)
			break;
		press_service_reads(&node);
		data += 2 + HEAD + (who >= 192 ? 0 : length);
		bytes -= 2 + HEAD + (who >= 192 ? 0 : length);
	}
	press_node_end(&node);
	drv_memory_free(&engine, &engine.pools[DRV_POOL_CLIENT]);
	return 0;
}
