/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A caller as it was written for ABI 1 on the day it was frozen. It never changes, and is built with the headers of that
 * day, include/cadge, alone: so long as it gets on with today's layers, programs of others that were built then do.
 *
 *   caller MODULE...   takes the table of each; with one that connects to itself it opens a context and sends a message,
 *                      calls, and writes memory where the layer has that
 *
 * One line a module. Exit status: 0 all went well; 1 a module did not; 2 wrong usage.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadge/check.h"
#include "cadge/layer.h"

#define POLLS 10000000u

struct seen {
	struct cadge_sink sink; /* first: callbacks get a pointer to it */
	const struct cadge_layer *layer;
	struct cadge_ctx *ctx;
	unsigned up, messages, calls, replies, sent;
	char text[16];
};

static void on_up(struct cadge_sink *self, uint32_t peer)
{
	(void)peer;
	((struct seen *)self)->up++;
}

static void on_down(struct cadge_sink *self, uint32_t peer, int code)
{
	(void)self, (void)peer, (void)code;
}

static enum cadge_keep on_recv(struct cadge_sink *self, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct seen *seen = (struct seen *)self;

	(void)peer, (void)lend;
	if (bytes <= sizeof(seen->text))
		memcpy(seen->text, data, bytes);
	seen->messages++;
	return CADGE_TAKEN;
}

static void on_sent(struct cadge_sink *self, uint32_t peer, uint64_t token, int code)
{
	(void)peer, (void)token;
	((struct seen *)self)->sent += code == CADGE_DONE;
}

static void on_call(struct cadge_sink *self, uint32_t peer, uint32_t op, const void *args, size_t bytes,
		    const struct cadge_reply_to *reply_to)
{
	struct seen *seen = (struct seen *)self;
	const struct cadge_iov iov = {(void *)(uintptr_t)args, bytes};

	(void)peer;
	if (op == 7 && seen->layer->reply(seen->ctx, reply_to, &iov, 1, 0, 1) >= CADGE_DONE)
		seen->calls++;
}

static enum cadge_keep on_replied(struct cadge_sink *self, uint32_t peer, uint64_t token, int code,
				  enum cadge_placement placement, const void *data, size_t bytes,
				  struct cadge_lend *lend)
{
	(void)peer, (void)placement, (void)data, (void)bytes, (void)lend;
	((struct seen *)self)->replies += token == 2 && code == CADGE_DONE;
	return CADGE_TAKEN;
}

/* Polls until *count is above zero. */
static const char *await(struct seen *seen, const unsigned *count, const char *what)
{
	for (unsigned i = 0; i < POLLS && !*count; i++)
		if (seen->layer->poll(seen->ctx, &seen->sink) < 0)
			return "poll failed";
	return *count ? NULL : what;
}

static const char *write_memory(struct seen *seen, struct cadge_chan *chan)
{
	const struct cadge_layer *layer = seen->layer;
	const bool allocates = layer->caps & CADGE_CAP_MEM_ALLOC;
	char *memory = allocates ? layer->mem_alloc(seen->ctx, 8192) : calloc(1, 8192);
	struct cadge_region *region;
	struct cadge_remote *remote;
	unsigned char key[2048];
	size_t key_bytes = sizeof(key);
	const char *wrong = NULL;

	if (!memory)
		return "no memory";
	strcpy(memory, "written");
	if (layer->expose(seen->ctx, memory, 8192, CADGE_MAY_ALL, CADGE_ALL_PEERS, 0, key, &key_bytes,
			  &region))
		return "expose failed";
	if (layer->attach(chan, key, key_bytes, CADGE_MAY_ALL, 0, &remote))
		return "attach failed";
	seen->sent = 0;
	switch (layer->put(chan, memory, 8, remote, 4096, 0, 3)) {
	case CADGE_DONE: break;
	case CADGE_QUEUED: wrong = await(seen, &seen->sent, "put did not end"); break;
	default: return "put failed";
	}
	seen->sent = 0;
	if (!wrong && layer->quiet(chan, 0, 4) == CADGE_QUEUED)
		wrong = await(seen, &seen->sent, "quiet did not end");
	if (!wrong && strcmp(memory + 4096, "written") != 0)
		wrong = "put wrote nothing";
	layer->detach(chan, remote);
	layer->unexpose(seen->ctx, region);
	if (allocates)
		layer->mem_free(seen->ctx, memory, 8192);
	else
		free(memory);
	return wrong;
}

