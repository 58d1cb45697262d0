/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire on MPI. Packets, within a host, are messages (MPI_Isend) below the length that MPI sends with its envelope, remote
 * memory is the window of window.h. Who sent a packet is told by rank and tag, and each life of a link has a tag
 * of its own. A greeting is a message without bytes.
 *
 * Between hosts the target's library has to run for a put to arrive, whatever serves the window; the styles that need packets
 * promise that it need not, so open refuses them there.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "wire/mpi/path.h"
#include "wire/mpi/which.h"
#include "wire/mpi/window.h"
#include "wire/mpi/state.h"
#include "wire/mpi/world.h"

/*
 * Open MPI's shared memory sends up to 4,096 bytes, its own header included, without the receiver's doing; that of MPICH sends
 * more, in cells of 16 kB.
 */
#define PACKET_BYTES_MAX 3968u
#define OVERHEAD_BYTES   64u /* most of MPI's own header */
#define PEERS_MAX        1024u
#define PEER_ALLOC_BYTES ((size_t)4 << 20) /* of the window, for what styles take for themselves */
#define DRAIN_MS         200
#define IDLE_POLLS       64u

const char cadge_wire_substrate[] = "mpi";
const uint32_t cadge_wire_packet_bytes_max = PACKET_BYTES_MAX;
const struct cadge_option cadge_wire_options[] = {
	CADGE_WIRE_OPTION_OFF,
	CADGE_WIRE_OPTION_PACKET_BYTES,
	{NULL, NULL, NULL},
};

#include "wire/link.h"

bool cadge_wire_went_well(struct cadge_wire *wire, const char *call, int ret)
{
	return __builtin_expect(ret == MPI_SUCCESS, 1) ||
	       mpi_world_why(call, ret, wire->why, sizeof(wire->why));
}

/* MPI may go on using the buffers of this wire. */
static void mark_unclean(struct cadge_wire *wire)
{
	wire->unclean = true;
	mpi_world_mark_unclean();
}

static void link_break(struct cadge_link *link)
{
	mark_unclean(link->wire);
	link->state.broken = true;
}

/* ---- sending ---- */

static MPI_Request *request_of(struct cadge_packet *packet)
{
	_Static_assert(sizeof(MPI_Request) <= sizeof(packet->library), "room for a request");
	return (MPI_Request *)(void *)packet->library;
}

/* The first send of the link that is not finished is the one that MPI is asked about. */
static void set_first(const struct cadge_link *link)
{
	struct cadge_wire *wire = link->wire;

	wire->requests[wire->peers + link->peer] =
		link->sending ? *request_of(link->sending) : MPI_REQUEST_NULL;
}

static void send_unfinished(struct cadge_link *link, struct cadge_packet *packet)
{
	packet->next = NULL;
	if (link->sending) {
		link->sending_last->next = packet;
	} else {
		link->sending = packet;
		link->wire->senders++;
		set_first(link);
	}
	link->sending_last = packet;
}

static void send_finished(struct cadge_link *link)
{
	struct cadge_packet *packet = CADGE_POOL_TAKE(link->sending);

	cadge_packet_back(packet);
	link->wire->senders -= !link->sending;
	set_first(link);
}

/*
 * DONE: the packet is MPI's or has left. MPI may call a send unfinished that has left: beyond some 256 bytes until the
 * receiver has looked.
 */
static int begin_send(struct cadge_link *link, struct cadge_packet *packet, size_t bytes)
{
	struct cadge_wire *wire = link->wire;
	int done = 0;

	if (!cadge_wire_went_well(wire, "MPI_Isend",
				  MPI_Isend(cadge_packet_data(packet), (int)bytes, MPI_BYTE, link->rank,
					    link->tag_out, MPI_COMM_WORLD, request_of(packet))) ||
	    !cadge_wire_went_well(wire, "MPI_Test", MPI_Test(request_of(packet), &done, MPI_STATUS_IGNORE))) {
		if (!packet->held)
			cadge_packet_drop(packet);
		link_break(link);
		return CADGE_E_DOWN;
	}
	cadge_packet_leaves(packet);
	if (done)
		cadge_packet_back(packet);
	else
		send_unfinished(link, packet);
	return CADGE_DONE;
}

