/* SPDX-License-Identifier: BSD-3-Clause */
/* What a result says of a layer, as JSON: names of capabilities, traits, semantics, paths. */
#include "engine/facts.h"

#include <string.h>

#include "engine/loader.h"
#include "base/text.h"

static const struct {
	uint64_t bit;
	const char *name;
} cap_names[] = {
	{CADGE_CAP_SELF, "SELF"},
	{CADGE_CAP_HOST, "HOST"},
	{CADGE_CAP_NET, "NET"},
	{CADGE_CAP_RELIABLE, "RELIABLE"},
	{CADGE_CAP_ORDERED, "ORDERED"},
	{CADGE_CAP_FLOW_CONTROL, "FLOW_CONTROL"},
	{CADGE_CAP_LEND, "LEND"},
	{CADGE_CAP_POST_IN_SINK, "POST_IN_SINK"},
	{CADGE_CAP_WAIT, "WAIT"},
	{CADGE_CAP_RPC, "RPC"},
	{CADGE_CAP_DELEGATE, "DELEGATE"},
	{CADGE_CAP_PUT, "PUT"},
	{CADGE_CAP_GET, "GET"},
	{CADGE_CAP_FETCH_ADD, "FETCH_ADD"},
	{CADGE_CAP_MEM_ALLOC, "MEM_ALLOC"},
	{CADGE_CAP_MEM_REG, "MEM_REG"},
	{CADGE_CAP_BATCH, "BATCH"},
	{CADGE_CAP_COUNTERS, "COUNTERS"},
	{CADGE_CAP_OWN_THREADS, "OWN_THREADS"},
	{CADGE_CAP_ONE_INIT, "ONE_INIT"},
	{CADGE_CAP_RAW_LINK, "RAW_LINK"},
	{CADGE_CAP_REPLY_IN_SINK, "REPLY_IN_SINK"},
	{CADGE_CAP_REPLY_LATER, "REPLY_LATER"},
	{CADGE_CAP_RIGHTS, "RIGHTS"},
	{CADGE_CAP_NOTIFY, "NOTIFY"},
	{CADGE_CAP_COMPARE_SWAP, "COMPARE_SWAP"},
	{CADGE_CAP_RESERVE, "RESERVE"},
	{CADGE_CAP_EVENT_FD, "EVENT_FD"},
	{CADGE_CAP_WHY, "WHY"},
};

json_t *drv_facts_caps(uint64_t caps)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < sizeof(cap_names) / sizeof(cap_names[0]); i++)
		if ((caps & cap_names[i].bit) &&
		    json_array_append_new(list, json_string(cap_names[i].name))) {
			json_decref(list);
			return NULL;
		}
	return list;
}

/* A name of a list, or "unknown" for what a newer layer may say. */
static const char *name_of(const char *const *names, size_t count, unsigned int value)
{
	return value < count ? names[value] : "unknown";
}
#define NAME_OF(names, value) name_of(names, sizeof(names) / sizeof((names)[0]), (unsigned int)(value))

json_t *drv_facts_traits(const struct cadge_layer *layer, const struct cadge_ctx *ctx)
{
	static const char *const protections[] = {"none", "sender_library", "receiver_library",
						  "kernel_or_nic"};
	/* cadge: another handler, the layer's way of giving control */
	static const char *const controls[] = {"poll", "handler", "interrupt", "none"};
	static const char *const flows[] = {"none", "credits", "ack_nack", "library"};
	static const char *const orders[] = {"none", "channel"};
	static const char *const wakers[] = {"none", "kernel", "library", "cadge"};
	static const char *const roles[] = {"none", "housekeeping", "progress"};
	struct cadge_traits traits = {.bytes = sizeof(traits)};

	layer->traits(ctx, &traits);
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:b, s:s, s:I}", "protection",
			 NAME_OF(protections, traits.protection), "control_transfer",
			 NAME_OF(controls, traits.control_transfer), "flow_control",
			 NAME_OF(flows, traits.flow), "order", NAME_OF(orders, traits.order), "waker",
			 NAME_OF(wakers, traits.waker), "granule_bytes", (json_int_t)traits.granule_bytes,
			 "copies_on_send", (json_int_t)traits.copies_on_send, "copies_on_receive",
			 (json_int_t)traits.copies_on_receive, "multiprogramming",
			 traits.multiprogramming != 0, "library_threads", NAME_OF(roles, traits.thread_role),
			 "library_threads_max", (json_int_t)traits.threads_max);
}

