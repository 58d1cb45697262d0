/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Helper threads that read files, as PRESS has them, so that the event loop never waits for a disk. A read takes a stated
 * service time and then copies the file (see files.h), or really reads it (see storage.h), one read at a time in each helper.
 */
#ifndef PRESS_DISK_H
#define PRESS_DISK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "press/content/files.h"
#include "press/content/storage.h"

#define PRESS_HELPERS_MAX 16u
/* reads that wait for a helper */
#define PRESS_READS_MAX 1024u

/* One read. The caller's, from press_disk_read until it is given back. */
struct press_read {
	uint32_t file;
	/* room for the whole file */
	uint8_t *data;
	struct press_read *next;
	/* when it is given back: how long the helper was at it, and whether the disk failed */
	uint64_t took_ns;
	bool failed;
};

struct press_disk {
	const struct press_files *files;
	/* NULL: a read takes service_ns */
	const struct press_storage *storage;
	uint64_t service_ns;
	/* readable when reads have ended */
	int event_fd;
	pthread_mutex_t lock;
	pthread_cond_t work;
	/* in order, under the lock */
	struct press_read *first, **last;
	struct press_read *done, **done_last;
	uint32_t waiting, helpers;
	bool over;
	pthread_t threads[PRESS_HELPERS_MAX];
};

/* Starts the helpers; `files` and `storage` stay the caller's. 0, or -1 with errno; press_disk_end is legal in either case. */
int press_disk_start(struct press_disk *disk, const struct press_files *files, uint32_t helpers,
		     uint64_t service_ns, const struct press_storage *storage);
/* Ends them, after the reads that they are at; `dropped` gets what nobody has taken, done or not. */
void press_disk_end(struct press_disk *disk, void (*dropped)(struct press_read *read));

/* False: too many are waiting already, and nothing happened. */
bool press_disk_read(struct press_disk *disk, struct press_read *read);

/* A read that has ended, or NULL; it empties event_fd when it has none. */
struct press_read *press_disk_ended(struct press_disk *disk);

#endif
