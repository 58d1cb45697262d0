/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided patterns. The target exposes a region once a launch; the origin works on it by put, get or
 * fetch_add.
 *
 * put: rounds of `depth` puts and a quiet. Each put gives two samples: hand-over to local completion, and
 * hand-over to the end of its round's quiet, when all of the round is visible to the target's CPU. get and
 * fetch_add: a closed loop at `depth`; one sample each, from hand-over to the result.
 *
 * Verification: gets fetch what the target wrote (heads in the loop, whole bodies before and after); puts are
 * read back by the target between the phases (the last round's heads; whole bodies before and after); the
 * values that fetch_add returned add up to what the target's counter says.
 */
#ifndef DRV_REMOTE_H
#define DRV_REMOTE_H

#include "client.h"

/* The target's side, for the length of a launch. */
struct drv_target_memory {
	struct drv_memory memory;
	struct cadge_region *region;
	uint8_t key[4096];
	size_t key_bytes;
};

/* Whether a launch needs a region at all, and of how many bytes. */
uint64_t drv_region_bytes(const struct drv_launch *launch, const struct drv_ability *both);

int drv_target_make(struct drv_engine *engine, uint64_t bytes, struct drv_target_memory *target_out,
		    struct drv_fail *fail);
void drv_target_free(struct drv_engine *engine, struct drv_target_memory *target);

/* Prepares the region for one attempt: what gets will find, or zeroes. */
void drv_target_prepare(const struct drv_target_memory *target, const struct drv_point *point, uint64_t seed,
			uint64_t phase);

/*
 * Looks into the region after a phase of puts: heads of the slots that were written last (`next_number` puts
 * so far), and whole bodies when `full`. Returns the number of slots that are wrong.
 */
uint64_t drv_target_inspect(const struct drv_target_memory *target, const struct drv_point *point,
			    uint64_t seed, uint64_t phase, bool full, uint64_t next_number);

/* The counter that fetch_add works on. */
uint64_t drv_target_counter(const struct drv_target_memory *target);

struct drv_remote_slot {
	uint8_t *local; /* payload; for fetch_add the word that was there before */
	uint64_t start, number;
	bool busy; /* the layer has the payload */
};

struct drv_remote {
	struct drv_port port;
	const struct drv_point *point;
	struct cadge_remote *handle;
	uint64_t seed, phase;
	enum drv_mode mode;
	bool ending, failed, quiet_due;
	uint32_t region_mask; /* slots in the peer's region, less one */
	size_t stride;
	uint8_t *memory; /* of the engine's pool */
	struct drv_remote_slot *slots;
	uint32_t *ready; /* ring of slots that may start: power of two */
	uint32_t ready_head, ready_tail, ready_mask, idle;
	uint64_t next_number, posted, completed, limit;
	uint64_t before_sum; /* of what fetch_add returned */
	uint64_t checked, full_checked, mismatches, waits;
	struct drv_attempt *attempt;
	struct drv_warmup warmup;
	uint64_t end, last;
	struct drv_fail fail;
	char mismatch[160];
};

int drv_remote_start(struct drv_remote *remote, struct drv_engine *engine, const struct drv_point *point,
		     uint64_t seed, struct cadge_remote *handle, struct drv_fail *fail);
void drv_remote_stop(struct drv_remote *remote);

int drv_remote_verify(struct drv_remote *remote, uint64_t phase, struct drv_fail *fail);
int drv_remote_warmup(struct drv_remote *remote, uint64_t cap_ns, struct drv_fail *fail);
int drv_remote_measure(struct drv_remote *remote, struct drv_attempt *attempt, struct drv_fail *fail);
bool drv_remote_settle(struct drv_remote *remote);

#endif
