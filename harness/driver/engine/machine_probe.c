/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine probe. */
#include "engine/machine_probe.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

#define COPY_BYTES  ((size_t)64 << 10)
#define ROUNDS_MAX  2048u
#define ROUNDS_MIN  32u
#define COPIES_MIN  8u
#define CLOCK_READS 256u
/* for the other to come; it is asked out of band, and polls that once a millisecond in block mode */
#define ARRIVAL_NS UINT64_C(5000000)
#define LINE_NS    UINT64_C(500000)
#define COPY_NS    UINT64_C(400000)

/* The line, and nothing else on it. Each round has two values: odd from the leader, even back. */
struct drv_machine_probe_line {
	_Alignas(64) _Atomic uint32_t word;
	uint8_t rest[60];
};

/* Whoever leads asks for the value that follows `first`; ends with this one. */
#define ROUND_FIRST(number) ((number) << 13)
#define ROUND_LAST(number)  (ROUND_FIRST(number) | 0x1fff)

_Static_assert(2 * ROUNDS_MAX < 0x1fff, "the rounds of each probe have values of their own");

static int ascending(const void *left, const void *right)
{
	const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

static double median_ns(const struct drv_machine_probe *probe, size_t count)
{
	if (!count)
		return -1;
	qsort(probe->rounds, count, sizeof(*probe->rounds), ascending);
	return (double)drv_clock_to_ns(probe->clock, UINT64_C(1024) * probe->rounds[count / 2]) / 1024;
}

static struct drv_machine_probe_line *share(int fd)
{
	void *base =
		mmap(NULL, sizeof(struct drv_machine_probe_line), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return base == MAP_FAILED ? NULL : base;
}

static int partner_of(const struct drv_launch *launch)
{
	for (size_t e = 1; e < launch->endpoints_count; e++)
		if (!strcmp(launch->endpoints[e].host, launch->endpoints[0].host))
			return (int)e;
	return launch->endpoints_count > 1 ? 1 : -1;
}

/* Two that spin on one processor would wait for each other until the kernel takes it away. */
static bool share_line(const struct drv_launch *launch, int partner)
{
	const struct drv_endpoint *ours = &launch->endpoints[0], *theirs = &launch->endpoints[partner];

	return !strcmp(ours->host, theirs->host) && drv_endpoint_cpu(ours) >= 0 &&
	       drv_endpoint_cpu(theirs) >= 0 && drv_endpoint_cpu(ours) != drv_endpoint_cpu(theirs);
}

void drv_machine_probe_start(struct drv_machine_probe *probe, const struct drv_launch *launch, int endpoint,
			     const struct drv_clock *clock)
{
	const int partner = partner_of(launch);

	*probe = (struct drv_machine_probe){.clock = clock, .other = -1, .fd = -1};
	probe->leads = endpoint == 0;
	probe->part = endpoint == 0 || endpoint == partner;
	if (!probe->part)
		return;
	probe->other = endpoint == 0 ? partner : 0;
	probe->rounds = calloc(ROUNDS_MAX, sizeof(*probe->rounds));
	probe->from = calloc(1, COPY_BYTES);
	probe->to = calloc(1, COPY_BYTES);
	if (probe->from)
		memset(probe->from, 1, COPY_BYTES); /* pages of its own, not the one of zeros */
	if (!probe->leads || partner < 0 || !share_line(launch, partner))
		return;
	probe->fd = memfd_create("cadge-witness", MFD_CLOEXEC);
	if (probe->fd >= 0 && !ftruncate(probe->fd, sizeof(struct drv_machine_probe_line)))
		probe->line = share(probe->fd);
}

void drv_machine_probe_end(struct drv_machine_probe *probe)
{
	if (probe->line)
		munmap(probe->line, sizeof(*probe->line));
	if (probe->part && probe->fd >= 0)
		close(probe->fd);
	free(probe->rounds);
	free(probe->from);
	free(probe->to);
	*probe = (struct drv_machine_probe){.other = -1, .fd = -1};
}

json_t *drv_machine_probe_offer(const struct drv_machine_probe *probe)
{
	struct stat file;

	if (!probe->leads || !probe->line || fstat(probe->fd, &file))
		return json_object();
	return json_pack("{s:i, s:i, s:I, s:I}", "pid", (int)getpid(), "fd", probe->fd, "device",
			 (json_int_t)file.st_dev, "inode", (json_int_t)file.st_ino);
}

void drv_machine_probe_accept(struct drv_machine_probe *probe, const json_t *offer)
{
	json_int_t pid, fd, device, inode;
	struct stat file;
	char path[64];
	int found;

	if (probe->leads || !probe->part ||
	    json_unpack((json_t *)(uintptr_t)offer, "{s:I, s:I, s:I, s:I}", "pid", &pid, "fd", &fd, "device",
			&device, "inode", &inode))
		return;
	/* in a pid namespace of its own, the number may be another process's: nothing is opened before it is known */
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, (int)fd);
	found = open(path, O_PATH | O_CLOEXEC);
	if (found < 0)
		return;
	if (!fstat(found, &file) && (json_int_t)file.st_dev == device && (json_int_t)file.st_ino == inode) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", found);
		probe->fd = open(path, O_RDWR | O_CLOEXEC);
		if (probe->fd >= 0)
			probe->line = share(probe->fd);
	}
	close(found);
}

