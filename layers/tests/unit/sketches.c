/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that the contract has to serve beside the driver, in small: a client whose threads leave the layer to one that
 * dispatches, a call that a second server answers, an event loop with descriptors of its own, a server that dies and comes
 * back. What they need was there before the contract was frozen.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "cadge/check.h"
#include "kit/bytes.h"
#include "tests/sketches/end.h"

/* A call: which, who made it, and its argument, 8 bytes each. A result: which, who answered, and the value. */
enum { WORD_BYTES = 8, CALL_BYTES = 3 * WORD_BYTES, CALLS = 100 };

static void write_words(uint8_t *to, uint64_t first, uint64_t second, uint64_t third)
{
	cadge_store64(to, first);
	cadge_store64(to + WORD_BYTES, second);
	cadge_store64(to + 2 * WORD_BYTES, third);
}

static uint64_t word(const uint8_t *from, unsigned int number)
{
	return cadge_load64(from + number * WORD_BYTES);
}

/* What servers make of an argument. */
static uint64_t answer_to(uint64_t argument)
{
	return argument * 3 + 1;
}

/* ---- servers ---- */

/* Calls that wait for the loop, since not every layer can send inside its sink. */
struct inbox {
	uint8_t call[4 * CALLS][CALL_BYTES];
	uint32_t from[4 * CALLS];
	unsigned int came, done;
};

static void on_call(struct end *end, uint32_t peer, const uint8_t *data, size_t bytes)
{
	struct inbox *inbox = end->arg;

	EXPECT(end->rank, bytes == CALL_BYTES && inbox->came < 4 * CALLS, "a call of %zu bytes", bytes);
	inbox->from[inbox->came] = peer;
	memcpy(inbox->call[inbox->came++], data, bytes);
}

/* Serves so many calls; `relay_to`: passes them on instead. */
static void serve(struct end *end, unsigned int calls, int relay_to)
{
	struct inbox *inbox = end->arg;

	while (inbox->done < calls) {
		const uint8_t *call = inbox->call[inbox->done];
		uint8_t result[CALL_BYTES];

		end_poll(end);
		if (inbox->done == inbox->came)
			continue;
		if (relay_to >= 0) {
			end_send(end, (uint32_t)relay_to, call, CALL_BYTES);
		} else {
			write_words(result, word(call, 0), end->rank->number, answer_to(word(call, 2)));
			end_send(end, (uint32_t)word(call, 1), result, CALL_BYTES);
		}
		inbox->done++;
	}
}

/* ---- a client with a thread that dispatches ---- */

enum { CALLERS = 2 };

/* One call of one thread; the dispatcher owns the context, so threads meet it here alone. */
struct slot {
	atomic_int state; /* IDLE, ASKED by the caller, UNDER_WAY, ANSWERED by the dispatcher */
	uint64_t argument, value;
};
enum { IDLE, ASKED, UNDER_WAY, ANSWERED };

struct caller {
	struct slot slot;
	unsigned int number, wrong;
	int wake_fd; /* -1: the dispatcher polls */
	atomic_bool ended;
};

static void *call_often(void *arg)
{
	struct caller *caller = arg;

	for (uint64_t i = 0; i < CALLS; i++) {
		const uint64_t argument = i * CALLERS + caller->number, one = 1;

		caller->slot.argument = argument;
		atomic_store_explicit(&caller->slot.state, ASKED, memory_order_release);
		if (caller->wake_fd >= 0 && write(caller->wake_fd, &one, sizeof(one)) != sizeof(one))
			caller->wrong++;
		while (atomic_load_explicit(&caller->slot.state, memory_order_acquire) != ANSWERED)
			sched_yield();
		caller->wrong += caller->slot.value != answer_to(argument);
		atomic_store_explicit(&caller->slot.state, IDLE, memory_order_release);
	}
	atomic_store(&caller->ended, true);
	if (caller->wake_fd >= 0 && write(caller->wake_fd, &(uint64_t){1}, WORD_BYTES) != WORD_BYTES)
		caller->wrong++;
	return NULL;
}

static void on_result(struct end *end, uint32_t peer, const uint8_t *data, size_t bytes)
{
	struct caller *callers = end->arg;

	(void)peer;
	EXPECT(end->rank, bytes == CALL_BYTES && word(data, 0) < CALLERS, "a result of %zu bytes", bytes);
	callers[word(data, 0)].slot.value = word(data, 2);
	atomic_store_explicit(&callers[word(data, 0)].slot.state, ANSWERED, memory_order_release);
}

/* Sends what threads have asked for. True: all of them have ended. */
static bool dispatch(struct end *end, struct caller *callers)
{
	bool over = true;

	for (unsigned int i = 0; i < CALLERS; i++) {
		struct slot *slot = &callers[i].slot;
		uint8_t call[CALL_BYTES];

		over &= atomic_load(&callers[i].ended);
		if (atomic_load_explicit(&slot->state, memory_order_acquire) != ASKED)
			continue;
		write_words(call, i, end->rank->number, slot->argument);
		atomic_store_explicit(&slot->state, UNDER_WAY, memory_order_relaxed);
		end_send(end, 1, call, sizeof(call));
	}
	return over;
}

