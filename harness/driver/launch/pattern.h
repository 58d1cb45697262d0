/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a pattern is to the driver: a table of names, types and functions in harness/patterns/NAME/NAME.c, which is
 * found because it is there. NAME.pattern.yml beside it says the rest. Of that file the build makes NAME.params.h: the
 * struct of the parameters, words of choices, quantities, and what points need of a layer.
 *
 * The driver fills the struct from the launch file, checked against the limits of that file. Each
 * endpoint of a launch has one role. An attempt goes through the same steps for every pattern; endpoint 0
 * coordinates them:
 *
 *	prepare -> VERIFY -> phase -> WARMUP -> phase -> MEASURE -> phase -> VERIFY -> phase -> stop
 *
 * In launches that count system calls (see events.h) a step COUNT and a phase precede the warm-up: it is `warmup` as
 * well.
 *
 * A role that measures runs `verify`, `warmup` and `measure`; meanwhile every other endpoint is in `serve`. Between two
 * steps each endpoint is told to end one phase and to begin the next: `phase` fills in what it counted so far.
 * Where several endpoints act they start together; who is done first serves on until all are.
 *
 * At place self there is one endpoint, which has the pattern's first role that measures and its first other one at once, on
 * one context. Neither knows of the other: the driver hands each event to the role that it belongs to, and calls the other
 * role's `drain` after each poll (demux.h).
 *
 * Functions return 0, or -1 with the reason in *fail. Everything runs in the thread that owns the context.
 */
#ifndef DRV_PATTERN_H
#define DRV_PATTERN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadge/layer.h"
#include "measure/counters.h"
#include "base/fail.h"
#include "launch/launch.h"
#include "measure/record.h"
#include "measure/usage.h"

struct drv_engine;
struct drv_floor;
struct drv_needs;
struct drv_offer;

enum drv_parameter_type {
	/* uint64_t at the offset */
	DRV_INTEGER,
	/* uint32_t at the offset: index of the word */
	DRV_CHOICE,
};

struct drv_parameter {
	const char *name;
	enum drv_parameter_type type;
	/* in the pattern's parameter struct, bytes */
	size_t offset;
	/* choice: its words, ends with NULL; the order gives the index */
	const char *const *words;
	/* integer: its limits */
	int64_t least, most;
};

/* The steps of an attempt. */
enum drv_step { DRV_STEP_VERIFY, DRV_STEP_COUNT, DRV_STEP_WARMUP, DRV_STEP_MEASURE };

/* The end of one phase and the beginning of the next, as endpoint 0 tells it to all. */
struct drv_phase {
	/* which step ended */
	enum drv_step ended;
	/* the attempt is over, or given up: no further phase follows */
	bool last, cancelled;
	/* the phase that begins compares whole payloads */
	bool full;
	/* distinguishes the full comparisons: 1 before, 2 after the measurement */
	uint64_t serial;
	/* what endpoint 0's role wants the others to know, see drv_role.tell */
	uint64_t control;
};

/*
 * Instants of messages, added up: two sorts of them, which the role distinguishes. In ticks modulo 2^64, so that the
 * difference of two sums over as many messages is the time between both, whatever the clock began with.
 */
struct drv_stamps {
	uint64_t count[2], sum[2];
};

static inline void drv_stamp(struct drv_stamps *stamps, unsigned sort, uint64_t now)
{
	stamps->count[sort]++;
	stamps->sum[sort] += now;
}

/* What an endpoint counted since the attempt began, at the end of a phase. */
struct drv_counts {
	/* operations handed over here, and the sum of their keys (see payload.h); 0 where `posts` is false */
	bool posts;
	uint64_t posted, posted_keys;
	/* operations carried out here; `exact`: as many as were handed over, even over an unreliable layer */
	bool executes, exact;
	uint64_t executed, executed_keys;
	/* messages whose head, and whose whole body, was compared; and how many were wrong */
	uint64_t checked, full_checked, mismatches;
	/* roles that take the time of messages */
	struct drv_stamps stamps;
	/* the first mismatch in words, NUL-terminated */
	char mismatch[160];
	/* filled in by the driver: waits of the role's loop, since the launch began (engine->waits) */
	uint64_t waits;
	struct drv_usage usage;
	/* what the layer counted since it was opened */
	struct drv_counters layer;
};

