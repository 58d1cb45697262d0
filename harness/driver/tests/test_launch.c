/* SPDX-License-Identifier: BSD-3-Clause */
/* The launch file: what is right is read in full, what is wrong is refused by the name of the field. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "launch.h"
#include "tap.h"

static const char good[] =
	"{\"schema\":\"cadge.launch/"
	"1\",\"launch_id\":\"b1-0001\",\"campaign_id\":\"c\",\"kind\":\"layer\",\"layer\":\"sockets-tcp\","
	"\"shims\":[\"delay\"],\"launcher\":\"direct\",\"place\":\"between\",\"wait\":\"poll\","
	"\"settings\":{\"nodelay\":\"1\",\"delay.delay_ns\":\"20000\"},\"seed\":1234567890123,\"deadline_"
	"ms\":20000,"
	"\"ports\":[18600,18699],\"endpoints\":["
	"{\"host\":\"h1\",\"cpu\":0,\"device\":\"data0\",\"address\":\"198.19.0.11\",\"raw_device\":\"raw0\"}"
	","
	"{\"host\":\"h2\",\"cpu\":-1,\"device\":\"data0\",\"address\":\"198.19.0.12\",\"raw_device\":\"\"}],"
	"\"points\":[{\"attempt_id\":\"1\",\"point_id\":\"0123456789abcdef\",\"pattern\":\"rpc\",\"request_"
	"bytes\":8,\"reply_bytes\":64,"
	"\"depth\":4,\"duration_ms\":250,\"deadline_ms\":3000},"
	"{\"attempt_id\":\"2\",\"point_id\":\"x\",\"pattern\":\"onesided\",\"operation\":\"get\",\"target\":"
	"\"passive\","
	"\"request_bytes\":64,\"depth\":1,\"duration_ms\":25,\"deadline_ms\":3000}]}";

static void test_good(void)
{
	struct drv_launch launch, again;
	struct drv_fail fail;
	json_t *other;
	char *text;

	if (!tap_ok(drv_launch_parse(good, strlen(good), &launch, &fail) == 0, "a good launch file is read"))
		return;
	tap_ok(!strcmp(launch.layer, "sockets-tcp") && launch.place == DRV_PLACE_BETWEEN &&
		       launch.seed == 1234567890123 && launch.deadline_ns == UINT64_C(20000000000) &&
		       launch.port_last == 18699 && launch.endpoints[1].cpu == -1 &&
		       !strcmp(launch.endpoints[0].raw_device, "raw0"),
	       "its head");
	tap_ok(launch.settings_count == 2 && !strcmp(launch.settings[0].name, "delay.delay_ns") &&
		       launch.shims_count == 1,
	       "its settings, sorted");
	tap_ok(launch.points_count == 2 && launch.points[0].reply_bytes == 64 &&
		       launch.points[0].depth == 4 && launch.points[1].operation == DRV_GET &&
		       launch.points[1].target == DRV_TARGET_PASSIVE && launch.points[1].reply_bytes == 0,
	       "its points");
	other = json_loads(good, 0, NULL);
	text = json_dumps(other, JSON_INDENT(3) | JSON_SORT_KEYS);
	tap_ok(drv_launch_parse(text, strlen(text), &again, &fail) == 0 &&
		       !strcmp(again.digest, launch.digest),
	       "the digest is that of the content, not of the writing");
	drv_launch_free(&again);
	free(text);
	json_object_set_new(other, "seed", json_integer(7));
	text = json_dumps(other, 0);
	tap_ok(drv_launch_parse(text, strlen(text), &again, &fail) == 0 &&
		       strcmp(again.digest, launch.digest) != 0,
	       "another seed is another digest");
	drv_launch_free(&again);
	free(text);
	json_decref(other);
	drv_launch_free(&launch);
}

/* Changes one member (path: object key, or list[index].key) to `value` (JSON; NULL removes) and expects
 * `says`. */
static void expect_refused(const char *list, size_t index, const char *key, const char *value,
			   const char *says)
{
	json_t *document = json_loads(good, 0, NULL);
	json_t *object = list ? json_array_get(json_object_get(document, list), index) : document;
	struct drv_launch launch;
	struct drv_fail fail = {.text = "was accepted"};
	char *text;
	int status;

	if (value)
		json_object_set_new(object, key, json_loads(value, JSON_DECODE_ANY, NULL));
	else
		json_object_del(object, key);
	text = json_dumps(document, 0);
	status = drv_launch_parse(text, strlen(text), &launch, &fail);
	if (!status)
		drv_launch_free(&launch);
	tap_ok(status == -1 && fail.reason == DRV_ARGUMENT && strstr(fail.text, says), "%s = %s: %s", key,
	       value ? value : "(gone)", fail.text);
	free(text);
	json_decref(document);
}

