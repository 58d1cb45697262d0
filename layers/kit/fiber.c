/* SPDX-License-Identifier: BSD-3-Clause */
#include "kit/fiber.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cadge/sanitized.h"
#include "kit/fiber_overflow.h"

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif

/* The address sanitizer has to be told which stack is in use. */
#if CADGE_SANITIZED
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

struct cadge_fiber {
#if defined(__x86_64__) || defined(__aarch64__)
	void *inside, *outside; /* stack pointers of who does not run */
#else
	ucontext_t inside, outside;
#endif
	uint8_t *stack; /* above a guard of the same size */
	size_t stack_bytes;
	struct cadge_guard guard;
	void (*function)(void *arg);
	void *arg;
	bool suspended;
#if CADGE_SANITIZED
	void *fake_inside, *fake_outside; /* the sanitizer's own stacks */
	const void *outside_bottom;
	size_t outside_bytes;
#endif
};

static void note_leaving(struct cadge_fiber *fiber, bool for_ever)
{
#if CADGE_SANITIZED
	__sanitizer_start_switch_fiber(for_ever ? NULL : &fiber->fake_inside, fiber->outside_bottom,
				       fiber->outside_bytes);
#else
	(void)fiber, (void)for_ever;
#endif
}

static void note_inside(struct cadge_fiber *fiber, bool again)
{
#if CADGE_SANITIZED
	__sanitizer_finish_switch_fiber(again ? fiber->fake_inside : NULL, &fiber->outside_bottom,
					&fiber->outside_bytes);
#else
	(void)fiber, (void)again;
#endif
}

static void note_entering(struct cadge_fiber *fiber)
{
#if CADGE_SANITIZED
	__sanitizer_start_switch_fiber(&fiber->fake_outside, fiber->stack, fiber->stack_bytes);
#else
	(void)fiber;
#endif
}

static void note_outside(struct cadge_fiber *fiber)
{
#if CADGE_SANITIZED
	__sanitizer_finish_switch_fiber(fiber->fake_outside, NULL, NULL);
#else
	(void)fiber;
#endif
}

/* Frames that were left for good are still marked as such. */
static void note_emptied(struct cadge_fiber *fiber)
{
#if CADGE_SANITIZED
	ASAN_UNPOISON_MEMORY_REGION(fiber->stack, fiber->stack_bytes);
#else
	(void)fiber;
#endif
}

static void switch_in(struct cadge_fiber *fiber);
static void switch_out(struct cadge_fiber *fiber);

/* What a fiber runs first. Its stack is made anew for each function, so it never returns. */
__attribute__((noreturn, used)) static void run(struct cadge_fiber *fiber)
{
	note_inside(fiber, false);
	fiber->function(fiber->arg);
	fiber->suspended = false;
	note_leaving(fiber, true);
	switch_out(fiber);
	abort();
}

#if defined(__x86_64__) || defined(__aarch64__)

/*
 * Saves what a call preserves on the stack, leaves the stack pointer at *from, and goes on where `to` was left. Control
 * words of floating point are the thread's and stay as they are. A new stack is left in cadge_fiber_first, with the
 * fiber and `run` in two registers that a call preserves.
 */
void cadge_fiber_switch(void **from, void *to) __attribute__((visibility("hidden")));
void cadge_fiber_first(void) __attribute__((visibility("hidden")));

#ifdef __x86_64__
__asm__(".text\n"
	".p2align 6\n"
	".hidden cadge_fiber_switch\n.globl cadge_fiber_switch\n.type cadge_fiber_switch,@function\n"
	"cadge_fiber_switch:\n"
	"push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
	"mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
	"pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n"
	".size cadge_fiber_switch, .-cadge_fiber_switch\n"
	".hidden cadge_fiber_first\n.globl cadge_fiber_first\n.type cadge_fiber_first,@function\n"
	"cadge_fiber_first:\n"
	"xor %ebp, %ebp\nmov %r12, %rdi\ncall *%r13\nud2\n"
	".size cadge_fiber_first, .-cadge_fiber_first\n");

/* r15 r14 r13 r12 rbx rbp, then where to return to. */
enum { SAVED_WORDS = 7, AT_RUN = 2, AT_FIBER = 3, AT_RETURN = 6 };
#else
__asm__(".text\n"
	".p2align 6\n"
	".hidden cadge_fiber_switch\n.globl cadge_fiber_switch\n.type cadge_fiber_switch,%function\n"
	"cadge_fiber_switch:\n"
	"sub sp, sp, #160\n"
	"stp x19, x20, [sp, #0]\nstp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\nstp x25, x26, [sp, #48]\n"
	"stp x27, x28, [sp, #64]\nstp x29, x30, [sp, #80]\n"
	"stp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\nstp d12, d13, [sp, #128]\nstp d14, d15, [sp, "
	"#144]\n"
	"mov x9, sp\nstr x9, [x0]\nmov sp, x1\n"
	"ldp x19, x20, [sp, #0]\nldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\nldp x25, x26, [sp, #48]\n"
	"ldp x27, x28, [sp, #64]\nldp x29, x30, [sp, #80]\n"
	"ldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\nldp d12, d13, [sp, #128]\nldp d14, d15, [sp, "
	"#144]\n"
	"add sp, sp, #160\nret\n"
	".size cadge_fiber_switch, .-cadge_fiber_switch\n"
	".hidden cadge_fiber_first\n.globl cadge_fiber_first\n.type cadge_fiber_first,%function\n"
	"cadge_fiber_first:\n"
	"mov x29, xzr\nmov x0, x20\nblr x19\nbrk #1\n"
	".size cadge_fiber_first, .-cadge_fiber_first\n");

