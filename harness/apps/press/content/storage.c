/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/content/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fail.h"

#define WRITE_BYTES (4u << 20)
#define SITE_MAX    (UINT64_C(1) << 30)

static uint64_t blocks_of(uint64_t bytes)
{
	return (bytes + PRESS_STORAGE_BLOCK - 1) & ~(uint64_t)(PRESS_STORAGE_BLOCK - 1);
}

/* ---- the file ---- */

static bool is_memory(const char *folder)
{
	struct statfs about;

	return statfs(folder, &about) == 0 && (about.f_type == TMPFS_MAGIC || about.f_type == RAMFS_MAGIC);
}

/* A file without a name; where the file system knows none, one that loses it at once. */
static int open_in(const char *folder, bool *direct_out)
{
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | O_DIRECT, 0600);
	char path[4096];

	*direct_out = fd >= 0;
	if (fd < 0)
		fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd;
	if (snprintf(path, sizeof(path), "%s/cadge-press-XXXXXX", folder) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0) {
		unlink(path);
		*direct_out = !fcntl(fd, F_SETFL, O_DIRECT);
	}
	return fd;
}

static int open_file(struct press_storage *storage, struct drv_fail *fail)
{
	const char *own = getenv("TMPDIR");
	const char *const folders[] = {own && *own ? own : "/tmp", "/var/tmp"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		if (is_memory(folders[i]))
			continue;
		storage->fd = open_in(folders[i], &storage->direct);
		if (storage->fd >= 0)
			return 0;
		return drv_fail_set(fail, DRV_SYSTEM, "cannot make a file in %s: %s", folders[i],
				    strerror(errno));
	}
	return drv_fail_set(fail, DRV_NODE_LACKS, "%s and %s are in memory: no disk to read from", folders[0],
			    folders[1]);
}

/* A file system may take the flag and none of its writes. */
static int write_blocks(struct press_storage *storage, const uint8_t *data, size_t bytes, uint64_t at)
{
	while (bytes) {
		const ssize_t wrote = pwrite(storage->fd, data, bytes, (off_t)at);

		if (wrote < 0 && errno == EINVAL && storage->direct) {
			storage->direct = false;
			if (fcntl(storage->fd, F_SETFL, 0))
				return -1;
		} else if (wrote < 0 && errno != EINTR) {
			return -1;
		} else if (wrote > 0) {
			data += wrote;
			bytes -= (size_t)wrote;
			at += (uint64_t)wrote;
		}
	}
	return 0;
}

static int write_files(struct press_storage *storage, uint8_t *room)
{
	const struct press_files *files = storage->files;
	uint64_t written = 0;
	size_t used = 0;

	for (uint32_t file = 0; file < files->count; file++) {
		const size_t bytes = (size_t)blocks_of(files->bytes[file]);

		if (used + bytes > WRITE_BYTES) {
			if (write_blocks(storage, room, used, written))
				return -1;
			written += used;
			used = 0;
		}
		storage->at[file] = written + used;
		press_files_copy(files, file, 0, room + used, files->bytes[file]);
		memset(room + used + files->bytes[file], 0, bytes - files->bytes[file]);
		used += bytes;
	}
	if (write_blocks(storage, room, used, written))
		return -1;
	/* what is not yet written could not be given up */
	return storage->direct ? 0
			       : fdatasync(storage->fd) | posix_fadvise(storage->fd, 0, 0, POSIX_FADV_RANDOM);
}

static int refuse_room(const struct press_files *files, int error, struct drv_fail *fail)
{
	return drv_fail_set(fail, error == ENOSPC ? DRV_NODE_LACKS : DRV_SYSTEM,
			    "cannot write the %llu bytes of the site's files: %s",
			    (unsigned long long)files->total_bytes, strerror(error));
}

int press_storage_make(struct press_storage *storage, const struct press_files *files, struct drv_fail *fail)
{
	uint64_t all_bytes = 0;
	uint8_t *room;
	int status;

	*storage = (struct press_storage){.files = files, .fd = -1};
	if (files->total_bytes > SITE_MAX)
		return drv_fail_set(fail, DRV_NODE_LACKS,
				    "the site's files have %llu bytes; a node writes %llu at most",
				    (unsigned long long)files->total_bytes, (unsigned long long)SITE_MAX);
	storage->at = calloc(files->count, sizeof(*storage->at));
	room = aligned_alloc(PRESS_STORAGE_BLOCK, WRITE_BYTES);
	if (!storage->at || !room) {
		free(room);
		return drv_fail_set(fail, DRV_MEMORY, "no memory to write files");
	}
	status = open_file(storage, fail);
	for (uint32_t file = 0; file < files->count; file++)
		all_bytes += blocks_of(files->bytes[file]);
	/* where it is not supported, writing finds out */
	if (!status && fallocate(storage->fd, 0, 0, (off_t)all_bytes) && errno == ENOSPC)
		status = refuse_room(files, errno, fail);
	if (!status && write_files(storage, room))
		status = refuse_room(files, errno, fail);
	free(room);
	return status;
}

void press_storage_free(struct press_storage *storage)
{
	if (storage->files && storage->fd >= 0)
		close(storage->fd);
	free(storage->at);
	*storage = (struct press_storage){.fd = -1};
}

/* ---- reading ---- */

int press_storage_read(const struct press_storage *storage, uint32_t file, uint8_t *room, uint8_t *data)
{
	const size_t bytes = storage->files->bytes[file], blocks = (size_t)blocks_of(bytes);
	size_t done = 0;

	if (!storage->direct)
		posix_fadvise(storage->fd, (off_t)storage->at[file], (off_t)blocks, POSIX_FADV_DONTNEED);
	while (done < bytes) {
		const ssize_t had =
			pread(storage->fd, room + done, blocks - done, (off_t)(storage->at[file] + done));

		if (had < 0 && errno == EINTR)
			continue;
		if (had <= 0) {
			errno = had ? errno : EIO;
			return -1;
		}
		done += (size_t)had;
	}
	memcpy(data, room, bytes);
	return 0;
}
