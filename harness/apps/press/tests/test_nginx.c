/* SPDX-License-Identifier: BSD-3-Clause */
/* nginx in a node's place: its configuration, who has which file, and a program that does not do what it should. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "press/nginx/nginx.h"
#include "press/nginx/ring.h"
#include "tap.h"

#define KEYS 20000u

static char *text_of(const struct press_nginx_plan *plan)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	const int status = out ? press_nginx_write(out, plan) : -1;

	if (!out || fclose(out) || status)
		exit(1);
	return text;
}

static bool holds(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

static void check_configuration(void)
{
	const char *const owners[] = {"127.0.0.1:2001", "127.0.0.1:2003"};
	const struct press_nginx_plan plan = {.folder = "/some/where",
					      .hosts = {"127.0.0.1", "127.0.0.1"},
					      .ports = {2000, 2001},
					      .owners = owners,
					      .nodes = 2,
					      .connections = 16,
					      .files = 164,
					      .sockets = 192};
	char *text = text_of(&plan);
	int depth = 0, least = 0;

	for (const char *at = text; *at; at++) {
		depth += (*at == '{') - (*at == '}');
		least = depth < least ? depth : least;
	}
	tap_ok(depth == 0 && least == 0, "blocks are opened and closed");
	tap_ok(holds(text, "daemon off;\nmaster_process off;"), "one process, which its parent has");
	tap_ok(holds(text,
		     "upstream owners {\n\t\thash $uri consistent;\n\t\tserver 127.0.0.1:2001 max_fails=0;\n"
		     "\t\tserver 127.0.0.1:2003 max_fails=0;\n\t\tkeepalive 32;"),
	       "files are divided by hash, and connections to all kept");
	tap_ok(holds(text,
		     "listen 127.0.0.1:2000 reuseport;\n\t\tlocation /f/ {\n\t\t\troot \"/some/where\";\n"
		     "\t\t\ttry_files $uri @owner;"),
	       "what is not here is asked for");
	tap_ok(holds(text, "listen 127.0.0.1:2001 reuseport;\n\t\tlocation /f/ {\n\t\t\troot "
			   "\"/some/where\";\n\t\t}"),
	       "whoever is asked does not ask on");
	tap_ok(holds(text, "worker_connections 192;"), "room for all connections");
	tap_ok(holds(text, "open_file_cache max=164 ") && holds(text, "access_log off;"),
	       "all files stay open, and nothing is logged");
	for (const char *at = text; (at = strstr(at, "_path ")); at++)
		tap_ok(!strncmp(at, "_path \"/some/where/", 19), "a folder of its own: %.*s",
		       (int)strcspn(at, ";"), at);
	tap_ok(!holds(text, "/var/") && !holds(text, "0.0.0.0"), "nothing of the system's");
	free(text);
	tap_ok(press_nginx_allows("/tmp/a b/c-1") && !press_nginx_allows("/tmp/\"") &&
		       !press_nginx_allows("/tmp/$uri") && !press_nginx_allows("/tmp/a;b") &&
		       !press_nginx_allows("/tmp/\n"),
	       "what would mean something else in a configuration is no folder");
}

static void check_names(void)
{
	char name[PRESS_NGINX_NAME_BYTES];

	press_nginx_name(name, "10.1.0.2", 80);
	tap_ok(!strcmp(name, "10.1.0.2:80"), "%s", name);
	press_nginx_name(name, "fd00::1", 65535);
	tap_ok(!strcmp(name, "[fd00::1]:65535"), "%s", name);
}

/* How many of the keys each server has, and how many have moved since the call before. */
static uint32_t divide(const char *const *names, uint32_t count, uint32_t owners[KEYS], uint32_t shares[])
{
	struct press_ring ring;
	uint32_t moved = 0;

	if (press_ring_make(&ring, names, count))
		exit(1);
	memset(shares, 0, count * sizeof(*shares));
	for (uint32_t i = 0; i < KEYS; i++) {
		char key[32];
		const int bytes = snprintf(key, sizeof(key), "/f/%u", i);
		const uint32_t owner = press_ring_find(&ring, key, (size_t)bytes);

		moved += owner != owners[i];
		owners[i] = owner;
		shares[owner]++;
	}
	press_ring_free(&ring);
	return moved;
}