int cadge_wire_send(struct cadge_link *link, void *at, size_t bytes)
{
	struct cadge_packet *packet = cadge_packet_of(at);

	if (UNLIKELY(link->state.broken)) {
		cadge_packet_drop(packet);
		return CADGE_E_DOWN;
	}
	return begin_send(link, packet, bytes);
}

int cadge_wire_send_held(struct cadge_link *link, void *at, size_t bytes)
{
	struct cadge_packet *packet = cadge_packet_of(at);

	packet->held = true;
	if (UNLIKELY(link->state.broken))
		return CADGE_E_DOWN;
	return packet->out ? CADGE_BUSY : begin_send(link, packet, bytes);
}

/* The link ends, and MPI still reads these packets: their set is used again when MPI has finished. */
static void leave_over(struct cadge_link *link)
{
	struct cadge_wire *wire = link->wire;

	if (!link->sending)
		return;
	link->sending_last->next = wire->left_over;
	wire->left_over = link->sending;
	link->sending = NULL;
	wire->senders--;
	set_first(link);
}

static __attribute__((noinline)) void find_left_over(struct cadge_wire *wire)
{
	struct cadge_packet **at = &wire->left_over;

	while (*at) {
		struct cadge_packet *packet = *at;
		int done = 0;

		if (!cadge_wire_went_well(wire, "MPI_Test",
					  MPI_Test(request_of(packet), &done, MPI_STATUS_IGNORE)))
			mark_unclean(wire);
		if (done) {
			*at = packet->next;
			cadge_packet_back(packet);
		} else {
			at = &packet->next;
		}
	}
}

/* ---- receiving ---- */

/* One at a time: what comes before it is posted, MPI keeps. */
static void post_receive(struct cadge_link *link)
{
	struct cadge_wire *wire = link->wire;

	link->landing = CADGE_POOL_TAKE(wire->landings);
	if (link->landing && !cadge_wire_went_well(wire, "MPI_Irecv",
						   MPI_Irecv(link->landing, (int)wire->facts.packet_bytes_max,
							     MPI_BYTE, link->rank, link->tag_in,
							     MPI_COMM_WORLD, &wire->requests[link->peer])))
		link_break(link);
}

void cadge_wire_release(struct cadge_wire *wire, void *data)
{
	struct wire_landing *landing = data;

	CADGE_POOL_GIVE(wire->landings, landing);
}

static void link_up(struct cadge_link *link)
{
	link->state.up = true;
	link->wire->events++;
	link->wire->calls->up(link->wire->arg, link->peer);
}

static void received(struct cadge_link *link, const MPI_Status *status)
{
	struct cadge_wire *wire = link->wire;
	struct wire_landing *landing = link->landing;
	enum cadge_keep keep = CADGE_TAKEN;
	int bytes = -1;

	link->landing = NULL;
	if (UNLIKELY(!cadge_wire_went_well(wire, "MPI_Get_count", MPI_Get_count(status, MPI_BYTE, &bytes)) ||
		     bytes < 0 || (bytes > 0) != link->state.up)) {
		link_break(link);
	} else if (UNLIKELY(!bytes)) {
		link_up(link);
	} else {
		wire->events++;
		keep = wire->calls->packet(wire->arg, link->peer, landing, (size_t)bytes);
	}
	if (keep == CADGE_TAKEN)
		CADGE_POOL_GIVE(wire->landings, landing);
	if (!link->state.broken)
		post_receive(link);
}

/* ---- progress ---- */

/* Ends of channels, and receives that found no room. */
static __attribute__((noinline)) void deliver_events(struct cadge_wire *wire)
{
	for (uint32_t i = 0; i < wire->peers; i++) {
		struct cadge_link *link = &wire->links[i];

		if (!link->connected)
			continue;
		if (link->state.broken && !link->state.reported) {
			link->state.reported = true;
			link->state.up = false;
			wire->events++;
			wire->calls->down(wire->arg, i, CADGE_E_DOWN);
		} else if (!link->state.broken && !link->landing) {
			post_receive(link);
		}
	}
}

