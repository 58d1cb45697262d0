/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/load_generator.h"

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

static void __attribute__((cold, noinline))
fail_once(struct press_load_generator *generator, enum drv_reason reason, const char *what, const char *why)
{
	if (!generator->failed)
		drv_fail_set(&generator->fail, reason, "%s: %s", what, why);
	generator->failed = true;
}

static void __attribute__((cold, noinline)) wrong(struct press_load_generator *generator,
						  const struct press_visit *visit, const char *what)
{
	if (!generator->mismatches++)
		snprintf(generator->mismatch, sizeof(generator->mismatch),
			 "file %" PRIu32 " from node %" PRIu32 ": %s", visit->file,
			 generator->sites[visit->node].endpoint, what);
}

/* ---- answers ---- */

static int on_body(llhttp_t *llhttp, const char *at, size_t bytes)
{
	struct press_visit *visit = llhttp->data;
	struct press_files *files = &visit->generator->files;

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
	struct press_site *site = &visit->generator->sites[visit->node];

	visit->next = site->idle;
	site->idle = visit;
}

static void end_visit(struct press_visit *visit)
{
	struct press_load_generator *generator = visit->generator;
	const struct drv_clock *clock = &generator->links.port.engine->clock;
	const uint64_t now = drv_clock_now(clock);

	if (visit->llhttp.status_code != 200)
		fail_once(generator, DRV_LIBRARY, "a node answered with an error",
			  visit->llhttp.status_code == 503 ? "503, it has too much to do"
							   : "neither 200 nor 503");
	else if (visit->wrong || visit->received_bytes != generator->files.bytes[visit->file])
		wrong(generator, visit, "other bytes than it has");
	else
		generator->checked++;
	if (generator->pace)
		drv_pace_done(generator->pace, clock, visit->due, visit->sent, now);
	else if (generator->samples)
		drv_sample(generator->samples, drv_clock_to_ns(clock, now - visit->sent));
	if (generator->warmup)
		generator->warm |= drv_warmup_add(generator->warmup, now, now - visit->sent);
	generator->outstanding--;
	generator->answered++;
	generator->answered_bytes += visit->received_bytes;
	visit->complete = false;
	push_idle(visit);
}