/* What proves that an endpoint waited as asked. */
enum drv_sleep {
	/* block mode asks nothing of it: it may never have had to wait */
	DRV_SLEEP_FREE,
	/* in block mode each operation makes it wait once, so as a rule every one puts it to sleep (see judge.c) */
	DRV_SLEEP_EACH,
	/* the same, if its loop waited in at least every second operation */
	DRV_SLEEP_IF_WAITED,
	/* it does not wait at all: neither mode is judged */
	DRV_SLEEP_UNJUDGED,
};

#define DRV_WHEN_MAX 3

/* What points with some values need of a layer: all of these capabilities. */
struct drv_need {
	/* number of a parameter in the pattern's table, and the value (of a choice: the index of its word) */
	struct {
		uint32_t parameter;
		uint64_t value;
	} when[DRV_WHEN_MAX];
	uint32_t when_count;
	uint64_t caps;
	/* for people: such points, and the names of the capabilities */
	const char *wanted, *names;
};

struct drv_role;
struct drv_pattern;

/* One role in one attempt. */
struct drv_role_run {
	struct drv_engine *engine;
	const struct drv_pattern *pattern;
	const struct drv_role *role;
	/* the pattern's own parameter struct */
	const void *parameters;
	/* of this attempt, the same at every endpoint */
	uint64_t seed;
	/* of the measurement */
	uint64_t duration_ns;
	/* role->state_bytes, zeroed before `prepare`, aligned to a page */
	void *state;
	/* role->shared_bytes, zeroed and aligned likewise, of all threads of this endpoint; NULL without */
	void *shared;
	/* what is measured goes here */
	struct drv_record *record;
	/* set by `prepare` */
	enum drv_sleep sleep;
	/* this role serves, and what it serves is being measured; the driver's */
	bool serves_measurement;
	/* of the other threads of this endpoint; the driver's */
	struct drv_role_run *others;
	/* place self, of the role that measures: the other role of this process; else NULL */
	struct drv_role_run *responder;
};

struct drv_role {
	const char *name;
	/* it runs the measuring steps */
	bool measures;
	/* of one that measures: whether it does so in a point with these parameters, or serves there; NULL: always */
	bool (*measures_in)(const void *parameters);
	/* its endpoints expose a region (drv_needs.region_bytes) to their peers; it attaches to its peers' regions */
	bool exposes, attaches;
	/*
	 * It may be played by several threads of an endpoint at a time, each on a context of its own: all functions but
	 * `control` are then called in each of them, with a role run of its own; what they count and record is added up.
	 */
	bool threads;
	/* it may have worker threads, see workers.h; it starts and ends them itself */
	bool workers;
	/* how many channels a thread of this role has at most; 0: no bound. It has at least one. */
	uint32_t channels_most;
	size_t state_bytes;
	/* what the threads of an endpoint share in an attempt, beside a state of each */
	size_t shared_bytes;
	/* Gets ready for one attempt, and points engine->sink to the role's own sink. */
	int (*prepare)(struct drv_role_run *run, struct drv_fail *fail);
	/* Releases what `prepare` and the steps made, once for each `prepare`, whether it worked or not. NULL: nothing. */
	void (*stop)(struct drv_role_run *run);
	/*
	 * Acting roles: each runs until its end and until nothing of it is outstanding. `serial` as in drv_phase.
	 * `measure` fills the record.
	 */
	int (*verify)(struct drv_role_run *run, uint64_t serial, struct drv_fail *fail);
	int (*warmup)(struct drv_role_run *run, uint64_t cap_ns, struct drv_fail *fail);
	int (*measure)(struct drv_role_run *run, struct drv_fail *fail);
	/* Acting roles, after a failure: polls until the layer has given everything back; false: it has not. */
	bool (*settle)(struct drv_role_run *run);
	/*
	 * Works for others until a message comes from out of band: *message_out, a new reference. NULL: the layer is
	 * polled, nothing else. drv_engine_poll_oob finds the message.
	 */
	int (*serve)(struct drv_role_run *run, json_t **message_out, struct drv_fail *fail);
	/* What is due after each poll, of the state of a role beside one that measures; `serve` does it in a loop. NULL: nothing. */
	int (*drain)(void *state, struct drv_fail *fail);
	/* Ends a phase, fills in the counts since the attempt began (zeroed before), and begins the next phase. */
	void (*phase)(struct drv_role_run *run, const struct drv_phase *phase, struct drv_counts *counts_out);
	/*
	 * After the measurement, at endpoint 0: what follows from the stamps of all endpoints, by their number. Those of the
	 * measurement alone; they are of one clock where offer.both.clock is not 0. NULL: nothing.
	 */
	void (*conclude)(struct drv_role_run *run, const struct drv_stamps *stamps, size_t endpoints);
	/* A number for all others, sent with each phase. Such a role is endpoint 0's. NULL: 0. */
	uint64_t (*control)(const struct drv_role_run *run);
};

