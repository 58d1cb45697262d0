/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be said of a module before and around open. */
#include <ctype.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadge/check.h"
#include "conformance.h"

static bool option_name_ok(const char *name)
{
	if (!*name)
		return false;
	for (; *name; name++)
		if (!islower((unsigned char)*name) && !isdigit((unsigned char)*name) && *name != '_')
			return false;
	return true;
}

void test_table_is_sound(struct rank *r)
{
	const struct cadge_layer *layer = r->layer;
	char base[PATH_MAX], reason[256];
	const char *slash = strrchr(r->file, '/');
	size_t length;

	if (cadge_layer_check(layer, reason, sizeof(reason)) < 0) {
		fail(r, "%s", reason);
		return;
	}
	snprintf(base, sizeof(base), "%s", slash ? slash + 1 : r->file);
	length = strlen(base);
	if (length > 3 && strcmp(base + length - 3, ".so") == 0)
		base[length - 3] = 0;
	if (!cadge_module_named(base, layer))
		fail(r, "the file is called %s.so and the layer %s", base, layer->name);
	/* The checks above were made of our copy. A longer table is of a later version, which knows more. */
	if (module_table(layer)->bytes == layer->bytes && (module_table(layer)->caps & ~CADGE_CAPS_KNOWN))
		fail(r, "capability bits are set that ABI %u does not know", CADGE_ABI);
	if (!(layer->caps & (CADGE_CAP_SELF | CADGE_CAP_HOST | CADGE_CAP_NET)))
		fail(r, "no place is claimed: not self, not host, not net");
	if (cadge_caps_wrong(layer->caps))
		fail(r, "%s", cadge_caps_wrong(layer->caps));
	for (const struct cadge_option *option = layer->options; option && option->name; option++)
		if (!option_name_ok(option->name) || !option->default_value || !option->help ||
		    !*option->help)
			fail(r, "option '%s' lacks a lower-case name, a default or a help text",
			     option->name);
}

void test_one_export(struct rank *r)
{
	char names[512];
	unsigned int count;

	if (module_exports(r->file, names, sizeof(names), &count) < 0)
		fail(r, "%s is not a readable 64-bit ELF file with a dynamic symbol table", r->file);
	else if (count != 1 || strcmp(names, CADGE_ENTRY_SYMBOL) != 0)
		fail(r, "exported symbols: %u (%.300s); the module must export only %s", count, names,
		     CADGE_ENTRY_SYMBOL);
}

void test_library_stated(struct rank *r)
{
	struct cadge_library library = {.bytes = sizeof(library)};
	Dl_info info;

	if (r->inner) /* as the inner layer says: a shim needs an open for that */
		r->inner->library(&library);
	else
		r->layer->library(&library);
	if (!library.name || !*library.name)
		fail(r, "the library has no name");
	else if (!library.stated_version || !strpbrk(library.stated_version, "0123456789"))
		fail(r, "the stated version of %s is '%s', which holds no number", library.name,
		     library.stated_version ? library.stated_version : "");
	else if (library.symbol && (!dladdr(library.symbol, &info) || !info.dli_fname))
		fail(r, "the symbol given for %s lies in no loaded file", library.name);
}

static void limits_check(struct endpoint *ep, bool with_region)
{
	const struct cadge_limits *limits = &ep->limits;
	uint64_t place = CADGE_CAP_SELF << ep->r->opt->place, rma = CADGE_CAP_PUT | CADGE_CAP_GET;
	struct cadge_limits again = {.bytes = sizeof(again)};
	struct rank *r = ep->r;

	ep->layer->limits(ep->ctx, &again);
	if (limits->bytes != sizeof(*limits))
		fail(r, "limits changed `bytes` to %u", limits->bytes);
	else if (limits->caps & ~ep->layer->caps)
		fail(r, "limits grant capabilities 0x%llx that the table does not have",
		     (unsigned long long)(limits->caps & ~ep->layer->caps));
	else if (cadge_caps_wrong(limits->caps))
		fail(r, "limits: %s", cadge_caps_wrong(limits->caps));
	else if (!(limits->caps & place))
		fail(r, "the context opened, but its limits do not grant the place");
	else if (r->opt->wait_mode == CADGE_WAIT_BLOCK && !(limits->caps & CADGE_CAP_WAIT))
		fail(r, "the context opened in block mode, but its limits do not grant WAIT");
	else if (!limits->message_bytes_max || !limits->depth_max || limits->iov_max < 2)
		fail(r,
		     "limits: message_bytes_max %llu and depth_max %u must be at least 1, iov_max %u at "
		     "least 2",
		     (unsigned long long)limits->message_bytes_max, limits->depth_max, limits->iov_max);
	else if (!limits->short_path || !limits->long_path || !*limits->short_path || !*limits->long_path)
		fail(r, "limits do not name the short and the long path");
	else if (with_region && limits->short_bytes_max > limits->message_bytes_max)
		fail(r, "short_bytes_max is larger than message_bytes_max");
	else if (!!(limits->caps & CADGE_CAP_RPC) != !!limits->token_bytes)
		fail(r, "token_bytes is %u, and RPC is %s", limits->token_bytes,
		     limits->caps & CADGE_CAP_RPC ? "granted" : "not granted");
	else if (with_region ? !(limits->caps & rma) != !limits->rma_bytes_max
			     : limits->rma_bytes_max && !(limits->caps & rma))
		fail(r, "rma_bytes_max is %llu and put and get are %s",
		     (unsigned long long)limits->rma_bytes_max,
		     limits->caps & rma ? "granted" : "not granted");
	else if (again.caps != limits->caps || again.message_bytes_max != limits->message_bytes_max ||
		 again.depth_max != limits->depth_max || again.short_bytes_max != limits->short_bytes_max)
		fail(r, "limits gave two different answers for one context");
}