/* Spins until the word is `wanted` or, for the follower, the probe is over. False: the time is up. */
static bool await(struct drv_machine_probe_line *line, uint32_t wanted, uint32_t last, uint32_t *current_out,
		  uint64_t deadline_ns)
{
	for (uint32_t turns = 1;; turns++) {
		const uint32_t current = atomic_load_explicit(&line->word, memory_order_acquire);

		if (current == wanted || current == last) {
			*current_out = current;
			return true;
		}
		if (!(turns & 1023) && drv_now_ns() > deadline_ns)
			return false;
	}
}

static double lead_line(struct drv_machine_probe *probe, uint32_t number)
{
	const uint32_t first = ROUND_FIRST(number), last = ROUND_LAST(number);
	struct drv_machine_probe_line *line = probe->line;
	uint64_t deadline_ns = drv_now_ns() + ARRIVAL_NS, begun_ns = 0;
	uint32_t count = 0, value = first, current;

	/* the first round waits for the other to come */
	for (;;) {
		const uint64_t before = drv_clock_now(probe->clock);

		atomic_store_explicit(&line->word, ++value, memory_order_release);
		if (!await(line, ++value, last, &current, deadline_ns))
			break;
		if (begun_ns)
			probe->rounds[count++] = (uint32_t)(drv_clock_now(probe->clock) - before);
		else
			deadline_ns = (begun_ns = drv_now_ns()) + ARRIVAL_NS;
		if (count == ROUNDS_MAX || (!(count & 31) && drv_now_ns() > begun_ns + LINE_NS))
			break;
	}
	atomic_store_explicit(&line->word, last, memory_order_release);
	return count < ROUNDS_MIN ? -1 : median_ns(probe, count); /* else: the kernel's turns */
}

static void follow_line(struct drv_machine_probe *probe, uint32_t number)
{
	const uint32_t last = ROUND_LAST(number);
	struct drv_machine_probe_line *line = probe->line;
	const uint64_t deadline_ns = drv_now_ns() + 2 * ARRIVAL_NS;
	uint32_t value = ROUND_FIRST(number) + 1, current = 0;

	while (await(line, value, last, &current, deadline_ns) && current != last) {
		atomic_store_explicit(&line->word, value + 1, memory_order_release);
		value += 2;
	}
}

static double copy(struct drv_machine_probe *probe)
{
	const uint64_t end_ns = drv_now_ns() + COPY_NS;
	size_t count = 0;

	if (!probe->from || !probe->to)
		return -1;
	while (count < ROUNDS_MAX && drv_now_ns() < end_ns) {
		const uint64_t before = drv_clock_now(probe->clock);

		memcpy(probe->to, probe->from, COPY_BYTES);
		__asm__ volatile("" : : "r"(probe->to) : "memory");
		probe->rounds[count++] = (uint32_t)(drv_clock_now(probe->clock) - before);
	}
	return count < COPIES_MIN ? -1 : median_ns(probe, count); /* else: the kernel's turns */
}

static double read_clock(struct drv_machine_probe *probe)
{
	uint32_t count = 0;

	for (; count < 32; count++) {
		const uint64_t before = drv_clock_now(probe->clock);
		uint64_t now = before;

		for (uint32_t i = 0; i < CLOCK_READS; i++)
			now = drv_clock_now(probe->clock);
		probe->rounds[count] = (uint32_t)(now - before);
	}
	return median_ns(probe, count) / CLOCK_READS;
}

struct drv_machine_probe_values drv_machine_probe_measure(struct drv_machine_probe *probe, uint32_t number)
{
	struct drv_machine_probe_values values = {-1, -1, -1};

	if (!probe->part || !probe->rounds)
		return values;
	if (probe->line && probe->leads)
		values.line_ns = lead_line(probe, number);
	else if (probe->line)
		follow_line(probe, number);
	values.copy_ns = copy(probe);
	values.clock_ns = read_clock(probe);
	return values;
}

static json_t *maybe_real(double value)
{
	return value < 0 ? json_null() : json_real(value);
}

json_t *drv_machine_probe_json(const struct drv_machine_probe_values *values, uint32_t at, int endpoint)
{
	return json_pack("{s:I, s:i, s:o, s:o, s:o}", "at", (json_int_t)at, "endpoint", endpoint, "line_ns",
			 maybe_real(values->line_ns), "copy_ns", maybe_real(values->copy_ns), "clock_ns",
			 maybe_real(values->clock_ns));
}
