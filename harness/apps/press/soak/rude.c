/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/soak/rude.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "measure/clock.h"

#define TEXT_ROOM     24000u
#define NAME_BYTES    10000
#define HEADER_BYTES  20000
#define PIPELINED     16u
#define LARGE_ONES    6u
#define NEVER_READ    8u
#define SMALL_WINDOW  4096
#define STEP_NS       UINT64_C(2000000)
#define SIP_BYTES     4096u
#define ALL_BYTES     65536u
#define PATIENCE_NS   UINT64_C(60000000000)
#define LOOK_AGAIN_NS UINT64_C(13000000000)
#define RUSH_NS       UINT64_C(60000000000)
#define HOST          " HTTP/1.1\r\nHost: soak\r\n"

const char *const soak_rude_names[] = {
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
} expected[SOAK_RUDE_KINDS] = {
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

static size_t write_text(const struct soak_rude *rude, char *out)
{
	const struct soak_rudes *all = rude->all;
	const uint32_t number = (uint32_t)(all->began / SOAK_RUDE_KINDS), largest = all->largest;

	switch (rude->kind) {
	case SOAK_PATH: return (size_t)sprintf(out, "GET %s" HOST "\r\n", PICK(paths, number));
	case SOAK_LONG_NAME: return fill(out, "GET /f/", 'a', NAME_BYTES, HOST "\r\n");
	case SOAK_LONG_HEADER: return fill(out, "GET /f/1" HOST "X: ", 'a', HEADER_BYTES, "\r\n\r\n");
	case SOAK_MALFORMED: return (size_t)sprintf(out, "%s", PICK(malformed, number));
	case SOAK_RANGE: return (size_t)sprintf(out, "GET /f/1" HOST "Range: bytes=1-2\r\n\r\n");
	case SOAK_METHOD: return (size_t)sprintf(out, "%s /f/1" HOST "\r\n", PICK(methods, number));
	case SOAK_VERSION: return (size_t)sprintf(out, "GET /f/1 HTTP/%d.0\r\nHost: a\r\n\r\n", 2);
	case SOAK_PIPELINED: return ask_for(out, rude->answers.file, 1, PIPELINED);
	case SOAK_SLOW_READER:
	case SOAK_GONE_MIDWAY:
	case SOAK_NEVER_READS:
		return ask_for(out, largest, 0,
			       LARGE_ONES * (rude->kind == SOAK_NEVER_READS ? NEVER_READ : 1));
	case SOAK_NEVER_ENDS: return (size_t)sprintf(out, "GET /f/1" HOST "X: ");
	default: return ask_for(out, rude->answers.file, 1, 1);
	}
}

/* ---- what becomes of them ---- */

static void leave(struct soak_rude *rude)
{
	press_loop_remove(rude->all->loop, &rude->watch);
	close(rude->watch.fd);
	free(rude->text);
	rude->text = NULL;
	rude->used = false;
}

static bool is_good(const struct soak_rude *rude)
{
	const struct soak_answers *answers = &rude->answers;
	const struct expected *wanted = &expected[rude->kind];

	if (answers->mixed)
		return false;
	if (rude->kind == SOAK_GONE_EARLY || rude->kind == SOAK_GONE_MIDWAY)
		return true;
	/* the node has ended it, having waited as long as it does: only what the kernels held is there */
	if (rude->kind == SOAK_NEVER_READS)
		return answers->right < LARGE_ONES * NEVER_READ && !answers->errors;
	/* a helper's queue that is full is a reason, whatever is asked for */
	if (!wanted->status)
		return answers->right + answers->errors == wanted->files &&
		       (!answers->errors || answers->status == 503);
	return !answers->right && answers->errors == 1 && answers->status == wanted->status;
}

static void finish(struct soak_rude *rude)
{
	const bool killed = rude->life < rude->site->life || rude->site->killed;
	struct soak_rude_count *count = &rude->all->counts[rude->kind];
	const struct soak_answers *answers = &rude->answers;

	if (answers->errors)
		count->statuses[answers->status < SOAK_STATUS_MAX ? answers->status : 0]++;
	else if (answers->right)
		count->statuses[200]++;
	if (is_good(rude)) {
		count->good++;
	} else if (killed && !answers->mixed) {
		count->cut++;
	} else {
		count->bad++;
		soak_trouble(rude->all->lives,
			     "a bad client (%s) of node %u got %u files, %u wrong ones, %u errors, the last "
			     "status %u",
			     soak_rude_names[rude->kind], rude->site->number, answers->right, answers->mixed,
			     answers->errors, answers->status);
	}
	leave(rude);
}

/* All that it can be told has been told: no more comes, wherever the connection stays open. */
static bool is_told(const struct soak_rude *rude)
{
	const struct soak_answers *answers = &rude->answers;
	const uint32_t told = answers->right + answers->mixed + answers->errors;

	return told >= expected[rude->kind].files + (expected[rude->kind].status != 0) && told > 0;
}

static void take(struct soak_rude *rude)
{
	const bool sips = rude->kind == SOAK_SLOW_READER || rude->kind == SOAK_GONE_MIDWAY;
	int taken;

	/* at last it looks at what became of it */
	if (rude->kind == SOAK_NEVER_READS && drv_now_ns() < rude->begun_ns + LOOK_AGAIN_NS)
		return;
	taken = soak_answers_take(&rude->answers, rude->watch.fd, sips ? SIP_BYTES : ALL_BYTES);
	if (taken > 0 && rude->kind == SOAK_GONE_MIDWAY) {
		/* with what it has not read in its buffers, so that the node hears a reset */
		finish(rude);
		return;
	}
	/* who has said its last word waits for the end, too */
	if (taken < 0 ||
	    (is_told(rude) && rude->kind != SOAK_HALF_CLOSED && rude->kind != SOAK_NEVER_READS) ||
	    rude->answers.right == LARGE_ONES * NEVER_READ)
		finish(rude);
}

static void say(struct soak_rude *rude)
{
	const size_t left = rude->bytes - rude->sent;
	const size_t bytes = rude->kind == SOAK_SLOW_WRITER ? 1 : left;
	const ssize_t sent =
		send(rude->watch.fd, rude->text + rude->sent, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);

	/* an end is seen by whoever reads */
	rude->sent = sent > 0 ? rude->sent + (size_t)sent : errno == EAGAIN ? rude->sent : rude->bytes;
	if (rude->sent < rude->bytes)
		return;
	if (rude->kind == SOAK_HALF_CLOSED)
		shutdown(rude->watch.fd, SHUT_WR);
	if (rude->kind == SOAK_GONE_EARLY)
		finish(rude);
}

static void on_ready(struct press_watch *watch, uint32_t events)
{
	struct soak_rude *rude = (struct soak_rude *)watch;

	rude->ready = true;
	(void)events;
	/* looked at in every tick from now on */
	press_loop_change(rude->all->loop, watch, EPOLLET);
}

static struct soak_site *pick_site(struct soak_rudes *rudes)
{
	for (uint32_t i = 0; i < rudes->lives->plan->nodes; i++) {
		struct soak_site *site = &rudes->lives->sites[1 + rudes->next];

		rudes->next = (rudes->next + 1) % rudes->lives->plan->nodes;
		if (site->state == SOAK_THERE && !site->killed)
			return site;
	}
	return NULL;
}

void soak_rudes_send(struct soak_rudes *rudes)
{
	const uint32_t kinds = rudes->lives->plan->patient ? SOAK_RUDE_KINDS : SOAK_PATIENT;
	struct soak_site *site = pick_site(rudes);
	struct soak_rude *rude = rudes->rudes;
	uint32_t step, file;

	while (rude < rudes->rudes + SOAK_RUDES_MAX && rude->used)
		rude++;
	if (!site || rude == rudes->rudes + SOAK_RUDES_MAX)
		return;
	*rude = (struct soak_rude){.all = rudes,
				   .site = site,
				   .life = site->life,
				   .kind = (enum soak_rude_kind)(rudes->began % kinds),
				   .begun_ns = drv_now_ns()};
	step = rude->kind == SOAK_PIPELINED;
	file = rude->kind == SOAK_SLOW_READER || rude->kind == SOAK_GONE_MIDWAY ||
			       rude->kind == SOAK_NEVER_READS
		       ? rudes->largest
		       : (uint32_t)(rudes->began * 7) % (rudes->files->count - PIPELINED);
	soak_answers_start(&rude->answers, rudes->files, file, step);
	rude->text = malloc(TEXT_ROOM);
	rude->watch = (struct press_watch){
		.fd = soak_connect(site->port, rude->kind >= SOAK_SLOW_READER ? SMALL_WINDOW : 0),
		.ready = on_ready};
	if (!rude->text || rude->watch.fd < 0 || press_loop_add(rudes->loop, &rude->watch, EPOLLOUT)) {
		if (!site->killed)
			soak_trouble(rudes->lives, "a bad client cannot connect: %s", strerror(errno));
		free(rude->text);
		if (rude->watch.fd >= 0)
			close(rude->watch.fd);
		return;
	}
	rude->bytes = write_text(rude, rude->text);
	rude->used = true;
	rudes->counts[rude->kind].came++;
	rudes->began++;
}

void soak_rudes_tick(struct soak_rudes *rudes, uint64_t now_ns)
{
	for (uint32_t i = 0; i < SOAK_RUDES_MAX; i++) {
		struct soak_rude *rude = &rudes->rudes[i];

		if (!rude->used || !rude->ready || now_ns < rude->step_ns)
			continue;
		rude->step_ns = now_ns + STEP_NS;
		if (now_ns > rude->begun_ns + PATIENCE_NS)
			finish(rude);
		else if (rude->sent < rude->bytes)
			say(rude);
		else
			take(rude);
	}
}

uint32_t soak_rudes_here(const struct soak_rudes *rudes)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < SOAK_RUDES_MAX; i++)
		count += rudes->rudes[i].used;
	return count;
}

void soak_rudes_start(struct soak_rudes *rudes)
{
	for (uint32_t i = 0; i < rudes->files->count; i++)
		if (rudes->files->bytes[i] > rudes->files->bytes[rudes->largest])
			rudes->largest = i;
}

void soak_rudes_end(struct soak_rudes *rudes)
{
	for (uint32_t i = 0; i < SOAK_RUDES_MAX; i++)
		if (rudes->rudes[i].used)
			leave(&rudes->rudes[i]);
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
