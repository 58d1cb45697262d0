/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/mpi/window.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/adapter.h"
#include "wire/mpi/path.h"
#include "wire/mpi/which.h"
#include "wire/mpi/world.h"

#define PAGE_BYTES ((size_t)4096)

enum { TRY_MS = 500 }; /* how long the other rank may take to come to a processor */

static struct {
	MPI_Win win;
	bool made;
	char *base;  /* as MPI gave it: what offsets count from */
	char *pages; /* the first whole page */
	size_t page_count;
	bool *taken; /* a page each */
	char component[32];
	bool found_direct; /* by trying, where the component cannot be told */
} window;

/* All ranks come here when they end; without it MPI_Finalize would find the window open. */
static void window_end(void)
{
	if (MPI_Win_unlock_all(window.win) != MPI_SUCCESS || MPI_Win_free(&window.win) != MPI_SUCCESS)
		fprintf(stderr, "cadge: the window cannot be freed\n");
}

static int window_failed(const struct cadge_open_args *args, const char *call, int ret)
{
	char why[160];

	mpi_world_why(call, ret, why, sizeof(why));
	/* MPI offers no way back from a collective call that failed here and may go on elsewhere. */
	mpi_world_mark_unclean();
	if (!mpi_which_is_open_mpi())
		return cadge_refuse(args, CADGE_E_LIBRARY, "%s", why);
	return cadge_refuse(args, CADGE_E_LIBRARY, "%s (osc %s)", why,
			    getenv("OMPI_MCA_osc") ? getenv("OMPI_MCA_osc") : "as Open MPI chooses");
}