/*
 * The first test to open: a layer that cannot do this place or wait mode here ends the whole run as
 * skipped.
 */
void test_opens_and_limits(struct rank *r)
{
	struct cadge_open_args args;
	struct cadge_ctx *ctx = NULL;
	struct endpoint *ep;
	char error[256];
	int rc;

	endpoint_args(r, &wishes_default, error, sizeof(error), &args);
	rc = r->layer->open(&args, &ctx);
	if (rc == CADGE_E_UNSUPPORTED || rc <= CADGE_E_MEMORY) {
		if (!memchr(error, 0, sizeof(error)) || !error[0])
			fail(r, "open refused with %d (%s) and gave no reason", rc, cadge_code_name(rc));
		else
			skip(r, "open refused (%s): %.400s", cadge_code_name(rc), error);
		return;
	}
	if (rc != CADGE_DONE) {
		fail(r, "open failed with %d (%s): %s", rc, cadge_code_name(rc), error);
		return;
	}
	r->layer->close(ctx);
	r->layer->close(NULL);
	/* Once more, with other wishes. */
	if (endpoint_open(r, &(struct wishes){.depth_max = 1, .message_bytes_max = 1, .region_bytes_max = 0},
			  &ep) < 0)
		return;
	limits_check(ep, false);
	if (endpoint_close(ep) < 0 || endpoint_open(r, &wishes_default, &ep) < 0)
		return;
	limits_check(ep, true);
	if (ep->limits.message_bytes_max < 16)
		fail(r, "message_bytes_max is %llu: too small for any use",
		     (unsigned long long)ep->limits.message_bytes_max);
	endpoint_close(ep);
}

/* Opens with what cannot work; the refusal must have a code in [worst, -1] and a sentence. */
static void open_refused(struct rank *r, const struct cadge_open_args *args, const char *what, int want)
{
	struct cadge_ctx *untouched = (struct cadge_ctx *)(uintptr_t)0x10, *ctx = untouched;
	int rc;

	memset(args->error, '?', args->error_bytes);
	rc = r->layer->open(args, &ctx);
	if (rc >= 0)
		fail(r, "open accepted %s", what);
	else if (want && rc != want)
		fail(r, "open with %s returned %d (%s), it should be %d (%s)", what, rc, cadge_code_name(rc),
		     want, cadge_code_name(want));
	else if (ctx != untouched)
		fail(r, "open with %s failed and still wrote a context", what);
	else if (!memchr(args->error, 0, args->error_bytes) || !args->error[0] || args->error[0] == '?')
		fail(r, "open with %s failed without a terminated sentence that says why", what);
}

void test_open_bad_setting(struct rank *r)
{
	const struct cadge_setting bad = {.name = "no_such_setting", .value = "1"};
	struct cadge_open_args args;
	char error[256];

	endpoint_args(r, &wishes_default, error, sizeof(error), &args);
	args.settings = &bad;
	args.settings_count = 1;
	open_refused(r, &args, "the setting no_such_setting=1", CADGE_E_ARGUMENT);
}

void test_open_bad_device(struct rank *r)
{
	struct cadge_open_args args;
	char error[256];

	if (r->opt->place != CADGE_PLACE_NET) {
		skip(r, "only a network has a device");
		return;
	}
	endpoint_args(r, &wishes_default, error, sizeof(error), &args);
	args.device = "cadge-none0";
	args.address = "192.0.2.77";
	open_refused(r, &args, "device cadge-none0 and address 192.0.2.77", 0);
}

void test_open_bad_memory(struct rank *r)
{
	struct cadge_open_args args;
	char error[256];

	endpoint_args(r, &wishes_default, error, sizeof(error), &args);
	args.memory_kind = (enum cadge_memory_kind)77;
	open_refused(r, &args, "a kind of memory that does not exist", CADGE_E_UNSUPPORTED);
}
