/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel knows about this process: memory, descriptors, threads, switches, interface counters. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "conformance.h"

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static unsigned int entries_count(const char *path)
{
	unsigned int count = 0;
	struct dirent *entry;
	DIR *dir = opendir(path);

	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			count++;
	closedir(dir);
	return count;
}

static unsigned int segments_count(void)
{
	struct shm_info info;
	struct shmid_ds ds;
	unsigned int count = 0;
	int last = shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&info);

	for (int i = 0; i <= last; i++)
		if (shmctl(i, SHM_STAT, &ds) >= 0 && ds.shm_perm.uid == getuid())
			count++;
	return count;
}

void footprint_take(struct footprint *out)
{
	unsigned long pages_total = 0, pages_resident = 0;
	FILE *file;

	memset(out, 0, sizeof(*out));
	/*
	 * What was freed is no growth, whether the allocator keeps it or not: UCX over verbs takes 20 MiB a connection and
	 * frees them, and of these one connection more or less stays with the heap.
	 */
	malloc_trim(0);
	file = fopen("/proc/self/statm", "r");
	if (file) {
		if (fscanf(file, "%lu %lu", &pages_total, &pages_resident) == 2)
			out->resident_bytes = pages_resident * (uint64_t)sysconf(_SC_PAGESIZE);
		fclose(file);
	}
	out->descriptors = entries_count("/proc/self/fd");
	out->threads = entries_count("/proc/self/task");
	out->shm_files = entries_count("/dev/shm");
	out->sysv_segments = segments_count();
}

uint64_t other_threads_ran(void)
{
	DIR *dir = opendir("/proc/self/task");
	uint64_t total = 0, ran;
	struct dirent *entry;
	char path[64];
	FILE *file;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || atoi(entry->d_name) == (int)gettid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%.20s/schedstat", entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fscanf(file, "%*u %*u %" SCNu64, &ran) == 1)
			total += ran;
		fclose(file);
	}
	if (dir)
		closedir(dir);
	return total;
}

uint64_t voluntary_switches(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_THREAD, &usage) < 0)
		return 0;
	return (uint64_t)usage.ru_nvcsw;
}

uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t interface_rx_bytes(const char *device)
{
	char path[128];
	uint64_t bytes = 0;
	FILE *file;

	/* /proc/net/dev follows the network namespace of the reader; /sys shows the one that mounted it. */
	snprintf(path, sizeof(path), "/proc/self/net/dev");
	file = fopen(path, "r");
	if (!file)
		return 0;
	for (char line[512]; fgets(line, sizeof(line), file);) {
		char *colon = strchr(line, ':'), *name = line;

		if (!colon)
			continue;
		*colon = 0;
		while (isspace((unsigned char)*name))
			name++;
		if (strcmp(name, device) == 0 && sscanf(colon + 1, "%" SCNu64, &bytes) == 1)
			break;
	}
	fclose(file);
	return bytes;
}

const char *interface_counted(const char *device)
{
	return getenv("CADGE_CONFORMANCE_ONE_HOST") ? "lo" : device;
}

bool process_is_stopped(pid_t pid)
{
	char path[64], line[512], *after;
	bool stopped = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (fgets(line, sizeof(line), file) && (after = strrchr(line, ')')))
		stopped = after[1] == ' ' && (after[2] == 'T' || after[2] == 't');
	fclose(file);
	return stopped;
}

bool isolated(void)
{
	return getenv("CADGE_CONFORMANCE_ISOLATED") != NULL;
}

bool own_network(void)
{
	return getenv("CADGE_CONFORMANCE_OWN_NETWORK") != NULL;
}