/* What rank 1 does to two words of rank 0's window; the first is written last. True where MPI had no complaint. */
static bool try_at(MPI_Aint offset_bytes)
{
	const MPI_Aint second = offset_bytes + (MPI_Aint)sizeof(uint64_t);
	uint64_t one = 1, zero = 0, read = 0;
	MPI_Request request;

	if (MPI_Rget(&read, sizeof(read), MPI_BYTE, 0, second, sizeof(read), MPI_BYTE, window.win,
		     &request) != MPI_SUCCESS ||
	    MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS ||
	    MPI_Fetch_and_op(&one, &read, MPI_UINT64_T, 0, second, MPI_SUM, window.win) != MPI_SUCCESS ||
	    MPI_Win_flush_local(0, window.win) != MPI_SUCCESS)
		return false;
	if (!mpi_which_is_open_mpi_before(5) && /* see mpi_window_swaps */
	    (MPI_Compare_and_swap(&zero, &one, &read, MPI_UINT64_T, 0, second, window.win) != MPI_SUCCESS ||
	     MPI_Win_flush_local(0, window.win) != MPI_SUCCESS))
		return false;
	one = 1;
	return MPI_Rput(&one, sizeof(one), MPI_BYTE, 0, offset_bytes, sizeof(one), MPI_BYTE, window.win,
			&request) == MPI_SUCCESS &&
	       MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

/*
 * Whether the target's library has to run, tried: rank 1 reads, adds, swaps and writes in memory of rank 0, which meanwhile
 * looks at it, calls nothing of MPI, and so sees the end only if none of that needed it. All ranks come here.
 */
static bool try_window(void)
{
	volatile uint64_t *const words = (volatile uint64_t *)(void *)window.pages;
	int64_t offset_bytes = window.pages - window.base;
	int rank = -1, visible = 0;

	memset(window.pages, 0, PAGE_BYTES);
	if (MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS ||
	    MPI_Bcast(&offset_bytes, 1, MPI_INT64_T, 0, MPI_COMM_WORLD) != MPI_SUCCESS ||
	    MPI_Barrier(MPI_COMM_WORLD) != MPI_SUCCESS)
		return false;
	if (rank == 1 && !try_at((MPI_Aint)offset_bytes))
		fprintf(stderr, "cadge: MPI refuses to read or write in the window that it made\n");
	for (int ms = 0; rank == 0 && !visible && ms < TRY_MS; ms++)
		visible = words[0] || (poll(NULL, 0, 1) == 0 && words[0]);
	/* Rank 0 stays in the barrier until rank 1 comes there, which may wait for rank 0's library until then. */
	return MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS &&
	       MPI_Bcast(&visible, 1, MPI_INT, 0, MPI_COMM_WORLD) == MPI_SUCCESS && visible;
}

static int window_make(const struct cadge_open_args *args, size_t bytes)
{
	const size_t wanted_bytes =
		((bytes > MPI_WINDOW_BYTES_LEAST ? bytes : MPI_WINDOW_BYTES_LEAST) / PAGE_BYTES + 2) *
		PAGE_BYTES;
	int ret;

	mpi_world_hide_leaks(true);
	ret = MPI_Win_allocate((MPI_Aint)wanted_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window.base,
			       &window.win);
	mpi_world_hide_leaks(false);
	if (ret != MPI_SUCCESS)
		return window_failed(args, "MPI_Win_allocate", ret);
	ret = MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
	if (ret == MPI_SUCCESS)
		ret = MPI_Win_lock_all(MPI_MODE_NOCHECK, window.win);
	if (ret != MPI_SUCCESS)
		return window_failed(args, "MPI_Win_lock_all", ret);
	window.pages = window.base + (PAGE_BYTES - (uintptr_t)window.base % PAGE_BYTES) % PAGE_BYTES;
	window.page_count = wanted_bytes / PAGE_BYTES - 1;
	window.taken = calloc(window.page_count, sizeof(*window.taken));
	if (!window.taken)
		return cadge_refuse(args, CADGE_E_MEMORY, "no memory");
	mpi_path_window(window.win, window.component, sizeof(window.component));
	if (args->place == CADGE_PLACE_HOST && !window.component[0])
		window.found_direct = try_window();
	window.made = true;
	mpi_world_before_end(window_end);
	return CADGE_DONE;
}

int mpi_window_enter(const struct cadge_open_args *args, size_t bytes)
{
	/*
	 * Between hosts over TCP the component that Open MPI 4.1 chooses, rdma, ends with MPI_ERR_WIN inside
	 * MPI_Win_allocate, whatever the error handler; with 5.0 it works, and pt2pt is gone.
	 */
	const bool between = args->place == CADGE_PLACE_NET;
	const bool lacks_rdma = between && mpi_which_is_open_mpi_before(5);
	const bool shares = between && mpi_which_is_open_mpi() && !lacks_rdma;
	const char *asked = getenv("OMPI_MCA_osc");
	int code;

	if (shares && mpi_which_ranks() > 1 && mpi_which_ranks() == mpi_which_ranks_here())
		return cadge_refuse(
			args, CADGE_E_UNSUPPORTED,
			"all ranks are on one host, where the window of Open MPI 5 is shared memory, "
			"whatever transports are allowed");
	if (lacks_rdma && asked && strcmp(asked, "rdma") == 0)
		return cadge_refuse(
			args, CADGE_E_UNSUPPORTED,
			"osc rdma, Open MPI's own choice, ends with MPI_ERR_WIN over TCP before version 5");
	code = mpi_world_enter(args, lacks_rdma ? "pt2pt" : NULL);
	if (code || window.made)
		return code;
	code = window_make(args, bytes);
	if (code)
		mpi_world_leave();
	return code;
}

MPI_Win mpi_window(void)
{
	return window.win;
}

void *mpi_window_alloc(size_t bytes)
{
	const size_t wanted = (bytes + PAGE_BYTES - 1) / PAGE_BYTES;
	size_t run = 0, page;

	for (page = 0; wanted && page < window.page_count; page++) {
		run = window.taken[page] ? 0 : run + 1;
		if (run == wanted) {
			char *base = window.pages + (page + 1 - wanted) * PAGE_BYTES;

			memset(&window.taken[page + 1 - wanted], true, wanted);
			memset(base, 0, wanted * PAGE_BYTES);
			return base;
		}
	}
	return NULL;
}

void mpi_window_free(void *base, size_t bytes)
{
	const size_t first = (size_t)((char *)base - window.pages) / PAGE_BYTES;

	memset(&window.taken[first], false, (bytes + PAGE_BYTES - 1) / PAGE_BYTES);
}

bool mpi_window_holds(const void *base, size_t bytes, uint64_t *offset_bytes_out)
{
	const uintptr_t first = (uintptr_t)window.pages, at = (uintptr_t)base;
	const size_t room_bytes = window.page_count * PAGE_BYTES;

	if (at < first || at - first > room_bytes || bytes > room_bytes - (at - first))
		return false;
	*offset_bytes_out = at - (uintptr_t)window.base;
	return true;
}

const char *mpi_window_component(void)
{
	return window.component;
}

bool mpi_window_direct(enum cadge_place place)
{
	return place == CADGE_PLACE_HOST && (window.found_direct || strcmp(window.component, "rdma") == 0 ||
					     strcmp(window.component, "sm") == 0);
}

bool mpi_window_swaps(enum cadge_place place)
{
	return mpi_window_direct(place) && !(mpi_which_is_open_mpi_before(5) &&
					     (!window.component[0] || strcmp(window.component, "rdma") == 0));
}
