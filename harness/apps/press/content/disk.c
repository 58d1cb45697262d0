/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/content/disk.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* `room` is for a real read. */
static void serve(const struct press_disk *disk, struct press_read *read, uint8_t *room)
{
	const uint64_t begun_ns = now_ns();
	const struct timespec service = {.tv_sec = (time_t)(disk->service_ns / 1000000000),
					 .tv_nsec = (long)(disk->service_ns % 1000000000)};

	if (disk->service_ns)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &service, NULL);
	if (disk->storage)
		read->failed = !room || press_storage_read(disk->storage, read->file, room, read->data);
	else
		press_files_copy(disk->files, read->file, 0, read->data, disk->files->bytes[read->file]);
	read->took_ns = now_ns() - begun_ns;
}

static void *help(void *arg)
{
	struct press_disk *disk = arg;
	uint8_t *room = disk->storage ? aligned_alloc(PRESS_STORAGE_BLOCK, PRESS_STORAGE_ROOM) : NULL;

	pthread_mutex_lock(&disk->lock);
	while (!disk->over) {
		struct press_read *read = disk->first;

		if (!read) {
			pthread_cond_wait(&disk->work, &disk->lock);
			continue;
		}
		disk->first = read->next;
		if (!disk->first)
			disk->last = &disk->first;
		disk->waiting--;
		pthread_mutex_unlock(&disk->lock);
		serve(disk, read, room);
		pthread_mutex_lock(&disk->lock);
		read->next = NULL;
		*disk->done_last = read;
		disk->done_last = &read->next;
		eventfd_write(disk->event_fd, 1);
	}
	pthread_mutex_unlock(&disk->lock);
	free(room);
	return NULL;
}

int press_disk_start(struct press_disk *disk, const struct press_files *files, uint32_t helpers,
		     uint64_t service_ns, const struct press_storage *storage)
{
	*disk = (struct press_disk){.files = files, .storage = storage, .service_ns = service_ns};
	disk->last = &disk->first;
	disk->done_last = &disk->done;
	pthread_mutex_init(&disk->lock, NULL);
	pthread_cond_init(&disk->work, NULL);
	disk->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (disk->event_fd < 0)
		return -1;
	for (uint32_t i = 0; i < helpers && i < PRESS_HELPERS_MAX; i++) {
		errno = pthread_create(&disk->threads[i], NULL, help, disk);
		if (errno)
			return -1;
		disk->helpers++;
	}
	return 0;
}

static void drop(struct press_read *read, void (*dropped)(struct press_read *read))
{
	while (read) {
		struct press_read *next = read->next;

		dropped(read);
		read = next;
	}
}

void press_disk_end(struct press_disk *disk, void (*dropped)(struct press_read *read))
{
	pthread_mutex_lock(&disk->lock);
	disk->over = true;
	pthread_cond_broadcast(&disk->work);
	pthread_mutex_unlock(&disk->lock);
	for (uint32_t i = 0; i < disk->helpers; i++)
		pthread_join(disk->threads[i], NULL);
	disk->helpers = 0;
	drop(disk->first, dropped);
	drop(disk->done, dropped);
	if (disk->event_fd >= 0)
		close(disk->event_fd);
	disk->event_fd = -1;
	pthread_cond_destroy(&disk->work);
	pthread_mutex_destroy(&disk->lock);
}

bool press_disk_read(struct press_disk *disk, struct press_read *read)
{
	bool takes;

	pthread_mutex_lock(&disk->lock);
	takes = disk->waiting < PRESS_READS_MAX;
	if (takes) {
		read->next = NULL;
		*disk->last = read;
		disk->last = &read->next;
		disk->waiting++;
		pthread_cond_signal(&disk->work);
	}
	pthread_mutex_unlock(&disk->lock);
	return takes;
}

struct press_read *press_disk_ended(struct press_disk *disk)
{
	struct press_read *read;
	eventfd_t count;

	pthread_mutex_lock(&disk->lock);
	read = disk->done;
	if (read) {
		disk->done = read->next;
		if (!disk->done)
			disk->done_last = &disk->done;
	} else {
		eventfd_read(disk->event_fd, &count);
	}
	pthread_mutex_unlock(&disk->lock);
	return read;
}
