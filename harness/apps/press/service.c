/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/service.h"

#include <stdlib.h>
#include <string.h>

static void __attribute__((cold)) lack_memory(struct press_node *node)
{
	if (!node->failed)
		drv_fail_set(&node->fail, DRV_MEMORY, "no memory for a request");
	node->failed = true;
}

/* ---- tasks ---- */

static struct press_task *new_task(struct press_node *node, uint32_t file)
{
	struct press_task *task = node->idle_tasks;

	if (!task)
		return NULL;
	node->idle_tasks = task->next;
	*task = (struct press_task){.file = file, .serial = task->serial + 1, .used = true};
	return task;
}

static void end_task(struct press_node *node, struct press_task *task)
{
	if (task->landing)
		press_entry_unpin(task->landing);
	task->landing = NULL;
	if (task->room)
		press_arena_give(&node->landings, task->room, node->files.bytes[task->file]);
	task->room = NULL;
	task->used = false;
	task->next = node->idle_tasks;
	node->idle_tasks = task;
}

static uint64_t tag_of(const struct press_node *node, const struct press_task *task)
{
	return (uint64_t)task->serial << 32 | (uint64_t)(task - node->tasks);
}

/* The task that a tag names; NULL: it has ended. */
static struct press_task *task_of(struct press_node *node, uint64_t tag)
{
	const uint32_t index = (uint32_t)tag;
	struct press_task *task = &node->tasks[index < PRESS_TASKS_MAX ? index : 0];

	return index < PRESS_TASKS_MAX && task->used && task->serial == tag >> 32 ? task : NULL;
}

/* How busy this node is, for itself and for all others. */
static void note_load(struct press_node *node, int change)
{
	node->links.load += (uint32_t)change;
	node->directory.load[node->directory.self] = node->links.load;
	if (node->links.load > node->links.counts[PRESS_OPEN_MOST])
		node->links.counts[PRESS_OPEN_MOST] = node->links.load;
}

/* The answer to whoever asked; `entry` is NULL where it is an error. */
static void answer(struct press_node *node, struct press_task *task, unsigned status,
		   struct press_entry *entry)
{
	const struct press_message refusal = {
		.type = PRESS_FILE, .tag = task->tag, .file = task->file, .status = status};

	if (task->connection) {
		note_load(node, -1);
		node->links.counts[PRESS_REQUESTS] += status == 200;
		press_connection_answer(task->connection, status, entry);
	} else if (task->requester) {
		note_load(node, -1);
		if (entry ? press_links_file(&node->links, task->requester, task->tag, task->landing_at,
					     entry)
			  : press_links_send(&node->links, task->requester, &refusal))
			lack_memory(node);
	}
	end_task(node, task);
}

/* ---- what this node holds ---- */

static void announce_file(struct press_node *node, uint32_t file, bool held)
{
	const struct press_message message = {.type = PRESS_CACHING, .file = file, .status = held};

	press_directory_note(&node->directory, file, node->directory.self, held);
	for (uint32_t i = 0; i < node->links.count; i++)
		if (node->links.links[i].endpoint &&
		    press_links_send(&node->links, node->links.links[i].endpoint, &message))
			lack_memory(node);
}

void press_service_evicted(void *arg, uint32_t file)
{
	struct press_node *node = arg;

	node->links.counts[PRESS_EVICTIONS]++;
	announce_file(node, file, false);
}

/* A read, and the entry that it fills. */
struct reading {
	struct press_read read;
	struct press_entry *entry;
};

/* Begins to read a file that is not here. NULL: the disks have too much to do, or memory is short. */
static struct press_entry *read_file(struct press_node *node, uint32_t file)
{
	struct press_entry *entry = press_cache_add(&node->cache, file, node->files.bytes[file]);
	struct reading *reading = entry ? malloc(sizeof(*reading)) : NULL;

