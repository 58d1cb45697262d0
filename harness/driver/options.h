/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of "cadge-driver run". */
#ifndef DRV_OPTIONS_H
#define DRV_OPTIONS_H

#include "base/fail.h"
#include "launch/launch.h"
#include "oob/proof.h"

struct drv_run_options {
	const char *launch_path;
	const char *modules;   /* NULL for floors */
	const char *host_port; /* NULL at place self */
	const char *token_path;
	const char *out;
	int endpoint;
	struct drv_launch launch;
	struct drv_oob_token token;
};

/*
 * Reads the arguments after "run", then the launch file and the token. On
 * failure the reason is DRV_ARGUMENT. On success drv_launch_free(&options->launch) is the caller's.
 */
int drv_options_run(int argc, char **argv, struct drv_run_options *options_out, struct drv_fail *fail);

#endif
