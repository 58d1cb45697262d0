/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/soak/usage.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cadge/sanitized.h"

#define KIB         1024u
#define SAMPLES_MAX 240u
/*
 * What may be added over half of all requests. A layer may have a descriptor of its own for whom it is talking to most. Of
 * half a million requests none may leave a byte behind, of fifteen deaths none 20 KiB: what malloc has given out. And what
 * the kernel has given to malloc.
 */
#define DESCRIPTORS_GROWTH 1u
#define HEAP_GROWTH_BYTES  (256u * KIB)
#define MEMORY_GROWTH_KIB  (2u * KIB)

static struct soak_process read_process(int pid)
{
	struct soak_process process = {0};
	char path[64], line[128];
	FILE *file;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	folder = opendir(path);
	while (folder && readdir(folder))
		process.descriptors++;
	if (folder)
		closedir(folder);
	/* without . and .. and, of ourselves, the folder's own */
	process.descriptors -= process.descriptors ? (pid == getpid() ? 3u : 2u) : 0u;
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		sscanf(line, "RssAnon: %" SCNu64, &process.own_kib);
		sscanf(line, "RssShmem: %" SCNu64, &process.shared_kib);
	}
	if (file)
		fclose(file);
	return process;
}

static json_t *process_json(const struct soak_process *process)
{
	return json_pack("{s:I, s:I, s:I}", "descriptors", (json_int_t)process->descriptors, "own_kib",
			 (json_int_t)process->own_kib, "shared_kib", (json_int_t)process->shared_kib);
}

int soak_usage_start(struct soak_usage *usage)
{
	usage->skip = 1;
	usage->settled = json_array();
	usage->samples = json_array();
	return usage->settled && usage->samples ? 0 : -1;
}

void soak_usage_end(struct soak_usage *usage)
{
	json_decref(usage->settled);
	json_decref(usage->samples);
}

/* Of two neighbours one goes, when there are too many. */
static void thin_out(struct soak_usage *usage)
{
	if (json_array_size(usage->samples) < SAMPLES_MAX)
		return;
	usage->skip *= 2;
	for (size_t i = 0; i < json_array_size(usage->samples); i++)
		json_array_remove(usage->samples, i);
}

void soak_usage_sample(struct soak_usage *usage, const struct soak_restart_test *restart_test,
		       uint64_t requests)
{
	struct soak_process supervisor, first;

	if (++usage->skipped < usage->skip || restart_test->sites[1].state != SOAK_THERE)
		return;
	usage->skipped = 0;
	thin_out(usage);
	supervisor = read_process(getpid());
	first = read_process(restart_test->sites[1].pid);
	json_array_append_new(usage->samples,
			      json_pack("{s:I, s:o, s:o}", "requests", (json_int_t)requests, "supervisor",
					process_json(&supervisor), "node_1", process_json(&first)));
}

static uint64_t beside_cache(const struct soak_report *report)
{
	return report->heap_bytes > report->cache_heap_bytes ? report->heap_bytes - report->cache_heap_bytes
							     : 0;
}

static json_t *node_json(const struct soak_site *site, struct soak_process *process_out)
{
	const struct soak_report *report = &site->report;
	json_t *node;

	*process_out = read_process(site->pid);
	process_out->heap_bytes = beside_cache(report);
	node = process_json(process_out);
	json_object_update_new(node, json_pack("{s:i, s:i, s:I, s:I, s:i, s:i}", "node", (int)site->number,
					       "life", (int)site->life, "heap_beside_cache_bytes",
					       (json_int_t)process_out->heap_bytes, "cache_bytes",
					       (json_int_t)report->cache_bytes, "cached_files",
					       (int)report->files, "connections", (int)report->connections));
	/* in this life */
	json_object_update_new(node, json_pack("{s:I, s:I, s:I, s:I}", "requests",
					       (json_int_t)report->counts[PRESS_REQUESTS], "forwarded",
					       (json_int_t)report->counts[PRESS_FORWARDED], "misses",
					       (json_int_t)report->counts[PRESS_MISSES], "file_message_bytes",
					       (json_int_t)report->counts[PRESS_SENT_BYTES + PRESS_FILE]));
	return node;
}

void soak_usage_settled(struct soak_usage *usage, const struct soak_restart_test *restart_test,
			const char *when, uint64_t requests)
{
	struct soak_quiet quiet = {.supervisor = read_process(getpid())};
	json_t *nodes = json_array();

	snprintf(quiet.when, sizeof(quiet.when), "%s", when);
	for (uint32_t i = 1; i <= restart_test->plan->nodes; i++) {
		struct soak_process process;

		json_array_append_new(nodes, node_json(&restart_test->sites[i], &process));
		if (i == 1)
			quiet.first = process;
	}
	json_array_append_new(usage->settled,
			      json_pack("{s:s, s:I, s:I, s:o, s:o}", "when", when, "requests",
					(json_int_t)requests, "kills", (json_int_t)restart_test->kills,
					"supervisor", process_json(&quiet.supervisor), "nodes", nodes));
	if (usage->count < SOAK_QUIETS_MAX)
		usage->quiets[usage->count++] = quiet;
}

static const struct soak_quiet *quiet_at(const struct soak_usage *usage, const char *when)
{
	for (uint32_t i = 0; i < usage->count; i++)
		if (!strcmp(usage->quiets[i].when, when))
			return &usage->quiets[i];
	return NULL;
}

static void compare(struct soak_restart_test *restart_test, const char *who,
		    const struct soak_process *before, const struct soak_process *after)
{
	if (after->descriptors > before->descriptors + DESCRIPTORS_GROWTH)
		soak_trouble(restart_test,
			     "%s had %llu descriptors at half of the requests, and %llu at the end", who,
			     (unsigned long long)before->descriptors, (unsigned long long)after->descriptors);
	/* what is freed stays for a while then, and its malloc tells nothing */
	if (CADGE_SANITIZED)
		return;
	if (after->heap_bytes > before->heap_bytes + HEAP_GROWTH_BYTES)
		soak_trouble(
			restart_test,
			"%s: malloc had given out %llu bytes at half of the requests, and %llu at the end",
			who, (unsigned long long)before->heap_bytes, (unsigned long long)after->heap_bytes);
	if (after->own_kib > before->own_kib + MEMORY_GROWTH_KIB)
		soak_trouble(restart_test,
			     "%s had %llu KiB of memory at half of the requests, and %llu at the end", who,
			     (unsigned long long)before->own_kib, (unsigned long long)after->own_kib);
	if (after->shared_kib > before->shared_kib + MEMORY_GROWTH_KIB && !restart_test->plan->keeps)
		soak_trouble(restart_test,
			     "%s had %llu KiB of memory of others mapped at half of the requests, and %llu "
			     "at the end",
			     who, (unsigned long long)before->shared_kib,
			     (unsigned long long)after->shared_kib);
}

void soak_usage_judge(const struct soak_usage *usage, struct soak_restart_test *restart_test)
{
	const struct soak_quiet *before = quiet_at(usage, "half"), *after = quiet_at(usage, "end");

	if (!before || !after) {
		soak_trouble(restart_test, "it did not come to its end");
		return;
	}
	compare(restart_test, "the supervisor", &before->supervisor, &after->supervisor);
	compare(restart_test, "node 1", &before->first, &after->first);
}
