/* SPDX-License-Identifier: BSD-3-Clause */
/* The launch file: what is right is read in full, what is wrong is refused by the name of the field. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "launch/launch_file.h"
#include "launch/patterns.h"
#include "points.h"
#include "tap.h"

/* clang-format off: one line of the file a line here */
static const char good[] =
	"{\"schema\":\"cadge.launch/"
	"2\",\"launch_id\":\"b1-0001\",\"campaign_id\":\"c\",\"kind\":\"layer\",\"layer\":\"sockets-tcp\","
	"\"shims\":[\"delay\"],\"launcher\":\"direct\",\"place\":\"between\",\"wait\":\"poll\","
	"\"settings\":{\"nodelay\":\"1\",\"delay.delay_ns\":\"20000\"},\"seed\":1234567890123,\"deadline_"
	"ms\":20000,"
	"\"ports\":[18600,18699],\"endpoints\":["
	"{\"role\":\"client\",\"host\":\"h1\",\"cpus\":[0],\"device\":\"data0\",\"address\":\"198.19.0.11\","
	"\"raw_device\":\"raw0\",\"peers\":[1]},"
	"{\"role\":\"server\",\"host\":\"h2\",\"cpus\":[-1],\"device\":\"data0\",\"address\":\"198.19.0."
	"12\",\"raw_device\":\"\",\"peers\":[0]}],"
	"\"patterns\":{\"rpc\":{},\"onesided\":{}},"
	"\"points\":[{\"attempt_id\":\"1\",\"point_id\":\"0123456789abcdef\",\"duration_ms\":250,\"deadline_"
	"ms\":3000,"
	"\"workload\":{\"pattern\":\"rpc\",\"parameters\":{\"request_bytes\":8,\"reply_bytes\":64,\"depth\":"
	"4,\"touch\":\"write+read\",\"payload\":\"usual\",\"reply\":\"cont\"}}},"
	"{\"attempt_id\":\"2\",\"point_id\":\"x\",\"duration_ms\":25,\"deadline_ms\":3000,"
	"\"workload\":{\"pattern\":\"onesided\",\"parameters\":{\"bytes\":64,\"depth\":1,\"operation\":"
	"\"get\",\"target\":\"passive\",\"notify\":\"none\",\"spread\":0,\"registration\":"
	"\"library\"}}}]}";
/* clang-format on */

static uint32_t choice_of(const struct drv_point *point, const char *name)
{
	uint32_t value = UINT32_MAX;

	for (const struct drv_parameter *parameter = point->pattern->parameters; parameter->name; parameter++)
		if (!strcmp(parameter->name, name))
			memcpy(&value, (const uint8_t *)point->parameters + parameter->offset, sizeof(value));
	return value;
}

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
		       launch.port_last == 18699 && launch.endpoints[1].cpus[0] == -1 &&
		       launch.endpoints[1].cpus_count == 1 && drv_endpoint_cpu(&launch.endpoints[0]) == 0 &&
		       launch.endpoints_count == 2 && !strcmp(launch.endpoints[1].role, "server") &&
		       launch.endpoints[0].peers[0] == 1 && launch.endpoints[0].channels[0] == 0 &&
		       !strcmp(launch.endpoints[0].raw_device, "raw0"),
	       "its head");
	tap_ok(launch.settings_count == 2 && !strcmp(launch.settings[0].name, "delay.delay_ns") &&
		       launch.shims_count == 1,
	       "its settings, sorted");
	tap_ok(launch.points_count == 2 && !strcmp(launch.points[0].pattern->name, "rpc") &&
		       point_get(&launch.points[0], "request_bytes") == 8 &&
		       point_get(&launch.points[0], "reply_bytes") == 64 &&
		       point_get(&launch.points[0], "depth") == 4 &&
		       point_get(&launch.points[1], "bytes") == 64 &&
		       choice_of(&launch.points[1], "operation") == 1 &&
		       choice_of(&launch.points[1], "target") == 1,
	       "its points: a choice is the number that the table gives it, in whatever order they are "
	       "declared");
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

/* The member at a path like "points.0.workload"; "" is the document. */
static json_t *find(json_t *document, const char *path)
{
	char copy[128], *rest = copy;

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *part; *rest && (part = strsep(&rest, "."));) {
		document = json_is_array(document) ? json_array_get(document, (size_t)atoi(part))
						   : json_object_get(document, part);
		if (!rest)
			break;
	}
	return document;
}

