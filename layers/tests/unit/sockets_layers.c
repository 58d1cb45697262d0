/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sockets layers between two contexts of one process over 127.0.0.1, and against a process that dies:
 * what is theirs beyond the conformance suite.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/support/pair.h"
#include "tests/unit/support/tap.h"

static const struct cadge_layer *layer;
static bool reliable;

static struct cadge_limits limits_of(const struct pair_end *end)
{
	struct cadge_limits limits = {.bytes = sizeof(limits)};

	end->layer->limits(end->ctx, &limits);
	return limits;
}

static void meet(struct pair_end *a, struct pair_end *b, enum cadge_wait_mode wait_mode)
{
	const struct cadge_open_args args = pair_args(wait_mode);

	if (pair_open(a, layer, &args) < 0 || pair_open(b, layer, &args) < 0)
		tap_bail(args.error);
	if (!pair_bring_up(a, b))
		tap_bail("the two ends do not meet");
}

static void sizes(void)
{
	static const size_t all[] = {0,     1,     2,     63,    64,    1023,  1024,   1025,    4096,   16384,
				     65000, 65472, 65499, 65532, 65536, 70000, 300000, 1 << 20, 8 << 20};
	struct pair_end a, b;
	unsigned char *payload = malloc(8 << 20), *landing = malloc(8 << 20);
	const int enough = 1;

	meet(&a, &b, CADGE_WAIT_POLL);
	b.seen.data = landing;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		int sent = b.seen.received, code;

		if (all[i] > limits_of(&a).message_bytes_max)
			continue;
		pair_fill(payload, all[i], (unsigned)i);
		b.seen.data_bytes = 0;
		b.seen.data_room_bytes = 8 << 20;
		a.seen.sent = 0;
		code = pair_post(&a, &b, payload, all[i], i);
		pair_poll_until(&a, &b, &b.seen.received, sent + enough, 3000);
		if (code == CADGE_QUEUED)
			pair_poll_until(&a, &b, &a.seen.sent, 1, 3000);
		ok(code >= 0 && a.seen.sent == (code == CADGE_QUEUED) && b.seen.received == sent + 1 &&
			   b.seen.data_bytes == all[i] && pair_matches(landing, all[i], (unsigned)i),
		   "%s: a message of %zu bytes arrives as it was", layer->name, all[i]);
	}
	ok(pair_post(&a, &b, payload, limits_of(&a).message_bytes_max + 1, 1) == CADGE_E_TOO_LARGE,
	   "%s: one byte over the limit is refused", layer->name);
	pair_close(&a);
	pair_close(&b);
	free(payload);
	free(landing);
}

static void back_to_sender(struct pair_sink *self, const void *data, size_t bytes)
{
	struct pair_end *end = self->arg;

	if (pair_post(end, NULL, data, bytes, 7) < 0)
		tap_bail("post in the sink failed");
}

static void replies_from_the_sink(void)
{
	struct pair_end a, b;
	const int rounds = 500;
	int done = 0;

	meet(&a, &b, CADGE_WAIT_POLL);
	b.seen.on_recv = back_to_sender;
	b.seen.arg = &b;
	for (; done < rounds; done++)
		if (pair_post(&a, &b, "question", 8, 1) < 0 ||
		    !pair_poll_until(&a, &b, &a.seen.received, done + 1, 1000))
			break;
	ok(done == rounds, "%s: %d of %d replies posted inside of the sink", layer->name, done, rounds);
	pair_close(&a);
	pair_close(&b);
}

static void kept_messages(void)
{
	enum { MESSAGES = 200, BYTES = 5000 };
	static unsigned char payload[BYTES];
	struct pair_end a, b;
	bool same = true;

	meet(&a, &b, CADGE_WAIT_POLL);
	b.seen.keep = true;
	for (int i = 0; i < MESSAGES; i++) {
		pair_fill(payload, BYTES, (unsigned)i);
		if (pair_post(&a, &b, payload, BYTES, 1) < 0 ||
		    !pair_poll_until(&a, &b, &b.seen.received, i + 1, 1000))
			tap_bail("a message is missing");
	}
	for (int i = 0; i < b.seen.kept_count; i++)
		same &= pair_matches(b.seen.kept_data[i], BYTES, (unsigned)i);
	ok(b.seen.kept_count == MESSAGES && same, "%s: %d messages kept at a time stay as they were",
	   layer->name, MESSAGES);
	for (int i = 0; i < MESSAGES / 2; i++)
		layer->release(b.ctx, b.seen.kept[i]);
	pair_close(&b); /* the other half is still kept */
	pair_close(&a);
}

