/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that bytes need not leave: on a wire that joins processes of one host a long message that lies in it goes as a
 * reference, and is read in its place.
 *
 * Each piece is a memfd whose size is sealed, and into which nobody but its owner can write (F_SEAL_FUTURE_WRITE, Linux 5.1).
 * Who is given a reference opens it as /proc/PID/fd/FD, maps it for reading, and keeps this view until the owner has given the
 * piece back or has ended. What is mapped stays there, whatever becomes of the owner: to read it is always safe.
 */
#include "engine.h"
#include "../base/process.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define HEAD_BYTES 4096u
#define MAGIC      UINT64_C(0x3179726f6d656d70) /* "pmemory1" */
#define SEALS      (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)
#define VIEWS_MAX  256u

/* Before the memory itself. */
struct head {
	uint64_t magic, id;
	_Atomic uint32_t given_back;
};

/* Memory of our own. */
struct pgr_region {
	struct pgr_region *next;
	struct head *head; /* the mapping begins here; NULL: nobody else can see it */
	uint8_t *at;
	size_t bytes;
	int fd; /* -1: nobody else can see it */
};

/* Memory of somebody else's. */
struct pgr_view {
	struct pgr_view *next;
	struct pgr_to owner;
	uint64_t id;
	const struct head *head;
	size_t bytes; /* head and memory */
};

/* What stands in a packet in place of its data; every field in little-endian order. */
struct reference {
	uint64_t id;
	uint64_t at; /* from the beginning of the mapping */
	uint32_t fd, bytes;
};
_Static_assert(sizeof(struct reference) == PGR_REFERENCE_BYTES, "as PROTOCOL.md says");

/* ---- our own ---- */

static bool may_share(const struct pgr *pgr)
{
	return pgr->wire->joins_processes && !pgr->has_key &&
	       !(pgr->off & (PGR_OFF_GATHER | PGR_OFF_NO_CONVERSION));
}

/* Memory that others can read; false: it is not to be had here. */
static bool share(struct pgr_region *region)
{
	const size_t bytes = HEAD_BYTES + region->bytes;
	void *at = MAP_FAILED;

	region->fd = pgr_memfd_make("pgr-memory", bytes);
	if (region->fd >= 0)
		at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, region->fd, 0);
	/* our own mapping is there already; no other can be made to write */
	if (at != MAP_FAILED && fcntl(region->fd, F_ADD_SEALS, SEALS) == 0) {
		region->head = at;
		region->head->magic = MAGIC;
		region->head->id = pgr_nonce();
		region->at = (uint8_t *)at + HEAD_BYTES;
		return true;
	}
	if (at != MAP_FAILED)
		munmap(at, bytes);
	if (region->fd >= 0)
		close(region->fd);
	region->fd = -1;
	return false;
}

void *pgr_alloc(struct pgr *pgr, size_t bytes)
{
	const size_t page = HEAD_BYTES;
	struct pgr_region *region;
	void *at;

	if (!pgr->here || !bytes || bytes > SIZE_MAX / 2 || !(region = calloc(1, sizeof(*region))))
		return NULL;
	region->bytes = (bytes + page - 1) / page * page;
	region->fd = -1;
	if (!may_share(pgr) || !share(region)) {
		at = mmap(NULL, region->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at == MAP_FAILED) {
			free(region);
			return NULL;
		}
		region->at = at;
	}
	region->next = pgr->regions;
	pgr->regions = region;
	return region->at;
}

/* A child that was forked gives nothing back but its view of it: the memory is its parent's. */
static void give_back(const struct pgr *pgr, struct pgr_region *region)
{
	if (region->head) {
		if (pgr->here)
			atomic_store_explicit(&region->head->given_back, 1, memory_order_release);
		munmap(region->head, HEAD_BYTES + region->bytes);
		close(region->fd);
	} else {
		munmap(region->at, region->bytes);
	}
	free(region);
}

int pgr_free(struct pgr *pgr, void *memory)
{
	struct pgr_region **at = &pgr->regions, *region;

	if (!memory)
		return PGR_OK;
	while (*at && (*at)->at != memory)
		at = &(*at)->next;
	region = *at;
	if (!region)
		return PGR_E_ARGUMENT;
	*at = region->next;
	give_back(pgr, region);
	return PGR_OK;
}

