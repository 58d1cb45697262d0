/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The *off* of the fourth optimisation. Peregrine's server threads keep nothing between calls: none of their
 * state is saved or restored. Here a handler normally runs on the caller's stack. Switched off, each call is
 * given to a coroutine whose registers and signal mask are saved and restored at both ends, as a server with
 * a thread a call has it done.
 */
#include "coroutine.h"

#include <stdlib.h>
#include <ucontext.h>

#define STACK_BYTES (256u * 1024u)

struct own_stack {
	ucontext_t caller, callee;
	uint8_t *stack;
	pgr_handler *handler;
	void *arg;
	const struct pgr_request *request;
};
static _Thread_local struct own_stack own;

static void enter(void)
{
	for (;;) {
		own.handler(own.arg, own.request);
		swapcontext(&own.callee, &own.caller);
	}
}

void pgr_run_on_own_stack(pgr_handler *handler, void *arg, const struct pgr_request *request)
{
	if (!own.stack) {
		own.stack = malloc(STACK_BYTES);
		if (!own.stack || getcontext(&own.callee) < 0) {
			handler(arg, request);
			return;
		}
		own.callee.uc_stack.ss_sp = own.stack;
		own.callee.uc_stack.ss_size = STACK_BYTES;
		own.callee.uc_link = &own.caller;
		makecontext(&own.callee, enter, 0);
	}
	own.handler = handler;
	own.arg = arg;
	own.request = request;
	swapcontext(&own.caller, &own.callee);
}

void pgr_own_stack_free(void)
{
	free(own.stack);
	own.stack = NULL;
}