static void back_pressure(void)
{
	enum { BYTES = 1 << 20 };
	unsigned char *payload = calloc(1, BYTES);
	struct pair_end a, b;
	const struct cadge_iov iov = {payload, BYTES};
	int accepted = 0, queued = 0, code;

	meet(&a, &b, CADGE_WAIT_POLL);
	while ((code = layer->post(a.chan, &iov, 1, 0, (uint64_t)accepted)) != CADGE_BUSY && code >= 0 &&
	       accepted < 500) {
		accepted++;
		queued += code == CADGE_QUEUED;
	}
	ok(code == CADGE_BUSY && queued == (int)limits_of(&a).depth_max,
	   "%s: BUSY comes when depth messages are queued", layer->name);
	pair_poll_until(&a, &b, &b.seen.received, accepted, 5000);
	pair_poll_until(&a, &b, &a.seen.sent, queued, 1000);
	ok(b.seen.received == accepted && a.seen.sent == queued &&
		   b.seen.received_bytes == (uint64_t)accepted * BYTES,
	   "%s: all that was accepted arrives", layer->name);
	pair_close(&a);
	pair_close(&b);
	free(payload);
}

static void peer_closes(void)
{
	unsigned char *payload = calloc(1, 60000);
	struct pair_end a, b;
	int code = 0;

	meet(&a, &b, CADGE_WAIT_POLL);
	pair_close(&b);
	for (int i = 0; i < 1000 && !a.seen.downs; i++) {
		code = pair_post(&a, NULL, payload, 60000, 1);
		pair_poll_until(&a, NULL, &a.seen.downs, 1, 1);
	}
	ok(a.seen.downs == 1 && a.seen.down_code < 0, "%s: down comes once when the peer closes",
	   layer->name);
	code = layer->post(a.chan, &(struct cadge_iov){payload, 1}, 1, 0, 1);
	ok(code == CADGE_E_DOWN, "%s: post then says that the peer is gone", layer->name);
	pair_poll_until(&a, NULL, &a.seen.downs, 2, 20);
	ok(a.seen.downs == 1, "%s: down is not repeated", layer->name);
	pair_close(&a);
	free(payload);
}

/* The other process is killed while this one waits; close has to return at once. */
static void peer_is_killed(void)
{
	const struct cadge_open_args args = pair_args(CADGE_WAIT_BLOCK);
	struct pair_end end, probe;
	unsigned char theirs[PAIR_BLOB_BYTES];
	uint64_t begin_ns;
	int link[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, link) < 0)
		tap_bail("no socket pair");
	child = fork();
	if (pair_open(&end, layer, &args) < 0)
		tap_bail(args.error);
	if (send(link[child == 0], end.blob, end.blob_bytes, 0) < 0)
		tap_bail("no way to the other process");
	ssize_t got = recv(link[child == 0], theirs, sizeof(theirs), 0);
	if (got <= 0 || layer->connect(end.ctx, 0, theirs, (size_t)got, &end.chan) < 0)
		tap_bail("cannot connect to the other process");
	pair_poll_until(&end, NULL, &end.seen.ups, 1, 3000);
	if (child == 0) {
		pair_poll_until(&end, NULL, &end.seen.received, 1, 3000);
		for (;;)
			pause();
	}
	pair_post(&end, NULL, "hello", 5, 1);
	pair_poll_until(&end, NULL, &end.seen.downs, 1, 30);
	ok(end.seen.ups == 1 && !end.seen.downs, "%s: two processes meet", layer->name);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	begin_ns = pair_now_ns();
	while (!end.seen.downs && pair_now_ns() - begin_ns < UINT64_C(2000000000)) {
		if (!reliable)
			pair_post(&end, NULL, "hello", 5, 1);
		layer->wait(end.ctx, 10000000);
		pair_poll_until(&end, NULL, &end.seen.downs, 1, 1);
	}
	ok(end.seen.downs == 1, "%s: the death of the peer is found", layer->name);
	begin_ns = pair_now_ns();
	pair_close(&end);
	ok(pair_now_ns() - begin_ns < UINT64_C(500000000), "%s: close does not wait for the dead",
	   layer->name);
	close(link[0]);
	close(link[1]);
	ok(pair_open(&probe, layer, &args) == CADGE_DONE, "%s: and a new context opens", layer->name);
	pair_close(&probe);
}

