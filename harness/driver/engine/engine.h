/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One opened layer with its channels, and what every loop on it shares: the sink's base, the slow path of waiting,
 * buffers. Everything here belongs to one thread: where a role has several threads, each has an engine of its own.
 */
#ifndef DRV_ENGINE_H
#define DRV_ENGINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cadge/layer.h"
#include "measure/clock.h"
#include "measure/events.h"
#include "base/fail.h"
#include "launch/launch.h"
#include "engine/loader.h"
#include "launch/negotiate.h"
#include "oob/oob.h"
#include "launch/watchdog.h"
#include "engine/machine_probe.h"

#define DRV_LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define DRV_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
/* Loops are templates, whose parts are given as constant functions. At gcc's -O1, which sanitizers have, that inlines too late. */
#if defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
#define DRV_INLINE static inline
#else
#define DRV_INLINE static inline __attribute__((always_inline))
#endif

/* Memory for buffers: from the layer where it has some, else ours; page-aligned, touched, registered where
 * needed. */
struct drv_memory {
	uint8_t *base;
	size_t bytes;
	bool from_layer, registered;
};

/* Two at a time: what asks and what answers, where one process has both roles; and those of a second exchange (two_flows.h). */
enum drv_pool {
	DRV_POOL_REQUESTER,
	DRV_POOL_RESPONDER,
	DRV_POOL_REQUESTER_FLOW_1,
	DRV_POOL_RESPONDER_FLOW_1,
	DRV_POOLS,
};

struct drv_floor;
struct drv_floor_run;
struct drv_demux;
struct drv_threads;
struct drv_workers;

/* One channel, by its number (the `peer` of the contract). */
struct drv_channel {
	struct cadge_chan *chan;
	/* the endpoint at its other end, and the thread of that */
	int endpoint, thread;
	/* sink.up came */
	bool up;
	/* the region of its other end, where that exposes one and our role attaches; else NULL */
	struct cadge_remote *remote;
};

struct drv_engine;

/* How it is decided whether a message, or the arguments of a call, are for a port, where a context has two flows; see demux.h. */
enum drv_match {
	/* none is */
	DRV_MATCH_NONE,
	/* every second one: it has one request outstanding at a time, and its own requests come to the other flow */
	DRV_MATCH_ALTERNATE,
	/* those that end with the trailer of a reply */
	DRV_MATCH_TRAILER,
	/* those whose head has match_word in its second half */
	DRV_MATCH_HEAD,
	/* those of match_bytes; of these as `matches` says, unless that is NULL */
	DRV_MATCH_SIZE,
	/* as `matches` says */
	DRV_MATCH_FUNCTION,
};

struct drv_port;

/* The base of every sink of ours. */
struct drv_port {
	struct cadge_sink sink; /* first: callbacks get a pointer to it */
	struct drv_engine *engine;
	/* work may be left that could not be done inside a callback; true for whoever keeps no account of it */
	bool due;
	enum drv_match match;
	size_t match_bytes;
	uint64_t match_word;
	bool (*matches)(const struct drv_port *port, const void *data, size_t bytes);
};

struct drv_engine {
	const struct drv_launch *launch;
	struct drv_loaded loaded;
	/* what to call: loaded.layer, once open as drv_in_place gives it; NULL while a floor runs */
	const struct cadge_layer *layer;
	struct cadge_ctx *ctx;
	/* NULL while a layer runs */
	struct drv_floor_run *floor_run;
	/* NULL at place self */
	struct drv_oob *oob;
	struct drv_clock clock;
	/* of the process: the first thread's */
	struct drv_events events;
	/* what all ends can, and where */
	struct drv_offer offer;
	/* what the launch asks for; filled before drv_engine_open */
	struct drv_needs needs;
	int endpoint;
	/* of this endpoint: 0 is the one that has the out-of-band channel */
	uint32_t thread;
	/* the other threads; NULL where there are none, and in these */
	struct drv_threads *threads;
	/* its workers, for the length of an attempt; NULL: none */
	struct drv_workers *workers;
	/* sleeps until the layer or a worker has something (drv_workers_wait): instead of the layer's wait, where there are workers */
	int (*workers_wait)(struct drv_engine *engine, uint64_t timeout_ns, struct drv_fail *fail);
	/* the first of its workers, or of the other threads, that left its core, in words; empty: none */
	char left_core[160];
	bool block, self;
	/* by number; `channels_count` of them, `up_count` of which are up */
	struct drv_channel channels[DRV_PEERS_MAX];
	uint32_t channels_count, up_count;
	/* not 0: sink.down came, for this channel first */
	int down_code;
	uint32_t down_channel;
	/* operations were left unfinished: no further attempt makes sense */
	bool broken;
	/* buffers of the attempts, kept from one to the next */
	struct drv_memory pools[DRV_POOLS];
	/* the region of this end, for the length of the launch; base NULL without one */
	struct drv_memory region_memory;
	struct cadge_region *region;
	/* who gets events now */
	struct cadge_sink *sink;
	/* place self, for the length of an attempt of two roles; else NULL */
	struct drv_demux *demux;
	/* gets them between attempts */
	struct drv_port port;
	/* see drv_engine_idle */
	struct drv_idle idle;
	/* how often the loop of a role found nothing to do, and slept: calls of the layer's wait, or of its own loop's */
	uint64_t waits;
	/*
	 * Where several threads work: once *awaited_count has come to awaited_at, drv_engine_poll_oob gives JSON's null for a
	 * message; where it takes none, the first thread goes on and all others give up. NULL: none.
	 */
	const _Atomic unsigned *awaited_count;
	unsigned awaited_at;
	/* of the other threads: counts those that have come to drv_threads_arrive */
	_Atomic unsigned *reached;
	/* ticks between looks at the out-of-band channel while idle */
	uint64_t oob_period;
	/* next look, in ticks */
	uint64_t oob_next;
	/* of the step in progress: in ticks, and in CLOCK_MONOTONIC ns */
	uint64_t deadline, deadline_ns;
	/* CLOCK_MONOTONIC: no step may last longer */
	uint64_t launch_deadline_ns;
	/* multiplier for the idle sleep in block mode; above 1 when endpoints outnumber cores */
	uint64_t idle_sleep_scale;
	/* how long a thread sleeps for a reply that it is to be woken for; 0: 10 ms, by which a lost wake-up costs no more */
	uint64_t sleep_ns;
	/*
	 * Check the out-of-band channel every (mask + 1) busy polls. With two ends it
	 * hears nothing before the other has fallen silent; with more, one may get its order while others measure already.
	 */
	uint32_t oob_check_mask;
	/* of the first thread alone */
	struct drv_machine_probe probe;
};

