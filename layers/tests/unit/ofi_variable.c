/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the libfabric layers say where the variable FI_PROVIDER leaves out the provider that they ask for. libfabric reads
 * it once a process, so that this is a program of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/support/pair.h"
#include "tests/unit/support/tap.h"

static void opens(const struct cadge_layer *layer, struct cadge_open_args *args, const char *word,
		  const char *what)
{
	struct cadge_ctx *ctx = NULL;
	int got;

	args->error[0] = '\0';
	got = layer->open(args, &ctx);
	if (!ok(word ? got == CADGE_E_TRANSPORT && strstr(args->error, word) : got == CADGE_DONE, "%s: %s",
		layer->name, what))
		printf("# code %d; sentence: %s\n", got, args->error);
	if (got == CADGE_DONE)
		layer->close(ctx);
}

int main(void)
{
	static const char *const names[] = {"native-ofi", "rdma-ofi"};

	if (setenv("FI_PROVIDER", "tcp", 1))
		tap_bail("the environment cannot be extended");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const struct cadge_layer *layer = pair_load(names[i]);
		struct cadge_open_args args = pair_args(CADGE_WAIT_POLL);

		args.place = CADGE_PLACE_HOST;
		opens(layer, &args, "FI_PROVIDER=tcp leaves out the provider shm",
		      "the variable is named where it leaves out what is asked for");
		args.place = CADGE_PLACE_NET;
		args.device = "lo";
		args.address = "127.0.0.1";
		opens(layer, &args, NULL, "what it leaves in can be opened");
	}
	return tap_done();
}