static void connect_again(void)
{
	struct pair_end a, b;
	int rounds = 0;

	meet(&a, &b, CADGE_WAIT_POLL);
	for (; rounds < 20; rounds++) {
		int received = b.seen.received;

		if (pair_post(&a, &b, "again", 5, 1) < 0 ||
		    !pair_poll_until(&a, &b, &b.seen.received, received + 1, 1000))
			break;
		layer->disconnect(a.ctx, a.chan);
		layer->disconnect(b.ctx, b.chan);
		a.seen.ups = b.seen.ups = 0;
		a.blob_bytes = b.blob_bytes = PAIR_BLOB_BYTES;
		if (layer->address(a.ctx, 0, a.blob, &a.blob_bytes) < 0 ||
		    layer->address(b.ctx, 0, b.blob, &b.blob_bytes) < 0 || !pair_bring_up(&a, &b))
			break;
	}
	ok(rounds == 20 && !a.seen.downs && !b.seen.downs, "%s: disconnected and connected again %d times",
	   layer->name, rounds);
	pair_close(&a);
	pair_close(&b);
}

static void waiting(void)
{
	struct pair_end a, b;
	struct rusage before, after;
	uint64_t begin_ns, spent_ns;
	int64_t cpu_us;

	meet(&a, &b, CADGE_WAIT_BLOCK);
	getrusage(RUSAGE_THREAD, &before);
	begin_ns = pair_now_ns();
	if (layer->wait(a.ctx, 250000000) < 0)
		tap_bail("wait failed");
	spent_ns = pair_now_ns() - begin_ns;
	getrusage(RUSAGE_THREAD, &after);
	cpu_us = (after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec -
		  before.ru_stime.tv_sec) *
			 1000000 +
		 after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec -
		 before.ru_stime.tv_usec;
	ok(spent_ns > 190000000 && spent_ns < 1000000000,
	   "%s: wait sleeps as long as it may when nothing comes (%llu us)", layer->name,
	   (unsigned long long)spent_ns / 1000);
	ok(after.ru_nvcsw > before.ru_nvcsw && cpu_us < 20000, "%s: and really sleeps (%lld us of CPU)",
	   layer->name, (long long)cpu_us);
	pair_post(&b, &a, "wake", 4, 1);
	layer->poll(b.ctx, &b.seen.sink); /* a layer may hand over what was posted there */
	begin_ns = pair_now_ns();
	while (!a.seen.received && pair_now_ns() - begin_ns < UINT64_C(1000000000)) {
		if (layer->wait(a.ctx, 900000000) < 0)
			tap_bail("wait failed");
		pair_poll_until(&a, NULL, &a.seen.received, 1, 1);
	}
	ok(a.seen.received == 1 && pair_now_ns() - begin_ns < 200000000, "%s: a message ends the wait",
	   layer->name);
	ok(layer->wait(a.ctx, 0) == CADGE_DONE, "%s: a wait of nothing returns", layer->name);
	pair_close(&a);
	pair_close(&b);
}

