/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Strict reading of JSON objects: each function returns 0, or -1 with DRV_ARGUMENT and a sentence that names the
 * field and what it must be.
 */
#ifndef DRV_READER_H
#define DRV_READER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"

#define DRV_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* One object under examination: `where` is its path for messages, "" at the top. */
struct drv_reader {
	const json_t *json;
	char where[160];
	struct drv_fail *fail;
};

/* "launch file: WHERE.KEY WHAT". Returns -1. What is not printable in `key` is shown as '?'. */
int drv_read_wrong(const struct drv_reader *reader, const char *key, const char *what);

/* Every key must stand in the NULL-terminated list. */
int drv_read_keys(const struct drv_reader *reader, const char *const *known);

/* A string of at most 1,024 bytes from strdup; the caller frees it. */
int drv_read_text(const struct drv_reader *reader, const char *key, bool may_be_empty, char **out);

/* An integer within limits, inclusive. */
int drv_read_integer(const struct drv_reader *reader, const char *key, int64_t least, int64_t most,
		     int64_t *out);

/* One of some words: *out is its index. */
int drv_read_word(const struct drv_reader *reader, const char *key, const char *const *words,
		  size_t words_count, int *out);

/* A list: *out is borrowed, its length is within limits. */
int drv_read_list(const struct drv_reader *reader, const char *key, size_t least, size_t most,
		  const json_t **out);

/* An object: *out is borrowed. */
int drv_read_object(const struct drv_reader *reader, const char *key, const json_t **out);

/* A name that becomes part of a file name: lower-case letters, digits, '-' and '_'. */
int drv_read_name(const struct drv_reader *reader, const char *key, const char *name);
/* The same, and behind an '@' which version of its library a layer stands on: letters, digits and '-._+~'. */
int drv_read_layer_name(const struct drv_reader *reader, const char *key, const char *name);

#endif
