/* SPDX-License-Identifier: BSD-3-Clause */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * What it names is the other's word, and to open a device, or a file of a file system that somebody serves, can wait or have
 * effects. So it is only found at first, and looked at without asking whoever serves it; then that very thing is opened. A
 * lease on it makes that fail, not wait.
 */
int pgr_process_open_fd(uint32_t pid, uint32_t fd, mode_t kind, int like, int flags)
{
	const int stat_flags = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
	struct statx own, theirs;
	int found, opened = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/fd/%u", pid, fd);
	found = open(path, O_PATH | O_CLOEXEC);
	if (found < 0)
		return -1;
	errno = EINVAL;
	if (statx(like, "", stat_flags, STATX_TYPE, &own) == 0 &&
	    statx(found, "", stat_flags, STATX_TYPE, &theirs) == 0 && (theirs.stx_mode & S_IFMT) == kind &&
	    theirs.stx_dev_major == own.stx_dev_major && theirs.stx_dev_minor == own.stx_dev_minor) {
		snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", found);
		opened = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	}
	close(found);
	return opened;
}

bool pgr_memfd_is_sealed(int fd, int seals)
{
	const int has = fcntl(fd, F_GET_SEALS);

	return has >= 0 && (has & seals) == seals;
}

bool pgr_process_has_ended(uint32_t pid)
{
	struct pollfd life = {.fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0), .events = POLLIN};
	bool ended;

	if (life.fd < 0) /* there is none; or, before Linux 5.3, it may be a zombie */
		return kill((pid_t)pid, 0) < 0 && errno == ESRCH;
	ended = poll(&life, 1, 0) == 1;
	close(life.fd);
	return ended;
}

bool pgr_process_runs(uint32_t pid)
{
	char path[64], program;

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	return readlink(path, &program, sizeof(program)) > 0;
}

int pgr_memfd_make(const char *name, size_t bytes)
{
	struct rlimit most;
	int fd, error;

	/* beyond it the kernel sends a signal that ends the process */
	if (getrlimit(RLIMIT_FSIZE, &most) == 0 && bytes > most.rlim_cur) {
		errno = EFBIG;
		return -1;
	}
	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, (off_t)bytes) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}
