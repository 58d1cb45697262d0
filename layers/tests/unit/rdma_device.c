/* SPDX-License-Identifier: BSD-3-Clause */
/* wire/rdma_device: which RDMA device an interface has, over folders laid out as the kernel does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire/rdma_device.h"
#include "tests/unit/support/tap.h"

static char root[] = "/tmp/cadge-rdma-XXXXXX";

/* An entry of a GID table that names `interface`. */
static void entry(const char *device, unsigned int port, unsigned int index, const char *interface)
{
	char path[256];
	const char *const parts[] = {"%s/%s", "%s/%s/ports", "%s/%s/ports/%u", "%s/%s/ports/%u/gid_attrs",
				     "%s/%s/ports/%u/gid_attrs/ndevs"};
	FILE *file;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		snprintf(path, sizeof(path), parts[i], root, device, port);
		mkdir(path, 0700);
	}
	snprintf(path, sizeof(path), "%s/%s/ports/%u/gid_attrs/ndevs/%u", root, device, port, index);
	file = fopen(path, "w");
	if (!file) {
		ok(false, "%s can be written", path);
		return;
	}
	fprintf(file, "%s\n", interface);
	fclose(file);
}

static void none(const char *interface, const char *why)
{
	struct cadge_rdma_device found = {.name = "untouched", .port = 9};

	ok(!cadge_rdma_device_under(root, interface, &found) && !strcmp(found.name, "untouched") &&
		   found.port == 9,
	   "%s", why);
}

int main(void)
{
	struct cadge_rdma_device found;
	char command[64];

	if (!mkdtemp(root))
		return 1;
	none("data0", "where there is no device, none is found");
	entry("rxe0", 1, 0, "data0");
	entry("mlx5_1", 1, 0, "");
	entry("mlx5_1", 2, 3, "data00");
	ok(cadge_rdma_device_under(root, "data0", &found) && !strcmp(found.name, "rxe0") && found.port == 1,
	   "the device of the interface, and its port");
	ok(cadge_rdma_device_under(root, "data00", &found) && !strcmp(found.name, "mlx5_1") &&
		   found.port == 2,
	   "its second port, by a later entry of the table");
	ok(!found.soft, "a device of which nothing says what it stands on is none of software");
	snprintf(command, sizeof(command), "echo data0 >'%s/rxe0/parent'", root);
	ok(system(command) == 0 && cadge_rdma_device_under(root, "data0", &found) && found.soft, "soft RoCE");
	none("data", "the beginning of a name is another name");
	none("", "an empty entry is no interface without a name");
	snprintf(command, sizeof(command), "rm -r '%s'", root);
	ok(system(command) == 0, "what was made is gone");
	return tap_done();
}
