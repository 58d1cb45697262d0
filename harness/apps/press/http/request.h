/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading HTTP/1.1 requests, by llhttp, one at a time: bytes come in as they arrive, in any pieces. What the parser lets pass
 * and what it does not is set explicitly, so that every version of the library gives every bad input the same status.
 */
#ifndef PRESS_REQUEST_H
#define PRESS_REQUEST_H

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* a longer target is answered by 414; more bytes before a request's body, or its end, by 431 */
#define PRESS_TARGET_BYTES  1024u
#define PRESS_REQUEST_BYTES 16384u

/* What is wanted. The status is 200 where it can be answered, else that of the error. */
struct press_request {
	unsigned status;
	bool head_only, keep_alive;
	/* NUL-terminated */
	char target[PRESS_TARGET_BYTES];
};

enum press_header { PRESS_HEADER_OTHER, PRESS_HEADER_HOST, PRESS_HEADER_RANGE };

struct press_parser {
	llhttp_t llhttp;
	/* of the request that is being read */
	struct press_request request;
	size_t target_bytes, bytes;
	/* the name of the header that is being read, as far as it is needed, in lower case */
	char name[8];
	size_t name_bytes;
	bool has_host, has_range, has_body, complete;
};

enum press_parsed {
	/* all bytes were taken, and the request has not ended */
	PRESS_PARSED_MORE,
	/* a request has ended; what follows it was not looked at */
	PRESS_PARSED_REQUEST,
	/* this is no request; after the answer, whose status is in the request, the connection cannot be used */
	PRESS_PARSED_BAD,
};

void press_parser_start(struct press_parser *parser);

/* Reads on. `used_out`: how many of the bytes belong to this request. */
enum press_parsed press_parse(struct press_parser *parser, const char *data, size_t bytes, size_t *used_out);

/* A request has begun and not ended. */
static inline bool press_parser_busy(const struct press_parser *parser)
{
	return parser->bytes > 0 && !parser->complete;
}

/* The number of the file that a target names, below `files`; `files` itself when it names none. */
uint32_t press_target_file(const char *target, uint32_t files);

#define PRESS_HEAD_ROOM 256u

/* The head of an answer with `bytes` bytes of content; its length. `out` has PRESS_HEAD_ROOM bytes. */
size_t press_answer_head(char *out, unsigned status, uint64_t bytes, bool keep_alive);

#endif
