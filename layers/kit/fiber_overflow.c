/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fault in the guard of a fiber's stack says so on stderr, and then goes to whoever had the signal before. As Rust's runtime
 * does; a handler of faults has to be on a stack of its own, which a thread gets with its first fiber and keeps.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kit/fiber_overflow.h"

enum { SIGNAL_STACK_BYTES = 64 << 10 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cadge_guard *guards;
static struct sigaction before;

/* Takes no lock: the process is about to end. */
static void on_fault(int number, siginfo_t *info, void *context)
{
	const uintptr_t at = (uintptr_t)info->si_addr;

	(void)context;
	for (const struct cadge_guard *guard = guards; guard; guard = guard->next)
		if (at >= guard->from && at < guard->to &&
		    write(STDERR_FILENO, guard->message, strlen(guard->message)) < 0)
			break;
	sigaction(number, &before, NULL); /* the fault comes again */
	if (info->si_code <= 0)
		raise(number); /* as does what another process sent */
}

static void give_signal_stack(void)
{
	stack_t stack;

	if (sigaltstack(NULL, &stack) < 0 || !(stack.ss_flags & SS_DISABLE))
		return;
	stack = (stack_t){.ss_size = SIGNAL_STACK_BYTES};
	stack.ss_sp = mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stack.ss_sp != MAP_FAILED && sigaltstack(&stack, NULL) < 0)
		munmap(stack.ss_sp, stack.ss_size);
}

void cadge_guard_watch(struct cadge_guard *guard)
{
	struct sigaction ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	give_signal_stack();
	pthread_mutex_lock(&lock);
	if (!guards)
		sigaction(SIGSEGV, &ours, &before);
	guard->next = guards;
	guards = guard;
	pthread_mutex_unlock(&lock);
}

void cadge_guard_forget(struct cadge_guard *guard)
{
	struct cadge_guard **at = &guards;
	struct sigaction now;

	pthread_mutex_lock(&lock);
	while (*at != guard)
		at = &(*at)->next;
	*at = guard->next;
	/* Whoever took the signal after us keeps it. */
	if (!guards && sigaction(SIGSEGV, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
	    now.sa_sigaction == on_fault)
		sigaction(SIGSEGV, &before, NULL);
	pthread_mutex_unlock(&lock);
}
