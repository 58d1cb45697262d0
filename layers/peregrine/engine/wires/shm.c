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
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "shm_ring.h"
#include "../base/process.h"

static bool shm_ended(struct pgr_wire *wire, const struct pgr_to *to)
{
	const struct outgoing *out = outgoing_to((struct shm *)wire, to);

	return out && (!out->inbox || owner_ended(out));
}

static int shm_reach(struct pgr_wire *wire, const struct pgr_to *to)
{
	return pgr_shm_reach(wire, to, READER_MS);
}

/* ---- sending ---- */

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
		if (pgr_shm_reach(wire, to, 0) != PGR_OK || !(out = outgoing_to(shm, to)))
			return 0;
	}
	for (unsigned int i = 0; i < count; i++)
		bytes += pieces[i].bytes;
	lines = (bytes + LINE_BYTES - 1) / LINE_BYTES;
	at = out->written % RING_LINES;
	if (PGR_UNLIKELY(at + lines > RING_LINES))
		skip = RING_LINES - at; /* a packet lies in one piece: the rest of the ring is left out */
	if (PGR_UNLIKELY(out->written + skip + lines - out->read_cached > RING_LINES)) {
		if (!out->inbox)
			return 0; /* as good as read by nobody */
		out->read_cached = atomic_load_explicit(&out->head->read, memory_order_acquire);
		if (out->written + skip + lines - out->read_cached > RING_LINES)
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
	if (out->wake_fd >= 0)
		wake_owner(out);
	return 0;
}

static bool shm_behind(struct pgr_wire *wire, const struct pgr_to *to)
{
	struct shm *shm = (struct shm *)wire;
	struct outgoing *out = outgoing_to(shm, to);

	/* who sleeps between two packets would do so after each */
	if (!out || shm->wake_pipe[0] >= 0 || out->wake_fd >= 0 || out->read_cached >= out->large[0])
		return false;
	out->read_cached = atomic_load_explicit(&out->head->read, memory_order_acquire);
	return out->read_cached < out->large[0];
}

static void shm_flush(struct pgr_wire *wire)
{
	(void)wire;
}

/* ---- receiving ---- */

static bool ring_has_packet(const struct incoming *in)
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

/* Whom we write to as well has a descriptor that says so. */
static bool writer_has_gone(struct shm *shm, const struct incoming *in)
{
	const struct outgoing *out = outgoing_to(shm, &in->from);

	return out ? !out->inbox || owner_ended(out) : pgr_shm_has_ended(shm, &in->from);
}

/* A ring that is empty and whose writer has closed it, or has died without, is free again. */
static void release_ended_rings(struct shm *shm, bool reap_dead)
{
	for (uint32_t i = 0; i < shm->in_count;) {
		struct incoming *in = &shm->in[i];
		const uint64_t word = atomic_load_explicit(&in->head->word, memory_order_acquire);

		if ((state_of(word) != CLOSED && !(reap_dead && writer_has_gone(shm, in))) ||
		    ring_has_packet(in)) {
			i++;
			continue;
		}
		atomic_store(&in->head->word, with_state(word, FREE));
		*in = shm->in[--shm->in_count];
	}
}

