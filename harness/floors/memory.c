/* SPDX-License-Identifier: BSD-3-Clause */
/* floor-cacheline, floor-copyflag and floor-futex: what two cores can do through memory alone. */
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

#define SLEEP_NS         5000000L
#define LINE_PAYLOAD_MAX 56u

_Static_assert(sizeof(struct memory_control) <= 4096, "the control page is one page");

int memory_sleep(uint32_t *word, uint32_t seen, uint32_t *asleep)
{
	const struct timespec timeout = {.tv_nsec = SLEEP_NS};
	long status = 0;

	__atomic_store_n(asleep, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(word, __ATOMIC_SEQ_CST) == seen)
		status = syscall(SYS_futex, word, FUTEX_WAIT, seen, &timeout, NULL, 0);
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
FLOOR_INLINE uint32_t *low_half(uint8_t *slot)
{
	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low half comes first");
	return (uint32_t *)(void *)slot;
}

/* How much each region must hold for the points of this launch. */
static size_t region_need(const struct floor_run *run)
{
	size_t need = MEMORY_SCATTER + MEMORY_PAIR_BYTES;

	for (size_t i = 0; i < run->launch.points_count; i++) {
		const struct drv_point *point = &run->launch.points[i];
		size_t bytes = memory_stride(point->request_bytes);

		if (point->pattern == DRV_STREAM)
			bytes *= (size_t)memory_slots(point->request_bytes, point->depth);
		if (bytes + MEMORY_SCATTER > need)
			need = bytes + MEMORY_SCATTER;
	}
	return (need + 4095) / 4096 * 4096;
}

int memory_open(struct floor_run *run, struct drv_fail *fail)
{
	struct floor_state *state = calloc(1, sizeof(*state));

	if (!state)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the floor's state");
	run->state = state;
	run->bytes_max = run->floor == &floor_cacheline ? LINE_PAYLOAD_MAX : DRV_MESSAGE_BYTES_MAX;
	state->region_bytes = region_need(run);
	state->area_bytes = 4096 + 2 * state->region_bytes;
	run->path = (struct cadge_path){.bytes = sizeof(run->path),
					.medium = CADGE_MEDIUM_MEMORY,
					.as_asked = 1,
					.asked = "memory of this host"};
	return 0;
}

static int map_area(struct floor_run *run, int file, struct drv_fail *fail)
{
	struct floor_state *state = run->state;

	state->area =
		mmap(NULL, state->area_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
	if (state->area == MAP_FAILED) {
		state->area = NULL;
		return drv_fail_set(fail, DRV_MEMORY, "%zu bytes of shared memory could not be mapped: %s",
				    state->area_bytes, strerror(errno));
	}
	state->control = (struct memory_control *)(void *)state->area;
	return 0;
}

/* Endpoint 1 makes the memory and names its descriptor for the other to open; nothing is left in /dev/shm. */
static int share_area(struct floor_run *run, struct drv_fail *fail)
{
	struct floor_state *state = run->state;
	char name[64] = "";
	json_t *theirs = NULL;
	int file = -1, status = -1;

	if (run->endpoint == 1) {
		file = memfd_create("cadge-floor", MFD_CLOEXEC);
		if (file < 0 || ftruncate(file, (off_t)state->area_bytes) < 0)
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
	status = floor_exchange(run, "memory", json_pack("{s:s}", "name", name), &theirs, fail);
	if (status == 0 && run->endpoint == 0) {
		const char *path = json_string_value(json_object_get(theirs, "name"));

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
		status = drv_oob_barrier(run->oob, "mapped", NULL, drv_now_ns() + 5 * FLOOR_NS_PER_S, fail);
	if (file >= 0)
		close(file);
	return status;
}

static uint8_t *region(const struct floor_state *state, unsigned int which)
{
	return state->area + 4096 + which * state->region_bytes;
}

static void use_pair(struct floor_state *state, bool one_line, bool pause, uint32_t pair)
{
	state->one_line = one_line;
	state->pause = pause;
	state->pair = pair;
	state->request = region(state, 0) + pair * MEMORY_PAIR_BYTES;
	state->reply = one_line ? state->request : region(state, 1) + pair * MEMORY_PAIR_BYTES;
}

#define TRY_ROUNDS    160u
#define TRY_DONE      UINT32_MAX
#define TRY_BUDGET_NS (UINT64_C(400) * FLOOR_NS_PER_MS)

struct candidate {
	bool one_line, pause;
	uint32_t pair;
};

/* Number 1 and up. Which variants there are depends on the floor alone, so both sides count alike. */
static uint32_t candidates_count(const struct floor_run *run)
{
	return MEMORY_PAIRS * (run->floor == &floor_cacheline ? 4 : 2);
}

static struct candidate candidate_of(uint32_t number)
{
	const uint32_t variant = (number - 1) / MEMORY_PAIRS;

	return (struct candidate){
		.one_line = variant & 2, .pause = variant & 1, .pair = (number - 1) % MEMORY_PAIRS};
}

static int compare_u64(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Spins until the flag is `want`; for longer than a look around takes only when the other side is gone. */
static int spin(struct floor_run *run, const uint8_t *slot, uint64_t want, bool pause, uint64_t until_ns)
{
	uint32_t idle = 0;

	(void)run;
	while (memory_flag(slot) != want) {
		if (pause)
			memory_relax();
		if ((++idle & 4095) == 0 && drv_now_ns() > until_ns)
			return -1;
	}
	return 0;
}

static int try_one(struct floor_run *run, uint64_t until_ns, uint64_t *median_out)
{
	struct floor_state *state = run->state;
	uint64_t spans[TRY_ROUNDS], before, now;

	before = drv_clock_now(&run->clock);
	for (uint32_t i = 0; i < TRY_ROUNDS; i++) {
		const uint64_t flag = state->one_line ? 2 * i + 1 : i + 1;

		memory_flag_set(state->request, flag);
		if (spin(run, state->reply, state->one_line ? flag + 1 : flag, state->pause, until_ns))
			return -1;
		now = drv_clock_now(&run->clock);
		spans[i] = now - before;
		before = now;
	}
	qsort(spans, TRY_ROUNDS, sizeof(spans[0]), compare_u64);
	*median_out = drv_clock_to_ns(&run->clock, spans[TRY_ROUNDS / 2]);
	return 0;
}

/* Endpoint 1's part: answers on the candidate that stands in the control page. */
static int try_serve(struct floor_run *run, struct drv_fail *fail)
{
	const uint64_t until_ns = drv_now_ns() + 10 * FLOOR_NS_PER_S;
	struct floor_state *state = run->state;
	uint32_t number = 0, idle = 0, now;
	uint64_t flag = 0;

	for (;;) {
		if ((idle++ & 63) == 0) {
			now = __atomic_load_n(&state->control->candidate, __ATOMIC_ACQUIRE);
			if (now == TRY_DONE)
				return 0;
			if (now != number) {
				const struct candidate c = candidate_of(now);

				number = now;
				use_pair(state, c.one_line, c.pause, c.pair);
				flag = 1;
			}
			if ((idle & 0xffff) == 1 && drv_now_ns() > until_ns)
				return drv_fail_set(fail, DRV_PEER_LOST,
						    "endpoint 0 stopped trying variants");
		}
		if (!number)
			continue;
		if (memory_flag(state->request) == flag) {
			memory_flag_set(state->reply, state->one_line ? flag + 1 : flag);
			flag += state->one_line ? 2 : 1;
		} else if (state->pause) {
			memory_relax();
		}
	}
}

static int try_all(struct floor_run *run, struct drv_fail *fail)
{
	struct floor_state *state = run->state;
	const uint64_t budget_end_ns = drv_now_ns() + TRY_BUDGET_NS,
		       until_ns = drv_now_ns() + 8 * FLOOR_NS_PER_S;
	struct candidate best = candidate_of(1);
	uint64_t median_ns;

	state->median_ns = UINT64_MAX;
	for (uint32_t i = 0; i < candidates_count(run); i++) {
		/* variants in turn, so that a budget that ends early has seen some of each */
		const uint32_t variants = candidates_count(run) / MEMORY_PAIRS;
		const uint32_t number = i % variants * MEMORY_PAIRS + i / variants + 1;
		const struct candidate c = candidate_of(number);

		use_pair(state, c.one_line, c.pause, c.pair);
		/* what an earlier candidate left on these lines must not look like an answer */
		memory_flag_set(state->request, 0);
		memory_flag_set(state->reply, 0);
		__atomic_store_n(&state->control->candidate, number, __ATOMIC_RELEASE);
		if (try_one(run, until_ns, &median_ns))
			return drv_fail_set(fail, DRV_PEER_LOST,
					    "endpoint 1 did not answer while variants were tried");
		state->tried++;
		if (median_ns > state->worst_median_ns)
			state->worst_median_ns = median_ns;
		if (median_ns < state->median_ns) {
			state->median_ns = median_ns;
			best = c;
		}
		if (drv_now_ns() > budget_end_ns)
			break;
	}
	__atomic_store_n(&state->control->candidate, TRY_DONE, __ATOMIC_RELEASE);
	use_pair(state, best.one_line, best.pause, best.pair);
	return 0;
}

/* Tries pairs of lines and ways of spinning, and agrees on the one with the least median. */
static int choose(struct floor_run *run, struct drv_fail *fail)
{
	struct floor_state *state = run->state;
	json_t *theirs = NULL;
	int one_line = 0, pause = 0, pair = 0;

	if (run->endpoint == 1 ? try_serve(run, fail) : try_all(run, fail))
		return -1;
	if (floor_exchange(run, "variant",
			   json_pack("{s:b, s:b, s:i}", "one_line", state->one_line, "pause", state->pause,
				     "pair", (int)state->pair),
			   &theirs, fail))
		return -1;
	if (run->endpoint == 1 &&
	    (json_unpack(theirs, "{s:b, s:b, s:i}", "one_line", &one_line, "pause", &pause, "pair", &pair) ||
	     pair < 0 || pair >= (int)MEMORY_PAIRS)) {
		json_decref(theirs);
		return drv_fail_set(fail, DRV_PROTOCOL, "endpoint 0 chose no variant");
	}
	json_decref(theirs);
	if (run->endpoint == 1)
		use_pair(state, one_line, pause, (uint32_t)pair);
	return 0;
}

int memory_connect(struct floor_run *run, struct drv_fail *fail)
{
	struct floor_state *state = run->state;

	if (share_area(run, fail))
		return -1;
	if (run->block) {
		use_pair(state, false, false, 0);
		snprintf(run->path.used, sizeof(run->path.used), "copy into shared memory, flag, futex");
		return 0;
	}
	if (choose(run, fail))
		return -1;
	snprintf(run->path.used, sizeof(run->path.used),
		 run->floor == &floor_cacheline ? "a cache line that holds payload and flag"
						: "copy into shared memory, flag");
	if (run->endpoint == 0)
		snprintf(run->path.note, sizeof(run->path.note),
			 "%s, spin %s pause, pair %u of %u; medians of %u variants tried: %llu to %llu ns",
			 state->one_line ? "one line" : "two lines", state->pause ? "with" : "without",
			 state->pair, MEMORY_PAIRS, state->tried, (unsigned long long)state->median_ns,
			 (unsigned long long)state->worst_median_ns);
	return 0;
}

int memory_begin(struct floor_loop *loop, struct drv_fail *fail)
{
	struct floor_state *state = loop->run->state;
	const bool client = loop->run->endpoint == 0;

	(void)fail;
	use_pair(state, state->one_line, state->pause, state->pair);
	state->payload_at = memory_payload_at(loop->bytes);
	state->sent = state->received = state->next = 0;
	state->stride = memory_stride(loop->bytes);
	state->slots = memory_slots(loop->bytes, loop->point->depth);
	state->batch = state->slots < 8 ? 1 : state->slots / 4;
	state->sleep = &state->control->asleep[client ? 16 : 0];
	state->wake = &state->control->asleep[client ? 0 : 16];
	/* Endpoint 1 begins first: the other does not touch the memory before it has heard of it. */
	if (!client) {
		memset(state->control, 0, sizeof(*state->control));
		memory_flag_set(state->request, 0);
		memory_flag_set(state->reply, 0);
		if (loop->point->pattern == DRV_STREAM)
			for (uint64_t i = 0; i < state->slots; i++)
				memory_flag_set(region(state, 0) + i * state->stride, 0);
	}
	return 0;
}

void memory_close(struct floor_run *run)
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
FLOOR_INLINE uint64_t next_flag(const struct floor_state *state, uint64_t count, const bool one_line,
				const bool request)
{
	(void)state;
	return one_line ? 2 * count + (request ? 1 : 2) : count + 1;
}

FLOOR_INLINE int memory_send(struct floor_loop *loop, size_t bytes, const bool client, const bool one_line,
			     const bool block)
{
	struct floor_state *state = loop->run->state;
	uint8_t *slot = client ? state->request : state->reply;

	memory_copy(slot + state->payload_at, loop->out, bytes);
	memory_flag_set(slot, next_flag(state, state->sent++, one_line, client));
	if (block && FLOOR_UNLIKELY(memory_wake(low_half(slot), state->wake) < 0))
		return floor_broke(loop, "futex");
	return 0;
}

FLOOR_INLINE int memory_receive(struct floor_loop *loop, const uint8_t **data, size_t *bytes,
				const bool client, const bool one_line, const bool pause, const bool block)
{
	struct floor_state *state = loop->run->state;
	uint8_t *slot = client ? state->reply : state->request;
	const uint64_t flag = next_flag(state, state->received, one_line, !client);

	if (memory_flag(slot) != flag) {
		if (pause)
			memory_relax();
		if (!block)
			return 0;
		if (FLOOR_UNLIKELY(memory_sleep(low_half(slot), (uint32_t)(flag - 1), state->sleep) < 0))
			return floor_broke(loop, "futex");
		if (memory_flag(slot) != flag)
			return 0;
	}
	state->received++;
	*data = slot + state->payload_at;
	*bytes = loop->bytes;
	return 1;
}

/* One pair of functions, and two loops of them, for each variant. */
#define VARIANT(name, one_line, pause, block)                                                                \
	FLOOR_INLINE int name##_client_send(struct floor_loop *loop, size_t bytes)                           \
	{                                                                                                    \
		return memory_send(loop, bytes, true, one_line, block);                                      \
	}                                                                                                    \
	FLOOR_INLINE int name##_client_receive(struct floor_loop *loop, const uint8_t **data, size_t *bytes) \
	{                                                                                                    \
		return memory_receive(loop, data, bytes, true, one_line, pause, block);                      \
	}                                                                                                    \
	FLOOR_INLINE int name##_server_send(struct floor_loop *loop, size_t bytes)                           \
	{                                                                                                    \
		return memory_send(loop, bytes, false, one_line, block);                                     \
	}                                                                                                    \
	FLOOR_INLINE int name##_server_receive(struct floor_loop *loop, const uint8_t **data, size_t *bytes) \
	{                                                                                                    \
		return memory_receive(loop, data, bytes, false, one_line, pause, block);                     \
	}                                                                                                    \
	static int name##_client(struct floor_loop *loop)                                                    \
	{                                                                                                    \
		return floor_client_loop(loop, block, false, name##_client_send, name##_client_receive);     \
	}                                                                                                    \
	static int name##_server(struct floor_loop *loop)                                                    \
	{                                                                                                    \
		return floor_server_loop(loop, block, name##_server_send, name##_server_receive);            \
	}
VARIANT(two_spin, false, false, false)
VARIANT(two_pause, false, true, false)
VARIANT(one_spin, true, false, false)
VARIANT(one_pause, true, true, false)
VARIANT(two_futex, false, false, true)

static int spin_client(struct floor_loop *loop)
{
	const struct floor_state *state = loop->run->state;

	if (state->one_line)
		return state->pause ? one_pause_client(loop) : one_spin_client(loop);
	return state->pause ? two_pause_client(loop) : two_spin_client(loop);
}

static int spin_server(struct floor_loop *loop)
{
	const struct floor_state *state = loop->run->state;

	if (state->one_line)
		return state->pause ? one_pause_server(loop) : one_spin_server(loop);
	return state->pause ? two_pause_server(loop) : two_spin_server(loop);
}

const struct floor floor_cacheline = {
	.name = "floor-cacheline",
	.substrate = "cacheline",
	.title = "cache line bounced between two cores",
	.within = true,
	.poll = true,
	.open = memory_open,
	.connect = memory_connect,
	.begin = memory_begin,
	.client = spin_client,
	.server = spin_server,
	.close = memory_close,
};

const struct floor floor_copyflag = {
	.name = "floor-copyflag",
	.substrate = "copyflag",
	.title = "copy into shared memory and a flag",
	.within = true,
	.poll = true,
	.stream = true,
	.open = memory_open,
	.connect = memory_connect,
	.begin = memory_begin,
	.client = spin_client,
	.server = spin_server,
	.stream_client = ring_client,
	.stream_server = ring_server,
	.close = memory_close,
};

const struct floor floor_futex = {
	.name = "floor-futex",
	.substrate = "futex",
	.title = "copy into shared memory and a futex",
	.within = true,
	.block = true,
	.stream = true,
	.open = memory_open,
	.connect = memory_connect,
	.begin = memory_begin,
	.client = two_futex_client,
	.server = two_futex_server,
	.stream_client = ring_client,
	.stream_server = ring_server,
	.close = memory_close,
};