static void break_all(struct cadge_wire *wire)
{
	for (uint32_t i = 0; i < wire->peers; i++)
		if (wire->links[i].connected)
			link_break(&wire->links[i]);
}

/* Whether any link needs deliver_events. */
static bool has_events(const struct cadge_wire *wire)
{
	for (uint32_t i = 0; i < wire->peers; i++)
		if (wire->links[i].connected && !wire->links[i].state.reported &&
		    (wire->links[i].state.broken || !wire->links[i].landing))
			return true;
	return false;
}

static void test_requests(struct cadge_wire *wire)
{
	int count = 0;

	if (!cadge_wire_went_well(wire, "MPI_Testsome",
				  MPI_Testsome((int)wire->peers * (wire->senders ? 2 : 1), wire->requests,
					       &count, wire->found, wire->statuses)))
		break_all(wire);
	for (int i = 0; i < count; i++) {
		const uint32_t at = (uint32_t)wire->found[i];

		if (at < wire->peers)
			received(&wire->links[at], &wire->statuses[i]);
		else
			send_finished(&wire->links[at - wire->peers]);
	}
	if (UNLIKELY(has_events(wire)))
		deliver_events(wire);
	if (UNLIKELY(wire->left_over))
		find_left_over(wire);
}

static __attribute__((noinline)) void report_ups(struct cadge_wire *wire)
{
	wire->events_pending = false;
	for (uint32_t i = 0; i < wire->peers; i++)
		if (wire->links[i].connected && !wire->links[i].state.up)
			link_up(&wire->links[i]);
}

/* Without packets MPI is given the processor where somebody needs it, and else every so many polls. DONE or E_LIBRARY. */
static inline int poll_without_packets(struct cadge_wire *wire)
{
	if (UNLIKELY(wire->events_pending))
		report_ups(wire);
	if (UNLIKELY(!wire->direct))
		return cadge_wire_far_poll(wire);
	return ++wire->polls % IDLE_POLLS ? CADGE_DONE : cadge_wire_serve(wire);
}

int cadge_wire_progress(struct cadge_wire *wire, unsigned int rounds)
{
	wire->events = 0;
	for (; rounds && !wire->events; rounds--) {
		if (wire->sets.count)
			test_requests(wire);
		else if (poll_without_packets(wire) < 0)
			return CADGE_E_LIBRARY;
	}
	return wire->events;
}

int cadge_wire_wait(struct cadge_wire *wire, uint64_t timeout_ns)
{
	(void)wire, (void)timeout_ns;
	return CADGE_E_UNSUPPORTED;
}

int cadge_wire_event(struct cadge_wire *wire, int *fd_out, uint64_t *due_ns_out)
{
	(void)wire, (void)fd_out, (void)due_ns_out;
	return CADGE_E_UNSUPPORTED;
}

/* ---- connecting ---- */

int cadge_wire_address(struct cadge_wire *wire, uint32_t peer, struct cadge_blob_out *blob)
{
	int rank;

	if (peer >= wire->peers)
		return CADGE_E_ARGUMENT;
	if (!cadge_wire_went_well(wire, "MPI_Comm_rank", MPI_Comm_rank(MPI_COMM_WORLD, &rank)))
		return CADGE_E_LIBRARY;
	if (!wire->links[peer].tag_in)
		wire->links[peer].tag_in = mpi_world_new_tag();
	cadge_blob_u32(blob, (uint32_t)rank);
	cadge_blob_u32(blob, (uint32_t)wire->links[peer].tag_in);
	return blob->ok ? CADGE_DONE : CADGE_E_TOO_LARGE;
}