#define DRV_QUANTITIES_MAX DRV_RECORD_MAX
#define DRV_ROLES_MAX      8
#define DRV_PARAMETERS_MAX 16

struct drv_pattern {
	/* PATTERN_TABLE of NAME.params.h, which is made of NAME.pattern.yml, gives all up to needs_caps */
	const char *name;
	/* of what this program and whoever wrote a launch file have to agree on, hex */
	const char *digest;
	size_t parameters_bytes;
	/* these two end with a NULL name */
	const struct drv_parameter *parameters;
	const struct drv_quantity *quantities;
	/* ends with a NULL `wanted` */
	const struct drv_need *needs_caps;
	/* ends with a NULL name */
	const struct drv_role *roles;
	/* it can be played at place self */
	bool self;
	/* What the parameters ask of a layer before it is opened. *needs_out is zeroed before. */
	void (*needs)(const void *parameters, struct drv_needs *needs_out);
	/*
	 * Whether a point can be made between endpoints that can `both`: 0, or -1 with what was wanted and what there
	 * is. The depth was compared already. NULL: nothing but needs.message_bytes is asked.
	 */
	int (*negotiate)(const void *parameters, const struct drv_offer *offer, struct drv_fail *fail);
	/* forms of floors: whether a floor has this one; NULL for patterns */
	bool (*offered)(const struct drv_floor *floor);
};

/* Whether a role measures in a point with these parameters. */
static inline bool drv_role_measures(const struct drv_role *role, const void *parameters)
{
	return role->measures && (!role->measures_in || role->measures_in(parameters));
}

/* The role called `name`; NULL when the pattern has none. */
const struct drv_role *drv_role_find(const struct drv_pattern *pattern, const char *name);
/* Place self: the role that measures, and the one beside it, NULL where the pattern has no other. */
const struct drv_role *drv_role_requester(const struct drv_pattern *pattern);
const struct drv_role *drv_role_responder(const struct drv_pattern *pattern);
/* What they are called and can do together; its functions are those of the roles. */
struct drv_role drv_role_self(const struct drv_pattern *pattern);

/* Enters a table into the list of patterns, or of the forms of floors. One line at the end of the table's file. */
#define DRV_PATTERN(table)                                                                                   \
	static const struct drv_pattern *const table##_entry                                                 \
		__attribute__((section("cadge_patterns"), used)) = &(table)
#define DRV_FORM(table)                                                                                      \
	static const struct drv_pattern *const table##_entry __attribute__((section("cadge_forms"), used)) = \
		&(table)

#endif
