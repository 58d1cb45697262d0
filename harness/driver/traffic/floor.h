/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a floor is to the driver: a table in one file, harness/floors/NAME.c, which is found because it is there. A floor
 * is the fastest bare exchange of the same bytes that this machine allows: two processes, and the barest means there is;
 * no layer, no contract, no header. The session runs it where a layer would be: same phases, same waiting, same rule of
 * loss, same recording.
 *
 * Endpoint 0 measures, endpoint 1 answers. What is exchanged is a form, which is a pattern of its own: a table in
 * harness/floors as well, entered by DRV_FORM.
 */
#ifndef DRV_FLOOR_H
#define DRV_FLOOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cadge/layer.h"
#include "engine/engine.h"
#include "launch/pattern.h"
#include "traffic/payload.h"
#include "measure/warmup.h"

#define DRV_FLOOR_NS_PER_S UINT64_C(1000000000)

/* each floor's own */
struct floor_state;

/* One launch. */
struct drv_floor_run {
	const struct drv_floor *floor;
	struct drv_engine *engine;
	const struct drv_launch *launch;
	int endpoint;
	bool block;
	/* a copy of the engine's */
	struct drv_clock clock;
	struct floor_state *state;
	/* largest message; set by open */
	uint64_t bytes_max;
	/* private buffers lie on huge pages where the kernel gives some; set by open */
	bool huge_pages;
	/* what is used; set by open and connect */
	struct cadge_path path;
};

/* One attempt, on either side. */
struct drv_floor_loop {
	struct drv_floor_run *run;
	size_t bytes;
	/* 1 for an exchange */
	uint32_t depth;
	/* in one direction */
	bool flow;
	/* messages are written anew and read whole */
	bool touch;
	uint64_t seed, next_number;
	enum drv_step mode;
	/* this phase compares whole payloads, and its number */
	bool full;
	uint64_t phase;
	/* bodies are written and read: `touch`, or a full comparison */
	bool bodies;
	/* private buffers of at least `bytes` + 64, aligned to a page */
	uint8_t *out, *in;
	/* where the next message is made: `out`, or where a floor's begin would rather have it */
	uint8_t *made_at;

	/* client: verify: how many messages; measure: end in ticks; unreliable: when one is lost, in ticks */
	uint64_t limit, end, op_deadline;
	struct drv_warmup warmup;
	struct drv_samples *samples;
	/* of the step in progress, in ticks */
	uint64_t started, ended;
	/* of the step in progress */
	uint64_t done;
	/* since the attempt began */
	uint64_t posted, lost, late;

	/*
	 * server: the first number of this phase. A message before it was lost, and came late: its body is that of an earlier
	 * phase.
	 */
	uint64_t first_number;
	/* server: since the phase began, and since the attempt began */
	uint64_t phase_executions, executions;
	/* what endpoint 0 said; the loop ends then */
	json_t *message;

	/* both, since the attempt began */
	uint64_t checked, full_checked, mismatches;
	char mismatch[160];
	struct drv_fail fail;
};

/* One setting of a floor: a word, or a number. */
struct drv_floor_setting {
	const char *name;
	/* ends with NULL; the first is the default. NULL: a number from 0, the default, to `max` */
	const char *const *words;
	uint32_t max;
};

/* The loops of a form; they return when the step ends: 0, or -1 with loop->fail. NULL: the floor has not this form. */
struct drv_floor_pair {
	int (*client)(struct drv_floor_loop *loop);
	int (*server)(struct drv_floor_loop *loop);
};

struct drv_floor {
	const char *name, *substrate;
	bool within, between, poll, block;
	/* operations may be lost */
	bool lossy;
	uint64_t bytes_min;
	const char *bytes_min_reason;
	/* ends with a NULL name; may be NULL */
	const struct drv_floor_setting *settings;
	/* Makes what one side needs. Fills path and bytes_max. A refusal is a reason like any other. */
	int (*open)(struct drv_floor_run *run, struct drv_fail *fail);
	/* Both sides at once: exchanges what is needed out of band. */
	int (*connect)(struct drv_floor_run *run, struct drv_fail *fail);
	/* Endpoint 1 first, then endpoint 0: begins an attempt. */
	int (*begin)(struct drv_floor_loop *loop, struct drv_fail *fail);
	/* messages of the same size there and back, one at a time */
	struct drv_floor_pair exchange;
	/* messages in one direction, `depth` of them on their way */
	struct drv_floor_pair flow;
	/*
	 * On both sides, where an attempt was given up: nothing that it left under way may reach the next one, which
	 * begins as any other. False: the launch cannot go on. NULL: begin sees to it.
	 */
	bool (*settle)(struct drv_floor_loop *loop);
	/* Legal at any stage. */
	void (*close)(struct drv_floor_run *run);
};

