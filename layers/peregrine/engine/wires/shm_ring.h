/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire shm, for its two files: shm.c, whose head says what all of it is, and shm_reach.c, which finds others' inboxes. */
#ifndef PGR_SHM_RING_H
#define PGR_SHM_RING_H

#include <linux/futex.h>
#include <poll.h>
#include <stdatomic.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../base/base.h"
#include "wire.h"

#define LINE_BYTES 64u
/* 2 MiB: beyond a core's own cache, where the other core finds the lines soonest */
#define RING_LINES      32768u
#define PACKET_LINES    2048u /* 128 KiB: several fit a ring, so that writing and reading overlap */
#define LARGE_LINES     64u   /* of a large packet, at least */
#define RINGS           64u
#define STAMP_BYTES     8u
#define POLL_PACKETS    16u
#define FETCHED_LINES   5u  /* of a packet, the first of them among them */
#define IDLE_POLLS      64u /* between two checks for new rings */
#define BUSY_POLLS      1024u
#define CHECKS_PER_REAP 1024u
#define LISTS           256u /* of rings that we write to: a power of two */
#define READER_MS                                                                                            \
	100u /* within which a reader that was woken sets rings of the dead free, for one that binds */
#define ALIVE_CHECKS 8u /* owners that are looked after when another one is reached */
#define MAGIC        UINT64_C(0x3476676e69726770) /* "pgringv4" */
#define SEALS        (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
/*
 * States of a ring. A writer takes one that is free (CLAIMED), fills its head in (READY) and closes it (CLOSED); its reader sets
 * it free when it has read all. For a writer that has died, whoever looks for a ring closes what was ready, and takes over
 * what was only claimed, since its reader has never looked at that.
 */
enum { FREE, CLAIMED, READY, CLOSED };
enum { AWAKE, SLEEPS, WATCHES }; /* what the owner of an inbox does: on the futex, or on its pipe */

/* A ring as its writer and its reader see it. */
struct ring_head {
	/* state; from bit 8 how often it was claimed, so that no two writers' words are the same; from bit 32 the writer's process */
	_Alignas(LINE_BYTES) _Atomic uint64_t word;
	uint64_t salt;
	struct pgr_to from;                         /* the writer's own address */
	_Alignas(LINE_BYTES) _Atomic uint64_t read; /* lines that the reader is done with */
};

struct inbox {
	uint64_t magic, nonce;
	uint32_t block;          /* the owner may sleep: ring the bell */
	int32_t wake_fd;         /* of the owner: where to write to what it watches */
	_Atomic uint32_t closed; /* by its owner, who may live on */
	uint64_t pid_space;      /* in which numbers of processes mean the same as to its owner */
	_Alignas(LINE_BYTES) _Atomic uint32_t sleeps; /* what it does, or is about to; a futex */
	_Alignas(LINE_BYTES) _Atomic uint32_t rings;  /* as many were ever claimed */
	struct ring_head heads[RINGS];
	_Alignas(4096) uint8_t lines[RINGS][(size_t)RING_LINES * LINE_BYTES];
};

/* A ring that we write to. */
struct outgoing {
	struct outgoing *next;   /* in its list */
	struct outgoing *behind; /* among those whose owner lives, as far as we know */
	struct pgr_to to;
	struct inbox *inbox; /* NULL: its owner has ended, see release_ended */
	struct ring_head *head;
	uint64_t word; /* of the head, while it is ours */
	uint8_t *lines;
	uint64_t written, read_cached; /* lines */
	uint64_t large[2];             /* where the last two large packets ended */
	uint64_t salt;
	int wake_fd; /* the owner's pipe; -1: it never sleeps */
	int life_fd; /* of the process; becomes readable when it ends. -1: the kernel has no such (Linux 5.3) */
};

/* A ring that we read from. */
struct incoming {
	struct ring_head *head;
	uint8_t *lines;
	uint64_t read, reported; /* lines; told: what the writer knows */
	uint64_t salt;
	struct pgr_to from;
};

