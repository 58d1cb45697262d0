/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire on libfabric: one reliable datagram endpoint, its life and its links. See state.h. */
#include "wire/ofi/state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "wire/ofi/params.h"

#define PACKET_BYTES_MAX 16384u

const char cadge_wire_substrate[] = "ofi";
const uint32_t cadge_wire_packet_bytes_max = PACKET_BYTES_MAX;
const struct cadge_option cadge_wire_options[] = {
	CADGE_OFI_OPTION_PROVIDER,
	CADGE_WIRE_OPTION_OFF,
	CADGE_WIRE_OPTION_PACKET_BYTES,
	{NULL, NULL, NULL},
};

#include "wire/link.h"

/* ---- connecting ---- */

int cadge_wire_address(struct cadge_wire *wire, uint32_t peer, struct cadge_blob_out *blob)
{
	char name[CADGE_OFI_NAME_BYTES];
	size_t name_bytes = sizeof(name);
	int code;

	if (peer >= wire->peers)
		return CADGE_E_ARGUMENT;
	code = cadge_ofi_name(&wire->ofi, name, &name_bytes);
	if (code != CADGE_DONE)
		return code;
	cadge_blob_u32(blob, cadge_stamp_given(&wire->links[peer].greeting, peer));
	cadge_blob_bytes(blob, name, name_bytes);
	cadge_wire_word_address(wire, peer, blob);
	return blob->ok ? CADGE_DONE : CADGE_E_TOO_LARGE;
}

int cadge_wire_connect(struct cadge_wire *wire, uint32_t peer, struct cadge_blob_in *in,
		       struct cadge_link **link_out)
{
	const uint32_t stamp = cadge_blob_take_u32(in);
	size_t name_bytes;
	const void *name = cadge_blob_take_bytes(in, &name_bytes);
	const struct cadge_wire_word word = cadge_wire_word_take(wire, in);
	struct cadge_link *link;
	int code;

	if (!in->ok || peer >= wire->peers)
		return CADGE_E_ARGUMENT;
	link = &wire->links[peer];
	if (link->packets || cadge_stamp_take(&link->greeting, stamp) < 0)
		return CADGE_E_ARGUMENT;
	link->packets = cadge_packet_set_begin(&wire->sets, link);
	if (!link->packets)
		return CADGE_E_MEMORY;
	code = cadge_ofi_insert(&wire->ofi, name, name_bytes, &link->addr);
	if (code != CADGE_DONE) {
		cadge_packet_set_end(link->packets);
		link->packets = NULL;
		return code;
	}
	cadge_wire_memory_begin(link, &word);
	wire->pending++;
	*link_out = link;
	return CADGE_DONE;
}

int cadge_wire_disconnect(struct cadge_link *link)
{
	struct cadge_wire *wire = link->wire;

	if (!link->packets)
		return CADGE_E_ARGUMENT;
	wire->pending -= !link->announced;
	cadge_wire_memory_end(link);
	cadge_packet_set_end(link->packets);
	cadge_ofi_remove(&wire->ofi, link->addr);
	*link = (struct cadge_link){
		.wire = wire,
		.peer = link->peer,
		.greeting = cadge_greeting_next(&link->greeting),
	};
	return CADGE_DONE;
}

int cadge_wire_describe(struct cadge_link *link, struct cadge_path *path_out)
{
	struct cadge_path path = {.bytes = sizeof(path)};

	cadge_ofi_describe(&link->wire->ofi, &path);
	cadge_fill(path_out, &path, sizeof(path));
	return CADGE_DONE;
}

void cadge_wire_counters(const struct cadge_wire *wire,
			 void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	if (wire->sets.count) {
		each(arg, "packets_sent_late", wire->sent_late);
		each(arg, "packets_busy", wire->busy);
		each(arg, "packets_stale", wire->stale);
	}
	if (wire->rma.ops)
		cadge_ofi_rma_counters(&wire->rma, each, arg);
}

const char *cadge_wire_why(const struct cadge_wire *wire)
{
	return wire->ofi.why;
}

/* ---- life ---- */

/*
 * Each region is one of the device's. But verbs registers whole pages with all rights for libfabric's cache of regions, unless that
 * is switched off.
 */
static uint32_t guards_of(const struct cadge_wire *wire)
{
	if (!wire->ofi.verbs)
		return 0;
	return CADGE_WIRE_GUARDS_BOUNDS | (cadge_ofi_keeps_regions() ? 0 : CADGE_WIRE_GUARDS_RIGHTS);
}

/* Which of them are posted is the library's knowledge alone; for the others this does nothing. */
static void take_back_landings(const struct cadge_wire *wire)
{
	for (size_t i = 0; wire->landing_pool && i < wire->landings_count; i++) {
		const uint8_t *at = wire->landing_pool + i * wire->sets.stride_bytes;

		cadge_ofi_take_back(&wire->ofi, ((struct cadge_packet *)(uintptr_t)at)->library);
	}
}

