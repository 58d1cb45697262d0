/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything claimed is exercised, everything not claimed is refused and does not crash; and the path told is
 * true.
 */
#include <stdlib.h>
#include <string.h>

#include "cadge/check.h"
#include "cadge/path.h"
#include "conformance.h"

/* Opens for each place and wait mode: what the table does not claim is refused with a reason. */
static void opens_as_claimed(struct rank *r)
{
	static const char *const places[] = {"self", "host", "net"};
	struct cadge_open_args args;
	struct cadge_ctx *ctx;
	char error[256];
	int rc;

	for (unsigned int place = 0; place < 3; place++)
		for (unsigned int wait = 0; wait < 2; wait++) {
			bool claimed = (r->caps & (CADGE_CAP_SELF << place)) &&
				       (wait == CADGE_WAIT_POLL || (r->caps & CADGE_CAP_WAIT));

			endpoint_args(r, &wishes_default, error, sizeof(error), &args);
			args.place = (enum cadge_place)place;
			args.wait_mode = (enum cadge_wait_mode)wait;
			ctx = NULL;
			rc = r->layer->open(&args, &ctx);
			if (rc == CADGE_DONE) {
				r->layer->close(ctx);
				if (!claimed)
					fail(r,
					     "open for place %s in %s mode succeeded, but the table does not "
					     "claim it",
					     places[place], wait ? "block" : "poll");
				continue;
			}
			if (rc >= 0)
				fail(r, "open returned %d", rc);
			if (!claimed && rc != CADGE_E_UNSUPPORTED)
				fail(r,
				     "open for the unclaimed place %s in %s mode returned %d (%s), not "
				     "'unsupported'",
				     places[place], wait ? "block" : "poll", rc, cadge_code_name(rc));
			if (!error[0])
				fail(r, "open for place %s in %s mode gave no reason", places[place],
				     wait ? "block" : "poll");
		}
}

/* A slot whose capability this context does not grant says so. */
static void refuses(struct rank *r, const char *slot, int rc)
{
	if (rc != CADGE_E_UNSUPPORTED)
		fail(r, "%s is not granted here; its slot returned %d (%s), not 'unsupported'", slot, rc,
		     cadge_code_name(rc));
}

