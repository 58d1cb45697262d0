/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire on UCX: a packet is one eager active message of at most one fragment, without a header of ours. Who sent
 * it is told by its id, which each life of a link has anew. A greeting is an active message with a header.
 *
 * UCX settles an endpoint at its first message above the shortest path, by a request that the peer's library has to
 * answer, and keeps all that follows until then. So a greeting is as long as the longest packet, and nothing is up
 * before it has left.
 */
#include "wire/ucx/state.h"

#include <stdlib.h>
#include <string.h>

#define PACKET_BYTES_MAX    8128u /* one fragment of UCX's default segments */
#define PEERS_MAX           (CADGE_UCX_IDS / 4)
#define WIRE_OVERHEAD_BYTES 8u /* UCX's own header */

const char cadge_wire_substrate[] = "ucx";
const uint32_t cadge_wire_packet_bytes_max = PACKET_BYTES_MAX;
const struct cadge_option cadge_wire_options[] = {
	CADGE_UCX_OPTION_TRANSPORTS,
	CADGE_WIRE_OPTION_OFF,
	CADGE_WIRE_OPTION_PACKET_BYTES,
	{NULL, NULL, NULL},
};

#include "wire/link.h"

/* ---- receiving ---- */

static void link_up(struct cadge_link *link)
{
	if (link->state.up || link->state.broken || !link->greeting_left)
		return;
	link->state.up = true;
	link->wire->events++;
	link->wire->calls->up(link->wire->arg, link->peer);
}

/* What is not a plain packet: a greeting, or what no peer of ours sends. */
static __attribute__((noinline)) void on_greeting(struct cadge_link *link, bool is_greeting)
{
	if (!is_greeting) {
		cadge_wire_break(link);
		return;
	}
	link->greeted = true;
	link->wire->events_pending = true;
}

static ucs_status_t on_packet(void *arg, const void *header, size_t header_bytes, void *data, size_t bytes,
			      const ucp_am_recv_param_t *param)
{
	struct cadge_link *link = arg;
	struct cadge_wire *wire = link->wire;

	(void)header;
	if (UNLIKELY(header_bytes || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV))) {
		on_greeting(link, header_bytes && !(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV));
		return UCS_OK;
	}
	if (UNLIKELY(!wire->inside || !link->ep))
		return UCS_OK; /* closing, or a stranger */
	if (UNLIKELY(!link->state.up)) {
		link->greeting_left = true; /* who sends has had it, whatever the library has told us yet */
		link_up(link);
	}
	wire->events++;
	return wire->calls->packet(wire->arg, link->peer, data, bytes) == CADGE_KEEP ? UCS_INPROGRESS
										     : UCS_OK;
}

void cadge_wire_release(struct cadge_wire *wire, void *data)
{
	ucp_am_data_release(wire->ucx.worker, data);
}

/* ---- sending ---- */

/* A request of the library's for a packet has ended; returns its link, NULL where that life has ended. */
static struct cadge_link *packet_ended(void *request, ucs_status_t status, struct cadge_packet *packet)
{
	struct cadge_link *link = cadge_packet_back(packet);

	ucp_request_free(request);
	if (link && status != UCS_OK) {
		cadge_ucx_failed(&link->wire->ucx, "a send", status);
		cadge_wire_break(link);
	}
	return link;
}

static void on_sent(void *request, ucs_status_t status, void *arg)
{
	packet_ended(request, status, arg);
}

static void on_greeting_sent(void *request, ucs_status_t status, void *arg)
{
	struct cadge_link *link = packet_ended(request, status, arg);

	if (link && status == UCS_OK)
		link->greeting_left = link->wire->events_pending = true;
}

/* What the library answered to a packet, if it did not just take it. */
static __attribute__((noinline)) int sent_late(struct cadge_link *link, struct cadge_packet *packet,
					       void *request)
{
	if (UCS_PTR_IS_ERR(request)) {
		if (!packet->held)
			CADGE_POOL_GIVE(link->packets->idle, packet);
		cadge_ucx_failed(&link->wire->ucx, "a send", UCS_PTR_STATUS(request));
		cadge_wire_break(link);
		return CADGE_E_DOWN;
	}
	cadge_packet_leaves(packet);
	return CADGE_DONE;
}