static void check_ring(void)
{
	static const char *const names[] = {"10.0.0.1:8001", "10.0.0.2:8001", "10.0.0.3:8001",
					    "10.0.0.4:8001", "10.0.0.5:8001"};
	/* as an nginx 1.22.1 had it whose upstream were the first four: who answered /f/0 to /f/31 */
	static const uint32_t seen[] = {2, 2, 2, 1, 2, 1, 3, 0, 3, 3, 2, 0, 2, 1, 3, 3,
					0, 0, 3, 1, 3, 0, 3, 1, 3, 0, 2, 1, 0, 1, 2, 3};
	static uint32_t owners[KEYS];
	uint32_t shares[5], moved, same = 0;

	divide(names, 1, owners, shares);
	tap_ok(shares[0] == KEYS, "one server has everything");
	divide(names, 4, owners, shares);
	for (uint32_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++)
		same += owners[i] == seen[i];
	tap_ok(same == sizeof(seen) / sizeof(seen[0]), "%u of %zu are where nginx has them", same,
	       sizeof(seen) / sizeof(seen[0]));
	for (uint32_t i = 0; i < 4; i++)
		tap_ok(shares[i] > KEYS / 4 * 7 / 10 && shares[i] < KEYS / 4 * 13 / 10,
		       "server %u has %u of %u", i, shares[i], KEYS);
	moved = divide(names, 5, owners, shares);
	tap_ok(moved == shares[4], "a fifth server takes %u from the others, and else nothing moves", moved);
}

/* A program of that name which does `what`, alone in PATH. */
static void check_program(const char *folder, const char *what, enum drv_reason reason, const char *words)
{
	const char *owners[] = {"127.0.0.1:1"};
	struct press_nginx nginx;
	struct press_files files;
	struct drv_fail fail = {.reason = DRV_OK};
	char path[256];
	FILE *out;

	snprintf(path, sizeof(path), "%s/nginx", folder);
	unlink(path);
	if (*what) {
		out = fopen(path, "we");
		if (!out || fprintf(out, "#!/bin/sh\n%s\n", what) < 0 || fclose(out) || chmod(path, 0700))
			exit(1);
	}
	if (press_files_make(&files, PRESS_CLARKNET, 100000, 1))
		exit(1);
	tap_ok((press_nginx_prepare(&nginx, &(struct drv_endpoint){0}, &fail) ||
		press_nginx_start(&nginx, &files, owners, 0, 1, 1, &fail)) &&
		       fail.reason == reason && holds(fail.text, words),
	       "%s", fail.text);
	press_nginx_end(&nginx);
	press_files_free(&files);
	unlink(path);
	tap_ok(!nginx.pid && nginx.reserved[0] < 0, "and nothing of it is left");
}

int main(void)
{
	char folder[] = "/tmp/press-nginx-XXXXXX";
	struct rlimit few;

	check_configuration();
	check_names();
	check_ring();
	if (!mkdtemp(folder) || setenv("TMPDIR", folder, 1) || setenv("PATH", folder, 1))
		return 1;
	check_program(folder, "", DRV_NODE_LACKS, "no program nginx");
	check_program(folder, "echo it has no mind to >&2; exit 3", DRV_LIBRARY,
		      "status 3: it has no mind to");
	check_program(folder, "exit 0", DRV_LIBRARY, "status 0, and said nothing");
	check_program(folder, "kill -9 $$", DRV_LIBRARY, "signal 9");
	few = (struct rlimit){200, 200};
	tap_ok(setrlimit(RLIMIT_NOFILE, &few) == 0, "with few open files");
	check_program(folder, "exit 0", DRV_LIBRARY, "status 0");
	few = (struct rlimit){150, 150};
	tap_ok(setrlimit(RLIMIT_NOFILE, &few) == 0, "with fewer");
	check_program(folder, "exit 0", DRV_NODE_LACKS, "may have 150 open files, and nginx needs 196");
	setenv("TMPDIR", "/nowhere/at/all", 1);
	check_program(folder, "exit 0", DRV_SYSTEM, "no folder for nginx");
	/* it has to be empty */
	tap_ok(rmdir(folder) == 0, "no folder stays behind");
	return tap_done();
}
