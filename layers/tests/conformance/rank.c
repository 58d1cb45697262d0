/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank: runs the tests that the referee names, and talks to the other ranks through it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "conformance.h"
#include "launchers.h"
#include "stacks.h"

static int verdict_set(struct rank *r, enum verdict verdict, const char *format, va_list args)
{
	if (r->verdict != VERDICT_NONE)
		return -1;
	r->verdict = verdict;
	vsnprintf(r->reason, sizeof(r->reason), format, args);
	return -1;
}

int fail(struct rank *r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	verdict_set(r, VERDICT_FAIL, format, args);
	va_end(args);
	return -1;
}

int skip(struct rank *r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	verdict_set(r, VERDICT_SKIP, format, args);
	va_end(args);
	return -1;
}

static int packet_send(struct rank *r, enum packet_kind kind, unsigned int rank, uint32_t value,
		       const void *data, size_t bytes)
{
	struct packet p = {.kind = kind, .rank = rank, .value = value, .bytes = (uint32_t)bytes};

	if (bytes > sizeof(p.data))
		return fail(r, "the suite tried to send %zu bytes out of band", bytes);
	if (bytes)
		memcpy(p.data, data, bytes);
	while (send(r->sock, &p, PACKET_HEAD_BYTES + bytes, MSG_NOSIGNAL) < 0) {
		if (errno == EINTR)
			continue;
		_exit(4); /* the referee is gone */
	}
	return 0;
}

void note(struct rank *r, const char *what)
{
	if (packet_send(r, PACKET_NOTE, 0, 0, what, strlen(what)) < 0)
		_exit(70);
}

/*
 * Takes one packet off the socket. 1: got one at *p; 0: none now (only with MSG_DONTWAIT). Exits with the
 * referee.
 */
static int packet_take(struct rank *r, struct packet *p, int flags)
{
	ssize_t n;

	do {
		n = recv(r->sock, p, sizeof(*p), flags);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (n < (ssize_t)PACKET_HEAD_BYTES)
		_exit(4);
	return 1;
}

static void parcel_keep(struct rank *r, const struct packet *p)
{
	struct parcel *parcel = malloc(sizeof(*parcel) + p->bytes), **at;

	if (!parcel)
		_exit(70);
	parcel->next = NULL;
	parcel->from = p->rank;
	parcel->bytes = p->bytes;
	memcpy(parcel->data, p->data, p->bytes);
	for (at = &r->parcels; *at; at = &(*at)->next)
		;
	*at = parcel;
}

int oob_send(struct rank *r, unsigned int to, const void *data, size_t bytes)
{
	struct packet p = {.rank = r->number, .bytes = (uint32_t)bytes};

	if (to != r->number)
		return packet_send(r, PACKET_DATA, to, 0, data, bytes);
	if (bytes)
		memcpy(p.data, data, bytes);
	parcel_keep(r, &p);
	return 0;
}

int oob_try(struct rank *r, unsigned int from, void *data, size_t bytes_max, size_t *bytes_out)
{
	struct parcel **at, *parcel;
	struct packet p;

	while (packet_take(r, &p, MSG_DONTWAIT) > 0) {
		if (p.kind == PACKET_QUIT)
			_exit(0);
		if (p.kind == PACKET_DATA)
			parcel_keep(r, &p);
	}
	for (at = &r->parcels; *at; at = &(*at)->next) {
		parcel = *at;
		if (parcel->from != from)
			continue;
		if (parcel->bytes > bytes_max)
			return fail(r, "the suite got %zu bytes out of band and expected at most %zu",
				    parcel->bytes, bytes_max);
		if (parcel->bytes)
			memcpy(data, parcel->data, parcel->bytes);
		if (bytes_out)
			*bytes_out = parcel->bytes;
		*at = parcel->next;
		free(parcel);
		return 1;
	}
	return 0;
}

int oob_recv(struct rank *r, unsigned int from, void *data, size_t bytes_max, size_t *bytes_out)
{
	struct timespec nap = {.tv_nsec = 200000};
	int got;

	for (;;) {
		got = oob_try(r, from, data, bytes_max, bytes_out);
		if (got)
			return got < 0 ? -1 : 0;
		if (!r->polled) {
			nanosleep(&nap, NULL);
			continue;
		}
		got = endpoint_poll(r->polled);
		if (got < 0)
			return -1;
		if (got == 0)
			endpoint_idle(r->polled);
	}
}

int oob_barrier(struct rank *r)
{
	static const char here[] = "here";
	char said[sizeof(here)];

	for (unsigned int other = 0; other < r->count; other++)
		if (other != r->number && oob_send(r, other, here, sizeof(here)) < 0)
			return -1;
	for (unsigned int other = 0; other < r->count; other++) {
		if (other == r->number)
			continue;
		if (oob_recv(r, other, said, sizeof(said), NULL) < 0)
			return -1;
		if (memcmp(said, here, sizeof(here)) != 0)
			return fail(r, "the suite's ranks are out of step");
	}
	return 0;
}

static void parcels_drop(struct rank *r)
{
	while (r->parcels) {
		struct parcel *next = r->parcels->next;

		free(r->parcels);
		r->parcels = next;
	}
}

int referee_connect(const char *socket_name)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t length = strlen(socket_name);
	int sock;

	if (length + 1 > sizeof(to.sun_path))
		return -1;
	memcpy(to.sun_path + 1, socket_name, length);
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sock < 0 || connect(sock, (const void *)&to,
				(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) < 0) {
		perror("cadge-conformance: cannot reach the referee");
		return -1;
	}
	return sock;
}

