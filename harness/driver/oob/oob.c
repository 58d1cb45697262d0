/* SPDX-License-Identifier: BSD-3-Clause */
/* The star of the out-of-band channel: messages, gathers, and the end of any endpoint told to all. */
#include "oob/oob.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "measure/clock.h"
#include "oob/link.h"
#include "oob/rendezvous.h"
#include "base/text.h"
#include "launch/watchdog.h"

#define ABORT_NS UINT64_C(100000000)

struct drv_oob {
	int endpoint, endpoints;
	/* endpoint 0: one for each other endpoint, links[e - 1]; elsewhere links[0] to endpoint 0 */
	struct drv_link *links;
	int links_count;
	/* of all links where there are several, else -1 */
	int watcher;
	/* links that hold messages, in the order in which they got them; what was expected may have emptied some since */
	struct drv_link *first, **end;
	/* the others know already why this is over */
	bool abort_sent;
	/* the link whose end ended it */
	struct drv_link *lost;
};

static struct drv_link *link_of(struct drv_oob *oob, int endpoint)
{
	const int index = oob->endpoint == 0 ? endpoint - 1 : 0;

	return index >= 0 && index < oob->links_count && oob->links[index].endpoint == endpoint
		       ? &oob->links[index]
		       : NULL;
}

static void list(struct drv_oob *oob, struct drv_link *link)
{
	if (link->listed || !json_array_size(link->queue))
		return;
	link->listed = true;
	link->next = NULL;
	*oob->end = link;
	oob->end = &link->next;
}

/* One descriptor for many links, so that looking costs one system call. */
static int watch(struct drv_oob *oob, struct drv_fail *fail)
{
	if (oob->links_count < 2)
		return 0;
	oob->watcher = epoll_create1(EPOLL_CLOEXEC);
	for (int i = 0; oob->watcher >= 0 && i < oob->links_count; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};

		if (epoll_ctl(oob->watcher, EPOLL_CTL_ADD, oob->links[i].fd, &event)) {
			close(oob->watcher);
			oob->watcher = -1;
		}
	}
	return oob->watcher >= 0
		       ? 0
		       : drv_fail_set(fail, DRV_SYSTEM, "watching the out-of-band connections failed: %s",
				      strerror(errno));
}

int drv_oob_open(int endpoint, int endpoints, const char *host_port, const struct drv_oob_token *token,
		 const json_t *hello, uint64_t deadline_ns, struct drv_oob **oob_out, struct drv_fail *fail)
{
	struct drv_oob *oob = calloc(1, sizeof(*oob));
	json_t *mine = json_copy((json_t *)(uintptr_t)hello);
	int status;

	if (oob) {
		oob->links_count = endpoint == 0 ? endpoints - 1 : 1;
		oob->links = calloc((size_t)oob->links_count + 1, sizeof(*oob->links));
	}
	if (!oob || !oob->links || !mine || json_object_set_new(mine, "m", json_string("hello")) ||
	    json_object_set_new(mine, "endpoint", json_integer(endpoint))) {
		if (oob)
			free(oob->links);
		free(oob);
		json_decref(mine);
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the out-of-band channel");
	}
	oob->endpoint = endpoint;
	oob->endpoints = endpoints;
	oob->watcher = -1;
	oob->end = &oob->first;
	for (int i = 0; i < oob->links_count; i++)
		oob->links[i].fd = -1;
	if (endpoint == 0)
		status = drv_rendezvous_listen(oob->links, endpoints, host_port, token, mine, deadline_ns,
					       fail);
	else
		status = drv_rendezvous_join(&oob->links[0], endpoint, host_port, token, mine, deadline_ns,
					     fail);
	json_decref(mine);
	if (!status)
		status = watch(oob, fail);
	if (status) {
		drv_oob_close(oob);
		return -1;
	}
	for (int i = 0; i < oob->links_count; i++) /* what came behind a hello */
		list(oob, &oob->links[i]);
	*oob_out = oob;
	return 0;
}

void drv_oob_close(struct drv_oob *oob)
{
	if (!oob)
		return;
	for (int i = 0; i < oob->links_count; i++)
		drv_link_close(&oob->links[i]);
	if (oob->watcher >= 0)
		close(oob->watcher);
	free(oob->links);
	free(oob);
}

uint64_t drv_oob_carried(const struct drv_oob *oob, int endpoint)
{
	uint64_t bytes = 0;

	for (int i = 0; oob && i < oob->links_count; i++)
		if (endpoint == 0 || oob->links[i].endpoint == endpoint)
			bytes += oob->links[i].carried_bytes;
	return bytes;
}

/* Tells all links but one; one that does not listen any more is left out. */
static void send_abort(struct drv_oob *oob, const struct drv_link *except, enum drv_reason reason,
		       const char *text, bool relayed)
{
	json_t *message = json_pack("{s:s, s:s, s:o, s:b}", "m", "abort", "reason", drv_reason_name(reason),
				    "text", drv_json_text(text), "relayed", relayed);
	struct drv_fail ignored;

	for (int i = 0; message && !oob->abort_sent && i < oob->links_count; i++)
		if (&oob->links[i] != except &&
		    drv_link_send(&oob->links[i], message, drv_now_ns() + ABORT_NS, &ignored))
			fprintf(stderr, "cadge: cannot notify endpoint %d: %s\n", oob->links[i].endpoint,
				ignored.text);
	oob->abort_sent = true;
	json_decref(message);
}

