/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/soak/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "measure/clock.h"
#include "traffic/payload.h"

#define STUCK_NS    UINT64_C(30000000000)
#define READ_BYTES  65536u
#define ASKED_BYTES 96u
#define ALPHA       0.8

/* ---- answers ---- */

static int on_body(llhttp_t *llhttp, const char *at, size_t bytes)
{
	struct soak_answers *answers = llhttp->data;

	if (answers->wrong || bytes > answers->files->bytes[answers->file] - answers->bytes ||
	    !press_files_hold(answers->files, answers->file, answers->bytes, at, bytes))
		answers->wrong = true;
	else
		answers->bytes += (uint32_t)bytes;
	return 0;
}

static int on_complete(llhttp_t *llhttp)
{
	struct soak_answers *answers = llhttp->data;

	answers->status = llhttp->status_code;
	if (answers->status != 200)
		answers->errors++;
	else if (answers->wrong || answers->bytes != answers->files->bytes[answers->file])
		answers->mixed++;
	else
		answers->right++;
	answers->file += answers->step;
	answers->bytes = 0;
	answers->wrong = false;
	return 0;
}

static const llhttp_settings_t settings = {.on_body = on_body, .on_message_complete = on_complete};

void soak_answers_start(struct soak_answers *answers, const struct press_files *files, uint32_t file,
			uint32_t step)
{
	*answers = (struct soak_answers){.files = files, .file = file, .step = step};
	llhttp_init(&answers->llhttp, HTTP_RESPONSE, &settings);
	answers->llhttp.data = answers;
}

