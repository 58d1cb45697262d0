/* SPDX-License-Identifier: BSD-3-Clause */
/* What the caches hold, from folders such as the kernel's. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "measure/caches.h"
#include "tap.h"

static char root[] = "/tmp/cadge-caches-XXXXXX";

static void write_word(unsigned int index, const char *name, const char *word)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/index%u", root, index);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/index%u/%s", root, index, name);
	file = fopen(path, "w");
	if (!file || fprintf(file, "%s\n", word) < 0 || fclose(file))
		abort();
}

static void cache(unsigned int index, const char *type, const char *size)
{
	write_word(index, "type", type);
	write_word(index, "size", size);
}

int main(void)
{
	char command[64];

	if (!mkdtemp(root))
		abort();
	tap_ok(drv_caches_bytes(root) == 0, "nothing is said");
	cache(0, "Data", "32K");
	cache(1, "Instruction", "64K");
	cache(2, "Unified", "1024K");
	cache(3, "Unified", "32M");
	tap_ok(drv_caches_bytes(root) == (32 + 1024 + 32768) * 1024, "instructions are not data");
	cache(4, "Unified", "much");
	tap_ok(drv_caches_bytes(root) == 0, "a size that cannot be read is not left out");
	snprintf(command, sizeof(command), "rm -r %s", root);
	tap_ok(system(command) == 0, "nothing stays");
	return tap_done();
}