static void ungranted_refused(struct endpoint *ep)
{
	const struct cadge_layer *layer = ep->layer;
	struct cadge_region *region = NULL;
	uint64_t caps = ep->limits.caps,
		 rma = CADGE_CAP_PUT | CADGE_CAP_GET | CADGE_CAP_FETCH_ADD | CADGE_CAP_COMPARE_SWAP;
	static unsigned char memory[4096] __attribute__((aligned(4096)));
	struct cadge_iov iov = {.base = memory, .bytes = 8};
	unsigned char key[2048];
	size_t key_bytes = sizeof(key);
	struct rank *r = ep->r;
	void *reserved;
	uint64_t due_ns;
	int fd;

	if (layer->call && !(caps & CADGE_CAP_RPC))
		refuses(r, "call", layer->call(ep->peer[0].chan, 1, &iov, 1, &iov, 1, 0, 1));
	if (layer->expose && !(caps & rma))
		refuses(r, "expose",
			layer->expose(ep->ctx, memory, sizeof(memory), CADGE_MAY_ALL, CADGE_ALL_PEERS, 0, key,
				      &key_bytes, &region));
	if (layer->expose && (caps & rma) && !(caps & CADGE_CAP_RIGHTS)) {
		refuses(r, "RIGHTS",
			layer->expose(ep->ctx, memory, sizeof(memory), CADGE_MAY_READ, CADGE_ALL_PEERS, 0,
				      key, &key_bytes, &region));
		refuses(r, "RIGHTS",
			layer->expose(ep->ctx, memory, sizeof(memory), CADGE_MAY_ALL, 0, 0, key, &key_bytes,
				      &region));
	}
	if (layer->put && !(caps & CADGE_CAP_PUT))
		refuses(r, "put", layer->put(ep->peer[0].chan, memory, 8, NULL, 0, 0, 1));
	if (layer->get && !(caps & CADGE_CAP_GET))
		refuses(r, "get", layer->get(ep->peer[0].chan, memory, 8, NULL, 0, 0, 1));
	if (layer->fetch_add && !(caps & CADGE_CAP_FETCH_ADD))
		refuses(r, "fetch_add",
			layer->fetch_add(ep->peer[0].chan, 1, (uint64_t *)(void *)memory, NULL, 0, 0, 1));
	if (layer->compare_swap && !(caps & CADGE_CAP_COMPARE_SWAP))
		refuses(r, "compare_swap",
			layer->compare_swap(ep->peer[0].chan, 1, 2, (uint64_t *)(void *)memory, NULL, 0, 0,
					    1));
	if (layer->reserve && !(caps & CADGE_CAP_RESERVE))
		refuses(r, "reserve", layer->reserve(ep->peer[0].chan, 8, 0, &reserved));
	if (layer->event && !(caps & CADGE_CAP_EVENT_FD))
		refuses(r, "event", layer->event(ep->ctx, &fd, &due_ns));
	if (layer->quiet && !(caps & rma))
		refuses(r, "quiet", layer->quiet(ep->peer[0].chan, 0, 1));
	if (layer->mem_alloc && !(caps & CADGE_CAP_MEM_ALLOC) && layer->mem_alloc(ep->ctx, 4096))
		fail(r, "mem_alloc gave memory although MEM_ALLOC is not granted");
	if (layer->mem_reg && !(caps & CADGE_CAP_MEM_REG))
		refuses(r, "mem_reg", layer->mem_reg(ep->ctx, memory, sizeof(memory)));
	if (layer->flush && !(caps & CADGE_CAP_BATCH))
		refuses(r, "flush", layer->flush(ep->peer[0].chan));
}

static void memory_claims(struct endpoint *ep)
{
	unsigned char *base;
	struct rank *r = ep->r;
	int rc;

	if (ep->limits.caps & CADGE_CAP_MEM_ALLOC) {
		static const size_t sizes[] = {1, 4096, 70000};

		for (unsigned int i = 0; i < 3; i++) {
			base = ep->layer->mem_alloc(ep->ctx, sizes[i]);
			if (!base) {
				fail(r, "MEM_ALLOC is granted and there is no memory for %zu bytes",
				     sizes[i]);
				return;
			}
			if ((uintptr_t)base % 4096)
				fail(r, "mem_alloc gave memory that is not aligned to a page");
			for (size_t at = 0; at < sizes[i]; at++)
				if (base[at]) {
					fail(r, "mem_alloc gave memory that is not zeroed");
					break;
				}
			memset(base, 0xff, sizes[i]);
			ep->layer->mem_free(ep->ctx, base, sizes[i]);
		}
	}
	if (ep->limits.caps & CADGE_CAP_MEM_REG) {
		base = buffer_new(ep, 65536);
		if (!base)
			return;
		rc = ep->layer->mem_reg(ep->ctx, base, 65536);
		if (rc != CADGE_DONE)
			fail(r, "MEM_REG is granted and mem_reg returned %d (%s)", rc, cadge_code_name(rc));
		else if ((rc = ep->layer->mem_dereg(ep->ctx, base, 65536)) != CADGE_DONE)
			fail(r, "mem_dereg returned %d (%s)", rc, cadge_code_name(rc));
		buffer_free(ep, base, 65536);
	}
}

static void counter_each(void *arg, const char *name, uint64_t value)
{
	struct rank *r = arg;

	(void)value;
	if (!name || !*name)
		fail(r, "a counter has no name");
}

static enum cadge_keep batch_recv(struct endpoint *ep, uint32_t peer, const void *data, size_t bytes,
				  struct cadge_lend *lend)
{
	(void)peer;
	(void)data;
	(void)bytes;
	(void)lend;
	++*(unsigned int *)ep->arg;
	return CADGE_TAKEN;
}

