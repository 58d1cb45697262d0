/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/mpi/which.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

static struct {
	const char *name; /* NULL: not asked yet */
	char version[MPI_MAX_LIBRARY_VERSION_STRING];
} which;

/* "Open MPI v4.1.4, package: ..." and "MPICH Version:      5.0.2\nMPICH Release date: ...". */
static void ask(void)
{
	static const struct {
		const char *begins, *name, *end;
	} known[] = {
		{"Open MPI v", "Open MPI", ","}, {"MPICH Version:", "MPICH", " \t\n"}, {"", "MPI", "\n"}};
	char found[MPI_MAX_LIBRARY_VERSION_STRING];
	const char *at;
	size_t i = 0;
	int bytes;

	if (which.name)
		return;
	if (MPI_Get_library_version(found, &bytes) != MPI_SUCCESS)
		snprintf(found, sizeof(found), "unknown");
	while (strncmp(found, known[i].begins, strlen(known[i].begins)) != 0)
		i++;
	at = found + strlen(known[i].begins);
	at += strspn(at, " \t");
	snprintf(which.version, sizeof(which.version), "%.*s", (int)strcspn(at, known[i].end), at);
	which.name = known[i].name;
}

const char *mpi_which_name(void)
{
	ask();
	return which.name;
}

const char *mpi_which_version(void)
{
	ask();
	return which.version;
}

bool mpi_which_is_open_mpi(void)
{
	return strcmp(mpi_which_name(), "Open MPI") == 0;
}

bool mpi_which_is_open_mpi_before(int major)
{
	return mpi_which_is_open_mpi() && atoi(mpi_which_version()) < major;
}

/* The word of Open MPI's mpirun, else that of hydra and of other launchers that speak PMI, else that of srun. */
static int count_of(const char *open_mpi, const char *pmi, const char *slurm)
{
	const char *found = getenv(open_mpi);

	if (!found)
		found = getenv(pmi);
	if (!found)
		found = getenv(slurm);
	return found ? atoi(found) : 0;
}

int mpi_which_ranks(void)
{
	return count_of("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS");
}

/* Slurm says how many each host has, like 2,1(x3); the first number equals all ranks where there is one host. */
int mpi_which_ranks_here(void)
{
	return count_of("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_TASKS_PER_NODE");
}

struct placing {
	const char *variable;
	const char *value; /* NULL: the interface */
	bool between;      /* for place between alone */
};

static const struct placing of_open_mpi[] = {
	{"OMPI_MCA_btl_tcp_if_include", NULL, false},
	{"OMPI_MCA_btl", "^vader,sm", true},
	{NULL, NULL, false},
};

/*
 * MPICH may have been built on UCX, on libfabric, or on both. Its own shared memory is one matter; UCX, to which two ranks that
 * MPICH takes for two hosts are still two processes of one, has its own as well.
 */
static const struct placing of_mpich[] = {
	{"UCX_NET_DEVICES", NULL, false}, {"FI_TCP_IFACE", NULL, false}, {"FI_SOCKETS_IFACE", NULL, false},
	{"MPIR_CVAR_NOLOCAL", "1", true}, {"UCX_TLS", "^sm", true},      {NULL, NULL, false},
};

static const struct placing of_others[] = {{NULL, NULL, false}};

static const struct placing *placings(void)
{
	if (mpi_which_is_open_mpi())
		return of_open_mpi;
	return strcmp(mpi_which_name(), "MPICH") == 0 ? of_mpich : of_others;
}

bool mpi_which_place(const struct cadge_open_args *args, const char *osc)
{
	for (const struct placing *at = placings(); at->variable; at++)
		if ((!at->between || args->place == CADGE_PLACE_NET) &&
		    setenv(at->variable, at->value ? at->value : args->device, 0))
			return false;
	return !osc || !mpi_which_is_open_mpi() || !setenv("OMPI_MCA_osc", osc, 0);
}

const char *mpi_which_interface(void)
{
	const char *variable = placings()->variable;
	const char *value = variable ? getenv(variable) : NULL;

	return value ? value : "";
}
