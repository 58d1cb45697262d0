/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC_BYTES 16u
#define HEAD_BYTES  32u
#define WORD_BYTES  4u

static const char magic[MAGIC_BYTES] = "cadge.trace/1";

static int wrong(struct drv_fail *fail, const char *path, const char *what)
{
	return drv_fail_set(fail, DRV_ARGUMENT, "trace %s: %s", path, what);
}

/* The numbers of a file that is what the launch wants; whoever wrote it may have been wrong all the same. */
static int check(struct drv_trace *trace, const char *path, struct drv_fail *fail)
{
	const uint8_t *head = trace->content;
	uint64_t words;

	if (trace->content_bytes < HEAD_BYTES)
		return wrong(fail, path, "it ends early");
	if (memcmp(head, magic, MAGIC_BYTES) != 0)
		return wrong(fail, path, "it is not cadge.trace/1, which this program reads");
	trace->files = drv_trace_word(head + MAGIC_BYTES, 0);
	trace->requests =
		drv_trace_word(head + MAGIC_BYTES, 2) | (uint64_t)drv_trace_word(head + MAGIC_BYTES, 3) << 32;
	words = (trace->content_bytes - HEAD_BYTES) / WORD_BYTES;
	if (drv_trace_word(head + MAGIC_BYTES, 1) != 0 || trace->content_bytes % WORD_BYTES != 0 ||
	    trace->files > words || trace->requests != words - trace->files)
		return wrong(fail, path, "it has not as many numbers as it says");
	if (!trace->files || !trace->requests)
		return wrong(fail, path, "it has no file, or no request");
	trace->lengths = head + HEAD_BYTES;
	trace->asked = trace->lengths + (size_t)WORD_BYTES * trace->files;
	for (uint32_t file = 0; file < trace->files; file++) {
		const uint32_t bytes = drv_trace_length(trace, file);

		if (!bytes)
			return wrong(fail, path, "it has a file without bytes");
		trace->total_bytes += bytes;
	}
	for (uint64_t request = 0; request < trace->requests; request++)
		if (drv_trace_file(trace, request) >= trace->files)
			return wrong(fail, path, "it asks for a file that it does not have");
	return 0;
}

static int map(struct drv_trace *trace, const char *path, struct drv_fail *fail)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat found;
	void *content = MAP_FAILED;

	if (fd < 0)
		return wrong(fail, path, strerror(errno));
	if (fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && found.st_size > 0)
		content = mmap(NULL, (size_t)found.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (content == MAP_FAILED)
		return wrong(fail, path, "it is empty, or no file that can be mapped");
	trace->content = content;
	trace->content_bytes = (size_t)found.st_size;
	return 0;
}

int drv_trace_read(const char *path, const char *sha256, struct drv_trace **trace_out, struct drv_fail *fail)
{
	struct drv_trace *trace = calloc(1, sizeof(*trace));
	int status;

	if (!trace)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for a trace");
	status = map(trace, path, fail);
	if (!status) {
		drv_digest(trace->content, trace->content_bytes, trace->sha256);
		status = strcmp(trace->sha256, sha256) != 0
				 ? wrong(fail, path, "its SHA-256 is not the one that the launch file states")
				 : check(trace, path, fail);
	}
	if (status) {
		drv_trace_free(trace);
		return -1;
	}
	*trace_out = trace;
	return 0;
}

void drv_trace_free(struct drv_trace *trace)
{
	if (!trace)
		return;
	if (trace->content)
		munmap((void *)(uintptr_t)trace->content, trace->content_bytes);
	free(trace);
}
