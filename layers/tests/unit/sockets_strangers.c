/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whoever finds the port of a layer but was given no address blob stays outside, and does not keep the peer
 * out.
 */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kit/bytes.h"
#include "sockets/endpoint.h"
#include "tests/unit/support/pair.h"
#include "tests/unit/support/tap.h"

static int knock(const struct pair_end *end, int type, const void *words, size_t bytes)
{
	struct sock_blob blob;
	struct sockaddr_storage to;
	socklen_t to_bytes;
	int fd;

	if (sock_blob_read(end->blob, end->blob_bytes, &blob) < 0 ||
	    sock_endpoint_read(blob.endpoint, &to, &to_bytes) < 0)
		tap_bail("the layer's address is not a blob");
	fd = socket(to.ss_family, type | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&to, to_bytes) < 0 ||
	    (bytes && send(fd, words, bytes, MSG_NOSIGNAL) != (ssize_t)bytes))
		tap_bail("a stranger cannot even knock");
	return fd;
}

static bool is_dropped(int fd)
{
	char byte;

	errno = 0;
	return recv(fd, &byte, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET;
}

static struct sock_blob blob_of(const struct pair_end *end)
{
	struct sock_blob blob;

	if (sock_blob_read(end->blob, end->blob_bytes, &blob) < 0)
		tap_bail("the layer's address is not a blob");
	return blob;
}

/* Opens both, and returns the one that the other has to dial, which expects it from now on. */
static struct pair_end *open_listener(struct pair_end *a, struct pair_end *b, const struct cadge_layer *layer,
				      const struct cadge_open_args *args)
{
	struct pair_end *listener, *dialler;

	if (pair_open(a, layer, args) < 0 || pair_open(b, layer, args) < 0)
		tap_bail(args->error);
	listener = memcmp(blob_of(a).endpoint, blob_of(b).endpoint, SOCK_ENDPOINT_BYTES) < 0 ? b : a;
	dialler = listener == a ? b : a;
	if (layer->connect(listener->ctx, 0, dialler->blob, dialler->blob_bytes, &listener->chan) < 0)
		tap_bail("cannot connect");
	return listener;
}

static void stream_strangers(const char *name)
{
	enum { SILENT = 40 };
	const struct cadge_layer *layer = pair_load(name);
	const struct cadge_open_args args = pair_args(CADGE_WAIT_POLL);
	struct pair_end a, b, *listener, *dialler;
	unsigned char hello[16] = "HLO1";
	int wrong_nonce, wrong_slot, garbage, silent[SILENT], nothing = 0;

	listener = open_listener(&a, &b, layer, &args);
	dialler = listener == &a ? &b : &a;
	cadge_store32(hello + 4, 0);
	cadge_store64(hello + 8, blob_of(listener).nonce ^ 1);
	wrong_nonce = knock(listener, SOCK_STREAM, hello, sizeof(hello));
	cadge_store32(hello + 4, 77);
	cadge_store64(hello + 8, blob_of(listener).nonce);
	wrong_slot = knock(listener, SOCK_STREAM, hello, sizeof(hello));
	garbage = knock(listener, SOCK_STREAM, "GET / HTTP/1.1\r\n\r\n", 18);
	pair_poll_until(listener, NULL, &nothing, 1, 20);
	ok(is_dropped(wrong_nonce), "%s: a hello with a wrong nonce is dropped", name);
	ok(is_dropped(wrong_slot), "%s: so is one with a slot that nobody has", name);
	ok(is_dropped(garbage), "%s: so is one that speaks another protocol", name);
	for (int i = 0; i < SILENT; i++)
		silent[i] = knock(listener, SOCK_STREAM, "", 0);
	pair_poll_until(listener, NULL, &nothing, 1, 20);
	ok(!listener->seen.ups && !listener->seen.downs, "%s: no event comes of strangers", name);
	if (layer->connect(dialler->ctx, 0, listener->blob, listener->blob_bytes, &dialler->chan) < 0)
		tap_bail("cannot connect");
	pair_poll_until(&a, &b, &a.seen.ups, 1, 2000);
	pair_poll_until(&a, &b, &b.seen.ups, 1, 2000);
	ok(a.seen.ups == 1 && b.seen.ups == 1, "%s: the peer gets in past %d silent strangers", name, SILENT);
	for (int i = 0; i < SILENT; i++)
		close(silent[i]);
	pair_post(dialler, listener, "after all", 9, 1);
	ok(pair_poll_until(&a, &b, &listener->seen.received, 1, 1000), "%s: and is heard", name);
	pair_close(&a);
	pair_close(&b);
	close(wrong_nonce);
	close(wrong_slot);
	close(garbage);
}

/* This process has as many descriptors as it may have; *before_out is what it could have had. */
static void allow_no_more(struct rlimit *before_out)
{
	const int next = dup(STDIN_FILENO);
	struct rlimit limit;

	close(next);
	if (next < 0 || getrlimit(RLIMIT_NOFILE, before_out) < 0)
		tap_bail("this process does not know its limits");
	limit = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = before_out->rlim_max};
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* A peer comes and there is no descriptor for it: that ends the channel, with a reason, and not the sleep of who waits. */
static void no_descriptors(const char *name)
{
	const struct cadge_layer *layer = pair_load(name);
	const struct cadge_open_args args = pair_args(CADGE_WAIT_BLOCK);
	struct pair_end a, b, *listener, *dialler;
	struct rlimit before;
	int nothing = 0;
	bool waited;

	listener = open_listener(&a, &b, layer, &args);
	dialler = listener == &a ? &b : &a;
	allow_no_more(&before);
	waited = !pair_poll_until(listener, NULL, &nothing, 1, 20) && !listener->seen.downs;
	setrlimit(RLIMIT_NOFILE, &before);
	ok(waited, "%s: without a descriptor it waits until somebody comes", name);
	if (layer->connect(dialler->ctx, 0, listener->blob, listener->blob_bytes, &dialler->chan) < 0)
		tap_bail("cannot connect");
	allow_no_more(&before);
	pair_poll_until(listener, NULL, &listener->seen.downs, 1, 2000);
	setrlimit(RLIMIT_NOFILE, &before);
	ok(listener->seen.downs == 1 && listener->seen.down_code == CADGE_E_MEMORY,
	   "%s: then the channel ends", name);
	ok(layer->why(listener->ctx) && strstr(layer->why(listener->ctx), strerror(EMFILE)), "%s: %s", name,
	   layer->why(listener->ctx));
	pair_close(&a);
	pair_close(&b);
}

/* A peer of the right name that then sends a length over the limit takes its own channel down, no more. */
static void hostile_peer(const char *name)
{
	const struct cadge_layer *layer = pair_load(name);
	const struct cadge_open_args args = pair_args(CADGE_WAIT_POLL);
	struct pair_end end;
	struct sock_blob blob;
	unsigned char hello[16] = "HLO1", forged[SOCK_BLOB_BYTES];
	int fd;

	if (pair_open(&end, layer, &args) < 0 || sock_blob_read(end.blob, end.blob_bytes, &blob) < 0)
		tap_bail(args.error);
	cadge_store32(hello + 4, blob.slot);
	cadge_store64(hello + 8, blob.nonce);
	/* An endpoint smaller than any, so that this end is the listener. */
	memset(blob.endpoint + 1, 0, sizeof(blob.endpoint) - 1);
	sock_blob_write(&blob, forged);
	if (layer->connect(end.ctx, 0, forged, sizeof(forged), &end.chan) < 0)
		tap_bail("cannot connect");
	fd = knock(&end, SOCK_STREAM, hello, sizeof(hello));
	pair_poll_until(&end, NULL, &end.seen.ups, 1, 2000);
	ok(end.seen.ups == 1, "%s: a forged peer that was given the address is up", name);
	if (send(fd, "\xff\xff\xff\xff rest", 9, MSG_NOSIGNAL) != 9)
		tap_bail("cannot send");
	ok(pair_poll_until(&end, NULL, &end.seen.downs, 1, 1000) && !end.seen.received,
	   "%s: its impossible length takes the channel down", name);
	pair_close(&end);
	close(fd);
}

struct count {
	uint64_t strangers;
};

static void add_strangers(void *arg, const char *name, uint64_t value)
{
	struct count *count = arg;

	if (strcmp(name, "strangers_dropped_datagrams") == 0)
		count->strangers = value;
}

static void datagram_strangers(void)
{
	const struct cadge_layer *layer = pair_load("sockets-udp");
	const struct cadge_open_args args = pair_args(CADGE_WAIT_POLL);
	unsigned char forged[24] = "dataXXXX not for you";
	struct pair_end a, b;
	struct sock_blob blob;
	struct count count = {0};
	int before, after, nothing = 0;

	if (pair_open(&a, layer, &args) < 0 || pair_open(&b, layer, &args) < 0)
		tap_bail(args.error);
	before = knock(&a, SOCK_DGRAM, forged, sizeof(forged));
	if (send(before, "x", 1, 0) != 1 || send(before, "", 0, 0) != 0)
		tap_bail("cannot send");
	if (!pair_bring_up(&a, &b))
		tap_bail("the two ends do not meet");
	pair_poll_until(&a, &b, &nothing, 1, 20);
	layer->counters(a.ctx, add_strangers, &count);
	ok(!a.seen.received && count.strangers == 3,
	   "sockets-udp: %llu datagrams from before the meeting are dropped",
	   (unsigned long long)count.strangers);
	/* Even with the right tag: the kernel takes datagrams from the peer's own socket only. */
	if (sock_blob_read(a.blob, a.blob_bytes, &blob) < 0)
		tap_bail("the layer's address is not a blob");
	cadge_store32(forged + 4, (uint32_t)blob.nonce);
	after = knock(&a, SOCK_DGRAM, forged, sizeof(forged));
	pair_poll_until(&a, &b, &nothing, 1, 20);
	ok(!a.seen.received && !a.seen.downs,
	   "sockets-udp: so are those of others afterwards, whatever they know");
	pair_post(&b, &a, "after all", 9, 1);
	ok(pair_poll_until(&a, &b, &a.seen.received, 1, 1000), "sockets-udp: the peer is heard");
	pair_close(&a);
	pair_close(&b);
	close(before);
	close(after);
}

int main(void)
{
	stream_strangers("sockets-tcp");
	stream_strangers("sockets-unix");
	hostile_peer("sockets-tcp");
	no_descriptors("sockets-tcp");
	no_descriptors("sockets-unix");
	if (pair_here("sockets-uring")) {
		stream_strangers("sockets-uring");
		hostile_peer("sockets-uring");
		no_descriptors("sockets-uring");
	}
	hostile_peer("sockets-unix");
	datagram_strangers();
	return tap_done();
}
