/* SPDX-License-Identifier: BSD-3-Clause */
/* What rdma-verbs refuses when it is opened where there is no RDMA device: by which code, and that the sentence helps. */
#include <string.h>

#include "tests/unit/support/pair.h"
#include "tests/unit/support/refuses.h"
#include "tests/unit/support/tap.h"

static const struct cadge_layer *layer;

int main(void)
{
	const struct cadge_setting strange = {.name = "transports", .value = "rc_v"};
	struct cadge_open_args args = pair_args(CADGE_WAIT_POLL);
	struct cadge_library library = {.bytes = sizeof(library)};

	layer = pair_load("rdma-verbs");
	args.place = CADGE_PLACE_HOST;
	refuses(layer, &args, CADGE_E_UNSUPPORTED, "", "it is not for two processes of one host");
	args.place = CADGE_PLACE_NET;
	args.device = "lo";
	args.address = "127.0.0.1";
	refuses(layer, &args, CADGE_E_ABSENT, "lo has no RDMA device",
		"an interface without an RDMA device is refused by name");
	args.device = "nowhere0";
	refuses(layer, &args, CADGE_E_TRANSPORT, "no network interface 'nowhere0'",
		"so is one that there is not");
	args.settings = &strange;
	args.settings_count = 1;
	refuses(layer, &args, CADGE_E_ARGUMENT, "transports", "an unknown setting is refused by name");
	layer->library(&library);
	ok(strchr(library.stated_version, '.') != NULL, "the library's version: %s", library.stated_version);
	return tap_done();
}