#define DRV_FLOOR(table)                                                                                     \
	static const struct drv_floor *const table##_entry __attribute__((section("cadge_floors"), used)) =  \
		&(table)

/* What a point of a floor's launch asks for, whatever its form. */
struct drv_floor_point {
	bool flow;
	uint64_t bytes;
	uint32_t depth;
};
struct drv_floor_point drv_floor_point(const struct drv_launch *launch, size_t index);

/* The setting's value: index of the word, or the number. */
uint32_t drv_floor_choice(const struct drv_floor_run *run, const char *name);

/*
 * The body of message `number`, where loop->bodies asks for one, under the seed of its direction: written, or read and
 * compared (`what` it is, for people).
 */
void drv_floor_write(struct drv_floor_loop *loop, uint8_t *message, uint64_t seed, uint64_t number)
	__attribute__((noinline));
void drv_floor_read(struct drv_floor_loop *loop, const uint8_t *message, uint64_t seed, uint64_t number,
		    const char *what) __attribute__((noinline));

/*
 * Cold path of a loop while nothing arrives, or nothing leaves: 1: asked to stop (server), which ends the loop wherever it
 * is: in the midst of a message the other side has given up; 0: go on; -1: loop->fail.
 */
int drv_floor_poll_oob(struct drv_floor_loop *loop);
void drv_floor_mismatch(struct drv_floor_loop *loop, const char *format, ...)
	__attribute__((cold, noinline, format(printf, 2, 3)));
void drv_floor_note_broke(struct drv_floor_loop *loop, const char *what) __attribute__((cold, noinline));
/* A system call failed, errno says how. Always -1. */
DRV_INLINE int drv_floor_broke(struct drv_floor_loop *loop, const char *what)
{
	drv_floor_note_broke(loop, what);
	return -1;
}
/* Exchanges a named message with the other end, within 5 s. `mine` is taken over; theirs_out may be NULL. */
int drv_floor_swap(struct drv_floor_run *run, const char *name, json_t *mine, json_t **theirs_out,
		   struct drv_fail *fail);
#define DRV_HUGE_BYTES ((size_t)2 << 20)
/* Whole huge pages. */
DRV_INLINE size_t drv_floor_huge(size_t bytes)
{
	return (bytes + DRV_HUGE_BYTES - 1) / DRV_HUGE_BYTES * DRV_HUGE_BYTES;
}
/* zeroed, touched, aligned to a page; `huge`: to a huge page, of which it is made where the kernel gives some. NULL */
void *drv_floor_memory(size_t bytes, bool huge);
void drv_floor_memory_free(void *base, size_t bytes, bool huge);

/* What the two forms share: their role tables but for name and prepare, and what prepare does for both roles. */
int drv_form_prepare(struct drv_role_run *run, size_t bytes, uint32_t depth, bool flow, enum drv_touch touch,
		     struct drv_fail *fail);
int drv_form_negotiate(uint64_t bytes, bool offered, const char *form, const struct drv_offer *offer,
		       struct drv_fail *fail);
void drv_form_stop(struct drv_role_run *run);
int drv_form_verify(struct drv_role_run *run, uint64_t serial, struct drv_fail *fail);
int drv_form_warmup(struct drv_role_run *run, uint64_t cap_ns, struct drv_fail *fail);
int drv_form_measure(struct drv_role_run *run, struct drv_fail *fail);
bool drv_form_settle(struct drv_role_run *run);
uint64_t drv_form_control(const struct drv_role_run *run);
int drv_form_serve(struct drv_role_run *run, json_t **message_out, struct drv_fail *fail);
void drv_form_phase(struct drv_role_run *run, const struct drv_phase *phase, struct drv_counts *counts_out);

#define DRV_FORM_CLIENT                                                                                      \
	.name = "client", .measures = true, .state_bytes = sizeof(struct drv_floor_loop),                    \
	.stop = drv_form_stop, .verify = drv_form_verify, .warmup = drv_form_warmup,                         \
	.measure = drv_form_measure, .phase = drv_form_phase, .settle = drv_form_settle,                     \
	.control = drv_form_control
#define DRV_FORM_SERVER                                                                                      \
	.name = "server", .state_bytes = sizeof(struct drv_floor_loop), .stop = drv_form_stop,               \
	.serve = drv_form_serve, .phase = drv_form_phase, .settle = drv_form_settle

#endif
