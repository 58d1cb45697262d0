/* SPDX-License-Identifier: BSD-3-Clause */
/* A node whose peers die and come back, over a layer that takes what it is told to take. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "press/node.h"
#include "press/links/writes.h"
#include "tap.h"
#include "traffic/payload.h"

#define ATTEMPT     9u
#define SESSION     7u
#define POSTS_MAX   512u
#define DISK_MS     5000
#define TAKES(code) (layer_code = (code))

/* the node is number 1, on channel 0 is number 2, on channel 1 number 3 */
enum { OTHER = 2, THIRD = 3 };

static struct press_node node;
static struct drv_engine engine;
static struct drv_endpoint endpoints[4];
static struct drv_launch launch = {.endpoints = endpoints, .endpoints_count = 4};
/* what post answers, and what it took */
static int layer_code;
static struct {
	uintptr_t chan;
	uint64_t token;
	struct press_message head;
} posts[POSTS_MAX];
static unsigned posts_count, disconnects, connects, losses, puts_count, detaches;

static int take_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		     uint64_t token)
{
	(void)count, (void)flags;
	if (layer_code != CADGE_DONE && layer_code != CADGE_QUEUED)
		return layer_code;
	posts[posts_count].chan = (uintptr_t)chan;
	posts[posts_count].token = token;
	memcpy(&posts[posts_count++ % POSTS_MAX].head, iov->base, sizeof(posts[0].head));
	return layer_code;
}

static int poll_nothing(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	(void)ctx, (void)sink;
	return 0;
}

static int count_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	(void)ctx, (void)chan;
	disconnects++;
	return CADGE_DONE;
}

static int make_channel(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
			struct cadge_chan **chan_out)
{
	(void)ctx, (void)blob, (void)bytes;
	*chan_out = (struct cadge_chan *)(uintptr_t)(100 * ++connects + peer);
	return CADGE_DONE;
}

static int take_put(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *remote,
		    uint64_t offset_bytes, uint32_t flags, uint64_t token)
{
	(void)chan, (void)local, (void)bytes, (void)remote, (void)offset_bytes, (void)flags, (void)token;
	puts_count++;
	return CADGE_DONE;
}

static int be_quiet(struct cadge_chan *chan, uint32_t flags, uint64_t token)
{
	(void)chan, (void)flags, (void)token;
	return CADGE_DONE;
}

static int make_remote(struct cadge_chan *chan, const void *key, size_t key_bytes, uint32_t intent,
		       uint32_t flags, struct cadge_remote **remote_out)
{
	(void)key, (void)key_bytes, (void)intent, (void)flags;
	*remote_out = (struct cadge_remote *)chan;
	return CADGE_DONE;
}

static void count_detach(struct cadge_chan *chan, struct cadge_remote *remote)
{
	(void)chan, (void)remote;
	detaches++;
}

static const struct cadge_layer layer = {.post = take_post,
					 .poll = poll_nothing,
					 .disconnect = count_disconnect,
					 .connect = make_channel,
					 .put = take_put,
					 .quiet = be_quiet,
					 .attach = make_remote,
					 .detach = count_detach};

static void on_lost(void *arg, uint32_t endpoint)
{
	losses++;
	press_service_lost(arg, endpoint);
}

static void start_version(bool survives, enum press_version version)
{
	const struct press_setting setting = {.workload = PRESS_CLARKNET,
					      .version = version,
					      .cache_bytes = 1 << 20,
					      .working_bytes = 4 << 20,
					      .seed = ATTEMPT};
	struct drv_fail fail;

	memset(&node, 0, sizeof(node));
	memset(&engine, 0, sizeof(engine));
	engine.launch = &launch;
	engine.layer = &layer;
	engine.endpoint = 1;
	engine.channels_count = 2;
	for (uint32_t i = 0; i < 2; i++)
		engine.channels[i] = (struct drv_channel){.chan = (struct cadge_chan *)(uintptr_t)(i + 1),
							  .endpoint = OTHER + (int)i,
							  .up = true};
	engine.up_count = 2;
	if (version) {
		engine.region_memory.bytes = press_region_bytes(version);
		engine.region_memory.base = calloc(1, engine.region_memory.bytes);
		for (uint32_t i = 0; i < 2; i++)
			engine.channels[i].remote = (struct cadge_remote *)engine.channels[i].chan;
	}
	puts_count = detaches = 0;
	posts_count = disconnects = connects = losses = 0;
	TAKES(CADGE_DONE);
	if (press_node_start(&node, &engine, &setting, &fail))
		abort();
	if (survives)
		press_links_survive(&node.links, on_lost);
}

