/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of the wire on libfabric: one fi_injectdata or fi_senddata each, without a header of ours. They come into
 * landings that were posted before; a packet that is kept keeps its landing.
 */
#include "wire/ofi/state.h"

enum { EVENTS = 16 };

/* ---- sending ---- */

static inline ssize_t start_send(const struct cadge_link *link, struct cadge_packet *packet, size_t bytes,
				 bool inject)
{
	const uint64_t stamp = cadge_stamp(&link->greeting, CADGE_STAMP_DATA);
	struct fid_ep *ep = link->wire->ofi.ep;
	void *at = cadge_packet_data(packet);

	if (inject)
		return fi_injectdata(ep, at, bytes, stamp, link->addr);
	return fi_senddata(ep, at, bytes, NULL, stamp, link->addr, packet->library);
}

int cadge_wire_send(struct cadge_link *link, void *at, size_t bytes)
{
	struct cadge_packet *packet = cadge_packet_of(at);
	struct cadge_wire *wire = link->wire;
	const bool inject = bytes <= wire->inject_bytes;
	const ssize_t ret = start_send(link, packet, bytes, inject);

	if (UNLIKELY(ret)) {
		if (ret == -FI_EAGAIN) {
			wire->busy++;
			return CADGE_BUSY;
		}
		CADGE_POOL_GIVE(link->packets->idle, packet);
		return cadge_ofi_refused(&wire->ofi, ret); /* `down` follows from the queue */
	}
	if (inject) {
		CADGE_POOL_GIVE(link->packets->idle, packet);
		return CADGE_DONE;
	}
	cadge_packet_leaves(packet);
	wire->sent_late++;
	return CADGE_DONE;
}

int cadge_wire_send_held(struct cadge_link *link, void *at, size_t bytes)
{
	struct cadge_packet *packet = cadge_packet_of(at);
	struct cadge_wire *wire = link->wire;
	const bool inject = bytes <= wire->inject_bytes;
	ssize_t ret;

	if (UNLIKELY(packet->out))
		return CADGE_BUSY;
	packet->held = true;
	ret = start_send(link, packet, bytes, inject);
	if (UNLIKELY(ret)) {
		wire->busy += ret == -FI_EAGAIN;
		return ret == -FI_EAGAIN ? CADGE_BUSY : cadge_ofi_refused(&wire->ofi, ret);
	}
	if (!inject) {
		cadge_packet_leaves(packet);
		wire->sent_late++;
	}
	return CADGE_DONE;
}

int cadge_wire_note(struct cadge_link *link, const void *note)
{
	struct cadge_ofi *ofi = &link->wire->ofi;
	const ssize_t ret = fi_injectdata(ofi->ep, note, CADGE_WIRE_NOTE_BYTES,
					  cadge_stamp(&link->greeting, CADGE_STAMP_DATA), link->addr);

	if (!ret)
		return CADGE_DONE;
	return ret == -FI_EAGAIN ? CADGE_BUSY : cadge_ofi_refused(ofi, ret);
}

/* ---- ups and downs ---- */

static bool send_greeting(void *arg, enum cadge_stamp_kind kind)
{
	const struct cadge_link *link = arg;

	return !fi_injectdata(link->wire->ofi.ep, NULL, 0, cadge_stamp(&link->greeting, kind), link->addr);
}

static void announce(struct cadge_link *link)
{
	if (!link->announced)
		link->wire->pending--;
	link->announced = true;
	link->wire->events++;
}

static void greet_all(struct cadge_wire *wire)
{
	for (uint32_t i = 0; i < wire->peers; i++) {
		struct cadge_link *link = &wire->links[i];

		if (!link->packets || link->announced ||
		    (wire->sets.count && !cadge_greet(&link->greeting, send_greeting, link)))
			continue;
		announce(link);
		link->state.up = true;
		wire->calls->up(wire->arg, i);
	}
}

static void link_down(struct cadge_link *link)
{
	if (link->state.broken || !link->packets)
		return;
	announce(link);
	link->state.up = false;
	link->state.broken = true;
	link->wire->calls->down(link->wire->arg, link->peer, CADGE_E_DOWN);
}

/* ---- receiving ---- */

int cadge_wire_post_landings(struct cadge_wire *wire, uint32_t wanted)
{
	while (wire->posted < wanted && wire->landings) {
		struct cadge_packet *landing = wire->landings;
		ssize_t ret = fi_recv(wire->ofi.ep, cadge_packet_data(landing), wire->facts.packet_bytes_max,
				      NULL, FI_ADDR_UNSPEC, landing->library);

		if (ret)
			return ret == -FI_EAGAIN ? CADGE_DONE : cadge_ofi_code(ret);
		wire->landings = landing->next;
		wire->posted++;
	}
	return CADGE_DONE;
}

void cadge_wire_release(struct cadge_wire *wire, void *data)
{
	struct cadge_packet *landing = cadge_packet_of(data);

	CADGE_POOL_GIVE(wire->landings, landing);
}

/* Returns whether the style keeps the landing. */
static enum cadge_keep received(struct cadge_wire *wire, const struct fi_cq_data_entry *entry, void *data)
{
	const uint32_t stamp = (uint32_t)entry->data, slot = cadge_stamp_slot(stamp);
	struct cadge_link *link = slot < wire->peers ? &wire->links[slot] : NULL;

