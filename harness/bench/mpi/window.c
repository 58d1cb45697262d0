/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the time of a window of short messages goes over MPI: a plain program's steps one by one, and the adapter mpi-p2p.
 *
 *	mpicc -O2 -g -Ilayers/include -Iharness -o build/mpi_window harness/bench/mpi/window.c -ldl
 *	mpirun -n 2 build/mpi_window build/layers/mpi-p2p.so [WINDOW [ROW]]
 *
 * The sender hands over a window (64 messages), and only then the receiver takes it, so that neither waits for the other
 * inside what is timed; then both at once, with an answer after each window. Printed are medians of windows in ns a message.
 * Before each row the two processes bounce a cache line. Its round trip says where the machine runs their cores: rows whose
 * lines differ are not to be compared. ROW (from 0) measures that row alone, and not both at once. Then instructions are
 *
 *	mpirun -n 2 valgrind --tool=callgrind --collect-atstart=no --toggle-collect=take_window \
 *		build/mpi_window build/layers/mpi-p2p.so 64 ROW
 *
 * divided by the messages: 400 windows of that row (send_window: those of the sender).
 */
#include <dlfcn.h>
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/timed.h"
#include "cadge/layer.h"

enum {
	WINDOW_MAX = 64,
	WINDOWS = 4000,
	WINDOWS_COUNTED = 400,
	BYTES = 8,
	APART = 64,
	TAG = 20000,
	LATER_NS = 2000,
	BOUNCES = 2000
};

/* How the receiver takes a window. */
enum how {
	WAITALL,        /* MPI_Irecv for all of it, then MPI_Waitall */
	WAITALL_POSTED, /* the same, posted before the messages left */
	TEST_EACH,      /* the same as the first, with MPI_Test and MPI_Get_count for each message */
	REPOST_EACH,    /* MPI_Test, MPI_Get_count and the next MPI_Irecv for each message */
	START_EACH,     /* the same, with MPI_Start of a persistent receive */
	REPOST_LATER,   /* MPI_Irecv again, and MPI is left alone for LATER_NS first */
	UNEXPECTED,     /* MPI has taken the messages before MPI_Irecv is called */
	ADAPTER,        /* post and poll of mpi-p2p, with a sink that looks at nothing */
	ADAPTER_LATER,  /* the same, left alone for LATER_NS first */
	HOWS
};

static const char *const names[HOWS] = {
	"Irecv a window, Waitall",
	"the same, posted before the messages leave",
	"Irecv a window; Test, Get_count each",
	"Test, Get_count, Irecv each",
	"Test, Get_count, Start each (persistent)",
	"Test, Get_count, Irecv each, 2 us later",
	"Irecv a window that came unexpected, Waitall",
	"mpi-p2p: post, poll",
	"mpi-p2p: post, poll, 2 us later",
};

static int window = WINDOW_MAX, windows = WINDOWS;
static char buffers[WINDOW_MAX][APART];
static MPI_Request requests[WINDOW_MAX];
static double taken_ns[WINDOWS], bounced_ns[BOUNCES];
static _Atomic int *turn; /* whose turn it is: 0 the sender's, 1 the receiver's */
static _Atomic int *line; /* which goes to and fro */

struct ends {
	struct cadge_sink sink;
	const struct cadge_layer *layer;
	struct cadge_ctx *ctx;
	struct cadge_chan *chan;
	int up, received;
};

static void on_up(struct cadge_sink *sink, uint32_t peer)
{
	(void)peer;
	((struct ends *)sink)->up = 1;
}

static void on_down(struct cadge_sink *sink, uint32_t peer, int code)
{
	(void)sink, (void)peer, (void)code;
	MPI_Abort(MPI_COMM_WORLD, 4);
}

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	(void)peer, (void)data, (void)bytes, (void)lend;
	((struct ends *)sink)->received++;
	return CADGE_TAKEN;
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	(void)sink, (void)peer, (void)token, (void)code;
}

static struct ends ends = {.sink = {.bytes = sizeof(struct cadge_sink),
				    .up = on_up,
				    .down = on_down,
				    .recv = on_recv,
				    .sent = on_sent}};

static int reposts(enum how how)
{
	return how == REPOST_EACH || how == START_EACH || how == REPOST_LATER;
}

static int through_adapter(enum how how)
{
	return how == ADAPTER || how == ADAPTER_LATER;
}

static int posted_before(enum how how)
{
	return how == WAITALL_POSTED || reposts(how);
}

