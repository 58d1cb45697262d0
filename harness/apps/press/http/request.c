/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/http/request.h"

#include <stdio.h>
#include <string.h>

#define TARGET_PREFIX "/f/"

static struct press_parser *parser_of(llhttp_t *llhttp)
{
	return llhttp->data;
}

static void refuse(struct press_parser *parser, unsigned status)
{
	if (parser->request.status == 200)
		parser->request.status = status;
}

static int on_url(llhttp_t *llhttp, const char *at, size_t bytes)
{
	struct press_parser *parser = parser_of(llhttp);
	struct press_request *request = &parser->request;

	if (bytes >= PRESS_TARGET_BYTES - parser->target_bytes) {
		refuse(parser, 414);
		return 0;
	}
	memcpy(request->target + parser->target_bytes, at, bytes);
	parser->target_bytes += bytes;
	return 0;
}

static int on_field(llhttp_t *llhttp, const char *at, size_t bytes)
{
	struct press_parser *parser = parser_of(llhttp);

	for (size_t i = 0; i < bytes; i++, parser->name_bytes++) {
		const char letter = at[i];

		if (parser->name_bytes < sizeof(parser->name))
			parser->name[parser->name_bytes] =
				letter >= 'A' && letter <= 'Z' ? (char)(letter + 'a' - 'A') : letter;
	}
	return 0;
}

static bool is_named(const struct press_parser *parser, const char *name)
{
	return parser->name_bytes == strlen(name) && !memcmp(parser->name, name, parser->name_bytes);
}

static int on_value_complete(llhttp_t *llhttp)
{
	struct press_parser *parser = parser_of(llhttp);

	/* two of them contradict each other (RFC 9112, section 3.2) */
	if (is_named(parser, "host") && parser->has_host)
		refuse(parser, 400);
	parser->has_host |= is_named(parser, "host");
	parser->has_range |= is_named(parser, "range");
	parser->name_bytes = 0;
	return 0;
}

static int on_headers_complete(llhttp_t *llhttp)
{
	struct press_parser *parser = parser_of(llhttp);

	parser->has_body = llhttp->content_length > 0 || llhttp->flags & F_CHUNKED;
	return 0;
}

static int on_message_complete(llhttp_t *llhttp)
{
	struct press_parser *parser = parser_of(llhttp);

	parser->complete = true;
	parser->request.keep_alive = llhttp_should_keep_alive(llhttp) && !llhttp->upgrade;
	parser->request.head_only = llhttp->method == HTTP_HEAD;
	if (llhttp->http_major != 1 || llhttp->http_minor > 1)
		refuse(parser, 505);
	if (llhttp->http_minor == 1 && !parser->has_host)
		refuse(parser, 400);
	if (llhttp->method != HTTP_GET && llhttp->method != HTTP_HEAD)
		refuse(parser, 405);
	if (parser->has_body || llhttp->upgrade)
		refuse(parser, 400);
	if (parser->has_range)
		refuse(parser, 416);
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
	.on_url = on_url,
	.on_header_field = on_field,
	.on_header_value_complete = on_value_complete,
	.on_headers_complete = on_headers_complete,
	.on_message_complete = on_message_complete,
};

static void begin_request(struct press_parser *parser)
{
	parser->request = (struct press_request){.status = 200};
	parser->target_bytes = parser->bytes = parser->name_bytes = 0;
	parser->has_host = parser->has_range = parser->has_body = parser->complete = false;
}

void press_parser_start(struct press_parser *parser)
{
	llhttp_init(&parser->llhttp, HTTP_REQUEST, &settings);
	llhttp_set_lenient_headers(&parser->llhttp, 0);
	llhttp_set_lenient_chunked_length(&parser->llhttp, 0);
	llhttp_set_lenient_keep_alive(&parser->llhttp, 0);
	parser->llhttp.data = parser;
	begin_request(parser);
}

enum press_parsed press_parse(struct press_parser *parser, const char *data, size_t bytes, size_t *used_out)
{
	enum llhttp_errno error;

	if (parser->complete) {
		begin_request(parser);
		llhttp_resume(&parser->llhttp);
	}
	error = llhttp_execute(&parser->llhttp, data, bytes);
	*used_out = error == HPE_OK ? bytes : (size_t)(llhttp_get_error_pos(&parser->llhttp) - data);
	parser->bytes += *used_out;
	if (parser->complete && parser->bytes <= PRESS_REQUEST_BYTES &&
	    (error == HPE_PAUSED || error == HPE_PAUSED_UPGRADE))
		return PRESS_PARSED_REQUEST;
	if (error == HPE_OK && parser->bytes <= PRESS_REQUEST_BYTES && parser->request.status == 200)
		return PRESS_PARSED_MORE;
	refuse(parser, error == HPE_OK || parser->complete ? 431 : error == HPE_INVALID_VERSION ? 505 : 400);
	parser->request.keep_alive = false;
	return PRESS_PARSED_BAD;
}

uint32_t press_target_file(const char *target, uint32_t files)
{
	const size_t prefix_bytes = strlen(TARGET_PREFIX);
	uint64_t number = 0;

	if (strncmp(target, TARGET_PREFIX, prefix_bytes))
		return files;
	target += prefix_bytes;
	if (!*target || (*target == '0' && target[1]))
		return files;
	for (; *target; target++) {
		if (*target < '0' || *target > '9')
			return files;
		number = number * 10 + (uint64_t)(*target - '0');
		if (number >= files)
			return files;
	}
	return (uint32_t)number;
}

static const char *reason_of(unsigned status)
{
	switch (status) {
	case 200: return "OK";
	case 400: return "Bad Request";
	case 404: return "Not Found";
	case 405: return "Method Not Allowed";
	case 408: return "Request Timeout";
	case 414: return "URI Too Long";
	case 416: return "Range Not Satisfiable";
	case 431: return "Request Header Fields Too Large";
	case 503: return "Service Unavailable";
	case 505: return "HTTP Version Not Supported";
	default: return "Internal Server Error";
	}
}

size_t press_answer_head(char *out, unsigned status, uint64_t bytes, bool keep_alive)
{
	const int length = snprintf(
		out, PRESS_HEAD_ROOM,
		"HTTP/1.1 %u %s\r\nServer: cadge-press\r\nContent-Length: %llu\r\n%s%s\r\n", status,
		reason_of(status), (unsigned long long)bytes, status == 405 ? "Allow: GET, HEAD\r\n" : "",
		keep_alive ? "" : "Connection: close\r\n");

	return (size_t)length;
}
