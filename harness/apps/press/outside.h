/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The outside base: in the place of a node stands an nginx of its own, which forwards to those of the other nodes over
 * HTTP. The endpoint itself starts it, says where it listens and what it has counted, and sleeps; what nginx uses counts as
 * the endpoint's own. The layer carries nothing but these words.
 */
#ifndef PRESS_OUTSIDE_H
#define PRESS_OUTSIDE_H

#include "launch/pattern.h"
#include "press/directory.h"
#include "press/links/links.h"
#include "press/nginx/nginx.h"

/* Another node, or this one. */
struct press_owner {
	uint32_t endpoint;
	/* 0: it has not said yet */
	uint16_t port;
	char name[PRESS_NGINX_NAME_BYTES];
};

struct press_outside {
	/* first: the engine's sink is its first member */
	struct press_links links;
	struct press_files files;
	struct press_nginx nginx;
	uint32_t connections;
	/* nodes, by the numbers of their endpoints; of them this one */
	uint32_t owners_count, self;
	struct press_owner owners[PRESS_NODES_MAX];
	/* the client has asked where we are, or what was counted, and has no answer yet */
	bool asks_where, asks_counts, announced;
	bool failed;
	struct drv_fail fail;
};

struct press_outside_setting {
	enum press_workload workload;
	uint64_t working_bytes, connections;
	/* NULL: files of the workload */
	const struct drv_trace *trace;
	uint64_t seed;
};

/* 0, or -1 with the reason; press_outside_end is legal in either case. */
int press_outside_start(struct press_outside *outside, struct drv_engine *engine,
			const struct press_outside_setting *setting, struct drv_fail *fail);
void press_outside_end(struct press_outside *outside);

/* Works until a message comes from out of band. As drv_role.serve. */
int press_outside_serve(struct press_outside *outside, json_t **message_out, struct drv_fail *fail);

#endif
