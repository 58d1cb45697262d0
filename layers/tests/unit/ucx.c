/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the UCX layers promise beyond the conformance suite: refusals with a sentence, the path that UCX took
 * read back from its lanes, mapped memory told from emulated, addresses of a peer that lies. Two contexts of
 * this process stand for the two ends.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadge/check.h"
#include "cadge/layer.h"

#define POLLS_MAX 2000000u

enum { LANDED = 4, LANDED_BYTES = 65536 };

struct end {
	struct cadge_sink sink; /* first: callbacks cast back */
	struct cadge_ctx *ctx;
	struct cadge_chan *chan;
	unsigned int ups, received, sent;
	char text[64];
	const void *data[LANDED]; /* where the first messages lay */
};

/* The leaks of wire/ucx/ucx.supp. */
CADGE_EXPORT const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "fast_unwind_on_malloc=0";
}

CADGE_EXPORT const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:ucs_async_set_event_handler\n";
}

static const struct cadge_layer *layer;
static unsigned int tests_run, tests_failed;
static char error[256];
static struct cadge_limits limits; /* of the first end of the last pair that met */

static void check(bool good, const char *name, const char *detail)
{
	tests_run++;
	tests_failed += !good;
	printf("%sok %u - %s: %s%s%s\n", good ? "" : "not ", tests_run, layer->name, name, good ? "" : ": ",
	       good ? "" : detail);
}

static void on_up(struct cadge_sink *sink, uint32_t peer)
{
	(void)peer;
	((struct end *)sink)->ups++;
}

static void on_down(struct cadge_sink *sink, uint32_t peer, int code)
{
	(void)sink, (void)peer, (void)code;
}

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct end *end = (struct end *)sink;

	(void)peer, (void)lend;
	if (end->received < LANDED)
		end->data[end->received] = data;
	end->received++;
	snprintf(end->text, sizeof(end->text), "%.*s", (int)bytes, (const char *)data);
	return CADGE_TAKEN;
}

static void on_sent(struct cadge_sink *sink, uint32_t peer, uint64_t token, int code)
{
	(void)peer, (void)token, (void)code;
	((struct end *)sink)->sent++;
}

static int open_end(struct end *end, uint32_t peers, enum cadge_place place, const char *device,
		    const char *name, const char *value)
{
	const struct cadge_setting setting = {name, value};
	const struct cadge_open_args args = {
		.bytes = sizeof(args),
		.place = place,
		.wait_mode = CADGE_WAIT_POLL,
		.device = device,
		.address = "127.0.0.1",
		.peers_max = peers,
		.depth_max = LANDED,
		.message_bytes_max = LANDED_BYTES,
		.region_bytes_max = 65536,
		.settings = &setting,
		.settings_count = name ? 1 : 0,
		.error = error,
		.error_bytes = sizeof(error),
	};

	memset(end, 0, sizeof(*end));
	end->sink = (struct cadge_sink){.up = on_up, .down = on_down, .recv = on_recv, .sent = on_sent};
	*error = '\0';
	return layer->open(&args, &end->ctx);
}

static void refused(enum cadge_place place, const char *device, const char *name, const char *value, int code,
		    const char *words, const char *what)
{
	struct end end;
	int got = open_end(&end, 1, place, device, name, value);
	char detail[512];

	snprintf(detail, sizeof(detail), "open returned %d (%s), said '%s'", got, cadge_code_name(got),
		 error);
	check(got == code && strstr(error, words), what, detail);
	if (got == CADGE_DONE)
		layer->close(end.ctx);
}

/* Opens two ends for so many peers each, and connects them as each other's first. */
static bool meet(struct end ends[2], uint32_t peers, enum cadge_place place, const char *transports)
{
	char blobs[2][2048];
	size_t lengths[2] = {sizeof(blobs[0]), sizeof(blobs[1])};
	bool good = true;

	for (unsigned int i = 0; i < 2; i++)
		if (open_end(&ends[i], peers, place, "lo", transports ? "transports" : NULL, transports) !=
			    CADGE_DONE ||
		    layer->address(ends[i].ctx, 0, blobs[i], &lengths[i]) != CADGE_DONE) {
			check(false, "two ends open", error);
			return false;
		}
	for (unsigned int i = 0; i < 2; i++)
		for (size_t cut = 0; cut < lengths[1 - i];
		     cut += 7) /* what a peer cut short is refused, whole it is not */
			good = good && layer->connect(ends[i].ctx, 0, blobs[1 - i], cut, &ends[i].chan) < 0;
	check(good, "an address that was cut short is refused", "it was taken");
	for (unsigned int i = 0; i < 2; i++)
		good = good && layer->connect(ends[i].ctx, 0, blobs[1 - i], lengths[1 - i], &ends[i].chan) ==
				       CADGE_DONE;
	return good;
}

