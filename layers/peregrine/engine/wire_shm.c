/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets between processes of one host, through memory that both have mapped.
 *
 * Each endpoint owns an inbox: a memfd with a ring for each sender. A sender finds it as /proc/PID/fd/FD (the
 * kernel lets in who may look at the process: the same user, or root), claims a ring, and writes packets into
 * it. The answer goes the other way by the same means, so an address is {pid, fd, nonce}. Nothing has a name
 * in the file system and nothing outlives its processes.
 *
 * A ring is made of lines of 64 bytes. A packet takes whole lines: 8 bytes of stamp, header, data; so a null
 * call, or one of 8 bytes, is one line. The stamp is the packet's place (a line count that never wraps) xor a
 * random number of the ring: the reader waits for the stamp of the next place, and needs no other line. The
 * writer learns how far the reader is from a line that the reader writes rarely, and looks at it only when
 * the ring seems full.
 *
 * A ring, not process_vm_readv, carries long messages too: two pipelined copies were faster (14.6-15.4
 * against 12.0 GB/s for 4 MiB) and need no permission of their own.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"
#include "theirs.h"

#define LINE_BYTES 64u
/* 2 MiB: beyond a core's own cache, where the other core finds the lines soonest */
#define RING_LINES     32768u
#define PACKET_LINES   2048u /* 128 KiB: several fit a ring, so that writing and reading overlap */
#define LARGE_LINES    64u   /* of a large packet, at least */
#define RINGS          64u
#define STAMP_BYTES    8u
#define POLL_PACKETS   16u
#define FETCHED_LINES  5u  /* of a packet, the first of them among them */
#define IDLE_POLLS     64u /* between two looks for new rings */
#define BUSY_POLLS     1024u
#define LOOKS_FOR_DEAD 1024u
#define MAGIC          UINT64_C(0x3376676e69726770) /* "pgringv3" */
#define SEALS          (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
enum { FREE, CLAIMED, READY, CLOSED }; /* states of a ring */
enum { AWAKE, SLEEPS, WATCHES };       /* what the owner of an inbox does: on the futex, or on its pipe */

/* A ring as its writer and its reader see it. */
struct ring_head {
	_Alignas(LINE_BYTES) _Atomic uint32_t state;
	uint32_t pid; /* of the writer */
	uint64_t salt;
	struct pgr_to from;                         /* the writer's own address */
	_Alignas(LINE_BYTES) _Atomic uint64_t read; /* lines that the reader is done with */
};

struct inbox {
	uint64_t magic, nonce;
	uint32_t block;                               /* the owner may sleep: ring the bell */
	int32_t bell_fd;                              /* of the owner: where to write to what it watches */
	_Atomic uint32_t closed;                      /* by its owner, who may live on */
	_Alignas(LINE_BYTES) _Atomic uint32_t sleeps; /* what it does, or is about to; a futex */
	_Alignas(LINE_BYTES) _Atomic uint32_t rings;  /* as many were ever claimed */
	struct ring_head heads[RINGS];
	_Alignas(4096) uint8_t lines[RINGS][(size_t)RING_LINES * LINE_BYTES];
};

/* A ring that we write to. */
struct outgoing {
	struct outgoing *next;
	struct pgr_to to;
	struct inbox *inbox; /* NULL: its owner has ended, see let_go_of_ended */
	struct ring_head *head;
	uint8_t *lines;
	uint64_t written, read_seen; /* lines */
	uint64_t large[2];           /* where the last two large packets ended */
	uint64_t salt;
	int bell_fd; /* the owner's pipe; -1: it never sleeps */
	int life_fd; /* of the process; becomes readable when it ends. -1: the kernel has no such (Linux 5.3) */
};

/* A ring that we read from. */
struct incoming {
	struct ring_head *head;
	uint8_t *lines;
	uint64_t read, told; /* lines; told: what the writer knows */
	uint64_t salt;
	struct pgr_to from;
};

struct shm {
	struct pgr_wire wire;
	pgr_input *input;
	void *engine;
	int fd, bell[2]; /* the inbox; a pipe, if we may sleep */
	struct inbox *inbox;
	struct outgoing *out, *recent;
	struct incoming in[RINGS];
	uint32_t in_count;
	uint32_t unlooked, looks; /* polls since we looked for new rings, weighted; looks so far */
	char text[96];
};

