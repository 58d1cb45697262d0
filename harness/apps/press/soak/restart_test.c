/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/soak/restart_test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure/clock.h"

#define STOP_NS   UINT64_C(20000000000)
#define TURN_NS   UINT64_C(10000000)
#define ARGUMENTS 64

void soak_trouble(struct soak_restart_test *restart_test, const char *format, ...)
{
	va_list arguments;

	if (restart_test->trouble[0])
		return;
	va_start(arguments, format);
	vsnprintf(restart_test->trouble, sizeof(restart_test->trouble), format, arguments);
	va_end(arguments);
}

/* ---- words ---- */

static void send_control(struct soak_site *site, uint32_t kind, uint32_t peer, uint64_t session)
{
	const struct soak_control message = {.kind = kind, .peer = peer, .session = session};

	/* who was killed may be gone */
	if (soak_send(site->control.fd, &message, MSG_DONTWAIT) && !site->killed)
		soak_trouble(site->restart_test, "node %u does not listen: %s", site->number,
			     strerror(errno));
}

static void begin_session(struct soak_site *one, struct soak_site *other)
{
	const uint64_t session = ++one->restart_test->session;

	one->sessions[other->number] = other->sessions[one->number] = session;
	one->offers[other->number].bytes = other->offers[one->number].bytes = 0;
	send_control(one, SOAK_BACK, other->number, session);
	send_control(other, SOAK_BACK, one->number, session);
}

static void take_ready(struct soak_site *site, uint16_t port)
{
	struct soak_restart_test *restart_test = site->restart_test;

	site->state = SOAK_THERE;
	site->port = port;
	for (uint32_t i = 1; i <= restart_test->plan->nodes; i++)
		if (i != site->number && restart_test->sites[i].state == SOAK_THERE)
			begin_session(site, &restart_test->sites[i]);
	site->fresh = true;
}

/* An address, for a session that may be over: once both are there, each gets the other's. */
static void take_offer(struct soak_site *site, const struct soak_control *message)
{
	struct soak_site *peer = &site->restart_test->sites[message->peer];
	struct soak_control *other_offer = &peer->offers[site->number],
			    *own_offer = &site->offers[message->peer];

	if (message->session != site->sessions[message->peer])
		return;
	*own_offer = *message;
	if (!other_offer->bytes)
		return;
	own_offer->kind = other_offer->kind = SOAK_ADDRESS;
	own_offer->peer = site->number;
	other_offer->peer = peer->number;
	if ((soak_send(site->control.fd, other_offer, MSG_DONTWAIT) && !site->killed) ||
	    (soak_send(peer->control.fd, own_offer, MSG_DONTWAIT) && !peer->killed))
		soak_trouble(site->restart_test, "nodes %u and %u do not listen", site->number, peer->number);
}

static void take_down(struct soak_site *site, const struct soak_control *message)
{
	const uint32_t number = message->peer;
	struct soak_site *peer = &site->restart_test->sites[number];

	/* in the end all stop, one a little before the other */
	if (peer->stopped)
		return;
	/* what it says of a former session is old news */
	if (peer->killed || peer->state != SOAK_THERE) {
		site->restart_test->noticed++;
	} else if (message->session == site->sessions[number]) {
		fprintf(stderr, "node %u, life %u, says that node %u, life %u, is down: %.*s\n", site->number,
			site->life, number, peer->life, (int)message->bytes, (const char *)message->content);
		site->restart_test->false_downs++;
		begin_session(site, peer);
	}
}

static void handle_control(struct soak_site *site, const struct soak_control *message)
{
	struct soak_restart_test *restart_test = site->restart_test;

	if (message->kind == SOAK_READY) {
		take_ready(site, (uint16_t)message->peer);
	} else if (message->kind == SOAK_OFFER) {
		take_offer(site, message);
	} else if (message->kind == SOAK_DOWN) {
		take_down(site, message);
	} else if (message->kind == SOAK_REPORT && message->bytes == sizeof(site->report)) {
		memcpy(&site->report, message->content, sizeof(site->report));
		site->reported = true;
	} else if (message->kind == SOAK_REFUSED) {
		snprintf(restart_test->refusal, sizeof(restart_test->refusal), "%.*s", (int)message->bytes,
			 (const char *)message->content);
	} else {
		soak_trouble(restart_test, "node %u failed: %.*s", site->number, (int)message->bytes,
			     (const char *)message->content);
	}
}

