/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is sockets-uring's own: messages that lie across the buffers that the kernel receives into, more than there are
 * buffers for, and what open says where io_uring is forbidden.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit/bytes.h"
#include "sockets/endpoint.h"
#include "sockets/stream.h"
#include "tests/unit/support/pair.h"
#include "tests/unit/support/tap.h"

enum { WIRE_BYTES = 4 << 20 };

static const struct cadge_layer *layer;

/* A bare socket in place of peer number `peer` of an end, which is up afterwards. */
static int bare_peer(struct pair_end *end, uint32_t peer, struct cadge_chan **chan_out)
{
	unsigned char bytes[PAIR_BLOB_BYTES], hello[16] = "HLO1", welcome[16];
	size_t count = sizeof(bytes);
	struct sockaddr_storage to;
	struct sock_blob blob;
	socklen_t to_bytes;
	const int ups = end->seen.ups + 1;
	int fd;

	if (layer->address(end->ctx, peer, bytes, &count) < 0 || sock_blob_read(bytes, count, &blob) < 0 ||
	    sock_endpoint_read(blob.endpoint, &to, &to_bytes) < 0)
		tap_bail("the layer's address is not a blob");
	cadge_store32(hello + 4, blob.slot);
	cadge_store64(hello + 8, blob.nonce);
	/* An endpoint smaller than any, so that this end is the listener. */
	memset(blob.endpoint + 1, 0, sizeof(blob.endpoint) - 1);
	sock_blob_write(&blob, bytes);
	if (layer->connect(end->ctx, peer, bytes, count, chan_out) < 0)
		tap_bail("cannot connect");
	fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, to_bytes) < 0 ||
	    send(fd, hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello) ||
	    !pair_poll_until(end, NULL, &end->seen.ups, ups, 2000) ||
	    recv(fd, welcome, sizeof(welcome), MSG_WAITALL) != sizeof(welcome))
		tap_bail("the bare peer is not let in");
	return fd;
}

static void odd_pieces(bool keep)
{
	static const size_t sizes[] = {0,    1,     3,     60,    1000,  5000,  0,     17,    1024,
				       1025, 20000, 32699, 32700, 40000, 65467, 65468, 65469, 70000,
				       9,    9,     9,     9,     9,     9,     9,     300000};
	static const size_t steps[] = {7, 61, 4099, 65536, 65537, 200003};
	const struct cadge_open_args args = pair_args(CADGE_WAIT_POLL);
	const int messages = (int)(sizeof(sizes) / sizeof(*sizes));
	unsigned char *wire = malloc(WIRE_BYTES), *payload = malloc(WIRE_BYTES), *got = malloc(WIRE_BYTES);
	size_t total = 0, paid = 0;

	for (int m = 0; m < 2 * messages; m++) {
		const size_t bytes = sizes[m % messages];

		total += sock_header_write(wire + total, (uint32_t)bytes);
		pair_fill(wire + total, bytes, (unsigned)m);
		memcpy(payload + paid, wire + total, bytes);
		total += bytes;
		paid += bytes;
	}
	for (size_t s = 0; s < sizeof(steps) / sizeof(*steps); s++) {
		struct pair_end end;
		bool kept_well = true;
		size_t at = 0, from = 0;
		int fd;

		if (pair_open(&end, layer, &args) < 0)
			tap_bail(args.error);
		fd = bare_peer(&end, 0, &end.chan);
		end.seen.data = got;
		end.seen.data_room_bytes = WIRE_BYTES;
		end.seen.keep = keep;
		while (at < total) {
			const size_t piece = total - at < steps[s] ? total - at : steps[s];
			const ssize_t took = send(fd, wire + at, piece, MSG_DONTWAIT | MSG_NOSIGNAL);

			at += took > 0 ? (size_t)took : 0;
			layer->poll(end.ctx, &end.seen.sink);
		}
		pair_poll_until(&end, NULL, &end.seen.received, 2 * messages, 3000);
		ok(end.seen.received == 2 * messages && end.seen.data_bytes == paid &&
			   memcmp(got, payload, paid) == 0,
		   "messages that come %zu bytes at a time are whole and in order%s", steps[s],
		   keep ? ", all of them kept" : "");
		for (int m = 0; m < end.seen.kept_count; m++) {
			kept_well &= memcmp(end.seen.kept_data[m], payload + from, end.seen.sizes[m]) == 0;
			from += end.seen.sizes[m];
			layer->release(end.ctx, end.seen.kept[m]);
		}
		if (keep)
			ok(kept_well && end.seen.kept_count == 2 * messages, "and stay so");
		pair_close(&end);
		close(fd);
	}
	free(wire);
	free(payload);
	free(got);
}