static void start(bool survives)
{
	start_version(survives, PRESS_V0);
}

static void end(void)
{
	press_node_end(&node);
	free(engine.region_memory.base);
	drv_memory_free(&engine, &engine.pools[DRV_POOL_REQUESTER]);
}

static int turn(void)
{
	struct drv_fail fail;

	return press_links_turn(&node.links, &fail);
}

static uint64_t attempt_of(uint64_t session)
{
	return session ? drv_mix(ATTEMPT, session) : ATTEMPT;
}

static void deliver(uint32_t channel, struct press_message head, const void *content, size_t bytes)
{
	uint8_t *message = malloc(sizeof(head) + bytes);

	memcpy(message, &head, sizeof(head));
	if (bytes)
		memcpy(message + sizeof(head), content, bytes);
	node.links.port.sink.recv(&node.links.port.sink, channel, message, sizeof(head) + bytes, NULL);
	free(message);
}

/* A client's connection, which is only looked at. */
static void ask(struct press_connection *connection, uint32_t file)
{
	*connection =
		(struct press_connection){.all = &node.connections, .state = PRESS_SERVING, .busy = true};
	connection->parser.request.status = 200;
	snprintf(connection->parser.request.target, PRESS_TARGET_BYTES, "/f/%u", file);
	press_service_request(&node, connection);
}

static bool is_answered(const struct press_connection *connection, uint32_t file)
{
	return connection->state == PRESS_ANSWERING && connection->entry &&
	       connection->entry->bytes == node.files.bytes[file] &&
	       press_files_hold(&node.files, file, 0, connection->entry->data, connection->entry->bytes);
}

/* Until all reads have ended. */
static void read_all(void)
{
	struct pollfd ended = {.fd = node.disk.event_fd, .events = POLLIN};

	for (uint32_t left = 1; left;) {
		if (poll(&ended, 1, DISK_MS) != 1)
			return;
		press_service_reads(&node);
		left = 0;
		for (const struct press_entry *entry = node.cache.oldest; entry; entry = entry->newer)
			left += !entry->whole;
	}
}

static unsigned tasks(void)
{
	unsigned used = 0;

	for (uint32_t i = 0; i < PRESS_TASKS_MAX; i++)
		used += node.tasks[i].used;
	return used;
}

static unsigned pins(void)
{
	unsigned count = 0;

	for (const struct press_entry *entry = node.cache.oldest; entry; entry = entry->newer)
		count += entry->pins;
	return count;
}

/* The first file that goes in two pieces or more. */
static uint32_t long_file(void)
{
	uint32_t file = 0;

	while (node.files.bytes[file] <= PRESS_PIECE_BYTES)
		file++;
	return file;
}

/* ---- the cases ---- */