static bool poll_both(struct end ends[2])
{
	return layer->poll(ends[0].ctx, &ends[0].sink) >= 0 && layer->poll(ends[1].ctx, &ends[1].sink) >= 0;
}

static void close_both(struct end ends[2])
{
	layer->close(ends[0].ctx);
	layer->close(ends[1].ctx);
}

/* Connects two ends and sends one message. What the path says must match. */
static void path(enum cadge_place place, const char *transports, enum cadge_medium medium, uint32_t as_asked,
		 const char *used, enum cadge_progress put, const char *what)
{
	struct cadge_path read_back = {.bytes = sizeof(read_back)};
	struct cadge_semantics semantics = {.bytes = sizeof(semantics)};
	char message[] = "hello", detail[1024];
	const struct cadge_iov iov = {message, sizeof(message) - 1};
	struct end ends[2];
	bool good = meet(ends, 1, place, transports);
	int code = CADGE_BUSY;

	for (unsigned int n = 0; good && n < POLLS_MAX && !ends[1].received; n++) {
		if (ends[0].ups && code == CADGE_BUSY)
			code = layer->post(ends[0].chan, &iov, 1, 0, 1);
		good = poll_both(ends);
	}
	check(good && ends[1].received == 1 && !strcmp(ends[1].text, "hello"), "a message arrives",
	      ends[1].text);
	if (good && layer->describe_path(ends[0].chan, &read_back) == CADGE_DONE) {
		layer->semantics(ends[0].ctx, &semantics);
		limits = (struct cadge_limits){.bytes = sizeof(limits)};
		layer->limits(ends[0].ctx, &limits);
		snprintf(detail, sizeof(detail), "medium %d, as_asked %u, used '%s', note '%s', put %d",
			 (int)read_back.medium, read_back.as_asked, read_back.used, read_back.note,
			 (int)semantics.put);
		good = read_back.medium == medium && read_back.as_asked == as_asked &&
		       strstr(read_back.used, used) && (!layer->put || semantics.put == put);
		check(good, what, detail);
	} else {
		check(false, what, "no path");
	}
	close_both(ends);
}

/*
 * How many different places messages lay in that were all sent before the first was looked at, by rendezvous. Within a
 * host, from one peer alone, they land one after the other where the one before did.
 */
static void landings(enum cadge_place place, const char *transports, uint32_t peers, bool one,
		     const char *what)
{
	static unsigned char messages[LANDED][LANDED_BYTES];
	struct end ends[2];
	unsigned int posted = 0, places = 0;
	char detail[128];
	bool good;

	setenv("UCX_RNDV_THRESH", "1000", 1);
	good = meet(ends, peers, place, transports);
	unsetenv("UCX_RNDV_THRESH");
	for (unsigned int n = 0; good && n < POLLS_MAX && !(ends[0].ups && ends[1].ups); n++)
		good = poll_both(ends);
	/* once all are with the sender's library the receiver looks for the first time */
	for (unsigned int n = 0; good && n < POLLS_MAX && posted < LANDED; n++) {
		const struct cadge_iov iov = {messages[posted], LANDED_BYTES};
		const int code = layer->post(ends[0].chan, &iov, 1, 0, posted);

		posted += code == CADGE_DONE || code == CADGE_QUEUED;
		ends[0].sent += code == CADGE_DONE;
		good = layer->poll(ends[0].ctx, &ends[0].sink) >= 0;
	}
	for (unsigned int n = 0;
	     good && n < POLLS_MAX && (ends[1].received < LANDED || ends[0].sent < LANDED); n++)
		good = poll_both(ends);
	for (unsigned int i = 0; i < LANDED; i++) {
		bool known = false;

		for (unsigned int j = 0; j < i; j++)
			known |= ends[1].data[j] == ends[1].data[i];
		places += !known;
	}
	snprintf(detail, sizeof(detail), "%u of %d messages lay in %u places", ends[1].received, LANDED,
		 places);
	check(good && ends[1].received == LANDED && (places == 1) == one, what, detail);
	if (good)
		close_both(ends);
}

