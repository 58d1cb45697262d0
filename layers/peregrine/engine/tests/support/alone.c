/* SPDX-License-Identifier: BSD-3-Clause */
#include "alone.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int say(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	printf("# ");
	vprintf(format, list);
	printf("\n");
	va_end(list);
	fflush(stdout);
	return FAILED;
}

pid_t alone_fork(unsigned int seconds)
{
	const pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(seconds);
	}
	return pid;
}

static int run_one(const struct alone *how, const struct alone_test *test, int number)
{
	int status = FAILED;
	pid_t pid;

	fflush(stdout);
	pid = alone_fork(how->seconds);
	if (pid == 0) {
		const int result = test->run();

		if (how->leaves)
			_exit(result);
		exit(result);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return say("no process is to be had");
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
		printf("ok %d - %s # SKIP %s\n", number, test->name, how->skip);
		return PASSED;
	}
	if (WIFSIGNALED(status))
		say("ended by signal %d", WTERMSIG(status));
	printf("%sok %d - %s\n", status ? "not " : "", number, test->name);
	return status ? FAILED : PASSED;
}

int alone_run(const struct alone *how, const struct alone_test *tests, int count)
{
	int failures = 0;

	printf("1..%d\n", count);
	for (int i = 0; i < count; i++)
		failures += run_one(how, &tests[i], i + 1) != PASSED;
	return failures ? 1 : 0;
}