static void check_forwarded(void)
{
	struct press_connection connection, after;
	static uint8_t wrong[PRESS_PIECE_BYTES];
	struct press_message piece;
	uint32_t file;

	start(true);
	file = long_file();
	press_directory_note(&node.directory, file, OTHER, true);
	press_directory_note(&node.directory, file + 1, THIRD, true);
	ask(&connection, file);
	turn();
	tap_ok(posts_count == 1 && posts[0].head.type == PRESS_FORWARD && posts[0].chan == 1,
	       "a request is forwarded to the node that holds the file");
	piece = (struct press_message){.attempt = ATTEMPT,
				       .type = PRESS_FILE,
				       .file = file,
				       .tag = posts[0].head.tag,
				       .total = node.files.bytes[file],
				       .status = 200};
	/* not what the file holds, so that it is known again */
	deliver(0, piece, wrong, sizeof(wrong));
	press_service_lost(&node, OTHER);
	tap_ok(disconnects == 1 && !node.directory.holders[file] && node.directory.holders[file + 1],
	       "the node dies with a part of the file sent: it holds nothing any more, others do");
	read_all();
	tap_ok(is_answered(&connection, file),
	       "the client gets the whole file from here, with nothing of that part in it");
	deliver(0, piece, wrong, sizeof(wrong));
	tap_ok(!node.failed && !node.links.failed, "the rest of it is not listened to");
	press_directory_note(&node.directory, file, OTHER, false);
	ask(&after, file);
	tap_ok(is_answered(&after, file) && posts_count <= 3, "the next one is answered from memory");
	press_entry_unpin(connection.entry);
	press_entry_unpin(after.entry);
	tap_ok(!tasks() && !pins() && !node.links.load, "and nothing is left over");
	end();
}

static void check_asked(void)
{
	const struct press_message forward = {
		.attempt = ATTEMPT, .type = PRESS_FORWARD, .file = 3, .tag = 77};
	unsigned before;

	start(true);
	deliver(0, forward, NULL, 0);
	tap_ok(tasks() == 1 && node.links.load == 1, "a node asks for a file, and dies");
	press_service_lost(&node, OTHER);
	read_all();
	turn();
	before = posts_count;
	tap_ok(!tasks() && !node.links.load && before == 1 && posts[0].head.type == PRESS_CACHING &&
		       posts[0].chan == 2,
	       "the file is read, others hear of it, and nobody is answered");
	deliver(1, forward, NULL, 0);
	turn();
	tap_ok(posts_count > before && posts[before].head.type == PRESS_FILE && posts[before].chan == 2,
	       "another node gets it");
	end();
}

static void check_queued(void)
{
	const struct press_message forward = {.attempt = ATTEMPT, .type = PRESS_FORWARD, .file = 3};

	start(true);
	deliver(0, forward, NULL, 0);
	read_all();
	deliver(0, forward, NULL, 0);
	TAKES(CADGE_QUEUED);
	turn();
	TAKES(CADGE_BUSY);
	deliver(0, forward, NULL, 0);
	turn();
	tap_ok(node.links.in_flight && pins(), "the layer has buffers for a node, and files wait for it");
	press_service_lost(&node, OTHER);
	tap_ok(node.links.in_flight == 1 && !pins() && !node.links.links[0].first,
	       "it dies: files are unpinned, and what the layer has for others is all that it has");
	node.links.port.sink.sent(&node.links.port.sink, 1, posts[posts_count - 1].token, CADGE_DONE);
	tap_ok(!node.links.in_flight && !node.links.failed, "that comes back as ever");
	end();
}

static void check_back(void)
{
	struct press_message caching = {.type = PRESS_CACHING, .file = 50, .status = 1};
	struct press_connection connections[12];
	struct drv_fail fail;
	unsigned told = 0, before;

	start(true);
	press_service_lost(&node, OTHER);
	for (uint32_t i = 0; i < 12; i++)
		ask(&connections[i], i);
	read_all();
	for (uint32_t i = 0; i < 12; i++)
		press_entry_unpin(connections[i].entry);
	turn();
	before = posts_count;
	tap_ok(before && posts[0].chan == 2 && !node.links.links[0].first,
	       "nothing is said to a node that is gone");
	tap_ok(!press_service_connect(&node, OTHER, SESSION, "there", 5, &fail) && connects == 1,
	       "it comes back, and is connected to anew");
	tap_ok(press_links_connect(&node.links, OTHER, SESSION + 1, "there", 5, &fail) < 0 && connects == 1,
	       "not twice, though");
	for (int i = 0; i < 3; i++) {
		turn();
		caching.attempt = attempt_of(SESSION);
		caching.taken = node.links.links[0].sent;
		deliver(0, caching, NULL, 0);
	}
	for (unsigned i = before; i < posts_count; i++)
		told += posts[i].chan == 100 && posts[i].head.type == PRESS_CACHING &&
			posts[i].head.attempt == attempt_of(SESSION) && posts[i].head.status == 1;
	tap_ok(told == 12, "it is told of each file that is held here: %u", told);
	tap_ok(node.directory.holders[50] >> OTHER & 1, "what it says is listened to");
	caching.attempt = ATTEMPT;
	caching.taken = 0;
	caching.file = 51;
	deliver(0, caching, NULL, 0);
	caching.attempt = attempt_of(SESSION - 1);
	deliver(0, caching, NULL, 0);
	tap_ok(!node.directory.holders[51] && !node.links.failed, "what it said in a former life is not");
	end();
}