static void on_control(struct press_watch *watch, uint32_t events)
{
	struct soak_site *site = (struct soak_site *)((char *)watch - offsetof(struct soak_site, control));
	struct soak_control message;

	/* who ends is buried by on_exit */
	while (soak_receive(site->control.fd, &message) > 0)
		handle_control(site, &message);
	if (events & (EPOLLHUP | EPOLLERR))
		press_loop_change(site->restart_test->loop, watch, EPOLLET);
}

/* ---- births and deaths ---- */

static void bury(struct soak_site *site, int status)
{
	struct soak_restart_test *restart_test = site->restart_test;
	struct soak_control message;

	/* what it said last */
	while (soak_receive(site->control.fd, &message) > 0)
		if (message.kind == SOAK_FAILED || message.kind == SOAK_REFUSED)
			handle_control(site, &message);
	if (!restart_test->refusal[0] && !site->killed && (!site->stopped || status)) {
		restart_test->crashes++;
		soak_trouble(restart_test, "node %u ended by itself, with %s %d", site->number,
			     WIFSIGNALED(status) ? "signal" : "status",
			     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	}
	press_loop_remove(restart_test->loop, &site->control);
	press_loop_remove(restart_test->loop, &site->exit);
	close(site->control.fd);
	close(site->exit.fd);
	site->state = SOAK_ABSENT;
	for (uint32_t i = 1; i <= restart_test->plan->nodes; i++) {
		struct soak_site *other = &restart_test->sites[i];

		site->sessions[i] = other->sessions[site->number] = 0;
		/* every other time they hear of it from their layer, or when it is back */
		if (other != site && other->state == SOAK_THERE && !site->stopped && site->life % 2)
			send_control(other, SOAK_GONE, site->number, 0);
	}
}

static void on_exit_of(struct press_watch *watch, uint32_t events)
{
	struct soak_site *site = (struct soak_site *)((char *)watch - offsetof(struct soak_site, exit));
	int status;

	(void)events;
	if (waitpid(site->pid, &status, WNOHANG) == site->pid)
		bury(site, status);
}

/* In the child: nothing of the supervisor's but the control channel. */
static void __attribute__((noreturn)) become_node(const struct soak_site *site, int control)
{
	char number[24], service[32];
	char *arguments[ARGUMENTS];
	int count = 0;

	for (; site->restart_test->argv[count] && count < ARGUMENTS - 5; count++)
		arguments[count] = site->restart_test->argv[count];
	snprintf(number, sizeof(number), "%u", site->number);
	snprintf(service, sizeof(service), "%llu", (unsigned long long)site->service_ns);
	arguments[count++] = "--node";
	arguments[count++] = number;
	arguments[count++] = "--service-ns";
	arguments[count++] = service;
	arguments[count] = NULL;
	/* what libraries print is no part of the account */
	dup2(STDERR_FILENO, STDOUT_FILENO);
	/* dup2 to itself would leave it close-on-exec */
	if (control == SOAK_CONTROL_FD ? !fcntl(control, F_SETFD, 0)
				       : dup2(control, SOAK_CONTROL_FD) == SOAK_CONTROL_FD)
		execv("/proc/self/exe", arguments);
	_exit(127);
}

static int start_site(struct soak_site *site)
{
	struct soak_restart_test *restart_test = site->restart_test;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		soak_trouble(restart_test, "socketpair: %s", strerror(errno));
		return -1;
	}
	site->pid = fork();
	if (site->pid == 0)
		become_node(site, pair[1]);
	close(pair[1]);
	site->control = (struct press_watch){.fd = pair[0], .ready = on_control};
	site->exit = (struct press_watch){.fd = site->pid > 0 ? pidfd_open(site->pid, 0) : -1,
					  .ready = on_exit_of};
	site->state = SOAK_STARTING;
	site->life++;
	site->killed = site->reported = false;
	if (site->exit.fd < 0 || press_loop_add(restart_test->loop, &site->control, EPOLLIN) ||
	    press_loop_add(restart_test->loop, &site->exit, EPOLLIN)) {
		soak_trouble(restart_test, "a node cannot be started: %s", strerror(errno));
		return -1;
	}
	return 0;
}

