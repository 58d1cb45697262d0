/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/content/files.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "measure/arrivals.h"
#include "traffic/payload.h"

#define BLOCK_BYTES  (1u << 20)
#define HEAD_BYTES   16u
#define POPULAR      0.7
#define EXPONENT     0.8
#define SCALE_BITS   10
#define SIZES_SEED   UINT64_C(0x73697a6573)
#define CONTENT_SEED UINT64_C(0x626c6f636b)

const char *const press_workload_words[] = {
	[PRESS_CLARKNET] = "clarknet", [PRESS_FORTH] = "forth", [PRESS_NASA] = "nasa",
	[PRESS_RUTGERS] = "rutgers",   [PRESS_TRACE] = "trace", [PRESS_WORKLOADS] = NULL,
};

/* The means of a file and of a reply, in bytes. */
static const struct means {
	uint32_t file_bytes, reply_bytes;
} means[PRESS_TRACE] = {
	[PRESS_CLARKNET] = {14200, 9700},
	[PRESS_FORTH] = {19300, 8800},
	[PRESS_NASA] = {27600, 21800},
	[PRESS_RUTGERS] = {27300, 19000},
};

static uint32_t clamped(uint64_t bytes)
{
	return bytes < PRESS_FILE_BYTES_MIN   ? PRESS_FILE_BYTES_MIN
	       : bytes > PRESS_FILE_BYTES_MAX ? PRESS_FILE_BYTES_MAX
					      : (uint32_t)bytes;
}

/* How many of the most popular files have POPULAR of all requests. */
static uint32_t popular_of(uint32_t count)
{
	double all = 0, sum = 0;
	uint32_t popular = 0;

	for (uint32_t i = 0; i < count; i++)
		all += pow(i + 1.0, -EXPONENT);
	while (popular < count && sum < POPULAR * all)
		sum += pow(++popular, -EXPONENT);
	return popular < count ? popular : count - 1;
}

/* Exponential lengths, of the workload's mean; the factors for popular files and all others from the two means. */
static void make_sizes(struct press_files *files, const struct means *mean)
{
	const uint32_t popular = popular_of(files->count);
	const double share = (double)popular / files->count,
		     replies = (double)mean->reply_bytes / mean->file_bytes;
	/* popular * share + other * (1 - share) = 1, popular * POPULAR + other * (1 - POPULAR) = replies */
	const double other = (POPULAR - replies * share) / (POPULAR - share),
		     often = (replies - other * (1 - POPULAR)) / POPULAR;
	/* whole numbers: no two libraries of mathematics give other files */
	const uint64_t scales[2] = {(uint64_t)lround(fmax(other, 0) * (1 << SCALE_BITS)),
				    (uint64_t)lround(fmax(often, 0) * (1 << SCALE_BITS))};
	struct drv_arrivals lengths;
	uint64_t before = 0;

	drv_arrivals_start(&lengths, DRV_ARRIVALS_POISSON, drv_mix(files->seed, SIZES_SEED), files->count,
			   (uint64_t)files->count * mean->file_bytes);
	for (uint32_t i = 0; i < files->count; i++) {
		const uint64_t next = drv_arrivals_next(&lengths);

		files->bytes[i] = clamped((next - before) * scales[i < popular] >> SCALE_BITS);
		files->total_bytes += files->bytes[i];
		before = next;
	}
}

static int make_room(struct press_files *files, uint32_t count, uint64_t seed)
{
	*files = (struct press_files){.count = count, .seed = seed};
	files->bytes = calloc(count, sizeof(*files->bytes));
	/* so long that no file reaches over its end */
	files->block = malloc(BLOCK_BYTES + PRESS_FILE_BYTES_MAX);
	if (!files->bytes || !files->block)
		return -1;
	for (uint32_t i = 0; i < BLOCK_BYTES + PRESS_FILE_BYTES_MAX; i += sizeof(uint64_t))
		drv_store64(files->block + i, drv_mix(drv_mix(seed, CONTENT_SEED), i % BLOCK_BYTES));
	return 0;
}

int press_files_make(struct press_files *files, enum press_workload workload, uint64_t total_bytes,
		     uint64_t seed)
{
	const struct means *mean = &means[workload];
	uint64_t count = total_bytes / mean->file_bytes;

	count = count < 2 ? 2 : count > PRESS_FILES_MAX ? PRESS_FILES_MAX : count;
	if (make_room(files, (uint32_t)count, seed))
		return -1;
	make_sizes(files, mean);
	return 0;
}

bool press_files_fit(const struct drv_trace *trace)
{
	if (trace->files > PRESS_FILES_MAX)
		return false;
	for (uint32_t i = 0; i < trace->files; i++)
		if (drv_trace_length(trace, i) != clamped(drv_trace_length(trace, i)))
			return false;
	return true;
}

int press_files_replay(struct press_files *files, const struct drv_trace *trace, uint64_t seed)
{
	if (make_room(files, trace->files, seed))
		return -1;
	for (uint32_t i = 0; i < files->count; i++)
		files->bytes[i] = drv_trace_length(trace, i);
	files->total_bytes = trace->total_bytes;
	return 0;
}

void press_files_free(struct press_files *files)
{
	free(files->bytes);
	free(files->block);
	*files = (struct press_files){.count = 0};
}

static const uint8_t *content_of(const struct press_files *files, uint32_t file, uint32_t offset)
{
	return files->block + drv_mix(files->seed, file) % BLOCK_BYTES + offset;
}

/* The head, from `offset` on: how many bytes of it there are. */
static size_t head_of(const struct press_files *files, uint32_t file, uint32_t offset, uint8_t *out)
{
	uint8_t head[HEAD_BYTES];

	if (offset >= HEAD_BYTES)
		return 0;
	drv_store64(head, file);
	drv_store64(head + sizeof(uint64_t), files->bytes[file]);
	memcpy(out, head + offset, HEAD_BYTES - offset);
	return HEAD_BYTES - offset;
}

void press_files_copy(const struct press_files *files, uint32_t file, uint32_t offset, void *out,
		      size_t bytes)
{
	uint8_t head[HEAD_BYTES];
	const size_t head_bytes = head_of(files, file, offset, head);

	memcpy(out, content_of(files, file, offset), bytes);
	memcpy(out, head, head_bytes < bytes ? head_bytes : bytes);
}

bool press_files_hold(const struct press_files *files, uint32_t file, uint32_t offset, const void *data,
		      size_t bytes)
{
	uint8_t head[HEAD_BYTES];
	size_t head_bytes = head_of(files, file, offset, head);

	head_bytes = head_bytes < bytes ? head_bytes : bytes;
	return !memcmp(data, head, head_bytes) &&
	       !memcmp((const uint8_t *)data + head_bytes,
		       content_of(files, file, offset + (uint32_t)head_bytes), bytes - head_bytes);
}

uint64_t press_files_digest(const struct press_files *files)
{
	uint64_t digest = drv_mix(files->seed, files->count);

	for (uint32_t i = 0; i < files->count; i++)
		digest = drv_mix(digest, files->bytes[i]);
	return digest;
}