static void check_reports(void)
{
	struct press_message caching = {.attempt = ATTEMPT, .type = PRESS_CACHING, .file = 5, .status = 1};
	struct press_connection connection;

	start(true);
	node.links.port.sink.down(&node.links.port.sink, 0, CADGE_E_DOWN);
	deliver(1, caching, NULL, 0);
	tap_ok(!turn() && !turn() && losses == 1 && disconnects == 1 && engine.up_count == 1,
	       "a layer that says that a node is down is heard once");
	TAKES(CADGE_E_DOWN);
	ask(&connection, 5);
	tap_ok(!turn() && !turn() && losses == 2, "one that refuses a message as well");
	read_all();
	tap_ok(is_answered(&connection, 5), "and the request that was in it is served from here");
	press_entry_unpin(connection.entry);
	tap_ok(!tasks() && !node.links.load && !pins() && !engine.down_code, "nothing is left over");
	end();

	start(false);
	deliver(0, caching, NULL, 0);
	TAKES(CADGE_E_DOWN);
	ask(&connection, 5);
	tap_ok(turn() < 0 && !losses, "in a launch it is an error");
	press_service_gone(&node, &connection);
	node.links.port.sink.down(&node.links.port.sink, 0, CADGE_E_DOWN);
	tap_ok(engine.down_code, "and so is a node that is down");
	end();
}

/* What the node that died had begun to write may come yet: it must not come into another file. */
static void check_landing(void)
{
	const struct timespec while_ns = {.tv_nsec = 300000000};
	struct press_connection first, second, third;
	const uint8_t *rooms[3] = {NULL};
	struct drv_fail fail;

	start_version(true, PRESS_V3);
	press_directory_note(&node.directory, 5, OTHER, true);
	press_directory_note(&node.directory, 6, THIRD, true);
	press_directory_note(&node.directory, 7, THIRD, true);
	ask(&first, 5);
	rooms[0] = ((struct press_task *)first.task)->room;
	turn();
	press_service_lost(&node, OTHER);
	tap_ok(rooms[0] && detaches == 1 && puts_count, "a node dies that was to write a file here");
	read_all();
	press_entry_unpin(first.entry);
	/* as if it were the only one left */
	node.landings.next = 0;
	ask(&second, 6);
	rooms[1] = ((struct press_task *)second.task)->room;
	tap_ok(rooms[1] && (rooms[1] >= rooms[0] + node.files.bytes[5] ||
			    rooms[1] + node.files.bytes[6] <= rooms[0]),
	       "another file is not to come to where that one was");
	nanosleep(&while_ns, NULL);
	press_service_tidy(&node);
	node.landings.next = 0;
	ask(&third, 7);
	rooms[2] = ((struct press_task *)third.task)->room;
	tap_ok(rooms[2] == rooms[0], "a while later it may");
	turn();
	press_service_gone(&node, &second);
	press_service_gone(&node, &third);
	puts_count = posts_count = 0;
	press_service_connect(&node, OTHER, SESSION, "there", 5, &fail);
	turn();
	tap_ok(!puts_count && !posts_count,
	       "to a node that is back nothing goes before its region is attached");
	tap_ok(!press_links_attach(&node.links, OTHER, "key", 3, &fail) && !turn() && puts_count == 1,
	       "and then it is written what is held here");
	end();
}

int main(void)
{
	check_forwarded();
	check_asked();
	check_queued();
	check_back();
	check_reports();
	check_landing();
	return tap_done();
}