static void irecv(enum how how, int i)
{
	if (how == START_EACH)
		MPI_Start(&requests[i]);
	else
		MPI_Irecv(buffers[i], BYTES, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &requests[i]);
}

static void irecv_window(enum how how)
{
	for (int i = 0; i < window; i++)
		irecv(how, i);
}

/* Persistent receives, made and ended outside what is timed. */
static void persistent(enum how how, int (*what)(MPI_Request *))
{
	for (int i = 0; how == START_EACH && i < window; i++)
		if (what)
			what(&requests[i]);
		else
			MPI_Recv_init(buffers[i], BYTES, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &requests[i]);
}

/* The adapter starts MPI. */
static void open_adapter(const char *module)
{
	static char why[256];
	struct cadge_open_args args = {.bytes = sizeof(args),
				       .place = CADGE_PLACE_HOST,
				       .wait_mode = CADGE_WAIT_POLL,
				       .device = "lo",
				       .address = "127.0.0.1",
				       .peers_max = 1,
				       .depth_max = WINDOW_MAX,
				       .message_bytes_max = APART,
				       .error = why,
				       .error_bytes = sizeof(why)};
	void *library = dlopen(module, RTLD_NOW);
	const struct cadge_layer *(*entry)(void) =
		library ? (const struct cadge_layer *(*)(void))dlsym(library, "cadge_layer_entry") : NULL;

	if (!entry) {
		fprintf(stderr, "mpi_window: %s\n", dlerror());
		exit(3);
	}
	ends.layer = entry();
	if (ends.layer->open(&args, &ends.ctx)) {
		fprintf(stderr, "mpi_window: %s\n", why);
		exit(3);
	}
}

static void connect_adapter(int rank)
{
	char blob[256], other[256];
	size_t bytes = sizeof(blob);

	if (ends.layer->address(ends.ctx, 0, blob, &bytes))
		MPI_Abort(MPI_COMM_WORLD, 4);
	MPI_Sendrecv(blob, (int)bytes, MPI_BYTE, !rank, TAG + 1, other, (int)bytes, MPI_BYTE, !rank, TAG + 1,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (ends.layer->connect(ends.ctx, 0, other, bytes, &ends.chan))
		MPI_Abort(MPI_COMM_WORLD, 4);
	while (!ends.up)
		ends.layer->poll(ends.ctx, &ends.sink);
}

__attribute__((noinline)) static void send_window(enum how how)
{
	if (through_adapter(how)) {
		for (int i = 0; i < window; i++) {
			const struct cadge_iov iov = {.base = buffers[i], .bytes = BYTES};

			while (ends.layer->post(ends.chan, &iov, 1, 0, 0) == CADGE_BUSY)
				ends.layer->poll(ends.ctx, &ends.sink);
		}
		return;
	}
	for (int i = 0; i < window; i++)
		MPI_Isend(buffers[i], BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &requests[i]);
	MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
}

__attribute__((noinline)) static void take_window(enum how how, int again)
{
	for (const double began_ns = now_ns();
	     (how == REPOST_LATER || how == ADAPTER_LATER) && now_ns() - began_ns < LATER_NS;)
		;
	if (through_adapter(how)) {
		for (ends.received = 0; ends.received < window;)
			ends.layer->poll(ends.ctx, &ends.sink);
		return;
	}
	if (!posted_before(how))
		irecv_window(how);
	if (how != TEST_EACH && !reposts(how)) {
		MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
		return;
	}
	for (int i = 0; i < window; i++) {
		MPI_Status status;
		int done = 0, bytes;

		while (!done)
			MPI_Test(&requests[i], &done, &status);
		MPI_Get_count(&status, MPI_BYTE, &bytes);
		if (reposts(how) && again)
			irecv(how, i);
	}
}

/* What comes before a window and is not timed. */
static void prepare(enum how how, int first)
{
	if (posted_before(how) && (!reposts(how) || first))
		irecv_window(how);
	for (int i = 0; through_adapter(how) && i < window; i++) /* as idle as between two windows */
		ends.layer->poll(ends.ctx, &ends.sink);
}

/* Returns the median round trip of a cache line, in ns. */
static double bounce(int rank)
{
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < BOUNCES; i++) {
		const double began_ns = now_ns();

		while (atomic_load(line) != 2 * i + rank)
			;
		atomic_store(line, 2 * i + rank + 1);
		while (!rank && atomic_load(line) != 2 * i + 2)
			;
		bounced_ns[i] = now_ns() - began_ns;
	}
	MPI_Barrier(MPI_COMM_WORLD);
	atomic_store(line, 0);
	return median_of(bounced_ns, BOUNCES);
}

