/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote memory on MPI where the target's library has to run: nothing may wait for it, so what MPI does not finish inside a call is
 * QUEUED, with its request. MPI_Win_flush waits for the target, and MPI has no other way to learn that a put is visible. So a quiet
 * is put off until a get, the probe, has come back from the target that was begun after all writes: the target has just run
 * and has them all, and the flush is short.
 *
 * A flush is of every write of the target, and so would wait for those that were begun after that probe: where there are
 * some, no more are begun (`held`) until a probe has come back that was begun after them.
 */
#include <poll.h>
#include <stdlib.h>

#include "wire/mpi/state.h"
#include "wire/mpi/window.h"
#include "wire/mpi/world.h"

#if defined(__GNUC__) && !defined(__clang__)
/* MPICH 4 declares the statuses of MPI_Testsome as an array, of which its MPI_STATUSES_IGNORE is a short one to gcc. */
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#endif

enum {
	EVENTS_MAX = 64, /* most completions in one poll */
	FAR_DRAIN_MS = 200,
	LINGER_MS = 20,
};

enum kind { REQUEST, PROBE, QUIET };

/* What is not complete. */
struct wire_far_op {
	enum kind kind;
	struct cadge_link *link; /* NULL: its life has ended, and nobody waits for it */
	uint64_t token;
	uint64_t covers;          /* probe, quiet: so many writes of the link were begun before it */
	uint64_t word;            /* fetch_add: what is added; probe: what comes back */
	struct wire_far_op *next; /* in the pool, or among the quiets of a link */
};

int cadge_wire_far_open(struct cadge_wire *wire, uint32_t operations)
{
	struct wire_far *far = &wire->far;
	const size_t count = (size_t)operations * wire->peers;

	far->pool = calloc(count, sizeof(*far->pool));
	far->requests = calloc(count, sizeof(*far->requests));
	far->ops = calloc(count, sizeof(*far->ops));
	if (!far->pool || !far->requests || !far->ops)
		return CADGE_E_MEMORY;
	for (size_t i = count; i-- > 0;)
		CADGE_POOL_GIVE(far->free, &far->pool[i]);
	return CADGE_DONE;
}

/* What MPI was given: DONE where it is complete, else QUEUED, and a poll will find it. Takes the first of the pool. */
static int begun(struct cadge_wire *wire, MPI_Request request, struct wire_far_op op)
{
	struct wire_far *far = &wire->far;
	struct wire_far_op *stored = far->free;
	int done = 0;

	if (!cadge_wire_went_well(wire, "MPI_Test", MPI_Test(&request, &done, MPI_STATUS_IGNORE)))
		return CADGE_E_DOWN;
	if (done)
		return CADGE_DONE;
	far->free = stored->next;
	op.word = stored->word; /* where MPI was told that it lies */
	*stored = op;
	far->requests[far->outstanding] = request;
	far->ops[far->outstanding++] = stored;
	return CADGE_QUEUED;
}

int cadge_wire_far_put(struct cadge_link *link, const void *local, size_t bytes, uint64_t at_bytes,
		       uint64_t token)
{
	struct cadge_wire *wire = link->wire;
	MPI_Request request;

	if (!wire->far.free || link->far.held)
		return CADGE_BUSY;
	if (!cadge_wire_went_well(wire, "MPI_Rput",
				  MPI_Rput(local, (int)bytes, MPI_BYTE, link->rank, (MPI_Aint)at_bytes,
					   (int)bytes, MPI_BYTE, mpi_window(), &request)))
		return CADGE_E_DOWN;
	link->far.begun++;
	return begun(wire, request, (struct wire_far_op){.link = link, .token = token});
}

int cadge_wire_far_get(struct cadge_link *link, void *local, size_t bytes, uint64_t at_bytes, uint64_t token)
{
	struct cadge_wire *wire = link->wire;
	MPI_Request request;

	if (!wire->far.free)
		return CADGE_BUSY;
	if (!cadge_wire_went_well(wire, "MPI_Rget",
				  MPI_Rget(local, (int)bytes, MPI_BYTE, link->rank, (MPI_Aint)at_bytes,
					   (int)bytes, MPI_BYTE, mpi_window(), &request)))
		return CADGE_E_DOWN;
	return begun(wire, request, (struct wire_far_op){.link = link, .token = token});
}

/* MPI's own fetch-and-op has no request; its longer form has one. */
int cadge_wire_far_add(struct cadge_link *link, uint64_t addend, uint64_t *before_out, uint64_t at_bytes,
		       uint64_t token)
{
	struct cadge_wire *wire = link->wire;
	struct wire_far_op *op = wire->far.free;
	MPI_Request request;

	if (!op)
		return CADGE_BUSY;
	op->word = addend;
	if (!cadge_wire_went_well(wire, "MPI_Rget_accumulate",
				  MPI_Rget_accumulate(&op->word, 1, MPI_UINT64_T, before_out, 1, MPI_UINT64_T,
						      link->rank, (MPI_Aint)at_bytes, 1, MPI_UINT64_T,
						      MPI_SUM, mpi_window(), &request)))
		return CADGE_E_DOWN;
	return begun(wire, request, (struct wire_far_op){.link = link, .token = token});
}

int cadge_wire_far_quiet(struct cadge_link *link, uint64_t token)
{
	struct wire_far_op *op = CADGE_POOL_TAKE(link->wire->far.free);

	if (!op)
		return CADGE_BUSY;
	*op = (struct wire_far_op){.kind = QUIET, .link = link, .token = token, .covers = link->far.begun};
	*link->far.quiets_end = op;
	link->far.quiets_end = &op->next;
	return CADGE_QUEUED;
}

