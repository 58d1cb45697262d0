/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges through shared memory: what two cores can do through memory alone. */
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "loop.h"

#define SLEEP_NS 5000000L
/* glibc before 2.38 does not name it */
#ifndef MFD_HUGE_2MB
#define MFD_HUGE_2MB (21u << 26)
#endif

_Static_assert(sizeof(struct memory_control) <= 4096, "the control page is one page");

int memory_sleep(uint32_t *word, uint32_t expected, uint32_t *asleep)
{
	const struct timespec timeout = {.tv_nsec = SLEEP_NS};
	long status = 0;

	__atomic_store_n(asleep, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(word, __ATOMIC_SEQ_CST) == expected)
		status = syscall(SYS_futex, word, FUTEX_WAIT, expected, &timeout, NULL, 0);
	__atomic_store_n(asleep, 0, __ATOMIC_RELAXED);
	return status < 0 && errno != EAGAIN && errno != EINTR && errno != ETIMEDOUT ? -1 : 0;
}

int memory_wake(uint32_t *word, uint32_t *asleep)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(asleep, __ATOMIC_RELAXED))
		return 0;
	return syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0) < 0 ? -1 : 0;
}

/* The low half of a flag, which a futex is made on. */
DRV_INLINE uint32_t *low_half(uint8_t *slot)
{
	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low half comes first");
	return (uint32_t *)(void *)slot;
}

const char *const memory_lines_one[] = {"one", "two", NULL};
const char *const memory_lines_two[] = {"two", "one", NULL};
const char *const memory_spin[] = {"pause", "bare", NULL};
const char *const memory_copies_by_size[] = {"by-size", "one", "two", NULL};
const char *const memory_copies_one[] = {"one", "two", NULL};
const char *const memory_pages[] = {"huge", "small", NULL};
const char *const memory_made[] = {"in-place", "apart", NULL};
const char *const memory_slots_words[] = {"many", "one", NULL};
const char *const memory_rings[] = {"by-size", "window", "own-cache", "shared-cache", NULL};

/* The word of a setting, "" where the floor has not this setting. */
static const char *word_of(const struct drv_floor_run *run, const char *name)
{
	for (const struct drv_floor_setting *setting = run->floor->settings; setting->name; setting++)
		if (!strcmp(setting->name, name))
			return setting->words[drv_floor_choice(run, name)];
	return "";
}

static enum memory_ring ring_of(const struct drv_floor_run *run)
{
	for (unsigned int i = 0; memory_rings[i]; i++)
		if (!strcmp(word_of(run, "ring"), memory_rings[i]))
			return (enum memory_ring)i;
	return MEMORY_RING_BY_SIZE;
}

/* How much each region must hold for the points of this launch. */
static size_t region_need(const struct drv_floor_run *run)
{
	size_t need = MEMORY_SCATTER + MEMORY_PAIR_BYTES;

	for (size_t i = 0; i < run->launch->points_count; i++) {
		const struct drv_floor_point point = drv_floor_point(run->launch, i);
		size_t bytes = memory_stride(point.bytes);

		if (point.flow)
			bytes *= (size_t)memory_slots(point.bytes, point.depth, ring_of(run));
		else
			bytes *= (size_t)memory_turns(point.bytes);
		if (bytes + MEMORY_SCATTER > need)
			need = bytes + MEMORY_SCATTER;
		if (point.bytes >= MEMORY_CHUNKED_BYTES && need < chunk_region_bytes())
			need = chunk_region_bytes();
	}
	return (need + 4095) / 4096 * 4096;
}

int memory_open(struct drv_floor_run *run, uint64_t bytes_max, struct drv_fail *fail)
{
	struct floor_state *state = calloc(1, sizeof(*state));

	if (!state)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the floor's state");
	run->state = state;
	run->bytes_max = bytes_max;
	state->one_line = !strcmp(word_of(run, "lines"), "one");
	state->pause = !strcmp(word_of(run, "spin"), "pause");
	state->copies = !strcmp(word_of(run, "copies"), "two")       ? MEMORY_TWO_COPIES
			: !strcmp(word_of(run, "copies"), "by-size") ? MEMORY_BY_SIZE
								     : MEMORY_ONE_COPY;
	state->one_slot = !strcmp(word_of(run, "slots"), "one");
	state->apart = !strcmp(word_of(run, "made"), "apart");
	state->ring = ring_of(run);
	state->pair = run->block ? 0 : drv_floor_choice(run, "pair");
	state->huge_pages = run->huge_pages = !strcmp(word_of(run, "pages"), "huge");
	state->region_bytes = region_need(run);
	state->area_bytes = 4096 + 2 * state->region_bytes;
	if (state->huge_pages)
		state->area_bytes = drv_floor_huge(state->area_bytes);
	run->path = (struct cadge_path){.bytes = sizeof(run->path),
					.medium = CADGE_MEDIUM_MEMORY,
					.as_asked = 1,
					.asked = "memory of this host"};
	return 0;
}