/* Where UCX lets a message wait for its receiver is what it was told, and not what we take it for. */
static void threshold(enum cadge_place place, const char *transports, enum cadge_medium medium)
{
	char detail[256];

	setenv("UCX_RNDV_THRESH", "1000", 1);
	path(place, transports, medium, 1, "am_send: ", CADGE_PROGRESS_NONE, "UCX says how it sends");
	unsetenv("UCX_RNDV_THRESH");
	snprintf(detail, sizeof(detail), "short %llu by '%s', else by '%s'",
		 (unsigned long long)limits.short_bytes_max, limits.short_path, limits.long_path);
	check(limits.short_bytes_max == 999 && !strcmp(limits.short_path, "eager") &&
		      !strcmp(limits.long_path, "rendezvous"),
	      "the threshold of the rendezvous is read back", detail);
}

static int load(const char *folder, const char *name)
{
	char file[1024], reason[256];
	cadge_layer_entry_fn entry;
	void *module;

	snprintf(file, sizeof(file), "%s/%s.so", folder, name);
	module = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!module) {
		printf("# %s\n", dlerror());
		return -1;
	}
	*(void **)&entry = dlsym(module, CADGE_ENTRY_SYMBOL);
	layer = entry ? entry() : NULL;
	if (cadge_layer_check(layer, reason, sizeof(reason))) {
		printf("# %s\n", reason);
		return -1;
	}
	return 0;
}

int main(void)
{
	static const char *const names[] = {"native-ucx", "rdma-ucx"};
	const char *folder = getenv("CADGE_MODULES");

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!folder || load(folder, names[i]))
			return 77;
		refused(CADGE_PLACE_NET, "nosuch0", NULL, NULL, CADGE_E_TRANSPORT, "nosuch0",
			"an unknown device");
		refused(CADGE_PLACE_NET, "lo", "transports", "quux", CADGE_E_TRANSPORT, "quux",
			"an unknown transport");
		refused(CADGE_PLACE_NET, "lo", "transports", "rc_v", CADGE_E_TRANSPORT, "RDMA device",
			"verbs on an interface without an RDMA device");
		refused(CADGE_PLACE_NET, "lo", "transports", "tcp,rc_verbs", CADGE_E_TRANSPORT, "rc_v",
			"reliable connections without what makes them");
		refused(CADGE_PLACE_NET, "lo", "transports", "tcp,quux", CADGE_E_TRANSPORT, "quux",
			"an unknown transport beside a known one");
		refused(CADGE_PLACE_NET, "lo", "colour", "blue", CADGE_E_ARGUMENT, "colour",
			"an unknown setting");
		refused(CADGE_PLACE_SELF, "lo", NULL, NULL, CADGE_E_UNSUPPORTED, "two processes",
			"place self");
		path(CADGE_PLACE_NET, "tcp", CADGE_MEDIUM_LOOPBACK, 1, "tcp/lo", CADGE_PROGRESS_LIBRARY,
		     "TCP is read back as TCP");
		path(CADGE_PLACE_HOST, NULL, CADGE_MEDIUM_MEMORY, 1, "/memory", CADGE_PROGRESS_DIRECT,
		     "shared memory is read back as such");
		path(CADGE_PLACE_NET, NULL, CADGE_MEDIUM_MEMORY, 0, "/memory", CADGE_PROGRESS_DIRECT,
		     "shared memory between hosts is not what was asked for");
		if (!layer->put) {
			threshold(CADGE_PLACE_NET, "tcp", CADGE_MEDIUM_LOOPBACK);
			threshold(CADGE_PLACE_HOST, NULL, CADGE_MEDIUM_MEMORY);
			landings(CADGE_PLACE_HOST, NULL, 1, true, "within a host all land in one place");
			landings(CADGE_PLACE_HOST, NULL, 2, false,
				 "where a dead peer could hold up another, side by side");
			landings(CADGE_PLACE_NET, "tcp", 1, false, "between hosts side by side");
		}
	}
	printf("1..%u\n", tests_run);
	return tests_failed ? 1 : 0;
}
