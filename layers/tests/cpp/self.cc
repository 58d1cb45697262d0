// SPDX-License-Identifier: BSD-3-Clause
//
// An adapter in C++17: messages to oneself through a queue. The header of the contract has to serve it, and the conformance
// suite has to pass. Nothing may be thrown through the table: it is C.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <vector>

#include "cadge/check.h"
#include "cadge/fill.h"
#include "cadge/layer.h"

namespace
{

constexpr uint32_t iov_max = 8;
constexpr uint64_t message_bytes_most = UINT64_C(1) << 26;
constexpr size_t queue_room = 64;
constexpr uint32_t magic = 0x43707073;

using Message = std::vector<unsigned char>;

} // namespace

struct cadge_chan {
	cadge_ctx *ctx;
	bool used = false, told = false;
};

struct cadge_ctx {
	uint64_t message_bytes_max;
	uint32_t depth;
	std::deque<Message> queue;
	cadge_chan chan;
};

namespace
{

extern const cadge_layer layer;

int refuse(const cadge_open_args *args, int code, const char *reason)
{
	std::snprintf(args->error, args->error_bytes, "%s", reason);
	return code;
}

int open(const cadge_open_args *args, cadge_ctx **ctx_out) noexcept
{
	if (args->place != CADGE_PLACE_SELF)
		return refuse(args, CADGE_E_UNSUPPORTED, "a queue of one process joins it with itself only");
	if (args->wait_mode != CADGE_WAIT_POLL || args->memory_kind != CADGE_MEMORY_HOST)
		return refuse(args, CADGE_E_UNSUPPORTED, "it neither sleeps nor knows other memory");
	if (args->settings_count || args->peers_max != 1 || !args->depth_max)
		return refuse(args, CADGE_E_ARGUMENT, "one peer, no settings");
	std::unique_ptr<cadge_ctx> ctx(new (std::nothrow) cadge_ctx());
	if (!ctx)
		return refuse(args, CADGE_E_MEMORY, "no memory");
	ctx->message_bytes_max = std::min(args->message_bytes_max, message_bytes_most);
	ctx->depth = args->depth_max;
	*ctx_out = ctx.release();
	return CADGE_DONE;
}

void close(cadge_ctx *ctx) noexcept
{
	delete ctx;
}

void limits(const cadge_ctx *ctx, cadge_limits *limits_out) noexcept
{
	cadge_limits said{};

	said.caps = layer.caps;
	said.message_bytes_max = said.short_bytes_max = ctx->message_bytes_max;
	said.depth_max = ctx->depth;
	said.iov_max = iov_max;
	said.short_path = said.long_path = "a copy in a queue";
	cadge_fill(limits_out, &said, sizeof(said));
}

int address(cadge_ctx *, uint32_t peer, void *blob, size_t *bytes_inout) noexcept
{
	if (peer || *bytes_inout < sizeof(magic))
		return CADGE_E_ARGUMENT;
	std::memcpy(blob, &magic, sizeof(magic));
	*bytes_inout = sizeof(magic);
	return CADGE_DONE;
}

int connect(cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes, cadge_chan **chan_out) noexcept
{
	if (peer || bytes != sizeof(magic) || std::memcmp(blob, &magic, bytes) != 0 || ctx->chan.used)
		return CADGE_E_ARGUMENT;
	ctx->chan = cadge_chan{ctx, true, false};
	*chan_out = &ctx->chan;
	return CADGE_DONE;
}

int disconnect(cadge_ctx *ctx, cadge_chan *chan) noexcept
{
	ctx->queue.clear();
	chan->used = false;
	return CADGE_DONE;
}

int post(cadge_chan *chan, const cadge_iov *iov, uint32_t count, uint32_t, uint64_t) noexcept
try {
	cadge_ctx *ctx = chan->ctx;
	uint64_t bytes = 0;

	if (count > iov_max)
		return CADGE_E_ARGUMENT;
	for (uint32_t i = 0; i < count; i++)
		bytes += iov[i].bytes;
	if (bytes > ctx->message_bytes_max)
		return CADGE_E_TOO_LARGE;
	if (!chan->told || ctx->queue.size() == queue_room)
		return CADGE_BUSY;
	Message message;
	message.reserve(bytes);
	for (uint32_t i = 0; i < count; i++) {
		const auto *from = static_cast<const unsigned char *>(iov[i].base);

		message.insert(message.end(), from, from + iov[i].bytes);
	}
	ctx->queue.push_back(std::move(message));
	return CADGE_DONE;
} catch (const std::bad_alloc &) {
	return CADGE_E_MEMORY;
}

int poll(cadge_ctx *ctx, cadge_sink *sink) noexcept
{
	int events = 0;

	if (ctx->chan.used && !ctx->chan.told) {
		ctx->chan.told = true;
		sink->up(sink, 0);
		events++;
	}
	for (size_t i = ctx->queue.size(); i > 0; i--, events++) {
		const Message message = std::move(ctx->queue.front());

		ctx->queue.pop_front(); /* the sink may post the next one */
		sink->recv(sink, 0, message.data(), message.size(), nullptr);
	}
	return events;
}

int describe_path(cadge_chan *, cadge_path *path_out) noexcept
{
	cadge_path said{};

	said.medium = CADGE_MEDIUM_PROCESS;
	said.as_asked = 1;
	std::snprintf(said.asked, sizeof(said.asked), "this process");
	std::snprintf(said.used, sizeof(said.used), "std::deque");
	cadge_fill(path_out, &said, sizeof(said));
	return CADGE_DONE;
}

void library(cadge_library *library_out) noexcept
{
	cadge_library said{};

	said.name = "libstdc++";
	said.stated_version = "17";
	cadge_fill(library_out, &said, sizeof(said));
}

void semantics(const cadge_ctx *, cadge_semantics *semantics_out) noexcept
{
	cadge_semantics said{};

	said.message = CADGE_PROGRESS_LIBRARY;
	cadge_fill(semantics_out, &said, sizeof(said));
}

void traits(const cadge_ctx *, cadge_traits *traits_out) noexcept
{
	cadge_traits said{};

	said.protection = CADGE_PROTECT_NONE;
	said.control_transfer = CADGE_CONTROL_POLL;
	said.flow = CADGE_FLOW_LIBRARY;
	said.order = CADGE_ORDER_CHANNEL;
	said.waker = CADGE_WAKER_NONE;
	said.copies_on_send = 1;
	said.multiprogramming = 1;
	cadge_fill(traits_out, &said, sizeof(said));
}

// C++17 has no designated initialisers.
cadge_layer make_layer()
{
	cadge_layer made{};

	made.abi = CADGE_ABI;
	made.bytes = sizeof(made);
	made.name = "test-cpp";
	made.style = "test";
	made.substrate = "cpp";
	made.caps = CADGE_CAP_SELF | CADGE_CAP_RELIABLE | CADGE_CAP_ORDERED | CADGE_CAP_FLOW_CONTROL |
		    CADGE_CAP_POST_IN_SINK;
	made.open = open;
	made.close = close;
	made.limits = limits;
	made.address = address;
	made.connect = connect;
	made.disconnect = disconnect;
	made.post = post;
	made.poll = poll;
	made.describe_path = describe_path;
	made.library = library;
	made.semantics = semantics;
	made.traits = traits;
	return made;
}

const cadge_layer layer = make_layer();

} // namespace

CADGE_EXPORT const cadge_layer *cadge_layer_entry(void)
{
	return &layer;
}
