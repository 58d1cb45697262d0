/* SPDX-License-Identifier: BSD-3-Clause */
#include "shims/shim.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int shim_refuse(const struct cadge_open_args *args, int code, const char *reason)
{
	snprintf(args->error, args->error_bytes, "%s", reason);
	return code;
}

void *shim_new(const struct cadge_open_args *args, size_t bytes)
{
	struct cadge_ctx *ctx = calloc(1, bytes);
	struct cadge_chan **chans =
		calloc(args->peers_max ? args->peers_max : 1, sizeof(struct cadge_chan *));

	if (!ctx || !chans) {
		free(ctx);
		free(chans);
		(void)shim_refuse(args, CADGE_E_MEMORY, "out of memory");
		return NULL;
	}
	ctx->sink = (struct cadge_sink){.bytes = sizeof(struct cadge_sink),
					.up = shim_on_up,
					.down = shim_on_down,
					.recv = shim_on_recv,
					.sent = shim_on_sent,
					.call = shim_on_call,
					.replied = shim_on_replied,
					.notified = shim_on_notified};
	ctx->inner = args->inner;
	ctx->peers = args->peers_max;
	ctx->chans = chans;
	return ctx;
}

int shim_open_inner(struct cadge_ctx *ctx, const struct cadge_open_args *args, const char *substrate,
		    shim_setting_fn take)
{
	const size_t prefix_bytes = strlen(substrate);
	struct cadge_open_args inner_args = {0};
	struct cadge_setting *settings;
	size_t count = 0;
	int code = CADGE_DONE;

	if (!args->inner)
		return shim_refuse(args, CADGE_E_ARGUMENT, "a shim needs a layer to wrap");
	if (strcmp(args->inner->style, "shim") == 0)
		return shim_refuse(args, CADGE_E_UNSUPPORTED, "a shim cannot wrap another shim");
	settings = calloc(args->settings_count + 1, sizeof(*settings));
	if (!settings)
		return shim_refuse(args, CADGE_E_MEMORY, "out of memory");
	for (size_t i = 0; i < args->settings_count && code == CADGE_DONE; i++) {
		const char *name = args->settings[i].name;

		if (strncmp(name, substrate, prefix_bytes) != 0 || name[prefix_bytes] != '.') {
			settings[count++] = args->settings[i];
			continue;
		}
		code = take(ctx, name + prefix_bytes + 1, args->settings[i].value);
		if (code < 0)
			snprintf(args->error, args->error_bytes, "shim-%s does not take %s=%s", substrate,
				 name, args->settings[i].value);
	}
	memcpy(&inner_args, args, args->bytes < sizeof(inner_args) ? args->bytes : sizeof(inner_args));
	inner_args.bytes = sizeof(inner_args);
	inner_args.inner = NULL;
	inner_args.settings = settings;
	inner_args.settings_count = count;
	if (code == CADGE_DONE)
		code = args->inner->open(&inner_args, &ctx->inner_ctx);
	free(settings);
	return code;
}

int shim_number(const char *text, uint64_t most, uint64_t *number_out)
{
	unsigned long long number;
	char *end;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-' || number > most)
		return CADGE_E_ARGUMENT;
	*number_out = number;
	return CADGE_DONE;
}

uint64_t shim_now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

void shim_close(struct cadge_ctx *ctx)
{
	if (!ctx)
		return;
	if (ctx->inner_ctx)
		ctx->inner->close(ctx->inner_ctx);
	for (uint32_t i = 0; i < ctx->peers; i++)
		free(ctx->chans[i]);
	free(ctx->chans);
	free(ctx);
}

int shim_connect_as(struct cadge_ctx *ctx, size_t chan_bytes, uint32_t peer, const void *blob, size_t bytes,
		    struct cadge_chan **chan_out)
{
	struct cadge_chan *chan;
	int code;

	if (peer >= ctx->peers || ctx->chans[peer])
		return CADGE_E_ARGUMENT;
	chan = calloc(1, chan_bytes);
	if (!chan)
		return CADGE_E_MEMORY;
	chan->ctx = ctx;
	chan->peer = peer;
	code = ctx->inner->connect(ctx->inner_ctx, peer, blob, bytes, &chan->inner);
	if (code < 0) {
		free(chan);
		return code;
	}
	ctx->chans[peer] = chan;
	*chan_out = chan;
	return code;
}

