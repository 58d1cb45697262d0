/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One attempt, seen from the client. The steps, each told to the server out of band, which answers with its
 * counts:
 *
 *	begin -> full comparison -> phase -> warm-up -> phase -> measurement -> phase -> full comparison
 *	-> finish
 *
 * At place self the server's part is called directly.
 */
#ifndef DRV_ATTEMPT_H
#define DRV_ATTEMPT_H

#include "engine.h"
#include "remote.h"
#include "result.h"
#include "server.h"

/* What the server knows at the end of a phase: totals since the attempt began, and its usage so far. */
struct drv_counts {
	uint64_t executions, key_sum;
	uint64_t checked, full_checked, mismatches;
	uint64_t counter; /* onesided: the word that fetch_add works on */
	char mismatch[160];
	struct drv_usage usage;
};

/* What a phase message asks of the server. */
struct drv_phase {
	bool full;      /* from now on compare whole payloads */
	uint64_t phase; /* serial of that comparison */
	int inspect;    /* onesided put: look at the region first; 1 heads, 2 whole bodies */
	uint64_t puts;  /* how many puts there were */
};

/* The serving role of one attempt: on endpoint 1, or beside the client at place self. */
struct drv_serving {
	struct drv_engine *engine;
	const struct drv_point *point;
	const struct drv_target_memory *target;
	uint64_t seed, phase;
	struct drv_server server;          /* not for onesided */
	uint64_t full_checked, mismatches; /* onesided */
};

int drv_serving_start(struct drv_serving *serving, struct drv_engine *engine, const struct drv_point *point,
		      size_t index, const struct drv_target_memory *target, struct drv_fail *fail);
void drv_serving_stop(struct drv_serving *serving);
/* Ends the phase in progress, reads the counts, enters the next phase. */
void drv_serving_phase(struct drv_serving *serving, const struct drv_phase *phase,
		       struct drv_counts *counts_out);

json_t *drv_counts_json(const struct drv_counts *counts);
int drv_counts_parse(const json_t *object, struct drv_counts *counts_out, struct drv_fail *fail);

/* The seed of attempt `index` of a launch. */
uint64_t drv_attempt_seed(const struct drv_launch *launch, size_t index);

/* The loop of endpoint 1: serves attempts until the client says that it is done. */
int drv_serve(struct drv_engine *engine, const struct drv_target_memory *target, uint64_t deadline_ns,
	      struct drv_fail *fail);

/*
 * Makes one attempt that was granted. The outcome is in `attempt` (status, reason, all counts). 0: the launch
 * can go on; -1: it cannot, and attempt->fail says why.
 */
int drv_attempt_run(struct drv_engine *engine, size_t index, const struct drv_target_memory *target,
		    struct cadge_remote *handle, struct drv_attempt *attempt, struct drv_phases *phases);

#endif