struct shm {
	struct pgr_wire wire;
	pgr_input *input;
	void *engine;
	int fd, wake_pipe[2]; /* the inbox; a pipe, if we may sleep */
	struct inbox *inbox;
	uint64_t pid_space;                         /* of this process: its inode; 0: nobody knows */
	struct outgoing *out[LISTS], *recent;       /* owned: by the nonce in the address */
	struct outgoing *first_alive, **last_alive; /* a queue: who was looked after goes to its end */
	struct incoming in[RINGS];
	uint32_t in_count;
	uint32_t polls_since_check,
		checks; /* polls since the last check for new rings, weighted; checks so far */
	char text[96];
};

struct shm_address { /* in pgr_to.bytes */
	uint32_t pid, fd;
	uint64_t nonce;
};

/*
 * Brings a ring's memory in before it is used: else, on the first lap, both sides meet each new page in the
 * same moment, and one of them sleeps in the kernel until the other has it. Linux 5.14; without it they do.
 */
static inline void populate(uint8_t *lines, bool write)
{
#ifdef MADV_POPULATE_WRITE
	madvise(lines, (size_t)RING_LINES * LINE_BYTES, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
#else
	(void)lines, (void)write;
#endif
}

static inline struct outgoing **list_of(struct shm *shm, const struct pgr_to *to)
{
	struct shm_address address;

	memcpy(&address, to->bytes, sizeof(address));
	return &shm->out[address.nonce % LISTS];
}

static inline struct outgoing *outgoing_to(struct shm *shm, const struct pgr_to *to)
{
	struct outgoing *out = shm->recent;

	if (PGR_LIKELY(out && memcmp(&out->to, to, sizeof(*to)) == 0))
		return out;
	for (out = *list_of(shm, to); out && memcmp(&out->to, to, sizeof(*to)) != 0;)
		out = out->next;
	if (out)
		shm->recent = out;
	return out;
}

static inline uint32_t state_of(uint64_t word)
{
	return word & 0xff;
}

static inline uint64_t with_state(uint64_t word, uint32_t state)
{
	return (word & ~UINT64_C(0xff)) | state;
}

static inline uint32_t writer_of(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

static inline long futex(_Atomic uint32_t *word, int operation, uint32_t value,
			 const struct timespec *timeout)
{
	return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

/* Makes a pipe readable; one that is full is so already. */
static inline void ring(int wake_fd)
{
	while (write(wake_fd, "", 1) < 0 && errno == EINTR)
		;
}

static inline void wake_owner(struct outgoing *out)
{
	atomic_thread_fence(
		memory_order_seq_cst); /* our stamp before our check: else both could miss the other */
	if (!atomic_load_explicit(&out->inbox->sleeps, memory_order_relaxed))
		return;
	switch (atomic_exchange(&out->inbox->sleeps, AWAKE)) {
	case SLEEPS: futex(&out->inbox->sleeps, FUTEX_WAKE, 1, NULL); break;
	case WATCHES: ring(out->wake_fd); break;
	default: break;
	}
}

static inline bool owner_ended(const struct outgoing *out)
{
	struct pollfd life = {.fd = out->life_fd, .events = POLLIN};

	return atomic_load_explicit(&out->inbox->closed, memory_order_acquire) ||
	       (life.fd >= 0 && poll(&life, 1, 0) == 1);
}

/* ---- shm_reach.c ---- */
/* As reach of struct pgr_wire_ops. Where rings of the dead are all that is left, it waits so long for their reader. */
int pgr_shm_reach(struct pgr_wire *wire, const struct pgr_to *to, unsigned int wait_ms);
/*
 * Whether an endpoint has gone for good with its process: that has ended, or another one has its number by now. False where it
 * cannot be told.
 */
bool pgr_shm_has_ended(const struct shm *shm, const struct pgr_to *endpoint);
/* Unmaps and closes what we have of an inbox. */
void pgr_shm_release(struct outgoing *out);

#endif
