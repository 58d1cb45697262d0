/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kill -9 of the server or of the client at random moments, and a new one in its place: each call was
 * executed at most once, exactly once where the client was told so; each call of a client that lives has an
 * outcome within the give-up time.
 *
 *	PGR_KILLS (100) on each wire, PGR_SEED (random, printed)
 */
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../pgr.h"
#include "support/clock.h"

#define CALLS_MAX   (1u << 22)
#define OUTSTANDING 16u
#define LONG_BYTES  60000u
/* a dead server is found by silence alone: the shorter, the more often it happens before the next kill */
#define GIVE_UP_NS (strcmp(wire, "shm") == 0 ? UINT64_C(60000000) : UINT64_C(400000000))
#define LATE_NS    UINT64_C(3000000000) /* beyond the give-up time: a busy machine */
#define PROCEDURE  1u

enum { UNKNOWN, DONE, FAILED };

static struct shared {
	_Atomic uint32_t next_id, epoch, stop;
	_Atomic uint64_t oldest_ns; /* when the oldest outstanding call of the client began; 0: none */
	uint8_t address[PGR_ADDRESS_BYTES];
	_Atomic uint8_t executed[CALLS_MAX], outcome[CALLS_MAX];
	_Atomic uint32_t wrong_data, ok, failed, restarted;
} *shared;
static const char *wire;
static uint16_t port;

static struct pgr *open_one(uint16_t at_port)
{
	char error[200] = "";
	const struct pgr_config config = {
		.bytes = sizeof(config),
		.wire = wire,
		.address = "127.0.0.1",
		.port_first = at_port,
		.port_last = at_port,
		.block = 1,
		.give_up_ns = GIVE_UP_NS,
		.error = error,
		.error_bytes = sizeof(error),
	};
	struct pgr *pgr = NULL;

	if (pgr_open(&config, &pgr) == PGR_OK)
		return pgr;
	fprintf(stderr, "%s: %s\n", wire, error);
	_exit(1);
}

/* ---- server ---- */

static void freed(void *arg, int code)
{
	(void)code;
	free(arg);
}

static void on_call(void *arg, const struct pgr_request *request)
{
	struct pgr_iov iov = {malloc(request->args_bytes), request->args_bytes};
	uint32_t id;

	(void)arg;
	memcpy(&id, request->args, sizeof(id));
	if (id < CALLS_MAX)
		atomic_fetch_add(&shared->executed[id], 1);
	memcpy(iov.base, request->args, iov.bytes);
	if (pgr_reply(request->pgr, &request->token, &iov, 1, 0, freed, iov.base) != PGR_QUEUED)
		free(iov.base);
}

static void server(void)
{
	struct pgr *pgr = open_one(port);
	size_t bytes = PGR_ADDRESS_BYTES;

	pgr_serve(pgr, PROCEDURE, NULL, on_call, NULL);
	pgr_address(pgr, shared->address, &bytes);
	atomic_fetch_add(&shared->epoch, 1);
	for (;;)
		if (pgr_poll(pgr) == 0)
			pgr_wait(pgr, UINT64_C(10000000));
}

/* ---- client ---- */

static struct call {
	uint32_t id;
	bool busy;
	uint64_t begun_ns;
	size_t bytes;
	uint8_t in[LONG_BYTES], out[LONG_BYTES];
} calls[OUTSTANDING];
static uint32_t outstanding;
static bool lost;

static void on_done(void *arg, int code, const void *result, size_t result_bytes)
{
	struct call *call = arg;

	(void)result;
	call->busy = false;
	outstanding--;
	if (code == PGR_OK) {
		if (result_bytes != call->bytes || memcmp(call->in, call->out, call->bytes) != 0)
			atomic_fetch_add(&shared->wrong_data, 1);
		atomic_fetch_add(&shared->ok, 1);
	} else {
		lost = true;
		atomic_fetch_add(code == PGR_E_RESTARTED ? &shared->restarted : &shared->failed, 1);
	}
	shared->outcome[call->id] = code == PGR_OK ? DONE : FAILED;
}

static void note_oldest(void)
{
	uint64_t oldest_ns = 0;

	for (unsigned int i = 0; i < OUTSTANDING; i++)
		if (calls[i].busy && (!oldest_ns || calls[i].begun_ns < oldest_ns))
			oldest_ns = calls[i].begun_ns;
	shared->oldest_ns = oldest_ns;
}

static void begin_some(struct pgr_peer *peer)
{
	for (unsigned int i = 0; i < OUTSTANDING; i++) {
		struct call *call = &calls[i];
		struct pgr_iov in = {call->in, 0}, out = {call->out, LONG_BYTES};

		if (call->busy)
			continue;
		call->id = atomic_fetch_add(&shared->next_id, 1);
		if (call->id >= CALLS_MAX)
			return;
		call->bytes = call->id % 8 ? 4 + call->id % 300 : LONG_BYTES - call->id % 5000;
		memset(call->in, (int)(call->id & 0xff), call->bytes);
		memcpy(call->in, &call->id, sizeof(call->id));
		in.bytes = call->bytes;
		call->begun_ns = now_ns();
		if (pgr_call(peer, PROCEDURE, NULL, &in, 1, &out, 1, 0, on_done, call) != PGR_QUEUED)
			return;
		call->busy = true;
		outstanding++;
	}
}

