/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/soak/malformed_clients.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "measure/clock.h"

#define TEXT_ROOM    24000u
#define NAME_BYTES   10000
#define HEADER_BYTES 20000
#define PIPELINED    16u
#define LARGE_ONES   6u
#define NEVER_READ   8u
#define SMALL_WINDOW 4096
#define STEP_NS      UINT64_C(2000000)
#define SIP_BYTES    4096u
#define ALL_BYTES    65536u
#define PATIENCE_NS  UINT64_C(60000000000)
#define RETRY_NS     UINT64_C(13000000000)
#define RUSH_NS      UINT64_C(60000000000)
#define HOST         " HTTP/1.1\r\nHost: soak\r\n"

const char *const soak_malformed_client_names[] = {
	[SOAK_PATH] = "path",
	[SOAK_LONG_NAME] = "long_name",
	[SOAK_LONG_HEADER] = "long_header",
	[SOAK_MALFORMED] = "malformed",
	[SOAK_RANGE] = "range",
	[SOAK_METHOD] = "method",
	[SOAK_VERSION] = "version",
	[SOAK_PIPELINED] = "pipelined",
	[SOAK_HALF_CLOSED] = "half_closed",
	[SOAK_SLOW_WRITER] = "slow_writer",
	[SOAK_SLOW_READER] = "slow_reader",
	[SOAK_GONE_EARLY] = "gone_early",
	[SOAK_GONE_MIDWAY] = "gone_midway",
	[SOAK_NEVER_READS] = "never_reads",
	[SOAK_NEVER_ENDS] = "never_ends",
};

/* What becomes of them: so many files, then, where it is not 0, an error of that status. */
static const struct expected {
	uint32_t files;
	unsigned status;
} expected[SOAK_MALFORMED_CLIENT_KINDS] = {
	[SOAK_PATH] = {0, 404},
	[SOAK_LONG_NAME] = {0, 414},
	[SOAK_LONG_HEADER] = {0, 431},
	[SOAK_MALFORMED] = {0, 400},
	[SOAK_RANGE] = {0, 416},
	[SOAK_METHOD] = {0, 405},
	[SOAK_VERSION] = {0, 505},
	[SOAK_PIPELINED] = {PIPELINED, 0},
	[SOAK_HALF_CLOSED] = {1, 0},
	[SOAK_SLOW_WRITER] = {1, 0},
	[SOAK_SLOW_READER] = {LARGE_ONES, 0},
	[SOAK_NEVER_ENDS] = {0, 408},
};

/* ---- what they say ---- */

static const char *const paths[] = {
	"/../../../../etc/passwd",
	"/f/../f/1",
	"/f/../../f/1",
	"/f/%2e%2e/f/1",
	"/./f/1",
	"//f/1",
	"/f/1/..",
	"/f/..%2f1",
	"/f/-1",
	"/f/01",
	"/f/4294967297",
	"/f/",
	"/f/1?x=../",
	"/f/18446744073709551617",
};

static const char *const malformed[] = {
	"\x01\x02\xff\xfe this is no HTTP\r\n\r\n",
	"GET\r\n\r\n",
	"GET /f/1 HTTP/1.1\r\n\r\n",
	"GET /f/1 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
	"GET /f/1 HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n",
	"GET /f/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
	"GET /f/1 HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
	"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS hello\r\n\r\n",
};

static const char *const methods[] = {"POST", "DELETE", "OPTIONS", "PUT"};

#define PICK(list, number) (list)[(number) % (sizeof(list) / sizeof((list)[0]))]

static size_t fill(char *out, const char *before, char letter, int count, const char *after)
{
	const size_t head = (size_t)sprintf(out, "%s", before);

	memset(out + head, letter, (size_t)count);
	return head + (size_t)count + (size_t)sprintf(out + head + count, "%s", after);
}

static size_t ask_for(char *out, uint32_t file, uint32_t step, uint32_t count)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < count; i++)
		bytes += (size_t)sprintf(out + bytes, "GET /f/%u" HOST "\r\n", file + i * step);
	return bytes;
}