static void refusals(void)
{
	const struct cadge_setting unknown = {"no_such_thing", "1"}, bad = {"send_buffer_bytes", "many"};
	struct cadge_open_args args = pair_args(CADGE_WAIT_POLL);
	struct pair_end ends[3];
	int code;

	args.place = CADGE_PLACE_SELF;
	ok(pair_open(&ends[0], layer, &args) == CADGE_E_UNSUPPORTED && args.error[0], "%s: place self: %s",
	   layer->name, args.error);
	args = pair_args(CADGE_WAIT_POLL);
	args.settings = &unknown;
	args.settings_count = 1;
	ok(pair_open(&ends[0], layer, &args) == CADGE_E_ARGUMENT, "%s: %s", layer->name, args.error);
	args.settings = &bad;
	ok(pair_open(&ends[0], layer, &args) == CADGE_E_ARGUMENT, "%s: %s", layer->name, args.error);
	args = pair_args(CADGE_WAIT_POLL);
	if (!(layer->caps & CADGE_CAP_NET))
		return;
	args.address = "192.0.2.77";
	ok(pair_open(&ends[0], layer, &args) == CADGE_E_TRANSPORT, "%s: %s", layer->name, args.error);
	args.address = "not-an-address";
	ok(pair_open(&ends[0], layer, &args) == CADGE_E_TRANSPORT, "%s: %s", layer->name, args.error);
	args.address = "127.0.0.1";
	args.port_first = 21730;
	args.port_last = 21731;
	ok(pair_open(&ends[0], layer, &args) == CADGE_DONE && pair_open(&ends[1], layer, &args) == CADGE_DONE,
	   "%s: two contexts find the two ports of a range", layer->name);
	code = pair_open(&ends[2], layer, &args);
	ok(code == CADGE_E_PORT, "%s: a third one does not: %s", layer->name, args.error);
	pair_close(&ends[0]);
	pair_close(&ends[1]);
}

static void path_is_read_back(void)
{
	struct cadge_open_args args = pair_args(CADGE_WAIT_POLL);
	struct cadge_path path = {.bytes = sizeof(path)};
	struct pair_end a, b;

	meet(&a, &b, CADGE_WAIT_POLL);
	ok(layer->describe_path(a.chan, &path) == CADGE_DONE && path.medium == CADGE_MEDIUM_LOOPBACK &&
		   path.as_asked,
	   "%s: within: %s, %s", layer->name, path.asked, path.used);
	pair_close(&a);
	pair_close(&b);
	if (!(layer->caps & CADGE_CAP_NET))
		return;
	args.place = CADGE_PLACE_NET;
	args.device = "nonesuch0";
	if (pair_open(&a, layer, &args) < 0 || pair_open(&b, layer, &args) < 0 || !pair_bring_up(&a, &b))
		tap_bail("the two ends do not meet");
	ok(layer->describe_path(a.chan, &path) == CADGE_DONE && path.medium == CADGE_MEDIUM_LOOPBACK &&
		   !path.as_asked && strcmp(path.device, "lo") == 0,
	   "%s: what runs over %s is not taken for %s", layer->name, path.device, path.asked);
	pair_close(&a);
	pair_close(&b);
}

/* Six peers, so that poll picks the sockets that have something. */
static void many_peers(void)
{
	enum { PEERS = 6 };
	struct cadge_open_args args = pair_args(CADGE_WAIT_BLOCK);
	struct pair_end hub, ends[PEERS];
	struct cadge_chan *to[PEERS];
	int met = 0;

	args.peers_max = PEERS;
	if (pair_open(&hub, layer, &args) < 0)
		tap_bail(args.error);
	args.peers_max = 1;
	for (uint32_t i = 0; i < PEERS; i++) {
		unsigned char blob[PAIR_BLOB_BYTES];
		size_t bytes = sizeof(blob);

		if (pair_open(&ends[i], layer, &args) < 0 || layer->address(hub.ctx, i, blob, &bytes) < 0 ||
		    layer->connect(hub.ctx, i, ends[i].blob, ends[i].blob_bytes, &to[i]) < 0 ||
		    layer->connect(ends[i].ctx, 0, blob, bytes, &ends[i].chan) < 0)
			tap_bail("cannot connect");
	}
	for (uint32_t i = 0; i < PEERS; i++)
		met += pair_poll_until(&hub, &ends[i], &ends[i].seen.ups, 1, 2000);
	pair_poll_until(&hub, NULL, &hub.seen.ups, PEERS, 2000);
	ok(met == PEERS && hub.seen.ups == PEERS, "%s: %d peers of one context are up", layer->name, met);
	for (uint32_t i = 0; i < PEERS; i++) {
		pair_post(&ends[i], &hub, &i, sizeof(i), i);
		layer->poll(ends[i].ctx, &ends[i].seen.sink);
	}
	if (layer->wait(hub.ctx, 100000000) < 0)
		tap_bail("wait failed");
	pair_poll_until(&hub, NULL, &hub.seen.received, PEERS, 1000);
	ok(hub.seen.received == PEERS, "%s: and each is heard", layer->name);
	pair_close(&ends[3]);
	for (int i = 0; i < 100 && !hub.seen.downs; i++) {
		layer->post(to[3], &(struct cadge_iov){to, 8}, 1, 0, 0);
		pair_poll_until(&hub, NULL, &hub.seen.downs, 1, 5);
	}
	for (uint32_t i = 0; i < PEERS; i++)
		if (i != 3)
			layer->post(to[i], &(struct cadge_iov){to, 8}, 1, 0, 0);
	met = 0;
	for (uint32_t i = 0; i < PEERS; i++)
		met += i != 3 && pair_poll_until(&ends[i], &hub, &ends[i].seen.received, 1, 1000);
	ok(hub.seen.downs == 1 && met == PEERS - 1, "%s: one that leaves does not disturb the others",
	   layer->name);
	for (uint32_t i = 0; i < PEERS; i++)
		if (i != 3)
			pair_close(&ends[i]);
	pair_close(&hub);
}