	if (reading) {
		*reading = (struct reading){.read = {.file = file, .data = entry->data}, .entry = entry};
		if (press_disk_read(&node->disk, &reading->read)) {
			node->links.counts[PRESS_READS]++;
			return entry;
		}
	}
	free(reading);
	if (entry) {
		press_cache_drop(&node->cache, entry);
		press_entry_unpin(entry);
	}
	return NULL;
}

void press_service_reads(struct press_node *node)
{
	struct press_read *read;

	node->disk_ended = false;
	while ((read = press_disk_ended(&node->disk))) {
		struct press_entry *entry = ((struct reading *)read)->entry;
		struct press_task *task = entry->waiting, *next;

		entry->waiting = NULL;
		entry->whole = !read->failed;
		node->links.counts[PRESS_DISK_READS]++;
		node->links.counts[PRESS_DISK_NS] += read->took_ns;
		node->links.counts[PRESS_DISK_BUFFERED] += node->disk.storage && !node->disk.storage->direct;
		if (read->failed && entry->cached)
			press_cache_drop(&node->cache, entry);
		if (entry->cached)
			announce_file(node, entry->file, true);
		for (; task; task = next) {
			next = task->next;
			answer(node, task, read->failed ? 503 : 200, read->failed ? NULL : entry);
		}
		press_entry_unpin(entry);
		free(read);
	}
}

/* Serves from here: from memory, or from the disk. */
static void serve_here(struct press_node *node, struct press_task *task)
{
	struct press_entry *entry = press_cache_find(&node->cache, task->file);

	task->server = 0;
	if (entry && entry->whole) {
		node->links.counts[PRESS_LOCAL] += task->connection != NULL;
		answer(node, task, 200, entry);
		return;
	}
	node->links.counts[PRESS_MISSES]++;
	if (!entry)
		entry = read_file(node, task->file);
	if (!entry) {
		answer(node, task, 503, NULL);
		return;
	}
	task->next = entry->waiting;
	entry->waiting = task;
}

static void forward(struct press_node *node, struct press_task *task, uint32_t server)
{
	struct press_message message = {.type = PRESS_FORWARD,
					.file = task->file,
					.tag = tag_of(node, task),
					.landing = PRESS_NOWHERE};

	task->server = server;
	if (node->landings.base)
		task->room = press_arena_take(&node->landings, node->files.bytes[task->file]);
	if (task->room)
		message.landing = PRESS_LANDING_AT + (uint32_t)(task->room - node->landings.base);
	node->links.counts[PRESS_FORWARDED]++;
	/* known before it says so: requests in between go elsewhere */
	node->directory.load[server]++;
	if (press_links_send(&node->links, server, &message))
		lack_memory(node);
}

/* ---- clients ---- */

void press_service_request(void *arg, struct press_connection *connection)
{
	struct press_node *node = arg;
	const uint32_t file = press_target_file(connection->parser.request.target, node->files.count);
	struct press_task *task;
	uint32_t server;

	if (file == node->files.count) {
		press_connection_answer(connection, 404, NULL);
		return;
	}
	node->executed++;
	node->executed_keys += file;
	task = new_task(node, file);
	if (!task) {
		press_connection_answer(connection, 503, NULL);
		return;
	}
	task->connection = connection;
	connection->task = task;
	note_load(node, 1);
	/* what is on its way from our disk is waited for */
	server = node->cache.entries[file] ? node->directory.self
					   : press_directory_choose(&node->directory, file);
	if (server == node->directory.self)
		serve_here(node, task);
	else
		forward(node, task, server);
}

/* Its task goes on: a file that is read is read to its end. */
void press_service_gone(void *arg, struct press_connection *connection)
{
	struct press_task *task = connection->task;

	note_load(arg, -1);
	task->connection = NULL;
}

/* ---- other nodes ---- */

