/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the libfabric layers say of the provider's parameters holds for those that the library was started with:
 * it reads them once, so each case is a process of its own, this program again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/support/pair.h"
#include "tests/unit/support/tap.h"

static struct cadge_open_args arguments(enum cadge_place place)
{
	struct cadge_open_args args = pair_args(CADGE_WAIT_POLL);

	args.place = place;
	args.device = "lo";
	args.address = "127.0.0.1";
	args.message_bytes_max = 8192;
	return args;
}

/* Prints the path of a channel, and whether order is granted. */
static int in_child(const char *name, const char *place)
{
	const struct cadge_layer *layer = pair_load(name);
	const struct cadge_open_args args =
		arguments(strcmp(place, "within") == 0 ? CADGE_PLACE_HOST : CADGE_PLACE_NET);
	struct cadge_limits limits = {.bytes = sizeof(limits)};
	struct cadge_path path = {.bytes = sizeof(path)};
	struct pair_end end, other;

	if (pair_open(&end, layer, &args) || pair_open(&other, layer, &args) ||
	    !pair_bring_up(&end, &other) || layer->describe_path(end.chan, &path))
		return 1;
	layer->limits(end.ctx, &limits);
	printf("%s; %s", path.used, limits.caps & CADGE_CAP_ORDERED ? "in order" : "in no order");
	pair_close(&end);
	pair_close(&other);
	return 0;
}

static void says(const char *layer, const char *place, const char *variable, const char *expected)
{
	char command[512], said[512] = "", self[256];
	const ssize_t bytes = readlink("/proc/self/exe", self, sizeof(self) - 1);
	FILE *child;

	if (bytes < 0)
		tap_bail("no name of its own");
	self[bytes] = '\0';
	snprintf(command, sizeof(command), "%s '%s' %s %s", variable, self, layer, place);
	child = popen(command, "r");
	if (!child)
		tap_bail("no child");
	if (!fgets(said, sizeof(said), child))
		said[0] = '\0';
	if (!ok(pclose(child) == 0 && strstr(said, expected), "%s, %s, %s: %s", layer, place,
		*variable ? variable : "nothing set", expected))
		printf("# it said: %s\n", said);
}

int main(int argc, char **argv)
{
	if (argc == 3)
		return in_child(argv[1], argv[2]);
	says("native-ofi", "within", "", "; disable_cma no");
	says("native-ofi", "within", "FI_SHM_DISABLE_CMA=1", "; disable_cma yes");
	says("rdma-ofi", "within", "FI_SHM_DISABLE_CMA=yes", "; disable_cma yes");
	says("native-ofi", "between", "", "; buffer_size 16384");
	says("native-ofi", "between", "", "; in order");
	says("native-ofi", "between", "FI_OFI_RXM_BUFFER_SIZE=4096", "; buffer_size 4096");
	says("native-ofi", "between", "FI_OFI_RXM_BUFFER_SIZE=4096", "; in no order");
	return tap_done();
}
