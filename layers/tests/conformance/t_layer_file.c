/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the layer file says of the layer what the adapter says: --stated has it, from ci/layer_facts.awk. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "cadge/check.h"
#include "conformance.h"

/* Sweeps ask for messages of up to 1 MiB; a plan refuses nothing below this without a limit in the layer file. */
#define USUAL_BYTES_MAX (UINT64_C(4) << 20)

/* What the file states of `name`, from *at on, which moves behind it; NULL: no more of it. */
static const char *stated_next(const struct rank *r, const char *name, size_t *at)
{
	const size_t length = strlen(name);

	while (*at < r->opt->stated_count) {
		const char *fact = r->opt->stated[(*at)++];

		if (strncmp(fact, name, length) == 0 && fact[length] == '=')
			return fact + length + 1;
	}
	return NULL;
}

static const char *stated(const struct rank *r, const char *name)
{
	size_t at = 0;

	return stated_next(r, name, &at);
}

static void compare(struct rank *r, const char *name, const char *adapter_says)
{
	const char *file_says = stated(r, name);

	if (file_says && strcmp(file_says, adapter_says) != 0)
		fail(r, "%s: the layer file says '%s', the adapter '%s'", name, file_says, adapter_says);
}

static void compare_place(struct rank *r, const char *place, uint64_t cap)
{
	const char *file_says = stated(r, "places");
	const bool in_file = file_says && strstr(file_says, place), in_table = r->layer->caps & cap;

	if (file_says && in_file != in_table)
		fail(r, "places: the layer file says '%s', and the adapter %s '%s'", file_says,
		     in_table ? "claims" : "does not claim", place);
}

static void compare_table(struct rank *r)
{
	const uint64_t caps = r->layer->caps;

	compare(r, "style", r->layer->style);
	compare(r, "substrate", r->layer->substrate);
	compare(r, "rpc", caps & CADGE_CAP_RPC ? "native" : "emulated");
	compare(r, "reliable", caps & CADGE_CAP_RELIABLE ? "true" : "false");
	compare(r, "launcher", caps & CADGE_CAP_ONE_INIT ? "mpirun" : "direct");
	compare_place(r, "within", CADGE_CAP_HOST);
	compare_place(r, "between", CADGE_CAP_NET);
}

/* A library without a symbol is a service of the kernel, whose version is the kernel's. */
static void compare_library(struct rank *r)
{
	struct cadge_library library = {.bytes = sizeof(library)};
	struct utsname kernel;

	r->layer->library(&library);
	compare(r, "library", library.name);
	if (!library.symbol && strcmp(library.name, "none") != 0 && uname(&kernel) == 0 &&
	    strcmp(library.stated_version, kernel.release) != 0)
		fail(r,
		     "version: the adapter says '%s' of %s and gives no symbol of it; a library's own "
		     "version comes with a symbol, and a service of the kernel has the kernel's, '%s'",
		     library.stated_version, library.name, kernel.release);
}

/* The least message that the file refuses at this place and in this wait mode; 0: none. */
static uint64_t refused_bytes(const struct rank *r)
{
	static const char *const places[] = {"self", "within", "between"}, *const waits[] = {"poll", "block"};
	uint64_t least = 0;
	const char *limit;

	for (size_t at = 0; (limit = stated_next(r, "min_bytes", &at));) {
		char place[16], wait[16];
		uint64_t bytes;

		if (sscanf(limit, "%15s %15s %" SCNu64, place, wait, &bytes) == 3 &&
		    (strcmp(place, "any") == 0 || strcmp(place, places[r->opt->place]) == 0) &&
		    (strcmp(wait, "any") == 0 || strcmp(wait, waits[r->opt->wait_mode]) == 0) &&
		    (!least || bytes < least))
			least = bytes;
	}
	return least;
}

static void compare_message(struct rank *r)
{
	const uint64_t refused = refused_bytes(r);
	const uint64_t asked = refused > USUAL_BYTES_MAX ? refused : USUAL_BYTES_MAX;
	struct endpoint *ep;
	uint64_t taken;

	if (endpoint_open(r, &(struct wishes){.depth_max = 1, .message_bytes_max = asked}, &ep) < 0)
		return;
	taken = ep->limits.message_bytes_max;
	if (refused && taken != refused - 1)
		fail(r,
		     "message_bytes_max: the layer file refuses messages from %" PRIu64
		     " bytes on (min_bytes), and the adapter takes up to %" PRIu64,
		     refused, taken);
	else if (!refused && taken < asked)
		fail(r,
		     "message_bytes_max: the layer file has no limit min_bytes, and the adapter takes only "
		     "up "
		     "to %" PRIu64 " bytes: add {when: {min_bytes: %" PRIu64 "}, reason: ...} to its limits",
		     taken, taken + 1);
	endpoint_close(ep);
}

void test_layer_file_true(struct rank *r)
{
	const char *todo = stated(r, "todo"), *file = stated(r, "file");

	if (!r->opt->stated_count || r->inner) {
		skip(r, r->inner ? "the file is that of the shim" : "no layer file was given");
		return;
	}
	if (todo)
		fail(r, "%s still says TODO at: %s. Write what readers of a report should see there",
		     file ? file : "the layer file", todo);
	compare_table(r);
	compare_library(r);
	compare_message(r);
}
