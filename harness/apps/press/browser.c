/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/browser.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "press/http/dial.h"

#define WAIT_NS     UINT64_C(10000000)
#define NAP_NS      UINT64_C(1000000)
#define READ_BYTES  65536u
#define ASKED_BYTES 128u

static void __attribute__((cold, noinline)) fail_once(struct press_browser *browser, enum drv_reason reason,
						      const char *what, const char *why)
{
	if (!browser->failed)
		drv_fail_set(&browser->fail, reason, "%s: %s", what, why);
	browser->failed = true;
}

static void __attribute__((cold, noinline)) wrong(struct press_browser *browser,
						  const struct press_visit *visit, const char *what)
{
	if (!browser->mismatches++)
		snprintf(browser->mismatch, sizeof(browser->mismatch),
			 "file %" PRIu32 " from node %" PRIu32 ": %s", visit->file,
			 browser->sites[visit->node].endpoint, what);
}

/* ---- answers ---- */

static int on_body(llhttp_t *llhttp, const char *at, size_t bytes)
{
	struct press_visit *visit = llhttp->data;
	struct press_files *files = &visit->browser->files;

	if (bytes > files->bytes[visit->file] - visit->received_bytes)
		visit->wrong = true;
	else if (!visit->wrong)
		visit->wrong = !press_files_hold(files, visit->file, visit->received_bytes, at, bytes);
	visit->received_bytes += visit->wrong ? 0 : (uint32_t)bytes;
	return 0;
}

static int on_complete(llhttp_t *llhttp)
{
	((struct press_visit *)llhttp->data)->complete = true;
	return 0;
}

static const llhttp_settings_t settings = {.on_body = on_body, .on_message_complete = on_complete};

static void push_idle(struct press_visit *visit)
{
	struct press_site *site = &visit->browser->sites[visit->node];

	visit->next = site->idle;
	site->idle = visit;
}

static void end_visit(struct press_visit *visit)
{
	struct press_browser *browser = visit->browser;
	const struct drv_clock *clock = &browser->links.port.engine->clock;
	const uint64_t now = drv_clock_now(clock);

	if (visit->llhttp.status_code != 200)
		fail_once(browser, DRV_LIBRARY, "a node answered with an error",
			  visit->llhttp.status_code == 503 ? "503, it has too much to do"
							   : "neither 200 nor 503");
	else if (visit->wrong || visit->received_bytes != browser->files.bytes[visit->file])
		wrong(browser, visit, "other bytes than it has");
	else
		browser->checked++;
	if (browser->pace)
		drv_pace_done(browser->pace, clock, visit->due, visit->sent, now);
	else if (browser->samples)
		drv_sample(browser->samples, drv_clock_to_ns(clock, now - visit->sent));
	if (browser->warmup)
		browser->warm |= drv_warmup_add(browser->warmup, now, now - visit->sent);
	browser->outstanding--;
	browser->answered++;
	browser->answered_bytes += visit->received_bytes;
	visit->complete = false;
	push_idle(visit);
}

static void on_ready(struct press_watch *watch, uint32_t events)
{
	static char data[READ_BYTES];
	struct press_visit *visit = (struct press_visit *)watch;
	struct press_browser *browser = visit->browser;

	(void)events;
	for (;;) {
		const ssize_t got = recv(watch->fd, data, sizeof(data), MSG_DONTWAIT);
		enum llhttp_errno error;

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (got <= 0) {
			fail_once(browser, DRV_PEER_LOST, "a node ended a connection",
				  got ? strerror(errno) : "end of stream");
			return;
		}
		error = llhttp_execute(&visit->llhttp, data, (size_t)got);
		if (error != HPE_OK) {
			fail_once(browser, DRV_PROTOCOL, "a node's answer is not HTTP",
				  llhttp_errno_name(error));
			return;
		}
		if (visit->complete)
			end_visit(visit);
		if ((size_t)got < sizeof(data))
			return;
	}
}

/* ---- requests ---- */

/* An idle connection, of the next node in turn if it has one; NULL: none is idle. */
static struct press_visit *pop_idle(struct press_browser *browser)
{
	for (uint32_t i = 0; i < browser->sites_count; i++) {
		struct press_site *site = &browser->sites[browser->next_site];
		struct press_visit *visit = site->idle;

		browser->next_site = (browser->next_site + 1) % browser->sites_count;
		if (visit) {
			site->idle = visit->next;
			return visit;
		}
	}
	return NULL;
}

/* By how popular files are; or in the order of the trace, again and again. */
static uint32_t next_file(struct press_browser *browser)
{
	uint32_t file;

	if (!browser->trace)
		return press_popularity_next(&browser->popularity);
	file = drv_trace_file(browser->trace, browser->next_request);
	browser->next_request = (browser->next_request + 1) % browser->trace->requests;
	return file;
}

