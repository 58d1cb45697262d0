/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The growth of the contract: which tables are taken, and what of them; what cadge_fill writes; which
 * capabilities need which.
 */
#include <stdlib.h>
#include <string.h>

#include "cadge/check.h"
#include "cadge/fill.h"
#include "tests/unit/support/tap.h"

static int slot_code(void)
{
	return CADGE_E_UNSUPPORTED;
}

/* A table with every required slot; none of them is called. */
static struct cadge_layer table(void)
{
	struct cadge_layer layer = {
		.abi = CADGE_ABI,
		.bytes = sizeof(layer),
		.name = "made-up",
		.style = "made",
		.substrate = "up",
		.caps = CADGE_CAP_HOST,
	};
	int (*code)(void) = slot_code;

	memcpy(&layer.open, &code, sizeof(code));
	memcpy(&layer.close, &code, sizeof(code));
	memcpy(&layer.limits, &code, sizeof(code));
	memcpy(&layer.address, &code, sizeof(code));
	memcpy(&layer.connect, &code, sizeof(code));
	memcpy(&layer.disconnect, &code, sizeof(code));
	memcpy(&layer.post, &code, sizeof(code));
	memcpy(&layer.poll, &code, sizeof(code));
	memcpy(&layer.describe_path, &code, sizeof(code));
	memcpy(&layer.library, &code, sizeof(code));
	memcpy(&layer.semantics, &code, sizeof(code));
	memcpy(&layer.traits, &code, sizeof(code));
	return layer;
}

static void takes(const struct cadge_layer *theirs, bool want, const char *words, const char *name)
{
	struct cadge_layer own;
	char reason[256] = "";
	const int code = cadge_layer_take(theirs, &own, reason, sizeof(reason));

	ok((code == 0) == want && (want || strstr(reason, words)), "%s%s%s", name, want ? "" : ": ", reason);
}

static void tables(void)
{
	struct cadge_layer layer = table(), own;
	struct {
		struct cadge_layer layer;
		int (*later[4])(void);
	} longer = {.layer = layer, .later = {slot_code, slot_code, slot_code, slot_code}};
	unsigned char *whole;
	char reason[256];

	takes(NULL, false, "no table", "no table is refused");
	takes(&layer, true, "", "a table of this version is taken");
	longer.layer.bytes = sizeof(longer);
	longer.layer.caps |= UINT64_C(1) << 63;
	takes(&longer.layer, true, "", "a longer one too, with a capability that is not known here");
	ok(cadge_layer_take(&longer.layer, &own, reason, sizeof(reason)) == 0 && own.bytes == sizeof(own) &&
		   own.caps == CADGE_CAP_HOST && own.traits == layer.traits,
	   "of which our copy has what we know");
	layer.bytes = CADGE_LAYER_BYTES_ABI1 - 8;
	takes(&layer, false, "rebuild", "a shorter one than that of ABI 1 is refused");
	layer.bytes = sizeof(layer);
	layer.abi = 2;
	takes(&layer, false, "ABI 2", "another ABI is refused");
	layer = table();
	layer.traits = NULL;
	takes(&layer, false, "traits", "a required slot that is missing");
	layer = table();
	layer.caps |= CADGE_CAP_RESERVE;
	takes(&layer, false, "reserve", "a capability without its slot");
	/* Nothing behind the table's own end is read: the sanitizer watches. */
	layer = table();
	whole = malloc(sizeof(layer));
	if (!whole)
		tap_bail("out of memory");
	memcpy(whole, &layer, sizeof(layer));
	takes((const struct cadge_layer *)(void *)whole, true, "", "a table at the end of its memory");
	free(whole);
}

static void capabilities(void)
{
	ok(!cadge_caps_wrong(CADGE_CAP_HOST), "one capability needs no other");
	ok(cadge_caps_wrong(CADGE_CAP_RPC) != NULL, "RPC needs a way to be answered");
	ok(!cadge_caps_wrong(CADGE_CAP_RPC | CADGE_CAP_REPLY_IN_SINK), "inside of the sink is one");
	ok(cadge_caps_wrong(CADGE_CAP_NOTIFY) && cadge_caps_wrong(CADGE_CAP_EVENT_FD) &&
		   cadge_caps_wrong(CADGE_CAP_RIGHTS) && cadge_caps_wrong(CADGE_CAP_REPLY_LATER),
	   "NOTIFY, EVENT_FD, RIGHTS and REPLY_LATER need another one");
}

static void filling(void)
{
	const struct cadge_traits from = {.flow = CADGE_FLOW_CREDITS, .copies_on_send = 7, .threads_max = 9};
	struct {
		struct cadge_traits traits;
		uint32_t beyond;
	} out = {.traits = {.bytes = sizeof(out.traits)}, .beyond = 5};

	cadge_fill(&out.traits, &from, sizeof(from));
	ok(out.traits.bytes == sizeof(out.traits) && out.traits.threads_max == 9 && out.beyond == 5,
	   "a struct of the same version is filled, its size stays");
	memset(&out, 0xff, sizeof(out));
	out.traits.bytes = offsetof(struct cadge_traits, copies_on_send);
	cadge_fill(&out.traits, &from, sizeof(from));
	ok(out.traits.flow == CADGE_FLOW_CREDITS && out.traits.copies_on_send == UINT32_MAX &&
		   out.traits.threads_max == UINT32_MAX,
	   "a shorter one up to its end");
	memset(&out, 0, sizeof(out));
	out.traits.bytes = sizeof(out);
	cadge_fill(&out.traits, &from, sizeof(from));
	ok(out.traits.threads_max == 9 && !out.beyond, "a longer one up to ours");
	out.traits.bytes = 0;
	out.traits.threads_max = 1;
	cadge_fill(&out.traits, &from, sizeof(from));
	ok(out.traits.threads_max == 1, "one without room not at all");
	out.traits.bytes = offsetof(struct cadge_traits, threads_max);
	ok(CADGE_HAS(&out.traits, thread_role) && !CADGE_HAS(&out.traits, threads_max),
	   "what a struct has can be asked");
}

int main(void)
{
	tables();
	capabilities();
	filling();
	return tap_done();
}