/* Returns the median ns a message. */
static double measure(enum how how, int rank)
{
	for (int i = 0; i < windows; i++) {
		double began_ns;

		if (rank)
			prepare(how, i == 0);
		if (rank && atomic_load(turn) == -1)
			atomic_store(turn, 0);
		while (atomic_load(turn) != rank)
			sched_yield();
		began_ns = now_ns();
		for (int k = 0, flag; rank && how == UNEXPECTED && k < 4; k++)
			MPI_Iprobe(0, TAG + 2, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		if (rank)
			take_window(how, i + 1 < windows);
		else
			send_window(how);
		taken_ns[i] = now_ns() - began_ns;
		/* the sender goes on when the receiver is ready for the next one */
		atomic_store(turn, rank ? -1 : 1);
	}
	return median_of(taken_ns, windows) / window;
}

/* One byte back. */
static void answer(enum how how, int rank)
{
	const struct cadge_iov iov = {.base = buffers[0], .bytes = 1};
	char byte = 0;

	if (!through_adapter(how) && rank)
		MPI_Send(&byte, 1, MPI_BYTE, 0, TAG + 4, MPI_COMM_WORLD);
	else if (!through_adapter(how))
		MPI_Recv(&byte, 1, MPI_BYTE, 1, TAG + 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else if (rank)
		while (ends.layer->post(ends.chan, &iov, 1, 0, 0) == CADGE_BUSY)
			ends.layer->poll(ends.ctx, &ends.sink);
	else
		for (ends.received = 0; !ends.received;)
			ends.layer->poll(ends.ctx, &ends.sink);
}

/* Both at once, each window answered, as in the pattern msgrate. Returns the median ns a message at the sender. */
static double measure_together(enum how how, int rank)
{
	if (rank && posted_before(how))
		irecv_window(how);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < windows; i++) {
		const double began_ns = now_ns();
		const int again = i + 1 < windows;

		if (rank)
			take_window(how, again);
		else
			send_window(how);
		if (rank && how == WAITALL_POSTED && again)
			irecv_window(how);
		answer(how, rank);
		taken_ns[i] = now_ns() - began_ns;
	}
	return median_of(taken_ns, windows) / window;
}

/* Where both processes see it; `turn` and `line` a line of memory each. */
static MPI_Win share(int rank)
{
	MPI_Aint bytes;
	MPI_Win shared;
	void *base;
	int unit;

	MPI_Win_allocate_shared(rank ? 0 : 256, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &shared);
	MPI_Win_shared_query(shared, 0, &bytes, &unit, &base);
	turn = base;
	line = turn + 128 / sizeof(*turn);
	if (!rank)
		atomic_store(turn, -1);
	MPI_Barrier(MPI_COMM_WORLD);
	return shared;
}

static void row(enum how how, int rank, int both)
{
	const double line_ns = bounce(rank);
	double here_ns, there_ns, together_ns;

	persistent(how, NULL);
	here_ns = measure(how, rank);
	together_ns = both ? measure_together(how, rank) : 0;
	persistent(how, MPI_Request_free);
	if (rank) {
		MPI_Send(&here_ns, 1, MPI_DOUBLE, 0, TAG + 3, MPI_COMM_WORLD);
		return;
	}
	MPI_Recv(&there_ns, 1, MPI_DOUBLE, 1, TAG + 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	printf("%-45s line %5.0f ns; sender %6.1f  receiver %6.1f  together %6.1f ns a message\n", names[how],
	       line_ns, here_ns, there_ns, together_ns);
}

int main(int argc, char **argv)
{
	const int only = argc > 3 ? atoi(argv[3]) : -1;
	MPI_Win shared;
	int rank;

	window = argc > 2 ? atoi(argv[2]) : WINDOW_MAX;
	if (argc < 2 || argc > 4 || window < 1 || window > WINDOW_MAX || only >= HOWS) {
		fprintf(stderr, "usage: mpirun -n 2 mpi_window MODULE [WINDOW [ROW]]\n");
		return 2;
	}
	windows = only < 0 ? WINDOWS : WINDOWS_COUNTED;
	open_adapter(argv[1]);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	shared = share(rank);
	for (int how = only < 0 ? 0 : only; how < (only < 0 ? HOWS : only + 1); how++) {
		if (through_adapter((enum how)how) && !ends.up)
			connect_adapter(rank);
		row((enum how)how, rank, only < 0);
	}
	MPI_Win_free(&shared);
	ends.layer->close(ends.ctx);
	return 0;
}