/* x19 to x30, d8 to d15. */
enum { SAVED_WORDS = 20, AT_RUN = 0, AT_FIBER = 1, AT_RETURN = 11 };
#endif

static void switch_in(struct cadge_fiber *fiber)
{
	cadge_fiber_switch(&fiber->outside, fiber->inside);
}

static void switch_out(struct cadge_fiber *fiber)
{
	cadge_fiber_switch(&fiber->inside, fiber->outside);
}

static void make_stack(struct cadge_fiber *fiber)
{
	/* 16 bytes below the end, so that `first` begins at a multiple of 16, as both ABIs want before a call */
	uintptr_t *saved = (uintptr_t *)(void *)(fiber->stack + fiber->stack_bytes - 16) - SAVED_WORDS;

	memset(saved, 0, SAVED_WORDS * sizeof(*saved));
	saved[AT_RUN] = (uintptr_t)run;
	saved[AT_FIBER] = (uintptr_t)fiber;
	saved[AT_RETURN] = (uintptr_t)cadge_fiber_first;
	fiber->inside = saved;
}

#else /* ucontext */

static void switch_in(struct cadge_fiber *fiber)
{
	swapcontext(&fiber->outside, &fiber->inside);
}

static void switch_out(struct cadge_fiber *fiber)
{
	swapcontext(&fiber->inside, &fiber->outside);
}

/* makecontext passes numbers of the size of int. */
static void first(unsigned int high, unsigned int low)
{
	run((struct cadge_fiber *)(uintptr_t)((uint64_t)high << 32 | low));
}

static void make_stack(struct cadge_fiber *fiber)
{
	const uint64_t address = (uintptr_t)fiber;

	getcontext(&fiber->inside);
	fiber->inside.uc_stack.ss_sp = fiber->stack;
	fiber->inside.uc_stack.ss_size = fiber->stack_bytes;
	fiber->inside.uc_link = NULL;
	makecontext(&fiber->inside, (void (*)(void))(uintptr_t)first, 2, (unsigned int)(address >> 32),
		    (unsigned int)address);
}

#endif

struct cadge_fiber *cadge_fiber_create(size_t stack_bytes, const char *whose)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (stack_bytes + page - 1) / page * page;
	struct cadge_fiber *fiber = calloc(1, sizeof(*fiber));
	uint8_t *pages;

	if (!fiber)
		return NULL;
	pages = mmap(NULL, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1,
		     0);
	if (pages == MAP_FAILED) {
		free(fiber);
		return NULL;
	}
	fiber->stack = pages + bytes;
	fiber->stack_bytes = bytes;
	if (mprotect(fiber->stack, bytes, PROT_READ | PROT_WRITE) < 0) {
		munmap(pages, 2 * bytes);
		free(fiber);
		return NULL;
	}
	fiber->guard = (struct cadge_guard){.from = (uintptr_t)pages, .to = (uintptr_t)fiber->stack};
	snprintf(fiber->guard.message, sizeof(fiber->guard.message),
		 "%s needs more than its stack of %zu bytes\n", whose, bytes);
	cadge_guard_watch(&fiber->guard);
	return fiber;
}

void cadge_fiber_destroy(struct cadge_fiber *fiber)
{
	if (!fiber)
		return;
	cadge_guard_forget(&fiber->guard);
	note_emptied(fiber);
	munmap(fiber->stack - fiber->stack_bytes, 2 * fiber->stack_bytes);
	free(fiber);
}

void cadge_fiber_resume(struct cadge_fiber *fiber)
{
	note_entering(fiber);
	switch_in(fiber);
	note_outside(fiber);
}

void cadge_fiber_start(struct cadge_fiber *fiber, void (*function)(void *arg), void *arg)
{
	fiber->function = function;
	fiber->arg = arg;
	if (fiber->suspended)
		note_emptied(fiber);
	fiber->suspended = true;
	make_stack(fiber);
	cadge_fiber_resume(fiber);
}

void cadge_fiber_yield(struct cadge_fiber *fiber)
{
	note_leaving(fiber, false);
	switch_out(fiber);
	note_inside(fiber, true);
}

bool cadge_fiber_is_suspended(const struct cadge_fiber *fiber)
{
	return fiber->suspended;
}
