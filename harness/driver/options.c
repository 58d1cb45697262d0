/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the arguments of "run", then the launch file and the token. */
#include "options.h"

#include <string.h>

#include "base/out.h"
#include "launch/launch_file.h"

/* A result that cannot be written is better known before than after. */
static int check_out(const char *path, struct drv_fail *fail)
{
	struct drv_out out;

	return drv_out_find(path, &out, fail);
}

static int check_combination(const struct drv_run_options *options, struct drv_fail *fail)
{
	const struct drv_launch *launch = &options->launch;

	if (launch->shims_count > 1)
		return drv_fail_set(fail, DRV_ARGUMENT, "launch file: shims may hold one entry at most");
	if (launch->kind == DRV_KIND_FLOOR && launch->shims_count > 0)
		return drv_fail_set(fail, DRV_ARGUMENT, "launch file: shims do not apply to floors");
	if ((size_t)options->endpoint >= launch->endpoints_count)
		return drv_fail_set(fail, DRV_ARGUMENT, "--endpoint %d: this launch has endpoints 0 to %zu",
				    options->endpoint, launch->endpoints_count - 1);
	if (launch->kind == DRV_KIND_LAYER && !options->modules)
		return drv_fail_set(fail, DRV_ARGUMENT, "--modules is missing");
	if (launch->place != DRV_PLACE_SELF && !options->host_port)
		return drv_fail_set(fail, DRV_ARGUMENT, "--oob is missing");
	if (launch->place != DRV_PLACE_SELF && !options->token_path)
		return drv_fail_set(fail, DRV_ARGUMENT, "--token-file is missing");
	if (options->endpoint == 0 && !options->out)
		return drv_fail_set(fail, DRV_ARGUMENT, "--out is missing: endpoint 0 writes the result");
	if (options->endpoint > 0 && options->out)
		return drv_fail_set(fail, DRV_ARGUMENT, "--out is only for endpoint 0");
	return options->out ? check_out(options->out, fail) : 0;
}

/* 0 to 63; -1 for anything else. */
static int endpoint_number(const char *text)
{
	int number = 0;

	if (!text[0] || strlen(text) > 2)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		number = 10 * number + (*text - '0');
	}
	return number < (int)DRV_ENDPOINTS_MAX ? number : -1;
}

int drv_options_run(int argc, char **argv, struct drv_run_options *options_out, struct drv_fail *fail)
{
	struct drv_run_options options = {.endpoint = -1};
	const char *endpoint = NULL;
	const struct {
		const char *name;
		const char **value;
	} known[] = {
		{"--launch", &options.launch_path},
		{"--modules", &options.modules},
		{"--oob", &options.host_port},
		{"--token-file", &options.token_path},
		{"--out", &options.out},
		{"--endpoint", &endpoint},
	};

	for (int i = 0; i < argc; i += 2) {
		const char **value = NULL;

		for (size_t j = 0; j < sizeof(known) / sizeof(known[0]); j++)
			if (!strcmp(argv[i], known[j].name))
				value = known[j].value;
		if (!value)
			return drv_fail_set(fail, DRV_ARGUMENT, "unknown argument '%s'", argv[i]);
		if (i + 1 == argc || !argv[i + 1][0])
			return drv_fail_set(fail, DRV_ARGUMENT, "%s needs a value", argv[i]);
		if (*value)
			return drv_fail_set(fail, DRV_ARGUMENT, "%s is given twice", argv[i]);
		*value = argv[i + 1];
	}
	if (!options.launch_path)
		return drv_fail_set(fail, DRV_ARGUMENT, "--launch is missing");
	options.endpoint = endpoint ? endpoint_number(endpoint) : -1;
	if (options.endpoint < 0)
		return drv_fail_set(fail, DRV_ARGUMENT, "--endpoint must be a number from 0 to %u",
				    DRV_ENDPOINTS_MAX - 1);
	if (drv_launch_read(options.launch_path, &options.launch, fail))
		return -1;
	if (check_combination(&options, fail) ||
	    drv_launch_trace_read(&options.launch, options.launch_path, fail) ||
	    (options.launch.place != DRV_PLACE_SELF &&
	     drv_oob_token_read(options.token_path, &options.token, fail))) {
		drv_launch_free(&options.launch);
		return -1;
	}
	*options_out = options;
	return 0;
}
