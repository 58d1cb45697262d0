/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading a trace: one that is as it was sent, and everything else that a file could hold. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"
#include "launch/trace.h"

static char folder[] = "/tmp/cadge-trace-XXXXXX";
static char path[sizeof(folder) + 16];

/* As cadge_results.formats.trace writes it: two files, three requests. */
static const uint8_t good[] = {
	'c', 'a', 'd', 'g', 'e', '.', 't', 'r', 'a', 'c', 'e', '/', '1', 0, 0,  0, 2, 0,
	0,   0,   0,   0,   0,   0,   3,   0,   0,   0,   0,   0,   0,   0, 64, 1, 0, 0,
	0,   0,   1,   0,   1,   0,   0,   0,   0,   0,   0,   0,   1,   0, 0,  0,
};

static void put(const void *content, size_t bytes)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, content, bytes) != (ssize_t)bytes)
		abort();
	close(fd);
}

/* Reads what is there under the checksum that it has, so that nothing but the content decides. */
static int read_as_it_is(const void *content, size_t bytes, struct drv_trace **trace_out,
			 struct drv_fail *fail)
{
	char sha256[DRV_DIGEST_BYTES];

	put(content, bytes);
	drv_digest(content, bytes, sha256);
	return drv_trace_read(path, sha256, trace_out, fail);
}

static void test_good(void)
{
	struct drv_trace *trace = NULL;
	struct drv_fail fail = {.text = ""};

	if (!tap_ok(!read_as_it_is(good, sizeof(good), &trace, &fail), "a trace is read %s", fail.text))
		return;
	tap_ok(trace->files == 2 && trace->requests == 3 && trace->total_bytes == 320 + 65536,
	       "it has as many files, requests and bytes as were written");
	tap_ok(drv_trace_length(trace, 0) == 320 && drv_trace_length(trace, 1) == 65536,
	       "files are as long as was written");
	tap_ok(drv_trace_file(trace, 0) == 1 && drv_trace_file(trace, 1) == 0 &&
		       drv_trace_file(trace, 2) == 1,
	       "they are asked for in that order");
	drv_trace_free(trace);
	drv_trace_free(NULL);
}

static void refuse(const void *content, size_t bytes, const char *said, const char *what)
{
	struct drv_trace *trace = NULL;
	struct drv_fail fail = {.text = ""};

	tap_ok(read_as_it_is(content, bytes, &trace, &fail) == -1 && fail.reason == DRV_ARGUMENT &&
		       strstr(fail.text, said) && !trace,
	       "%s: %s", what, fail.text);
}

/* One byte of the good one is another. */
static void refuse_with(size_t at, uint8_t value, const char *said, const char *what)
{
	uint8_t content[sizeof(good)];

	memcpy(content, good, sizeof(good));
	content[at] = value;
	refuse(content, sizeof(content), said, what);
}

static void test_bad(void)
{
	uint8_t none[32];
	char sha256[DRV_DIGEST_BYTES];
	struct drv_trace *trace = NULL;
	struct drv_fail fail = {.text = ""};

	refuse_with(12, '2', "not cadge.trace/1", "another version");
	refuse_with(0, 'C', "not cadge.trace/1", "another file");
	refuse_with(16, 3, "as many numbers as it says", "more files than it has");
	refuse_with(16, 1, "as many numbers as it says", "fewer files than it has");
	refuse_with(19, 255, "as many numbers as it says", "files without end");
	refuse_with(20, 1, "as many numbers as it says", "a word that has to be 0");
	refuse_with(24, 4, "as many numbers as it says", "more requests than it has");
	refuse_with(31, 255, "as many numbers as it says", "requests without end");
	refuse_with(38, 0, "a file without bytes", "a file of no bytes");
	refuse_with(48, 2, "asks for a file that it does not have", "a request for no file of it");
	refuse_with(51, 255, "asks for a file that it does not have", "a request for a file far away");
	memcpy(none, good, sizeof(none));
	none[16] = none[24] = 0;
	refuse(none, sizeof(none), "no file, or no request", "nothing in it");
	refuse(good, 0, "empty", "an empty file");
	put(good, sizeof(good));
	drv_digest(good, sizeof(good) - 1, sha256);
	tap_ok(drv_trace_read(path, sha256, &trace, &fail) == -1 && strstr(fail.text, "SHA-256"),
	       "another checksum: %s", fail.text);
	tap_ok(drv_trace_read(folder, sha256, &trace, &fail) == -1, "a folder: %s", fail.text);
	unlink(path);
	tap_ok(drv_trace_read(path, sha256, &trace, &fail) == -1 && strstr(fail.text, "No such file"),
	       "no file: %s", fail.text);
}

/* However it is cut, and whatever is changed of it, it is read whole or refused; the sanitizers watch. */
static void test_any(void)
{
	uint8_t content[sizeof(good) + 8];
	struct drv_trace *trace;
	struct drv_fail fail;
	unsigned cut = 0, read = 0;

	for (size_t bytes = 1; bytes < sizeof(good); bytes++)
		cut += read_as_it_is(good, bytes, &trace, &fail) == -1;
	tap_ok(cut == sizeof(good) - 1, "cut anywhere it is refused");
	memset(content, 0, sizeof(content));
	for (size_t at = 0; at < sizeof(good); at++)
		for (unsigned bit = 0; bit < 8; bit += 7) {
			memcpy(content, good, sizeof(good));
			content[at] ^= (uint8_t)(1u << bit);
			if (read_as_it_is(content, sizeof(good), &trace, &fail))
				continue;
			for (uint64_t request = 0; request < trace->requests; request++)
				read += drv_trace_length(trace, drv_trace_file(trace, request)) > 0;
			drv_trace_free(trace);
		}
	tap_ok(read > 20, "with any bit changed it is refused, or all of it can be read: %u", read);
	tap_ok(read_as_it_is(content, sizeof(content), &trace, &fail) == -1,
	       "longer than it says it is refused");
}

int main(void)
{
	if (!mkdtemp(folder))
		return 77;
	snprintf(path, sizeof(path), "%s/trace.bin", folder);
	test_good();
	test_bad();
	test_any();
	unlink(path);
	rmdir(folder);
	return tap_done();
}
