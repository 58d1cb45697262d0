/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node, and what it does with requests, its clients' and those of other nodes: it answers from memory, reads,
 * forwards, and tells all others what it holds. Nothing here waits.
 */
#ifndef PRESS_SERVICE_H
#define PRESS_SERVICE_H

#include "launch/pattern.h"
#include "press/http/connection.h"
#include "press/directory.h"
#include "press/content/disk.h"
#include "press/links/links.h"
#include "press/links/writes.h"

/* requests that a node is at, its clients' and those of other nodes */
#define PRESS_TASKS_MAX 4096u

struct press_setting {
	enum press_workload workload;
	enum press_version version;
	uint64_t cache_bytes, working_bytes, service_ns;
	/* NULL: files of the workload */
	const struct drv_trace *trace;
	/* files are written to a disk, and read from there */
	bool real_disk;
	uint64_t seed;
};

/* A request that waits: for a disk, or for another node. */
struct press_task {
	/* in the list of those who wait for the same file, or of unused ones */
	struct press_task *next;
	/* NULL: of another node, or the client has gone away */
	struct press_connection *connection;
	/* of another node: which, where it wants the file, and what it called the request; endpoint 0 stands for none */
	uint32_t requester, landing_at;
	uint64_t tag;
	uint32_t file;
	/* grows when the slot is used again, so that a late answer is known as such */
	uint32_t serial;
	bool used;
	/* 0: served here; else the node that it was given to, and what has come of the file */
	uint32_t server;
	struct press_entry *landing;
	uint32_t landed_bytes;
	/* where that node is to write the file, in this one's region; NULL: nowhere */
	uint8_t *room;
};

struct press_node {
	/* first: the engine's sink is its first member */
	struct press_links links;
	struct press_loop loop;
	struct press_connections connections;
	/* of the layer, in block mode; and of the helpers */
	struct press_watch layer, helpers;
	struct press_files files;
	struct press_cache cache;
	/* of the region, for files that others write; and of registered memory, for the cache. Without memory: unused. */
	struct press_arena landings, pages;
	struct press_directory directory;
	struct press_storage storage;
	struct press_disk disk;
	struct press_task *tasks, *idle_tasks;
	/* places for files that a node which is gone may have written to a moment ago */
	struct press_retired *retired;
	bool disk_ended;
	uint64_t tidy_ns;
	/* called after each turn of the loop, when nobody is in the middle of anything; NULL: nobody asks */
	void (*turned)(struct press_node *node);
	/* for the audit: requests that came, and the sum of their files' numbers */
	uint64_t executed, executed_keys;
	bool failed;
	struct drv_fail fail;
};

/* 0, or -1 when memory is short; press_service_end is legal in either case. */
int press_service_start(struct press_node *node);
void press_service_end(struct press_node *node);

/* Of press_connections, press_cache and press_links; `arg` is the node. */
void press_service_request(void *arg, struct press_connection *connection);
void press_service_gone(void *arg, struct press_connection *connection);
void press_service_evicted(void *arg, uint32_t file);
void press_service_message(void *arg, uint32_t endpoint, const struct press_message *head,
			   const void *content, size_t bytes);

/* Answers all who waited for reads that have ended. */
void press_service_reads(struct press_node *node);
/* A read that nobody has taken, at the end. */
void press_service_drop(struct press_read *read);

/* Gives back what had to lie fallow for a while. */
void press_service_tidy(struct press_node *node);

/*
 * A node is gone, and with it what it held: what it was asked for is served here, what it asked for is answered no more. It
 * may come back: then it is told all that is held here.
 */
void press_service_lost(struct press_node *node, uint32_t endpoint);
/* By the address of its new life, see press_links_connect. 0, or -1 with the reason. */
int press_service_connect(struct press_node *node, uint32_t endpoint, uint64_t session, const void *address,
			  size_t bytes, struct drv_fail *fail);

#endif