struct shm_address { /* in pgr_to.bytes */
	uint32_t pid, fd;
	uint64_t nonce;
};

static long futex(_Atomic uint32_t *word, int operation, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

/*
 * Brings a ring's memory in before it is used: else, on the first lap, both sides meet each new page in the
 * same moment, and one of them sleeps in the kernel until the other has it. Linux 5.14; without it they do.
 */
static void populate(uint8_t *lines, bool write)
{
#ifdef MADV_POPULATE_WRITE
	madvise(lines, (size_t)RING_LINES * LINE_BYTES, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
#else
	(void)lines, (void)write;
#endif
}

/* ---- finding the other side's inbox ---- */

static struct outgoing *outgoing_to(struct shm *shm, const struct pgr_to *to)
{
	struct outgoing *out = shm->recent;

	if (PGR_LIKELY(out && memcmp(&out->to, to, sizeof(*to)) == 0))
		return out;
	for (out = shm->out; out && memcmp(&out->to, to, sizeof(*to)) != 0;)
		out = out->next;
	if (out)
		shm->recent = out;
	return out;
}

/* Takes a free ring of the inbox. */
static struct ring_head *claim(struct inbox *inbox, const struct shm *shm, uint32_t *number_out)
{
	for (uint32_t i = 0; i < RINGS; i++) {
		struct ring_head *head = &inbox->heads[i];
		uint32_t expected = FREE, seen;

		if (!atomic_compare_exchange_strong(&head->state, &expected, CLAIMED))
			continue;
		head->pid = (uint32_t)getpid();
		head->salt = pgr_random();
		head->from = shm->wire.own;
		atomic_store(&head->read, 0);
		atomic_store(&head->state, READY);
		seen = atomic_load(&inbox->rings);
		while (seen < i + 1 && !atomic_compare_exchange_weak(&inbox->rings, &seen, i + 1))
			;
		*number_out = i;
		return head;
	}
	return NULL;
}

/*
 * The pipe by which an owner that watches is woken; -1. Open both ways: who writes to a pipe that nobody reads is ended by a
 * signal. Pipes without a name all lie in one place; one with a name may be anybody's.
 */
static int open_bell(const struct inbox *inbox, uint32_t pid)
{
	int ends[2], fd;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	fd = pgr_theirs_open(pid, (uint32_t)inbox->bell_fd, S_IFIFO, ends[0], O_RDWR);
	close(ends[0]);
	close(ends[1]);
	return fd;
}

static bool owner_ended(const struct outgoing *out)
{
	struct pollfd life = {.fd = out->life_fd, .events = POLLIN};

	return atomic_load_explicit(&out->inbox->closed, memory_order_acquire) ||
	       (life.fd >= 0 && poll(&life, 1, 0) == 1);
}

static void let_go(struct outgoing *out)
{
	munmap(out->inbox, sizeof(struct inbox));
	if (out->life_fd >= 0)
		close(out->life_fd);
	if (out->bell_fd >= 0)
		close(out->bell_fd);
	out->inbox = NULL;
	out->life_fd = out->bell_fd = -1;
}

/*
 * Of those who have ended no more is kept than that they have. Their rings look full, which costs the way of a packet no
 * further question.
 */
static void let_go_of_ended(struct shm *shm)
{
	for (struct outgoing *out = shm->out; out; out = out->next) {
		if (!out->inbox || !owner_ended(out))
			continue;
		let_go(out);
		out->read_seen = out->written - RING_LINES;
		out->large[0] = out->large[1] = 0;
	}
}

static int shm_reach(struct pgr_wire *wire, const struct pgr_to *to)
{
	struct shm *shm = (struct shm *)wire;
	struct shm_address address;
	struct outgoing *out;
	struct stat stat;
	uint32_t number;
	int fd;

	if (outgoing_to(shm, to))
		return PGR_OK;
	let_go_of_ended(shm);
	memcpy(&address, to->bytes, sizeof(address));
	fd = pgr_theirs_open(address.pid, address.fd, S_IFREG, shm->fd, O_RDWR);
	if (fd < 0)
		return errno == EACCES || errno == EPERM ? PGR_E_PERMISSION : PGR_E_WIRE;
	out = calloc(1, sizeof(*out));
	/* what its owner could make shorter, nobody maps: to touch what is no more ends the process. Sealed before it is measured */
	if (!out || !pgr_theirs_sealed(fd, SEALS) || fstat(fd, &stat) < 0 ||
	    stat.st_size != (off_t)sizeof(struct inbox)) {
		free(out);
		close(fd);
		return out ? PGR_E_WIRE : PGR_E_MEMORY;
	}
	out->inbox = mmap(NULL, sizeof(struct inbox), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (out->inbox == MAP_FAILED || out->inbox->magic != MAGIC || out->inbox->nonce != address.nonce) {
		if (out->inbox != MAP_FAILED)
			munmap(out->inbox, sizeof(struct inbox));
		free(out);
		return PGR_E_WIRE;
	}
	out->bell_fd = out->inbox->block ? open_bell(out->inbox, address.pid) : -1;
	out->head = out->inbox->block && out->bell_fd < 0 ? NULL : claim(out->inbox, shm, &number);
	if (!out->head) {
		const bool busy = !out->inbox->block || out->bell_fd >= 0;

		if (out->bell_fd >= 0)
			close(out->bell_fd);
		munmap(out->inbox, sizeof(struct inbox));
		free(out);
		return busy ? PGR_E_SERVER_BUSY : PGR_E_WIRE;
	}
	out->to = *to;
	out->lines = out->inbox->lines[number];
	populate(out->lines, true);
	out->salt = out->head->salt;
	out->life_fd = (int)syscall(SYS_pidfd_open, (pid_t)address.pid, 0);
	out->next = shm->out;
	shm->out = out;
	return PGR_OK;
}

static bool shm_ended(struct pgr_wire *wire, const struct pgr_to *to)
{
	const struct outgoing *out = outgoing_to((struct shm *)wire, to);

	return out && (!out->inbox || owner_ended(out));
}

/* ---- sending ---- */

/* Makes a pipe readable; one that is full is so already. */
static void ring(int bell_fd)
{
	while (write(bell_fd, "", 1) < 0 && errno == EINTR)
		;
}

static void ring_the_bell(struct outgoing *out)
{
	atomic_thread_fence(
		memory_order_seq_cst); /* our stamp before our look: else both could miss the other */
	if (!atomic_load_explicit(&out->inbox->sleeps, memory_order_relaxed))
		return;
	switch (atomic_exchange(&out->inbox->sleeps, AWAKE)) {
	case SLEEPS: futex(&out->inbox->sleeps, FUTEX_WAKE, 1, NULL); break;
	case WATCHES: ring(out->bell_fd); break;
	default: break;
	}
}

static void write_pieces(uint8_t *to, const struct pgr_piece *pieces, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		memcpy(to, pieces[i].base, pieces[i].bytes);
		to += pieces[i].bytes;
	}
}

/*
 * The first line comes last, all of it at once: whoever waits for its stamp takes it back into its own cache as soon as
 * anything in it is written, and then it has to be fetched again for the rest.
 */
static void write_packet(uint8_t *line, const struct pgr_piece *pieces, unsigned int count)
{
	enum { DATA_AT = STAMP_BYTES + PGR_HEADER_BYTES, LEAD_BYTES = LINE_BYTES - DATA_AT };

	if (count > 1 && PGR_LIKELY(pieces[1].bytes >= LEAD_BYTES)) {
		const uint8_t *data = pieces[1].base;
		const size_t left = pieces[1].bytes - LEAD_BYTES;

		if (left)
			memcpy(line + LINE_BYTES, data + LEAD_BYTES, left);
		if (PGR_UNLIKELY(count > 2))
			write_pieces(line + LINE_BYTES + left, pieces + 2, count - 2);
		__asm__ volatile("" : : : "memory"); /* in this order */
		memcpy(line + DATA_AT, data, LEAD_BYTES);
	} else {
		write_pieces(line + DATA_AT, pieces + 1, count - 1);
	}
	pgr_line_copy(line + STAMP_BYTES, pieces[0].base);
}

static int shm_send(struct pgr_wire *wire, const struct pgr_to *to, const struct pgr_piece *pieces,
		    unsigned int count, bool more)
{
	struct shm *shm = (struct shm *)wire;
	struct outgoing *out = outgoing_to(shm, to);
	size_t bytes = STAMP_BYTES;
	uint64_t lines, place, skip = 0, at;
	uint8_t *line;

	(void)more;
	if (PGR_UNLIKELY(!out)) { /* a delegated result goes to whom we never met */
		if (shm_reach(wire, to) != PGR_OK || !(out = outgoing_to(shm, to)))
			return 0;
	}
	for (unsigned int i = 0; i < count; i++)
		bytes += pieces[i].bytes;
	lines = (bytes + LINE_BYTES - 1) / LINE_BYTES;
	at = out->written % RING_LINES;
	if (PGR_UNLIKELY(at + lines > RING_LINES))
		skip = RING_LINES - at; /* a packet lies in one piece: the rest of the ring is left out */
	if (PGR_UNLIKELY(out->written + skip + lines - out->read_seen > RING_LINES)) {
		if (!out->inbox)
			return 0; /* as good as read by nobody */
		out->read_seen = atomic_load_explicit(&out->head->read, memory_order_acquire);
		if (out->written + skip + lines - out->read_seen > RING_LINES)
			return 1;
	}
	if (PGR_UNLIKELY(skip)) {
		uint64_t *stamp = (uint64_t *)(void *)(out->lines + at * LINE_BYTES);

		stamp[1] = 0; /* a header of zeros: nothing here, go to the beginning */
		__atomic_store_n(stamp, (out->written + 1) ^ out->salt, __ATOMIC_RELEASE);
		out->written += skip;
		at = 0;
	}
	place = out->written;
	line = out->lines + at * LINE_BYTES;
	if (PGR_LIKELY(pieces[0].bytes == PGR_HEADER_BYTES))
		write_packet(line, pieces, count);
	else
		write_pieces(line + STAMP_BYTES, pieces, count);
	out->written = place + lines;
	if (PGR_UNLIKELY(lines >= LARGE_LINES)) {
		out->large[0] = out->large[1];
		out->large[1] = out->written;
	}
	__atomic_store_n((uint64_t *)(void *)line, (place + 1) ^ out->salt, __ATOMIC_RELEASE);
	if (out->bell_fd >= 0)
		ring_the_bell(out);
	return 0;
}

static bool shm_behind(struct pgr_wire *wire, const struct pgr_to *to)
{
	struct shm *shm = (struct shm *)wire;
	struct outgoing *out = outgoing_to(shm, to);

	/* who sleeps between two packets would do so after each */
	if (!out || shm->bell[0] >= 0 || out->bell_fd >= 0 || out->read_seen >= out->large[0])
		return false;
	out->read_seen = atomic_load_explicit(&out->head->read, memory_order_acquire);
	return out->read_seen < out->large[0];
}

static void shm_flush(struct pgr_wire *wire)
{
	(void)wire;
}

/* ---- receiving ---- */

static bool ring_has_news(const struct incoming *in)
{
	const uint64_t *stamp =
		(const uint64_t *)(const void *)(in->lines + in->read % RING_LINES * LINE_BYTES);

	return __atomic_load_n(stamp, __ATOMIC_ACQUIRE) == ((in->read + 1) ^ in->salt);
}

static bool is_read(const struct shm *shm, const struct ring_head *head)
{
	for (uint32_t i = 0; i < shm->in_count; i++)
		if (shm->in[i].head == head)
			return true;
	return false;
}

/* A ring that is empty and whose writer has closed it, or has died without, is free again. */
static void release_ended_rings(struct shm *shm, bool look_for_dead)
{
	for (uint32_t i = 0; i < shm->in_count;) {
		struct incoming *in = &shm->in[i];
		bool ended = atomic_load_explicit(&in->head->state, memory_order_acquire) == CLOSED;

		if (!ended && look_for_dead)
			ended = kill((pid_t)in->head->pid, 0) < 0 && errno == ESRCH;
		if (!ended || ring_has_news(in)) {
			i++;
			continue;
		}
		atomic_store(&in->head->state, FREE);
		*in = shm->in[--shm->in_count];
	}
}

/* Rings that were claimed since we looked last. */
static PGR_COLD void look_for_rings(struct shm *shm)
{
	const uint32_t rings = atomic_load_explicit(&shm->inbox->rings, memory_order_acquire);

	if (pgr_wire_is_copy(&shm->wire))
		return;
	shm->unlooked = 0;
	release_ended_rings(shm, ++shm->looks % LOOKS_FOR_DEAD == 0);
	for (uint32_t i = 0; i < rings && i < RINGS; i++) {
		struct ring_head *head = &shm->inbox->heads[i];
		const uint32_t state = atomic_load_explicit(&head->state, memory_order_acquire);

		if ((state != READY && state != CLOSED) || is_read(shm, head))
			continue;
		populate(shm->inbox->lines[i], false);
		shm->in[shm->in_count++] = (struct incoming){
			.head = head,
			.lines = shm->inbox->lines[i],
			.salt = head->salt,
			.from = head->from,
		};
	}
}

static void tell_writer(struct incoming *in)
{
	in->told = in->read;
	atomic_store_explicit(&in->head->read, in->read, memory_order_release);
}

static int receive_from(struct shm *shm, struct incoming *in)
{
	int received = 0;

	while (received < (int)POLL_PACKETS && ring_has_news(in)) {
		const uint64_t at = in->read % RING_LINES;
		const uint8_t *packet = in->lines + at * LINE_BYTES + STAMP_BYTES;
		const size_t room = (size_t)(RING_LINES - at) * LINE_BYTES - STAMP_BYTES;
		struct pgr_header head;
		uint64_t bytes;

		memcpy(&head, packet, sizeof(head));
		if (PGR_UNLIKELY(!head.type)) { /* the rest of the ring is left out */
			in->read += RING_LINES - at;
			continue;
		}
		bytes = PGR_HEADER_BYTES + (uint64_t)pgr_le32(head.data_bytes) +
			(head.flags & PGR_FLAG_COOKIE ? PGR_COOKIE_BYTES : 0) +
			(head.flags & PGR_FLAG_KEYED ? PGR_CHECK_BYTES : 0);
		if (PGR_UNLIKELY(bytes > room)) /* a writer out of his mind */
			bytes = room;
		/* under way while the header is looked at; of a longer packet the processor sees itself what comes next */
		for (unsigned int i = 1; i < FETCHED_LINES && i * LINE_BYTES < STAMP_BYTES + bytes; i++)
			__builtin_prefetch(packet - STAMP_BYTES + i * LINE_BYTES);
		shm->input(shm->engine, &in->from, packet, (size_t)bytes);
		in->read += (STAMP_BYTES + bytes + LINE_BYTES - 1) / LINE_BYTES;
		received++;
		/* a large packet at once: its writer may wait for that */
		if (PGR_UNLIKELY(in->read - in->told >= LARGE_LINES) && !pgr_wire_is_copy(&shm->wire))
			tell_writer(in);
	}
	return received;
}

static int shm_receive(struct pgr_wire *wire)
{
	struct shm *shm = (struct shm *)wire;
	int received = 0;

	for (uint32_t i = 0; i < shm->in_count; i++)
		received += receive_from(shm, &shm->in[i]);
	/* Seldom while something comes in, but then too: one busy sender must not keep newcomers out. */
	shm->unlooked += received ? 1 : BUSY_POLLS / IDLE_POLLS;
	if (PGR_UNLIKELY(shm->unlooked >= BUSY_POLLS))
		look_for_rings(shm);
	return received;
}

/* Whether something has come, in a new ring as well, once whoever sends sees what we are about to do. */
static bool has_news(struct shm *shm)
{
	atomic_thread_fence(memory_order_seq_cst);
	look_for_rings(shm);
	for (uint32_t i = 0; i < shm->in_count; i++)
		if (ring_has_news(&shm->in[i]))
			return true;
	return false;
}

static void shm_wait(struct pgr_wire *wire, uint64_t timeout_ns)
{
	struct shm *shm = (struct shm *)wire;
	const struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / UINT64_C(1000000000)),
					 .tv_nsec = (long)(timeout_ns % UINT64_C(1000000000))};
	const bool forever = timeout_ns > UINT64_C(1000000000000);

	atomic_store(&shm->inbox->sleeps, SLEEPS);
	if (!has_news(shm))
		futex(&shm->inbox->sleeps, FUTEX_WAIT, SLEEPS, forever ? NULL : &timeout);
	if (!pgr_wire_is_copy(wire)) /* made by a signal's handler: the parent sleeps on */
		atomic_store(&shm->inbox->sleeps, AWAKE);
}

