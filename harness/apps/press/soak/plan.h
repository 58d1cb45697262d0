/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The soak program of the cluster web server: nodes that are killed under load and come back. A launch of the driver ends
 * with its first dead endpoint; here a supervisor starts the nodes, each a process that has a real layer open and runs the
 * node of harness/apps/press, asks them for files over HTTP, compares every byte, kills one of them now and then, starts it
 * again, and has the others meet it anew.
 */
#ifndef PRESS_SOAK_PLAN_H
#define PRESS_SOAK_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "launch/launch.h"
#include "press/content/files.h"
#include "press/links/message.h"

/* the descriptor on which a node finds its supervisor */
#define SOAK_CONTROL_FD 3

struct soak_plan {
	const char *modules, *layer;
	enum drv_place place;
	/* the layer's; HTTP is always on the loopback */
	const char *device, *address;
	enum press_version version;
	/* 1 to `nodes`; the first one is never killed */
	uint32_t nodes, connections;
	uint64_t requests, kills, seed;
	uint64_t cache_bytes, working_bytes, service_ns;
	/* bad clients that are waited for longest come, too */
	bool patient;
	/* the layer's library is known to keep shared memory of processes that have died: told, not judged */
	bool keeps;
	/* 0: this is the supervisor; else the node's number */
	uint32_t number;
};

/* 0, or -1 with a sentence on stderr. */
int soak_plan_read(struct soak_plan *plan, int argc, char **argv);

/* The process of node plan->number. Its exit status: 0, asked to stop, with nothing left over. */
int soak_node(const struct soak_plan *plan);

#endif