static int map_area(struct drv_floor_run *run, int file, struct drv_fail *fail)
{
	struct floor_state *state = run->state;

	state->area = mmap(NULL, state->area_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (state->area == MAP_FAILED) {
		state->area = NULL;
		return drv_fail_set(fail, DRV_MEMORY, "%zu bytes of shared memory could not be mapped: %s",
				    state->area_bytes, strerror(errno));
	}
	/* advice, which most kernels do not take for shared memory; then all is touched */
	if (state->huge_pages)
		(void)madvise(state->area, state->area_bytes, MADV_HUGEPAGE);
	for (size_t at = 0; at < state->area_bytes; at += 4096)
		__atomic_fetch_add(state->area + at, 0, __ATOMIC_RELAXED);
	state->control = (struct memory_control *)(void *)state->area;
	return 0;
}

/* A file of shared memory without a name, of huge pages or not. -1: errno. */
static int make_file(const struct floor_state *state, bool huge)
{
	const int file = memfd_create("cadge-floor", MFD_CLOEXEC | (huge ? MFD_HUGETLB | MFD_HUGE_2MB : 0));
	void *probe;

	if (file < 0)
		return -1;
	if (ftruncate(file, (off_t)state->area_bytes) == 0) {
		if (!huge)
			return file;
		/* the system keeps enough huge pages where they can be mapped */
		probe = mmap(NULL, state->area_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		if (probe != MAP_FAILED) {
			munmap(probe, state->area_bytes);
			return file;
		}
	}
	close(file);
	return -1;
}

/* Endpoint 1 makes the memory and names its descriptor for the other to open; nothing is left in /dev/shm. */
static int share_area(struct drv_floor_run *run, struct drv_fail *fail)
{
	struct floor_state *state = run->state;
	char name[64] = "";
	json_t *theirs = NULL;
	int file = -1, status = -1;

	if (run->endpoint == 1) {
		if (state->huge_pages)
			file = make_file(state, true);
		state->huge_shared = file >= 0;
		if (file < 0)
			file = make_file(state, false);
		if (file < 0)
			drv_fail_set(fail, DRV_MEMORY, "%zu bytes of shared memory: %s", state->area_bytes,
				     strerror(errno));
		else
			status = map_area(run, file, fail);
		if (status == 0)
			snprintf(name, sizeof(name), "/proc/%d/fd/%d", (int)getpid(), file);
	}
	if (run->endpoint == 1 && status) {
		if (file >= 0)
			close(file);
		return -1;
	}
	status = drv_floor_swap(run, "memory",
				json_pack("{s:s, s:b}", "name", name, "huge", (int)state->huge_shared),
				&theirs, fail);
	if (status == 0 && run->endpoint == 0) {
		const char *path = json_string_value(json_object_get(theirs, "name"));

		state->huge_shared = json_is_true(json_object_get(theirs, "huge"));
		file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
		if (file < 0)
			status = drv_fail_set(fail, DRV_TRANSPORT,
					      "the other endpoint's memory cannot be opened: %s (is it on "
					      "this host, in the same pid namespace?)",
					      strerror(errno));
		else
			status = map_area(run, file, fail);
	}
	json_decref(theirs);
	/* The descriptor of endpoint 1 stays until the other side has opened it. */
	if (status == 0)
		status = drv_floor_swap(run, "mapped", json_object(), NULL, fail);
	if (file >= 0)
		close(file);
	return status;
}

static uint8_t *region(const struct floor_state *state, unsigned int which)
{
	return memory_region(state, which);
}

int memory_connect(struct drv_floor_run *run, struct drv_fail *fail)
{
	const struct floor_state *state = run->state;
	char pages[80] = "";

	if (share_area(run, fail))
		return -1;
	if (run->bytes_max >= 64)
		snprintf(pages, sizeof(pages), ", shared pages %s, private pages %s",
			 state->huge_shared ? "of 2 MiB" : "of 4 KiB",
			 state->huge_pages ? "advised to be huge" : "of 4 KiB");
	if (run->block)
		snprintf(run->path.used, sizeof(run->path.used), "copy into shared memory, flag, futex%s",
			 pages);
	else
		snprintf(run->path.used, sizeof(run->path.used),
			 "%s, flag on %s, spin %s pause, pair %u of %u%s",
			 run->bytes_max < 64 ? "payload in a cache line" : "copy into shared memory",
			 state->one_line ? "one line" : "two lines", state->pause ? "with" : "without",
			 state->pair, MEMORY_PAIRS, pages);
	if (state->copies != MEMORY_ONE_COPY)
		snprintf(run->path.note, sizeof(run->path.note), "%s in chunks of 16 KiB, two copies",
			 state->copies == MEMORY_BY_SIZE ? "32 to 64 KiB, if touched," : "from 32 KiB on");
	else if (state->apart)
		snprintf(run->path.note, sizeof(run->path.note), "messages are made apart, then copied");
	return 0;
}

/* Places the slots of an exchange. */
static void use_pair(struct floor_state *state, const struct drv_floor_loop *loop)
{
	state->request = state->requests = memory_region(state, 0) + state->pair * MEMORY_PAIR_BYTES;
	state->reply = state->replies =
		state->one_line ? state->request : memory_region(state, 1) + state->pair * MEMORY_PAIR_BYTES;
	state->turns = state->one_slot || state->one_line || !loop->touch ? 1 : memory_turns(loop->bytes);
	state->turn_bytes = state->stride * (size_t)state->turns;
}

/* Where the next message is made. */
DRV_INLINE void make_in(struct drv_floor_loop *loop, uint8_t *slot)
{
	if (loop->touch && !loop->run->state->apart)
		loop->made_at = slot + loop->run->state->payload_at;
}

DRV_INLINE uint8_t *next_slot(const struct floor_state *state, uint8_t *slot, uint8_t *first)
{
	slot += state->stride;
	return slot == first + state->turn_bytes ? first : slot;
}

static bool is_chunked(const struct floor_state *state, const struct drv_floor_loop *loop)
{
	if (state->copies == MEMORY_BY_SIZE)
		return loop->touch && loop->bytes >= MEMORY_CHUNKED_BYTES &&
		       loop->bytes <= MEMORY_CHUNKED_BYTES_MAX;
	return state->copies == MEMORY_TWO_COPIES && loop->bytes >= MEMORY_CHUNKED_BYTES;
}

int memory_begin(struct drv_floor_loop *loop, struct drv_fail *fail)
{
	struct floor_state *state = loop->run->state;
	const bool client = loop->run->endpoint == 0;

	(void)fail;
	state->chunks = !loop->flow && is_chunked(state, loop);
	state->gathered = 0;
	state->payload_at = memory_payload_at(loop->bytes, loop->touch);
	state->sent = state->received = state->next = 0;
	state->stride = memory_stride(loop->bytes);
	state->slots = memory_slots(loop->bytes, loop->depth, state->ring);
	state->window = state->slots < loop->depth ? state->slots : loop->depth;
	state->batch = state->window < 8 ? 1 : state->window / 4;
	use_pair(state, loop);
	if (!loop->flow && !state->chunks)
		make_in(loop, client ? state->request : state->reply);
	state->sleep = &state->control->asleep[client ? 16 : 0];
	state->wake = &state->control->asleep[client ? 0 : 16];
	/* Endpoint 1 begins first: the other does not touch the memory before it has heard of it. */
	if (!client) {
		memset(state->control, 0, sizeof(*state->control));
		for (size_t at = 0; at < state->turn_bytes && !loop->flow; at += state->stride) {
			memory_flag_set(state->requests + at, 0);
			memory_flag_set(state->replies + at, 0);
		}
		for (uint32_t i = 0; i < 2 * MEMORY_CHUNKS && state->chunks; i++)
			memory_flag_set(memory_chunk(state, i / MEMORY_CHUNKS, i % MEMORY_CHUNKS), 0);
		if (loop->flow)
			for (uint64_t i = 0; i < state->slots; i++)
				memory_flag_set(region(state, 0) + i * state->stride, 0);
	}
	return 0;
}

void memory_close(struct drv_floor_run *run)
{
	if (!run->state)
		return;
	if (run->state->area)
		munmap(run->state->area, run->state->area_bytes);
	free(run->state);
	run->state = NULL;
}

/*
 * The flag of the next message to send, and of the next to receive. On one line requests are odd and replies
 * even.
 */
DRV_INLINE uint64_t next_flag(const struct floor_state *state, uint64_t count, const bool one_line,
			      const bool request)
{
	(void)state;
	return one_line ? 2 * count + (request ? 1 : 2) : count + 1;
}

DRV_INLINE int memory_send(struct drv_floor_loop *loop, size_t bytes, const bool client, const bool one_line,
			   const bool block)
{
	struct floor_state *state = loop->run->state;
	uint8_t **const turn = client ? &state->request : &state->reply, *const slot = *turn;

	memory_copy(slot + state->payload_at, loop->made_at, bytes);
	memory_flag_set(slot, next_flag(state, state->sent++, one_line, client));
	if (block && DRV_UNLIKELY(memory_wake(low_half(slot), state->wake) < 0))
		return drv_floor_broke(loop, "futex");
	if (!one_line) {
		*turn = next_slot(state, slot, client ? state->requests : state->replies);
		make_in(loop, *turn);
	}
	return 0;
}

DRV_INLINE int memory_receive(struct drv_floor_loop *loop, const uint8_t **data, size_t *bytes,
			      const bool client, const bool one_line, const bool pause, const bool block)
{
	struct floor_state *state = loop->run->state;
	uint8_t **const turn = client ? &state->reply : &state->request, *const slot = *turn;
	const uint64_t flag = next_flag(state, state->received, one_line, !client);
	const uint32_t before = flag > state->turns ? (uint32_t)(flag - state->turns) : 0;

	if (memory_flag(slot) != flag) {
		if (pause)
			drv_relax();
		if (!block)
			return 0;
		if (DRV_UNLIKELY(memory_sleep(low_half(slot), before, state->sleep) < 0))
			return drv_floor_broke(loop, "futex");
		if (memory_flag(slot) != flag)
			return 0;
	}
	state->received++;
	if (!one_line)
		*turn = next_slot(state, slot, client ? state->replies : state->requests);
	*data = slot + state->payload_at;
	*bytes = loop->bytes;
	return 1;
}

/* One pair of functions, and two loops of them, for each variant. */
#define VARIANT(name, one_line, pause, block)                                                                \
	DRV_INLINE int name##_client_send(struct drv_floor_loop *loop, size_t bytes)                         \
	{                                                                                                    \
		return memory_send(loop, bytes, true, one_line, block);                                      \
	}                                                                                                    \
	DRV_INLINE int name##_client_receive(struct drv_floor_loop *loop, const uint8_t **data,              \
					     size_t *bytes)                                                  \
	{                                                                                                    \
		return memory_receive(loop, data, bytes, true, one_line, pause, block);                      \
	}                                                                                                    \
	DRV_INLINE int name##_server_send(struct drv_floor_loop *loop, size_t bytes)                         \
	{                                                                                                    \
		return memory_send(loop, bytes, false, one_line, block);                                     \
	}                                                                                                    \
	DRV_INLINE int name##_server_receive(struct drv_floor_loop *loop, const uint8_t **data,              \
					     size_t *bytes)                                                  \
	{                                                                                                    \
		return memory_receive(loop, data, bytes, false, one_line, pause, block);                     \
	}                                                                                                    \
	static int name##_client(struct drv_floor_loop *loop)                                                \
	{                                                                                                    \
		return floor_client_loop(loop, block, false, name##_client_send, name##_client_receive);     \
	}                                                                                                    \
	static int name##_server(struct drv_floor_loop *loop)                                                \
	{                                                                                                    \
		return floor_server_loop(loop, block, name##_server_send, name##_server_receive);            \
	}
VARIANT(two_spin, false, false, false)
VARIANT(two_pause, false, true, false)
VARIANT(one_spin, true, false, false)
VARIANT(one_pause, true, true, false)
VARIANT(two_futex, false, false, true)

int memory_spin_client(struct drv_floor_loop *loop)
{
	const struct floor_state *state = loop->run->state;

	if (state->chunks)
		return chunk_client(loop);
	if (state->one_line)
		return state->pause ? one_pause_client(loop) : one_spin_client(loop);
	return state->pause ? two_pause_client(loop) : two_spin_client(loop);
}

int memory_spin_server(struct drv_floor_loop *loop)
{
	const struct floor_state *state = loop->run->state;

	if (state->chunks)
		return chunk_server(loop);
	if (state->one_line)
		return state->pause ? one_pause_server(loop) : one_spin_server(loop);
	return state->pause ? two_pause_server(loop) : two_spin_server(loop);
}

int memory_futex_client(struct drv_floor_loop *loop)
{
	return loop->run->state->chunks ? chunk_client(loop) : two_futex_client(loop);
}

int memory_futex_server(struct drv_floor_loop *loop)
{
	return loop->run->state->chunks ? chunk_server(loop) : two_futex_server(loop);
}