static inline void *start_send(const struct cadge_link *link, void *at, size_t bytes)
{
	ucp_request_param_t param;

	param.op_attr_mask =
		UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
	param.cb.send = on_sent;
	param.user_data = cadge_packet_of(at);
	param.flags = UCP_AM_SEND_FLAG_EAGER;
	return ucp_am_send_nbx(link->ep, link->id_out, NULL, 0, at, bytes, &param);
}

int cadge_wire_send(struct cadge_link *link, void *at, size_t bytes)
{
	struct cadge_packet *packet = cadge_packet_of(at);
	void *request = start_send(link, at, bytes);

	if (UNLIKELY(request)) {
		link->wire->sent_late++;
		return sent_late(link, packet, request);
	}
	CADGE_POOL_GIVE(link->packets->idle, packet);
	return CADGE_DONE;
}

int cadge_wire_send_held(struct cadge_link *link, void *at, size_t bytes)
{
	struct cadge_packet *packet = cadge_packet_of(at);
	void *request;

	if (UNLIKELY(packet->out))
		return CADGE_BUSY;
	packet->held = true;
	request = start_send(link, at, bytes);
	if (UNLIKELY(request)) {
		link->wire->sent_late++;
		return sent_late(link, packet, request);
	}
	return CADGE_DONE;
}

static int greet(struct cadge_link *link)
{
	static const unsigned char greeting[4] = {'c', 'd', 'g', '2'};
	struct cadge_packet *packet = CADGE_POOL_TAKE(link->packets->idle);
	ucp_request_param_t param = {
		.op_attr_mask =
			UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_AM_SEND_FLAG_EAGER,
		.cb.send = on_greeting_sent,
		.user_data = packet,
	};
	const size_t bytes = link->wire->facts.packet_bytes_max;
	void *request, *data = cadge_packet_data(packet);

	memset(data, 0, bytes); /* it may have been another peer's */
	request = ucp_am_send_nbx(link->ep, link->id_out, greeting, sizeof(greeting), data, bytes, &param);
	if (request)
		return sent_late(link, packet, request);
	CADGE_POOL_GIVE(link->packets->idle, packet);
	link->greeting_left = true;
	return CADGE_DONE;
}

/* ---- progress ---- */

/* What is not told where it happened: ups and downs, and what ended outside of progress. */
static __attribute__((noinline)) void deliver_events(struct cadge_wire *wire)
{
	wire->events_pending = false;
	cadge_wire_report_ends(wire);
	for (uint32_t i = 0; i < wire->peers; i++) {
		struct cadge_link *link = &wire->links[i];

		if (!link->ep)
			continue;
		if (link->greeted)
			link_up(link);
		if (link->state.broken && !link->state.reported) {
			link->state.reported = true;
			link->state.up = false;
			wire->events++;
			wire->calls->down(wire->arg, i, CADGE_E_DOWN);
		}
	}
}

/* Returns what the library says that it has done: over TCP a peer's puts come so, and no upcall reports them. */
static inline unsigned int progress_once(struct cadge_wire *wire)
{
	unsigned int done;

	wire->events = 0;
	wire->inside = true;
	done = ucp_worker_progress(wire->ucx.worker);
	if (UNLIKELY(wire->events_pending))
		deliver_events(wire);
	wire->inside = false;
	return done;
}

int cadge_wire_progress(struct cadge_wire *wire, unsigned int rounds)
{
	do
		progress_once(wire);
	while (--rounds && !wire->events);
	return wire->events;
}

int cadge_wire_wait(struct cadge_wire *wire, uint64_t timeout_ns)
{
	return wire->events_pending ? CADGE_DONE : cadge_ucx_wait(&wire->ucx, timeout_ns);
}

int cadge_wire_event(struct cadge_wire *wire, int *fd_out, uint64_t *due_ns_out)
{
	return wire->events_pending && wire->ucx.wake_fd >= 0
		       ? CADGE_BUSY
		       : cadge_ucx_event(&wire->ucx, fd_out, due_ns_out);
}

/* ---- connecting ---- */

static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	struct cadge_link *link = arg;

	if (link->ep != ep)
		return;
	cadge_ucx_failed(&link->wire->ucx, "the connection", status);
	cadge_wire_break(link);
}