static void on_ready(struct press_watch *watch, uint32_t events)
{
	static char data[READ_BYTES];
	struct press_visit *visit = (struct press_visit *)watch;
	struct press_load_generator *generator = visit->generator;

	(void)events;
	for (;;) {
		const ssize_t got = recv(watch->fd, data, sizeof(data), MSG_DONTWAIT);
		enum llhttp_errno error;

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (got <= 0) {
			fail_once(generator, DRV_PEER_LOST, "a node ended a connection",
				  got ? strerror(errno) : "end of stream");
			return;
		}
		error = llhttp_execute(&visit->llhttp, data, (size_t)got);
		if (error != HPE_OK) {
			fail_once(generator, DRV_PROTOCOL, "a node's answer is not HTTP",
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
static struct press_visit *pop_idle(struct press_load_generator *generator)
{
	for (uint32_t i = 0; i < generator->sites_count; i++) {
		struct press_site *site = &generator->sites[generator->next_site];
		struct press_visit *visit = site->idle;

		generator->next_site = (generator->next_site + 1) % generator->sites_count;
		if (visit) {
			site->idle = visit->next;
			return visit;
		}
	}
	return NULL;
}

/* By how popular files are; or in the order of the trace, again and again. */
static uint32_t next_file(struct press_load_generator *generator)
{
	uint32_t file;

	if (!generator->trace)
		return press_popularity_next(&generator->popularity);
	file = drv_trace_file(generator->trace, generator->next_request);
	generator->next_request = (generator->next_request + 1) % generator->trace->requests;
	return file;
}

static void ask(struct press_load_generator *generator, struct press_visit *visit, uint64_t due, uint64_t now)
{
	char text[ASKED_BYTES];
	ssize_t sent;
	int bytes;

	visit->file = next_file(generator);
	visit->due = due;
	visit->sent = now;
	visit->received_bytes = 0;
	visit->wrong = visit->complete = false;
	bytes = snprintf(text, sizeof(text), "GET /f/%" PRIu32 " HTTP/1.1\r\nHost: press\r\n\r\n",
			 visit->file);
	/* nothing else is on its way there, so that the kernel takes all of it */
	sent = send(visit->watch.fd, text, (size_t)bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent != bytes)
		fail_once(generator, DRV_PEER_LOST, "a request could not be sent",
			  sent < 0 ? strerror(errno) : "the kernel took a part of it");
	generator->outstanding++;
	generator->posted++;
	generator->posted_keys += visit->file;
}

/* How long nothing can happen before the next call is due. */
static uint64_t time_left_ns(const struct press_load_generator *generator, uint64_t now)
{
	const struct drv_pace *pace = generator->pace;
	uint64_t left_ns;

	if (!pace || generator->ending || pace->holds)
		return WAIT_NS;
	if (pace->due <= now)
		return 0;
	left_ns = drv_clock_to_ns(&generator->links.port.engine->clock, pace->due - now);
	return left_ns < WAIT_NS ? left_ns : WAIT_NS;
}

static void ask_due(struct press_load_generator *generator)
{
	const struct drv_clock *clock = &generator->links.port.engine->clock;
	struct drv_pace *pace = generator->pace;

	while (!generator->ending) {
		const uint64_t now = drv_clock_now(clock);
		struct press_visit *visit;

		if (now < pace->due)
			return;
		visit = pop_idle(generator);
		if (!visit) {
			pace->holds = true;
			return;
		}
		ask(generator, visit, pace->due, now);
		drv_pace_sent(pace);
		generator->ending = drv_pace_over(pace) ||
				    pace->offered >= drv_engine_operations(generator->links.port.engine);
	}
}

/* Sleeps or looks, and takes what has come. */
static int turn(struct press_load_generator *generator, struct drv_fail *fail)
{
	struct drv_engine *engine = generator->links.port.engine;
	const uint64_t now = drv_clock_now(&engine->clock);
	const uint64_t timeout_ns = engine->block ? time_left_ns(generator, now) : 0;
	const int ready = press_loop_turn(&generator->loop, timeout_ns);

	engine->waits += timeout_ns > 0;
	if (ready < 0)
		return drv_fail_set(fail, DRV_SYSTEM, "epoll: %s", strerror(errno));
	if (generator->failed) {
		*fail = generator->fail;
		return -1;
	}
	return ready ? 0 : drv_engine_poll_oob(engine, now, NULL, fail);
}

static void begin(struct press_load_generator *generator, struct drv_pace *pace)
{
	generator->pace = pace;
	generator->ending = false;
	generator->answered = generator->answered_bytes = 0;
}

int press_load_generator_ask(struct press_load_generator *generator, uint64_t requests, uint64_t until,
			     struct drv_fail *fail)
{
	const struct drv_clock *clock = &generator->links.port.engine->clock;
	uint64_t asked = 0;

	begin(generator, NULL);
	do {
		while (!generator->ending) {
			const uint64_t now = drv_clock_now(clock);
			struct press_visit *visit = pop_idle(generator);

			if (!visit)
				break;
			ask(generator, visit, now, now);
			generator->ending = ++asked >= requests || now >= until;
		}
		if (turn(generator, fail))
			return -1;
	} while (generator->outstanding || !generator->ending);
	return 0;
}

int press_load_generator_pace(struct press_load_generator *generator, struct drv_pace *pace, uint64_t span_ns,
			      struct drv_fail *fail)
{
	const struct drv_clock *clock = &generator->links.port.engine->clock;
	const uint64_t now = drv_clock_now(clock);

	begin(generator, pace);
	drv_pace_begin(pace, now, drv_engine_end(generator->links.port.engine, now, span_ns));
	generator->ending = drv_pace_over(pace);
	while (generator->outstanding || !generator->ending) {
		ask_due(generator);
		if (turn(generator, fail))
			return -1;
	}
	generator->pace = NULL;
	return 0;
}

/* ---- nodes ---- */

static void on_message(void *arg, uint32_t endpoint, const struct press_message *head, const void *content,
		       size_t bytes)
{
	struct press_load_generator *generator = arg;

	for (uint32_t i = 0; i < generator->sites_count; i++) {
		struct press_site *site = &generator->sites[i];

		if (site->endpoint != endpoint)
			continue;
		if (head->type == PRESS_HELLO) {
			site->port = (uint16_t)head->offset;
			site->digest = head->tag;
			site->reported = true;
		} else if (head->type == PRESS_STATS && bytes == sizeof(site->counts)) {
			memcpy(site->counts, content, bytes);
			site->reported = true;
		}
	}
}

/* Works on the layer's side until all nodes have told what they were asked. */
static int await(struct press_load_generator *generator, struct drv_fail *fail)
{
	struct drv_engine *engine = generator->links.port.engine;

	for (;;) {
		const int events = press_links_turn(&generator->links, fail);
		uint32_t there = 0;

		if (events < 0)
			return -1;
		for (uint32_t i = 0; i < generator->sites_count; i++)
			there += generator->sites[i].reported;
		if (there == generator->sites_count)
			return 0;
		if (events == 0 && engine->block && drv_engine_wait(engine, NAP_NS, fail))
			return -1;
		if (events == 0 && drv_engine_poll_oob(engine, drv_clock_now(&engine->clock), NULL, fail))
			return -1;
	}
}

/* Asks all nodes a question, and waits until they have answered. */
static int ask_nodes(struct press_load_generator *generator, enum press_type type, struct drv_fail *fail)
{
	const struct press_message question = {.type = type};

	for (uint32_t i = 0; i < generator->sites_count; i++) {
		generator->sites[i].reported = false;
		if (press_links_send(&generator->links, generator->sites[i].endpoint, &question))
			return drv_fail_set(fail, DRV_MEMORY, "no memory for a message");
	}
	return await(generator, fail);
}

int press_load_generator_counts(struct press_load_generator *generator, uint64_t counts_out[PRESS_COUNTS],
				struct drv_fail *fail)
{
	if (ask_nodes(generator, PRESS_STATS, fail))
		return -1;
	memset(counts_out, 0, PRESS_COUNTS * sizeof(counts_out[0]));
	for (uint32_t i = 0; i < generator->sites_count; i++)
		for (uint32_t count = 0; count < PRESS_COUNTS; count++)
			counts_out[count] += generator->sites[i].counts[count];
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

int press_load_generator_connect(struct press_load_generator *generator, struct drv_fail *fail)
{
	const struct drv_engine *engine = generator->links.port.engine;
	const uint64_t digest = press_files_digest(&generator->files);

	if (generator->visits[0].generator)
		return 0;
	if (ask_nodes(generator, PRESS_HELLO, fail))
		return -1;
	for (uint32_t i = 0; i < generator->visits_count; i++) {
		struct press_visit *visit = &generator->visits[i];
		const struct press_site *site = &generator->sites[i % generator->sites_count];

		if (site->digest != digest)
			return drv_fail_set(fail, DRV_PROTOCOL, "node %u has other files than the client",
					    site->endpoint);
		*visit = (struct press_visit){.generator = generator, .node = i % generator->sites_count};
		visit->watch = (struct press_watch){.fd = connect_to(engine, site), .ready = on_ready};
		if (visit->watch.fd < 0 || press_loop_add(&generator->loop, &visit->watch, EPOLLIN))
			return drv_fail_set(fail, DRV_SYSTEM, "cannot connect to node %u over HTTP: %s",
					    site->endpoint, strerror(errno));
		llhttp_init(&visit->llhttp, HTTP_RESPONSE, &settings);
		visit->llhttp.data = visit;
		push_idle(visit);
	}
	return 0;
}

/* ---- life ---- */

static int start_files(struct press_load_generator *generator, const struct press_visitors *visitors)
{
	if (visitors->trace)
		return press_files_replay(&generator->files, visitors->trace, visitors->seed);
	return press_files_make(&generator->files, visitors->workload, visitors->working_bytes,
				visitors->seed) ||
			       press_popularity_start(&generator->popularity, generator->files.count,
						      visitors->alpha, visitors->draws)
		       ? -1
		       : 0;
}

int press_load_generator_start(struct press_load_generator *generator, struct drv_engine *engine,
			       const struct press_visitors *visitors, struct drv_fail *fail)
{
	generator->loop.epoll_fd = -1;
	generator->sites_count = engine->channels_count;
	for (uint32_t i = 0; i < generator->sites_count; i++)
		generator->sites[i].endpoint = (uint32_t)engine->channels[i].endpoint;
	generator->visits_count = (uint32_t)visitors->connections * generator->sites_count;
	generator->visits = calloc(generator->visits_count, sizeof(*generator->visits));
	generator->trace = visitors->trace;
	if (!generator->visits || start_files(generator, visitors))
		return drv_fail_set(fail, DRV_MEMORY, "no memory for a site of %u files",
				    generator->files.count);
	if (press_loop_start(&generator->loop))
		return drv_fail_set(fail, DRV_SYSTEM, "epoll: %s", strerror(errno));
	return press_links_start(&generator->links, engine, visitors->seed, PRESS_V0, on_message, generator,
				 fail);
}

void press_load_generator_end(struct press_load_generator *generator)
{
	for (uint32_t i = 0; generator->visits && i < generator->visits_count; i++)
		if (generator->visits[i].generator && generator->visits[i].watch.fd >= 0)
			close(generator->visits[i].watch.fd);
	free(generator->visits);
	if (generator->links.port.engine)
		press_links_end(&generator->links);
	press_popularity_free(&generator->popularity);
	press_files_free(&generator->files);
	press_loop_end(&generator->loop);
}
