/* SPDX-License-Identifier: BSD-3-Clause */
/* One launch, from the out-of-band handshake to the stored result. */
#ifndef DRV_SESSION_H
#define DRV_SESSION_H

#include "base/fail.h"
#include "launch/launch.h"
#include "oob/oob.h"

struct drv_session_args {
	const struct drv_launch *launch;
	int endpoint;
	const char *modules;   /* folder of layers; NULL for floors */
	const char *host_port; /* NULL at place self */
	const struct drv_oob_token *token;
	const char *out; /* endpoint 0: where the result goes; NULL on all others */
};

/* Runs the launch and returns the exit status of the process. Says on stderr why, when it is not 0. */
int drv_session_run(const struct drv_session_args *args);

#endif
