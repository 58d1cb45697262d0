/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared memory whose owner means ill: what his address names, or what his inbox names as its bell, is not what it should be.
 * Nothing but an inbox, and a pipe without a name, is opened by whoever binds to him. TAP on standard output.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../core/engine.h"
#include "support/alone.h"

/* in the inbox, behind magic and nonce */
enum { WAKE_FD_AT = 20 };

struct shm_address {
	uint32_t pid, fd;
	uint64_t nonce;
};

static char folder[] = "/tmp/pgr-owners-XXXXXX";

static struct pgr *open_end(void)
{
	const struct pgr_config config = {.bytes = sizeof(config), .wire = "shm", .block = 1};
	struct pgr *pgr;

	return pgr_open(&config, &pgr) == PGR_OK ? pgr : NULL;
}

static struct shm_address address_of(const struct pgr *pgr)
{
	uint8_t bytes[PGR_ADDRESS_BYTES];
	size_t count = sizeof(bytes);
	struct shm_address address;

	pgr_address(pgr, bytes, &count);
	memcpy(&address, bytes, sizeof(address));
	return address;
}

/* What binding to this address comes to. */
static int bind_to(const struct shm_address *address)
{
	uint8_t bytes[PGR_ADDRESS_BYTES] = {0};
	struct pgr *pgr = open_end();
	struct pgr_peer *peer;
	int code;

	if (!pgr)
		return PGR_E_MEMORY;
	memcpy(bytes, address, sizeof(*address));
	code = pgr_bind(pgr, bytes, sizeof(bytes), &peer);
	pgr_close(pgr);
	return code;
}

/* What binding to a descriptor of ours comes to that is called an inbox. */
static int bind_to_fd(int fd)
{
	const struct shm_address address = {(uint32_t)getpid(), (uint32_t)fd, 1};

	return bind_to(&address);
}

/* What binding to an inbox comes to whose bell is this descriptor of ours; -1: the one that it has. */
static int bind_with_wake_fd(int fd)
{
	struct pgr *owner = open_end();
	const struct shm_address address = address_of(owner);
	uint8_t *inbox = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, (int)address.fd, 0);
	const int32_t bell = fd;
	int code;

	if (inbox == MAP_FAILED)
		return PGR_E_MEMORY;
	if (fd >= 0)
		memcpy(inbox + WAKE_FD_AT, &bell, sizeof(bell));
	code = bind_to(&address);
	munmap(inbox, 4096);
	pgr_close(owner);
	return code;
}

static off_t inbox_bytes(void)
{
	struct pgr *owner = open_end();
	struct stat stat;

	fstat((int)address_of(owner).fd, &stat);
	pgr_close(owner);
	return stat.st_size;
}