int soak_answers_take(struct soak_answers *answers, int fd, size_t most)
{
	static char data[READ_BYTES];
	const ssize_t got = recv(fd, data, most < sizeof(data) ? most : sizeof(data), MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	/* wrong bytes are wrong, though the rest never came */
	if (got <= 0) {
		answers->mixed += answers->wrong;
		return -1;
	}
	if (llhttp_execute(&answers->llhttp, data, (size_t)got) == HPE_OK)
		return 1;
	answers->mixed++;
	return -1;
}

int soak_connect(uint16_t port, int receive_bytes)
{
	const struct sockaddr_in there = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int yes = 1;

	if (fd < 0)
		return -1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	if (receive_bytes)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
	if (!connect(fd, (const struct sockaddr *)&there, sizeof(there)) || errno == EINPROGRESS)
		return fd;
	close(fd);
	return -1;
}

/* ---- visits ---- */

static void leave(struct soak_visit *visit)
{
	if (visit->state == SOAK_AWAY)
		return;
	press_loop_remove(visit->client->loop, &visit->watch);
	close(visit->watch.fd);
	visit->state = SOAK_AWAY;
}

/* A node that was killed ends its connections; none else does. */
static void on_end(struct soak_visit *visit)
{
	struct soak_client *client = visit->client;
	const bool killed = visit->life < visit->site->life || visit->site->killed;
	const bool asked = visit->state == SOAK_ASKED;

	if (asked) {
		client->outstanding--;
		client->mixed += visit->answers.mixed;
		*(killed ? &client->resets_killed : &client->resets_others) += 1;
	}
	if (!killed)
		soak_trouble(client->restart_test, "node %u ended a connection, %s: %s", visit->site->number,
			     asked ? "and owed an answer" : "of a client that asked nothing",
			     visit->answers.mixed ? "what it sent was no HTTP" : strerror(errno));
	leave(visit);
}

static void ask(struct soak_visit *visit)
{
	struct soak_client *client = visit->client;
	char text[ASKED_BYTES];
	ssize_t sent;
	int bytes;

	visit->answers.file = press_popularity_next(&client->popularity);
	bytes = snprintf(text, sizeof(text), "GET /f/%u HTTP/1.1\r\nHost: soak\r\n\r\n", visit->answers.file);
	visit->state = SOAK_ASKED;
	visit->asked_ns = drv_now_ns();
	client->requests++;
	client->outstanding++;
	sent = send(visit->watch.fd, text, (size_t)bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
	/* an end is seen by whoever reads */
	if (sent >= 0 && sent != bytes)
		soak_trouble(client->restart_test, "the kernel took a part of a request");
}

static void on_idle(struct soak_visit *visit)
{
	visit->state = SOAK_IDLE;
	if (visit->client->requests < visit->client->may)
		ask(visit);
}

static void on_answer(struct soak_visit *visit)
{
	struct soak_client *client = visit->client;
	struct soak_answers *answers = &visit->answers;

	client->outstanding--;
	client->answers += answers->right;
	client->mixed += answers->mixed;
	if (answers->errors)
		client->statuses[answers->status < SOAK_STATUS_MAX ? answers->status : 0]++;
	else
		client->answered_bytes += client->files->bytes[answers->file];
	answers->right = answers->mixed = answers->errors = 0;
	on_idle(visit);
}

static void on_ready(struct press_watch *watch, uint32_t events)
{
	struct soak_visit *visit = (struct soak_visit *)watch;
	struct soak_answers *answers = &visit->answers;
	int taken;

	if (visit->state == SOAK_CONNECTING) {
		if (events & (EPOLLERR | EPOLLHUP)) {
			on_end(visit);
			return;
		}
		press_loop_change(visit->client->loop, watch, EPOLLIN);
		on_idle(visit);
		return;
	}
	while ((taken = soak_answers_take(answers, watch->fd, READ_BYTES)) > 0)
		if (answers->right + answers->mixed + answers->errors) {
			on_answer(visit);
			return;
		}
	if (taken < 0)
		on_end(visit);
}

void soak_client_there(struct soak_client *client, struct soak_site *site)
{
	for (uint32_t i = site->number - 1; i < client->visits_count;
	     i += client->restart_test->plan->nodes) {
		struct soak_visit *visit = &client->visits[i];

		/* of its former life, if that has not been seen yet */
		if (visit->state != SOAK_AWAY)
			on_end(visit);
		visit->client = client;
		visit->site = site;
		visit->life = site->life;
		visit->watch = (struct press_watch){.fd = soak_connect(site->port, 0), .ready = on_ready};
		soak_answers_start(&visit->answers, client->files, 0, 0);
		if (visit->watch.fd < 0 || press_loop_add(client->loop, &visit->watch, EPOLLOUT)) {
			if (!site->killed)
				soak_trouble(client->restart_test, "cannot connect to node %u: %s",
					     site->number, strerror(errno));
			if (visit->watch.fd >= 0)
				close(visit->watch.fd);
			continue;
		}
		visit->state = SOAK_CONNECTING;
	}
}

void soak_client_go(struct soak_client *client, uint64_t may)
{
	client->may = may;
	for (uint32_t i = 0; i < client->visits_count; i++)
		if (client->visits[i].state == SOAK_IDLE)
			on_idle(&client->visits[i]);
}

void soak_client_tick(struct soak_client *client, uint64_t now_ns)
{
	for (uint32_t i = 0; i < client->visits_count; i++) {
		const struct soak_visit *visit = &client->visits[i];

		if (visit->state == SOAK_ASKED && now_ns > visit->asked_ns + STUCK_NS)
			soak_trouble(client->restart_test, "node %u has owed an answer for 30 s, for file %u",
				     visit->site->number, visit->answers.file);
	}
}

uint32_t soak_client_connections(const struct soak_client *client, const struct soak_site *site)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < client->visits_count; i++)
		count += client->visits[i].state != SOAK_AWAY && client->visits[i].site == site;
	return count;
}

int soak_client_start(struct soak_client *client)
{
	const struct soak_plan *plan = client->restart_test->plan;

	client->visits_count = plan->nodes * plan->connections;
	client->visits = calloc(client->visits_count, sizeof(*client->visits));
	return client->visits && !press_popularity_start(&client->popularity, client->files->count, ALPHA,
							 drv_mix(plan->seed, 1))
		       ? 0
		       : -1;
}

void soak_client_end(struct soak_client *client)
{
	for (uint32_t i = 0; client->visits && i < client->visits_count; i++)
		leave(&client->visits[i]);
	free(client->visits);
	press_popularity_free(&client->popularity);
}
