/* SPDX-License-Identifier: BSD-3-Clause */
/* Fibers (kit/fiber.h): what a function keeps over a yield, many side by side, the end of a stack, no system call. */
#include "kit/fiber.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/seccomp.h>

#include "cadge/sanitized.h"
#include "tests/unit/support/tap.h"

enum { FIBERS = 16, ROUNDS = 2000, STACK_BYTES = 256 << 10 };

struct worker {
	struct cadge_fiber *fiber;
	unsigned int number, steps;
	uint64_t sum;
	double product;
	char text[64];
};

/*
 * Keeps more values over each yield than there are registers that a call preserves, whole numbers and others. Without a
 * fiber it does the same without a yield.
 */
static void work(void *arg)
{
	struct worker *self = arg;
	uint64_t a = self->number + 1, b = a * 3, c = a * 5, d = a * 7, e = a * 11, f = a * 13, g = a * 17,
		 h = a * 19;
	double p = (double)a, q = p * 0.5, r = p * 0.25, s = p * 0.125, t = p + 3, u = p + 5, v = p + 7,
	       w = p + 9;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		a += b ^ i, b += c, c += d, d += e, e += f, f += g, g += h, h += a;
		p += q, q = r + 1, r = s + 1, s = t * 0.5, t = u * 0.5, u = v * 0.5, v = w * 0.5,
			w = p * 0.001;
		self->steps++;
		if (self->fiber)
			cadge_fiber_yield(self->fiber);
	}
	self->sum = a + b + c + d + e + f + g + h;
	self->product = p + q + r + s + t + u + v + w;
	/* vector registers are saved at multiples of 16 in there */
	snprintf(self->text, sizeof(self->text), "%u %.3f", self->number, self->product);
}

static void side_by_side(void)
{
	struct worker workers[FIBERS] = {{NULL, 0, 0, 0, 0, ""}}, wanted;
	unsigned int good = 0, ended = 0;

	for (unsigned int i = 0; i < FIBERS; i++) {
		workers[i] = (struct worker){.fiber = cadge_fiber_create(STACK_BYTES, "a test"), .number = i};
		if (!workers[i].fiber)
			tap_bail("no fiber");
		cadge_fiber_start(workers[i].fiber, work, &workers[i]);
	}
	for (unsigned int round = 0; ended < FIBERS; round++) {
		struct worker *worker =
			&workers[(round * 7 + round / FIBERS) % FIBERS]; /* in no fixed order */

		if (!cadge_fiber_is_suspended(worker->fiber))
			continue;
		cadge_fiber_resume(worker->fiber);
		ended += !cadge_fiber_is_suspended(worker->fiber);
	}
	for (unsigned int i = 0; i < FIBERS; i++) {
		wanted = (struct worker){.number = i};
		work(&wanted);
		good += workers[i].steps == ROUNDS && workers[i].sum == wanted.sum &&
			strcmp(workers[i].text, wanted.text) == 0;
	}
	ok(good == FIBERS, "%u of %d fibers side by side keep what they have", good, FIBERS);
	/* And once more on the same stacks. */
	for (unsigned int i = 0; i < FIBERS; i++) {
		workers[i].steps = 0;
		cadge_fiber_start(workers[i].fiber, work, &workers[i]);
	}
	for (good = 0; good < FIBERS && workers[good].steps == 1; good++)
		;
	ok(good == FIBERS, "a fiber whose function has returned runs another");
	/* And again, while they are suspended. */
	for (unsigned int i = 0; i < FIBERS; i++) {
		workers[i].steps = 0;
		cadge_fiber_start(workers[i].fiber, work, &workers[i]);
		while (cadge_fiber_is_suspended(workers[i].fiber))
			cadge_fiber_resume(workers[i].fiber);
		wanted = (struct worker){.number = i};
		work(&wanted);
		good -= workers[i].steps == ROUNDS && workers[i].sum == wanted.sum;
		cadge_fiber_start(workers[i].fiber, work, &workers[i]);
	}
	ok(good == 0, "a suspended fiber runs another function from its beginning");
	for (unsigned int i = 0; i < FIBERS; i++)
		cadge_fiber_destroy(workers[i].fiber); /* all are suspended */
	ok(true, "suspended fibers can be destroyed");
}

static struct cadge_fiber *outer, *inner;
static unsigned int trail;

static void be_inner(void *arg)
{
	(void)arg;
	trail = trail * 10 + 2;
	cadge_fiber_yield(inner);
	trail = trail * 10 + 4;
}

static void be_outer(void *arg)
{
	(void)arg;
	trail = trail * 10 + 1;
	cadge_fiber_start(inner, be_inner, NULL);
	trail = trail * 10 + 3;
	cadge_fiber_yield(outer);
	cadge_fiber_resume(inner);
	trail = trail * 10 + 5;
}

static void one_in_another(void)
{
	outer = cadge_fiber_create(STACK_BYTES, "a test");
	inner = cadge_fiber_create(STACK_BYTES, "a test");
	if (!outer || !inner)
		tap_bail("no fiber");
	cadge_fiber_start(outer, be_outer, NULL);
	cadge_fiber_resume(outer);
	ok(trail == 12345 && !cadge_fiber_is_suspended(outer) && !cadge_fiber_is_suspended(inner),
	   "a fiber starts another, and goes on with it later (%u)", trail);
	cadge_fiber_destroy(outer);
	cadge_fiber_destroy(inner);
}

