/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which module may hold which layer: its own, and those of it that were built for one version of its library. The modules are
 * links to the one of the layer that does nothing; where it was not built nothing is tested.
 */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/loader.h"
#include "tap.h"

#define LAYER "null-self"

/* layers/<LAYER>.so beside the folder of this program. False where it is not there. */
static bool find_module(char path[PATH_MAX])
{
	char self[PATH_MAX];
	const ssize_t bytes = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (bytes < 0)
		return false;
	self[bytes] = '\0';
	*strrchr(self, '/') = '\0';
	return snprintf(path, PATH_MAX, "%s/../layers/" LAYER ".so", self) < PATH_MAX && !access(path, R_OK);
}

/* `reason` 0: it is loaded, and still calls itself as the layer does. */
static void expect(const char *folder, const char *module, const char *name, enum drv_reason reason)
{
	struct drv_loaded loaded = {0};
	struct drv_fail fail = {.reason = DRV_OK};
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s.so", folder, name);
	if (symlink(module, path))
		perror(path);
	if (!drv_loader_load(folder, name, NULL, &loaded, &fail))
		tap_ok(!reason && !strcmp(loaded.layer->name, LAYER), "%s is loaded as " LAYER, name);
	else
		tap_ok(fail.reason == reason, "%s is refused: %s", name, fail.text);
	if (unlink(path))
		perror(path);
}

int main(void)
{
	char module[PATH_MAX], folder[] = "/tmp/cadge-loader-XXXXXX";

	if (!find_module(module)) {
		puts("1..0 # SKIP " LAYER " was not built");
		return 77;
	}
	if (!mkdtemp(folder))
		return 1;
	expect(folder, module, LAYER, DRV_OK);
	expect(folder, module, LAYER "@1.22.0", DRV_OK);
	expect(folder, module, LAYER "@mpich-5.0.2", DRV_OK);
	expect(folder, module, LAYER "@", DRV_LIBRARY);
	expect(folder, module, LAYER "-too@1", DRV_LIBRARY);
	expect(folder, module, "null", DRV_LIBRARY);
	return rmdir(folder) ? 1 : tap_done();
}