/* For what is there already we ring our own bell. */
static void shm_watch(struct pgr_wire *wire, int fds[PGR_FDS])
{
	struct shm *shm = (struct shm *)wire;
	char rung[64];

	while (read(shm->bell[0], rung, sizeof(rung)) > 0)
		;
	atomic_store(&shm->inbox->sleeps, WATCHES);
	if (has_news(shm)) {
		atomic_store(&shm->inbox->sleeps, AWAKE);
		ring(shm->bell[1]);
	}
	fds[0] = shm->bell[0];
	fds[1] = -1;
}

/* ---- life ---- */

static void shm_close(struct pgr_wire *wire)
{
	struct shm *shm = (struct shm *)wire;
	const bool copy = pgr_wire_is_copy(wire);

	while (shm->out) {
		struct outgoing *out = shm->out;

		shm->out = out->next;
		if (out->inbox) {
			if (!copy)
				atomic_store(&out->head->state, CLOSED);
			let_go(out);
		}
		free(out);
	}
	if (shm->inbox) {
		if (!copy)
			atomic_store(&shm->inbox->closed, 1);
		munmap(shm->inbox, sizeof(struct inbox));
	}
	for (unsigned int i = 0; i < 3; i++) {
		const int fd = i < 2 ? shm->bell[i] : shm->fd;

		if (fd >= 0)
			close(fd);
	}
	free(shm);
}

