/* SPDX-License-Identifier: BSD-3-Clause */
/* The hard deadline, the death of the parent, and requests to stop. */
#include "watchdog.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "out.h"

volatile sig_atomic_t drv_stop_signal;

/* What the timer's handler may use: set up before, async-signal-safe calls only. */
static struct {
	timer_t timer;
	int running;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC */
	const char *volatile text;
	size_t text_bytes;
	struct drv_out out;
} dog;

static void say(const char *text)
{
	if (write(STDERR_FILENO, text, strlen(text)) < 0)
		return; /* nobody listens; we are about to exit */
}

static void on_deadline(int signal_number)
{
	const char *text = dog.text;

	(void)signal_number;
	say("cadge: hard deadline reached, the process ends itself\n");
	if (text && !drv_out_write(&dog.out, text, dog.text_bytes))
		say("cadge: the result was stored before\n");
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
	struct sigaction deadline = {.sa_handler = on_deadline};
	struct sigaction stop = {.sa_handler = on_stop};
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL};
	const pid_t parent = getppid();

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

void drv_watchdog_keep(const char *path, const char *text)
{
	struct drv_fail fail;

	dog.text = NULL;
	if (!text || drv_out_find(path, &dog.out, &fail))
		return;
	dog.text_bytes = strlen(text);
	__asm__ volatile("" : : : "memory");
	dog.text = text;
}

void drv_watchdog_sooner(uint64_t deadline_ns)
{
	const uint64_t wanted = drv_now_ns() + deadline_ns;

	if (dog.running && wanted < dog.deadline_ns && arm(wanted))
		say("cadge: moving the deadline failed\n");
}
