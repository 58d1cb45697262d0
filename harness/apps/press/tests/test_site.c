/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node knows and holds: files, how popular they are, the cache, the directory, the disk helpers. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fail.h"
#include "press/content/cache.h"
#include "press/directory.h"
#include "press/content/disk.h"
#include "press/content/popularity.h"
#include "tap.h"

#define SITE_BYTES (UINT64_C(256) << 20)
#define DRAWS      1000000

static bool near(double value, double wanted, double share)
{
	return fabs(value - wanted) <= share * wanted;
}

static void check_means(enum press_workload workload, double file_bytes, double reply_bytes)
{
	struct press_popularity popularity;
	struct press_files files;
	uint64_t asked_bytes = 0;

	tap_ok(!press_files_make(&files, workload, SITE_BYTES, 7) &&
		       !press_popularity_start(&popularity, files.count, 0.8, 1),
	       "%s: files are made", press_workload_words[workload]);
	for (int i = 0; i < DRAWS; i++)
		asked_bytes += files.bytes[press_popularity_next(&popularity)];
	tap_ok(near((double)files.total_bytes / files.count, file_bytes, 0.05),
	       "a file has %.0f bytes on average", (double)files.total_bytes / files.count);
	/* few files have many requests, so that chance has more of a say */
	tap_ok(near((double)asked_bytes / DRAWS, reply_bytes, 0.15), "an answer has %.0f bytes on average",
	       (double)asked_bytes / DRAWS);
	press_popularity_free(&popularity);
	press_files_free(&files);
}

static void check_content(void)
{
	struct press_files files, again, other;
	uint8_t *whole, *pieces;
	uint32_t file = 0, bytes;

	tap_ok(!press_files_make(&files, PRESS_NASA, 1 << 20, 3) &&
		       !press_files_make(&again, PRESS_NASA, 1 << 20, 3) &&
		       !press_files_make(&other, PRESS_NASA, 1 << 20, 4),
	       "three sites are made");
	tap_ok(press_files_digest(&files) == press_files_digest(&again) &&
		       press_files_digest(&files) != press_files_digest(&other),
	       "one seed gives the same files, another one others");
	while (files.bytes[file] < 4096)
		file++;
	bytes = files.bytes[file];
	whole = malloc(bytes);
	pieces = malloc(bytes);
	press_files_copy(&files, file, 0, whole, bytes);
	/* pieces that begin and end inside of the head, too */
	for (uint32_t at = 0; at < bytes; at += 5)
		press_files_copy(&files, file, at, pieces + at, bytes - at < 5 ? bytes - at : 5);
	tap_ok(!memcmp(whole, pieces, bytes), "a file is the same in pieces");
	tap_ok(press_files_hold(&files, file, 0, whole, bytes) &&
		       press_files_hold(&files, file, 11, whole + 11, bytes - 11),
	       "it is known again, from any offset");
	tap_ok(!press_files_hold(&files, file ? file - 1 : 1, 0, whole, 64),
	       "another file is not taken for it");
	whole[bytes / 2] ^= 1;
	tap_ok(!press_files_hold(&files, file, 0, whole, bytes), "a bit that is wrong is seen");
	free(whole);
	free(pieces);
	press_files_free(&files);
	press_files_free(&again);
	press_files_free(&other);
}

static void check_popularity(double alpha)
{
	enum { FILES = 1000 };
	static uint32_t counts[FILES];
	struct press_popularity popularity;
	double all = 0;
	bool good = true;

	memset(counts, 0, sizeof(counts));
	for (int i = 0; i < FILES; i++)
		all += pow(i + 1, -alpha);
	good = !press_popularity_start(&popularity, FILES, alpha, 99);
	for (int i = 0; good && i < DRAWS; i++)
		counts[press_popularity_next(&popularity)]++;
	for (int i = 0; i < FILES; i = i * 3 + 1) {
		const double wanted = DRAWS * pow(i + 1, -alpha) / all;

		/* six standard errors */
		good &= fabs(counts[i] - wanted) < 6 * sqrt(wanted);
	}
	tap_ok(good, "exponent %.1f: files are asked for as often as they should be", alpha);
	press_popularity_free(&popularity);
}

static uint32_t gone[8], gone_count;

static void note_gone(void *arg, uint32_t file)
{
	(void)arg;
	gone[gone_count++ % 8] = file;
}

