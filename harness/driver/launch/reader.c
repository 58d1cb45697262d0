/* SPDX-License-Identifier: BSD-3-Clause */
/* Strict reading of JSON objects, with sentences for people. */
#include "launch/reader.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int drv_read_wrong(const struct drv_reader *reader, const char *key, const char *what)
{
	char shown[64];
	size_t length = 0;

	for (; key[length] && length < sizeof(shown) - 1; length++)
		shown[length] = isprint((unsigned char)key[length]) ? key[length] : '?';
	shown[length] = '\0';
	return drv_fail_set(reader->fail, DRV_ARGUMENT, "launch file: %s%s%s %s", reader->where,
			    reader->where[0] && key[0] ? "." : "", shown, what);
}

int drv_read_keys(const struct drv_reader *reader, const char *const *known)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)reader->json, key, value)
	{
		size_t i = 0;

		while (known[i] && strcmp(known[i], key) != 0)
			i++;
		if (!known[i])
			return drv_read_wrong(reader, key, "is not a key that this version knows");
	}
	return 0;
}

int drv_read_text(const struct drv_reader *reader, const char *key, bool may_be_empty, char **out)
{
	const json_t *value = json_object_get(reader->json, key);

	if (!value)
		return drv_read_wrong(reader, key, "is missing");
	if (!json_is_string(value))
		return drv_read_wrong(reader, key, "must be a string");
	if (!may_be_empty && json_string_length(value) == 0)
		return drv_read_wrong(reader, key, "must not be empty");
	if (json_string_length(value) > 1024)
		return drv_read_wrong(reader, key, "is longer than 1024 bytes");
	*out = strdup(json_string_value(value));
	return *out ? 0 : drv_fail_set(reader->fail, DRV_MEMORY, "no memory for the launch file");
}

int drv_read_integer(const struct drv_reader *reader, const char *key, int64_t least, int64_t most,
		     int64_t *out)
{
	const json_t *value = json_object_get(reader->json, key);
	char text[96];

	if (!value)
		return drv_read_wrong(reader, key, "is missing");
	if (!json_is_integer(value))
		return drv_read_wrong(reader, key, "must be an integer");
	if (json_integer_value(value) < least || json_integer_value(value) > most) {
		snprintf(text, sizeof(text), "must be between %" PRId64 " and %" PRId64 ", is %" PRId64,
			 least, most, (int64_t)json_integer_value(value));
		return drv_read_wrong(reader, key, text);
	}
	*out = json_integer_value(value);
	return 0;
}

int drv_read_word(const struct drv_reader *reader, const char *key, const char *const *words,
		  size_t words_count, int *out)
{
	const json_t *value = json_object_get(reader->json, key);
	char text[256] = "must be one of";

	if (!value)
		return drv_read_wrong(reader, key, "is missing");
	for (size_t i = 0; i < words_count; i++) {
		const size_t used = strlen(text);

		if (json_is_string(value) && !strcmp(json_string_value(value), words[i])) {
			*out = (int)i;
			return 0;
		}
		snprintf(text + used, sizeof(text) - used, " %s", words[i]);
	}
	return drv_read_wrong(reader, key, text);
}

int drv_read_list(const struct drv_reader *reader, const char *key, size_t least, size_t most,
		  const json_t **out)
{
	const json_t *list = json_object_get(reader->json, key);
	char text[96];

	if (!json_is_array(list))
		return drv_read_wrong(reader, key, list ? "must be a list" : "is missing");
	if (json_array_size(list) < least || json_array_size(list) > most) {
		snprintf(text, sizeof(text), "must hold between %zu and %zu entries, holds %zu", least, most,
			 json_array_size(list));
		return drv_read_wrong(reader, key, text);
	}
	*out = list;
	return 0;
}

int drv_read_object(const struct drv_reader *reader, const char *key, const json_t **out)
{
	const json_t *object = json_object_get(reader->json, key);

	if (!json_is_object(object))
		return drv_read_wrong(reader, key, object ? "must be an object" : "is missing");
	*out = object;
	return 0;
}

/* What a name may hold: lower-case letters, digits, '-' and '_', from `name` to `end`. */
static int name_of_letters(const struct drv_reader *reader, const char *key, const char *name,
			   const char *end)
{
	if (!islower((unsigned char)name[0]) && !isdigit((unsigned char)name[0]))
		return drv_read_wrong(reader, key, "must start with a lower-case letter or a digit");
	for (const char *at = name; at < end; at++)
		if (!islower((unsigned char)*at) && !isdigit((unsigned char)*at) && *at != '-' && *at != '_')
			return drv_read_wrong(reader, key,
					      "may hold lower-case letters, digits, '-' and '_' only");
	return 0;
}

int drv_read_name(const struct drv_reader *reader, const char *key, const char *name)
{
	return name_of_letters(reader, key, name, name + strlen(name));
}

int drv_read_layer_name(const struct drv_reader *reader, const char *key, const char *name)
{
	const char *end = name + strcspn(name, "@");

	if (name_of_letters(reader, key, name, end))
		return -1;
	if (!*end)
		return 0;
	if (!isalnum((unsigned char)end[1]))
		return drv_read_wrong(reader, key, "must have a letter or a digit behind '@'");
	for (const char *at = end + 1; *at; at++)
		if (!isalnum((unsigned char)*at) && !strchr("-._+~", *at))
			return drv_read_wrong(reader, key,
					      "may hold letters, digits and '-._+~' only behind '@'");
	return 0;
}
