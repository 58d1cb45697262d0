/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON strings of any bytes, counts, and hexadecimal digits. */
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

json_t *drv_json_text(const char *text)
{
	json_t *value;
	char *clean;

	if (!text)
		return json_null();
	value = json_string(text);
	if (value)
		return value;
	clean = strdup(text);
	if (!clean)
		return NULL;
	for (char *at = clean; *at; at++)
		if ((unsigned char)*at >= 0x80)
			*at = '?';
	value = json_string(clean);
	free(clean);
	return value;
}

json_t *drv_json_count(uint64_t count)
{
	return json_integer(count > INT64_MAX ? INT64_MAX : (json_int_t)count);
}

int drv_json_set(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value);
}

void drv_hex(const uint8_t *bytes, size_t count, char *out)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < count; i++) {
		*out++ = digits[bytes[i] >> 4];
		*out++ = digits[bytes[i] & 15];
	}
	*out = '\0';
}

static int digit_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	return -1;
}

int drv_unhex(const char *text, uint8_t *out, size_t count)
{
	if (!text || strlen(text) != 2 * count)
		return -1;
	for (size_t i = 0; i < count; i++) {
		const int high = digit_value(text[2 * i]), low = digit_value(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return -1;
		out[i] = (uint8_t)(high << 4 | low);
	}
	return 0;
}