static void client(void)
{
	struct pgr *pgr = open_one(0);
	struct pgr_peer *peer = NULL;
	uint32_t epoch = 0;

	while (!shared->stop || outstanding) {
		/*
		 * over shared memory a new server has another address; over UDP it takes the old one's
		 * place
		 */
		if (outstanding == 0 &&
		    (!peer || (lost && strcmp(wire, "shm") == 0 && epoch != shared->epoch))) {
			uint8_t address[PGR_ADDRESS_BYTES];

			if (peer)
				pgr_unbind(peer);
			peer = NULL;
			epoch = shared->epoch;
			memcpy(address, shared->address, sizeof(address));
			if (pgr_bind(pgr, address, sizeof(address), &peer) != PGR_OK)
				peer = NULL;
			lost = false;
		}
		if (peer && !shared->stop && !(lost && strcmp(wire, "shm") == 0))
			begin_some(peer);
		note_oldest();
		if (pgr_poll(pgr) == 0)
			pgr_wait(pgr, UINT64_C(1000000));
	}
	if (peer)
		pgr_unbind(peer);
	pgr_close(pgr);
	_exit(0);
}

/* ---- the killer ---- */

static pid_t start(void (*what)(void))
{
	const pid_t pid = fork();

	if (pid)
		return pid;
	what();
	_exit(1);
}

static void sleep_us(uint32_t us)
{
	const struct timespec pause = {.tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000};

	nanosleep(&pause, NULL);
}

static bool run(const char *on, unsigned int kills)
{
	uint32_t twice = 0, not_executed = 0, checked, killed_servers = 0;
	uint64_t hung_ns = 0;
	pid_t serving, calling;
	int status = 0;

	wire = on;
	port = (uint16_t)(20000 + getpid() % 10000);
	memset(shared, 0, sizeof(*shared));
	serving = start(server);
	while (!shared->epoch)
		sleep_us(1000);
	calling = start(client);
	for (unsigned int i = 0; i < kills && !hung_ns; i++) {
		const bool of_server = rand() % 2;
		pid_t *victim = of_server ? &serving : &calling;

		sleep_us((uint32_t)(rand() % (strcmp(wire, "shm") == 0 ? 150000 : 40000)));
		kill(*victim, SIGKILL);
		waitpid(*victim, NULL, 0);
		killed_servers += of_server;
		if (of_server) {
			const uint32_t epoch = shared->epoch;

			sleep_us((uint32_t)(rand() % 5000));
			serving = start(server);
			while (shared->epoch == epoch && waitpid(serving, NULL, WNOHANG) == 0)
				sleep_us(500);
		} else {
			shared->oldest_ns = 0;
			calling = start(client);
		}
		if (shared->oldest_ns && now_ns() > shared->oldest_ns + GIVE_UP_NS + LATE_NS)
			hung_ns = now_ns() - shared->oldest_ns;
	}
	shared->stop = 1;
	for (unsigned int i = 0; i < 5000 && waitpid(calling, &status, WNOHANG) == 0; i++)
		sleep_us(1000);
	if (waitpid(calling, NULL, WNOHANG) == 0) {
		printf("# the client does not end\n");
		kill(calling, SIGKILL);
		hung_ns = 1;
	}
	kill(serving, SIGKILL);
	waitpid(serving, NULL, 0);
	checked = shared->next_id < CALLS_MAX ? shared->next_id : CALLS_MAX;
	for (uint32_t i = 0; i < checked; i++) {
		twice += shared->executed[i] > 1;
		not_executed += shared->outcome[i] == DONE && shared->executed[i] != 1;
	}
	printf("# %s: %u kills (%" PRIu32 " of the server), %" PRIu32 " calls: %" PRIu32 " done, %" PRIu32
	       " restarted, %" PRIu32 " otherwise failed; %" PRIu32 " executed twice, %" PRIu32
	       " done but not executed once, %" PRIu32 " wrong\n",
	       wire, kills, killed_servers, checked, shared->ok, shared->restarted, shared->failed, twice,
	       not_executed, shared->wrong_data);
	if (hung_ns)
		printf("# a call hung for %.1f s\n", (double)hung_ns / 1e9);
	return !hung_ns && !twice && !not_executed && !shared->wrong_data && shared->ok > kills &&
	       shared->failed + shared->restarted > 0;
}

int main(void)
{
	static const char *const wires[] = {"udp", "shm"};
	const char *kills = getenv("PGR_KILLS"), *seed = getenv("PGR_SEED");
	const unsigned int value = seed ? (unsigned int)atoi(seed) : (unsigned int)time(NULL);
	int status = 0;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	srand(value);
	printf("TAP version 13\n1..2\n# PGR_SEED=%u\n", value);
	for (unsigned int i = 0; i < 2; i++) {
		fflush(stdout);
		if (run(wires[i], kills ? (unsigned int)atoi(kills) : 100)) {
			printf("ok %u - %s\n", i + 1, wires[i]);
		} else {
			printf("not ok %u - %s\n", i + 1, wires[i]);
			status = 1;
		}
	}
	return status;
}
