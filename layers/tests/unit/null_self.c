/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The null layer: messages, native calls and one-sided operations of a context with itself.
 */
#include <string.h>

#include "tests/unit/support/pair.h"
#include "tests/unit/support/tap.h"

enum { DEPTH = 8 };

static const struct cadge_layer *layer;

struct seen {
	struct cadge_sink sink;
	struct cadge_ctx *ctx;
	struct cadge_chan *chans[2];
	int ups, received, calls, replies;
	uint32_t peer, op;
	size_t bytes;
	char text[64];
	bool keep;
	struct cadge_lend *kept;
	struct cadge_reply_to reply_to;
	/* What the call handler does. */
	enum { HOLD, ECHO, FAIL, DELEGATE } handler;
	uint64_t token;
	int code, handler_code;
	enum cadge_placement placement;
};

static void on_up(struct cadge_sink *self, uint32_t peer)
{
	(void)peer;
	((struct seen *)self)->ups++;
}

static void on_down(struct cadge_sink *self, uint32_t peer, int code)
{
	(void)self, (void)peer, (void)code;
	tap_bail("the null layer goes down");
}

static void copy_text(struct seen *seen, const void *data, size_t bytes)
{
	seen->bytes = bytes;
	memset(seen->text, 0, sizeof(seen->text));
	if (data && bytes < sizeof(seen->text))
		memcpy(seen->text, data, bytes);
}

static enum cadge_keep on_recv(struct cadge_sink *self, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct seen *seen = (struct seen *)self;

	seen->received++;
	seen->peer = peer;
	copy_text(seen, data, bytes);
	seen->kept = lend;
	return seen->keep ? CADGE_KEEP : CADGE_TAKEN;
}

static void on_sent(struct cadge_sink *self, uint32_t peer, uint64_t token, int code)
{
	(void)self, (void)peer, (void)token, (void)code;
	tap_bail("the null layer queues nothing");
}

static void on_call(struct cadge_sink *self, uint32_t peer, uint32_t op, const void *args, size_t bytes,
		    const struct cadge_reply_to *reply_to)
{
	struct seen *seen = (struct seen *)self;
	struct cadge_iov parts[2] = {{.base = seen->text, .bytes = bytes / 2},
				     {.base = seen->text + bytes / 2, .bytes = bytes - bytes / 2}};

	seen->calls++;
	seen->peer = peer;
	seen->op = op;
	seen->reply_to = *reply_to;
	copy_text(seen, args, bytes);
	if (seen->handler == ECHO)
		seen->handler_code = layer->reply(seen->ctx, reply_to, parts, 2, 0, 0);
	else if (seen->handler == FAIL)
		seen->handler_code = layer->fail(seen->ctx, reply_to, CADGE_E_LOST, 0);
	else if (seen->handler == DELEGATE)
		seen->handler_code = layer->delegate(seen->chans[1], reply_to, op + 1, parts, 2, 0, 0);
	if (seen->handler == DELEGATE)
		seen->handler = ECHO;
}

static enum cadge_keep on_replied(struct cadge_sink *self, uint32_t peer, uint64_t token, int code,
				  enum cadge_placement placement, const void *data, size_t bytes,
				  struct cadge_lend *lend)
{
	struct seen *seen = (struct seen *)self;

	(void)lend;
	seen->replies++;
	seen->peer = peer;
	seen->token = token;
	seen->code = code;
	seen->placement = placement;
	copy_text(seen, data, bytes);
	return CADGE_TAKEN;
}

static void set_up(struct seen *seen)
{
	struct cadge_open_args args = pair_args(CADGE_WAIT_POLL);

	memset(seen, 0, sizeof(*seen));
	seen->sink = (struct cadge_sink){.up = on_up,
					 .down = on_down,
					 .recv = on_recv,
					 .sent = on_sent,
					 .call = on_call,
					 .replied = on_replied};
	args.place = CADGE_PLACE_SELF;
	args.depth_max = DEPTH;
	args.peers_max = 2;
	if (layer->open(&args, &seen->ctx) < 0)
		tap_bail(args.error);
	for (uint32_t peer = 0; peer < 2; peer++) {
		unsigned char blob[PAIR_BLOB_BYTES];
		size_t bytes = sizeof(blob);

		if (layer->address(seen->ctx, peer, blob, &bytes) < 0 ||
		    layer->connect(seen->ctx, peer, blob, bytes, &seen->chans[peer]) < 0)
			tap_bail("the null layer does not connect");
	}
	if (layer->poll(seen->ctx, &seen->sink) != 2 || seen->ups != 2)
		tap_bail("the null layer does not come up");
}

