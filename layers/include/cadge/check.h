/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every caller does before it trusts a layer's table: cadge_layer_take copies it into one of the
 * caller's own, whatever version the layer was built for, and checks it: ABI, size, required slots, and that
 * each optional slot stands exactly where its capability bit says so. Header-only, so that the driver, the
 * conformance suite and any other program share one rule.
 */
#ifndef CADGE_CHECK_H
#define CADGE_CHECK_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cadge/layer.h"

/* Which capability needs which other one to mean anything. NULL, or the rule that is broken. */
static inline const char *cadge_caps_wrong(uint64_t caps)
{
	const uint64_t rpc_parts = CADGE_CAP_DELEGATE | CADGE_CAP_REPLY_IN_SINK | CADGE_CAP_REPLY_LATER;
	const uint64_t rma = CADGE_CAP_PUT | CADGE_CAP_GET | CADGE_CAP_FETCH_ADD | CADGE_CAP_COMPARE_SWAP;

	if ((caps & rpc_parts) && !(caps & CADGE_CAP_RPC))
		return "DELEGATE, REPLY_IN_SINK and REPLY_LATER need RPC";
	if ((caps & CADGE_CAP_RPC) && !(caps & (CADGE_CAP_REPLY_IN_SINK | CADGE_CAP_REPLY_LATER)))
		return "RPC needs REPLY_IN_SINK or REPLY_LATER: a call must be answered some time";
	if ((caps & CADGE_CAP_NOTIFY) && !(caps & CADGE_CAP_PUT))
		return "NOTIFY needs PUT";
	if ((caps & CADGE_CAP_RIGHTS) && !(caps & rma))
		return "RIGHTS needs a one-sided operation";
	if ((caps & CADGE_CAP_EVENT_FD) && !(caps & CADGE_CAP_WAIT))
		return "EVENT_FD needs WAIT";
	return NULL;
}

/*
 * Whether a module may hold this table: it is called as the layer is, or, where the layer was built for one of several
 * versions of its library, has a label behind that: "mpi-p2p", "mpi-p2p@openmpi-5.0.11".
 */
static inline bool cadge_module_named(const char *module, const struct cadge_layer *layer)
{
	const size_t bytes = strcspn(module, "@");

	return strlen(layer->name) == bytes && strncmp(module, layer->name, bytes) == 0 &&
	       (!module[bytes] || module[bytes + 1]);
}

/*
 * Checks a table that cadge_layer_take made, or one's own. Returns 0 when it may be used; otherwise -1 and one
 * sentence at `reason` (always terminated).
 */
