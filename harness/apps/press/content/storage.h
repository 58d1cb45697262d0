/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A site's files on a real disk, for helpers that really read: one temporary file that has no name, so that it is gone with
 * the process, however that ends. Each of the site's files is a stretch of it that begins at a block of its own.
 *
 * Reads go past the page cache (O_DIRECT) where the file system can; else what it keeps is given up before each read.
 */
#ifndef PRESS_STORAGE_H
#define PRESS_STORAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "press/content/files.h"

/* what O_DIRECT has to be aligned to, anywhere */
#define PRESS_STORAGE_BLOCK 4096u
/* room for the blocks of any file */
#define PRESS_STORAGE_ROOM (PRESS_FILE_BYTES_MAX + PRESS_STORAGE_BLOCK)

struct drv_fail;

struct press_storage {
	const struct press_files *files;
	/* -1: there is none */
	int fd;
	bool direct;
	/* by file: where it begins */
	uint64_t *at;
};

/*
 * Writes all files, in TMPDIR or in /var/tmp, whichever is on a disk; `files` stay the caller's. 0, or -1 with the reason;
 * press_storage_free is legal in either case.
 */
int press_storage_make(struct press_storage *storage, const struct press_files *files, struct drv_fail *fail);
void press_storage_free(struct press_storage *storage);

/* Reads a whole file. `room` is PRESS_STORAGE_ROOM bytes, aligned to a block, the thread's own. 0, or -1 with errno. */
int press_storage_read(const struct press_storage *storage, uint32_t file, uint8_t *room, uint8_t *data);

#endif