static void shm_describe(const struct pgr_wire *wire, char *text, size_t text_bytes)
{
	snprintf(text, text_bytes, "%s", ((const struct shm *)wire)->text);
}

static int shm_open_wire(const struct pgr_config *config, pgr_input *input, void *engine,
			 struct pgr_wire **wire_out)
{
	struct shm *shm = calloc(1, sizeof(*shm));
	struct shm_address address;

	if (!shm)
		return PGR_E_MEMORY;
	shm->wire.ops = &pgr_wire_shm;
	shm->input = input;
	shm->engine = engine;
	shm->bell[0] = shm->bell[1] = -1;
	shm->fd = memfd_create("pgr-inbox", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (shm->fd < 0 || (config->block && pipe2(shm->bell, O_CLOEXEC | O_NONBLOCK) < 0) ||
	    ftruncate(shm->fd, sizeof(struct inbox)) < 0 || fcntl(shm->fd, F_ADD_SEALS, SEALS) < 0) {
		const int code = pgr_wire_fail(config, PGR_E_WIRE, "shared memory: %s", strerror(errno));

		shm_close(&shm->wire);
		return code;
	}
	shm->inbox = mmap(NULL, sizeof(struct inbox), PROT_READ | PROT_WRITE, MAP_SHARED, shm->fd, 0);
	if (shm->inbox == MAP_FAILED) {
		shm->inbox = NULL;
		shm_close(&shm->wire);
		return pgr_wire_fail(config, PGR_E_MEMORY, "shared memory: %s", strerror(errno));
	}
	shm->inbox->magic = MAGIC;
	shm->inbox->nonce = pgr_random();
	shm->inbox->block = config->block;
	shm->inbox->bell_fd = shm->bell[1];
	address = (struct shm_address){(uint32_t)getpid(), (uint32_t)shm->fd, shm->inbox->nonce};
	memcpy(shm->wire.own.bytes, &address, sizeof(address));
	shm->wire.packet_bytes_max = PACKET_LINES * LINE_BYTES - STAMP_BYTES;
	shm->wire.window_packets = RING_LINES / PACKET_LINES;
	shm->wire.reliable = shm->wire.joins_processes = true;
	snprintf(shm->text, sizeof(shm->text), "shared memory, rings of %u KiB, packets of %u bytes",
		 RING_LINES * LINE_BYTES / 1024, shm->wire.packet_bytes_max);
	*wire_out = &shm->wire;
	return PGR_OK;
}

const struct pgr_wire_ops pgr_wire_shm = {
	.name = "shm",
	.open = shm_open_wire,
	.close = shm_close,
	.send = shm_send,
	.flush = shm_flush,
	.receive = shm_receive,
	.wait = shm_wait,
	.watch = shm_watch,
	.reach = shm_reach,
	.ended = shm_ended,
	.behind = shm_behind,
	.describe = shm_describe,
};
