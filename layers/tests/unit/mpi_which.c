/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi/which: each MPI is told by its own words, and put on the network by variables that it reads. The words come from here:
 * MPI is linked, and never runs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mpi.h>

#include "wire/mpi/which.h"
#include "tests/unit/support/tap.h"

static const char *words;

int MPI_Get_library_version(char *version, int *bytes)
{
	*bytes = snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING, "%s", words);
	return MPI_SUCCESS;
}

static bool is(const char *variable, const char *value)
{
	const char *has = getenv(variable);

	return value ? has && strcmp(has, value) == 0 : !has;
}

/* A launcher's words for the ranks of the job and for those on this host are understood. */
static bool counts(const char *all, const char *here)
{
	return setenv(all, "6", 1) == 0 && setenv(here, "2", 1) == 0 && mpi_which_ranks() == 6 &&
	       mpi_which_ranks_here() == 2 && unsetenv(all) == 0 && unsetenv(here) == 0 &&
	       mpi_which_ranks() == 0;
}

static bool as_open_mpi(const struct cadge_open_args *args)
{
	return mpi_which_is_open_mpi() && mpi_which_place(args, "pt2pt") && is("OMPI_MCA_osc", "pt2pt") &&
	       is("OMPI_MCA_btl_tcp_if_include", "data0") && is("OMPI_MCA_btl", "^vader,sm") &&
	       is("UCX_TLS", NULL) && strcmp(mpi_which_interface(), "data0") == 0;
}

/* The user's word for one of the variables stays. */
static bool as_mpich(const struct cadge_open_args *args)
{
	return !mpi_which_is_open_mpi() && setenv("UCX_TLS", "tcp", 1) == 0 &&
	       mpi_which_place(args, "pt2pt") && is("MPIR_CVAR_NOLOCAL", "1") && is("UCX_TLS", "tcp") &&
	       is("FI_TCP_IFACE", "data0") && is("OMPI_MCA_osc", NULL) && is("OMPI_MCA_btl", NULL) &&
	       strcmp(mpi_which_interface(), "data0") == 0;
}

static bool as_another(const struct cadge_open_args *args)
{
	return !mpi_which_is_open_mpi() && mpi_which_place(args, "pt2pt") && is("OMPI_MCA_osc", NULL) &&
	       is("MPIR_CVAR_NOLOCAL", NULL) && !*mpi_which_interface();
}

static bool told(const char *name, const char *version, bool before_5)
{
	return strcmp(mpi_which_name(), name) == 0 && strcmp(mpi_which_version(), version) == 0 &&
	       mpi_which_is_open_mpi_before(5) == before_5;
}

/* In a process of its own, since it asks once and changes the environment. */
static void tell(const char *says, const char *name, const char *version, bool before_5,
		 bool (*placed)(const struct cadge_open_args *args))
{
	const struct cadge_open_args between = {.place = CADGE_PLACE_NET, .device = "data0"};
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		words = says;
		_exit(!told(name, version, before_5) ? 1 : !placed(&between) ? 2 : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		tap_bail("no process");
	ok(status == 0, "%s %s is told and put on the network: %d", name, version, WEXITSTATUS(status));
}

int main(void)
{
	tell("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4", "Open MPI", "4.1.4", true,
	     as_open_mpi);
	tell("Open MPI v5.0.11, package: Open MPI", "Open MPI", "5.0.11", false, as_open_mpi);
	tell("MPICH Version:      5.0.2\nMPICH Release date: Fri", "MPICH", "5.0.2", false, as_mpich);
	tell("MPICH Version:\t4.0.2\nMPICH Release date:\tThu", "MPICH", "4.0.2", false, as_mpich);
	tell("Some MPI 2021.9 for Linux\nmore", "MPI", "Some MPI 2021.9 for Linux", false, as_another);
	ok(counts("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"), "ranks as Open MPI's mpirun says");
	ok(counts("PMI_SIZE", "MPI_LOCALNRANKS"), "ranks as hydra says");
	ok(counts("SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"), "ranks as srun says");
	return tap_done();
}