static void take_forward(struct press_node *node, uint32_t endpoint, const struct press_message *head)
{
	const struct press_message refusal = {
		.type = PRESS_FILE, .tag = head->tag, .file = head->file, .status = 503};
	struct press_task *task = new_task(node, head->file);

	if (!task) {
		if (press_links_send(&node->links, endpoint, &refusal))
			lack_memory(node);
		return;
	}
	task->requester = endpoint;
	task->tag = head->tag;
	/* a place that is not one is none: then the file goes in messages */
	task->landing_at = head->landing >= PRESS_LANDING_AT &&
					   (uint64_t)head->landing + node->files.bytes[head->file] <=
						   press_region_bytes(node->links.version)
				   ? head->landing
				   : PRESS_NOWHERE;
	note_load(node, 1);
	serve_here(node, task);
}

/* The file was written to where it was wanted. From V4 on the client is answered from there. */
static void take_written(struct press_node *node, struct press_task *task)
{
	const uint32_t bytes = node->files.bytes[task->file];
	const bool copies = node->links.version < PRESS_V4;

	task->landing = copies ? press_entry_new(task->file, bytes, NULL)
			       : press_entry_over(task->file, bytes, &node->landings, task->room);
	if (!task->landing) {
		answer(node, task, 503, NULL);
		return;
	}
	if (copies) {
		memcpy(task->landing->data, task->room, bytes);
		node->links.counts[PRESS_COPIED] += bytes;
	} else {
		task->room = NULL;
	}
	answer(node, task, 200, task->landing);
}

/*
 * A file, or a piece of one. A piece is copied to where the whole will be, from which the client is answered. Not every layer keeps
 * messages in order, so that pieces come in any.
 */
static void take_file(struct press_node *node, uint32_t endpoint, const struct press_message *head,
		      const void *content, size_t bytes)
{
	struct press_task *task = task_of(node, head->tag);

	/* what was not asked for, or not there */
	if (!task || task->file != head->file || task->server != endpoint)
		return;
	if (head->status != 200) {
		answer(node, task, 503, NULL);
		return;
	}
	if (head->total != node->files.bytes[task->file] || head->offset > head->total ||
	    bytes > head->total - head->offset || bytes > head->total - task->landed_bytes) {
		node->failed = true;
		drv_fail_set(&node->fail, DRV_PROTOCOL, "a piece of file %u does not fit into it",
			     task->file);
		return;
	}
	if (!bytes && task->room) {
		take_written(node, task);
		return;
	}
	if (!task->landing) {
		task->landing = press_entry_new(task->file, head->total, NULL);
		if (!task->landing) {
			answer(node, task, 503, NULL);
			return;
		}
	}
	memcpy(task->landing->data + head->offset, content, bytes);
	node->links.counts[PRESS_COPIED] += bytes;
	task->landed_bytes += (uint32_t)bytes;
	if (task->landed_bytes == head->total)
		answer(node, task, 200, task->landing);
}

/* The client asks where to find this node, and whether it has the same files; or what it has counted. */
static void answer_client(struct press_node *node, uint32_t endpoint, uint32_t question)
{
	const struct press_message hello = {.type = PRESS_HELLO,
					    .offset = node->connections.port,
					    .tag = press_files_digest(&node->files)};

	if (question == PRESS_HELLO ? press_links_send(&node->links, endpoint, &hello)
				    : press_links_stats(&node->links, endpoint))
		lack_memory(node);
}

void press_service_message(void *arg, uint32_t endpoint, const struct press_message *head,
			   const void *content, size_t bytes)
{
	struct press_node *node = arg;

	if (head->type == PRESS_HELLO || head->type == PRESS_STATS) {
		answer_client(node, endpoint, head->type);
		return;
	}
	node->directory.load[endpoint] = head->load;
	if (head->file >= node->files.count)
		return;
	if (head->type == PRESS_FORWARD)
		take_forward(node, endpoint, head);
	else if (head->type == PRESS_FILE)
		take_file(node, endpoint, head, content, bytes);
	else if (head->type == PRESS_CACHING)
		press_directory_note(&node->directory, head->file, endpoint, head->status);
}

