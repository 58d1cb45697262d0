/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages over one connected stream socket, TCP or UNIX. On the wire a message is its length (four bytes,
 * little-endian) and its bytes. One sendmsg gathers both from where they are, and short messages are copied
 * to their header for a cheaper send; what the kernel does not take waits in a queue of descriptors, never of
 * copies. Receiving reads into a block and lends messages from it.
 *
 * Behind the length of a message that is not copied come 64 bytes of zeros. Such a message often begins a page, and the
 * kernel's copy of it too, but for the header: processors whose `rep movsb` is fast copy 1 MiB in twice the time where
 * the target lies 1 to 15 (AMD), or 1 to 63 bytes (Intel), behind the source modulo 4096.
 *
 * A stream belongs to one thread, never blocks (but for sock_stream_fill without MSG_DONTWAIT), and does not
 * own its socket.
 */
#ifndef CADGE_SOCKETS_STREAM_H
#define CADGE_SOCKETS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#include "cadge/layer.h"
#include "kit/bytes.h"
#include "sockets/blocks.h"

enum {
	SOCK_LENGTH_BYTES = 4,
	/* Up to here header and payload are copied together: a plain send takes the kernel 0.15 us less than
	   sendmsg. */
	SOCK_COPY_BYTES_MAX = 1024,
	SOCK_HEADER_BYTES_MAX = SOCK_LENGTH_BYTES + 64,
	SOCK_IOV_MAX = 8,
	SOCK_BLOCK_BYTES = 64 * 1024, /* messages up to about this share a block, longer ones get their own */
	SOCK_DEPTH_MAX = 4096,
	/* The first payload of a block begins on a cache line, and is read more than 64 bytes behind where a page may begin. */
	SOCK_BLOCK_START = 128 - SOCK_LENGTH_BYTES,
};
#define SOCK_SHORT_BYTES_MAX   (UINT64_C(65536) - SOCK_HEADER_BYTES_MAX)
#define SOCK_MESSAGE_BYTES_MAX (UINT64_C(64) << 20)

/* Bytes on the wire before a message of so many. */
static inline size_t sock_header_bytes(uint64_t message_bytes)
{
	return message_bytes > SOCK_COPY_BYTES_MAX ? SOCK_HEADER_BYTES_MAX : SOCK_LENGTH_BYTES;
}

/* Writes the header of a message; returns its length. */
static inline size_t sock_header_write(unsigned char header[SOCK_HEADER_BYTES_MAX], uint32_t message_bytes)
{
	const size_t bytes = sock_header_bytes(message_bytes);

	cadge_store32(header, message_bytes);
	memset(header + SOCK_LENGTH_BYTES, 0, bytes - SOCK_LENGTH_BYTES);
	return bytes;
}

/* A message that the kernel has not taken whole. */
struct sock_unsent {
	uint64_t token;
	uint32_t first, count; /* entries of iov that are left */
	unsigned char header[SOCK_HEADER_BYTES_MAX];
	struct iovec iov[SOCK_IOV_MAX + 1];
};

struct sock_stream {
	int fd;
	uint32_t peer;
	uint64_t message_bytes_max;
	bool broken; /* the socket failed or ended */
	int error;   /* errno of a failure; 0: the peer closed its end */

	struct sock_unsent *unsent; /* ring of depth */
	uint32_t depth, unsent_head, unsent_count;

	struct sock_blocks *blocks;
	struct cadge_lend *block; /* being read into */
	size_t head, tail;        /* unread bytes of it */
	size_t chunk_bytes;       /* to read at a message boundary */
	size_t last_frame_bytes;
};

/*
 * Prepares a stream over the connected socket `fd`. depth (1 to SOCK_DEPTH_MAX): messages that may wait to be
 * sent. DONE or E_MEMORY.
 */
int sock_stream_init(struct sock_stream *stream, int fd, uint32_t peer, uint32_t depth,
		     uint64_t message_bytes_max, struct sock_blocks *blocks);

/* Frees what init made; kept blocks stay. A zeroed stream is legal. */
void sock_stream_free(struct sock_stream *stream);

/* As the post slot. */
int sock_stream_post(struct sock_stream *stream, const struct cadge_iov *iov, uint32_t count, uint64_t token);

/*
 * Sends what waits, as far as the kernel takes it. Returns the number of sent events; sets broken on
 * failure.
 */
int sock_stream_drain(struct sock_stream *stream, struct cadge_sink *sink);

/*
 * Reads once. flags: MSG_DONTWAIT, or 0 to sleep as the socket is set. Returns 1 when something came, 0 when
 * not (broken is set when nothing will come any more), or E_MEMORY.
 */
int sock_stream_fill(struct sock_stream *stream, int flags);

/* Makes room behind tail. Returns how many bytes to read there now, or 0 when memory ran out. */
size_t sock_stream_room(struct sock_stream *stream);

/* Bytes of the frame that begins at head, its header among them, or 0 while its length is not there. */
size_t sock_stream_frame_bytes(const struct sock_stream *stream);

/* Is a whole message (or a broken length) there without reading? */
bool sock_stream_ready(const struct sock_stream *stream);

/*
 * Delivers at most `most` messages that are there already. Returns their number, or E_DOWN for a length that
 * no honest peer sends.
 */
int sock_stream_deliver(struct sock_stream *stream, struct cadge_sink *sink, int most);

/* Takes `bytes` sent bytes off the front of iov[*first_inout..count). */
void sock_iov_advance(struct iovec *iov, uint32_t count, uint32_t *first_inout, size_t bytes);

/* Ends everything that waits with sent(E_DOWN). Returns the number of events. */
int sock_stream_abandon(struct sock_stream *stream, struct cadge_sink *sink);

#endif
