/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A trace: lengths of files, and in which order they were asked for, from the log of a web server. `cadge run --trace`
 * makes it (results/src/cadge_results/formats/trace.py has the format); every process of a launch reads the same one, whose SHA-256
 * the launch file states.
 */
#ifndef DRV_TRACE_H
#define DRV_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/fail.h"

/* As read: all of it is in range. The processes of a host share its pages. */
struct drv_trace {
	/* at least 1 each */
	uint32_t files;
	uint64_t requests;
	/* of all files together */
	uint64_t total_bytes;
	char sha256[DRV_DIGEST_BYTES];
	/* the file as it is mapped: little endian, see drv_trace_length and drv_trace_file */
	const uint8_t *lengths, *asked;
	const void *content;
	size_t content_bytes;
};

static inline uint32_t drv_trace_word(const uint8_t *at, uint64_t index)
{
	at += 4 * index;
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* How many bytes a file has, at least 1. */
static inline uint32_t drv_trace_length(const struct drv_trace *trace, uint32_t file)
{
	return drv_trace_word(trace->lengths, file);
}

/* The file that a request is for, less than trace->files. */
static inline uint32_t drv_trace_file(const struct drv_trace *trace, uint64_t request)
{
	return drv_trace_word(trace->asked, request);
}

/*
 * Reads a trace that has this SHA-256, in 64 hexadecimal digits. 0, or -1 with the reason: it cannot be read, it is another
 * one, it ends early, or a number in it is out of range. *trace_out is the caller's, for drv_trace_free.
 */
int drv_trace_read(const char *path, const char *sha256, struct drv_trace **trace_out, struct drv_fail *fail);

/* NULL: nothing. */
void drv_trace_free(struct drv_trace *trace);

#endif