/* Rings that were claimed since we looked last, and those that have ended: maybe since then as well. */
static PGR_COLD void find_rings(struct shm *shm)
{
	const uint32_t rings = atomic_load_explicit(&shm->inbox->rings, memory_order_acquire);

	if (pgr_wire_is_copy(&shm->wire))
		return;
	shm->polls_since_check = 0;
	for (uint32_t i = 0; i < rings && i < RINGS; i++) {
		struct ring_head *head = &shm->inbox->heads[i];
		const uint32_t state = state_of(atomic_load_explicit(&head->word, memory_order_acquire));

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
	release_ended_rings(shm, ++shm->checks % CHECKS_PER_REAP == 0);
}

static void wake_writer(struct incoming *in)
{
	in->reported = in->read;
	atomic_store_explicit(&in->head->read, in->read, memory_order_release);
}

static int receive_from(struct shm *shm, struct incoming *in)
{
	int received = 0;

	while (received < (int)POLL_PACKETS && ring_has_packet(in)) {
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
		if (PGR_UNLIKELY(in->read - in->reported >= LARGE_LINES) && !pgr_wire_is_copy(&shm->wire))
			wake_writer(in);
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
	shm->polls_since_check += received ? 1 : BUSY_POLLS / IDLE_POLLS;
	if (PGR_UNLIKELY(shm->polls_since_check >= BUSY_POLLS))
		find_rings(shm);
	return received;
}

/* Whether something has come, in a new ring as well, once whoever sends sees what we are about to do. */
static bool has_packet(struct shm *shm)
{
	atomic_thread_fence(memory_order_seq_cst);
	find_rings(shm);
	for (uint32_t i = 0; i < shm->in_count; i++)
		if (ring_has_packet(&shm->in[i]))
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
	if (!has_packet(shm))
		futex(&shm->inbox->sleeps, FUTEX_WAIT, SLEEPS, forever ? NULL : &timeout);
	if (!pgr_wire_is_copy(wire)) /* made by a signal's handler: the parent sleeps on */
		atomic_store(&shm->inbox->sleeps, AWAKE);
}

/* For what is there already we ring our own bell. */
static void shm_watch(struct pgr_wire *wire, int fds[PGR_FDS])
{
	struct shm *shm = (struct shm *)wire;
	char rung[64];

	while (read(shm->wake_pipe[0], rung, sizeof(rung)) > 0)
		;
	atomic_store(&shm->inbox->sleeps, WATCHES);
	if (has_packet(shm)) {
		atomic_store(&shm->inbox->sleeps, AWAKE);
		ring(shm->wake_pipe[1]);
	}
	fds[0] = shm->wake_pipe[0];
	fds[1] = -1;
}

/* ---- life ---- */

static void shm_close(struct pgr_wire *wire)
{
	struct shm *shm = (struct shm *)wire;
	const bool copy = pgr_wire_is_copy(wire);

	for (unsigned int i = 0; i < LISTS; i++)
		while (shm->out[i]) {
			struct outgoing *out = shm->out[i];

			shm->out[i] = out->next;
			if (out->inbox) {
				uint64_t word = out->word;

				if (!copy)
					atomic_compare_exchange_strong(&out->head->word, &word,
								       with_state(word, CLOSED));
				pgr_shm_release(out);
			}
			free(out);
		}
	if (shm->inbox) {
		if (!copy)
			atomic_store(&shm->inbox->closed, 1);
		munmap(shm->inbox, sizeof(struct inbox));
	}
	for (unsigned int i = 0; i < 3; i++) {
		const int fd = i < 2 ? shm->wake_pipe[i] : shm->fd;

		if (fd >= 0)
			close(fd);
	}
	free(shm);
}

static void shm_describe(const struct pgr_wire *wire, char *text, size_t text_bytes)
{
	snprintf(text, text_bytes, "%s", ((const struct shm *)wire)->text);
}

static uint64_t own_pid_space(void)
{
	struct stat space;

	return stat("/proc/self/ns/pid", &space) == 0 ? (uint64_t)space.st_ino : 0;
}

static int shm_open_wire(const struct pgr_config *config, pgr_input *input, void *engine,
			 struct pgr_wire **wire_out)
{
	struct shm *shm = calloc(1, sizeof(*shm));
	struct shm_address address;

	if (!shm)
		return PGR_E_MEMORY;
	shm->wire.ops = &pgr_wire_shm;
	shm->last_alive = &shm->first_alive;
	shm->input = input;
	shm->engine = engine;
	shm->wake_pipe[0] = shm->wake_pipe[1] = -1;
	shm->fd = pgr_memfd_make("pgr-inbox", sizeof(struct inbox));
	if (shm->fd < 0 || (config->block && pipe2(shm->wake_pipe, O_CLOEXEC | O_NONBLOCK) < 0) ||
	    fcntl(shm->fd, F_ADD_SEALS, SEALS) < 0) {
		const int error = errno;

		shm_close(&shm->wire);
		if (error == EFBIG)
			return pgr_open_fail(
				config, PGR_E_WIRE,
				"shared memory: its %zu bytes are more than a file may have here (ulimit -f)",
				sizeof(struct inbox));
		return pgr_open_fail(config, PGR_E_WIRE, "shared memory: %s", strerror(error));
	}
	shm->inbox = mmap(NULL, sizeof(struct inbox), PROT_READ | PROT_WRITE, MAP_SHARED, shm->fd, 0);
	if (shm->inbox == MAP_FAILED) {
		shm->inbox = NULL;
		shm_close(&shm->wire);
		return pgr_open_fail(config, PGR_E_MEMORY, "shared memory: %s", strerror(errno));
	}
	shm->inbox->magic = MAGIC;
	shm->inbox->nonce = pgr_random();
	shm->inbox->block = config->block;
	shm->inbox->wake_fd = shm->wake_pipe[1];
	shm->inbox->pid_space = shm->pid_space = own_pid_space();
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
