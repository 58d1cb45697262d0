/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The machine probe: what the machine was like while a launch ran, measured by the launch's own processes before,
 * between and after its points. It says nothing of a layer. On virtual machines, and where clocks change, launches of
 * one binary differ for reasons that no counter of the kernel shows; these three may.
 *
 * - line: one cache line goes to the other process and comes back, both spinning on it.
 * - copy: 64 KiB from one buffer to another of the same process, while the other process does the same.
 * - clock: one reading of the measuring clock.
 *
 * Two processes do it: endpoint 0 and its partner, the first other endpoint on its host, else endpoint 1. Of different
 * hosts there is no line.
 */
#ifndef DRV_MACHINE_PROBE_H
#define DRV_MACHINE_PROBE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "measure/clock.h"
#include "launch/launch.h"

/* -1: not to be had */
struct drv_machine_probe_values {
	double line_ns, copy_ns, clock_ns;
};

struct drv_machine_probe {
	const struct drv_clock *clock;
	/* of endpoint 0 the partner, and of the partner 0; -1: alone, or takes no part */
	int other;
	bool part, leads;
	/* shared by the two; NULL where they share none */
	struct drv_machine_probe_line *line;
	int fd;
	uint32_t *rounds;
	uint8_t *from, *to;
};

/*
 * Gets memory. Where it is short, or the kernel gives none to share, there is less to measure, and nothing fails. The
 * clock is borrowed. drv_machine_probe_end releases what it holds, also of a zeroed struct.
 */
void drv_machine_probe_start(struct drv_machine_probe *probe, const struct drv_launch *launch, int endpoint,
			     const struct drv_clock *clock);
void drv_machine_probe_end(struct drv_machine_probe *probe);

/* What the partner has to know to share the line. New reference. */
json_t *drv_machine_probe_offer(const struct drv_machine_probe *probe);
/* Takes what endpoint 0 said. */
void drv_machine_probe_accept(struct drv_machine_probe *probe, const json_t *offer);

/* Measures, at about the same time as the other; the two give the same number. About 1 ms. */
struct drv_machine_probe_values drv_machine_probe_measure(struct drv_machine_probe *probe, uint32_t number);

/* {"at": ..., "endpoint": ..., "line_ns": ...}. New reference. */
json_t *drv_machine_probe_json(const struct drv_machine_probe_values *values, uint32_t at, int endpoint);

#endif