static void note_counter(void *arg, const char *name, uint64_t value)
{
	if (strcmp(name, "receives_out_of_buffers") == 0)
		*(uint64_t *)arg = value;
}

/* Each peer's socket holds several buffers' worth before the end looks for the first time. */
static void out_of_buffers(void)
{
	enum { PEERS = 4, BYTES = 996, ENOUGH = 4 << 20 };
	struct cadge_open_args args = pair_args(CADGE_WAIT_POLL);
	unsigned char wire[SOCK_LENGTH_BYTES + BYTES] = {0};
	struct cadge_chan *chans[PEERS];
	struct pair_end end;
	int fds[PEERS], sent = 0;
	uint64_t ran_out = 0;

	args.peers_max = PEERS;
	args.depth_max = 4;
	if (pair_open(&end, layer, &args) < 0)
		tap_bail(args.error);
	for (uint32_t i = 0; i < PEERS; i++)
		fds[i] = bare_peer(&end, i, &chans[i]);
	sock_header_write(wire, BYTES);
	for (int round = 0; round < 40 && !ran_out; round++) {
		for (int i = 0; i < PEERS; i++) {
			/* whole messages alone, so that the count is of these */
			for (size_t bytes = 0; bytes < ENOUGH; bytes += sizeof(wire), sent++) {
				ssize_t took = send(fds[i], wire, sizeof(wire), MSG_DONTWAIT | MSG_NOSIGNAL);

				if (took <= 0)
					break;
				while (took < (ssize_t)sizeof(wire)) {
					const ssize_t more =
						send(fds[i], wire + took, sizeof(wire) - (size_t)took,
						     MSG_DONTWAIT | MSG_NOSIGNAL);

					if (more > 0)
						took += more;
					else
						layer->poll(end.ctx, &end.seen.sink);
				}
			}
		}
		pair_poll_until(&end, NULL, &end.seen.received, sent, 5000);
		layer->counters(end.ctx, note_counter, &ran_out);
	}
	ok(ran_out > 0, "peers that send much at a time use up the buffers (%llu times)",
	   (unsigned long long)ran_out);
	ok(end.seen.received == sent && end.seen.received_bytes == (uint64_t)sent * BYTES && !end.seen.downs,
	   "and all of their %d messages arrive", sent);
	pair_close(&end);
	for (int i = 0; i < PEERS; i++)
		close(fds[i]);
}

/* Opens where a filter answers io_uring_setup with `error`. Returns 0 where the code and the sentence are as expected. */
static int open_under_filter(int error, int code, const char *word, const char *advice)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = {.len = sizeof(rules) / sizeof(*rules), .filter = rules};
	const struct cadge_open_args args = pair_args(CADGE_WAIT_POLL);
	struct cadge_ctx *ctx = NULL;
	int got;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
		return 77;
	got = layer->open(&args, &ctx);
	printf("# code %d: %s\n", got, args.error);
	return got == code && !ctx && strstr(args.error, word) && strstr(args.error, advice) ? 0 : 1;
}

static void forbidden(int error, int code, const char *word, const char *advice, const char *what)
{
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		status = open_under_filter(error, code, word, advice);
		fflush(stdout);
		_exit(status);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFEXITED(status))
		tap_bail("the child did not end");
	if (WEXITSTATUS(status) == 77)
		ok(true, "%s # SKIP no seccomp filters here", what);
	else
		ok(WEXITSTATUS(status) == 0, "%s", what);
}

int main(void)
{
	if (!pair_here("sockets-uring"))
		tap_skip_all("sockets-uring is not built, or io_uring is forbidden here");
	layer = pair_load("sockets-uring");
	odd_pieces(false);
	odd_pieces(true);
	out_of_buffers();
	forbidden(EPERM, CADGE_E_PERMISSION, "seccomp", "io_uring_setup",
		  "where a filter forbids io_uring, open says so and what to allow");
	forbidden(ENOSYS, CADGE_E_ABSENT, "no io_uring", "sockets-tcp",
		  "where a filter hides it, open says what to use in its place");
	return tap_done();
}
