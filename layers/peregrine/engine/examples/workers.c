/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Procedures that take long, handed over to other threads: the handler keeps the token, a worker does the work, and the
 * thread of the endpoint, which alone may touch it, answers. Meanwhile it serves other calls.
 *
 *	pgr-workers [CALLS [MS]]     4 calls of 100 ms each, and one short call beside them; prints the order of the answers
 */
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "pgr.h"

enum { LONG_ONE = 1, SHORT_ONE = 2, WORKERS = 4 };

/* A call that a worker has, or has done. */
struct job {
	struct job *next;
	struct pgr_token token;
	unsigned int ms;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct job *todo, *done;
	bool stop;
	/* becomes readable when there is something done */
	int wake_fd;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

static void *work(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&pool.lock);
	while (!pool.stop) {
		struct job *job = pool.todo;
		struct timespec time;

		if (!job) {
			pthread_cond_wait(&pool.more, &pool.lock);
			continue;
		}
		pool.todo = job->next;
		pthread_mutex_unlock(&pool.lock);
		time = (struct timespec){.tv_sec = job->ms / 1000,
					 .tv_nsec = (long)(job->ms % 1000) * 1000000};
		nanosleep(&time, NULL); /* what takes long */
		pthread_mutex_lock(&pool.lock);
		job->next = pool.done;
		pool.done = job;
		eventfd_write(pool.wake_fd, 1);
	}
	pthread_mutex_unlock(&pool.lock);
	return NULL;
}

/* The arguments are lent until the handler returns: what the worker needs of them is copied. */
static void on_long(void *arg, const struct pgr_request *request)
{
	struct job *job = calloc(1, sizeof(*job));

	(void)arg;
	if (!job || request->args_bytes != sizeof(job->ms)) {
		free(job);
		pgr_fail(request->pgr, &request->token, PGR_E_PROCEDURE_OWN);
		return;
	}
	job->token = request->token;
	memcpy(&job->ms, request->args, sizeof(job->ms));
	pthread_mutex_lock(&pool.lock);
	job->next = pool.todo;
	pool.todo = job;
	pthread_cond_signal(&pool.more);
	pthread_mutex_unlock(&pool.lock);
}

static void on_short(void *arg, const struct pgr_request *request)
{
	(void)arg;
	pgr_reply(request->pgr, &request->token, NULL, 0, 0, NULL, NULL);
}

/* On the endpoint's own thread. A caller that has gone meanwhile costs nothing: its token is consumed in silence. */
static void answer(struct pgr *server)
{
	struct job *done;
	eventfd_t ignored;

	eventfd_read(pool.wake_fd, &ignored);
	pthread_mutex_lock(&pool.lock);
	done = pool.done;
	pool.done = NULL;
	pthread_mutex_unlock(&pool.lock);
	while (done) {
		struct job *next = done->next;

		pgr_reply(server, &done->token, NULL, 0, 0, NULL, NULL);
		free(done);
		done = next;
	}
}

/* Sleeps until the engine or a worker has something. */
static void turn(struct pgr *server, struct pgr *client)
{
	struct pollfd fds[1 + 2 * PGR_FDS] = {{.fd = pool.wake_fd, .events = POLLIN}};
	uint64_t soonest_ns = UINT64_MAX;
	struct pgr *const both[] = {server, client};
	bool now = pgr_poll(server) + pgr_poll(client) > 0;

	for (unsigned int i = 0; i < 2; i++) {
		int own[PGR_FDS] = {-1, -1};
		uint64_t due_ns = UINT64_MAX;

		now |= pgr_watch(both[i], own, &due_ns) != PGR_OK;
		soonest_ns = due_ns < soonest_ns ? due_ns : soonest_ns;
		for (unsigned int j = 0; j < PGR_FDS; j++)
			fds[1 + i * PGR_FDS + j] = (struct pollfd){.fd = own[j], .events = POLLIN};
	}
	poll(fds, sizeof(fds) / sizeof(fds[0]),
	     now                                 ? 0
	     : soonest_ns > UINT64_C(1000000000) ? 1000
						 : (int)(soonest_ns / 1000000 + 1));
	if (fds[0].revents)
		answer(server);
}

static struct pgr *open_or_exit(void)
{
	char error[200] = "";
	const struct pgr_config config = {.bytes = sizeof(config),
					  .wire = "udp",
					  .address = "127.0.0.1",
					  .block = 1,
					  .error = error,
					  .error_bytes = sizeof(error)};
	struct pgr *pgr;

	if (pgr_open(&config, &pgr) == PGR_OK)
		return pgr;
	fprintf(stderr, "pgr-workers: %s\n", error);
	exit(1);
}

static unsigned int answered;
static int status;

static void on_done(void *arg, int code, const void *result, size_t result_bytes)
{
	(void)result, (void)result_bytes;
	printf("%s %s\n", (const char *)arg, code == PGR_OK ? "done" : pgr_code_name(code));
	status |= code != PGR_OK;
	answered++;
}

int main(int argc, char **argv)
{
	const unsigned int calls = argc > 1 ? (unsigned int)atoi(argv[1]) : 4;
	unsigned int ms = argc > 2 ? (unsigned int)atoi(argv[2]) : 100;
	const struct pgr_iov in = {&ms, sizeof(ms)};
	char address[PGR_ADDRESS_BYTES], name[] = "long", quick[] = "short";
	struct pgr *server = open_or_exit(), *client = open_or_exit();
	size_t bytes = sizeof(address);
	pthread_t threads[WORKERS];
	struct pgr_peer *peer;

	pool.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	for (unsigned int i = 0; i < WORKERS; i++)
		if (pool.wake_fd < 0 || pthread_create(&threads[i], NULL, work, NULL) != 0)
			return 1;
	pgr_serve(server, LONG_ONE, NULL, on_long, NULL);
	pgr_serve(server, SHORT_ONE, NULL, on_short, NULL);
	pgr_address(server, address, &bytes);
	if (pgr_bind(client, address, bytes, &peer) != PGR_OK)
		return 1;
	for (unsigned int i = 0; i < calls; i++)
		while (pgr_call(peer, LONG_ONE, NULL, &in, 1, NULL, 0, 0, on_done, name) == PGR_BUSY)
			turn(server, client);
	while (pgr_call(peer, SHORT_ONE, NULL, NULL, 0, NULL, 0, 0, on_done, quick) == PGR_BUSY)
		turn(server, client);
	while (answered < calls + 1)
		turn(server, client);
	pthread_mutex_lock(&pool.lock);
	pool.stop = true;
	pthread_cond_broadcast(&pool.more);
	pthread_mutex_unlock(&pool.lock);
	for (unsigned int i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	pgr_close(client);
	pgr_close(server);
	close(pool.wake_fd);
	return status;
}