static int rank_join(struct rank *r, const char *socket_name)
{
	const char *fd =
		getenv("CADGE_CONFORMANCE_FD"); /* connected already, from another network namespace */
	struct packet p;

	r->sock = fd ? atoi(fd) : referee_connect(socket_name);
	if (r->sock < 0 || fcntl(r->sock, F_SETFD, FD_CLOEXEC) < 0)
		return -1;
	if (packet_send(r, PACKET_HELLO, r->number, (uint32_t)getpid(), NULL, 0) < 0)
		return -1;
	packet_take(r, &p, 0);
	if (p.kind != PACKET_PEERS || p.bytes > sizeof(r->pids))
		return -1;
	memcpy(r->pids, p.data, p.bytes);
	r->count = p.value;
	return 0;
}

static int rank_load(struct rank *r, char *file, size_t file_bytes, char *shim_file)
{
	const struct cadge_layer *layer;

	if (module_find(r->opt, file, file_bytes, shim_file) < 0)
		return fail(r, "the module does not exist");
	layer = module_load(file, r->reason, sizeof(r->reason));
	if (!layer) {
		r->verdict = VERDICT_FAIL;
		return -1;
	}
	r->caps = layer->caps;
	r->layer = layer;
	r->file = file;
	if (!shim_file[0])
		return 0;
	r->inner = layer;
	r->file = shim_file;
	r->layer = module_load(shim_file, r->reason, sizeof(r->reason));
	if (!r->layer) {
		r->verdict = VERDICT_FAIL;
		return -1;
	}
	return 0;
}

int rank_main(const struct options *opt, const char *socket_name, unsigned int number)
{
	static char file[PATH_MAX], shim_file[PATH_MAX];
	static struct rank rank;
	struct rank *r = &rank;
	struct packet p;

	if (!launcher_rank())
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0,
	      0); /* semantics_proved reads a stopped rank's memory */
	r->opt = opt;
	r->number = number;
	if (rank_join(r, socket_name) < 0)
		return 4;
	stacks_answer(r->sock);
	if (rank_load(r, file, sizeof(file), shim_file) < 0) {
		/* Told as the verdict of whatever is asked first. */
		packet_take(r, &p, 0);
		packet_send(r, PACKET_VERDICT, 0, VERDICT_FAIL, r->reason, strlen(r->reason));
		return 3;
	}
	for (;;) {
		packet_take(r, &p, 0);
		if (p.kind == PACKET_QUIT)
			break;
		if (p.kind == PACKET_DATA) {
			parcel_keep(r, &p);
			continue;
		}
		if (p.kind != PACKET_RUN || p.value >= tests_count)
			continue;
		r->verdict = VERDICT_NONE;
		r->reason[0] = 0;
		r->polled = NULL;
		tests[p.value].run(r);
		if (r->verdict == VERDICT_NONE)
			r->verdict = VERDICT_OK;
		if (packet_send(r, PACKET_VERDICT, 0, r->verdict, r->reason, strlen(r->reason)) < 0)
			return 70;
		if (r->verdict == VERDICT_FAIL)
			pause(); /* the referee ends this set */
	}
	parcels_drop(r);
	return 0;
}
