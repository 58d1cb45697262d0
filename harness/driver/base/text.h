/* SPDX-License-Identifier: BSD-3-Clause */
/* Small helpers around JSON that several modules need. */
#ifndef DRV_TEXT_H
#define DRV_TEXT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* A JSON string of any bytes (a library's error text, a file name): what is not UTF-8 becomes '?'. NULL gives
 * null. */
json_t *drv_json_text(const char *text);

/* A count as a JSON integer; counts above INT64_MAX cannot occur and are held there. */
json_t *drv_json_count(uint64_t count);

/* Sets object[key] = value and takes the reference; 0, or -1 when value or memory is missing. */
int drv_json_set(json_t *object, const char *key, json_t *value);

/* Lower-case hexadecimal digits of `count` bytes and a NUL into `out` of 2 * count + 1 bytes. */
void drv_hex(const uint8_t *bytes, size_t count, char *out);

/* The reverse: `count` bytes from exactly 2 * count digits. 0, or -1 when the text is anything else. */
int drv_unhex(const char *text, uint8_t *out, size_t count);

#endif