	if (UNLIKELY(!link || !cadge_stamp_fits(&link->greeting, stamp) ||
		     !(entry->flags & FI_REMOTE_CQ_DATA))) {
		wire->stale++;
		return CADGE_TAKEN;
	}
	switch (cadge_stamp_kind(stamp)) {
	case CADGE_STAMP_DATA: break;
	case CADGE_STAMP_HELLO: link->greeting.hello_received = true; return CADGE_TAKEN;
	case CADGE_STAMP_WELCOME: link->greeting.welcome_received = true; return CADGE_TAKEN;
	}
	if (UNLIKELY(!link->announced))
		greet_all(wire); /* the peer was up first: its WELCOME came earlier */
	if (UNLIKELY(!link->state.up)) {
		wire->stale++; /* of a stranger, or of a link that is down */
		return CADGE_TAKEN;
	}
	wire->events++;
	return wire->calls->packet(wire->arg, slot, data, entry->len);
}

static void sent(struct cadge_packet *packet, bool failed)
{
	struct cadge_link *link = cadge_packet_back(packet);

	if (UNLIKELY(failed && link))
		link_down(link);
}

static bool is_landing(const struct cadge_wire *wire, const void *at)
{
	const uintptr_t offset_bytes = (uintptr_t)at - (uintptr_t)wire->landing_pool;

	return offset_bytes < wire->landings_count * wire->sets.stride_bytes;
}

static struct cadge_link *link_of(struct cadge_ofi_link *rma)
{
	return (struct cadge_link *)(void *)((uint8_t *)rma - offsetof(struct cadge_link, rma));
}

/* A failed operation. What cannot be distinguished breaks the context; with one peer it is clear whose connection broke. */
static int failed_entry(struct cadge_wire *wire)
{
	struct fi_cq_err_entry error = {0};
	ssize_t ret = cadge_ofi_read_error(&wire->ofi, &error);
	struct cadge_packet *packet;
	struct cadge_ofi_link *rma;

	if (ret == -FI_EAGAIN)
		return CADGE_DONE;
	if (ret < 0)
		return CADGE_E_LIBRARY;
	if (wire->rma.ops && cadge_ofi_rma_owns(&wire->rma, error.op_context)) {
		rma = cadge_ofi_rma_link(error.op_context);
		cadge_ofi_rma_completed(&wire->rma, error.op_context, CADGE_E_DOWN);
		if (rma)
			link_down(link_of(rma));
		return CADGE_DONE;
	}
	packet = cadge_packet_find(&wire->sets, error.op_context);
	if (packet) {
		sent(packet, true);
		return CADGE_DONE;
	}
	if (is_landing(wire, error.op_context)) {
		packet = error.op_context;
		wire->posted--;
		CADGE_POOL_GIVE(wire->landings, packet);
	}
	if (wire->peers != 1)
		return CADGE_E_LIBRARY;
	link_down(&wire->links[0]);
	return CADGE_DONE;
}

static void completed(struct cadge_wire *wire, const struct fi_cq_data_entry *entry)
{
	struct cadge_packet *packet = entry->op_context;

	if (entry->flags & FI_RECV) {
		wire->posted--;
		if (received(wire, entry, cadge_packet_data(packet)) == CADGE_TAKEN)
			CADGE_POOL_GIVE(wire->landings, packet);
	} else if (packet &&
		   (!wire->sets.count || (wire->rma.ops && cadge_ofi_rma_owns(&wire->rma, packet)))) {
		cadge_ofi_rma_completed(&wire->rma, packet, CADGE_DONE);
	} else if (packet) {
		sent(packet, false);
	}
}

int cadge_wire_progress(struct cadge_wire *wire, unsigned int rounds)
{
	struct fi_cq_data_entry entry[EVENTS];

	wire->events = 0;
	for (; rounds && !wire->events; rounds--) {
		ssize_t count = fi_cq_read(wire->ofi.cq, entry, EVENTS);
		int code;

		for (ssize_t i = 0; i < count; i++)
			completed(wire, &entry[i]);
		if (UNLIKELY(count < 0 && count != -FI_EAGAIN)) {
			code = count == -FI_EAVAIL ? failed_entry(wire) : CADGE_E_LIBRARY;
			if (code < 0)
				return code;
		}
		if (wire->posted < wire->posted_max) {
			/* One landing more when there is time to spare, so that posting it delays no answer. */
			code = cadge_wire_post_landings(wire, count == -FI_EAGAIN ? wire->posted + 1
										  : wire->posted_low);
			if (code < 0)
				return code;
		}
		if (UNLIKELY(wire->pending))
			greet_all(wire);
	}
	return wire->events;
}

/* A greeting that found no connection yet, and a landing that found no room, are tried again by progress. */
#define RETRY_NS UINT64_C(1000000)

static bool must_retry(const struct cadge_wire *wire)
{
	return wire->pending || (wire->posted_max && !wire->posted);
}

int cadge_wire_wait(struct cadge_wire *wire, uint64_t timeout_ns)
{
	return cadge_ofi_wait(&wire->ofi, must_retry(wire) && timeout_ns > RETRY_NS ? RETRY_NS : timeout_ns);
}

int cadge_wire_event(struct cadge_wire *wire, int *fd_out, uint64_t *due_ns_out)
{
	const int code = cadge_ofi_event(&wire->ofi, fd_out);

	if (code == CADGE_DONE)
		*due_ns_out = must_retry(wire) ? RETRY_NS : UINT64_MAX;
	return code;
}