/* ---- nodes that die and come back ---- */

/*
 * What a node had written when it died may still be on its way through the layer: the place that it was to write to is not
 * for the next file until the layer has been polled for so long.
 */
#define RETIRED_NS UINT64_C(250000000)

struct press_retired {
	struct press_retired *next;
	uint8_t *room;
	uint32_t bytes;
	uint64_t until_ns;
};

static void retire_room(struct press_node *node, struct press_task *task)
{
	struct press_retired *retired = malloc(sizeof(*retired));

	if (!retired) {
		lack_memory(node);
		return;
	}
	*retired = (struct press_retired){.next = node->retired,
					  .room = task->room,
					  .bytes = node->files.bytes[task->file],
					  .until_ns = drv_now_ns() + RETIRED_NS};
	node->retired = retired;
	task->room = NULL;
}

static void end_retired(struct press_node *node, uint64_t now_ns)
{
	struct press_retired **at = &node->retired;

	while (*at) {
		struct press_retired *retired = *at;

		if (now_ns < retired->until_ns) {
			at = &retired->next;
			continue;
		}
		*at = retired->next;
		press_arena_give(&node->landings, retired->room, retired->bytes);
		free(retired);
	}
}

void press_service_tidy(struct press_node *node)
{
	end_retired(node, drv_now_ns());
}

/* The first part of a file is with a node that is gone: all of it comes from here. */
static void serve_instead(struct press_node *node, struct press_task *task)
{
	if (task->landing)
		press_entry_unpin(task->landing);
	task->landing = NULL;
	task->landed_bytes = 0;
	if (task->room)
		retire_room(node, task);
	if (task->connection)
		serve_here(node, task);
	else
		end_task(node, task);
}

void press_service_lost(struct press_node *node, uint32_t endpoint)
{
	struct drv_fail fail;

	if (press_links_lose(&node->links, endpoint, &fail)) {
		if (!node->failed)
			node->fail = fail;
		node->failed = true;
	}
	/* before anything is served: an answer may bring a connection's next request, which is not to be sent there */
	press_directory_forget(&node->directory, endpoint);
	for (uint32_t i = 0; i < PRESS_TASKS_MAX; i++) {
		struct press_task *task = &node->tasks[i];

		if (task->used && task->requester == endpoint) {
			note_load(node, -1);
			task->requester = 0;
		} else if (task->used && task->server == endpoint) {
			serve_instead(node, task);
		}
	}
}

int press_service_connect(struct press_node *node, uint32_t endpoint, uint64_t session, const void *address,
			  size_t bytes, struct drv_fail *fail)
{
	if (press_links_connect(&node->links, endpoint, session, address, bytes, fail))
		return -1;
	for (const struct press_entry *entry = node->cache.oldest; entry; entry = entry->newer) {
		const struct press_message message = {
			.type = PRESS_CACHING, .file = entry->file, .status = 1};

		if (entry->whole && press_links_send(&node->links, endpoint, &message))
			return drv_fail_set(fail, DRV_MEMORY, "no memory for a message");
	}
	return 0;
}

/* ---- life ---- */

int press_service_start(struct press_node *node)
{
	node->tasks = calloc(PRESS_TASKS_MAX, sizeof(*node->tasks));
	if (!node->tasks)
		return -1;
	for (uint32_t i = PRESS_TASKS_MAX; i-- > 0;)
		end_task(node, &node->tasks[i]);
	return 0;
}

void press_service_drop(struct press_read *read)
{
	press_entry_unpin(((struct reading *)read)->entry);
	free(read);
}

void press_service_end(struct press_node *node)
{
	for (uint32_t i = 0; node->tasks && i < PRESS_TASKS_MAX; i++)
		if (node->tasks[i].landing)
			press_entry_unpin(node->tasks[i].landing);
	free(node->tasks);
	end_retired(node, UINT64_MAX);
	press_arena_end(&node->landings);
}