/* Messages posted with MORE arrive after flush, without another post. */
static int batch_claim(struct endpoint *ep)
{
	unsigned int arrived = 0, messages = 5;
	unsigned char *base = buffer_new(ep, 5 * 64);
	struct cadge_iov iov = {.bytes = 64};
	struct rank *r = ep->r;
	uint64_t began;
	int code, got;

	if (!base)
		return -1;
	if (ep->limits.depth_max < messages)
		messages = ep->limits.depth_max;
	ep->arg = &arrived;
	ep->on_recv = batch_recv;
	if (oob_barrier(r) < 0)
		return -1;
	for (unsigned int i = 0; rank_starts(r) && i < messages; i++) {
		iov.base = base + i * 64;
		pattern_fill(iov.base, 64, 81, i);
		if (endpoint_post(ep, 0, &iov, 1, CADGE_MORE, NULL, &code) < 0)
			return -1;
	}
	if (rank_starts(r) && ep->layer->flush && (ep->limits.caps & CADGE_CAP_BATCH)) {
		code = ep->layer->flush(ep->peer[0].chan);
		if (code < 0)
			return fail(r, "BATCH is granted and flush returned %d (%s)", code,
				    cadge_code_name(code));
	}
	for (began = now_ns(); rank_answers(r) && arrived < messages;) {
		got = endpoint_poll(ep);
		if (got < 0)
			return -1;
		if (!got)
			endpoint_idle(ep);
		if (now_ns() - began > 3 * NS_PER_S * r->opt->scale) {
			if (!(ep->limits.caps & CADGE_CAP_RELIABLE) && arrived)
				break;
			return fail(r, "%u of %u messages posted with MORE arrived%s", arrived, messages,
				    ep->limits.caps & CADGE_CAP_BATCH ? " after flush"
								      : "; a layer without BATCH sends "
									"them at once");
		}
	}
	if (endpoint_drain(ep) < 0 || oob_barrier(r) < 0)
		return -1;
	ep->on_recv = NULL;
	buffer_free(ep, base, 5 * 64);
	return 0;
}

void test_capability_lies(struct rank *r)
{
	struct footprint before, after;
	struct endpoint *ep;

	footprint_take(&before);
	opens_as_claimed(r);
	if (r->verdict != VERDICT_NONE || endpoint_start(r, &wishes_default, &ep) < 0)
		return;
	footprint_take(&after);
	if (after.threads > before.threads && !(r->caps & CADGE_CAP_OWN_THREADS))
		fail(r, "threads started by open or connect: %u, but OWN_THREADS is not claimed",
		     after.threads - before.threads);
	ungranted_refused(ep);
	memory_claims(ep);
	if (ep->limits.caps & CADGE_CAP_COUNTERS)
		ep->layer->counters(ep->ctx, counter_each, r);
	if (r->verdict != VERDICT_NONE || batch_claim(ep) < 0)
		return;
	endpoint_stop(ep);
}

/* Nothing may be claimed of what the library does not say, and the reason is told instead. */
static int not_read_back_check(struct rank *r, const struct cadge_path *path)
{
	if (strlen(path->used) == strlen(CADGE_NOT_READ_BACK))
		return fail(r, "describe_path says that the path is not read back, and not why");
	if (path->as_asked || path->medium != CADGE_MEDIUM_UNKNOWN)
		return fail(r,
			    "describe_path claims a medium, or that it is as asked, of a path that is '%s'",
			    path->used);
	return 0;
}