/* Changes one member of the object at `path` to `value` (JSON; NULL removes it) and expects `says`. */
static void expect_refused(const char *path, const char *key, const char *value, const char *says)
{
	json_t *document = json_loads(good, 0, NULL);
	json_t *object = find(document, path);
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
	tap_ok(status == -1 && fail.reason == DRV_ARGUMENT && strstr(fail.text, says), "%s %s = %s: %s", path,
	       key, value ? value : "(gone)", fail.text);
	free(text);
	json_decref(document);
}

#define SERVER                                                                                               \
	"{\"role\":\"server\",\"host\":\"h\",\"cpus\":[],\"device\":\"d\",\"address\":\"a\",\"raw_device\":" \
	"\"\","
#define CLIENT                                                                                               \
	"{\"role\":\"client\",\"host\":\"h\",\"cpus\":[],\"device\":\"d\",\"address\":\"a\",\"raw_device\":" \
	"\"\","

/* Whoever wrote the file names the pattern that it means; what this program was built with is the same, or not. */
static void test_digests(void)
{
	json_t *document = json_loads(good, 0, NULL), *digests = json_object();
	struct drv_launch launch;
	struct drv_fail fail;
	char *text;

	json_object_set_new(digests, "rpc", json_string(drv_pattern_find("rpc", false)->digest));
	json_object_set_new(digests, "onesided", json_string(drv_pattern_find("onesided", false)->digest));
	json_object_set_new(document, "digests", digests);
	text = json_dumps(document, 0);
	if (tap_ok(drv_launch_parse(text, strlen(text), &launch, &fail) == 0, "the digests of this program"))
		drv_launch_free(&launch);
	free(text);
	json_object_set(digests, "rpc", json_object_get(digests, "onesided"));
	text = json_dumps(document, 0);
	tap_ok(drv_launch_parse(text, strlen(text), &launch, &fail) && fail.reason == DRV_ARGUMENT &&
		       strstr(fail.text, "digests.rpc is of another version"),
	       "another one's: %s", fail.text);
	free(text);
	json_object_del(digests, "rpc");
	text = json_dumps(document, 0);
	tap_ok(drv_launch_parse(text, strlen(text), &launch, &fail) &&
		       strstr(fail.text, "digests.rpc is missing"),
	       "none: %s", fail.text);
	free(text);
	json_decref(document);
}