void cadge_wire_close(struct cadge_wire *wire)
{
	if (!wire)
		return;
	if (wire->rma.ops)
		cadge_ofi_rma_drain(&wire->rma);
	take_back_landings(wire);
	cadge_ofi_close_endpoint(&wire->ofi);
	for (uint32_t i = 0; i < wire->peers; i++)
		cadge_wire_memory_end(&wire->links[i]);
	cadge_wire_memory_close(wire);
	cadge_ofi_close(&wire->ofi);
	cadge_ofi_rma_destroy(&wire->rma);
	cadge_wire_memory_free(wire);
	if (wire->landing_pool)
		munmap(wire->landing_pool, wire->landings_count * wire->sets.stride_bytes);
	cadge_packet_sets_destroy(&wire->sets);
	free(wire);
}

/* For packets some that are kept and some that are posted; for notes alone, which are never kept, those that are posted. */
static int make_landings(struct cadge_wire *wire, uint32_t held)
{
	const size_t stride_bytes = wire->sets.stride_bytes;

	if (!wire->posted_max)
		return CADGE_DONE;
	wire->landings_count = wire->sets.count ? (size_t)held * wire->peers + WIRE_SPARE : wire->posted_max;
	wire->landing_pool = cadge_packet_pool(wire->landings_count, stride_bytes);
	if (!wire->landing_pool)
		return CADGE_E_MEMORY;
	for (size_t i = wire->landings_count; i-- > 0;) {
		struct cadge_packet *landing =
			(struct cadge_packet *)(void *)(wire->landing_pool + i * stride_bytes);

		CADGE_POOL_GIVE(wire->landings, landing);
	}
	return cadge_wire_post_landings(wire, wire->posted_max);
}

/*
 * Above its eager size ofi_rxm lets a packet be overtaken. Above its inject size shm has the receiver ask the kernel for the
 * bytes, which takes longer than the two copies of several packets.
 */
static uint32_t packet_bytes_max(const struct cadge_wire *wire, uint32_t wanted_bytes)
{
	const uint64_t most_bytes = wire->ofi.network ? cadge_ofi_eager_bytes() : wire->inject_bytes;

	return (uint32_t)cadge_least(wanted_bytes, cadge_least(most_bytes, PACKET_BYTES_MAX));
}

static int start(struct cadge_wire *wire, const struct cadge_open_args *args,
		 const struct cadge_wire_needs *needs)
{
	const bool remote = needs->features & CADGE_WIRE_REMOTE;
	const size_t operations = remote ? (size_t)needs->operations * args->peers_max : 0;
	const struct cadge_ofi_needs ofi = {
		.caps = FI_MSG | (remote ? (uint64_t)FI_RMA : 0),
		.caps_wanted = needs->features & CADGE_WIRE_ATOMICS ? (uint64_t)FI_ATOMIC : 0,
		.msg_order = needs->packets ? FI_ORDER_SAS : 0,
		.mr_mode = remote ? FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY : 0,
		.completions = (size_t)needs->packets * args->peers_max + wire->posted_max + operations,
	};
	int code = cadge_ofi_open(&wire->ofi, args, &ofi);

	if (code != CADGE_DONE)
		return code;
	wire->inject_bytes = wire->ofi.info->tx_attr->inject_size;
	wire->facts = (struct cadge_wire_facts){
		.packet_bytes_max = packet_bytes_max(wire, needs->packet_bytes),
		.put_bytes_max = remote ? cadge_ofi_longest(&wire->ofi, CADGE_OFI_RMA_BYTES_MAX) : 0,
		.sleeps = wire->ofi.wait_fd >= 0,
		.device_guards = guards_of(wire),
		.puts_in_order = wire->ofi.network && !wire->ofi.verbs, /* one byte stream to a peer */
		.any_memory = true,
		.operations = needs->operations,
	};
	wire->sets = make_sets(wire, needs);
	code = make_landings(wire, needs->held);
	if (code == CADGE_DONE && remote)
		code = cadge_wire_memory_open(wire, operations);
	if (code != CADGE_DONE)
		return cadge_refuse(args, code, "no packets and operations for %u peers", args->peers_max);
	wire->facts.adds = needs->features & CADGE_WIRE_ATOMICS && wire->rma.fetches;
	wire->facts.swaps = needs->features & CADGE_WIRE_ATOMICS && wire->rma.swaps;
	return CADGE_DONE;
}

int cadge_wire_open(const struct cadge_open_args *args, const struct cadge_wire_needs *needs,
		    struct cadge_wire **wire_out)
{
	struct cadge_wire *wire;
	int code = check(args, needs, CADGE_CAP_HOST | CADGE_CAP_NET | CADGE_CAP_WAIT, WIRE_PEERS_MAX);

	if (code != CADGE_DONE)
		return code;
	wire = make_wire(args, needs);
	if (!wire)
		return CADGE_E_MEMORY;
	wire->peers = args->peers_max;
	wire->posted_max = needs->packets ? WIRE_POSTED : needs->features & CADGE_WIRE_NOTES ? WIRE_NOTES : 0;
	wire->posted_low = needs->packets ? WIRE_POSTED_LOW : wire->posted_max;
	for (uint32_t i = 0; i < wire->peers; i++)
		wire->links[i].peer = i;
	code = start(wire, args, needs);
	if (code != CADGE_DONE) {
		cadge_wire_close(wire);
		return code;
	}
	*wire_out = wire;
	return CADGE_DONE;
}