int soak_restart_test_start(struct soak_restart_test *restart_test)
{
	for (uint32_t i = 1; i <= restart_test->plan->nodes; i++) {
		struct soak_site *site = &restart_test->sites[i];

		site->restart_test = restart_test;
		site->number = i;
		site->service_ns = restart_test->plan->service_ns;
		if (start_site(site))
			return -1;
	}
	return 0;
}

void soak_kill(struct soak_site *site, uint64_t restart_ns)
{
	site->killed = true;
	site->restart_ns = restart_ns;
	/* in the end it is of no account */
	site->restart_test->kills += !site->stopped;
	kill(site->pid, SIGKILL);
}

void soak_restart_test_tick(struct soak_restart_test *restart_test, uint64_t now_ns)
{
	for (uint32_t i = 1; i <= restart_test->plan->nodes; i++) {
		struct soak_site *site = &restart_test->sites[i];

		if (site->state == SOAK_THERE && site->fresh)
			restart_test->there(restart_test->arg, site);
		site->fresh = false;
		if (site->state == SOAK_ABSENT && site->killed && now_ns >= site->restart_ns) {
			restart_test->restarts++;
			start_site(site);
		}
	}
}

/* ---- how they are ---- */

void soak_restart_test_ask(struct soak_restart_test *restart_test)
{
	for (uint32_t i = 1; i <= restart_test->plan->nodes; i++) {
		restart_test->sites[i].reported = false;
		if (restart_test->sites[i].state == SOAK_THERE)
			send_control(&restart_test->sites[i], SOAK_QUERY, 0, 0);
	}
}

bool soak_restart_test_reported(const struct soak_restart_test *restart_test)
{
	for (uint32_t i = 1; i <= restart_test->plan->nodes; i++)
		if (!restart_test->sites[i].reported)
			return false;
	return true;
}

bool soak_restart_test_connected(const struct soak_restart_test *restart_test)
{
	for (uint32_t i = 1; i <= restart_test->plan->nodes; i++) {
		const struct soak_site *one = &restart_test->sites[i];

		for (uint32_t j = 1; j <= restart_test->plan->nodes; j++) {
			const struct soak_site *other = &restart_test->sites[j];

			if (i != j && (one->state != SOAK_THERE || !one->sessions[j] ||
				       one->report.sessions[j] != one->sessions[j] ||
				       one->report.holds[j] != other->report.holds[j]))
				return false;
		}
	}
	return true;
}

void soak_restart_test_end(struct soak_restart_test *restart_test)
{
	const uint64_t until_ns = drv_now_ns() + STOP_NS;
	uint32_t left;

	for (uint32_t i = 1; i <= restart_test->plan->nodes; i++) {
		struct soak_site *site = &restart_test->sites[i];

		site->stopped = true;
		if (site->state == SOAK_STARTING)
			soak_kill(site, UINT64_MAX);
		else if (site->state == SOAK_THERE)
			send_control(site, SOAK_STOP, 0, 0);
	}
	do {
		left = 0;
		for (uint32_t i = 1; i <= restart_test->plan->nodes; i++) {
			struct soak_site *site = &restart_test->sites[i];

			left += site->state != SOAK_ABSENT;
			if (site->state != SOAK_ABSENT && !site->killed && drv_now_ns() >= until_ns) {
				soak_trouble(restart_test, "node %u was told to stop, and did not", i);
				soak_kill(site, UINT64_MAX);
			}
		}
		press_loop_turn(restart_test->loop, left ? TURN_NS : 0);
	} while (left);
}