static size_t write_text(const struct soak_malformed_client *malformed_client, char *out)
{
	const struct soak_malformed_clients *all = malformed_client->all;
	const uint32_t number = (uint32_t)(all->began / SOAK_MALFORMED_CLIENT_KINDS), largest = all->largest;

	switch (malformed_client->kind) {
	case SOAK_PATH: return (size_t)sprintf(out, "GET %s" HOST "\r\n", PICK(paths, number));
	case SOAK_LONG_NAME: return fill(out, "GET /f/", 'a', NAME_BYTES, HOST "\r\n");
	case SOAK_LONG_HEADER: return fill(out, "GET /f/1" HOST "X: ", 'a', HEADER_BYTES, "\r\n\r\n");
	case SOAK_MALFORMED: return (size_t)sprintf(out, "%s", PICK(malformed, number));
	case SOAK_RANGE: return (size_t)sprintf(out, "GET /f/1" HOST "Range: bytes=1-2\r\n\r\n");
	case SOAK_METHOD: return (size_t)sprintf(out, "%s /f/1" HOST "\r\n", PICK(methods, number));
	case SOAK_VERSION: return (size_t)sprintf(out, "GET /f/1 HTTP/%d.0\r\nHost: a\r\n\r\n", 2);
	case SOAK_PIPELINED: return ask_for(out, malformed_client->answers.file, 1, PIPELINED);
	case SOAK_SLOW_READER:
	case SOAK_GONE_MIDWAY:
	case SOAK_NEVER_READS:
		return ask_for(out, largest, 0,
			       LARGE_ONES * (malformed_client->kind == SOAK_NEVER_READS ? NEVER_READ : 1));
	case SOAK_NEVER_ENDS: return (size_t)sprintf(out, "GET /f/1" HOST "X: ");
	default: return ask_for(out, malformed_client->answers.file, 1, 1);
	}
}

/* ---- what becomes of them ---- */

static void leave(struct soak_malformed_client *malformed_client)
{
	press_loop_remove(malformed_client->all->loop, &malformed_client->watch);
	close(malformed_client->watch.fd);
	free(malformed_client->text);
	malformed_client->text = NULL;
	malformed_client->used = false;
}

static bool is_good(const struct soak_malformed_client *malformed_client)
{
	const struct soak_answers *answers = &malformed_client->answers;
	const struct expected *wanted = &expected[malformed_client->kind];

	if (answers->mixed)
		return false;
	if (malformed_client->kind == SOAK_GONE_EARLY || malformed_client->kind == SOAK_GONE_MIDWAY)
		return true;
	/* the node has ended it, having waited as long as it does: only what the kernels held is there */
	if (malformed_client->kind == SOAK_NEVER_READS)
		return answers->right < LARGE_ONES * NEVER_READ && !answers->errors;
	/* a helper's queue that is full is a reason, whatever is asked for */
	if (!wanted->status)
		return answers->right + answers->errors == wanted->files &&
		       (!answers->errors || answers->status == 503);
	return !answers->right && answers->errors == 1 && answers->status == wanted->status;
}

static void finish(struct soak_malformed_client *malformed_client)
{
	const bool killed =
		malformed_client->life < malformed_client->site->life || malformed_client->site->killed;
	struct soak_malformed_client_count *count = &malformed_client->all->counts[malformed_client->kind];
	const struct soak_answers *answers = &malformed_client->answers;

	if (answers->errors)
		count->statuses[answers->status < SOAK_STATUS_MAX ? answers->status : 0]++;
	else if (answers->right)
		count->statuses[200]++;
	if (is_good(malformed_client)) {
		count->good++;
	} else if (killed && !answers->mixed) {
		count->cut++;
	} else {
		count->bad++;
		soak_trouble(malformed_client->all->restart_test,
			     "a bad client (%s) of node %u got %u files, %u wrong ones, %u errors, the last "
			     "status %u",
			     soak_malformed_client_names[malformed_client->kind],
			     malformed_client->site->number, answers->right, answers->mixed, answers->errors,
			     answers->status);
	}
	leave(malformed_client);
}

/* All that it can be told has been told: no more comes, wherever the connection stays open. */
static bool is_told(const struct soak_malformed_client *malformed_client)
{
	const struct soak_answers *answers = &malformed_client->answers;
	const uint32_t complete = answers->right + answers->mixed + answers->errors;

	return complete >= expected[malformed_client->kind].files +
				   (expected[malformed_client->kind].status != 0) &&
	       complete > 0;
}