static const char *in_folder(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

/* ---- the tests, each in a process of its own ---- */

static int honest(void)
{
	return bind_with_wake_fd(-1) == PGR_OK ? PASSED : say("an honest owner was refused");
}

/* A device: who leads a session and opens a terminal gets it as its own, with its signals. */
static int terminal(bool bell)
{
	int main_fd, fd;

	if (setsid() < 0 || (main_fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0 ||
	    grantpt(main_fd) < 0 || unlockpt(main_fd) < 0 ||
	    (fd = open(ptsname(main_fd), O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0) {
		say("no terminal is to be had");
		return SKIPPED;
	}
	if ((bell ? bind_with_wake_fd(fd) : bind_to_fd(fd)) != PGR_E_WIRE)
		return say("a terminal was not refused");
	fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	return fd < 0 && errno == ENXIO ? PASSED : say("the owner has given this process a terminal");
}

static int terminal_as_inbox(void)
{
	return terminal(false);
}

static int terminal_as_wake_fd(void)
{
	return terminal(true);
}

/* To open a file on which somebody has a lease tells him, and waits for him, 45 s by default. */
static int leased(int fd, bool stays)
{
	signal(SIGIO, SIG_IGN);
	if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0) {
		say("no lease is to be had");
		return SKIPPED;
	}
	if (bind_to_fd(fd) != PGR_E_WIRE)
		return say("a leased file was not refused");
	if (stays && fcntl(fd, F_GETLEASE) != F_WRLCK)
		return say("the file was opened");
	return PASSED;
}

static int leased_file(void)
{
	const int fd = open(in_folder("leased"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, inbox_bytes()) < 0) {
		say("no file is to be had");
		return SKIPPED;
	}
	return leased(fd, true);
}

static int leased_memory(void)
{
	const int made = memfd_create("pgr-inbox", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", made);
	if (made < 0 || ftruncate(made, inbox_bytes()) < 0 ||
	    fcntl(made, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0 ||
	    (fd = open(path, O_RDWR | O_CLOEXEC)) < 0)
		return say("no memory is to be had");
	close(made); /* a lease is for whoever opened it, and nobody else */
	return leased(fd, false);
}

/* All in it is right, but its owner can make it shorter: to touch what is no more ends the process. */
static int plain_file(void)
{
	struct pgr *owner = open_end();
	struct shm_address address = address_of(owner);
	const int fd = open(in_folder("plain"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	uint8_t begin[4096];

	if (fd < 0 || ftruncate(fd, inbox_bytes()) < 0 ||
	    pread((int)address.fd, begin, sizeof(begin), 0) != sizeof(begin) ||
	    pwrite(fd, begin, sizeof(begin), 0) != sizeof(begin))
		return say("no file is to be had");
	address.fd = (uint32_t)fd;
	return bind_to(&address) == PGR_E_WIRE ? PASSED : say("a plain file was taken for an inbox");
}

/* What may be opened, and is no inbox. */
static int other_kinds(void)
{
	int fds[7], pair[2], ends[2];

	mkfifo(in_folder("fifo"), 0600);
	if (pipe2(ends, O_CLOEXEC) < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return say("no pipe is to be had");
	fds[0] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fds[1] = open(in_folder("fifo"), O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* nobody at the other end */
	fds[2] = open("/dev/null", O_RDWR | O_CLOEXEC);
	fds[3] = ends[0];
	fds[4] = pair[0];
	fds[5] = memfd_create("pgr-inbox", MFD_CLOEXEC | MFD_ALLOW_SEALING); /* too short */
	fds[6] = 1000;                                                       /* none */
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		const bool is_wake_fd = fds[i] == ends[0];

		if (fds[i] < 0 || bind_to_fd(fds[i]) != PGR_E_WIRE)
			return say("what is no inbox was taken for one");
		if (!is_wake_fd && bind_with_wake_fd(fds[i]) != PGR_E_WIRE)
			return say("what is no bell was taken for one");
	}
	return PASSED;
}

/* A FIFO that has a name may be somebody else's: its owner need not be allowed to write to it to name it. */
static int fifo_of_another(void)
{
	char byte;
	int reader, named;

	if (mkfifo(in_folder("named"), 0600) < 0 ||
	    (reader = open(in_folder("named"), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) < 0 ||
	    (named = open(in_folder("named"), O_PATH | O_CLOEXEC)) < 0)
		return say("no FIFO is to be had");
	if (bind_with_wake_fd(named) != PGR_E_WIRE)
		return say("a FIFO with a name was taken for a bell");
	return read(reader, &byte, 1) == 0 ? PASSED : say("somebody else's FIFO was written to");
}

int main(void)
{
	static const struct alone_test tests[] = {
		{"an honest owner", honest},
		{"a terminal as inbox", terminal_as_inbox},
		{"a terminal as bell", terminal_as_wake_fd},
		{"a leased file as inbox", leased_file},
		{"leased memory as inbox", leased_memory},
		{"a plain file as inbox", plain_file},
		{"other kinds of files", other_kinds},
		{"somebody else's FIFO as bell", fifo_of_another},
	};
	int status;

	if (!mkdtemp(folder))
		return 1;
	/* who waits for the owner of a file is ended */
	status = alone_run(&(struct alone){.seconds = 20, .skip = "it is not to be had here", .leaves = true},
			   tests, sizeof(tests) / sizeof(tests[0]));
	unlink(in_folder("leased"));
	unlink(in_folder("plain"));
	unlink(in_folder("fifo"));
	unlink(in_folder("named"));
	rmdir(folder);
	return status;
}
