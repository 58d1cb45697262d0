/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A UCX without verbs on a node whose data network has an RDMA device: it is refused unless TCP is asked for. The device is one
 * in a /sys/class of our own, and UCX loads only the parts that UCX_MODULES names.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/support/pair.h"
#include "tests/unit/support/tap.h"

/* Our own view of /sys: the interfaces as they are, and the device rxe0 behind `lo`. */
static bool fake_device(void)
{
	static const char table[] = "/sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs";
	char folder[sizeof(table)], kept[] = "/tmp/cadge-net-XXXXXX";
	FILE *file;

	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    !mkdtemp(kept))
		return false;
	if (mount("/sys/class/net", kept, NULL, MS_BIND, NULL) < 0 ||
	    mount("tmpfs", "/sys/class", "tmpfs", 0, NULL) < 0 || mkdir("/sys/class/net", 0755) < 0 ||
	    mount(kept, "/sys/class/net", NULL, MS_MOVE, NULL) < 0 || rmdir(kept) < 0)
		return false;
	for (const char *end = table + strlen("/sys/class"); *end; end += strcspn(end, "/")) {
		end++;
		snprintf(folder, sizeof(folder), "%.*s", (int)(end + strcspn(end, "/") - table), table);
		if (mkdir(folder, 0755) < 0)
			return false;
	}
	snprintf(folder, sizeof(folder), "%s", table);
	if (chdir(folder) < 0)
		return false;
	file = fopen("0", "w");
	return file && fputs("lo\n", file) >= 0 && fclose(file) == 0;
}

/* Opens native-ucx in a process of its own, since UCX reads its variables once. Its sentence goes to `said`; "" where it opens. */
static void open_with(const char *modules, const char *transports, char said[256])
{
	const struct cadge_setting setting = {.name = "transports", .value = transports};
	int ends[2], status;
	ssize_t bytes;

	if (pipe(ends) < 0)
		tap_bail("no pipe");
	fflush(stdout);
	if (fork() == 0) {
		const struct cadge_layer *layer;
		struct cadge_ctx *ctx;
		struct cadge_open_args args;

		if (setenv("UCX_MODULES", modules, 1))
			_exit(1);
		layer = pair_load("native-ucx");
		args = pair_args(CADGE_WAIT_POLL);
		args.place = CADGE_PLACE_NET;
		args.device = "lo";
		args.settings = &setting;
		args.settings_count = *transports ? 1 : 0;
		if (layer->open(&args, &ctx) == CADGE_DONE)
			layer->close(ctx);
		else if (write(ends[1], args.error, strlen(args.error)) < 0)
			_exit(1);
		_exit(0);
	}
	close(ends[1]);
	bytes = read(ends[0], said, 255);
	said[bytes > 0 ? bytes : 0] = '\0';
	close(ends[0]);
	if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
		snprintf(said, 256, "the process that opens it died");
}

int main(void)
{
	char said[256];

	if (!fake_device())
		tap_skip_all("no /sys of our own: this needs root");
	open_with("cma", "", said);
	ok(strstr(said, "built without verbs") && strstr(said, "lo has the RDMA device rxe0") &&
		   strstr(said, "transports=tcp"),
	   "without verbs it is refused: %s", said);
	open_with("cma", "tcp", said);
	ok(!*said, "unless TCP is asked for: %s", said);
	open_with("all", "", said);
	ok(!strstr(said, "built without verbs"), "with verbs it is not: %s", said);
	return tap_done();
}