int cadge_wire_address(struct cadge_wire *wire, uint32_t peer, struct cadge_blob_out *blob)
{
	struct cadge_link *link;
	int code;

	if (peer >= wire->peers)
		return CADGE_E_ARGUMENT;
	link = &wire->links[peer];
	if (wire->messages && link->id_in == CADGE_UCX_IDS) {
		code = cadge_ucx_take_id(&wire->ucx, on_packet, link,
					 wire->features & CADGE_WIRE_KEEP ? UCP_AM_FLAG_PERSISTENT_DATA : 0,
					 &link->id_in);
		if (code != CADGE_DONE)
			return code;
	}
	cadge_blob_u32(blob, link->id_in);
	cadge_blob_bytes(blob, wire->ucx.address, wire->ucx.address_bytes);
	return blob->ok ? CADGE_DONE : CADGE_E_TOO_LARGE;
}

/* Ends what connect has begun. */
static void link_end(struct cadge_link *link)
{
	cadge_packet_set_end(link->packets);
	link->packets = NULL;
	cadge_wire_operations_end(link);
	cadge_ucx_disconnect(&link->wire->ucx, link->ep);
	link->ep = NULL;
}

int cadge_wire_connect(struct cadge_wire *wire, uint32_t peer, struct cadge_blob_in *in,
		       struct cadge_link **link_out)
{
	const unsigned int id = cadge_blob_take_u32(in);
	size_t address_bytes;
	const void *address = cadge_blob_take_bytes(in, &address_bytes);
	struct cadge_link *link;
	int code;

	if (!in->ok || id >= CADGE_UCX_IDS + !wire->messages || !address_bytes || peer >= wire->peers ||
	    wire->links[peer].ep)
		return CADGE_E_ARGUMENT;
	link = &wire->links[peer];
	link->packets = cadge_packet_set_begin(&wire->sets, link);
	if (!link->packets)
		return CADGE_E_MEMORY;
	code = cadge_ucx_connect(&wire->ucx, address, on_error, link, &link->ep);
	if (code != CADGE_DONE) {
		cadge_packet_set_end(link->packets);
		link->ep = NULL;
		return code;
	}
	link->id_out = id;
	link->state = (struct cadge_state){.up = false};
	link->greeting_left = !wire->sets.count;
	link->greeted |= !wire->sets.count;
	if (wire->features & CADGE_WIRE_REMOTE)
		code = cadge_wire_operations_begin(link);
	if (code == CADGE_DONE && wire->sets.count)
		code = greet(link);
	if (code != CADGE_DONE) {
		link_end(link);
		return code;
	}
	wire->events_pending = true; /* the peer's greeting may have come before */
	*link_out = link;
	return CADGE_DONE;
}

int cadge_wire_disconnect(struct cadge_link *link)
{
	if (!link->ep)
		return CADGE_E_ARGUMENT;
	if (link->id_in != CADGE_UCX_IDS && cadge_ucx_give_id(&link->wire->ucx, link->id_in) != CADGE_DONE)
		return CADGE_E_LIBRARY;
	link->id_in = CADGE_UCX_IDS;
	link->greeted = link->state.up = false;
	link_end(link);
	return CADGE_DONE;
}

int cadge_wire_describe(struct cadge_link *link, struct cadge_path *path_out)
{
	return link->ep ? cadge_ucx_describe(&link->wire->ucx, link->ep, path_out) : CADGE_E_DOWN;
}

void cadge_wire_counters(const struct cadge_wire *wire,
			 void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	if (wire->sets.count)
		each(arg, "packets_sent_late", wire->sent_late);
}

const char *cadge_wire_why(const struct cadge_wire *wire)
{
	return wire->ucx.why;
}

/* ---- life ---- */

/*
 * What ends without the peer's doing is waited for, no longer than so many looks. Within a host UCX 1.18 lets the kernel copy, in
 * pieces, which our own progress ends; and it aborts where a worker ends in the middle. Over verbs the peer's device
 * acknowledges a packet: a credit that left just before close needs no more than that.
 */
#define CLOSE_ROUNDS 100000u

static bool device_works(const struct cadge_wire *wire)
{
	for (uint32_t i = 0; i < wire->peers; i++) {
		const struct cadge_link *link = &wire->links[i];

		if (link->ep && !link->state.broken &&
		    (link->packets->out || (link->operations && link->operations->rma.under_way)))
			return true;
	}
	return false;
}

