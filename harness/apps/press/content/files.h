/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files of a site, which every process of a launch makes for itself from the seed: how long each one is, and what it
 * holds. Nothing is stored: a file is a stretch of one block of random bytes that begins at a place of the file's own,
 * under a head that names the file, so that a wrong file, or one that is mixed from two, is told from the right one.
 *
 * Files are numbered by how popular they are, the most popular is 0. The published traces have two means each, of a file
 * and of a reply; the second one is shorter, so popular files are. Both are reproduced, for requests with a Zipf
 * exponent of 0.8: what has 70 % of those requests is scaled by one factor, everything else by another.
 */
#ifndef PRESS_FILES_H
#define PRESS_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launch/trace.h"

#define PRESS_FILE_BYTES_MIN 64u
#define PRESS_FILE_BYTES_MAX (1u << 20)
#define PRESS_FILES_MAX      (1u << 20)

/*
 * The traces of the study, see press.pattern.yml for what is verified of their means; and PRESS_TRACE, the user's own, of
 * which press_files_replay makes the files.
 */
enum press_workload { PRESS_CLARKNET, PRESS_FORTH, PRESS_NASA, PRESS_RUTGERS, PRESS_TRACE, PRESS_WORKLOADS };

/* In that order, NULL at the end: the words of the pattern's choice. */
extern const char *const press_workload_words[];

struct press_files {
	uint32_t count;
	/* by number */
	uint32_t *bytes;
	uint64_t total_bytes;
	uint64_t seed;
	/* the random bytes, read at a place of each file's own */
	uint8_t *block;
};

/*
 * As many files as fill `total_bytes` with the workload's mean length, at least 2. The same seed gives the same files in
 * every process. 0, or -1 when memory is short; press_files_free is legal in either case.
 */
int press_files_make(struct press_files *files, enum press_workload workload, uint64_t total_bytes,
		     uint64_t seed);

/* Whether a trace has no more files, and no longer or shorter ones, than there can be here. */
bool press_files_fit(const struct drv_trace *trace);

/* The files of a trace that fits, with the lengths that it has, numbered as there. As press_files_make. */
int press_files_replay(struct press_files *files, const struct drv_trace *trace, uint64_t seed);
void press_files_free(struct press_files *files);

/* Copies `bytes` bytes of a file from `offset` on, all of them inside of it. */
void press_files_copy(const struct press_files *files, uint32_t file, uint32_t offset, void *out,
		      size_t bytes);

/* Whether `data` is that stretch of the file. */
bool press_files_hold(const struct press_files *files, uint32_t file, uint32_t offset, const void *data,
		      size_t bytes);

/* Tells sets of files apart: all ends of a launch must have the same. */
uint64_t press_files_digest(const struct press_files *files);

#endif