static const char *progress_name(enum cadge_progress progress)
{
	static const char *const names[] = {"none", "direct", "library", "cadge"};

	return NAME_OF(names, progress);
}

json_t *drv_facts_semantics(const struct cadge_layer *layer, const struct cadge_ctx *ctx)
{
	struct cadge_semantics semantics = {.bytes = sizeof(semantics)};

	layer->semantics(ctx, &semantics);
	return json_pack("{s:s, s:s, s:s, s:s, s:s}", "message", progress_name(semantics.message), "put",
			 progress_name(semantics.put), "get", progress_name(semantics.get), "fetch_add",
			 progress_name(semantics.fetch_add), "compare_swap",
			 progress_name(semantics.compare_swap));
}

json_t *drv_facts_limits(const struct cadge_limits *limits)
{
	return json_pack("{s:o, s:I, s:o, s:o, s:o, s:I}", "message_bytes_max",
			 drv_json_count(limits->message_bytes_max), "depth_max",
			 (json_int_t)limits->depth_max, "short_bytes_max",
			 drv_json_count(limits->short_bytes_max), "short_path",
			 drv_json_text(limits->short_path ? limits->short_path : ""), "long_path",
			 drv_json_text(limits->long_path ? limits->long_path : ""), "wire_overhead_bytes",
			 (json_int_t)limits->wire_overhead_bytes);
}

json_t *drv_facts_library(const struct cadge_layer *adapter)
{
	struct cadge_library library = {.bytes = sizeof(library)};
	json_t *object;

	adapter->library(&library);
	object = drv_loader_origin(library.symbol);
	if (object && (drv_json_set(object, "name", drv_json_text(library.name)) ||
		       drv_json_set(object, "stated_version", drv_json_text(library.stated_version)))) {
		json_decref(object);
		return NULL;
	}
	return object;
}

json_t *drv_facts_adapter(const struct cadge_layer *adapter, const struct cadge_layer *layer,
			  const struct cadge_ctx *ctx, uint64_t caps)
{
	json_t *object = drv_loader_layer_origin(adapter);

	if (object &&
	    (drv_json_set(object, "name", drv_json_text(adapter->name)) ||
	     drv_json_set(object, "style", drv_json_text(adapter->style)) ||
	     drv_json_set(object, "substrate", drv_json_text(adapter->substrate)) ||
	     /* cadge: another rpc, that of the layer */
	     drv_json_set(object, "rpc", json_string(caps & CADGE_CAP_RPC ? "native" : "emulated")) ||
	     drv_json_set(object, "caps", drv_facts_caps(caps)) ||
	     drv_json_set(object, "traits", drv_facts_traits(layer, ctx)) ||
	     drv_json_set(object, "semantics", drv_facts_semantics(layer, ctx)))) {
		json_decref(object);
		return NULL;
	}
	return object;
}

/* A fixed field of a layer, which may have forgotten to end it. */
static json_t *field_json(const char *field, size_t bytes)
{
	char text[512];
	const size_t length = strnlen(field, bytes < sizeof(text) ? bytes : sizeof(text) - 1);

	memcpy(text, field, length);
	text[length] = '\0';
	return drv_json_text(text);
}

json_t *drv_facts_path(const struct cadge_path *path)
{
	static const char *const media[] = {"unknown", "process", "memory", "loopback", "network"};

	return json_pack("{s:s, s:b, s:o, s:o, s:o, s:o}", "medium",
			 (unsigned)path->medium <= CADGE_MEDIUM_NETWORK ? media[path->medium] : "unknown",
			 "as_asked", path->as_asked != 0, "asked",
			 field_json(path->asked, sizeof(path->asked)), "used",
			 field_json(path->used, sizeof(path->used)), "device",
			 field_json(path->device, sizeof(path->device)), "note",
			 field_json(path->note, sizeof(path->note)));
}

json_t *drv_facts_options(const struct cadge_layer *layer)
{
	json_t *list = json_array();

	for (const struct cadge_option *option = layer->options; list && option && option->name; option++) {
		json_t *object = json_pack("{s:o, s:o, s:o}", "name", drv_json_text(option->name), "default",
					   drv_json_text(option->default_value ? option->default_value : ""),
					   "help", drv_json_text(option->help ? option->help : ""));

		if (json_array_append_new(list, object)) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}