/* Makes a port whose up and down note the channel's state and whose other callbacks count nothing, keep nothing and
 * match nothing. */
void drv_port_start(struct drv_port *port, struct drv_engine *engine);

/* Sets the deadline of a step that may last `span_ns`, held to the launch's, which it equals then. Returns it in
 * CLOCK_MONOTONIC ns. */
uint64_t drv_engine_allow(struct drv_engine *engine, uint64_t span_ns);

/* After how many operations a warm-up or measurement ends, whatever the time; UINT64_MAX: time ends it, as usual. */
static inline uint64_t drv_engine_operations(const struct drv_engine *engine)
{
	return engine->launch && engine->launch->operations ? engine->launch->operations : UINT64_MAX;
}

/* Instant (ticks) at which a measurement that begins `now` ends; UINT64_MAX where a number of operations ends it. */
static inline uint64_t drv_engine_end(const struct drv_engine *engine, uint64_t now, uint64_t duration_ns)
{
	return drv_engine_operations(engine) == UINT64_MAX
		       ? now + drv_clock_to_ticks(&engine->clock, duration_ns)
		       : UINT64_MAX;
}

/*
 * The slow path of a loop, to be called now and then while nothing happens: looks for a stop signal, a broken
 * channel, the step's deadline and, at most every oob_period, for a message. 1: *message_out holds one; 0: go
 * on; -1: give up. With a NULL message_out messages stay where they are and only the peer's death is noticed.
 */
int drv_engine_poll_oob(struct drv_engine *engine, uint64_t now, json_t **message_out, struct drv_fail *fail);

/* Turns a negative code of the layer into a reason. Returns -1. */
int drv_engine_fail(const char *what, int code, struct drv_fail *fail);

/*
 * The layer lost a peer. Whether the peer died or the layer is wrong is what the out-of-band channel knows
 * within two seconds: sets the reason accordingly and returns -1. The engine is broken then.
 */
int drv_engine_explain(struct drv_engine *engine, struct drv_fail *fail);

/*
 * For out-of-band waits: polls the layer, and in block mode sleeps in it for a moment when it found nothing. NULL where
 * there is nothing to poll: before a layer is open, and for floors.
 */
const struct drv_idle *drv_engine_idle(struct drv_engine *engine);

/* Sleeps in the layer's wait, or until a worker gave something; 0 or -1. Block mode only. */
DRV_INLINE int drv_engine_wait(struct drv_engine *engine, uint64_t timeout_ns, struct drv_fail *fail)
{
	int code;

	engine->waits++;
	if (DRV_UNLIKELY(engine->workers != NULL))
		return engine->workers_wait(engine, timeout_ns, fail);
	code = engine->layer->wait(engine->ctx, timeout_ns);
	return DRV_LIKELY(code >= 0) ? 0 : drv_engine_fail("wait", code, fail);
}

/*
 * Opens the layer for the whole launch, for as many peers as this endpoint has channels and for engine->needs. A code
 * of open becomes the reason, with the sentence that the layer gave.
 */
int drv_engine_open(struct drv_engine *engine, struct drv_fail *fail);

/* Exchanges addresses, connects all channels and waits until all of all endpoints are up. */
int drv_engine_connect(struct drv_engine *engine, uint64_t deadline_ns, struct drv_fail *fail);

/* Disconnects and closes. Legal at any stage. */
void drv_engine_close(struct drv_engine *engine);

/* Zeroed memory, also for 0 bytes, to be freed; `align`: a power of two. NULL: there is none. */
void *drv_zeroed(size_t align, size_t bytes);

int drv_memory_make(struct drv_engine *engine, size_t bytes, struct drv_memory *memory_out,
		    struct drv_fail *fail);
void drv_memory_free(struct drv_engine *engine, struct drv_memory *memory);

/*
 * At least `bytes` of a pool, for one attempt: the memory of the attempt before if it is large enough, so
 * that memory is touched and registered once. It holds what that attempt left. NULL with a reason when there
 * is none.
 */
uint8_t *drv_pool_take(struct drv_engine *engine, enum drv_pool pool, size_t bytes, struct drv_fail *fail);

/*
 * Exposes the region of this end (`exposes`) and attaches to those of its peers (`attaches`); all endpoints at once.
 * Nothing where the launch needs no region. Closing releases both.
 */
int drv_engine_regions(struct drv_engine *engine, uint64_t bytes, bool exposes, bool attaches,
		       uint64_t deadline_ns, struct drv_fail *fail);

/* Room of one buffer, so that the next one begins at a line, or at a page where it is large. */
static inline size_t drv_memory_stride(uint64_t bytes)
{
	const uint64_t unit = bytes >= 4096 ? 4096 : 64;

	return (size_t)(bytes ? (bytes + unit - 1) / unit * unit : unit);
}

#endif
