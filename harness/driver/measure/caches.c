/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/caches.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The first word of a file of cache `index`; false: there is none. */
static int read_word(const char *folder, unsigned int index, const char *name, char word[32])
{
	char path[512];
	FILE *file;
	int read;

	snprintf(path, sizeof(path), "%s/index%u/%s", folder, index, name);
	file = fopen(path, "re");
	if (!file)
		return 0;
	read = fscanf(file, "%31s", word) == 1;
	fclose(file);
	return read;
}

uint64_t drv_caches_bytes(const char *folder)
{
	uint64_t bytes = 0;
	char type[32], size[32];

	for (unsigned int index = 0; read_word(folder, index, "type", type); index++) {
		uint64_t count;
		char unit = 'K';

		if (strcmp(type, "Instruction") == 0)
			continue;
		if (!read_word(folder, index, "size", size) ||
		    sscanf(size, "%" SCNu64 "%c", &count, &unit) < 1)
			return 0;
		bytes += count * (unit == 'M' ? UINT64_C(1) << 20 : 1024);
	}
	return bytes;
}