static void ask(struct press_browser *browser, struct press_visit *visit, uint64_t due, uint64_t now)
{
	char text[ASKED_BYTES];
	ssize_t sent;
	int bytes;

	visit->file = next_file(browser);
	visit->due = due;
	visit->sent = now;
	visit->received_bytes = 0;
	visit->wrong = visit->complete = false;
	bytes = snprintf(text, sizeof(text), "GET /f/%" PRIu32 " HTTP/1.1\r\nHost: press\r\n\r\n",
			 visit->file);
	/* nothing else is on its way there, so that the kernel takes all of it */
	sent = send(visit->watch.fd, text, (size_t)bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent != bytes)
		fail_once(browser, DRV_PEER_LOST, "a request could not be sent",
			  sent < 0 ? strerror(errno) : "the kernel took a part of it");
	browser->outstanding++;
	browser->posted++;
	browser->posted_keys += visit->file;
}

/* How long nothing can happen before the next call is due. */
static uint64_t time_left_ns(const struct press_browser *browser, uint64_t now)
{
	const struct drv_pace *pace = browser->pace;
	uint64_t left_ns;

	if (!pace || browser->ending || pace->holds)
		return WAIT_NS;
	if (pace->due <= now)
		return 0;
	left_ns = drv_clock_to_ns(&browser->links.port.engine->clock, pace->due - now);
	return left_ns < WAIT_NS ? left_ns : WAIT_NS;
}

static void ask_due(struct press_browser *browser)
{
	const struct drv_clock *clock = &browser->links.port.engine->clock;
	struct drv_pace *pace = browser->pace;

	while (!browser->ending) {
		const uint64_t now = drv_clock_now(clock);
		struct press_visit *visit;

		if (now < pace->due)
			return;
		visit = pop_idle(browser);
		if (!visit) {
			pace->holds = true;
			return;
		}
		ask(browser, visit, pace->due, now);
		drv_pace_sent(pace);
		browser->ending = drv_pace_over(pace) ||
				  pace->offered >= drv_engine_operations(browser->links.port.engine);
	}
}

/* Sleeps or looks, and takes what has come. */
static int turn(struct press_browser *browser, struct drv_fail *fail)
{
	struct drv_engine *engine = browser->links.port.engine;
	const uint64_t now = drv_clock_now(&engine->clock);
	const uint64_t timeout_ns = engine->block ? time_left_ns(browser, now) : 0;
	const int ready = press_loop_turn(&browser->loop, timeout_ns);

	engine->waits += timeout_ns > 0;
	if (ready < 0)
		return drv_fail_set(fail, DRV_SYSTEM, "epoll: %s", strerror(errno));
	if (browser->failed) {
		*fail = browser->fail;
		return -1;
	}
	return ready ? 0 : drv_engine_poll_oob(engine, now, NULL, fail);
}

static void begin(struct press_browser *browser, struct drv_pace *pace)
{
	browser->pace = pace;
	browser->ending = false;
	browser->answered = browser->answered_bytes = 0;
}

int press_browser_ask(struct press_browser *browser, uint64_t requests, uint64_t until, struct drv_fail *fail)
{
	const struct drv_clock *clock = &browser->links.port.engine->clock;
	uint64_t asked = 0;

	begin(browser, NULL);
	do {
		while (!browser->ending) {
			const uint64_t now = drv_clock_now(clock);
			struct press_visit *visit = pop_idle(browser);

			if (!visit)
				break;
			ask(browser, visit, now, now);
			browser->ending = ++asked >= requests || now >= until;
		}
		if (turn(browser, fail))
			return -1;
	} while (browser->outstanding || !browser->ending);
	return 0;
}

int press_browser_pace(struct press_browser *browser, struct drv_pace *pace, uint64_t span_ns,
		       struct drv_fail *fail)
{
	const struct drv_clock *clock = &browser->links.port.engine->clock;
	const uint64_t now = drv_clock_now(clock);

	begin(browser, pace);
	drv_pace_begin(pace, now, drv_engine_end(browser->links.port.engine, now, span_ns));
	browser->ending = drv_pace_over(pace);
	while (browser->outstanding || !browser->ending) {
		ask_due(browser);
		if (turn(browser, fail))
			return -1;
	}
	browser->pace = NULL;
	return 0;
}

/* ---- nodes ---- */

static void on_message(void *arg, uint32_t endpoint, const struct press_message *head, const void *content,
		       size_t bytes)
{
	struct press_browser *browser = arg;

	for (uint32_t i = 0; i < browser->sites_count; i++) {
		struct press_site *site = &browser->sites[i];

		if (site->endpoint != endpoint)
			continue;
		if (head->type == PRESS_HELLO) {
			site->port = (uint16_t)head->offset;
			site->digest = head->tag;
			site->told = true;
		} else if (head->type == PRESS_STATS && bytes == sizeof(site->counts)) {
			memcpy(site->counts, content, bytes);
			site->told = true;
		}
	}
}