static void take(struct soak_malformed_client *malformed_client)
{
	const bool sips =
		malformed_client->kind == SOAK_SLOW_READER || malformed_client->kind == SOAK_GONE_MIDWAY;
	int taken;

	/* at last it looks at what became of it */
	if (malformed_client->kind == SOAK_NEVER_READS &&
	    drv_now_ns() < malformed_client->begun_ns + RETRY_NS)
		return;
	taken = soak_answers_take(&malformed_client->answers, malformed_client->watch.fd,
				  sips ? SIP_BYTES : ALL_BYTES);
	if (taken > 0 && malformed_client->kind == SOAK_GONE_MIDWAY) {
		/* with what it has not read in its buffers, so that the node hears a reset */
		finish(malformed_client);
		return;
	}
	/* who has said its last word waits for the end, too */
	if (taken < 0 ||
	    (is_told(malformed_client) && malformed_client->kind != SOAK_HALF_CLOSED &&
	     malformed_client->kind != SOAK_NEVER_READS) ||
	    malformed_client->answers.right == LARGE_ONES * NEVER_READ)
		finish(malformed_client);
}

static void send_more(struct soak_malformed_client *malformed_client)
{
	const size_t left = malformed_client->bytes - malformed_client->sent;
	const size_t bytes = malformed_client->kind == SOAK_SLOW_WRITER ? 1 : left;
	const ssize_t sent = send(malformed_client->watch.fd, malformed_client->text + malformed_client->sent,
				  bytes, MSG_NOSIGNAL | MSG_DONTWAIT);

	/* an end is seen by whoever reads */
	malformed_client->sent = sent > 0          ? malformed_client->sent + (size_t)sent
				 : errno == EAGAIN ? malformed_client->sent
						   : malformed_client->bytes;
	if (malformed_client->sent < malformed_client->bytes)
		return;
	if (malformed_client->kind == SOAK_HALF_CLOSED)
		shutdown(malformed_client->watch.fd, SHUT_WR);
	if (malformed_client->kind == SOAK_GONE_EARLY)
		finish(malformed_client);
}

static void on_ready(struct press_watch *watch, uint32_t events)
{
	struct soak_malformed_client *malformed_client = (struct soak_malformed_client *)watch;

	malformed_client->ready = true;
	(void)events;
	/* looked at in every tick from now on */
	press_loop_change(malformed_client->all->loop, watch, EPOLLET);
}

static struct soak_site *pick_site(struct soak_malformed_clients *malformed_clients)
{
	for (uint32_t i = 0; i < malformed_clients->restart_test->plan->nodes; i++) {
		struct soak_site *site = &malformed_clients->restart_test->sites[1 + malformed_clients->next];

		malformed_clients->next =
			(malformed_clients->next + 1) % malformed_clients->restart_test->plan->nodes;
		if (site->state == SOAK_THERE && !site->killed)
			return site;
	}
	return NULL;
}

void soak_malformed_clients_send(struct soak_malformed_clients *malformed_clients)
{
	const uint32_t kinds =
		malformed_clients->restart_test->plan->patient ? SOAK_MALFORMED_CLIENT_KINDS : SOAK_PATIENT;
	struct soak_site *site = pick_site(malformed_clients);
	struct soak_malformed_client *malformed_client = malformed_clients->malformed_clients;
	uint32_t step, file;

	while (malformed_client < malformed_clients->malformed_clients + SOAK_MALFORMED_CLIENTS_MAX &&
	       malformed_client->used)
		malformed_client++;
	if (!site || malformed_client == malformed_clients->malformed_clients + SOAK_MALFORMED_CLIENTS_MAX)
		return;
	*malformed_client = (struct soak_malformed_client){
		.all = malformed_clients,
		.site = site,
		.life = site->life,
		.kind = (enum soak_malformed_client_kind)(malformed_clients->began % kinds),
		.begun_ns = drv_now_ns()};
	step = malformed_client->kind == SOAK_PIPELINED;
	file = malformed_client->kind == SOAK_SLOW_READER || malformed_client->kind == SOAK_GONE_MIDWAY ||
			       malformed_client->kind == SOAK_NEVER_READS
		       ? malformed_clients->largest
		       : (uint32_t)(malformed_clients->began * 7) %
				 (malformed_clients->files->count - PIPELINED);
	soak_answers_start(&malformed_client->answers, malformed_clients->files, file, step);
	malformed_client->text = malloc(TEXT_ROOM);
	malformed_client->watch = (struct press_watch){
		.fd = soak_connect(site->port, malformed_client->kind >= SOAK_SLOW_READER ? SMALL_WINDOW : 0),
		.ready = on_ready};
	if (!malformed_client->text || malformed_client->watch.fd < 0 ||
	    press_loop_add(malformed_clients->loop, &malformed_client->watch, EPOLLOUT)) {
		if (!site->killed)
			soak_trouble(malformed_clients->restart_test, "a bad client cannot connect: %s",
				     strerror(errno));
		free(malformed_client->text);
		if (malformed_client->watch.fd >= 0)
			close(malformed_client->watch.fd);
		return;
	}
	malformed_client->bytes = write_text(malformed_client, malformed_client->text);
	malformed_client->used = true;
	malformed_clients->counts[malformed_client->kind].came++;
	malformed_clients->began++;
}

