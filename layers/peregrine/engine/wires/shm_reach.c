/* SPDX-License-Identifier: BSD-3-Clause */
/* See shm_ring.h: another endpoint's inbox is found and looked at, and a ring of it taken, if need be from one that has died. */
#include <stdlib.h>
#include <sys/stat.h>

#include "shm_ring.h"
#include "../base/process.h"

void pgr_shm_release(struct outgoing *out)
{
	if (out->inbox)
		munmap(out->inbox, sizeof(struct inbox));
	if (out->life_fd >= 0)
		close(out->life_fd);
	if (out->wake_fd >= 0)
		close(out->wake_fd);
	out->inbox = NULL;
	out->life_fd = out->wake_fd = -1;
}

bool pgr_shm_has_ended(const struct shm *shm, const struct pgr_to *endpoint)
{
	struct shm_address address;
	uint64_t begin[2]; /* magic and nonce */
	bool another;
	int fd;

	memcpy(&address, endpoint->bytes, sizeof(address));
	if (pgr_process_has_ended(address.pid))
		return true;
	fd = pgr_process_open_fd(address.pid, address.fd, S_IFREG, shm->fd, O_RDONLY);
	if (fd < 0)
		return (errno == ENOENT || errno == EINVAL) && pgr_process_runs(address.pid);
	another = pread(fd, begin, sizeof(begin), 0) == sizeof(begin) &&
		  (begin[0] != MAGIC || begin[1] != address.nonce);
	close(fd);
	return another;
}

/* Closes rings whose writers have died. Whether there are any, or others, that their reader will set free once it looks. */
static PGR_COLD bool close_dead(const struct shm *shm, struct inbox *inbox)
{
	bool any = false;

	for (uint32_t i = 0; i < RINGS; i++) {
		struct ring_head *head = &inbox->heads[i];
		uint64_t word = atomic_load(&head->word);

		any |= state_of(word) == CLOSED ||
		       (state_of(word) == READY && pgr_shm_has_ended(shm, &head->from) &&
			atomic_compare_exchange_strong(&head->word, &word, with_state(word, CLOSED)));
	}
	return any;
}

/* Takes a free ring of the inbox. */
static struct ring_head *claim(struct inbox *inbox, const struct shm *shm, uint32_t *number_out)
{
	for (uint32_t i = 0; i < RINGS; i++) {
		struct ring_head *head = &inbox->heads[i];
		uint64_t word = atomic_load(&head->word), claimed;
		uint32_t count;

		if (state_of(word) != FREE &&
		    (state_of(word) != CLAIMED || !pgr_process_has_ended(writer_of(word))))
			continue;
		claimed = (uint64_t)getpid() << 32 | ((word + 0x100) & 0xffffff00) | CLAIMED;
		if (!atomic_compare_exchange_strong(&head->word, &word, claimed))
			continue;
		head->salt = pgr_random();
		head->from = shm->wire.own;
		atomic_store(&head->read, 0);
		/* before the ring is ready: who dies in between leaves nothing that its reader would never look at */
		count = atomic_load(&inbox->rings);
		while (count < i + 1 && !atomic_compare_exchange_weak(&inbox->rings, &count, i + 1))
			;
		atomic_store(&head->word, with_state(claimed, READY));
		*number_out = i;
		return head;
	}
	return NULL;
}

/*
 * The pipe by which an owner that watches is woken; -1. Open both ways: who writes to a pipe that nobody reads is ended by a
 * signal. Pipes without a name all lie in one place; one with a name may be anybody's.
 */
static int open_wake_fd(const struct inbox *inbox, uint32_t pid)
{
	int ends[2], fd;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	fd = pgr_process_open_fd(pid, (uint32_t)inbox->wake_fd, S_IFIFO, ends[0], O_RDWR);
	close(ends[0]);
	close(ends[1]);
	return fd;
}

static void add_alive(struct shm *shm, struct outgoing *out)
{
	out->behind = NULL;
	*shm->last_alive = out;
	shm->last_alive = &out->behind;
}

