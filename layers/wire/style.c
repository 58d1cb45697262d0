/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/style.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE_BYTES 4096u

int cadge_landings_make(const struct cadge_open_args *args, uint64_t message_bytes_max,
			struct cadge_landings *landings)
{
	const size_t stride_bytes = ((size_t)message_bytes_max / PAGE_BYTES + 2) * PAGE_BYTES;
	void *base = mmap(NULL, stride_bytes * args->peers_max, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (base == MAP_FAILED)
		return cadge_refuse(args, CADGE_E_MEMORY, "no room for a message of each of %u peers",
				    args->peers_max);
	*landings =
		(struct cadge_landings){.base = base, .stride_bytes = stride_bytes, .peers = args->peers_max};
	return CADGE_DONE;
}

void cadge_landings_destroy(struct cadge_landings *landings)
{
	if (landings->base)
		munmap(landings->base, landings->stride_bytes * landings->peers);
	landings->base = NULL;
}

static const struct {
	const char *name;
	uint32_t part;
	uint64_t caps; /* that are not granted without it */
} parts[] = {
	{"protection", CADGE_PART_PROTECTION, CADGE_CAP_RIGHTS},
	{"flow_control", CADGE_PART_FLOW_CONTROL, CADGE_CAP_FLOW_CONTROL},
	{"zero_copy_send", CADGE_PART_ZERO_COPY_SEND, CADGE_CAP_RESERVE},
	{"zero_copy_receive", CADGE_PART_ZERO_COPY_RECEIVE, CADGE_CAP_LEND},
};
enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

static int refuse_off(const struct cadge_open_args *args, const char *given, size_t given_bytes)
{
	const uint32_t separable = cadge_style_facts.separable;
	char list[96] = "";

	for (size_t i = 0; i < PARTS; i++)
		if (separable & parts[i].part) {
			strcat(list, list[0] ? ", " : "");
			strcat(list, parts[i].name);
		}
	return cadge_refuse(args, CADGE_E_ARGUMENT, "setting off cannot be '%.*s' here; %s%s",
			    (int)cadge_least(given_bytes, 60), given,
			    separable ? "it can be " : "nothing of this layer can be switched off", list);
}

static int read_off(const struct cadge_open_args *args, uint32_t *off_out)
{
	const char *at = cadge_setting_of(args, "off", "");
	uint32_t off = 0;

	while (*at) {
		const size_t bytes = strcspn(at, "+");
		size_t i = 0;

		while (i < PARTS && (strlen(parts[i].name) != bytes || memcmp(parts[i].name, at, bytes) != 0))
			i++;
		if (i == PARTS || !(parts[i].part & cadge_style_facts.separable))
			return refuse_off(args, at, bytes);
		off |= parts[i].part;
		at += bytes + (at[bytes] == '+');
	}
	*off_out = off;
	return CADGE_DONE;
}

static int read_packet_bytes(const struct cadge_open_args *args, uint32_t *bytes_out)
{
	const char *given = cadge_setting_of(args, "packet_bytes", "");
	char *end;
	unsigned long bytes;

	*bytes_out = cadge_style_facts.packet_bytes;
	if (!*given)
		return CADGE_DONE;
	if (!*bytes_out)
		return cadge_refuse(
			args, CADGE_E_ARGUMENT,
			"setting packet_bytes cannot be had here: the style's packets have one size");
	bytes = strtoul(given, &end, 10);
	if (*given < '0' || *given > '9' || *end || bytes < CADGE_PACKET_BYTES_LEAST ||
	    bytes > cadge_wire_packet_bytes_max || bytes % 8)
		return cadge_refuse(args, CADGE_E_ARGUMENT,
				    "setting packet_bytes is '%.20s', not a multiple of 8 from %u to %u",
				    given, CADGE_PACKET_BYTES_LEAST, cadge_wire_packet_bytes_max);
	*bytes_out = (uint32_t)bytes;
	return CADGE_DONE;
}

int cadge_slot_open(const struct cadge_open_args *args, struct cadge_ctx **ctx_out)
{
	struct cadge_ctx *ctx =
		calloc(1, cadge_style_facts.ctx_bytes + args->peers_max * cadge_style_facts.chan_bytes);
	struct cadge_style_asked asked = {
		.place = args->place,
		.wait_mode = args->wait_mode,
		.depth = (uint32_t)cadge_least(args->depth_max, cadge_style_facts.depth_max),
		.message_bytes_max =
			cadge_least(args->message_bytes_max, cadge_style_facts.message_bytes_max),
	};
	int code;

	if (!ctx)
		return cadge_refuse(args, CADGE_E_MEMORY, "out of memory for %u peers", args->peers_max);
	code = read_off(args, &asked.off);
	if (code == CADGE_DONE)
		code = read_packet_bytes(args, &asked.packet_bytes);
	if (code == CADGE_DONE)
		code = cadge_style_open(args, &asked, ctx);
	if (code == CADGE_DONE)
		*ctx_out = ctx;
	else
		cadge_slot_close(ctx);
	return code;
}

int cadge_slot_wait(struct cadge_ctx *ctx, uint64_t timeout_ns)
{
	struct cadge_wire *wire = cadge_style_idle_wire(ctx);

	return wire ? cadge_wire_wait(wire, timeout_ns) : CADGE_DONE;
}

int cadge_slot_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out)
{
	struct cadge_wire *wire = cadge_style_idle_wire(ctx);

	return wire ? cadge_wire_event(wire, fd_out, due_ns_out) : CADGE_BUSY;
}

static uint64_t caps_off(uint32_t off)
{
	uint64_t caps = 0;

	for (size_t i = 0; i < PARTS; i++)
		caps |= off & parts[i].part ? parts[i].caps : 0;
	return caps;
}

struct cadge_limits cadge_style_limits(const struct cadge_style_asked *asked, const struct cadge_wire *wire)
{
	return (struct cadge_limits){
		.caps = cadge_caps_granted(cadge_style_layer.caps, asked->place, asked->wait_mode) &
			~caps_off(asked->off),
		.message_bytes_max = asked->message_bytes_max,
		.depth_max = asked->depth,
		.iov_max = CADGE_STYLE_IOV_MAX,
		.wire_overhead_bytes = cadge_wire_facts(wire)->wire_overhead_bytes,
	};
}

struct cadge_traits cadge_style_traits(const struct cadge_style_asked *asked, const struct cadge_wire *wire)
{
	struct cadge_traits traits = cadge_style_library_traits;

	traits.order = CADGE_ORDER_CHANNEL;
	traits.multiprogramming = 1;
	if (asked->wait_mode != CADGE_WAIT_BLOCK)
		traits.waker = CADGE_WAKER_NONE;
	if (cadge_wire_facts(wire)->threads_move)
		traits.thread_role = CADGE_THREADS_PROGRESS;
	return traits;
}

void cadge_style_fill_traits(const struct cadge_style_asked *asked, struct cadge_traits *traits,
			     struct cadge_traits *traits_out)
{
	if (asked->off & CADGE_PART_PROTECTION && traits->protection != CADGE_PROTECT_KERNEL_OR_NIC)
		traits->protection = CADGE_PROTECT_NONE; /* the style's part of it: a device's stays */
	if (asked->off & CADGE_PART_FLOW_CONTROL)
		traits->flow = CADGE_FLOW_NONE;
	traits->copies_on_receive += (asked->off & CADGE_PART_ZERO_COPY_RECEIVE) != 0;
	cadge_fill(traits_out, traits, sizeof(*traits));
}

const struct cadge_layer *cadge_layer_entry(void)
{
	return &cadge_style_layer;
}
