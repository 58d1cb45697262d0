/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi-p2p tells how Open MPI copies long messages between two processes of a host: what it says is set beside
 * what the library then does. Open MPI's calls of process_vm_readv and process_vm_writev come to the functions of
 * that name here, which count them. Runs itself under mpirun once for each case.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mpi.h>

#include "tests/unit/support/pair.h"
#include "tests/unit/support/tap.h"

enum { MESSAGE_BYTES = 1 << 20, ADDRESS_TAG = (1 << 20) + 1, WORD_BYTES = 128 };

/* ---- in a rank ---- */

static unsigned int copies; /* between processes, tried since the path was described */
static bool refuse;

static ssize_t copy_call(long number, pid_t pid, const struct iovec *here, unsigned long here_count,
			 const struct iovec *there, unsigned long there_count, unsigned long flags)
{
	copies++;
	if (refuse) {
		errno = EPERM;
		return -1;
	}
	return syscall(number, pid, here, here_count, there, there_count, flags);
}

__attribute__((visibility("default"))) ssize_t process_vm_readv(pid_t pid, const struct iovec *here,
								unsigned long here_count,
								const struct iovec *there,
								unsigned long there_count,
								unsigned long flags)
{
	return copy_call(SYS_process_vm_readv, pid, here, here_count, there, there_count, flags);
}

__attribute__((visibility("default"))) ssize_t process_vm_writev(pid_t pid, const struct iovec *here,
								 unsigned long here_count,
								 const struct iovec *there,
								 unsigned long there_count,
								 unsigned long flags)
{
	return copy_call(SYS_process_vm_writev, pid, here, here_count, there, there_count, flags);
}

/* Sends one long message and takes one. False where something fails. */
static bool exchange(struct pair_end *end)
{
	static unsigned char out[MESSAGE_BYTES], in[MESSAGE_BYTES];

	pair_fill(out, sizeof(out), 1);
	end->seen.data = in;
	end->seen.data_room_bytes = sizeof(in);
	if (pair_post(end, NULL, out, sizeof(out), 1) < 0)
		return false;
	return pair_poll_until(end, NULL, &end->seen.received, 1, 20000) &&
	       pair_poll_until(end, NULL, &end->seen.sent, 1, 20000) && end->seen.data_bytes == sizeof(in) &&
	       pair_matches(in, sizeof(in), 1);
}

static int rank_main(const char *what)
{
	struct cadge_path path = {.bytes = sizeof(path)};
	const struct cadge_layer *layer = pair_load("mpi-p2p");
	struct cadge_open_args args = pair_args(CADGE_WAIT_POLL);
	unsigned char theirs[PAIR_BLOB_BYTES];
	struct pair_end end;
	MPI_Status status;
	int rank, bytes;

	refuse = strcmp(what, "refuse") == 0;
	if (pair_open(&end, layer, &args) < 0)
		tap_bail(args.error);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Sendrecv(end.blob, (int)end.blob_bytes, MPI_BYTE, 1 - rank, ADDRESS_TAG, theirs, sizeof(theirs),
		     MPI_BYTE, 1 - rank, ADDRESS_TAG, MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_BYTE, &bytes);
	if (layer->connect(end.ctx, 0, theirs, (size_t)bytes, &end.chan) < 0 ||
	    !pair_poll_until(&end, NULL, &end.seen.ups, 1, 20000))
		tap_bail("no connection");
	if (layer->describe_path(end.chan, &path) < 0)
		tap_bail("no path");
	copies = 0;
	MPI_Barrier(MPI_COMM_WORLD); /* no message before both count */
	if (!exchange(&end))
		tap_bail("no message");
	MPI_Barrier(MPI_COMM_WORLD);
	printf("<%u copies: %s>\n", copies, path.used);
	fflush(stdout);
	pair_close(&end);
	return 0;
}

/* ---- the test ---- */

/* What Open MPI calls its transport of memory, and the variables that keep it from copying at once. */
#if OMPI_MAJOR_VERSION >= 5
#define LIMITS_OF "OMPI_MCA_btl_sm_"
#define NO_COPY   "OMPI_MCA_smsc", "^cma,xpmem,knem"
#else
#define LIMITS_OF "OMPI_MCA_btl_vader_"
#define NO_COPY   LIMITS_OF "single_copy_mechanism", "none"
#endif

struct told {
	unsigned int copies; /* the more of both ranks */
	char used[512], copy[WORD_BYTES];
};

/* Runs two ranks of this program; both have to say the same. False where they do not end well. */
static bool ranks_send(const char *what, struct told *told)
{
	char self[1024], command[2048], line[1024], used[sizeof(told->used)], *at;
	const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	unsigned int lines = 0, copied;
	FILE *ranks;
	int status;

	memset(told, 0, sizeof(*told));
	if (length < 0)
		tap_bail("this program does not know its file");
	self[length] = '\0';
	snprintf(command, sizeof(command), "mpirun --bind-to none --oversubscribe -n 2 '%s' %s 2>&1", self,
		 what);
	ranks = popen(command, "r");
	if (!ranks)
		tap_bail("no process for mpirun");
	while (fgets(line, sizeof(line), ranks)) {
		if (sscanf(line, "<%u copies: %511[^>]>", &copied, used) != 2) {
			printf("# %s", line);
			continue;
		}
		if (lines++ && strcmp(used, told->used) != 0)
			printf("# another rank says: %s\n", told->used);
		memcpy(told->used, used, sizeof(used));
		told->copies = copied > told->copies ? copied : told->copies;
	}
	status = pclose(ranks);
	at = strstr(told->used, "; single copy ");
	if (at)
		snprintf(told->copy, sizeof(told->copy), "%.*s", (int)strcspn(at + 14, ";"), at + 14);
	printf("# %s: %u copies between the processes; %s\n", what, told->copies, told->used);
	return WIFEXITED(status) && !WEXITSTATUS(status) && lines == 2 && at;
}

static bool is_not_told(const struct told *told)
{
	return strncmp(told->copy, "not told (cma", 13) == 0;
}

/* Open MPI copies by these calls, or tries to, exactly where it chose cma. */
static bool is_true(const struct told *told)
{
	return (told->copies > 0) == (strcmp(told->copy, "cma") == 0 || is_not_told(told));
}

int main(int argc, char **argv)
{
	struct told choice, told;

	if (argc > 1)
		return rank_main(argv[1]);
	if (system("mpirun --version >/dev/null 2>&1"))
		tap_skip_all("there is no mpirun");
	if (geteuid() == 0 &&
	    (setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1) || setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1)))
		tap_bail("the environment cannot be changed");
	ok(ranks_send("choose", &choice) && is_true(&choice), "the library's own choice is told: %s",
	   choice.copy);
	ok(ranks_send("refuse", &told) && is_true(&told) &&
		   (strcmp(choice.copy, "cma") == 0 ? is_not_told(&told) : !strcmp(told.copy, choice.copy)),
	   "where the kernel refuses what was chosen, the copy is not told: %s", told.copy);
	if (setenv(NO_COPY, 1) || setenv(LIMITS_OF "eager_limit", "8192", 1) ||
	    setenv(LIMITS_OF "rndv_eager_limit", "16384", 1))
		tap_bail("the environment cannot be changed");
	ok(ranks_send("choose", &told) && is_true(&told) && strcmp(told.copy, "none") == 0,
	   "what a user forbids is not used: %s", told.copy);
	ok(strstr(told.used, "; eager_limit 8192; rndv_eager_limit 16384"),
	   "and thresholds are those that he set");
	return tap_done();
}