static int path_check(struct rank *r, const struct cadge_path *path)
{
	enum cadge_medium medium = path->medium;

	if (path->bytes != sizeof(*path))
		return fail(r, "describe_path changed `bytes` to %u", path->bytes);
	if (!memchr(path->asked, 0, sizeof(path->asked)) || !memchr(path->used, 0, sizeof(path->used)) ||
	    !memchr(path->device, 0, sizeof(path->device)) || !memchr(path->note, 0, sizeof(path->note)))
		return fail(r, "describe_path left a text without its end");
	if (!path->used[0])
		return fail(r, "describe_path does not say what is used");
	if (!cadge_path_is_read_back(path->used))
		return not_read_back_check(r, path);
	if (medium == CADGE_MEDIUM_UNKNOWN || medium > CADGE_MEDIUM_NETWORK)
		return fail(r, "describe_path does not know the medium (%d)", (int)medium);
	/*
	 * Two processes here are no two hosts, and without root there are no others: what a layer for a
	 * network makes of lo is not judged, nor that it finds shared memory.
	 */
	if (r->opt->place == CADGE_PLACE_NET && strcmp(r->opt->device, "lo") == 0)
		return 0;
	if (!path->as_asked)
		return fail(r, "the library uses '%s' where '%s' was asked", path->used, path->asked);
	if (r->opt->place == CADGE_PLACE_HOST && medium != CADGE_MEDIUM_MEMORY &&
	    medium != CADGE_MEDIUM_LOOPBACK)
		return fail(r, "within one host the stated medium is number %d ('%s')", (int)medium,
			    path->used);
	if (r->opt->place == CADGE_PLACE_NET && medium != CADGE_MEDIUM_NETWORK &&
	    medium != CADGE_MEDIUM_LOOPBACK)
		return fail(r, "between two hosts the stated medium is number %d ('%s')", (int)medium,
			    path->used);
	if (r->opt->place == CADGE_PLACE_NET && strcmp(path->device, r->opt->device) != 0)
		return fail(r, "the stated device is '%s', '%s' was asked", path->device, r->opt->device);
	return 0;
}

void test_describe_path_true(struct rank *r)
{
	struct flow f = {.seed = 82,
			 .messages = 64,
			 .bytes_min = 16384,
			 .bytes_max = 16384,
			 .window = 4,
			 .send = rank_starts(r),
			 .receive = rank_answers(r),
			 .layer_memory = true};
	struct cadge_path path = {.bytes = sizeof(path)};
	const char *counted;
	uint64_t before, moved;
	struct endpoint *ep;
	int rc;

	if (endpoint_start(r, &wishes_default, &ep) < 0)
		return;
	rc = ep->layer->describe_path(ep->peer[0].chan, &path);
	if (rc != CADGE_DONE) {
		fail(r, "describe_path returned %d (%s)", rc, cadge_code_name(rc));
		return;
	}
	if (path_check(r, &path) < 0)
		return;
	if (f.bytes_max > ep->limits.message_bytes_max)
		f.bytes_max = f.bytes_min = (size_t)ep->limits.message_bytes_max;
	counted = interface_counted(r->opt->device);
	before = interface_rx_bytes(counted);
	if (oob_barrier(r) < 0 || flow_run(ep, 0, &f) < 0)
		return;
	moved = interface_rx_bytes(counted) - before;
	if (own_network() && rank_answers(r)) {
		const bool told = cadge_path_is_read_back(path.used);
		uint64_t payload = (f.receive ? f.received : f.messages) * f.bytes_max;

		if ((path.medium == CADGE_MEDIUM_MEMORY || path.medium == CADGE_MEDIUM_PROCESS) &&
		    moved > payload / 4)
			fail(r, "stated as memory, but %llu bytes came over '%s' for %llu of payload",
			     (unsigned long long)moved, counted, (unsigned long long)payload);
		if ((path.medium == CADGE_MEDIUM_NETWORK || (!told && r->opt->place == CADGE_PLACE_NET)) &&
		    moved < payload / 4 * 3)
			fail(r,
			     "stated or asked as the network, but only %llu bytes came over '%s' for %llu of "
			     "payload",
			     (unsigned long long)moved, counted, (unsigned long long)payload);
	}
	endpoint_stop(ep);
}
