/* SPDX-License-Identifier: BSD-3-Clause */
/* Arbitrary bytes as requests, whole and in pieces: both are read alike, and no request is longer than it may be. */
#include <stdlib.h>
#include <string.h>

#include "press/http/request.h"

#define REQUESTS 8

struct read {
	unsigned status[REQUESTS], targets[REQUESTS];
	int count;
	size_t used;
};

static struct read read_in(const char *data, size_t bytes, size_t piece)
{
	struct press_parser parser;
	struct read found = {.count = 0};

	press_parser_start(&parser);
	while (found.used < bytes && found.count < REQUESTS) {
		const size_t left = bytes - found.used, length = left < piece ? left : piece;
		char *copy = malloc(length);
		size_t used;
		enum press_parsed parsed;

		memcpy(copy, data + found.used, length);
		parsed = press_parse(&parser, copy, length, &used);
		free(copy);
		found.used += used;
		if (used > length || parser.bytes > PRESS_REQUEST_BYTES + length)
			abort();
		if (parsed == PRESS_PARSED_MORE)
			continue;
		found.targets[found.count] = press_target_file(parser.request.target, 1000);
		found.status[found.count++] = parser.request.status;
		if (parsed == PRESS_PARSED_BAD)
			break;
	}
	return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	if (!bytes)
		return 0;
	const struct read whole = read_in((const char *)data + 1, bytes - 1, bytes),
			  pieces = read_in((const char *)data + 1, bytes - 1, 1u + data[0]);

	/* limits are looked at once a piece, so that what is too long may be seen later */
	for (int i = 0; i < whole.count && i < pieces.count; i++)
		if (whole.status[i] != pieces.status[i] && whole.status[i] != 431 &&
		    pieces.status[i] != 431 && whole.status[i] != 414 && pieces.status[i] != 414)
			abort();
	return 0;
}