/*
 * Of those who have ended no more is kept than that they have. Their rings look full, which costs the way of a packet no
 * further question.
 */
static void release_ended(struct shm *shm)
{
	for (unsigned int i = 0; i < ALIVE_CHECKS && shm->first_alive; i++) {
		struct outgoing *out = shm->first_alive;

		shm->first_alive = out->behind;
		if (!out->behind)
			shm->last_alive = &shm->first_alive;
		if (!owner_ended(out)) {
			add_alive(shm, out);
			continue;
		}
		pgr_shm_release(out);
		out->read_cached = out->written - RING_LINES;
		out->large[0] = out->large[1] = 0;
	}
}

/* Maps the inbox of this address into `out`. PGR_OK, or why not. */
static int map_inbox(const struct shm *shm, const struct shm_address *address, struct outgoing *out)
{
	const int fd = pgr_process_open_fd(address->pid, address->fd, S_IFREG, shm->fd, O_RDWR);
	struct inbox *inbox = MAP_FAILED;
	struct stat stat;

	if (fd < 0)
		return errno == EACCES || errno == EPERM ? PGR_E_PERMISSION : PGR_E_WIRE;
	/* what its owner could make shorter, nobody maps: to touch what is no more ends the process. Sealed before it is measured */
	if (pgr_memfd_is_sealed(fd, SEALS) && fstat(fd, &stat) == 0 &&
	    stat.st_size == (off_t)sizeof(struct inbox))
		inbox = mmap(NULL, sizeof(struct inbox), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (inbox == MAP_FAILED)
		return PGR_E_WIRE;
	out->inbox = inbox;
	/* where numbers of processes mean others, it would take our address for another process's, and us for dead */
	return inbox->magic == MAGIC && inbox->nonce == address->nonce && inbox->pid_space == shm->pid_space
		       ? PGR_OK
		       : PGR_E_WIRE;
}

/* Fills the rest of `out` in. For rings of the dead to be set free it waits so long. PGR_OK, or why not. */
static int join(struct shm *shm, const struct shm_address *address, struct outgoing *out,
		unsigned int wait_ms)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	uint32_t number;
	int code;

	/* first: who still lives when the inbox is there has had its number all the while */
	out->life_fd = (int)syscall(SYS_pidfd_open, (pid_t)address->pid, 0);
	code = map_inbox(shm, address, out);
	if (code != PGR_OK)
		return code;
	if (owner_ended(out))
		return PGR_E_WIRE;
	if (out->inbox->block && (out->wake_fd = open_wake_fd(out->inbox, address->pid)) < 0)
		return PGR_E_WIRE;
	out->head = claim(out->inbox, shm, &number);
	while (!out->head && close_dead(shm, out->inbox)) {
		if (out->wake_fd >= 0)
			wake_owner(out);
		if (!wait_ms--)
			break;
		nanosleep(&pause, NULL);
		out->head = claim(out->inbox, shm, &number);
	}
	if (!out->head)
		return PGR_E_SERVER_BUSY;
	out->word = atomic_load(&out->head->word);
	out->lines = out->inbox->lines[number];
	populate(out->lines, true);
	out->salt = out->head->salt;
	return PGR_OK;
}

int pgr_shm_reach(struct pgr_wire *wire, const struct pgr_to *to, unsigned int wait_ms)
{
	struct shm *shm = (struct shm *)wire;
	struct shm_address address;
	struct outgoing *out;
	int code;

	if (outgoing_to(shm, to))
		return PGR_OK;
	release_ended(shm);
	out = calloc(1, sizeof(*out));
	if (!out)
		return PGR_E_MEMORY;
	memcpy(&address, to->bytes, sizeof(address));
	out->to = *to;
	out->wake_fd = -1;
	code = join(shm, &address, out, wait_ms);
	if (code != PGR_OK) {
		pgr_shm_release(out);
		free(out);
		return code;
	}
	out->next = *list_of(shm, to);
	*list_of(shm, to) = out;
	add_alive(shm, out);
	return PGR_OK;
}
