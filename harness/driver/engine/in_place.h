/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that are built in the library's own memory (RESERVE). Patterns post as ever: where the context grants it,
 * the table that they call has a post that reserves, writes the message there, and commits. Everywhere else the table
 * is the layer's, and nothing is added to it.
 */
#ifndef DRV_IN_PLACE_H
#define DRV_IN_PLACE_H

#include <stdbool.h>

#include "cadge/layer.h"

/* The table to call for an open context; `layer` is the one that opened it. One layer a process. */
const struct cadge_layer *drv_in_place(const struct cadge_layer *layer, const struct cadge_ctx *ctx);

/* Whether `layer` is a table that drv_in_place made, or a copy of it: a message that is written anew may be written there (payload.h). */
bool drv_in_place_grants(const struct cadge_layer *layer);

#endif
