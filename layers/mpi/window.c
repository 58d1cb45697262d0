/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi/window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/adapter.h"
#include "mpi/path.h"
#include "mpi/world.h"

#define PAGE_BYTES ((size_t)4096)

static struct {
	MPI_Win win;
	bool made;
	char *base;  /* as MPI gave it: what offsets count from */
	char *pages; /* the first whole page */
	size_t page_count;
	bool *taken; /* a page each */
	char component[32];
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
	mpi_world_spoil();
	return cadge_refuse(args, CADGE_E_LIBRARY, "%s (osc %s)", why,
			    getenv("OMPI_MCA_osc") ? getenv("OMPI_MCA_osc") : "as Open MPI chooses");
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
	const bool lacks_rdma = args->place == CADGE_PLACE_NET && mpi_world_major_version() < 5;
	const char *asked = getenv("OMPI_MCA_osc");
	const char *ranks = getenv("OMPI_COMM_WORLD_SIZE"), *here = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
	int code;

	if (args->place == CADGE_PLACE_NET && !lacks_rdma && ranks && here && strcmp(ranks, "1") != 0 &&
	    strcmp(ranks, here) == 0)
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
	return place == CADGE_PLACE_HOST &&
	       (strcmp(window.component, "rdma") == 0 || strcmp(window.component, "sm") == 0);
}

bool mpi_window_swaps(enum cadge_place place)
{
	return mpi_window_direct(place) &&
	       (mpi_world_major_version() >= 5 || strcmp(window.component, "rdma") != 0);
}
