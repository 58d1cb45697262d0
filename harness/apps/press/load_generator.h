/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client: it asks the nodes for files over HTTP, in turn, as if a name server had sent each request to the next one,
 * over a number of connections to each that it keeps. Either as many requests as there are connections are always open (a
 * closed loop), or they are due at instants that are fixed beforehand (an open loop, see arrivals.h). Every answer is compared
 * with the file, byte by byte.
 */
#ifndef PRESS_LOAD_GENERATOR_H
#define PRESS_LOAD_GENERATOR_H

#include <llhttp.h>

#include "measure/arrivals.h"
#include "launch/pattern.h"
#include "press/directory.h"
#include "press/content/files.h"
#include "press/links/links.h"
#include "press/http/loop.h"
#include "press/content/popularity.h"

/* to all nodes together */
#define PRESS_CONNECTIONS_MAX 4096u

struct press_load_generator;

/* One connection. */
struct press_visit {
	/* first: the loop gets a pointer to it */
	struct press_watch watch;
	struct press_load_generator *generator;
	uint32_t node;
	/* of the request: in ticks; `due` as in arrivals.h */
	uint64_t due, sent;
	uint32_t file;
	/* of the answer */
	llhttp_t llhttp;
	uint32_t received_bytes;
	bool wrong, complete;
	/* among the idle ones of its node */
	struct press_visit *next;
};

/* A node, as the client sees it. */
struct press_site {
	uint32_t endpoint;
	/* it has answered the last question */
	bool reported;
	uint16_t port;
	uint64_t digest;
	struct press_visit *idle;
	/* what it said last */
	uint64_t counts[PRESS_COUNTS];
};

struct press_load_generator {
	/* first: the engine's sink is its first member */
	struct press_links links;
	struct press_loop loop;
	struct press_files files;
	struct press_popularity popularity;
	/* what is asked for in its order, instead; `next_request` of it. NULL: by popularity */
	const struct drv_trace *trace;
	uint64_t next_request;
	uint32_t sites_count, visits_count, next_site;
	struct press_site sites[PRESS_NODES_MAX];
	struct press_visit *visits;
	/* NULL: closed loop */
	struct drv_pace *pace;
	/* closed loop: where times go, or NULL */
	struct drv_samples *samples;
	struct drv_warmup *warmup;
	/* no further request is to be sent */
	bool ending, warm;
	/* requests: sent and not answered; answered since the beginning of a run */
	uint32_t outstanding;
	uint64_t answered, answered_bytes;
	/* for the audit */
	uint64_t posted, posted_keys, checked, mismatches;
	char mismatch[160];
	bool failed;
	struct drv_fail fail;
};

struct press_visitors {
	enum press_workload workload;
	uint64_t working_bytes, connections;
	double alpha;
	/* NULL: files of the workload, by their popularity */
	const struct drv_trace *trace;
	uint64_t seed, draws;
};

/* `visitors->connections` is of each node. 0, or -1 with the reason; press_load_generator_end is legal in either case. */
int press_load_generator_start(struct press_load_generator *generator, struct drv_engine *engine,
			       const struct press_visitors *visitors, struct drv_fail *fail);
void press_load_generator_end(struct press_load_generator *generator);

/* Waits until all nodes have said where they listen, and connects; once. */
int press_load_generator_connect(struct press_load_generator *generator, struct drv_fail *fail);

/* A closed loop of so many requests, at least one, or until `until` (ticks; UINT64_MAX: no matter how long). */
int press_load_generator_ask(struct press_load_generator *generator, uint64_t requests, uint64_t until,
			     struct drv_fail *fail);

/* The open loop; pace->arrivals are started. */
int press_load_generator_pace(struct press_load_generator *generator, struct drv_pace *pace, uint64_t span_ns,
			      struct drv_fail *fail);

/* What all nodes have counted so far, summed up. */
int press_load_generator_counts(struct press_load_generator *generator, uint64_t counts_out[PRESS_COUNTS],
				struct drv_fail *fail);

#endif
