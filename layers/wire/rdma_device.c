/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/rdma_device.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The first line of a file is this word. The kernel answers EINVAL for an entry of the table that is empty. */
static bool holds(const char *path, const char *word)
{
	char line[64] = "";
	FILE *file = fopen(path, "re"); /* cadge: sysfs */

	if (!file)
		return false;
	if (!fgets(line, sizeof(line), file))
		line[0] = '\0';
	fclose(file);
	line[strcspn(line, "\n")] = '\0';
	return *word && strcmp(line, word) == 0;
}

bool cadge_rdma_device_under(const char *root, const char *interface, struct cadge_rdma_device *device_out)
{
	struct cadge_rdma_device device;
	char pattern[PATH_MAX];
	bool found = false;
	glob_t all;

	if (snprintf(pattern, sizeof(pattern), "%s/*/ports/*/gid_attrs/ndevs/*", root) >=
		    (int)sizeof(pattern) ||
	    glob(pattern, 0, NULL, &all))
		return false;
	for (size_t i = 0; i < all.gl_pathc && !found; i++)
		found = holds(all.gl_pathv[i], interface) &&
			sscanf(all.gl_pathv[i] + strlen(root), "/%63[^/]/ports/%u/", device.name,
			       &device.port) == 2;
	globfree(&all);
	snprintf(pattern, sizeof(pattern), "%s/%s/parent", root, found ? device.name : "");
	device.soft = access(pattern, F_OK) == 0;
	if (found)
		*device_out = device;
	return found;
}

bool cadge_rdma_device_of(const char *interface, struct cadge_rdma_device *device_out)
{
	return cadge_rdma_device_under("/sys/class/infiniband", interface, device_out);
}
