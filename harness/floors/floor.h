/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Floors: the fastest bare exchange of the same bytes that this machine allows, measured and stored like a
 * layer but without one. A floor has no adapter, no contract and no header: two processes, and the barest
 * means there is.
 *
 * Endpoint 0 measures, endpoint 1 answers. Everything that is agreed travels on the driver's out-of-band
 * channel. A point is made of phases (verify, warm up, measure, verify); in each, endpoint 1 serves until it
 * is told to stop.
 */
#ifndef CADGE_FLOOR_H
#define CADGE_FLOOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cadge/layer.h"
#include "clock.h"
#include "fail.h"
#include "launch.h"
#include "oob.h"
#include "result.h"
#include "verify.h"
#include "warmup.h"

#define FLOOR_LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define FLOOR_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define FLOOR_INLINE              static inline __attribute__((always_inline))
#define FLOOR_NS_PER_MS           UINT64_C(1000000)
#define FLOOR_NS_PER_S            UINT64_C(1000000000)

struct floor_state; /* each floor's own */

enum floor_mode { FLOOR_VERIFY, FLOOR_WARMUP, FLOOR_MEASURE };

/* One launch. */
struct floor_run {
	const struct floor *floor;
	struct drv_launch launch;
	int endpoint;
	bool block;
	struct drv_oob *oob;
	struct drv_clock clock;
	struct floor_state *state;
	uint64_t bytes_max;     /* largest message; set by open, then the smaller of both sides' */
	struct cadge_path path; /* what is used; set by open and connect */
};

/* One phase of one point, on either side. Counts begin at zero with each phase, except `next_number`. */
struct floor_loop {
	struct floor_run *run;
	const struct drv_point *point;
	size_t bytes;
	uint64_t seed, next_number;
	enum floor_mode mode;
	uint64_t phase;    /* of the full comparison */
	uint64_t deadline; /* of the phase, in ticks */
	uint8_t *out, *in; /* private buffers of at least `bytes` + 64, aligned to a page */
	/* client */
	uint64_t limit;       /* verify: how many messages */
	uint64_t end;         /* measure: ticks */
	uint64_t op_deadline; /* unreliable: span in ticks after which an operation is lost */
	struct drv_warmup warmup;
	struct drv_attempt *attempt;
	uint64_t started, ended; /* ticks */
	uint64_t done, lost, late;
	/* server */
	uint64_t executions;
	bool stopped;
	/* both */
	uint64_t checked, full_checked, mismatches;
	char mismatch[160];
	struct drv_fail fail;
};

struct floor {
	const char *name, *substrate, *title;
	bool within, between, poll, block;
	bool stream; /* pattern stream as well as pingpong */
	bool lossy;  /* operations may be lost */
	uint64_t bytes_min;
	const char *bytes_min_reason;
	/* Makes what one side needs. Fills path and bytes_max. A refusal is a reason like any other. */
	int (*open)(struct floor_run *run, struct drv_fail *fail);
	/*
	 * Both sides at once: exchanges what is needed out of band; chooses the best variant, by measuring.
	 */
	int (*connect)(struct floor_run *run, struct drv_fail *fail);
	/* Endpoint 1 first, then endpoint 0: begins a point. */
	int (*begin)(struct floor_loop *loop, struct drv_fail *fail);
	/* Loops; they return when the phase ends. -1: loop->fail. */
	int (*client)(struct floor_loop *loop);
	int (*server)(struct floor_loop *loop);
	int (*stream_client)(struct floor_loop *loop);
	int (*stream_server)(struct floor_loop *loop);
	/* Legal at any stage. */
	void (*close)(struct floor_run *run);
};

extern const struct floor floor_cacheline, floor_copyflag, floor_futex, floor_tcp, floor_udp, floor_xdp;
extern const struct floor *const floors[];

/* run.c: a whole launch; the exit status. */
int floor_run_launch(const char *launch_path, int endpoint, const char *host_port, const char *token_path,
		     const char *out_path);

/*
 * try.c. Both sides at once: exchanges messages of `bytes` bytes for at most cap_ns. *median_ns_out on
 * endpoint 0: the median of a round trip, or UINT64_MAX when none was completed.
 */
int floor_try(struct floor_run *run, uint64_t bytes, uint64_t cap_ns, uint64_t *median_ns_out,
	      struct drv_fail *fail);

/* phase.c */
/* Cold path of a loop while nothing arrives: 1: told to stop (server); 0: go on; -1: loop->fail. */
int floor_look(struct floor_loop *loop);
void floor_mismatch(struct floor_loop *loop, const char *format, ...) __attribute__((format(printf, 2, 3)));
void floor_note_broke(struct floor_loop *loop, const char *what);
/* A system call failed, errno says how. Always -1. */
FLOOR_INLINE int floor_broke(struct floor_loop *loop, const char *what)
{
	floor_note_broke(loop, what);
	return -1;
}
/* One measuring or warm-up operation of the client ended; true when the phase is over. */
bool floor_warmup_done(struct floor_loop *loop, uint64_t now, uint64_t span);
/* Sends {"m": name, ...} or waits for it, within 5 s. */
int floor_exchange(struct floor_run *run, const char *name, json_t *mine, json_t **theirs_out,
		   struct drv_fail *fail);
void *floor_memory(size_t bytes); /* zeroed, touched, page-aligned; NULL */
void floor_memory_free(void *base, size_t bytes);

#endif