int shim_disconnect(struct cadge_ctx *ctx, struct cadge_chan *chan)
{
	const int code = ctx->inner->disconnect(ctx->inner_ctx, chan->inner);

	ctx->chans[chan->peer] = NULL;
	free(chan);
	return code;
}

struct cadge_limits shim_limits_of_messages(const struct cadge_ctx *ctx)
{
	struct cadge_limits limits = {.bytes = sizeof(limits)};

	ctx->inner->limits(ctx->inner_ctx, &limits);
	limits.caps = (limits.caps & SHIM_CAPS_OF_MESSAGES) | CADGE_CAP_COUNTERS;
	limits.rma_bytes_max = 0;
	limits.token_bytes = 0;
	return limits;
}

void shim_add_note(struct cadge_path *path, const char *format, ...)
{
	size_t used_bytes = strlen(path->note);
	va_list arguments;

	if (used_bytes) {
		snprintf(path->note + used_bytes, sizeof(path->note) - used_bytes, "; ");
		used_bytes = strlen(path->note);
	}
	va_start(arguments, format);
	vsnprintf(path->note + used_bytes, sizeof(path->note) - used_bytes, format, arguments);
	va_end(arguments);
}

/* ---- slots as they are ---- */

int shim_address(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout)
{
	return ctx->inner->address(ctx->inner_ctx, peer, blob, bytes_inout);
}

int shim_connect(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
		 struct cadge_chan **chan_out)
{
	return shim_connect_as(ctx, sizeof(struct cadge_chan), peer, blob, bytes, chan_out);
}

int shim_poll(struct cadge_ctx *ctx, struct cadge_sink *sink)
{
	return ctx->inner->poll(ctx->inner_ctx, sink);
}

void shim_library(struct cadge_library *library_out)
{
	const struct cadge_library library = {.name = "shim", .stated_version = ""};

	cadge_fill(library_out, &library, sizeof(library));
}

void shim_semantics(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out)
{
	ctx->inner->semantics(ctx->inner_ctx, semantics_out);
}

void shim_semantics_of_messages(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out)
{
	struct cadge_semantics semantics = {.bytes = sizeof(semantics)};

	ctx->inner->semantics(ctx->inner_ctx, &semantics);
	semantics.put = semantics.get = semantics.fetch_add = semantics.compare_swap = CADGE_PROGRESS_NONE;
	cadge_fill(semantics_out, &semantics, sizeof(semantics));
}

void shim_traits(const struct cadge_ctx *ctx, struct cadge_traits *traits_out)
{
	ctx->inner->traits(ctx->inner_ctx, traits_out);
}

int shim_wait(struct cadge_ctx *ctx, uint64_t timeout_ns)
{
	return ctx->inner->wait ? ctx->inner->wait(ctx->inner_ctx, timeout_ns) : CADGE_E_UNSUPPORTED;
}

int shim_event(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out)
{
	return ctx->inner->event ? ctx->inner->event(ctx->inner_ctx, fd_out, due_ns_out)
				 : CADGE_E_UNSUPPORTED;
}

void shim_release(struct cadge_ctx *ctx, struct cadge_lend *lend)
{
	if (ctx->inner->release)
		ctx->inner->release(ctx->inner_ctx, lend);
}

int shim_expose(struct cadge_ctx *ctx, void *base, size_t bytes, uint32_t rights, uint32_t peer,
		uint32_t flags, void *key, size_t *key_bytes_inout, struct cadge_region **region_out)
{
	return ctx->inner->expose ? ctx->inner->expose(ctx->inner_ctx, base, bytes, rights, peer, flags, key,
						       key_bytes_inout, region_out)
				  : CADGE_E_UNSUPPORTED;
}

void shim_unexpose(struct cadge_ctx *ctx, struct cadge_region *region)
{
	if (ctx->inner->unexpose)
		ctx->inner->unexpose(ctx->inner_ctx, region);
}