static void test_bad(void)
{
	static const struct {
		const char *path, *key, *value, *says;
	} rows[] = {
		{"", "schema", "\"cadge.launch/3\"", "schema must be one of cadge.launch/2"},
		{"", "schema", "\"cadge.launch/1\"", "schema is cadge.launch/1, which cadge 0.1 reads"},
		{"", "schema", NULL, "schema is missing"},
		{"", "launch_id", "7", "launch_id must be a string"},
		{"", "launch_id", "\"\"", "launch_id must not be empty"},
		{"", "kind", "\"layers\"", "kind must be one of layer floor"},
		{"", "kind", "\"floor\"", "is not a form of floors"},
		{"", "layer", "\"../../etc\"", "layer must start"},
		{"", "layer", "\"a/b\"", "layer may hold"},
		{"", "layer", "\"native-ucx@\"", "layer must have"},
		{"", "layer", "\"native-ucx@1/../2\"", "layer may hold"},
		{"", "layer", "\"native-ucx@1@2\"", "layer may hold"},
		{"", "shims", "\"delay\"", "shims must be a list"},
		{"", "shims", "[1]", "shims must hold strings"},
		{"", "shims", "[]", "settings has a setting for a shim"},
		{"", "launcher", "\"srun\"", "launcher must be one of direct mpirun"},
		{"", "place", "\"host\"", "place must be one of self within between"},
		{"", "place", "\"self\"", "endpoints must hold one entry"},
		{"", "wait", "true", "wait must be one of poll block"},
		{"", "settings", "{\"a\":1}", "settings must hold strings"},
		{"", "settings", "[]", "settings must be an object"},
		{"", "seed", "-1", "seed must be between"},
		{"", "seed", "1.5", "seed must be an integer"},
		{"", "deadline_ms", "0", "deadline_ms must be between"},
		{"", "ports", "[18700,18600]", "lower port first"},
		{"", "ports", "[1,70000]", "ports must hold ports"},
		{"", "ports", "[1]", "ports must be a list of two"},
		{"", "endpoints", "[]", "endpoints must hold between 1 and 64 entries, holds 0"},
		{"", "endpoints", "[1,2]", "endpoints[0] must be an object"},
		{"", "endpoints", "[" CLIENT "\"peers\":[1,1]}," SERVER "\"peers\":[0]}]",
		 "endpoints [0].peers names endpoint 1 more often than that one names it"},
		{"", "endpoints", "[" CLIENT "\"peers\":[0]}," SERVER "\"peers\":[]}]",
		 "endpoints [0].peers names endpoint 0, which is itself"},
		{"", "endpoints", "[" SERVER "\"peers\":[1]}," SERVER "\"peers\":[0]}]",
		 "gives no endpoint a role that measures"},
		{"", "points", "[]", "points must hold between"},
		{"", "patterns", "[]", "patterns must be an object"},
		{"", "patterns", NULL, "patterns is missing"},
		{"", "colour", "\"red\"", "colour is not a key"},
		{"endpoints.1", "cpus", "\"1\"", "endpoints[1].cpus must be a list"},
		{"endpoints.1", "cpus", "[-2]", "endpoints[1].cpus must hold integers between -1"},
		{"endpoints.1", "cpus", "[0,1]", "the role 'server', which is played by one thread, not 2"},
		{"endpoints.1", "peers", "[2]", "endpoints[1].peers must hold numbers of endpoints, 0 to 1"},
		{"endpoints.1", "peers", "0", "endpoints[1].peers must be a list"},
		{"endpoints.1", "role", "\"butler\"", "has no role 'butler', which endpoint 1 is given"},
		{"endpoints.0", "role", NULL, "endpoints[0].role is missing"},
		{"endpoints.0", "address", NULL, "endpoints[0].address is missing"},
		{"endpoints.0", "user", "\"x\"", "endpoints[0].user is not a key"},
		{"patterns", "rcp", "{}", "patterns.rcp is not a pattern that this program was built with"},
		{"patterns", "rpc", "1", "patterns.rpc must be an object"},
		{"", "digests", "[]", "digests must be an object"},
		{"", "operations", "0", "operations must be between 1"},
		{"", "operations", "1.5", "operations must be an integer"},
		{"", "trace", "7", "trace must be an object"},
		{"", "trace", "{\"file\":\"trace.bin\"}", "trace.sha256 is missing"},
		{"", "trace", "{\"file\":\"../t\",\"sha256\":\"0\"}", "trace.file must be a name without"},
		{"", "trace", "{\"file\":\"t.bin\",\"sha256\":\"0\"}", "trace.sha256 must be 64"},
		{"", "trace", "{\"file\":\"t\",\"path\":\"/\"}", "trace.path is not a key"},
		{"points.0", "size", "1", "points[0].size is not a key"},
		{"points.0", "workload", "7", "points[0].workload must be an object"},
		{"points.0.workload", "pattern", "\"rcp\"",
		 "points[0].workload.pattern must name one of the launch's"},
		{"points.0.workload", "parameters", NULL, "points[0].workload.parameters is missing"},
		{"points.0.workload", "size", "1", "points[0].workload.size is not a key"},
		{"points.0.workload.parameters", "request_bytes", "-1",
		 "points[0].workload.parameters.request_bytes must be between 0 and 1073741824, is -1"},
		{"points.0.workload.parameters", "request_bytes", "99999999999",
		 "request_bytes must be between"},
		{"points.0.workload.parameters", "request_bytes", "\"8\"",
		 "request_bytes must be an integer"},
		{"points.0.workload.parameters", "reply_bytes", NULL, "parameters.reply_bytes is missing"},
		{"points.0.workload.parameters", "depth", "8192",
		 "points[0].workload.parameters.depth must be between 1 and 4096, is 8192"},
		{"points.0.workload.parameters", "operation", "\"put\"", "parameters.operation is not a key"},
		{"points.0", "duration_ms", "3000", "points[0].deadline_ms must be greater"},
		{"points.1.workload.parameters", "operation", "\"swap\"",
		 "parameters.operation must be one of put get fetch_add compare_swap"},
		{"points.1.workload.parameters", "operation", "1", "parameters.operation must be one of"},
		{"points.1.workload.parameters", "target", "\"asleep\"", "parameters.target must be one of"},
	};
	struct drv_launch launch;
	struct drv_fail fail;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		expect_refused(rows[i].path, rows[i].key, rows[i].value, rows[i].says);
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

#define NODE                                                                                                 \
	"{\"role\":\"node\",\"host\":\"h\",\"cpus\":[],\"device\":\"d\",\"address\":\"a\",\"raw_device\":"   \
	"\"\","

/* Whoever is at one end of a channel finds itself at the other end of the other end's. */
static void check_ends(const struct drv_launch *launch)
{
	size_t total[2] = {0};
	int fits = 1;

	for (size_t e = 0; e < 2; e++)
		for (size_t t = 0; t < drv_endpoint_threads(&launch->endpoints[e]); t++) {
			struct drv_end ends[DRV_PEERS_MAX], back[DRV_PEERS_MAX];
			const size_t count = drv_launch_channels(launch, e, t, ends, DRV_PEERS_MAX);

			total[e] += count;
			for (size_t i = 0; i < count; i++) {
				const struct drv_end *end = &ends[i];
				const size_t there = drv_launch_channels(launch, end->endpoint, end->thread,
									 back, DRV_PEERS_MAX);

				fits &= end->endpoint == 1 - e && end->channel < there &&
					back[end->channel].endpoint == e && back[end->channel].thread == t &&
					back[end->channel].channel == i;
			}
		}
	tap_ok(fits && total[0] == 6 && total[1] == 6,
	       "as many channels as the one with more threads has: %zu, %zu", total[0], total[1]);
}

/* A ring of three, each with two neighbours, and two channels between the same two. */
static void test_channels(void)
{
	static const char lap[] =
		"[{\"attempt_id\":\"1\",\"point_id\":\"x\",\"duration_ms\":1,\"deadline_ms\":2,"
		"\"workload\":{\"pattern\":\"ring\",\"parameters\":{\"bytes\":16,\"way\":\"forward\"}}}]";
	json_t *document = json_loads(good, 0, NULL), *ends;
	struct drv_launch launch;
	struct drv_fail fail = {.text = ""};
	char *text;

	json_object_set_new(document, "points", json_loads(lap, 0, NULL));
	json_object_set_new(document, "patterns", json_loads("{\"ring\":{}}", 0, NULL));
	ends = json_loads("[" NODE "\"peers\":[2,1]}," NODE "\"peers\":[0,2]}," NODE "\"peers\":[1,0]}]", 0,
			  NULL);
	json_object_set_new(document, "endpoints", ends);
	text = json_dumps(document, 0);
	if (tap_ok(!drv_launch_parse(text, strlen(text), &launch, &fail), "a ring is read %s", fail.text)) {
		tap_ok(launch.endpoints[0].channels[0] == 1 && launch.endpoints[0].channels[1] == 0 &&
			       launch.endpoints[1].channels[0] == 1 && launch.endpoints[1].channels[1] == 0 &&
			       launch.endpoints[2].channels[0] == 1 && launch.endpoints[2].channels[1] == 0,
		       "each end knows the number of its channel at the other");
		drv_launch_free(&launch);
	}
	free(text);
	ends = json_loads("[" NODE "\"peers\":[1,1]}," NODE "\"peers\":[0,0]}]", 0, NULL);
	json_object_set_new(document, "endpoints", ends);
	text = json_dumps(document, 0);
	if (tap_ok(!drv_launch_parse(text, strlen(text), &launch, &fail), "two channels to one peer")) {
		tap_ok(launch.endpoints[0].channels[0] == 0 && launch.endpoints[0].channels[1] == 1,
		       "are joined in their order");
		drv_launch_free(&launch);
	}
	free(text);
	ends = json_loads("[" NODE "\"peers\":[1,1]}," NODE "\"peers\":[0,0]}]", 0, NULL);
	json_object_set_new(json_array_get(ends, 0), "cpus", json_loads("[0,1,2]", 0, NULL));
	json_object_set_new(json_array_get(ends, 1), "cpus", json_loads("[3,4]", 0, NULL));
	json_object_set_new(document, "endpoints", ends);
	text = json_dumps(document, 0);
	if (tap_ok(!drv_launch_parse(text, strlen(text), &launch, &fail),
		   "three threads and two, twice joined")) {
		check_ends(&launch);
		drv_launch_free(&launch);
	}
	free(text);
	json_object_set_new(json_array_get(ends, 1), "hands", json_loads("[5,-1]", 0, NULL));
	text = json_dumps(document, 0);
	tap_ok(drv_launch_parse(text, strlen(text), &launch, &fail) &&
		       strstr(fail.text, "has no hands, and 2"),
	       "hands of a role that has none: %s", fail.text);
	free(text);
	json_object_set_new(json_array_get(ends, 1), "hands", json_loads("[5,-2]", 0, NULL));
	text = json_dumps(document, 0);
	tap_ok(drv_launch_parse(text, strlen(text), &launch, &fail) &&
		       strstr(fail.text, "endpoints[1].hands must hold integers between -1 and 8191"),
	       "hands on no core: %s", fail.text);
	free(text);
	json_decref(document);
}

int main(void)
{
	test_good();
	test_channels();
	test_digests();
	test_bad();
	test_mutations();
	return tap_done();
}