static void test_bad(void)
{
	static const struct {
		const char *list;
		size_t index;
		const char *key, *value, *says;
	} rows[] = {
		{NULL, 0, "schema", "\"cadge.launch/2\"", "schema must be one of cadge.launch/1"},
		{NULL, 0, "schema", NULL, "schema is missing"},
		{NULL, 0, "launch_id", "7", "launch_id must be a string"},
		{NULL, 0, "launch_id", "\"\"", "launch_id must not be empty"},
		{NULL, 0, "kind", "\"layers\"", "kind must be one of layer floor"},
		{NULL, 0, "layer", "\"../../etc\"", "layer must start"},
		{NULL, 0, "layer", "\"a/b\"", "layer may hold"},
		{NULL, 0, "shims", "\"delay\"", "shims must be a list"},
		{NULL, 0, "shims", "[1]", "shims must hold strings"},
		{NULL, 0, "shims", "[]", "settings has a setting for a shim"},
		{NULL, 0, "launcher", "\"srun\"", "launcher must be one of direct mpirun"},
		{NULL, 0, "place", "\"host\"", "place must be one of self within between"},
		{NULL, 0, "place", "\"self\"", "endpoints must hold one entry"},
		{NULL, 0, "wait", "true", "wait must be one of poll block"},
		{NULL, 0, "settings", "{\"a\":1}", "settings must hold strings"},
		{NULL, 0, "settings", "[]", "settings must be an object"},
		{NULL, 0, "seed", "-1", "seed must be between"},
		{NULL, 0, "seed", "1.5", "seed must be an integer"},
		{NULL, 0, "deadline_ms", "0", "deadline_ms must be between"},
		{NULL, 0, "ports", "[18700,18600]", "lower port first"},
		{NULL, 0, "ports", "[1,70000]", "ports must hold ports"},
		{NULL, 0, "ports", "[1]", "ports must be a list of two"},
		{NULL, 0, "endpoints", "[]", "endpoints must hold two entries"},
		{NULL, 0, "endpoints", "[1,2]", "endpoints[0] must be an object"},
		{NULL, 0, "points", "[]", "points must hold between"},
		{NULL, 0, "colour", "\"red\"", "colour is not a key"},
		{"endpoints", 1, "cpu", "\"1\"", "endpoints[1].cpu must be an integer"},
		{"endpoints", 1, "cpu", "-2", "endpoints[1].cpu must be between"},
		{"endpoints", 0, "address", NULL, "endpoints[0].address is missing"},
		{"endpoints", 0, "user", "\"x\"", "endpoints[0].user is not a key"},
		{"points", 0, "pattern", "\"rcp\"",
		 "points[0].pattern must be one of pingpong rpc stream onesided"},
		{"points", 0, "pattern", "\"pingpong\"", "points[0].reply_bytes must equal request_bytes"},
		{"points", 0, "pattern", "\"stream\"", "points[0].reply_bytes must be 0"},
		{"points", 0, "request_bytes", "-1", "points[0].request_bytes must be between"},
		{"points", 0, "request_bytes", "99999999999", "points[0].request_bytes must be between"},
		{"points", 0, "reply_bytes", NULL, "points[0].reply_bytes is missing"},
		{"points", 0, "depth", "0", "points[0].depth must be between 1 and 4096"},
		{"points", 0, "duration_ms", "3000", "points[0].deadline_ms must be greater"},
		{"points", 0, "operation", "\"put\"", "points[0].operation belongs to onesided"},
		{"points", 1, "operation", "\"swap\"",
		 "points[1].operation must be one of put get fetch_add"},
		{"points", 1, "operation", "\"fetch_add\"", "points[1].request_bytes must be 8"},
		{"points", 1, "target", "\"asleep\"", "points[1].target must be one of"},
		{"points", 1, "size", "1", "points[1].size is not a key"},
	};
	struct drv_launch launch;
	struct drv_fail fail;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		expect_refused(rows[i].list, rows[i].index, rows[i].key, rows[i].value, rows[i].says);
	tap_ok(drv_launch_parse("{\"a\":1,\n\"a\":2}", 14, &launch, &fail) && strstr(fail.text, "line 2"),
	       "twice a key: %s", fail.text);
	tap_ok(drv_launch_parse("[]", 2, &launch, &fail) && strstr(fail.text, "must be an object"),
	       "a list: %s", fail.text);
	tap_ok(drv_launch_parse("", 0, &launch, &fail) && strstr(fail.text, "not JSON"), "nothing: %s",
	       fail.text);
	tap_ok(drv_launch_read("/nonexistent/launch.json", &launch, &fail) &&
		       strstr(fail.text, "No such file"),
	       "no file: %s", fail.text);
	tap_ok(drv_launch_read("/", &launch, &fail) && strstr(fail.text, "directory"), "a folder: %s",
	       fail.text);
}

/* Whatever the bytes, the parser answers; the sanitizers watch it. Seeded: each run tries the same. */
static void test_mutations(void)
{
	static const char pieces[] = "{}[],:\"\\-0123456789eEtruefalsn \n\t\x80\xff";
	uint64_t random = 88172645463325252;
	int accepted = 0, refused = 0, explained = 1;

	for (int round = 0; round < 40000; round++) {
		char text[sizeof(good) + 16];
		size_t bytes = sizeof(good) - 1;
		struct drv_launch launch;
		struct drv_fail fail = {.text = ""};

		memcpy(text, good, sizeof(good));
		for (int edits = 1 + round % 4; edits > 0; edits--) {
			size_t at;

			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			at = (size_t)(random >> 8) % bytes;
			switch (random % 4) {
			case 0: text[at] = pieces[(random >> 40) % (sizeof(pieces) - 1)]; break;
			case 1:
				memmove(text + at, text + at + 1, bytes - at - 1);
				bytes--;
				break;
			case 2: bytes = round % 16 ? bytes : at + 1; break;
			default: text[at] = (char)(random >> 32); break;
			}
		}
		if (drv_launch_parse(text, bytes, &launch, &fail) == 0) {
			accepted++;
			drv_launch_free(&launch);
		} else {
			refused++;
			explained &= fail.reason == DRV_ARGUMENT && fail.text[0] != '\0';
		}
	}
	tap_ok(explained && refused > 10000 && accepted > 100,
	       "40,000 mutations: %d refused with a reason, %d harmless", refused, accepted);
}

int main(void)
{
	test_good();
	test_bad();
	test_mutations();
	return tap_done();
}