bool pgr_refer(struct pgr *pgr, const struct pgr_iov *iov, uint32_t count, uint64_t bytes,
	       uint8_t reference_out[PGR_REFERENCE_BYTES], struct pgr_outgoing *out)
{
	const uint8_t *at = NULL, *end = NULL;
	struct reference reference;

	if (bytes < pgr->in_place_bytes)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (!iov[i].bytes)
			continue;
		if (at && iov[i].base != end)
			return false; /* in several pieces */
		at = at ? at : iov[i].base;
		end = (const uint8_t *)iov[i].base + iov[i].bytes;
	}
	for (const struct pgr_region *region = pgr->regions; region; region = region->next) {
		if (!region->head || at < region->at || end > region->at + region->bytes)
			continue;
		if ((uintptr_t)at % 8)
			return false; /* arguments begin at a multiple of 8 */
		reference = (struct reference){
			.id = pgr_le64(region->head->id),
			.at = pgr_le64((uint64_t)(at - (const uint8_t *)region->head)),
			.fd = pgr_le32((uint32_t)region->fd),
			.bytes = pgr_le32((uint32_t)(end - at)),
		};
		memcpy(reference_out, &reference, sizeof(reference));
		pgr_outgoing_set(out, &(struct pgr_iov){reference_out, PGR_REFERENCE_BYTES}, 1,
				 PGR_REFERENCE_BYTES);
		pgr->stats.references++;
		return true;
	}
	return false;
}

/* ---- of others ---- */

static void close_view(struct pgr_view *view)
{
	munmap((void *)(uintptr_t)view->head, view->bytes);
	free(view);
}

/* Nothing is mapped whose size can change, or that others can write to: sealed before it is measured. */
static const struct head *map(uint32_t pid, uint32_t fd_there, uint64_t id, size_t *bytes_out)
{
	const int like = memfd_create("pgr-like", MFD_CLOEXEC);
	const int fd = like < 0 ? -1 : pgr_process_open_fd(pid, fd_there, S_IFREG, like, O_RDONLY);
	const struct head *head = MAP_FAILED;
	struct stat stat;

	if (fd >= 0 && pgr_memfd_is_sealed(fd, SEALS) && fstat(fd, &stat) == 0 &&
	    stat.st_size > (off_t)HEAD_BYTES)
		head = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	if (like >= 0)
		close(like);
	if (head == MAP_FAILED)
		return NULL;
	if (head->magic != MAGIC || head->id != id) {
		munmap((void *)(uintptr_t)head, (size_t)stat.st_size);
		return NULL;
	}
	*bytes_out = (size_t)stat.st_size;
	return head;
}

static PGR_COLD struct pgr_view *open_view(struct pgr *pgr, const struct pgr_to *owner, uint64_t id,
					   uint32_t fd)
{
	struct pgr_view *view = calloc(1, sizeof(*view)), **last = &pgr->views;
	unsigned int count = 0;
	uint32_t pid;

	memcpy(&pid, owner->bytes, sizeof(pid));
	if (view)
		view->head = map(pid, fd, id, &view->bytes);
	if (!view || !view->head) {
		free(view);
		return NULL;
	}
	view->owner = *owner;
	view->id = id;
	view->next = pgr->views;
	pgr->views = view;
	while (*last && ++count <= VIEWS_MAX)
		last = &(*last)->next;
	if (*last) { /* the oldest one can be opened again */
		close_view(*last);
		*last = NULL;
	}
	return view;
}

const uint8_t *pgr_referred(struct pgr *pgr, const struct pgr_to *from, const struct pgr_packet *packet,
			    uint64_t *bytes_out)
{
	struct reference reference;
	struct pgr_view *view;
	uint64_t id, at, bytes;

	memcpy(&reference, packet->data, sizeof(reference)); /* looked at once, after it was copied */
	id = pgr_le64(reference.id);
	at = pgr_le64(reference.at);
	bytes = pgr_le32(reference.bytes);
	for (view = pgr->views; view; view = view->next)
		if (view->id == id && memcmp(&view->owner, from, sizeof(*from)) == 0)
			break;
	if (!view)
		view = open_view(pgr, from, id, pgr_le32(reference.fd));
	if (!view || at < HEAD_BYTES || at % 8 || at > view->bytes || bytes > view->bytes - at)
		return NULL;
	*bytes_out = bytes;
	return (const uint8_t *)view->head + at;
}

void pgr_views_sweep(struct pgr *pgr)
{
	struct pgr_view **at = &pgr->views;

	while (*at) {
		struct pgr_view *view = *at;

		if (!atomic_load_explicit(&view->head->given_back, memory_order_acquire) &&
		    !(pgr->wire->ops->ended && pgr->wire->ops->ended(pgr->wire, &view->owner))) {
			at = &view->next;
			continue;
		}
		*at = view->next;
		close_view(view);
	}
}

void pgr_memory_free(struct pgr *pgr)
{
	while (pgr->regions) {
		struct pgr_region *region = pgr->regions;

		pgr->regions = region->next;
		give_back(pgr, region);
	}
	while (pgr->views) {
		struct pgr_view *view = pgr->views;

		pgr->views = view->next;
		close_view(view);
	}
}
