/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What shims share. A shim is a layer around another one: its open gets that layer's table in args->inner.
 *
 * Settings: the caller gives a shim and its inner layer one array. A shim takes the settings whose name
 * begins with its own substrate and a dot ("delay.delay_ns" is option delay_ns of shim-delay) and hands all
 * others on untouched, so the caller strips nothing. One shim deep is what ABI 1 allows: open refuses an
 * inner layer of style "shim".
 *
 * A shim's granted capabilities are those of the inner context, less what the shim cannot keep: a caller that
 * wraps a layer asks limits, not the table. `library` has no context and so cannot speak of the inner layer:
 * ask the inner table.
 */
#ifndef CADGE_SHIM_H
#define CADGE_SHIM_H

#include <stdint.h>

#include "cadge/fill.h"
#include "cadge/layer.h"

/*
 * Takes one of the shim's own settings, its prefix stripped. Returns DONE, or E_ARGUMENT when the shim does
 * not know the name or the value.
 */
typedef int (*shim_setting_fn)(void *arg, const char *name, const char *value);

/*
 * Opens the layer inside: gives the shim's settings to take(arg, ...) and the rest to the inner open. Returns
 * DONE, the inner open's code, E_ARGUMENT or E_MEMORY; args->error has the reason.
 */
int shim_open_inner(const struct cadge_open_args *args, const char *substrate, shim_setting_fn take,
		    void *arg, struct cadge_ctx **inner_out);

/* Fills args->error and returns `code`. */
int shim_refuse(const struct cadge_open_args *args, int code, const char *reason);

/* Reads a decimal number from 0 to most. DONE or E_ARGUMENT. */
int shim_number(const char *text, uint64_t most, uint64_t *number_out);

/* What the slot `library` of a shim says: it has no library of its own, and no context to ask the inner layer. */
void shim_library(struct cadge_library *library_out);

/* CLOCK_MONOTONIC. */
uint64_t shim_now_ns(void);

#endif
