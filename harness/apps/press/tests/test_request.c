/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading requests: good ones and bad ones, whole and in all pieces, in a row; and what a target names. */
#include <stdlib.h>
#include <string.h>

#include "press/http/request.h"
#include "tap.h"

#define HOST "Host: a\r\n"

static const struct good {
	const char *text, *target;
	bool head_only, keep_alive;
} good[] = {
	{"GET /f/1 HTTP/1.1\r\n" HOST "\r\n", "/f/1", false, true},
	{"HEAD /f/1 HTTP/1.1\r\n" HOST "\r\n", "/f/1", true, true},
	{"GET /f/1 HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", "/f/1", false, false},
	{"GET /f/1 HTTP/1.0\r\n\r\n", "/f/1", false, false},
	{"GET /f/1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "/f/1", false, true},
	{"GET /../../etc/passwd HTTP/1.1\r\nhOsT: a\r\nX-Y: z\r\n\r\n", "/../../etc/passwd", false, true},
	{"GET /a?b=c HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", "/a?b=c", false, true},
};

static const struct bad {
	const char *text;
	unsigned status;
} bad[] = {
	{"GET /f/1 HTTP/1.1\r\n\r\n", 400},
	{"GET /f/1 HTTP/1.1\r\n" HOST HOST "\r\n", 400},
	{"GET /f/1 HTTP/1.1\r\n" HOST "Range: bytes=0-1\r\n\r\n", 416},
	{"POST /f/1 HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nab", 405},
	{"GET /f/1 HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nab", 400},
	{"GET /f/1 HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
	{"DELETE /f/1 HTTP/1.1\r\n" HOST "\r\n", 405},
	{"GET /f/1 HTTP/2.0\r\n" HOST "\r\n", 505},
	{"GET /f/1 HTTP/1.2\r\n" HOST "\r\n", 505},
	{"get /f/1 HTTP/1.1\r\n" HOST "\r\n", 400},
	{"\x16\x03\x01\x02", 400},
	{"nonsense\r\n\r\n", 400},
	{"GET  HTTP/1.1\r\n" HOST "\r\n", 400},
	{"GET /f/1 HTTP/1.1\r\nHost\r\n\r\n", 400},
	{"GET /f/1 HTTP/1.1\r\n" HOST "Content-Length: x\r\n\r\n", 400},
	{"GET /f/1 HTTP/1.1\r\n" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
	{"GET /f/1 HTTP/1.1\r\n" HOST "A: b\x01\x02\r\n\r\n", 400},
};

/* Feeds a text in pieces of so many bytes; the last result. `used_out`: bytes taken in all. */
static enum press_parsed feed(struct press_parser *parser, const char *text, size_t bytes, size_t piece,
			      size_t *used_out)
{
	enum press_parsed parsed = PRESS_PARSED_MORE;
	size_t at = 0;

	while (at < bytes && parsed == PRESS_PARSED_MORE) {
		const size_t length = bytes - at < piece ? bytes - at : piece;
		/* of its own, so that reading over its end is seen */
		char *copy = malloc(length);
		size_t used;

		memcpy(copy, text + at, length);
		parsed = press_parse(parser, copy, length, &used);
		free(copy);
		at += used;
	}
	*used_out = at;
	return parsed;
}

static void check_good(const struct good *one)
{
	const size_t bytes = strlen(one->text);
	bool all = true;

	for (size_t piece = 1; piece <= bytes; piece++) {
		struct press_parser parser;
		size_t used;

		press_parser_start(&parser);
		all &= feed(&parser, one->text, bytes, piece, &used) == PRESS_PARSED_REQUEST &&
		       used == bytes && parser.request.status == 200 &&
		       !strcmp(parser.request.target, one->target) &&
		       parser.request.head_only == one->head_only &&
		       parser.request.keep_alive == one->keep_alive;
	}
	tap_ok(all, "good request %zu is read, in all pieces: %s", (size_t)(one - good), one->target);
}

static void check_bad(const struct bad *one)
{
	const size_t bytes = strlen(one->text);
	unsigned wrong = 0;

	for (size_t piece = 1; piece <= bytes; piece++) {
		struct press_parser parser;
		size_t used;
		enum press_parsed parsed;

		press_parser_start(&parser);
		parsed = feed(&parser, one->text, bytes, piece, &used);
		if (parsed == PRESS_PARSED_MORE || parser.request.status != one->status)
			wrong = parsed == PRESS_PARSED_MORE ? 1 : parser.request.status;
	}
	tap_ok(!wrong, "bad request %zu is answered by %u, in all pieces (%u)", (size_t)(one - bad),
	       one->status, wrong);
}

static void check_row(void)
{
	char text[1024] = "";
	struct press_parser parser;
	size_t at = 0, used;
	bool all = true;

	for (size_t i = 0; i < 5; i++)
		strcat(text, good[i % 2].text);
	press_parser_start(&parser);
	for (size_t i = 0; i < 5; i++) {
		all &= press_parse(&parser, text + at, strlen(text) - at, &used) == PRESS_PARSED_REQUEST &&
		       used == strlen(good[i % 2].text) && parser.request.head_only == good[i % 2].head_only;
		at += used;
	}
	tap_ok(all && at == strlen(text), "five requests in a row are read one by one");
	tap_ok(press_parse(&parser, "GET", 3, &used) == PRESS_PARSED_MORE && press_parser_busy(&parser),
	       "the beginning of a sixth is under way");
}

static void check_long(void)
{
	static char text[3 * PRESS_REQUEST_BYTES];
	struct press_parser parser;
	size_t used;

	memset(text, 'a', sizeof(text) - 1);
	memcpy(text, "GET /", 5);
	press_parser_start(&parser);
	tap_ok(feed(&parser, text, sizeof(text) - 1, 700, &used) == PRESS_PARSED_BAD &&
		       parser.request.status == 414 && used < 2 * PRESS_TARGET_BYTES,
	       "a target without end is refused in good time, 414");
	memset(text, 'a', sizeof(text) - 1);
	memcpy(text, "GET / HTTP/1.1\r\nb: ", 19);
	press_parser_start(&parser);
	tap_ok(feed(&parser, text, sizeof(text) - 1, 700, &used) == PRESS_PARSED_BAD &&
		       parser.request.status == 431 && used < 2 * PRESS_REQUEST_BYTES,
	       "a header without end as well, 431");
}

/* How long a request may be does not depend on how it comes. */
static void check_longest(void)
{
	static const size_t pieces[] = {1, 700, 4096, 2 * PRESS_REQUEST_BYTES};
	static char text[PRESS_REQUEST_BYTES + 1];
	unsigned right = 0;

	for (size_t i = 0; i < 8; i++) {
		const size_t bytes = PRESS_REQUEST_BYTES + i / 4;
		struct press_parser parser;
		enum press_parsed parsed;
		size_t used;

		memset(text, 'a', bytes);
		memcpy(text, "GET /f/1 HTTP/1.1\r\nHost: a\r\nb: ", 31);
		memcpy(text + bytes - 4, "\r\n\r\n", 4);
		press_parser_start(&parser);
		parsed = feed(&parser, text, bytes, pieces[i % 4], &used);
		right += i < 4 ? parsed == PRESS_PARSED_REQUEST && parser.request.status == 200
			       : parsed == PRESS_PARSED_BAD && parser.request.status == 431 &&
					 !parser.request.keep_alive;
	}
	tap_ok(right == 8, "a request of the largest length is read, one byte more is 431, in all pieces: %u",
	       right);
}

static void check_targets(void)
{
	static const struct {
		const char *target;
		uint32_t file;
	} cases[] = {{"/f/0", 0},     {"/f/9", 9},
		     {"/f/10", 10},   {"/f/", 10},
		     {"/f/01", 10},   {"/f/-1", 10},
		     {"/f/1x", 10},   {"/f/+1", 10},
		     {"/", 10},       {"f/1", 10},
		     {"/f/1/", 10},   {"/f/%31", 10},
		     {"/../f/1", 10}, {"/f/18446744073709551617", 10},
		     {"/f/1?", 10}};
	bool all = true;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		all &= press_target_file(cases[i].target, 10) == cases[i].file;
	tap_ok(all, "targets name files, or none");
}

static void check_head(void)
{
	char head[PRESS_HEAD_ROOM];
	const size_t bytes = press_answer_head(head, 405, UINT64_MAX, false);

	tap_ok(bytes < PRESS_HEAD_ROOM && bytes == strlen(head) && strstr(head, "Allow: GET, HEAD\r\n") &&
		       !strcmp(head + bytes - 4, "\r\n\r\n"),
	       "the longest head fits");
	press_answer_head(head, 200, 5, true);
	tap_ok(!strncmp(head, "HTTP/1.1 200 OK\r\n", 17) && strstr(head, "Content-Length: 5\r\n") &&
		       !strstr(head, "Connection"),
	       "a head says how long the content is");
}

int main(void)
{
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		check_good(&good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check_bad(&bad[i]);
	check_row();
	check_long();
	check_longest();
	check_targets();
	check_head();
	return tap_done();
}