static void check_cache(void)
{
	struct press_cache cache;
	struct press_entry *entries[4], *large;

	tap_ok(!press_cache_start(&cache, 1000, 10), "a cache of 1,000 bytes");
	cache.evicted = note_gone;
	for (uint32_t i = 0; i < 3; i++) {
		entries[i] = press_cache_add(&cache, i, 300);
		press_entry_unpin(entries[i]);
	}
	press_cache_find(&cache, 0);
	entries[3] = press_cache_add(&cache, 3, 300);
	tap_ok(gone_count == 1 && gone[0] == 1 && !cache.entries[1] && cache.bytes == 900,
	       "the least recently used one goes, and no other");
	press_cache_find(&cache, 2);
	press_entry_pin(entries[0]);
	press_entry_unpin(press_cache_add(&cache, 4, 300));
	tap_ok(gone_count == 2 && gone[1] == 2, "what is in use stays, although it was used longest ago");
	large = press_cache_add(&cache, 5, 5000);
	tap_ok(large && !large->cached && gone_count == 2,
	       "what is larger than the cache is had beside it, and nothing goes");
	press_entry_unpin(large);
	press_entry_pin(press_cache_find(&cache, 4));
	large = press_cache_add(&cache, 6, 300);
	tap_ok(large && !large->cached && cache.bytes <= 1000,
	       "with all of it in use nothing goes, and the cache is no larger");
	press_entry_unpin(large);
	press_cache_drop(&cache, entries[3]);
	tap_ok(!cache.entries[3] && entries[3]->pins == 1, "what could not be filled is kept no longer");
	press_entry_unpin(entries[3]);
	press_cache_free(&cache);
}

static void check_arena(void)
{
	static uint8_t memory[10 * PRESS_PAGE_BYTES];
	struct press_arena arena;
	struct press_cache cache;
	struct press_entry *entries[3];
	uint8_t *first, *second;

	tap_ok(!press_arena_start(&arena, memory, sizeof(memory)), "an arena of ten pages");
	first = press_arena_take(&arena, 3 * PRESS_PAGE_BYTES);
	second = press_arena_take(&arena, 3 * PRESS_PAGE_BYTES + 1);
	tap_ok(first == memory && second == memory + 3 * PRESS_PAGE_BYTES,
	       "stretches lie side by side, of whole pages");
	tap_ok(!press_arena_take(&arena, 4 * PRESS_PAGE_BYTES), "there is no room for four pages in three");
	press_arena_give(&arena, first, 3 * PRESS_PAGE_BYTES);
	tap_ok(press_arena_take(&arena, 3 * PRESS_PAGE_BYTES) == memory + 7 * PRESS_PAGE_BYTES &&
		       press_arena_take(&arena, 1) == memory,
	       "what was given back is found again, when the end has come");
	press_arena_end(&arena);

	press_arena_start(&arena, memory, sizeof(memory));
	press_cache_start(&cache, 8 * PRESS_PAGE_BYTES, 4);
	cache.arena = &arena;
	for (uint32_t i = 0; i < 3; i++)
		entries[i] = press_cache_add(&cache, i, 4 * PRESS_PAGE_BYTES);
	tap_ok(entries[0]->arena && entries[1]->arena && !entries[2]->arena && !entries[2]->cached,
	       "what has no room in the arena is had beside it");
	press_entry_unpin(entries[2]);
	press_entry_unpin(entries[0]);
	entries[0] = press_cache_add(&cache, 3, 4 * PRESS_PAGE_BYTES);
	tap_ok(entries[0]->cached && entries[0]->data == memory, "pages of what had to go are used again");
	press_entry_unpin(entries[0]);
	press_entry_unpin(entries[1]);
	press_cache_free(&cache);
	tap_ok(press_arena_take(&arena, sizeof(memory)) == memory, "in the end all pages are free");
	press_arena_end(&arena);
}

static void check_directory(void)
{
	struct press_directory directory;

	tap_ok(!press_directory_start(&directory, 4, 2), "the directory of node 2");
	tap_ok(press_directory_choose(&directory, 0) == 2, "what nobody holds is served here");
	press_directory_note(&directory, 0, 1, true);
	press_directory_note(&directory, 0, 3, true);
	directory.load[1] = 5;
	directory.load[3] = 4;
	tap_ok(press_directory_choose(&directory, 0) == 3, "of two that hold it, the less busy one serves");
	directory.load[3] = 5;
	tap_ok(press_directory_choose(&directory, 0) == 3, "of two alike, the one that comes next");
	press_directory_note(&directory, 0, 2, true);
	tap_ok(press_directory_choose(&directory, 0) == 2, "what is here is served here");
	press_directory_note(&directory, 0, 2, false);
	directory.load[1] = directory.load[3] = PRESS_OVERLOAD + 1;
	tap_ok(press_directory_choose(&directory, 0) == 2,
	       "where all are overloaded and this node is not, it reads a copy");
	directory.load[2] = PRESS_OVERLOAD;
	tap_ok(press_directory_choose(&directory, 0) == 3, "but not if it is busy itself");
	press_directory_forget(&directory, 3);
	tap_ok(press_directory_choose(&directory, 0) == 1, "a node that is gone serves nothing");
	press_directory_free(&directory);
}

static unsigned dropped;

static void drop(struct press_read *read)
{
	(void)read;
	dropped++;
}

