/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cadge/check.h"
#include "tests/unit/support/pair.h"
#include "tests/unit/support/tap.h"

const struct cadge_layer *pair_load(const char *name)
{
	const char *folder = getenv("CADGE_MODULES");
	char path[4096], reason[256] = "too many layers for one test";
	static struct cadge_layer tables[32]; /* as many as a test loads */
	static unsigned int tables_used;
	struct cadge_layer *layer = &tables[tables_used];
	cadge_layer_entry_fn entry;
	void *module, *symbol;

	if (!folder)
		tap_bail("CADGE_MODULES is not set");
	snprintf(path, sizeof(path), "%s/%s.so", folder, name);
	module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!module)
		tap_bail(dlerror());
	symbol = dlsym(module, CADGE_ENTRY_SYMBOL);
	if (!symbol)
		tap_bail(dlerror());
	memcpy(&entry, &symbol, sizeof(entry));
	if (++tables_used == sizeof(tables) / sizeof(*tables) ||
	    cadge_layer_take(entry(), layer, reason, sizeof(reason)) < 0)
		tap_bail(reason);
	return layer;
}

bool pair_here(const char *name)
{
	const struct cadge_open_args args = pair_args(CADGE_WAIT_POLL);
	const struct cadge_layer *layer;
	struct cadge_ctx *ctx;
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s.so", getenv("CADGE_MODULES"), name);
	if (access(path, R_OK) < 0)
		return false;
	layer = pair_load(name);
	if (layer->open(&args, &ctx) < 0)
		return false;
	layer->close(ctx);
	return true;
}

struct cadge_open_args pair_args(enum cadge_wait_mode wait_mode)
{
	static char error[256];

	return (struct cadge_open_args){
		.bytes = sizeof(struct cadge_open_args),
		.place = CADGE_PLACE_HOST,
		.wait_mode = wait_mode,
		.device = "lo",
		.address = "127.0.0.1",
		.port_first = 0,
		.port_last = 0,
		.peers_max = 1,
		.depth_max = 64,
		.message_bytes_max = 8 << 20,
		.error = error,
		.error_bytes = sizeof(error),
	};
}

static struct pair_sink *seen_by(struct cadge_sink *sink)
{
	return (struct pair_sink *)sink;
}

static void on_up(struct cadge_sink *self, uint32_t peer)
{
	(void)peer;
	seen_by(self)->ups++;
}

static void on_down(struct cadge_sink *self, uint32_t peer, int code)
{
	(void)peer;
	seen_by(self)->downs++;
	seen_by(self)->down_code = code;
}

static enum cadge_keep on_recv(struct cadge_sink *self, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct pair_sink *seen = seen_by(self);

	(void)peer;
	if (seen->received < PAIR_NOTES_MAX)
		seen->sizes[seen->received] = bytes;
	seen->received++;
	seen->received_bytes += bytes;
	if (seen->data && bytes && bytes <= seen->data_room_bytes - seen->data_bytes) {
		memcpy(seen->data + seen->data_bytes, data, bytes);
		seen->data_bytes += bytes;
	}
	if (seen->on_recv)
		seen->on_recv(seen, data, bytes);
	if (!seen->keep || seen->kept_count == PAIR_NOTES_MAX)
		return CADGE_TAKEN;
	seen->kept[seen->kept_count] = lend;
	seen->kept_data[seen->kept_count++] = data;
	return CADGE_KEEP;
}

static void on_sent(struct cadge_sink *self, uint32_t peer, uint64_t token, int code)
{
	struct pair_sink *seen = seen_by(self);

	(void)peer;
	if (seen->sent < PAIR_NOTES_MAX)
		seen->sent_tokens[seen->sent] = token;
	seen->sent++;
	seen->sent_failed += code < 0;
}

static void on_call(struct cadge_sink *self, uint32_t peer, uint32_t op, const void *args, size_t bytes,
		    const struct cadge_reply_to *reply_to)
{
	(void)peer, (void)op, (void)args, (void)bytes, (void)reply_to;
	seen_by(self)->called++;
}

