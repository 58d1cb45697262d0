/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/style.h"

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

struct cadge_style_asked cadge_style_asked_of(const struct cadge_open_args *args, uint64_t message_bytes_max)
{
	return (struct cadge_style_asked){
		.place = args->place,
		.wait_mode = args->wait_mode,
		.depth = args->depth_max,
		.message_bytes_max = cadge_least(args->message_bytes_max, message_bytes_max),
	};
}

struct cadge_limits cadge_style_limits(const struct cadge_style_asked *asked, const struct cadge_wire *wire)
{
	return (struct cadge_limits){
		.caps = cadge_caps_granted(cadge_style_layer.caps, asked->place, asked->wait_mode),
		.message_bytes_max = asked->message_bytes_max,
		.depth_max = asked->depth,
		.iov_max = CADGE_STYLE_IOV_MAX,
		.wire_overhead_bytes = cadge_wire_facts(wire)->wire_overhead_bytes,
	};
}

struct cadge_traits cadge_style_traits(const struct cadge_style_asked *asked)
{
	struct cadge_traits traits = cadge_style_library_traits;

	traits.order = CADGE_ORDER_CHANNEL;
	traits.multiprogramming = 1;
	if (asked->wait_mode != CADGE_WAIT_BLOCK)
		traits.waker = CADGE_WAKER_NONE;
	return traits;
}
