/* SPDX-License-Identifier: BSD-3-Clause */
/* The hard deadline, the death of the parent, and requests to stop. */
#include "launch/watchdog.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "cadge/stack.h"
#include "measure/clock.h"
#include "base/out.h"

volatile sig_atomic_t drv_stop_signal;

/* What the timer's handler may use: set up before, async-signal-safe calls only. */
static struct {
	timer_t timer;
	int running;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC */
	const char *volatile text;
	size_t text_bytes;
	struct drv_out out;
	atomic_bool passed;
	atomic_uint stacks; /* that were said */
} dog;

/* How long all stacks may take, and one thread's: the agent gives a launch a second more than its drivers have. */
enum { STACKS_MS = 700, ANSWER_MS = 50 };

static void print(const char *text)
{
	if (write(STDERR_FILENO, text, strlen(text)) < 0)
		return; /* nobody listens; we are about to exit */
}

static void on_overtime(int signal_number)
{
	(void)signal_number;
	_exit(4);
}

/* Stacks are for whoever looks for the cause. Reading them takes the loader's lock, which the library may hold for ever. */
static void end_soon(void)
{
	const struct sigaction overtime = {.sa_handler = on_overtime};
	const struct itimerval when = {.it_value.tv_usec = STACKS_MS * 1000};
	sigset_t alarm_alone;

	sigemptyset(&alarm_alone);
	sigaddset(&alarm_alone, SIGALRM);
	if (sigaction(SIGALRM, &overtime, NULL) || sigprocmask(SIG_UNBLOCK, &alarm_alone, NULL) ||
	    setitimer(ITIMER_REAL, &when, NULL))
		_exit(4);
}

/* Has each other thread run the handler, one after the other; one that blocks all signals is passed over. */
static void ask_threads(int signal_number)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	struct entry {
		uint64_t number, offset;
		unsigned short bytes;
		unsigned char type;
		char name[];
	};
	_Alignas(struct entry) char entries[4096];
	const int tasks = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long bytes;

	while (tasks >= 0 && (bytes = syscall(SYS_getdents64, tasks, entries, sizeof(entries))) > 0) {
		for (long at = 0; at < bytes;) {
			const struct entry *entry = (const void *)(entries + at);
			const pid_t thread = (pid_t)strtol(entry->name, NULL, 10);
			const unsigned int before = atomic_load(&dog.stacks);

			at += entry->bytes;
			if (thread <= 0 || thread == gettid() ||
			    syscall(SYS_tgkill, getpid(), thread, signal_number))
				continue;
			for (int i = 0; i < ANSWER_MS && atomic_load(&dog.stacks) == before; i++)
				nanosleep(&pause, NULL);
		}
	}
}

static void print_stack(const void *context)
{
	char text[CADGE_STACK_BYTES];

	cadge_stack_text(context, text, sizeof(text));
	print("cadge: a thread was here, innermost first\n");
	print(text);
	atomic_fetch_add(&dog.stacks, 1);
}

static void on_deadline(int signal_number, siginfo_t *info, void *context)
{
	const char *text = dog.text;

	(void)info;
	if (atomic_exchange(&dog.passed, true)) {
		print_stack(context);
		return;
	}
	print("cadge: hard deadline reached, the process ends itself\n");
	if (text && !drv_out_write(&dog.out, text, dog.text_bytes))
		print("cadge: the result was stored before\n");
	end_soon();
	print_stack(context);
	ask_threads(signal_number);
	_exit(4);
}

static void on_stop(int signal_number)
{
	drv_stop_signal = signal_number;
}

static int arm(uint64_t deadline_ns)
{
	const struct itimerspec when = {
		.it_value = {.tv_sec = (time_t)(deadline_ns / UINT64_C(1000000000)),
			     .tv_nsec = (long)(deadline_ns % UINT64_C(1000000000))},
	};

	dog.deadline_ns = deadline_ns;
	return timer_settime(dog.timer, TIMER_ABSTIME, &when, NULL);
}

int drv_watchdog_start(uint64_t deadline_ns, struct drv_fail *fail)
{
	struct sigaction deadline = {.sa_sigaction = on_deadline, .sa_flags = SA_SIGINFO};
	struct sigaction stop = {.sa_handler = on_stop};
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL};
	const pid_t parent = getppid();

	cadge_stack_prepare();
	/* a high real-time signal: libraries use the classic ones */
	event.sigev_signo = SIGRTMAX - 2;
	sigfillset(&deadline.sa_mask);
	sigemptyset(&stop.sa_mask);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		return drv_fail_set(fail, DRV_SYSTEM, "asking to die with the parent failed: %s",
				    strerror(errno));
	if (getppid() != parent)
		return drv_fail_set(fail, DRV_STOPPED, "the parent process ended during the start");
	if (sigaction(event.sigev_signo, &deadline, NULL) || sigaction(SIGTERM, &stop, NULL) ||
	    sigaction(SIGINT, &stop, NULL) || sigaction(SIGPIPE, &ignore, NULL))
		return drv_fail_set(fail, DRV_SYSTEM, "installing signal handlers failed: %s",
				    strerror(errno));
	if (timer_create(CLOCK_MONOTONIC, &event, &dog.timer))
		return drv_fail_set(fail, DRV_SYSTEM, "making the deadline timer failed: %s",
				    strerror(errno));
	dog.running = 1;
	if (arm(drv_now_ns() + deadline_ns))
		return drv_fail_set(fail, DRV_SYSTEM, "starting the deadline timer failed: %s",
				    strerror(errno));
	return 0;
}

void drv_watchdog_set_report(const char *path, const char *text)
{
	struct drv_fail fail;

	dog.text = NULL;
	if (!text || drv_out_find(path, &dog.out, &fail))
		return;
	dog.text_bytes = strlen(text);
	__asm__ volatile("" : : : "memory");
	dog.text = text;
}

void drv_watchdog_shorten(uint64_t deadline_ns)
{
	const uint64_t wanted = drv_now_ns() + deadline_ns;

	if (dog.running && wanted < dog.deadline_ns && arm(wanted))
		print("cadge: moving the deadline failed\n");
}