static void start_callers(struct rank *rank, struct caller *callers, pthread_t *threads, int wake_fd)
{
	for (unsigned int i = 0; i < CALLERS; i++) {
		callers[i] = (struct caller){.number = i, .wake_fd = wake_fd};
		EXPECT(rank, pthread_create(&threads[i], NULL, call_often, &callers[i]) == 0, "no thread");
	}
}

static void end_callers(struct rank *rank, struct caller *callers, pthread_t *threads)
{
	for (unsigned int i = 0; i < CALLERS; i++) {
		pthread_join(threads[i], NULL);
		EXPECT(rank, !callers[i].wrong, "thread %u got %u wrong answers", i, callers[i].wrong);
	}
}

static struct inbox inbox;

static void begin(struct end *end, struct rank *rank, const char *layer)
{
	end_open(end, rank, layer);
	end->arg = &inbox;
	end->on_message = on_call;
}

static void dispatching_thread(struct rank *rank, const char *layer)
{
	static struct caller callers[CALLERS];
	pthread_t threads[CALLERS];
	struct end end;

	begin(&end, rank, layer);
	end_connect(&end, 1 - rank->number, 1 - rank->number);
	if (rank->number) {
		serve(&end, CALLERS * CALLS, -1);
	} else {
		end.arg = callers;
		end.on_message = on_result;
		start_callers(rank, callers, threads, -1);
		while (!dispatch(&end, callers))
			end_poll(&end);
		end_callers(rank, callers, threads);
	}
	meet(rank, 0, 2);
	end_close(&end);
}

/* ---- an event loop ---- */

static void watch(struct rank *rank, int epoll_fd, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	EXPECT(rank, epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0, "no descriptor to watch");
}

/* Waits for one of three: the layer, threads, a timer. */
static void look_around(struct end *end, int epoll_fd, int wake_fd, int timer_fd, unsigned int *ticks)
{
	struct epoll_event events[3];
	uint64_t due_ns = UINT64_MAX, count;
	int layer_fd = -1, found, timeout_ms = -1;
	int code = end->layer.event(end->ctx, &layer_fd, &due_ns);

	EXPECT(end->rank, code >= 0, "event: %s", cadge_code_name(code));
	if (code == CADGE_BUSY)
		timeout_ms = 0;
	else if (due_ns < UINT64_C(1000000000))
		timeout_ms = (int)(due_ns / 1000000) + 1;
	if (layer_fd >= 0) {
		struct epoll_event event = {.events = EPOLLIN, .data.fd = layer_fd};

		epoll_ctl(epoll_fd, EPOLL_CTL_ADD, layer_fd, &event); /* it is there but the first time */
	}
	found = epoll_wait(epoll_fd, events, 3, timeout_ms);
	for (int i = 0; i < found; i++)
		if (events[i].data.fd != layer_fd && read(events[i].data.fd, &count, sizeof(count)) > 0)
			*ticks += events[i].data.fd == timer_fd;
	(void)wake_fd;
	end_poll(end);
}

static void event_loop(struct rank *rank, const char *layer)
{
	const struct itimerspec each_ms = {.it_interval.tv_nsec = 1000000, .it_value.tv_nsec = 1000000};
	static struct caller callers[CALLERS];
	pthread_t threads[CALLERS];
	unsigned int ticks = 0;
	struct end end;

	begin(&end, rank, layer);
	EXPECT(rank, end.limits.caps & CADGE_CAP_EVENT_FD, "%s has no descriptor", layer);
	end_connect(&end, 1 - rank->number, 1 - rank->number);
	if (rank->number) {
		serve(&end, CALLERS * CALLS, -1);
	} else {
		const int epoll_fd = epoll_create1(EPOLL_CLOEXEC), wake_fd = eventfd(0, EFD_CLOEXEC),
			  timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

		EXPECT(rank, epoll_fd >= 0 && wake_fd >= 0 && timer_fd >= 0, "no descriptors");
		EXPECT(rank, timerfd_settime(timer_fd, 0, &each_ms, NULL) == 0, "no timer");
		watch(rank, epoll_fd, wake_fd);
		watch(rank, epoll_fd, timer_fd);
		end.arg = callers;
		end.on_message = on_result;
		start_callers(rank, callers, threads, wake_fd);
		while (!dispatch(&end, callers) || ticks < 3)
			look_around(&end, epoll_fd, wake_fd, timer_fd, &ticks);
		end_callers(rank, callers, threads);
	}
	meet(rank, 0, 2);
	end_close(&end);
}

/* ---- a call that another server answers ---- */

struct results {
	unsigned int came, wrong;
};

