/* SPDX-License-Identifier: BSD-3-Clause */
/* The folder of an nginx: its configuration, the files that it serves, what it says. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "press/nginx/nginx_parts.h"

#define SPARE 64u

void press_nginx_path(const struct press_nginx *nginx, const char *name, char out[PATH_MAX])
{
	const size_t bytes = strlen(nginx->folder);

	memcpy(out, nginx->folder, bytes);
	snprintf(out + bytes, PATH_MAX - bytes, "/%s", name);
}

int press_nginx_folder(struct press_nginx *nginx, struct drv_fail *fail)
{
	const char *where = getenv("TMPDIR");
	char path[PATH_MAX], files[PATH_MAX];

	if (!where || !*where)
		where = "/tmp";
	if (where[0] != '/' || !press_nginx_allows(where) || strlen(where) > PATH_MAX - SPARE)
		return drv_fail_set(fail, DRV_NODE_LACKS,
				    "TMPDIR cannot stand in a configuration of nginx: %s", where);
	snprintf(path, sizeof(path), "%s/cadge-nginx-XXXXXX", where);
	if (!mkdtemp(path))
		return drv_fail_set(fail, DRV_SYSTEM, "no folder for nginx in %s: %s", where,
				    strerror(errno));
	memcpy(nginx->folder, path, sizeof(path));
	press_nginx_path(nginx, "f", files);
	if (mkdir(files, 0700))
		return drv_fail_set(fail, DRV_SYSTEM, "no folder for files: %s", strerror(errno));
	return 0;
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *where)
{
	(void)about, (void)kind, (void)where;
	return remove(path);
}

static int write_file(const struct press_files *files, uint32_t file, const char *path, void *room)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	size_t done = 0;

	if (fd < 0)
		return -1;
	press_files_copy(files, file, 0, room, files->bytes[file]);
	while (done < files->bytes[file]) {
		const ssize_t wrote = write(fd, (const uint8_t *)room + done, files->bytes[file] - done);

		if (wrote < 0 && errno != EINTR)
			break;
		done += wrote > 0 ? (size_t)wrote : 0;
	}
	return close(fd) || done < files->bytes[file] ? -1 : 0;
}

int press_nginx_files(const struct press_nginx *nginx, const struct press_files *files,
		      const struct press_ring *ring, uint32_t self, struct drv_fail *fail)
{
	void *room = malloc(PRESS_FILE_BYTES_MAX);
	int status = 0;

	if (!room)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for a file");
	for (uint32_t file = 0; !status && file < files->count; file++) {
		char uri[SPARE], path[PATH_MAX];
		const int bytes = snprintf(uri, sizeof(uri), "/f/%" PRIu32, file);

		if (press_ring_find(ring, uri, (size_t)bytes) != self)
			continue;
		press_nginx_path(nginx, uri + 1, path);
		if (write_file(files, file, path, room))
			status = drv_fail_set(fail, DRV_SYSTEM, "cannot write %s: %s", path, strerror(errno));
	}
	free(room);
	return status;
}

int press_nginx_configure(const struct press_nginx_plan *plan, const struct press_nginx *nginx,
			  struct drv_fail *fail)
{
	char path[PATH_MAX];
	FILE *out;
	int status;

	press_nginx_path(nginx, "nginx.conf", path);
	out = fopen(path, "wex");
	status = out ? press_nginx_write(out, plan) : -1;
	if (out && fclose(out))
		status = -1;
	return status ? drv_fail_set(fail, DRV_SYSTEM, "cannot write %s: %s", path, strerror(errno)) : 0;
}

void press_nginx_log_tail(const struct press_nginx *nginx, char out[PRESS_NGINX_LOG_TAIL_BYTES])
{
	char path[PATH_MAX], line[PRESS_NGINX_LOG_TAIL_BYTES];
	FILE *file;

	*out = '\0';
	press_nginx_path(nginx, "error.log", path);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (*line)
			memcpy(out, line, sizeof(line));
	}
	if (file)
		fclose(file);
}

void press_nginx_clear(struct press_nginx *nginx)
{
	if (*nginx->folder)
		nftw(nginx->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	*nginx->folder = '\0';
}
