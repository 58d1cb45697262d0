/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arbitrary messages of other nodes for a node at work, over a layer that takes everything and loses it: requests of
 * theirs that it reads from its disk, files that it never asked for, credits, load, and what they say that they hold; some of
 * them written into its ring or onto its board. And requests of clients, so that some of the files are what it asked for.
 *
 * The input is a row of messages: who sends it, how many bytes of content follow, the head's fields in short, the content.
 */
#include <stdlib.h>
#include <string.h>

#include "press/node.h"

#define ENDPOINTS 4
#define ATTEMPT   1
#define HEAD      8

static struct cadge_chan *const nowhere = NULL;
static char elsewhere;
static uint64_t region[(PRESS_LANDING_AT + PRESS_LANDING_BYTES) / sizeof(uint64_t)];
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

static int take_put(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *remote,
		    uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	(void)chan, (void)local, (void)remote, (void)flags, (void)token;
	return offset_bytes + bytes <= sizeof(region) ? CADGE_DONE : CADGE_E_REFUSED;
}

static int take_quiet(struct cadge_chan *chan, uint32_t flags, uint64_t token)
{
	(void)chan, (void)flags, (void)token;
	return CADGE_DONE;
}

static int poll_nothing(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	(void)ctx, (void)sink;
	return 0;
}

static const struct cadge_layer layer = {
	.post = take_post, .put = take_put, .quiet = take_quiet, .poll = poll_nothing};

/* Engine 1 of four; the client is endpoint 0. */
static void start(void)
{
	const struct press_setting setting = {.workload = PRESS_CLARKNET,
					      .version = PRESS_V5,
					      .cache_bytes = 64 << 10,
					      .working_bytes = 256 << 10,
					      .seed = ATTEMPT};
	struct drv_fail fail;

	memset(&node, 0, sizeof(node));
	/* new but for its memory, which is touched once */
	engine.broken = false;
	/* rings and boards; what lies behind is written before it is read */
	memset(region, 0, PRESS_LANDING_AT);
	engine.offer.both.rma_bytes_max = PRESS_FILE_BYTES_MAX;
	engine.region_memory.base = (uint8_t *)region;
	engine.launch = &launch;
	engine.layer = &layer;
	engine.endpoint = 1;
	engine.channels_count = ENDPOINTS - 1;
	for (int i = 0, to = 0; to < ENDPOINTS; to++)
		if (to != 1)
			engine.channels[i++] = (struct drv_channel){
				.chan = nowhere,
				.endpoint = to,
				.up = true,
				.remote = to ? (struct cadge_remote *)(void *)&elsewhere : NULL};
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

/* As the other end would, or, now and then, only as far as that was seen so far. */
static void write_there(struct press_link *link, const struct press_message *head, const uint8_t *fields)
{
	uint8_t *at = (uint8_t *)region;
	struct press_board board = {.attempt = head->attempt, .taken = head->taken, .load = head->load};
	struct press_slot slot = {.head = *head, .number = link->ring_read};
	const bool whole = fields[5] & 7;

	if (fields[4] & 8) {
		press_board_seal(&board);
		memcpy(at + (size_t)link->endpoint * PRESS_BOARD_STRIDE, &board,
		       sizeof(board) - (whole ? 0 : 1));
	} else {
		at += PRESS_RINGS_AT +
		      (link->endpoint * PRESS_WINDOW + link->ring_read % PRESS_WINDOW) * sizeof(slot);
		press_slot_seal(&slot);
		memcpy(at, &slot, sizeof(slot) - (whole ? 0 : 1));
	}
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
		.taken = node.links.links[channel].taken_there + (fields[3] & 3),
		.landing = fields[6] & 2 ? PRESS_LANDING_AT + fields[5] * 40000u : PRESS_NOWHERE,
		.file = fields[0] & 128 ? file * 1000u : file,
		.tag = (uint64_t)(fields[4] & 7) << 32 | fields[5],
		.offset = fields[6] & 1 ? fields[6] * 100u : 0,
		.total = fields[7] & 1 ? fields[7] : total,
		.status = fields[7] & 2 ? fields[7] : 200,
	};
	uint8_t *message;

	if (fields[0] & 16 && node.links.links[channel].remote) {
		write_there(&node.links.links[channel], &head, fields);
		return;
	}
	message = malloc(sizeof(head) + bytes);

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
	return 0;
}
