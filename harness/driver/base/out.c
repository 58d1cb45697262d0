/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes a result so that it is there whole or not at all. */
#include "base/out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int descriptor_named(const char *path)
{
	static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		const size_t length = strlen(folders[i]);

		if (!strncmp(path, folders[i], length) && path[length])
			return atoi(path + length);
	}
	return -1;
}

/* To open /dev/fd/N, or a link to it as /dev/stdout is, would open the file behind it anew; it is itself
 * meant. */
static int descriptor_of(const char *path)
{
	char link[64];
	const int named = descriptor_named(path);
	const ssize_t count = named < 0 ? readlink(path, link, sizeof(link) - 1) : -1;

	if (count < 0)
		return named;
	link[count] = 0;
	return descriptor_named(link);
}

/* Without O_EXCL a part that somebody else put there could lead elsewhere. */
static int make_part(const struct drv_out *out)
{
	unlink(out->part);
	return open(out->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, out->mode ? 0600 : 0666);
}

/* A file that is not there, or a link to one: it has no path without links before it is made. */
static int find_new(const char *path, struct drv_out *out)
{
	const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (file < 0)
		return -1;
	close(file);
	return realpath(path, out->path) ? unlink(out->path) : -1;
}

static int find(const char *path, struct drv_out *out)
{
	struct stat there;
	int file;

	out->descriptor = descriptor_of(path);
	if (out->descriptor >= 0)
		return fcntl(out->descriptor, F_GETFD) < 0 ? -1 : 0;
	if (stat(path, &there)) {
		if (errno != ENOENT || find_new(path, out))
			return -1;
	} else {
		if (S_ISDIR(there.st_mode))
			errno = EISDIR;
		if (S_ISDIR(there.st_mode) || faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) ||
		    !realpath(path, out->path))
			return -1;
		if (!S_ISREG(there.st_mode))
			return 0;
		out->mode = there.st_mode;
	}
	snprintf(out->part, sizeof(out->part), "%s.part", out->path);
	file = make_part(out);
	if (file < 0)
		return -1;
	close(file);
	return unlink(out->part);
}

int drv_out_find(const char *path, struct drv_out *out, struct drv_fail *fail)
{
	*out = (struct drv_out){.descriptor = -1};
	if (find(path, out))
		return drv_fail_set(fail, DRV_ARGUMENT, "--out %s: %s", path, strerror(errno));
	return 0;
}

static int open_out(const struct drv_out *out)
{
	if (out->descriptor >= 0)
		return dup(out->descriptor);
	return out->part[0] ? make_part(out) : open(out->path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
}

static int write_all(int file, const char *text, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		const ssize_t count = write(file, text + done, bytes - done);

		if (count < 0 && errno != EINTR)
			return -1;
		done += count > 0 ? (size_t)count : 0;
	}
	return 0;
}

int drv_out_write(const struct drv_out *out, const char *text, size_t bytes)
{
	const int file = open_out(out);
	int status, reason;

	if (file < 0)
		return -1;
	status = write_all(file, text, bytes);
	if (!status && out->part[0])
		status = (out->mode && fchmod(file, out->mode & 0777)) || fsync(file) ||
					 rename(out->part, out->path)
				 ? -1
				 : 0;
	reason = errno;
	if (close(file) && !status && !out->part[0]) {
		status = -1;
		reason = errno;
	}
	if (status && out->part[0])
		unlink(out->part);
	errno = reason;
	return status;
}
