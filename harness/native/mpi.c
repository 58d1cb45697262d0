/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a plain program reaches over MPI, written as the MPI standard's own examples are: the yardstick beside mpi-p2p.
 *
 *	mpirun -n 2 native-mpi echo BYTES 1 ROUND_TRIPS		MPI_Send and MPI_Recv; prints the median round trip in ns
 *	mpirun -n 2 native-mpi window BYTES WINDOW MESSAGES		MPI_Isend and MPI_Irecv in windows, each with one MPI_Waitall
 *	mpirun -n 2 native-mpi oneway BYTES WINDOW MESSAGES		and one answer (window), or with one answer at the end (oneway)
 *
 * With 2N ranks, rank R sends to rank N + R, all pairs at the same time. `window` and `oneway` print messages a second,
 * all pairs together. A tenth more of everything is sent before it is timed.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timed.h"

enum { TAG = 1, ANSWER = 2, WINDOW_MAX = 1024 };

struct task {
	int bytes, window, peer;
	char *buffer;
	MPI_Request requests[WINDOW_MAX];
};

static void exchange(struct task *task, int begins)
{
	if (begins)
		MPI_Send(task->buffer, task->bytes, MPI_BYTE, task->peer, TAG, MPI_COMM_WORLD);
	MPI_Recv(task->buffer, task->bytes, MPI_BYTE, task->peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (!begins)
		MPI_Send(task->buffer, task->bytes, MPI_BYTE, task->peer, TAG, MPI_COMM_WORLD);
}

/* Returns the median of `count` round trips in ns. */
static double echo(struct task *task, int begins, long count)
{
	double *taken_ns = malloc((size_t)count * sizeof(*taken_ns)), median_ns;

	if (!taken_ns)
		MPI_Abort(MPI_COMM_WORLD, 3);
	for (long i = -count / 10; i < count; i++) {
		const double began_ns = now_ns();

		exchange(task, begins);
		if (i >= 0)
			taken_ns[i] = now_ns() - began_ns;
	}
	median_ns = median_of(taken_ns, count);
	free(taken_ns);
	return median_ns;
}

static void answer(const struct task *task, int sends)
{
	char word = 0;

	if (sends)
		MPI_Recv(&word, 1, MPI_BYTE, task->peer, ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Send(&word, 1, MPI_BYTE, task->peer, ANSWER, MPI_COMM_WORLD);
}

static void push(struct task *task, int sends, long windows, int answers)
{
	for (long i = 0; i < windows; i++) {
		for (int j = 0; j < task->window; j++) {
			char *at = task->buffer + (size_t)j * (size_t)task->bytes;

			if (sends)
				MPI_Isend(at, task->bytes, MPI_BYTE, task->peer, TAG, MPI_COMM_WORLD,
					  &task->requests[j]);
			else
				MPI_Irecv(at, task->bytes, MPI_BYTE, task->peer, TAG, MPI_COMM_WORLD,
					  &task->requests[j]);
		}
		MPI_Waitall(task->window, task->requests, MPI_STATUSES_IGNORE);
		if (answers)
			answer(task, sends);
	}
	if (!answers)
		answer(task, sends);
}

/* Returns messages a second of all pairs. */
static double rate(struct task *task, int sends, long count, int answers, int pairs)
{
	const long windows = (count + task->window - 1) / task->window;
	double began_ns;

	push(task, sends, windows / 10 + 1, answers);
	MPI_Barrier(MPI_COMM_WORLD);
	began_ns = now_ns();
	push(task, sends, windows, answers);
	MPI_Barrier(MPI_COMM_WORLD);
	return (double)windows * task->window * pairs / ((now_ns() - began_ns) / 1e9);
}

int main(int argc, char **argv)
{
	static struct task task;
	int rank, ranks, sends, pairs;
	double value;
	long count;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	task.bytes = argc == 5 ? atoi(argv[2]) : -1;
	task.window = argc == 5 ? atoi(argv[3]) : 0;
	count = argc == 5 ? atol(argv[4]) : 0;
	if (task.bytes < 0 || task.window < 1 || task.window > WINDOW_MAX || count < 1 || ranks % 2) {
		fprintf(stderr, "usage: native-mpi echo|window|oneway BYTES WINDOW COUNT\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	pairs = ranks / 2;
	sends = rank < pairs;
	task.peer = sends ? rank + pairs : rank - pairs;
	task.buffer = calloc((size_t)task.window, (size_t)task.bytes + 1);
	if (!task.buffer)
		MPI_Abort(MPI_COMM_WORLD, 3);
	value = strcmp(argv[1], "echo") == 0
			? echo(&task, sends, count)
			: rate(&task, sends, count, strcmp(argv[1], "window") == 0, pairs);
	if (rank == 0)
		printf("%.6g\n", value);
	free(task.buffer);
	MPI_Finalize();
	return 0;
}