static int post_text(struct seen *seen, uint32_t peer, char *text)
{
	const struct cadge_iov iov[2] = {{text, 1}, {text + 1, strlen(text) - 1}};

	return layer->post(seen->chans[peer], iov, 2, 0, 1);
}

static void messages(void)
{
	struct seen seen;
	char first[] = "first", second[] = "second";
	int accepted = 0;

	set_up(&seen);
	ok(post_text(&seen, 1, first) == CADGE_DONE && layer->poll(seen.ctx, &seen.sink) == 1 &&
		   seen.received == 1 && seen.peer == 1 && strcmp(seen.text, "first") == 0,
	   "a message comes back with the next poll, from the peer it was posted to");
	ok(layer->post(seen.chans[0], NULL, 0, 0, 1) == CADGE_DONE &&
		   layer->poll(seen.ctx, &seen.sink) == 1 && seen.bytes == 0,
	   "an empty one too");
	while (accepted < 1000 && post_text(&seen, 0, second) == CADGE_DONE)
		accepted++;
	ok(accepted == 2 * DEPTH, "depth messages a peer are taken, then comes BUSY");
	ok(layer->poll(seen.ctx, &seen.sink) == accepted && layer->poll(seen.ctx, &seen.sink) == 0,
	   "and all are delivered");
	seen.keep = true;
	ok(post_text(&seen, 0, first) == CADGE_DONE && layer->poll(seen.ctx, &seen.sink) == 1, "one is kept");
	struct cadge_lend *kept = seen.kept;
	seen.keep = false;
	for (int i = 0; i < 100; i++) {
		if (post_text(&seen, 0, second) != CADGE_DONE || layer->poll(seen.ctx, &seen.sink) != 1 ||
		    seen.kept == kept)
			tap_bail("a kept cell is used again");
	}
	layer->release(seen.ctx, kept);
	post_text(&seen, 0, first);
	layer->poll(seen.ctx, &seen.sink);
	ok(seen.kept == kept, "and its cell is used again only after release");
	post_text(&seen, 1, first);
	layer->disconnect(seen.ctx, seen.chans[1]);
	ok(layer->poll(seen.ctx, &seen.sink) == 0, "a message on its way goes with its channel");
	layer->close(seen.ctx);
}