/* Works on the layer's side until all nodes have told what they were asked. */
static int await(struct press_browser *browser, struct drv_fail *fail)
{
	struct drv_engine *engine = browser->links.port.engine;

	for (;;) {
		const int events = press_links_turn(&browser->links, fail);
		uint32_t there = 0;

		if (events < 0)
			return -1;
		for (uint32_t i = 0; i < browser->sites_count; i++)
			there += browser->sites[i].told;
		if (there == browser->sites_count)
			return 0;
		if (events == 0 && engine->block && drv_engine_wait(engine, NAP_NS, fail))
			return -1;
		if (events == 0 && drv_engine_poll_oob(engine, drv_clock_now(&engine->clock), NULL, fail))
			return -1;
	}
}

/* Asks all nodes a question, and waits until they have answered. */
static int ask_nodes(struct press_browser *browser, enum press_type type, struct drv_fail *fail)
{
	const struct press_message question = {.type = type};

	for (uint32_t i = 0; i < browser->sites_count; i++) {
		browser->sites[i].told = false;
		if (press_links_say(&browser->links, browser->sites[i].endpoint, &question))
			return drv_fail_set(fail, DRV_MEMORY, "no memory for a message");
	}
	return await(browser, fail);
}

int press_browser_counts(struct press_browser *browser, uint64_t counts_out[PRESS_COUNTS],
			 struct drv_fail *fail)
{
	if (ask_nodes(browser, PRESS_STATS, fail))
		return -1;
	memset(counts_out, 0, PRESS_COUNTS * sizeof(counts_out[0]));
	for (uint32_t i = 0; i < browser->sites_count; i++)
		for (uint32_t count = 0; count < PRESS_COUNTS; count++)
			counts_out[count] += browser->sites[i].counts[count];
	return 0;
}

static int connect_to(const struct drv_engine *engine, const struct press_site *site)
{
	const struct drv_endpoint *there = &engine->launch->endpoints[site->endpoint];
	const int yes = 1;
	const int fd = press_dial(press_client_address(there), site->port);

	if (fd >= 0)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	return fd;
}

int press_browser_meet(struct press_browser *browser, struct drv_fail *fail)
{
	const struct drv_engine *engine = browser->links.port.engine;
	const uint64_t digest = press_files_digest(&browser->files);

	if (browser->visits[0].browser)
		return 0;
	if (ask_nodes(browser, PRESS_HELLO, fail))
		return -1;
	for (uint32_t i = 0; i < browser->visits_count; i++) {
		struct press_visit *visit = &browser->visits[i];
		const struct press_site *site = &browser->sites[i % browser->sites_count];

		if (site->digest != digest)
			return drv_fail_set(fail, DRV_PROTOCOL, "node %u has other files than the client",
					    site->endpoint);
		*visit = (struct press_visit){.browser = browser, .node = i % browser->sites_count};
		visit->watch = (struct press_watch){.fd = connect_to(engine, site), .ready = on_ready};
		if (visit->watch.fd < 0 || press_loop_add(&browser->loop, &visit->watch, EPOLLIN))
			return drv_fail_set(fail, DRV_SYSTEM, "cannot connect to node %u over HTTP: %s",
					    site->endpoint, strerror(errno));
		llhttp_init(&visit->llhttp, HTTP_RESPONSE, &settings);
		visit->llhttp.data = visit;
		push_idle(visit);
	}
	return 0;
}

/* ---- life ---- */

static int start_files(struct press_browser *browser, const struct press_visitors *visitors)
{
	if (visitors->trace)
		return press_files_replay(&browser->files, visitors->trace, visitors->seed);
	return press_files_make(&browser->files, visitors->workload, visitors->working_bytes,
				visitors->seed) ||
			       press_popularity_start(&browser->popularity, browser->files.count,
						      visitors->alpha, visitors->draws)
		       ? -1
		       : 0;
}

int press_browser_start(struct press_browser *browser, struct drv_engine *engine,
			const struct press_visitors *visitors, struct drv_fail *fail)
{
	browser->loop.epoll_fd = -1;
	browser->sites_count = engine->channels_count;
	for (uint32_t i = 0; i < browser->sites_count; i++)
		browser->sites[i].endpoint = (uint32_t)engine->channels[i].endpoint;
	browser->visits_count = (uint32_t)visitors->connections * browser->sites_count;
	browser->visits = calloc(browser->visits_count, sizeof(*browser->visits));
	browser->trace = visitors->trace;
	if (!browser->visits || start_files(browser, visitors))
		return drv_fail_set(fail, DRV_MEMORY, "no memory for a site of %u files",
				    browser->files.count);
	if (press_loop_start(&browser->loop))
		return drv_fail_set(fail, DRV_SYSTEM, "epoll: %s", strerror(errno));
	return press_links_start(&browser->links, engine, visitors->seed, PRESS_V0, on_message, browser,
				 fail);
}

void press_browser_end(struct press_browser *browser)
{
	for (uint32_t i = 0; browser->visits && i < browser->visits_count; i++)
		if (browser->visits[i].browser && browser->visits[i].watch.fd >= 0)
			close(browser->visits[i].watch.fd);
	free(browser->visits);
	if (browser->links.port.engine)
		press_links_end(&browser->links);
	press_popularity_free(&browser->popularity);
	press_files_free(&browser->files);
	press_loop_end(&browser->loop);
}
