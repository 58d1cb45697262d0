/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/mpi/world.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include <mpi.h>

#include "wire/mpi/which.h"

enum { WORLD_EXIT_SECONDS = 5 }; /* how long the end of the process waits for the other ranks */

/* Present in programs built with the leak sanitizer. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

void mpi_world_hide_leaks(bool hide)
{
	if (hide && __lsan_disable)
		__lsan_disable();
	if (!hide && __lsan_enable)
		__lsan_enable();
}

static struct {
	pid_t pid;     /* of the process that started it; 0: not started */
	bool unclean;  /* something is unfinished: MPI_Finalize could wait for ever */
	uint32_t open; /* contexts */
	int tag;       /* the next to use */
	void (*end)(void);
	int exit_status;
} world;

static void world_give_up(int signal_number)
{
	(void)signal_number;
	_exit(world.exit_status);
}

/*
 * At the end of the process. mpirun takes a rank that leaves without MPI_Finalize for a crash, but
 * MPI_Finalize waits for all ranks: it is tried where everything was closed in order, and given up after
 * WORLD_EXIT_SECONDS.
 */
static void world_exit(int status, void *argument)
{
	struct sigaction action = {.sa_handler = world_give_up};
	struct itimerval limit = {.it_value = {.tv_sec = WORLD_EXIT_SECONDS}};

	(void)argument;
	if (world.pid != getpid() || world.open || world.unclean)
		return;
	world.exit_status = status;
	if (sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &limit, NULL))
		return;
	mpi_world_hide_leaks(true);
	if (world.end)
		world.end();
	if (MPI_Finalize() != MPI_SUCCESS)
		fprintf(stderr, "cadge: MPI_Finalize failed\n");
	mpi_world_hide_leaks(false);
	limit.it_value.tv_sec = 0;
	if (setitimer(ITIMER_REAL, &limit, NULL))
		fprintf(stderr, "cadge: the timer cannot be stopped\n");
}

static int world_start(const struct cadge_open_args *args, const char *osc)
{
	int ret;

	if (args->place == CADGE_PLACE_NET && cadge_device_check(args) < 0)
		return CADGE_E_TRANSPORT;
	if (world.pid)
		return world.pid == getpid()
			       ? CADGE_DONE
			       : cadge_refuse(args, CADGE_E_LIBRARY, "MPI was started before fork");
	if (mpi_which_ranks() < 2)
		return cadge_refuse(args, CADGE_E_TRANSPORT,
				    "not started by mpirun or srun with two or more ranks "
				    "(OMPI_COMM_WORLD_SIZE, PMI_SIZE, SLURM_STEP_NUM_TASKS)");
	if (!mpi_which_place(args, osc))
		return cadge_refuse(args, CADGE_E_MEMORY, "the environment cannot be extended");
	/*
	 * As most programs start it. MPI_THREAD_FUNNELED would allow the caller further threads without MPI,
	 * which do no harm here either, but makes Open MPI 4.1 take locks: 0.45 us become 0.70 at 8 bytes.
	 */
	mpi_world_hide_leaks(true);
	ret = MPI_Init(NULL, NULL);
	mpi_world_hide_leaks(false);
	if (ret != MPI_SUCCESS)
		return cadge_refuse(args, CADGE_E_LIBRARY, "MPI_Init failed");
	/* Under the leak sanitizer PMIx stays mapped, so that p2p.supp can name what its own thread leaves
	 * behind. */
	if (__lsan_disable && mpi_which_is_open_mpi() &&
	    !dlopen("libpmix.so.2", RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE))
		fprintf(stderr, "cadge: PMIx is not found, so leaks in it cannot be named\n");
	/* A plugin in Open MPI 4, part of the library in 5; it holds messages that nobody received. */
	if (__lsan_disable)
		dlopen("mca_allocator_bucket.so", RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
	world.pid = getpid();
	if (MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) != MPI_SUCCESS)
		return cadge_refuse(args, CADGE_E_LIBRARY, "MPI cannot be set to return errors");
	if (on_exit(world_exit, NULL))
		return cadge_refuse(args, CADGE_E_MEMORY, "cannot register an exit handler");
	return CADGE_DONE;
}

int mpi_world_new_tag(void)
{
	world.tag = (world.tag + 1) % MPI_WORLD_TAGS;
	return world.tag;
}

int mpi_world_enter(const struct cadge_open_args *args, const char *osc)
{
	int code = world_start(args, osc);

	if (!code)
		world.open++;
	return code;
}

void mpi_world_leave(void)
{
	world.open--;
}

void mpi_world_mark_unclean(void)
{
	world.unclean = true;
}

bool mpi_world_is_unclean(void)
{
	return world.unclean;
}

void mpi_world_keep(void *memory)
{
	/* Listed, so that leak checkers find it. */
	static struct block {
		struct block *next;
		void *memory;
	} *blocks;
	struct block *block = malloc(sizeof(*block));

	if (!block)
		return; /* it is kept all the same */
	*block = (struct block){.next = blocks, .memory = memory};
	blocks = block;
}

void mpi_world_before_end(void (*end)(void))
{
	world.end = end;
}

bool mpi_world_why(const char *call, int ret, char *text, size_t text_bytes)
{
	char reason[MPI_MAX_ERROR_STRING];
	int bytes;

	if (MPI_Error_string(ret, reason, &bytes) != MPI_SUCCESS)
		snprintf(reason, sizeof(reason), "error %d", ret);
	snprintf(text, text_bytes, "%s: %.120s", call, reason);
	return false;
}

void cadge_wire_library(struct cadge_library *library_out)
{
	const struct cadge_library library = {.name = mpi_which_name(),
					      .stated_version = mpi_which_version(),
					      .symbol = (const void *)(uintptr_t)&MPI_Init};

	cadge_fill(library_out, &library, sizeof(library));
}
