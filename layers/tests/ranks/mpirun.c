/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that mpirun starts: it hands on no descriptor, so they call each other by names. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/conformance/launchers.h"
#include "tests/ranks/mpirun.h"

enum { PATIENCE_MS = 10000 };

/* The leaks of vmmc/mpi.supp, in the ranks. */
CADGE_EXPORT const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
	return "print_suppressions=0";
}

CADGE_EXPORT const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:pmix_hash_fetch\nleak:libpmix.so\nleak:mca_allocator_bucket\n";
}

void mpirun_become(size_t test, enum cadge_place place, unsigned int ranks)
{
	/* not /proc/self/exe: in a chroot that may name a path outside of it */
	char *const self = realpath(program_invocation_name, NULL);
	char words[3][16];
	char *command[] = {self, (char *)(uintptr_t)"--mpirun", words[0], words[1], words[2], NULL};

	if (!self)
		_exit(1);
	snprintf(words[0], sizeof(words[0]), "%zu", test);
	snprintf(words[1], sizeof(words[1]), "%d", (int)place);
	snprintf(words[2], sizeof(words[2]), "%d", (int)getpid()); /* a name that nobody else has */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGALRM, SIG_DFL);
	dup2(STDERR_FILENO, STDOUT_FILENO); /* stdout is for TAP */
	launcher_become("mpirun", ranks, false, command);
	_exit(errno == ENOENT ? 77 : 1); /* no mpirun here: skipped */
}

/* A name of the kernel's, without a file. */
static socklen_t name_rank(const char *run, unsigned int number, struct sockaddr_un *name)
{
	*name = (struct sockaddr_un){.sun_family = AF_UNIX};
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1,
					    "cadge-ranks-%s-%u", run, number));
}

static int call(const char *run, unsigned int other, unsigned int number)
{
	struct sockaddr_un name;
	const socklen_t bytes = name_rank(run, other, &name);
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	for (int ms = 0; fd >= 0 && ms < PATIENCE_MS; ms++) {
		if (connect(fd, (const struct sockaddr *)&name, bytes) == 0)
			return send(fd, &number, sizeof(number), MSG_NOSIGNAL) == sizeof(number) ? fd : -1;
		rest_ms(1);
	}
	return -1;
}

bool mpirun_exchange(struct rank *rank, const char *run)
{
	struct sockaddr_un name;
	const socklen_t bytes = name_rank(run, rank->number, &name);
	const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	unsigned int other;

	rank->to[rank->number] = -1;
	if (listener < 0 || bind(listener, (const struct sockaddr *)&name, bytes) < 0 ||
	    listen(listener, RANKS_MAX) < 0)
		return false;
	for (other = 0; other < rank->number; other++) {
		rank->to[other] = call(run, other, rank->number);
		if (rank->to[other] < 0)
			return false;
	}
	for (unsigned int i = rank->number + 1; i < rank->count; i++) {
		const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0 || recv(fd, &other, sizeof(other), 0) != sizeof(other) || other >= RANKS_MAX)
			return false;
		rank->to[other] = fd;
	}
	close(listener);
	return true;
}