void drv_oob_abort(struct drv_oob *oob, enum drv_reason reason, const char *text)
{
	if (oob)
		send_abort(oob, NULL, reason, text, false);
}

/* A link that is broken ends the launch: whoever hangs on it has to know. */
static int broken(struct drv_oob *oob, struct drv_link *link, struct drv_fail *fail)
{
	link->broken = true;
	link->why = *fail;
	oob->lost = link;
	if (oob->endpoint == 0)
		send_abort(oob, link, fail->reason, fail->text, true);
	else
		oob->abort_sent = true;
	return -1;
}

static int pump_link(struct drv_oob *oob, struct drv_link *link, struct drv_fail *fail)
{
	const int status = drv_link_pump(link, fail);

	list(oob, link);
	return status ? broken(oob, link, fail) : 0;
}

/* Reads whatever is there. */
static int pump(struct drv_oob *oob, struct drv_fail *fail)
{
	struct epoll_event events[16];
	int count;

	if (oob->lost)
		return drv_link_pump(oob->lost, fail);
	if (oob->watcher < 0)
		return oob->links_count ? pump_link(oob, &oob->links[0], fail) : 0;
	do {
		count = epoll_wait(oob->watcher, events, 16, 0);
		for (int i = 0; i < count; i++)
			if (pump_link(oob, &oob->links[events[i].data.u32], fail))
				return -1;
	} while (count == 16);
	return 0;
}

/* From each link in turn. */
static json_t *take(struct drv_oob *oob)
{
	json_t *message = NULL;

	while (!message && oob->first) {
		struct drv_link *link = oob->first;

		oob->first = link->next;
		if (!oob->first)
			oob->end = &oob->first;
		link->listed = false;
		message = drv_link_take(link);
		list(oob, link);
	}
	return message;
}

int drv_oob_try(struct drv_oob *oob, json_t **message_out, struct drv_fail *fail)
{
	int status;

	*message_out = take(oob);
	if (*message_out)
		return 1;
	status = pump(oob, fail);
	/* what was said before an end counts */
	*message_out = take(oob);
	return *message_out ? 1 : status;
}

void drv_oob_put_back(struct drv_oob *oob, json_t *message)
{
	struct drv_link *link = link_of(oob, (int)json_integer_value(json_object_get(message, "from")));

	if (!link || json_array_insert_new(link->queue, 0, message))
		fprintf(stderr, "cadge: a message could not be put back\n");
	else
		list(oob, link);
}

int drv_oob_peek(struct drv_oob *oob, struct drv_fail *fail)
{
	return pump(oob, fail);
}

/* Nothing has come: works, or sleeps. `whom` for the deadline's sentence; -1: anybody. */
static int idle_turn(struct drv_oob *oob, const struct drv_idle *idle, uint64_t deadline_ns, int whom,
		     struct drv_fail *fail)
{
	struct epoll_event event;
	int status;

	if (drv_stop_signal)
		return drv_fail_set(fail, DRV_STOPPED, "stopped by signal %d", (int)drv_stop_signal);
	if (drv_now_ns() >= deadline_ns) {
		if (whom >= 0)
			return drv_fail_set(fail, DRV_DEADLINE, "endpoint %d did not answer in time", whom);
		return drv_fail_set(fail, DRV_DEADLINE, "no other endpoint sent anything in time");
	}
	if (idle)
		return idle->step(idle->arg, fail) < 0 ? -1 : 0;
	if (oob->watcher < 0)
		status = drv_rendezvous_pause(oob->links[0].fd, POLLIN, deadline_ns);
	else
		status = epoll_wait(oob->watcher, &event, 1, 100);
	if (status < 0 && errno != EINTR)
		return drv_fail_set(fail, DRV_SYSTEM, "waiting for other endpoints failed: %s",
				    strerror(errno));
	return 0;
}

int drv_oob_receive(struct drv_oob *oob, const struct drv_idle *idle, uint64_t deadline_ns,
		    json_t **message_out, struct drv_fail *fail)
{
	for (;;) {
		const int status = drv_oob_try(oob, message_out, fail);

		if (status)
			return status < 0 ? -1 : 0;
		if (idle_turn(oob, idle, deadline_ns, oob->endpoint == 0 ? -1 : 0, fail))
			return -1;
	}
}

