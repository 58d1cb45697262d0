/* SPDX-License-Identifier: BSD-3-Clause */
/* What the layers of MPI refuse when they are opened, without ever starting MPI. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/support/pair.h"
#include "tests/unit/support/refuses.h"
#include "tests/unit/support/tap.h"

static const struct cadge_layer *layer;

static void refusals(const char *name)
{
	const struct cadge_setting any = {.name = "pml", .value = "ob1"};
	struct cadge_library library = {.bytes = sizeof(library)};
	struct cadge_open_args args;

	layer = pair_load(name);
	if (unsetenv("OMPI_COMM_WORLD_SIZE") || unsetenv("PMI_SIZE") || unsetenv("SLURM_STEP_NUM_TASKS"))
		tap_bail("the environment cannot be changed");
	args = pair_args(CADGE_WAIT_POLL);
	args.place = CADGE_PLACE_HOST;
	refuses(layer, &args, CADGE_E_TRANSPORT, "mpirun", "a process that mpirun did not start is refused");
	if (setenv("OMPI_COMM_WORLD_SIZE", "1", 1))
		tap_bail("the environment cannot be changed");
	refuses(layer, &args, CADGE_E_TRANSPORT, "mpirun", "and so is a single rank");
	args.wait_mode = CADGE_WAIT_BLOCK;
	refuses(layer, &args, CADGE_E_UNSUPPORTED, "sleeps", "block mode is refused");
	args.wait_mode = CADGE_WAIT_POLL;
	args.settings = &any;
	args.settings_count = 1;
	refuses(layer, &args, CADGE_E_ARGUMENT, "setting", "settings are refused");
	args.settings_count = 0;
	args.place = CADGE_PLACE_NET;
	args.device = "cadge-none0";
	refuses(layer, &args, CADGE_E_TRANSPORT, "interface", "a missing interface is refused");
	args.place = CADGE_PLACE_SELF;
	refuses(layer, &args, CADGE_E_UNSUPPORTED, "two processes", "a context is not connected to itself");
	layer->library(&library);
	ok(library.symbol && strchr("0123456789", library.stated_version[0]), "the version is a number: %s",
	   library.stated_version);
}

/* Between hosts what Open MPI 4 chooses by itself cannot make a window. */
static void refuses_the_default_component(void)
{
	struct cadge_library library = {.bytes = sizeof(library)};
	struct cadge_open_args args = pair_args(CADGE_WAIT_POLL);

	layer->library(&library);
	args.place = CADGE_PLACE_NET;
	if (setenv("OMPI_MCA_osc", "rdma", 1))
		tap_bail("the environment cannot be changed");
	if (library.stated_version[0] < '5')
		refuses(layer, &args, CADGE_E_UNSUPPORTED, "MPI_ERR_WIN",
			"osc rdma is refused between hosts");
	else
		refuses(layer, &args, CADGE_E_TRANSPORT, "mpirun",
			"osc rdma is as good as any from version 5");
}

int main(void)
{
	refusals("mpi-p2p");
	refusals("rdma-mpi");
	refuses_the_default_component();
	return tap_done();
}
