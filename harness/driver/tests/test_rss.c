/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory is distinguished by what it is, and what a process takes is seen to the page. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure/rss.h"
#include "tap.h"

#define MIB (UINT64_C(1) << 20)
/* what reading it takes of the heap and the stack, and what the C library does meanwhile */
#define SLACK (UINT64_C(64) << 10)

static struct drv_rss parse(const char *text)
{
	FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	struct drv_rss found;

	if (!file)
		exit(1);
	found = drv_rss_parse(file);
	fclose(file);
	return found;
}

static void test_by_what_it_is(void)
{
	const struct drv_rss found = parse("55f0-55f8 r--p 00000000 fe:00 2472   /usr/bin/a: 5 kB\n"
					   "Size:                 80 kB\n"
					   "Rss:                  40 kB\n"
					   "Pss:                   7 kB\n"
					   "Anonymous:             8 kB\n"
					   "VmFlags: rd mr mw me\n"
					   "7f00-7f80 rw-p 00000000 00:00 0\n"
					   "Rss:                 100 kB\n"
					   "Pss:                 100 kB\n"
					   "Anonymous:           100 kB\n"
					   "Private_Hugetlb:    2048 kB\n"
					   "7fa0-7fb0 rw-s 00000000 00:01 77   /dev/shm/of two (deleted)\n"
					   "Rss:                  64 kB\n"
					   "Pss:                  32 kB\n"
					   "Anonymous:             0 kB\n"
					   "7fc0-7fd0 rw-s 00000000 00:0f 78   /anon_hugepage (deleted)\n"
					   "Rss:                   0 kB\n"
					   "Pss:                   0 kB\n"
					   "Shared_Hugetlb:     4096 kB\n");

	tap_ok(found.known, "found");
	tap_ok(found.private_bytes == (8 + 100 + 2048) << 10, "private: %" PRIu64, found.private_bytes);
	tap_ok(found.shared_bytes == (64 + 4096) << 10, "shared: %" PRIu64, found.shared_bytes);
	tap_ok(found.shared_part_bytes == (32 + 4096) << 10, "its part: %" PRIu64, found.shared_part_bytes);
	tap_ok(found.file_bytes == 32 << 10, "files: %" PRIu64, found.file_bytes);
}

static bool about(uint64_t bytes, uint64_t wanted)
{
	return bytes + SLACK >= wanted && bytes <= wanted + SLACK;
}

/* 8 MiB of our own; 4 MiB that a child has as well, which has touched a half of them. */
static void test_to_the_page(void)
{
	struct drv_rss before = drv_rss_read(), after;
	uint8_t *own, *both;
	int ends[2];
	pid_t child;
	char done;

	if (!before.known) {
		tap_ok(1, "this kernel does not tell # SKIP");
		return;
	}
	tap_ok(before.private_bytes > 0 && before.file_bytes > 0, "%" PRIu64 " private, %" PRIu64 " of files",
	       before.private_bytes, before.file_bytes);
	own = mmap(NULL, 16 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	both = mmap(NULL, 16 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (own == MAP_FAILED || both == MAP_FAILED || pipe(ends))
		exit(1);
	/* a huge page would be resident beyond what is touched */
	madvise(own, 16 * MIB, MADV_NOHUGEPAGE);
	madvise(both, 16 * MIB, MADV_NOHUGEPAGE);
	memset(own, 1, 8 * MIB);
	memset(both, 1, 4 * MIB);
	after = drv_rss_read();
	tap_ok(about(after.private_bytes - before.private_bytes, 8 * MIB), "%" PRIu64 " more of our own",
	       after.private_bytes - before.private_bytes);
	tap_ok(after.shared_bytes - before.shared_bytes == 4 * MIB, "what could be shared and is touched");
	tap_ok(after.shared_part_bytes - before.shared_part_bytes == 4 * MIB, "all of it ours so far");
	child = fork();
	if (child == 0) {
		memset(both, 2, 2 * MIB);
		if (write(ends[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	if (child < 0 || read(ends[0], &done, 1) != 1)
		exit(1);
	after = drv_rss_read();
	tap_ok(after.shared_bytes - before.shared_bytes == 4 * MIB, "with another as much");
	tap_ok(after.shared_part_bytes - before.shared_part_bytes == 3 * MIB, "of which the part is less");
	if (kill(child, SIGKILL) || waitpid(child, NULL, 0) != child)
		exit(1);
}

static void test_in_a_result(void)
{
	const struct drv_rss moments[DRV_MOMENTS] = {[DRV_OPENED] = {true, 1, 2, 3, 4}};
	json_t *json = drv_rss_json(moments), *opened = json_object_get(json, "opened");

	tap_ok(json_is_null(json_object_get(json, "before")) &&
		       json_is_null(json_object_get(json, "connected")),
	       "what is not known is null");
	tap_ok(json_integer_value(json_object_get(opened, "private")) == 1 &&
		       json_integer_value(json_object_get(opened, "shared")) == 2 &&
		       json_integer_value(json_object_get(opened, "shared_part")) == 3 &&
		       json_integer_value(json_object_get(opened, "file")) == 4,
	       "all else by its name");
	json_decref(json);
}

int main(void)
{
	test_by_what_it_is();
	test_to_the_page();
	test_in_a_result();
	return tap_done();
}