static struct cadge_fiber *lonely;

static void yield_for_ever(void *arg)
{
	for (unsigned int *count = arg;; ++*count)
		cadge_fiber_yield(lonely);
}

/* In a process that may only read, write, exit and return from signals. */
static void no_system_call(void)
{
#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(__SANITIZE_ADDRESS__)
	unsigned int count = 0;
	int status;
	pid_t child;

	lonely = cadge_fiber_create(STACK_BYTES, "a test");
	if (!lonely || (child = fork()) < 0)
		tap_bail("no process");
	if (!child) {
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) < 0)
			_exit(77);
		cadge_fiber_start(lonely, yield_for_ever, &count);
		for (unsigned int i = 0; i < 10000; i++)
			cadge_fiber_resume(lonely);
		syscall(SYS_exit, count == 10000 ? 0 : 1);
	}
	waitpid(child, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		ok(true, "a switch makes no system call # SKIP no seccomp here");
	else
		ok(WIFEXITED(status) && !WEXITSTATUS(status), "a switch makes no system call (%x)",
		   (unsigned int)status);
	cadge_fiber_destroy(lonely);
#else
	ok(true, "a switch makes no system call # SKIP ucontext here, or a sanitizer");
	(void)yield_for_ever;
#endif
}

/* Touches `bytes` of the stack, from above. (A frame's own arrays may lie elsewhere under a sanitizer.) */
static void use_stack(void *arg)
{
	const size_t bytes = *(size_t *)arg;
	volatile uint8_t *frame = __builtin_alloca(bytes);

	for (size_t i = bytes; i > 1024; i -= 1024)
		frame[i - 1] = 1;
}

/* The same, but touches the far end alone. */
static void use_far_end(void *arg)
{
	volatile uint8_t *frame = __builtin_alloca(*(size_t *)arg);

	frame[0] = 1;
}

static void use_nothing(void *arg)
{
	*(volatile uint8_t *)arg = 1;
}

static void exit_with_7(int number)
{
	(void)number;
	_exit(7);
}

struct ended {
	int status;
	bool said; /* that the stack was too small */
};

/* How a process ends that runs this on a fiber. `handles`: it had a handler of its own. */
static struct ended end_of(void (*use)(void *arg), void *arg, bool handles)
{
	const struct sigaction exits = {.sa_handler = exit_with_7, .sa_flags = SA_ONSTACK};
	const struct rlimit no_core = {0, 0};
	struct ended ended = {.said = false};
	char text[4096];
	size_t used = 0;
	ssize_t n;
	int words[2];
	pid_t child;

	if (pipe(words) < 0 || (child = fork()) < 0)
		tap_bail("no process");
	if (!child) {
		struct cadge_fiber *fiber, *other;

		if (handles)
			sigaction(SIGSEGV, &exits, NULL);
		fiber = cadge_fiber_create(STACK_BYTES, "a test");
		other = cadge_fiber_create(STACK_BYTES, "another test");
		cadge_fiber_destroy(other);
		setrlimit(RLIMIT_CORE, &no_core);
		dup2(words[1], STDERR_FILENO);
		cadge_fiber_start(fiber, use, arg);
		_exit(0);
	}
	close(words[1]);
	while (used < sizeof(text) - 1 && (n = read(words[0], text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)n;
	text[used] = 0;
	while (read(words[0], &child, 1) > 0) /* what a sanitizer says as well */
		;
	close(words[0]);
	wait(&ended.status);
	ended.said = strstr(text, "a test needs more than its stack of 262144 bytes\n");
	return ended;
}

static bool fails_and_says(struct ended ended)
{
	return ended.said && (WIFSIGNALED(ended.status) ? WTERMSIG(ended.status) == SIGSEGV
							: CADGE_SANITIZED && WEXITSTATUS(ended.status));
}

static void the_end_of_a_stack(void)
{
	size_t quarter = STACK_BYTES / 4, twice = STACK_BYTES * 2 - 4096, half_more = STACK_BYTES * 3 / 2;
	struct ended ended = end_of(use_stack, &quarter, false);

	ok(ended.status == 0 && !ended.said, "a quarter of a stack can be used");
	ok(fails_and_says(end_of(use_stack, &twice, false)),
	   "whoever needs more than a stack is ended, and it is said");
	ok(fails_and_says(end_of(use_far_end, &half_more, false)), "also with one large frame");
	ended = end_of(use_stack, &twice, true);
	ok(ended.said && WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 7,
	   "whoever had the signal before has it then");
	ended = end_of(use_nothing, NULL, true);
	ok(!ended.said && WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 7,
	   "a fault elsewhere is none of ours");
}

static void be_killed(void *arg)
{
	(void)arg;
	kill(getpid(), SIGSEGV);
	usleep(1000000);
}

static void a_signal_that_was_sent(void)
{
	struct ended ended = end_of(be_killed, NULL, true);

	ok(!ended.said && WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 7,
	   "a signal that was sent arrives");
}

int main(void)
{
	side_by_side();
	one_in_another();
	no_system_call();
	the_end_of_a_stack();
	a_signal_that_was_sent();
	return tap_done();
}