/* ---- looking ---- */

static void report(const struct wire_far_op *op, int code)
{
	struct cadge_wire *wire = op->link->wire;

	wire->events++;
	CADGE_WIRE_ENDED(wire)(wire->arg, op->link->peer, op->token, code);
}

/* A probe came back: what waits for it is flushed together. */
static void reached(struct cadge_link *link, uint64_t covers)
{
	struct wire_far_link *far = &link->far;
	struct wire_far_op *quiets = far->quiets, *next;
	int code;

	far->reached = covers > far->reached ? covers : far->reached;
	if (!quiets || quiets->covers > far->reached)
		return;
	far->held = far->reached < far->begun;
	if (far->held)
		return;
	code = cadge_wire_flush(link);
	far->quiets = NULL;
	far->quiets_end = &far->quiets;
	for (; quiets; quiets = next) {
		const struct wire_far_op op = *quiets;

		next = quiets->next;
		CADGE_POOL_GIVE(link->wire->far.free, quiets);
		report(&op, code);
	}
}

/* Finds what is complete; `silent`: and notifies nobody. DONE or E_LIBRARY. */
static int completions(struct cadge_wire *wire, bool silent)
{
	struct wire_far *far = &wire->far;
	struct wire_far_op done[EVENTS_MAX];
	int at[EVENTS_MAX], count, remaining = 0, found = 0;
	const int tested = far->outstanding < EVENTS_MAX ? far->outstanding : EVENTS_MAX;

	if (!cadge_wire_went_well(wire, "MPI_Testsome",
				  MPI_Testsome(tested, far->requests, &count, at, MPI_STATUSES_IGNORE)))
		return CADGE_E_LIBRARY;
	if (count <= 0)
		return CADGE_DONE;
	/* what is complete leaves both lists before anyone hears of it, and may begin something new */
	for (int i = 0; i < far->outstanding; i++) {
		if (i < tested && far->requests[i] == MPI_REQUEST_NULL) {
			done[found++] = *far->ops[i];
			CADGE_POOL_GIVE(far->free, far->ops[i]);
			continue;
		}
		far->requests[remaining] = far->requests[i];
		far->ops[remaining++] = far->ops[i];
	}
	far->outstanding = remaining;
	for (int i = 0; !silent && i < found; i++)
		if (done[i].link && done[i].kind == PROBE)
			reached(done[i].link, done[i].covers);
		else if (done[i].link)
			report(&done[i], CADGE_DONE);
	return CADGE_DONE;
}

/*
 * Lets go what MPI gathers, and sees how far the target has come, by a get of its window's first word. Osc pt2pt (4.1) sends none
 * of its small writes before a flush or a get with a request, though their own requests are complete.
 */
static int probe(struct cadge_link *link)
{
	struct cadge_wire *wire = link->wire;
	struct wire_far_op *op = wire->far.free;
	MPI_Request request;
	int code;

	if (!link->connected || !op ||
	    (link->far.probed == link->far.begun &&
	     (!link->far.quiets || link->far.reached < link->far.probed)))
		return CADGE_DONE;
	if (!cadge_wire_went_well(wire, "MPI_Rget",
				  MPI_Rget(&op->word, sizeof(op->word), MPI_BYTE, link->rank, 0,
					   sizeof(op->word), MPI_BYTE, mpi_window(), &request)))
		return CADGE_E_LIBRARY;
	link->far.probed = link->far.begun;
	code = begun(wire, request,
		     (struct wire_far_op){.kind = PROBE, .link = link, .covers = link->far.begun});
	if (code == CADGE_DONE)
		reached(link, link->far.begun);
	return code < 0 ? CADGE_E_LIBRARY : CADGE_DONE;
}

int cadge_wire_serve(struct cadge_wire *wire)
{
	int unused;

	return cadge_wire_went_well(
		       wire, "MPI_Iprobe",
		       MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &unused, MPI_STATUS_IGNORE))
		       ? CADGE_DONE
		       : CADGE_E_LIBRARY;
}

int cadge_wire_far_poll(struct cadge_wire *wire)
{
	for (uint32_t peer = 0; peer < wire->peers; peer++)
		if (probe(&wire->links[peer]) < 0)
			return CADGE_E_LIBRARY;
	return wire->far.outstanding ? completions(wire, false) : cadge_wire_serve(wire);
}

/* ---- ends ---- */

void cadge_wire_far_begin(struct cadge_link *link)
{
	link->far = (struct wire_far_link){.quiets = NULL};
	link->far.quiets_end = &link->far.quiets;
}

void cadge_wire_far_end(struct cadge_link *link)
{
	struct wire_far *far = &link->wire->far;

	while (link->far.quiets) {
		struct wire_far_op *op = CADGE_POOL_TAKE(link->far.quiets);

		CADGE_POOL_GIVE(far->free, op);
	}
	cadge_wire_far_begin(link);
	for (int i = 0; i < far->outstanding; i++)
		if (far->ops[i]->link == link)
			far->ops[i]->link = NULL;
}

void cadge_wire_far_close(struct cadge_wire *wire)
{
	struct wire_far *far = &wire->far;
	bool good = true;

	if (!far->pool)
		return;
	for (int rounds = 0; good && rounds < (far->outstanding ? FAR_DRAIN_MS : LINGER_MS); rounds++)
		good = completions(wire, true) == CADGE_DONE && cadge_wire_serve(wire) == CADGE_DONE &&
		       poll(NULL, 0, 1) == 0;
	if (far->outstanding) {
		mpi_world_mark_unclean();
		mpi_world_keep(far->pool);
	} else {
		free(far->pool);
	}
	free(far->requests);
	free(far->ops);
}