static inline int cadge_layer_check(const struct cadge_layer *layer, char *reason, size_t reason_bytes)
{
	const uint64_t rma = CADGE_CAP_PUT | CADGE_CAP_GET | CADGE_CAP_FETCH_ADD | CADGE_CAP_COMPARE_SWAP;
	const char *wrong;

	if (!layer->name || !layer->style || !layer->substrate) {
		snprintf(reason, reason_bytes, "name, style or substrate is missing");
		return -1;
	}
	if (strlen(layer->name) != strlen(layer->style) + 1 + strlen(layer->substrate) ||
	    strncmp(layer->name, layer->style, strlen(layer->style)) != 0 ||
	    strcmp(layer->name + strlen(layer->style) + 1, layer->substrate) != 0) {
		snprintf(reason, reason_bytes, "name '%s' is not '%s-%s'", layer->name, layer->style,
			 layer->substrate);
		return -1;
	}

#define CADGE_CHECK_REQUIRED(slot)                                                                           \
	if (!layer->slot) {                                                                                  \
		snprintf(reason, reason_bytes, "required slot '%s' is missing", #slot);                      \
		return -1;                                                                                   \
	}
#define CADGE_CHECK_OPTIONAL(slot, bits)                                                                     \
	if ((layer->slot != NULL) != ((layer->caps & (bits)) != 0)) {                                        \
		snprintf(reason, reason_bytes, "slot '%s' is %s but its capability is %s", #slot,            \
			 layer->slot ? "there" : "missing",                                                  \
			 (layer->caps & (bits)) ? "claimed" : "not claimed");                                \
		return -1;                                                                                   \
	}
	CADGE_CHECK_REQUIRED(open)
	CADGE_CHECK_REQUIRED(close)
	CADGE_CHECK_REQUIRED(limits)
	CADGE_CHECK_REQUIRED(address)
	CADGE_CHECK_REQUIRED(connect)
	CADGE_CHECK_REQUIRED(disconnect)
	CADGE_CHECK_REQUIRED(post)
	CADGE_CHECK_REQUIRED(poll)
	CADGE_CHECK_REQUIRED(describe_path)
	CADGE_CHECK_REQUIRED(library)
	CADGE_CHECK_REQUIRED(semantics)
	CADGE_CHECK_REQUIRED(traits)
	CADGE_CHECK_OPTIONAL(wait, CADGE_CAP_WAIT)
	CADGE_CHECK_OPTIONAL(event, CADGE_CAP_EVENT_FD)
	CADGE_CHECK_OPTIONAL(release, CADGE_CAP_LEND)
	CADGE_CHECK_OPTIONAL(flush, CADGE_CAP_BATCH)
	CADGE_CHECK_OPTIONAL(reserve, CADGE_CAP_RESERVE)
	CADGE_CHECK_OPTIONAL(commit, CADGE_CAP_RESERVE)
	CADGE_CHECK_OPTIONAL(cancel, CADGE_CAP_RESERVE)
	CADGE_CHECK_OPTIONAL(call, CADGE_CAP_RPC)
	CADGE_CHECK_OPTIONAL(reply, CADGE_CAP_RPC)
	CADGE_CHECK_OPTIONAL(fail, CADGE_CAP_RPC)
	CADGE_CHECK_OPTIONAL(delegate, CADGE_CAP_DELEGATE)
	CADGE_CHECK_OPTIONAL(expose, rma)
	CADGE_CHECK_OPTIONAL(unexpose, rma)
	CADGE_CHECK_OPTIONAL(attach, rma)
	CADGE_CHECK_OPTIONAL(detach, rma)
	CADGE_CHECK_OPTIONAL(quiet, rma)
	CADGE_CHECK_OPTIONAL(put, CADGE_CAP_PUT)
	CADGE_CHECK_OPTIONAL(get, CADGE_CAP_GET)
	CADGE_CHECK_OPTIONAL(fetch_add, CADGE_CAP_FETCH_ADD)
	CADGE_CHECK_OPTIONAL(compare_swap, CADGE_CAP_COMPARE_SWAP)
	CADGE_CHECK_OPTIONAL(mem_alloc, CADGE_CAP_MEM_ALLOC)
	CADGE_CHECK_OPTIONAL(mem_free, CADGE_CAP_MEM_ALLOC)
	CADGE_CHECK_OPTIONAL(mem_reg, CADGE_CAP_MEM_REG)
	CADGE_CHECK_OPTIONAL(mem_dereg, CADGE_CAP_MEM_REG)
	CADGE_CHECK_OPTIONAL(counters, CADGE_CAP_COUNTERS)
	CADGE_CHECK_OPTIONAL(why, CADGE_CAP_WHY)
#undef CADGE_CHECK_REQUIRED
#undef CADGE_CHECK_OPTIONAL
	wrong = cadge_caps_wrong(layer->caps);
	if (wrong) {
		snprintf(reason, reason_bytes, "%s", wrong);
		return -1;
	}
	return 0;
}

/*
 * Copies what the entry function returned into *own_out, a table of the caller's own that lasts as long as it
 * is used, and checks it. Slots that the layer does not know are NULL there, capabilities that this program
 * does not know are gone. Returns as cadge_layer_check; on failure *own_out must not be used.
 */
static inline int cadge_layer_take(const struct cadge_layer *table, struct cadge_layer *own_out, char *reason,
				   size_t reason_bytes)
{
	uint32_t head[2]; /* abi, bytes: all that may be read before they are known */

	if (!table) {
		snprintf(reason, reason_bytes, "the entry function returned no table");
		return -1;
	}
	memcpy(head, table, sizeof(head));
	if (head[0] != CADGE_ABI) {
		snprintf(reason, reason_bytes,
			 "built for ABI %u, this program uses ABI %u: rebuild the layer", head[0], CADGE_ABI);
		return -1;
	}
	if (head[1] < CADGE_LAYER_BYTES_ABI1) {
		snprintf(reason, reason_bytes,
			 "its table has %u bytes, ABI %u has at least %u: rebuild the layer", head[1],
			 CADGE_ABI, CADGE_LAYER_BYTES_ABI1);
		return -1;
	}
	memset(own_out, 0, sizeof(*own_out));
	memcpy(own_out, table, head[1] < sizeof(*own_out) ? head[1] : sizeof(*own_out));
	own_out->bytes = (uint32_t)sizeof(*own_out);
	own_out->caps &= CADGE_CAPS_KNOWN;
	return cadge_layer_check(own_out, reason, reason_bytes);
}

/* A short English name of a return code, for messages and manifests. Never NULL. */
static inline const char *cadge_code_name(int code)
{
	switch (code) {
	case CADGE_DONE: return "done";
	case CADGE_QUEUED: return "queued";
	case CADGE_BUSY: return "busy";
	case CADGE_E_ARGUMENT: return "wrong argument";
	case CADGE_E_TOO_LARGE: return "too large";
	case CADGE_E_UNSUPPORTED: return "unsupported";
	case CADGE_E_LOST: return "lost";
	case CADGE_E_REFUSED: return "refused by the target";
	case CADGE_E_DOWN: return "peer down";
	case CADGE_E_LIBRARY: return "library error";
	case CADGE_E_TRANSPORT: return "transport or device not found";
	case CADGE_E_PORT: return "no free port";
	case CADGE_E_MEMORY: return "out of memory";
	case CADGE_E_PERMISSION: return "not permitted";
	case CADGE_E_ABSENT: return "missing on this node";
	default: return code > 0 ? "progress" : "unknown error";
	}
}

#endif