void soak_malformed_clients_tick(struct soak_malformed_clients *malformed_clients, uint64_t now_ns)
{
	for (uint32_t i = 0; i < SOAK_MALFORMED_CLIENTS_MAX; i++) {
		struct soak_malformed_client *malformed_client = &malformed_clients->malformed_clients[i];

		if (!malformed_client->used || !malformed_client->ready || now_ns < malformed_client->step_ns)
			continue;
		malformed_client->step_ns = now_ns + STEP_NS;
		if (now_ns > malformed_client->begun_ns + PATIENCE_NS)
			finish(malformed_client);
		else if (malformed_client->sent < malformed_client->bytes)
			send_more(malformed_client);
		else
			take(malformed_client);
	}
}

uint32_t soak_malformed_clients_here(const struct soak_malformed_clients *malformed_clients)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < SOAK_MALFORMED_CLIENTS_MAX; i++)
		count += malformed_clients->malformed_clients[i].used;
	return count;
}

void soak_malformed_clients_start(struct soak_malformed_clients *malformed_clients)
{
	for (uint32_t i = 0; i < malformed_clients->files->count; i++)
		if (malformed_clients->files->bytes[i] >
		    malformed_clients->files->bytes[malformed_clients->largest])
			malformed_clients->largest = i;
}

void soak_malformed_clients_end(struct soak_malformed_clients *malformed_clients)
{
	for (uint32_t i = 0; i < SOAK_MALFORMED_CLIENTS_MAX; i++)
		if (malformed_clients->malformed_clients[i].used)
			leave(&malformed_clients->malformed_clients[i]);
}

/* ---- a full queue ---- */

struct one {
	struct press_watch watch;
	bool open, asked;
	struct soak_answers answers;
	struct press_loop *loop;
	struct soak_rush *rush;
};

static void end_one(struct one *one)
{
	const struct soak_answers *answers = &one->answers;

	if (answers->right && !answers->mixed)
		one->rush->right++;
	else if (answers->errors && answers->status == 503 && !answers->mixed)
		one->rush->unavailable++;
	else
		one->rush->bad++;
	press_loop_remove(one->loop, &one->watch);
	close(one->watch.fd);
	one->open = false;
}

static void on_one(struct press_watch *watch, uint32_t events)
{
	struct one *one = (struct one *)watch;
	int taken;

	(void)events;
	if (!one->asked) {
		char text[64];
		const size_t bytes = ask_for(text, one->answers.file, 0, 1);

		one->asked = true;
		press_loop_change(one->loop, watch, EPOLLIN);
		if (send(watch->fd, text, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)bytes)
			return;
	}
	while ((taken = soak_answers_take(&one->answers, watch->fd, ALL_BYTES)) > 0)
		;
	if (taken < 0 || one->answers.right + one->answers.errors + one->answers.mixed)
		end_one(one);
}

struct soak_rush soak_rush(struct soak_site *site, struct press_loop *loop, const struct press_files *files,
			   uint32_t clients, void (*turn)(void *arg), void *arg)
{
	const uint64_t until_ns = drv_now_ns() + RUSH_NS;
	struct one *ones = calloc(clients, sizeof(*ones));
	struct soak_rush rush = {0};

	for (uint32_t i = 0; ones && i < clients; i++) {
		struct one *one = &ones[i];

		/* connected in any case: its request goes when all are */
		one->watch = (struct press_watch){.fd = soak_connect(site->port, 0), .ready = on_one};
		one->loop = loop;
		one->rush = &rush;
		soak_answers_start(&one->answers, files, files->count - 1 - i, 0);
		rush.asked++;
		one->open = one->watch.fd >= 0 && !press_loop_add(loop, &one->watch, EPOLLOUT);
		rush.bad += !one->open;
	}
	while (rush.right + rush.unavailable + rush.bad < rush.asked && drv_now_ns() < until_ns)
		turn(arg);
	for (uint32_t i = 0; ones && i < clients; i++)
		if (ones[i].open)
			end_one(&ones[i]);
	free(ones);
	return rush;
}