int drv_oob_expect(struct drv_oob *oob, int from, const char *name, const struct drv_idle *idle,
		   uint64_t deadline_ns, json_t **message_out, struct drv_fail *fail)
{
	struct drv_link *link = link_of(oob, from);
	json_t *message = link ? drv_link_take(link) : NULL;
	const char *got;

	if (!link)
		return drv_fail_set(fail, DRV_PROTOCOL, "endpoint %d is not connected to this one", from);
	while (!message) {
		const int status = pump(oob, fail);

		message = drv_link_take(link);
		if (message)
			break;
		if (status || idle_turn(oob, idle, deadline_ns, from, fail))
			return -1;
	}
	got = json_string_value(json_object_get(message, "m"));
	if (strcmp(got, name) != 0) {
		drv_fail_set(fail, DRV_PROTOCOL, "endpoint %d sent \"%s\" where \"%s\" was expected", from,
			     got, name);
		json_decref(message);
		return -1;
	}
	*message_out = message;
	return 0;
}

static int send_frame(struct drv_oob *oob, int to, const struct drv_frame *frame, uint64_t deadline_ns,
		      struct drv_fail *fail)
{
	struct drv_link *link = link_of(oob, to);

	if (!link)
		return drv_fail_set(fail, DRV_PROTOCOL, "endpoint %d is not connected to this one", to);
	if (!drv_link_send_frame(link, frame, deadline_ns, fail))
		return 0;
	/* a connection that breaks while it is written to may hold the reason that its other end gave */
	if (fail->reason == DRV_PEER_LOST) {
		struct drv_fail why;

		if (drv_link_pump(link, &why) && link->aborted)
			*fail = why;
		else
			drv_fail_set(fail, DRV_PEER_LOST, "endpoint %d is gone", to);
		list(oob, link);
		return broken(oob, link, fail);
	}
	return -1;
}

/* To endpoints first to last. */
static int send_to(struct drv_oob *oob, int first, int last, const json_t *message, uint64_t deadline_ns,
		   struct drv_fail *fail)
{
	struct drv_frame frame;
	int status = drv_frame_make(message, &frame, fail);

	if (status)
		return status;
	for (int e = first; !status && e <= last; e++)
		status = send_frame(oob, e, &frame, deadline_ns, fail);
	free(frame.bytes);
	return status;
}

int drv_oob_send(struct drv_oob *oob, int to, const json_t *message, uint64_t deadline_ns,
		 struct drv_fail *fail)
{
	return send_to(oob, to, to, message, deadline_ns, fail);
}

int drv_oob_order(struct drv_oob *oob, const json_t *message, uint64_t deadline_ns, struct drv_fail *fail)
{
	return send_to(oob, 1, oob->endpoints - 1, message, deadline_ns, fail);
}

/* Endpoint 0's part of a gather: collects, then sends all back. */
static int collect(struct drv_oob *oob, const char *name, json_t *mine, const struct drv_idle *idle,
		   uint64_t deadline_ns, json_t **all_out, struct drv_fail *fail)
{
	json_t *all = json_array(), *message;
	int status = !all || json_array_append(all, mine)
			     ? drv_fail_set(fail, DRV_MEMORY, "no memory for an out-of-band message")
			     : 0;

	for (int e = 1; !status && e < oob->endpoints; e++) {
		status = drv_oob_expect(oob, e, name, idle, deadline_ns, &message, fail);
		if (!status && json_array_append_new(all, message))
			status = drv_fail_set(fail, DRV_MEMORY, "no memory for an out-of-band message");
	}
	if (!status) {
		message = json_pack("{s:s, s:O}", "m", name, "all", all);
		status = message ? drv_oob_order(oob, message, deadline_ns, fail)
				 : drv_fail_set(fail, DRV_MEMORY, "no memory for an out-of-band message");
		json_decref(message);
	}
	if (status) {
		json_decref(all);
		return -1;
	}
	*all_out = all;
	return 0;
}

int drv_oob_gather(struct drv_oob *oob, const char *name, json_t *mine, const struct drv_idle *idle,
		   uint64_t deadline_ns, json_t **all_out, struct drv_fail *fail)
{
	json_t *message, *all;

	if (!mine || json_object_set_new(mine, "m", json_string(name)))
		return drv_fail_set(fail, DRV_MEMORY, "no memory for an out-of-band message");
	if (oob->endpoint == 0)
		return collect(oob, name, mine, idle, deadline_ns, all_out, fail);
	if (drv_oob_send(oob, 0, mine, deadline_ns, fail) ||
	    drv_oob_expect(oob, 0, name, idle, deadline_ns, &message, fail))
		return -1;
	all = json_object_get(message, "all");
	if (json_array_size(all) != (size_t)oob->endpoints) {
		json_decref(message);
		return drv_fail_set(fail, DRV_PROTOCOL, "endpoint 0 sent no list of all endpoints for \"%s\"",
				    name);
	}
	*all_out = json_incref(all);
	json_decref(message);
	return 0;
}

int drv_oob_barrier(struct drv_oob *oob, const char *name, const struct drv_idle *idle, uint64_t deadline_ns,
		    struct drv_fail *fail)
{
	json_t *mine = json_object(), *all;
	const int status = drv_oob_gather(oob, name, mine, idle, deadline_ns, &all, fail);

	json_decref(mine);
	if (!status)
		json_decref(all);
	return status;
}