static void calls(void)
{
	struct seen seen;
	char question[] = "question", room[64] = "";
	const struct cadge_iov in = {question, 8}, out[2] = {{room, 3}, {room + 10, 20}}, small = {room, 3};
	int code;

	set_up(&seen);
	seen.handler = ECHO;
	code = layer->call(seen.chans[0], 5, &in, 1, out, 2, 0, 77);
	layer->poll(seen.ctx, &seen.sink);
	layer->poll(seen.ctx, &seen.sink);
	ok(code == CADGE_QUEUED && seen.calls == 1 && seen.op == 5 && seen.replies == 1 && seen.token == 77 &&
		   seen.code == CADGE_DONE && seen.placement == CADGE_PLACED && seen.bytes == 8 &&
		   memcmp(room, "que", 3) == 0 && memcmp(room + 10, "stion", 5) == 0,
	   "a call is answered into the caller's buffers");
	code = layer->reply(seen.ctx, &seen.reply_to, NULL, 0, 0, 0);
	ok(code == CADGE_E_ARGUMENT, "a reply token serves once");
	layer->call(seen.chans[0], 5, &in, 1, NULL, 0, 0, 78);
	layer->poll(seen.ctx, &seen.sink);
	layer->poll(seen.ctx, &seen.sink);
	ok(seen.token == 78 && seen.placement == CADGE_LENT && strcmp(seen.text, "question") == 0,
	   "without buffers the result is lent");
	layer->call(seen.chans[0], 5, &in, 1, &small, 1, 0, 79);
	layer->poll(seen.ctx, &seen.sink);
	ok(seen.handler_code == CADGE_E_TOO_LARGE &&
		   layer->fail(seen.ctx, &seen.reply_to, CADGE_E_TOO_LARGE, 0) == CADGE_DONE,
	   "a result that does not fit is refused, and the token is still good");
	layer->poll(seen.ctx, &seen.sink);
	seen.handler = FAIL;
	layer->call(seen.chans[0], 5, &in, 1, out, 2, 0, 80);
	layer->poll(seen.ctx, &seen.sink);
	layer->poll(seen.ctx, &seen.sink);
	ok(seen.token == 80 && seen.code == CADGE_E_LOST, "a failed call ends with the code");
	seen.handler = DELEGATE;
	seen.calls = 0;
	layer->call(seen.chans[0], 5, &in, 1, NULL, 0, 0, 81);
	for (int i = 0; i < 3; i++)
		layer->poll(seen.ctx, &seen.sink);
	ok(seen.calls == 2 && seen.op == 6 && seen.token == 81 && seen.peer == 0 &&
		   strcmp(seen.text, "question") == 0,
	   "a delegated call is answered to its first caller");
	seen.handler = HOLD;
	seen.replies = 0;
	for (code = 0; code < 1000 && layer->call(seen.chans[0], 1, &in, 1, NULL, 0, 0, 1) == CADGE_QUEUED;
	     code++)
		layer->poll(seen.ctx, &seen.sink);
	ok(code == 2 * DEPTH, "calls that nobody answers count against the depth");
	ok(layer->reply(seen.ctx, &seen.reply_to, &in, 1, 0, 0) == CADGE_DONE &&
		   layer->poll(seen.ctx, &seen.sink) == 1 && seen.replies == 1 &&
		   layer->call(seen.chans[0], 1, &in, 1, NULL, 0, 0, 1) == CADGE_QUEUED,
	   "answered from outside of the sink, one makes room for the next");
	layer->close(seen.ctx);
}

static void one_sided(void)
{
	struct seen seen;
	uint64_t memory[8] = {0}, before = 0, word = 41;
	unsigned char key[PAIR_BLOB_BYTES];
	size_t key_bytes = sizeof(key);
	struct cadge_region *region;
	struct cadge_remote *remote;

	set_up(&seen);
	if (layer->expose(seen.ctx, memory, sizeof(memory), CADGE_MAY_ALL, CADGE_ALL_PEERS, 0, key,
			  &key_bytes, &region) < 0 ||
	    layer->attach(seen.chans[0], key, key_bytes, CADGE_MAY_ALL, 0, &remote) < 0)
		tap_bail("memory cannot be exposed");
	ok(layer->put(seen.chans[0], &word, 8, remote, 16, 0, 1) == CADGE_DONE && memory[2] == 41, "put");
	ok(layer->fetch_add(seen.chans[0], 1, &before, remote, 16, 0, 1) == CADGE_DONE && before == 41 &&
		   memory[2] == 42,
	   "fetch and add");
	ok(layer->get(seen.chans[0], &word, 8, remote, 16, 0, 1) == CADGE_DONE && word == 42, "get");
	ok(layer->quiet(seen.chans[0], 0, 1) == CADGE_DONE, "quiet");
	ok(layer->put(seen.chans[0], &word, 8, remote, 57, 0, 1) == CADGE_E_ARGUMENT &&
		   layer->get(seen.chans[0], &word, 8, remote, UINT64_MAX, 0, 1) == CADGE_E_ARGUMENT &&
		   layer->fetch_add(seen.chans[0], 1, &before, remote, 4, 0, 1) == CADGE_E_ARGUMENT,
	   "nothing outside of the region or out of line");
	layer->detach(seen.chans[0], remote);
	layer->unexpose(seen.ctx, region);
	layer->close(seen.ctx);
}

int main(void)
{
	layer = pair_load("null-self");
	messages();
	calls();
	one_sided();
	return tap_done();
}
