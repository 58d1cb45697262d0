/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sketches/end.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cadge/check.h"

enum { PATIENCE_S = 10 };

static uint64_t deadline(void)
{
	return clock_ns() + PATIENCE_S * UINT64_C(1000000000);
}

static void on_up(struct cadge_sink *sink, uint32_t peer)
{
	((struct end *)sink)->up[peer] = true;
}

static void on_down(struct cadge_sink *sink, uint32_t peer, int code)
{
	(void)code;
	((struct end *)sink)->down[peer] = true;
}

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct end *end = (struct end *)sink;

	(void)lend;
	end->on_message(end, peer, data, bytes);
	return CADGE_TAKEN;
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	struct end *end = (struct end *)sink;

	(void)peer, (void)token;
	EXPECT(end->rank, code == CADGE_DONE || end->down[peer], "a message was not sent: %s",
	       cadge_code_name(code));
	end->unsent--;
}

void end_open(struct end *end, struct rank *rank, const char *layer)
{
	const char *modules = getenv("CADGE_MODULES");
	char path[512];
	struct cadge_open_args args = rank_open_args(rank, DEPTH);
	cadge_layer_entry_fn entry;
	void *module;

	*end = (struct end){
		.sink = {.bytes = sizeof(end->sink),
			 .up = on_up,
			 .down = on_down,
			 .recv = on_recv,
			 .sent = on_sent},
		.rank = rank,
		.limits = {.bytes = sizeof(end->limits)},
	};
	args.message_bytes_max = MESSAGE_BYTES;
	args.region_bytes_max = 0;
	snprintf(path, sizeof(path), "%s/%s.so", modules ? modules : "build/layers", layer);
	if (access(path, R_OK))
		rank_skip(rank, "%s is not built", layer);
	module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	EXPECT(rank, module, "%s", dlerror());
	*(void **)(&entry) = dlsym(module, CADGE_ENTRY_SYMBOL);
	EXPECT(rank, entry && cadge_layer_take(entry(), &end->layer, args.error, args.error_bytes) == 0, "%s",
	       args.error);
	EXPECT(rank, end->layer.open(&args, &end->ctx) == CADGE_DONE, "open: %s", args.error);
	end->layer.limits(end->ctx, &end->limits);
}

int end_poll(struct end *end)
{
	const int events = end->layer.poll(end->ctx, &end->sink);

	EXPECT(end->rank, events >= 0, "poll: %s", cadge_code_name(events));
	give_way(events);
	return events;
}

void end_await(struct end *end, const bool *flag, const char *what)
{
	const uint64_t until_ns = deadline();

	while (!*flag) {
		end_poll(end);
		EXPECT(end->rank, clock_ns() < until_ns, "%s does not come: %s", what,
		       end->limits.caps & CADGE_CAP_WHY ? end->layer.why(end->ctx) : "");
	}
}

void end_connect(struct end *end, uint32_t peer, uint32_t other)
{
	uint8_t ours[2048], theirs[2048];
	size_t bytes = sizeof(ours);
	int code = end->layer.address(end->ctx, peer, ours, &bytes);

	EXPECT(end->rank, code == CADGE_DONE, "address: %s", cadge_code_name(code));
	say(end->rank, other, ours, bytes);
	bytes = hear(end->rank, other, theirs, sizeof(theirs));
	end->up[peer] = end->down[peer] = false;
	code = end->layer.connect(end->ctx, peer, theirs, bytes, &end->chans[peer]);
	EXPECT(end->rank, code == CADGE_DONE, "connect: %s", cadge_code_name(code));
	end_await(end, &end->up[peer], "up");
}

void end_close(struct end *end)
{
	end->layer.close(end->ctx);
}

void end_send(struct end *end, uint32_t peer, const void *data, size_t bytes)
{
	const struct cadge_iov iov = {.base = (void *)(uintptr_t)data, .bytes = bytes};
	const uint64_t until_ns = deadline();
	int code;

	while ((code = end->layer.post(end->chans[peer], &iov, 1, 0, 1)) == CADGE_BUSY) {
		end_poll(end);
		EXPECT(end->rank, clock_ns() < until_ns, "a message stays");
	}
	EXPECT(end->rank, code == CADGE_DONE || code == CADGE_QUEUED, "post: %s", cadge_code_name(code));
	end->unsent += code == CADGE_QUEUED;
	while (end->unsent) {
		end_poll(end);
		EXPECT(end->rank, clock_ns() < until_ns, "a message is not sent");
	}
}