/* A message without bytes; begins where the packet would. */
static int greet(struct cadge_link *link)
{
	struct cadge_packet *packet = CADGE_POOL_TAKE(link->packets->idle);

	return packet ? begin_send(link, packet, 0) : CADGE_E_MEMORY;
}

/* Takes what MPI has kept of the life before, which would stay with it until the process ends. */
static void absorb_past(struct cadge_link *link)
{
	struct wire_landing *landing = link->past_tag ? CADGE_POOL_TAKE(link->wire->landings) : NULL;
	int there = landing != NULL;

	while (there && MPI_Iprobe(link->past_rank, link->past_tag, MPI_COMM_WORLD, &there,
				   MPI_STATUS_IGNORE) == MPI_SUCCESS)
		if (there &&
		    MPI_Recv(landing, (int)link->wire->facts.packet_bytes_max, MPI_BYTE, link->past_rank,
			     link->past_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS)
			break;
	if (landing)
		CADGE_POOL_GIVE(link->wire->landings, landing);
}

/* Ends what connect has begun. */
static void link_end(struct cadge_link *link)
{
	struct cadge_wire *wire = link->wire;

	if (link->landing) {
		MPI_Request *request = &wire->requests[link->peer];

		/* of one that was cancelled MPI_Wait returns at once (MPI-3.1, section 3.8.4) */
		if (MPI_Cancel(request) != MPI_SUCCESS || MPI_Wait(request, MPI_STATUS_IGNORE) != MPI_SUCCESS)
			mark_unclean(wire);
		else
			CADGE_POOL_GIVE(wire->landings, link->landing);
	}
	leave_over(link);
	cadge_wire_far_end(link);
	cadge_packet_set_end(link->packets);
	cadge_wire_detach_all(link);
	absorb_past(link); /* it came before this life, since packets of a peer come in order */
	link->past_rank = link->rank;
	link->past_tag = link->tag_in;
	link->packets = NULL;
	link->landing = NULL;
	link->tag_in = 0;
	link->connected = false;
	link->state = (struct cadge_state){.up = false};
}

static int begin_greeting(struct cadge_link *link)
{
	if (!link->wire->sets.count) {
		link->wire->events_pending = true;
		return CADGE_DONE;
	}
	post_receive(link);
	return link->state.broken ? CADGE_E_LIBRARY : greet(link);
}

int cadge_wire_connect(struct cadge_wire *wire, uint32_t peer, struct cadge_blob_in *blob,
		       struct cadge_link **link_out)
{
	const uint32_t rank = cadge_blob_take_u32(blob), tag = cadge_blob_take_u32(blob);
	struct cadge_link *link;
	int ranks, code;

	if (!cadge_wire_went_well(wire, "MPI_Comm_size", MPI_Comm_size(MPI_COMM_WORLD, &ranks)))
		return CADGE_E_LIBRARY;
	if (!blob->ok || rank >= (uint32_t)ranks || tag >= MPI_WORLD_TAGS || peer >= wire->peers ||
	    wire->links[peer].connected || !wire->links[peer].tag_in)
		return CADGE_E_ARGUMENT;
	link = &wire->links[peer];
	link->packets = cadge_packet_set_begin(&wire->sets, link);
	if (!link->packets)
		return CADGE_E_MEMORY;
	link->rank = (int)rank;
	link->tag_out = (int)tag;
	link->connected = true;
	link->written = false;
	cadge_wire_far_begin(link);
	code = begin_greeting(link);
	if (code != CADGE_DONE) {
		link_end(link);
		return code;
	}
	*link_out = link;
	return CADGE_DONE;
}

int cadge_wire_disconnect(struct cadge_link *link)
{
	if (!link->connected)
		return CADGE_E_ARGUMENT;
	link_end(link);
	return CADGE_DONE;
}

int cadge_wire_describe(struct cadge_link *link, struct cadge_path *path_out)
{
	const struct cadge_wire *wire = link->wire;
	const char *component = mpi_window_component(), *asked = getenv("OMPI_MCA_osc");
	const bool within = wire->place == CADGE_PLACE_HOST;
	struct cadge_path path = {.bytes = sizeof(path)};
	struct mpi_path beside;

	mpi_path_read(MPI_COMM_WORLD, link->rank, &beside);
	if (beside.not_read) {
		mpi_path_not_read(&beside, wire->place, path_out);
		return CADGE_DONE;
	}
	path.medium = wire->direct ? CADGE_MEDIUM_MEMORY
		      : within     ? CADGE_MEDIUM_UNKNOWN
				   : CADGE_MEDIUM_NETWORK;
	path.as_asked = component[0] && (!asked || strcmp(asked, component) == 0);
	if (!within)
		path.as_asked &= strncmp(beside.btl, "tcp", 3) == 0 && !strchr(beside.btl, ',');
	else if (wire->sets.count)
		path.as_asked &=
			!beside.mtl[0] && (strcmp(beside.btl, "vader") == 0 || strcmp(beside.btl, "sm") == 0);
	else
		path.as_asked &= wire->direct;
	snprintf(path.asked, sizeof(path.asked), "osc %s, %s", asked ? asked : "of Open MPI's choice",
		 within ? "shared memory" : "tcp");
	snprintf(path.used, sizeof(path.used), "osc %s; pml %s; btl %s", component[0] ? component : "unknown",
		 beside.pml[0] ? beside.pml : "unknown", beside.btl[0] ? beside.btl : "none");
	if (!within)
		snprintf(path.device, sizeof(path.device), "%s", mpi_which_interface());
	cadge_fill(path_out, &path, sizeof(path));
	return CADGE_DONE;
}

void cadge_wire_counters(const struct cadge_wire *wire,
			 void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	if (!wire->sets.count)
		each(arg, "flushes", wire->flushes);
}

const char *cadge_wire_why(const struct cadge_wire *wire)
{
	return wire->why;
}

/* ---- life ---- */

/* What MPI has not finished is given a moment. */
static void drain(struct cadge_wire *wire)
{
	for (int rounds = 0; wire->left_over && rounds < DRAIN_MS; rounds++) {
		find_left_over(wire);
		if (wire->left_over && poll(NULL, 0, 1) < 0)
			return;
	}
}

void cadge_wire_close(struct cadge_wire *wire)
{
	if (!wire)
		return;
	for (uint32_t i = 0; i < wire->peers; i++)
		if (wire->links[i].connected)
			link_end(&wire->links[i]);
	drain(wire);
	cadge_wire_far_close(wire);
	for (uint32_t i = 0; i < wire->peers; i++)
		absorb_past(&wire->links[i]);
	if (cadge_packets_out(&wire->sets))
		mark_unclean(wire);
	if (wire->unclean) {
		mpi_world_keep(wire->sets.first);
	} else {
		cadge_packet_sets_destroy(&wire->sets);
		if (wire->landings_pool)
			munmap(wire->landings_pool, wire->landings_bytes);
	}
	cadge_wire_forget_memory(wire);
	free(wire->requests);
	free(wire->statuses);
	free(wire->found);
	free(wire);
	mpi_world_leave();
}

static int make(struct cadge_wire *wire, const struct cadge_wire_needs *needs)
{
	/* what is kept, one more that comes in, and one that waits */
	const size_t count = (size_t)wire->peers * (needs->held + 2);
	const size_t stride_bytes = wire->sets.stride_bytes;

	wire->landings_bytes = count * stride_bytes;
	wire->landings_pool = cadge_packet_pool(count, stride_bytes);
	wire->requests = malloc(2 * wire->peers * sizeof(*wire->requests));
	wire->statuses = calloc(2 * (size_t)wire->peers, sizeof(*wire->statuses));
	wire->found = calloc(2 * (size_t)wire->peers, sizeof(*wire->found));
	if (!wire->landings_pool || !wire->requests || !wire->statuses || !wire->found)
		return CADGE_E_MEMORY;
	for (size_t i = count; i-- > 0;)
		cadge_wire_release(wire, wire->landings_pool + i * stride_bytes);
	for (uint32_t i = 0; i < wire->peers; i++) {
		wire->links[i].peer = i;
		wire->requests[i] = wire->requests[wire->peers + i] = MPI_REQUEST_NULL;
	}
	return CADGE_DONE;
}

/* How long a message may be that leaves without the receiver's doing; 0: MPI does not say. */
static uint64_t eager_bytes(void)
{
	struct mpi_limits limits = mpi_path_limits("vader");

	if (!limits.eager_bytes)
		limits = mpi_path_limits("sm"); /* as vader is called from version 5 */
	return limits.eager_bytes;
}

static int refuse(const struct cadge_open_args *args, const struct cadge_wire_needs *needs)
{
	if (args->wait_mode == CADGE_WAIT_BLOCK)
		return cadge_refuse(args, CADGE_E_UNSUPPORTED,
				    "MPI has no wait that sleeps: MPI_Wait polls, at best it yields");
	if (args->place == CADGE_PLACE_NET && needs->packets)
		return cadge_refuse(args, CADGE_E_UNSUPPORTED,
				    "between hosts the target's library has to run for a put to arrive");
	return check(args, needs,
		     CADGE_CAP_HOST | CADGE_CAP_NET |
			     (needs->features & CADGE_WIRE_REMOTE ? CADGE_CAP_MEM_ALLOC : UINT64_C(0)),
		     PEERS_MAX);
}

/* What can only be seen once MPI runs. DONE, or a refusal. */
static int refuse_later(const struct cadge_open_args *args, uint64_t eager)
{
	if (!mpi_window_direct(args->place))
		return cadge_refuse(args, CADGE_E_UNSUPPORTED,
				    "%s%s serves the window, where the target's library has to run",
				    mpi_window_component()[0] ? "osc " : mpi_which_name(),
				    mpi_window_component());
	if (eager && eager < PACKET_BYTES_MAX + OVERHEAD_BYTES)
		return cadge_refuse(args, CADGE_E_UNSUPPORTED,
				    "MPI was told to send no more than %llu bytes at once, wanted %u",
				    (unsigned long long)eager, PACKET_BYTES_MAX + OVERHEAD_BYTES);
	return CADGE_DONE;
}

int cadge_wire_open(const struct cadge_open_args *args, const struct cadge_wire_needs *needs,
		    struct cadge_wire **wire_out)
{
	struct cadge_wire *wire;
	int code = refuse(args, needs);

	if (code < 0)
		return code;
	code = mpi_window_enter(args, PEER_ALLOC_BYTES * args->peers_max + 2 * args->region_bytes_max +
					      MPI_WINDOW_BYTES_LEAST);
	if (code)
		return code;
	code = needs->packets ? refuse_later(args, eager_bytes()) : CADGE_DONE;
	wire = code ? NULL : make_wire(args, needs);
	if (!wire) {
		mpi_world_leave();
		return code ? code : CADGE_E_MEMORY;
	}
	wire->peers = args->peers_max;
	wire->place = args->place;
	wire->direct = mpi_window_direct(args->place);
	wire->facts = (struct cadge_wire_facts){
		.packet_bytes_max = (uint32_t)cadge_least(needs->packet_bytes, PACKET_BYTES_MAX),
		.put_bytes_max = needs->features & CADGE_WIRE_REMOTE ? WIRE_PUT_BYTES_MAX : 0,
		.window_only = true,
		.reads_late = !wire->direct,
		.adds = needs->features & CADGE_WIRE_ATOMICS,
		.swaps = needs->features & CADGE_WIRE_ATOMICS && mpi_window_swaps(args->place),
		.operations = needs->operations,
	};
	wire->sets = make_sets(wire, needs);
	code = make(wire, needs);
	if (!code && !wire->direct)
		code = cadge_wire_far_open(wire, needs->operations);
	if (code) {
		cadge_wire_close(wire);
		return cadge_refuse(args, code, "no memory for packets of %u peers", args->peers_max);
	}
	*wire_out = wire;
	return CADGE_DONE;
}
