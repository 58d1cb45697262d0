/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts and phases as they travel between endpoints. */
#ifndef DRV_COUNTS_H
#define DRV_COUNTS_H

#include "launch/pattern.h"

/* A "counts" message. New reference or NULL. */
json_t *drv_counts_json(const struct drv_counts *counts);
int drv_counts_parse(const json_t *object, struct drv_counts *counts_out, struct drv_fail *fail);

/* A message called `name` that carries a phase. New reference or NULL. */
json_t *drv_phase_json(const char *name, const struct drv_phase *phase);
int drv_phase_parse(const json_t *object, struct drv_phase *phase_out, struct drv_fail *fail);

#endif