static void on_result_of_third(struct end *end, uint32_t peer, const uint8_t *data, size_t bytes)
{
	struct results *results = end->arg;

	results->wrong += peer != 2 || bytes != CALL_BYTES || word(data, 1) != 2 ||
			  word(data, 0) != results->came || word(data, 2) != answer_to(word(data, 0) * 7);
	results->came++;
}

static void delegated(struct rank *rank, const char *layer)
{
	struct results results = {0};
	struct end end;

	begin(&end, rank, layer);
	if (rank->number == 0) {
		end.arg = &results;
		end.on_message = on_result_of_third;
	}
	for (uint32_t other = 0; other < rank->count; other++)
		if (other != rank->number)
			end_connect(&end, other, other);
	if (rank->number)
		serve(&end, CALLS, rank->number == 1 ? 2 : -1);
	for (uint64_t i = 0; rank->number == 0 && i < CALLS; i++) {
		const unsigned int before = results.came;
		const uint64_t until_ns = clock_ns() + UINT64_C(10000000000);
		uint8_t call[CALL_BYTES];

		write_words(call, i, 0, i * 7);
		end_send(&end, 1, call, sizeof(call));
		while (results.came == before) {
			end_poll(&end);
			EXPECT(rank, clock_ns() < until_ns, "call %u is not answered", before);
		}
	}
	EXPECT(rank, !results.wrong, "%u results were not those of the second server", results.wrong);
	meet(rank, 0, 3);
	end_close(&end);
}

/* ---- a server that dies and comes back ---- */

/* Calls the server that is peer 1 now. */
static void call_one(struct end *end, struct slot *slot, uint64_t argument)
{
	const uint64_t until_ns = clock_ns() + UINT64_C(10000000000);
	uint8_t call[CALL_BYTES];

	write_words(call, 0, 0, argument);
	atomic_store(&slot->state, UNDER_WAY);
	end_send(end, 1, call, sizeof(call));
	while (atomic_load(&slot->state) != ANSWERED) {
		end_poll(end);
		EXPECT(end->rank, clock_ns() < until_ns, "call %llu is not answered",
		       (unsigned long long)argument);
	}
	EXPECT(end->rank, slot->value == answer_to(argument), "a wrong answer");
}

/* Rank 1 serves, and dies; rank 2 takes its place, under the same number. */
static void comes_back(struct rank *rank, const char *layer)
{
	static struct caller callers[CALLERS];
	struct end end;

	begin(&end, rank, layer);
	if (rank->number) {
		end_connect(&end, 0, 0);
		serve(&end, CALLS, -1);
		if (rank->number == 1)
			raise(SIGKILL);
		meet(rank, 0, 1);
		end_close(&end);
		return;
	}
	end.arg = callers;
	end.on_message = on_result;
	for (uint32_t server = 1; server <= 2; server++) {
		end_connect(&end, 1, server);
		for (uint64_t i = 0; i < CALLS; i++)
			call_one(&end, &callers[0].slot, i);
		if (server == 2)
			break;
		end_await(&end, &end.down[1], "down");
		EXPECT(rank, end.layer.disconnect(end.ctx, end.chans[1]) == CADGE_DONE, "disconnect");
	}
	meet(rank, 2, 1);
	end_close(&end);
}

/* ---- the program ---- */

#define ON(layer, name, sketch)                                                                              \
	static void sketch##_##name(struct rank *rank)                                                       \
	{                                                                                                    \
		sketch(rank, layer);                                                                         \
	}
ON("sockets-tcp", tcp, dispatching_thread)
ON("sockets-tcp", tcp, event_loop)
ON("sockets-tcp", tcp, delegated)
ON("sockets-tcp", tcp, comes_back)
ON("native-ucx", ucx, dispatching_thread)
ON("native-ucx", ucx, delegated)
ON("am-ofi", am, dispatching_thread)
ON("am-ofi", am, delegated)
ON("peregrine-udp", peregrine, dispatching_thread)
ON("peregrine-udp", peregrine, event_loop)

int main(int argc, char **argv)
{
	static const struct rank_test tests[] = {
		{.name = "dispatching_thread_sockets", .run = dispatching_thread_tcp, .ranks = 2},
		{.name = "dispatching_thread_native_ucx", .run = dispatching_thread_ucx, .ranks = 2},
		{.name = "dispatching_thread_am_ofi", .run = dispatching_thread_am, .ranks = 2},
		{.name = "dispatching_thread_peregrine", .run = dispatching_thread_peregrine, .ranks = 2},
		{.name = "event_loop_sockets", .run = event_loop_tcp, .ranks = 2, .block = true},
		{.name = "event_loop_peregrine", .run = event_loop_peregrine, .ranks = 2, .block = true},
		{.name = "delegated_sockets", .run = delegated_tcp, .ranks = 3},
		{.name = "delegated_native_ucx", .run = delegated_ucx, .ranks = 3},
		{.name = "delegated_am_ofi", .run = delegated_am, .ranks = 3},
		{.name = "comes_back_sockets", .run = comes_back_tcp, .ranks = 3, .dies = 2},
	};

	return ranks_run_styles(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