static void finish(struct cadge_wire *wire)
{
	const bool host = wire->ucx.place == CADGE_PLACE_HOST, verbs = wire->ucx.verbs;

	for (unsigned int round = 0; round < CLOSE_ROUNDS && ((host && cadge_wire_operations_out(wire)) ||
							      (verbs && device_works(wire)));
	     round++)
		ucp_worker_progress(wire->ucx.worker);
}

/* The library still holds a packet or memory of an operation. */
static bool unfinished(const struct cadge_wire *wire)
{
	return cadge_packets_out(&wire->sets) || cadge_wire_operations_out(wire);
}

/* What is unfinished is not carried on with: see ucx_close of native-ucx. */
void cadge_wire_close(struct cadge_wire *wire)
{
	if (!wire)
		return;
	if (wire->ucx.worker)
		finish(wire);
	wire->ucx.unfinished = unfinished(wire);
	for (uint32_t i = 0; i < wire->peers; i++) {
		struct cadge_link *link = &wire->links[i];

		cadge_wire_operations_end(link);
		if (link->ep && !link->state.broken && !wire->ucx.unfinished)
			cadge_ucx_disconnect(&wire->ucx, link->ep);
	}
	cadge_ucx_drain(&wire->ucx);
	wire->ucx.unfinished = unfinished(
		wire); /* what a life left behind when it ended has come back by now, or never will */
	cadge_ucx_memory_destroy(&wire->memory);
	cadge_ucx_close(&wire->ucx);
	cadge_wire_operations_destroy(wire);
	cadge_packet_sets_destroy(&wire->sets);
	free(wire);
}

int cadge_wire_open(const struct cadge_open_args *args, const struct cadge_wire_needs *needs,
		    struct cadge_wire **wire_out)
{
	const bool messages = needs->packets || needs->features & CADGE_WIRE_NOTES;
	const uint64_t features = (messages ? (uint64_t)UCP_FEATURE_AM : 0) |
				  (needs->features & CADGE_WIRE_REMOTE ? (uint64_t)UCP_FEATURE_RMA : 0) |
				  (needs->features & CADGE_WIRE_ATOMICS ? (uint64_t)UCP_FEATURE_AMO64 : 0);
	struct cadge_wire *wire;
	int code = check(args, needs, CADGE_CAP_HOST | CADGE_CAP_NET | CADGE_CAP_WAIT, PEERS_MAX);

	if (code != CADGE_DONE)
		return code;
	wire = make_wire(args, needs);
	if (!wire)
		return CADGE_E_MEMORY;
	wire->messages = messages;
	code = cadge_ucx_open(args, features, &wire->ucx);
	if (code != CADGE_DONE) {
		free(wire);
		return code;
	}
	wire->peers = args->peers_max;
	wire->facts = (struct cadge_wire_facts){
		.threads_move = cadge_ucx_thread_role(&wire->ucx) == CADGE_THREADS_PROGRESS,
		.packet_bytes_max = (uint32_t)cadge_least(needs->packet_bytes, PACKET_BYTES_MAX),
		/*
		 * No device_guards, over verbs either: UCX registers with all rights, and what is exposed of an allocation
		 * has the key of it all.
		 */
		.put_bytes_max = needs->features & CADGE_WIRE_REMOTE ? WIRE_PUT_BYTES_MAX : 0,
		.sleeps = wire->ucx.wake_fd >= 0,
		.adds = needs->features & CADGE_WIRE_ATOMICS,
		.swaps = needs->features & CADGE_WIRE_ATOMICS,
		.operations = needs->operations,
		.wire_overhead_bytes = WIRE_OVERHEAD_BYTES,
	};
	wire->sets = make_sets(wire, needs);
	wire->memory.context = wire->ucx.context;
	for (uint32_t i = 0; i < wire->peers; i++)
		wire->links[i] = (struct cadge_link){.wire = wire, .peer = i, .id_in = CADGE_UCX_IDS};
	wire->operations_max = needs->operations;
	wire->ends = calloc((size_t)needs->operations * wire->peers + 1, sizeof(*wire->ends));
	if (!wire->ends) {
		cadge_wire_close(wire);
		return cadge_refuse(args, CADGE_E_MEMORY,
				    "out of memory for %u operations with each of %u peers",
				    needs->operations, args->peers_max);
	}
	*wire_out = wire;
	return CADGE_DONE;
}
