/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CADGE_TESTS_REFUSES_H
#define CADGE_TESTS_REFUSES_H

#include <stdio.h>
#include <string.h>

#include "cadge/layer.h"
#include "tests/unit/support/tap.h"

/* Opens, and expects the code and a word in the sentence; closes what opened all the same. */
static void refuses(const struct cadge_layer *layer, const struct cadge_open_args *args, int code,
		    const char *word, const char *what)
{
	struct cadge_ctx *ctx = NULL;
	int got;

	args->error[0] = '\0';
	got = layer->open(args, &ctx);
	if (!ok(got == code && strstr(args->error, word), "%s: %s", layer->name, what))
		printf("# code %d, expected %d; sentence: %s; expected in it: %s\n", got, code, args->error,
		       word);
	if (got == CADGE_DONE)
		layer->close(ctx);
}

#endif
