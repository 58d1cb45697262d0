/* SPDX-License-Identifier: BSD-3-Clause */
/* The stack of a procedure, with PGR_OFF_NO_THREAD_STATE. */
#ifndef PGR_COROUTINE_H
#define PGR_COROUTINE_H

#include "../pgr.h"

/* Runs the handler on a stack that is made ready for it, saved and restored. */
void pgr_run_on_own_stack(pgr_handler *handler, void *arg, const struct pgr_request *request);
void pgr_own_stack_free(void);

#endif