static enum cadge_keep on_replied(struct cadge_sink *self, uint32_t peer, uint64_t token, int code,
				  enum cadge_placement placement, const void *data, size_t bytes,
				  struct cadge_lend *lend)
{
	(void)peer, (void)token, (void)code, (void)placement, (void)data, (void)bytes, (void)lend;
	seen_by(self)->replied++;
	return CADGE_TAKEN;
}

int pair_open(struct pair_end *end, const struct cadge_layer *layer, const struct cadge_open_args *args)
{
	int code;

	memset(end, 0, sizeof(*end));
	end->layer = layer;
	code = layer->open(args, &end->ctx);
	if (code < 0)
		return code;
	end->seen.sink = (struct cadge_sink){.bytes = sizeof(struct cadge_sink),
					     .up = on_up,
					     .down = on_down,
					     .recv = on_recv,
					     .sent = on_sent,
					     .call = on_call,
					     .replied = on_replied};
	end->seen.ctx = end->ctx;
	end->seen.layer = layer;
	end->blob_bytes = sizeof(end->blob);
	return layer->address(end->ctx, 0, end->blob, &end->blob_bytes);
}

void pair_close(struct pair_end *end)
{
	end->layer->close(end->ctx);
	end->ctx = NULL;
}

static void poll_end(struct pair_end *end)
{
	if (end && end->ctx && end->layer->poll(end->ctx, &end->seen.sink) < 0)
		tap_bail("poll failed");
}

bool pair_poll_until(struct pair_end *a, struct pair_end *b, const int *number, int wanted,
		     unsigned milliseconds)
{
	const uint64_t deadline_ns = pair_now_ns() + milliseconds * UINT64_C(1000000);

	while (*number < wanted && pair_now_ns() < deadline_ns) {
		poll_end(a);
		poll_end(b);
	}
	return *number >= wanted;
}

bool pair_bring_up(struct pair_end *a, struct pair_end *b)
{
	if (a->layer->connect(a->ctx, 0, b->blob, b->blob_bytes, &a->chan) < 0 ||
	    b->layer->connect(b->ctx, 0, a->blob, a->blob_bytes, &b->chan) < 0)
		return false;
	return pair_poll_until(a, b, &a->seen.ups, 1, 2000) && pair_poll_until(a, b, &b->seen.ups, 1, 2000);
}

int pair_post(struct pair_end *from, struct pair_end *other, const void *data, size_t bytes, uint64_t token)
{
	/* post reads the buffer only; iov has no constant twin. */
	union {
		const void *constant;
		void *base;
	} buffer = {.constant = data};
	const struct cadge_iov iov = {.base = buffer.base, .bytes = bytes};
	const uint64_t deadline_ns = pair_now_ns() + UINT64_C(5000000000);
	int code;

	while ((code = from->layer->post(from->chan, &iov, 1, 0, token)) == CADGE_BUSY &&
	       pair_now_ns() < deadline_ns) {
		poll_end(from);
		poll_end(other);
	}
	return code;
}

uint64_t pair_now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int count_entries(const char *folder)
{
	DIR *entries = opendir(folder);
	int count = 0;

	if (!entries)
		tap_bail("cannot read /proc/self");
	while (readdir(entries))
		count++;
	closedir(entries);
	return count;
}

int pair_descriptors(void)
{
	return count_entries("/proc/self/fd");
}

int pair_threads(void)
{
	return count_entries("/proc/self/task");
}

long pair_resident_kib(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	long kib = -1;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "VmRSS: %ld", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
}

void pair_fill(unsigned char *data, size_t bytes, unsigned seed)
{
	uint32_t state = seed * 2654435761u + 1;

	for (size_t i = 0; i < bytes; i++) {
		state = state * 1664525u + 1013904223u;
		data[i] = (unsigned char)(state >> 24);
	}
}

bool pair_matches(const unsigned char *data, size_t bytes, unsigned seed)
{
	uint32_t state = seed * 2654435761u + 1;

	for (size_t i = 0; i < bytes; i++) {
		state = state * 1664525u + 1013904223u;
		if (data[i] != (unsigned char)(state >> 24))
			return false;
	}
	return true;
}