int shim_attach(struct cadge_chan *chan, const void *key, size_t key_bytes, uint32_t intent, uint32_t flags,
		struct cadge_remote **remote_out)
{
	const struct cadge_layer *inner = chan->ctx->inner;

	return inner->attach ? inner->attach(chan->inner, key, key_bytes, intent, flags, remote_out)
			     : CADGE_E_UNSUPPORTED;
}

void shim_detach(struct cadge_chan *chan, struct cadge_remote *remote)
{
	if (chan->ctx->inner->detach)
		chan->ctx->inner->detach(chan->inner, remote);
}

int shim_quiet(struct cadge_chan *chan, uint32_t flags, uint64_t token)
{
	const struct cadge_layer *inner = chan->ctx->inner;

	return inner->quiet ? inner->quiet(chan->inner, flags, token) : CADGE_E_UNSUPPORTED;
}

void *shim_mem_alloc(struct cadge_ctx *ctx, size_t bytes)
{
	return ctx->inner->mem_alloc ? ctx->inner->mem_alloc(ctx->inner_ctx, bytes) : NULL;
}

void shim_mem_free(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	if (ctx->inner->mem_free)
		ctx->inner->mem_free(ctx->inner_ctx, base, bytes);
}

int shim_mem_reg(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	return ctx->inner->mem_reg ? ctx->inner->mem_reg(ctx->inner_ctx, base, bytes) : CADGE_E_UNSUPPORTED;
}

int shim_mem_dereg(struct cadge_ctx *ctx, void *base, size_t bytes)
{
	return ctx->inner->mem_dereg ? ctx->inner->mem_dereg(ctx->inner_ctx, base, bytes)
				     : CADGE_E_UNSUPPORTED;
}

void shim_counters(const struct cadge_ctx *ctx, void (*each)(void *arg, const char *name, uint64_t value),
		   void *arg)
{
	if (ctx->inner->counters)
		ctx->inner->counters(ctx->inner_ctx, each, arg);
}

const char *shim_why(const struct cadge_ctx *ctx)
{
	return ctx->inner->why ? ctx->inner->why(ctx->inner_ctx) : "";
}

/* ---- events as they are ---- */

static struct cadge_sink *outer_of(struct cadge_sink *self)
{
	return ((struct cadge_ctx *)self)->outer;
}

void shim_on_up(struct cadge_sink *self, uint32_t peer)
{
	struct cadge_sink *outer = outer_of(self);

	outer->up(outer, peer);
}

void shim_on_down(struct cadge_sink *self, uint32_t peer, int code)
{
	struct cadge_sink *outer = outer_of(self);

	outer->down(outer, peer, code);
}

enum cadge_keep shim_on_recv(struct cadge_sink *self, uint32_t peer, const void *data, size_t bytes,
			     struct cadge_lend *lend)
{
	struct cadge_sink *outer = outer_of(self);

	return outer->recv(outer, peer, data, bytes, lend);
}

void shim_on_sent(struct cadge_sink *self, uint32_t peer, uint64_t token, int code)
{
	struct cadge_sink *outer = outer_of(self);

	outer->sent(outer, peer, token, code);
}

void shim_on_call(struct cadge_sink *self, uint32_t peer, uint32_t op, const void *args, size_t bytes,
		  const struct cadge_reply_to *reply_to)
{
	struct cadge_sink *outer = outer_of(self);

	outer->call(outer, peer, op, args, bytes, reply_to);
}

enum cadge_keep shim_on_replied(struct cadge_sink *self, uint32_t peer, uint64_t token, int code,
				enum cadge_placement placement, const void *data, size_t bytes,
				struct cadge_lend *lend)
{
	struct cadge_sink *outer = outer_of(self);

	return outer->replied(outer, peer, token, code, placement, data, bytes, lend);
}

void shim_on_notified(struct cadge_sink *self, uint32_t peer, struct cadge_region *region,
		      uint64_t offset_bytes, uint64_t bytes)
{
	struct cadge_sink *outer = outer_of(self);

	outer->notified(outer, peer, region, offset_bytes, bytes);
}
