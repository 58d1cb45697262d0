/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors and memory of all processes, now and then and whenever all is quiet; and whether they are flat. */
#ifndef PRESS_SOAK_USAGE_H
#define PRESS_SOAK_USAGE_H

#include <jansson.h>

#include "press/soak/restart_test.h"

/*
 * One process. Its own memory; and what is mapped of memory that it shares with others, as layers within a host do. A node's
 * heap is what its malloc has given out, without the files in its cache; 0 where it does not say. */
struct soak_process {
	uint64_t descriptors, own_kib, shared_kib, heap_bytes;
};

/* When all was quiet: the supervisor, and the first node, which lives from the beginning to the end. */
struct soak_quiet {
	char when[16];
	struct soak_process supervisor, first;
};

#define SOAK_QUIETS_MAX 16u

struct soak_usage {
	uint32_t count, skipped, skip;
	struct soak_quiet quiets[SOAK_QUIETS_MAX];
	json_t *settled, *samples;
};

int soak_usage_start(struct soak_usage *usage);
void soak_usage_end(struct soak_usage *usage);
void soak_usage_sample(struct soak_usage *usage, const struct soak_restart_test *restart_test,
		       uint64_t requests);
/* With fresh reports. */
void soak_usage_settled(struct soak_usage *usage, const struct soak_restart_test *restart_test,
			const char *when, uint64_t requests);
/*
 * From half of the requests to their end, in both processes: as many descriptors, and hardly more memory. Shared memory is not
 * judged where the plan says that the layer's library keeps that of the dead.
 */
void soak_usage_judge(const struct soak_usage *usage, struct soak_restart_test *restart_test);

#endif
