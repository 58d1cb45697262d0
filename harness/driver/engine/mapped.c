/* SPDX-License-Identifier: BSD-3-Clause */
/* Which programs and libraries are mapped into this process: the loader's list, and the kernel's for what is not on it. */
#include "engine/mapped.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <sched.h>
#include <sodium/crypto_hash_sha256.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/loader.h"
#include "base/text.h"

#define NEEDED_MAX 4096

/* The loader appends what it loads, and takes away nothing that was there before main. */
static size_t objects_before_main;

__attribute__((constructor)) static void count_objects(void)
{
	for (const struct link_map *object = _r_debug.r_map; object; object = object->l_next)
		objects_before_main++;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The value of an entry of an object's dynamic section; 0: it has none. */
static ElfW(Xword) dynamic_entry(const struct link_map *object, ElfW(Sxword) tag)
{
	for (const ElfW(Dyn) *entry = object->l_ld; entry && entry->d_tag != DT_NULL; entry++)
		if (entry->d_tag == tag)
			return entry->d_un.d_val;
	return 0;
}

/* Its table of strings: glibc relocates the address on most architectures, and the kernel's own object has an offset. */
static const char *strings_of(const struct link_map *object)
{
	const ElfW(Addr) at = dynamic_entry(object, DT_STRTAB);

	/* the loader's own numbers are addresses */
	return at ? (const char *)(at < object->l_addr ? object->l_addr + at : at) : NULL;
}

/* The names that all objects need. Returns how many. */
static size_t names_needed(const char **names)
{
	size_t count = 0;

	for (const struct link_map *object = _r_debug.r_map; object; object = object->l_next) {
		const char *strings = strings_of(object);

		for (const ElfW(Dyn) *entry = object->l_ld; strings && entry->d_tag != DT_NULL; entry++)
			if (entry->d_tag == DT_NEEDED && count < NEEDED_MAX)
				names[count++] = last_part(strings + entry->d_un.d_val);
	}
	return count;
}

static bool is_needed(const struct link_map *object, const char *const *names, size_t count)
{
	const char *strings = strings_of(object);
	const ElfW(Xword) own = dynamic_entry(object, DT_SONAME);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(names[i], last_part(object->l_name)) ||
		    (strings && own && !strcmp(names[i], last_part(strings + own))))
			return true;
	return false;
}

static json_t *hash_of(const char *path)
{
	uint8_t digest[crypto_hash_sha256_BYTES], chunk[65536];
	char hex[2 * sizeof(digest) + 1];
	crypto_hash_sha256_state state;
	const int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t count;

	if (file < 0)
		return json_null();
	crypto_hash_sha256_init(&state);
	while ((count = read(file, chunk, sizeof(chunk))) > 0)
		crypto_hash_sha256_update(&state, chunk, (unsigned long long)count);
	close(file);
	crypto_hash_sha256_final(&state, digest);
	drv_hex(digest, sizeof(digest), hex);
	return count < 0 ? json_null() : json_string(hex);
}

/* Takes `origin` over, with its file and build id. 0, or -1. */
static int add(json_t *list, json_t *origin, const char *how)
{
	const char *file = json_string_value(json_object_get(origin, "file"));

	if (file && json_is_null(json_object_get(origin, "build_id")) &&
	    (json_object_del(origin, "build_id") || json_object_set_new(origin, "sha256", hash_of(file)))) {
		json_decref(origin);
		return -1;
	}
	if (!file || json_object_set_new(origin, "how", json_string(how))) {
		json_decref(origin);
		return file || !origin ? -1 : 0; /* an object whose file is gone is not told */
	}
	return json_array_append_new(list, origin);
}

/* By name, or by the file itself: the loader may have been given another name of it (a link, a relative path). */
static bool has_file(const json_t *list, const char *path)
{
	struct stat found, listed;
	const bool is_there = !stat(path, &found);

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *file = json_string_value(json_object_get(json_array_get(list, i), "file"));

		if (!strcmp(file, path) || (is_there && !stat(file, &listed) &&
					    listed.st_dev == found.st_dev && listed.st_ino == found.st_ino))
			return true;
	}
	return false;
}

/* What is executable and not on the loader's list. */
static int add_strangers(json_t *list)
{
	FILE *file = fopen("/proc/self/maps", "re");
	char line[PATH_MAX + 200], rights[8], path[PATH_MAX];
	int status = 0;

	while (!status && file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*s %7s %*s %*s %*s %4095[^\n]", rights, path) != 2 || rights[2] != 'x' ||
		    path[0] != '/' || has_file(list, path))
			continue;
		status =
			add(list, json_pack("{s:o, s:n}", "file", drv_json_text(path), "build_id"), "mapped");
	}
	if (file)
		fclose(file);
	return status;
}

json_t *drv_mapped_json(void)
{
	const char **names = calloc(NEEDED_MAX, sizeof(*names));
	const size_t count = names ? names_needed(names) : 0;
	json_t *list = json_array();
	size_t place = 0;
	int status = names && list ? 0 : -1;

	for (const struct link_map *object = _r_debug.r_map; !status && object;
	     object = object->l_next, place++) {
		const char *how = place == 0                        ? "program"
				  : is_needed(object, names, count) ? "needed"
				  : place < objects_before_main     ? "preloaded"
								    : "loaded";

		if (place == 0 || strchr(object->l_name, '/'))
			status = add(list, drv_loader_origin(object->l_ld), how);
	}
	free(names);
	if (!status)
		status = add_strangers(list);
	if (!status)
		return list;
	json_decref(list);
	return NULL;
}

json_t *drv_scheduling_json(void)
{
	static const char *const names[] = {"other", "fifo", "rr", "batch", "unknown", "idle", "deadline"};
	struct sched_param parameters = {0};
	const int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;

	sched_getparam(0, &parameters);
	errno = 0;
	return json_pack("{s:s, s:i, s:i}", "policy",
			 policy >= 0 && policy < (int)(sizeof(names) / sizeof(names[0])) ? names[policy]
											 : "unknown",
			 "priority", parameters.sched_priority, "nice", getpriority(PRIO_PROCESS, 0));
}

json_t *drv_mapped_places(json_t *launch, const json_t *objects)
{
	json_t *places = json_array();

	for (size_t i = 0; places && i < json_array_size(objects); i++) {
		json_t *object = json_array_get(objects, i);
		size_t place = 0;

		while (place < json_array_size(launch) && !json_equal(json_array_get(launch, place), object))
			place++;
		if ((place == json_array_size(launch) && json_array_append(launch, object)) ||
		    json_array_append_new(places, json_integer((json_int_t)place))) {
			json_decref(places);
			return NULL;
		}
	}
	return places;
}