static const char *talk(struct seen *seen)
{
	const struct cadge_layer *layer = seen->layer;
	struct cadge_limits limits = {.bytes = sizeof(limits)};
	const struct cadge_iov out = {(void *)(uintptr_t)"of that day", 12};
	struct cadge_chan *chan;
	unsigned char blob[2048];
	size_t bytes = sizeof(blob);
	const char *wrong;

	layer->limits(seen->ctx, &limits);
	if (layer->address(seen->ctx, 0, blob, &bytes) || layer->connect(seen->ctx, 0, blob, bytes, &chan))
		return "connect failed";
	wrong = await(seen, &seen->up, "not up");
	if (wrong)
		return wrong;
	if (layer->post(chan, &out, 1, 0, 1) < CADGE_DONE)
		return "post failed";
	wrong = await(seen, &seen->messages, "no message came");
	if (!wrong && strcmp(seen->text, "of that day") != 0)
		wrong = "another message came";
	if (!wrong && (limits.caps & CADGE_CAP_RPC) && (limits.caps & CADGE_CAP_REPLY_IN_SINK)) {
		if (layer->call(chan, 7, &out, 1, NULL, 0, 0, 2) != CADGE_QUEUED)
			return "call failed";
		wrong = await(seen, &seen->replies, "no reply came");
	}
	if (!wrong && (limits.caps & CADGE_CAP_PUT))
		wrong = write_memory(seen, chan);
	if (!wrong && layer->disconnect(seen->ctx, chan))
		wrong = "disconnect failed";
	return wrong;
}

static const char *use(const char *path, struct cadge_layer *layer, const char **done)
{
	static char text[256];
	struct seen seen = {.sink = {.bytes = sizeof(struct cadge_sink),
				     .up = on_up,
				     .down = on_down,
				     .recv = on_recv,
				     .sent = on_sent,
				     .call = on_call,
				     .replied = on_replied},
			    .layer = layer};
	const struct cadge_open_args args = {.bytes = sizeof(args),
					     .place = CADGE_PLACE_SELF,
					     .device = "lo",
					     .address = "127.0.0.1",
					     .peers_max = 1,
					     .depth_max = 4,
					     .message_bytes_max = 4096,
					     .region_bytes_max = 8192,
					     .error = text,
					     .error_bytes = sizeof(text)};
	void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	cadge_layer_entry_fn entry;
	void *symbol = module ? dlsym(module, CADGE_ENTRY_SYMBOL) : NULL;
	const char *wrong;

	if (!symbol)
		return dlerror();
	memcpy(&entry, &symbol, sizeof(entry));
	if (cadge_layer_take(entry(), layer, text, sizeof(text)))
		return text;
	*done = "taken";
	if (!(layer->caps & CADGE_CAP_SELF) || strncmp(layer->name, "shim-", 5) == 0)
		return NULL;
	if (layer->open(&args, &seen.ctx))
		return text;
	*done = "taken, and talked to";
	wrong = talk(&seen);
	layer->close(seen.ctx);
	return wrong;
}

int main(int argc, char **argv)
{
	int status = 0;

	if (argc < 2) {
		fprintf(stderr, "caller: which module?\n");
		return 2;
	}
	for (int i = 1; i < argc; i++) {
		struct cadge_layer layer;
		const char *done = "loaded", *wrong = use(argv[i], &layer, &done);

		printf("%s %s: %s%s%s\n", wrong ? "not ok" : "ok", argv[i], done, wrong ? ": " : "",
		       wrong ? wrong : "");
		status |= wrong != NULL;
	}
	return status;
}