/*
 * All of them have dialled and said who they are before the one looks for the first time. It is opened last: of two
 * addresses the lower one dials, and those of later sockets are higher as a rule.
 */
static void many_at_once(void)
{
	enum { PEERS = 48 };
	/* too large for a stack */
	static struct pair_end hub, ends[PEERS];
	struct cadge_open_args args = pair_args(CADGE_WAIT_POLL);
	struct cadge_chan *to;
	int met = 0;

	for (uint32_t i = 0; i < PEERS; i++)
		if (pair_open(&ends[i], layer, &args) < 0)
			tap_bail(args.error);
	args.peers_max = PEERS;
	if (pair_open(&hub, layer, &args) < 0)
		tap_bail(args.error);
	for (uint32_t i = 0; i < PEERS; i++) {
		unsigned char blob[PAIR_BLOB_BYTES];
		size_t bytes = sizeof(blob);

		if (layer->address(hub.ctx, i, blob, &bytes) < 0 ||
		    layer->connect(hub.ctx, i, ends[i].blob, ends[i].blob_bytes, &to) < 0 ||
		    layer->connect(ends[i].ctx, 0, blob, bytes, &ends[i].chan) < 0)
			tap_bail("cannot connect");
	}
	for (uint32_t i = 0; i < PEERS; i++)
		for (int look = 0; look < 8; look++)
			layer->poll(ends[i].ctx, &ends[i].seen.sink);
	/* whoever waits, polls: those that are up answer the others' hellos */
	for (int round = 0; round < 20 && hub.seen.ups < PEERS; round++)
		for (uint32_t i = 0; i < PEERS; i++)
			pair_poll_until(&hub, &ends[i], &ends[i].seen.ups, 2, 2);
	for (uint32_t i = 0; i < PEERS; i++)
		met += ends[i].seen.ups;
	ok(met == PEERS && hub.seen.ups == PEERS, "%s: of %d that came at once all are up: %d there, %d here",
	   layer->name, PEERS, met, hub.seen.ups);
	for (uint32_t i = 0; i < PEERS; i++)
		pair_close(&ends[i]);
	pair_close(&hub);
}

int main(void)
{
	static const char *const names[] = {"sockets-tcp", "sockets-unix", "sockets-udp", "sockets-uring"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!pair_here(names[i]))
			continue;
		layer = pair_load(names[i]);
		reliable = layer->caps & CADGE_CAP_RELIABLE;
		sizes();
		replies_from_the_sink();
		kept_messages();
		if (reliable)
			back_pressure();
		peer_closes();
		peer_is_killed();
		connect_again();
		waiting();
		refusals();
		path_is_read_back();
		many_peers();
		many_at_once();
	}
	return tap_done();
}
