/* SPDX-License-Identifier: BSD-3-Clause */
#include "shims/shim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int shim_refuse(const struct cadge_open_args *args, int code, const char *reason)
{
	snprintf(args->error, args->error_bytes, "%s", reason);
	return code;
}

int shim_open_inner(const struct cadge_open_args *args, const char *substrate, shim_setting_fn take,
		    void *arg, struct cadge_ctx **inner_out)
{
	const size_t prefix_bytes = strlen(substrate);
	struct cadge_open_args inner_args = {0};
	struct cadge_setting *settings;
	size_t count = 0;
	int code = CADGE_DONE;

	if (!args->inner)
		return shim_refuse(args, CADGE_E_ARGUMENT, "a shim needs a layer to wrap");
	if (strcmp(args->inner->style, "shim") == 0)
		return shim_refuse(args, CADGE_E_UNSUPPORTED, "a shim cannot wrap another shim");
	settings = calloc(args->settings_count + 1, sizeof(*settings));
	if (!settings)
		return shim_refuse(args, CADGE_E_MEMORY, "out of memory");
	for (size_t i = 0; i < args->settings_count && code == CADGE_DONE; i++) {
		const char *name = args->settings[i].name;

		if (strncmp(name, substrate, prefix_bytes) != 0 || name[prefix_bytes] != '.') {
			settings[count++] = args->settings[i];
			continue;
		}
		code = take(arg, name + prefix_bytes + 1, args->settings[i].value);
		if (code < 0)
			snprintf(args->error, args->error_bytes, "shim-%s does not take %s=%s", substrate,
				 name, args->settings[i].value);
	}
	memcpy(&inner_args, args, args->bytes < sizeof(inner_args) ? args->bytes : sizeof(inner_args));
	inner_args.bytes = sizeof(inner_args);
	inner_args.inner = NULL;
	inner_args.settings = settings;
	inner_args.settings_count = count;
	if (code == CADGE_DONE)
		code = args->inner->open(&inner_args, inner_out);
	free(settings);
	return code;
}

int shim_number(const char *text, uint64_t most, uint64_t *number_out)
{
	unsigned long long number;
	char *end;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-' || number > most)
		return CADGE_E_ARGUMENT;
	*number_out = number;
	return CADGE_DONE;
}

void shim_library(struct cadge_library *library_out)
{
	const struct cadge_library library = {.name = "shim", .stated_version = ""};

	cadge_fill(library_out, &library, sizeof(library));
}

uint64_t shim_now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}