static void check_disk(void)
{
	enum { READS = 6 };
	static struct press_read reads[PRESS_READS_MAX + 8];
	struct press_files files;
	struct press_disk disk;
	struct press_read *read;
	struct timespec from, to;
	uint8_t *data[READS];
	unsigned done = 0, right = 0, taken = 0;
	double took_ms;

	press_files_make(&files, PRESS_CLARKNET, 1 << 20, 5);
	tap_ok(!press_disk_start(&disk, &files, 2, 20000000, NULL), "two helpers, 20 ms a file");
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (uint32_t i = 0; i < READS; i++) {
		data[i] = malloc(files.bytes[i]);
		reads[i] = (struct press_read){.file = i, .data = data[i]};
		press_disk_read(&disk, &reads[i]);
	}
	while (done < READS) {
		struct pollfd ended = {.fd = disk.event_fd, .events = POLLIN};

		if (poll(&ended, 1, 5000) != 1)
			break;
		while ((read = press_disk_ended(&disk))) {
			done++;
			right += press_files_hold(&files, read->file, 0, read->data, files.bytes[read->file]);
		}
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	took_ms = (double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) / 1e6;
	tap_ok(done == READS && right == READS, "%u of %u files were read, %u right", done, READS, right);
	tap_ok(took_ms >= 60, "six reads by two helpers take three times as long: %.1f ms", took_ms);
	for (uint32_t i = 0; i < PRESS_READS_MAX + 8; i++) {
		reads[i] = (struct press_read){.file = 0, .data = data[0]};
		taken += press_disk_read(&disk, &reads[i]);
	}
	tap_ok(taken >= PRESS_READS_MAX && taken <= PRESS_READS_MAX + 2, "a full queue takes no more: %u",
	       taken);
	press_disk_end(&disk, drop);
	tap_ok(dropped == taken, "all that nobody took is given back at the end: %u", dropped);
	for (uint32_t i = 0; i < READS; i++)
		free(data[i]);
	press_files_free(&files);
}

/* Really read: what helpers bring is what was written, and nothing of it has a name. */
static void check_storage(void)
{
	enum { READS = 50 };
	static struct press_read reads[READS];
	struct drv_fail fail = {0};
	struct press_storage storage;
	struct press_files files;
	struct press_disk disk;
	struct press_read *read;
	struct stat about;
	unsigned done = 0, right = 0;
	uint64_t took_ns = 0;

	press_files_make(&files, PRESS_CLARKNET, 8 << 20, 6);
	if (press_storage_make(&storage, &files, &fail)) {
		tap_ok(fail.reason == DRV_NODE_LACKS, "real reads, not here: %s", fail.text);
		press_storage_free(&storage);
		press_files_free(&files);
		return;
	}
	tap_ok(!fstat(storage.fd, &about) && about.st_nlink == 0 &&
		       (uint64_t)about.st_size >= files.total_bytes,
	       "%u files are written to one without a name, to be read %s", files.count,
	       storage.direct ? "past the page cache" : "through the page cache");
	tap_ok(!press_disk_start(&disk, &files, 4, 0, &storage), "four helpers that really read");
	for (uint32_t i = 0; i < READS; i++) {
		const uint32_t file = i * 7 % files.count;

		reads[i] = (struct press_read){.file = file, .data = malloc(files.bytes[file])};
		press_disk_read(&disk, &reads[i]);
	}
	while (done < READS) {
		struct pollfd ended = {.fd = disk.event_fd, .events = POLLIN};

		if (poll(&ended, 1, 5000) != 1)
			break;
		while ((read = press_disk_ended(&disk))) {
			done++;
			took_ns += read->took_ns;
			right += !read->failed &&
				 press_files_hold(&files, read->file, 0, read->data, files.bytes[read->file]);
			free(read->data);
		}
	}
	tap_ok(done == READS && right == READS && took_ns, "%u of %u files were read, %u right, %llu ns each",
	       done, READS, right, (unsigned long long)took_ns / READS);
	/* a disk that fails */
	tap_ok(!ftruncate(storage.fd, 0), "the disk loses everything");
	reads[0] = (struct press_read){.file = 0, .data = malloc(files.bytes[0])};
	press_disk_read(&disk, &reads[0]);
	while (!(read = press_disk_ended(&disk)))
		poll(&(struct pollfd){.fd = disk.event_fd, .events = POLLIN}, 1, 100);
	tap_ok(read->failed, "who reads is told");
	free(read->data);
	press_disk_end(&disk, drop);
	press_storage_free(&storage);
	press_files_free(&files);
}

int main(void)
{
	check_storage();
	check_means(PRESS_CLARKNET, 14200, 9700);
	check_means(PRESS_FORTH, 19300, 8800);
	check_means(PRESS_NASA, 27600, 21800);
	check_means(PRESS_RUTGERS, 27300, 19000);
	check_content();
	check_popularity(0.6);
	check_popularity(1.0);
	check_cache();
	check_arena();
	check_directory();
	check_disk();
	return tap_done();
}
