/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that stay where they are (pgr_alloc), between two processes on shared memory: what is read in place is right, cannot
 * be written to, stays until it has been read, and outlives its owner; what is no such message is refused. TAP on standard
 * output.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/pair.h"

enum { SECONDS = 30, BYTES = 300000, CALLS = 40 };
enum { ECHO = 1, GIVE, LOOK, STOP };

/* What a server and its client tell each other besides. */
static struct seen {
	_Atomic uint32_t sent;       /* results that the server has back */
	_Atomic uint32_t early;      /* of them, while their client still read */
	_Atomic uint32_t reading;    /* the client is inside `done` */
	_Atomic uint32_t wrong;      /* bytes */
	_Atomic uint32_t referred;   /* calls whose arguments lay in the caller's memory */
	_Atomic uint32_t writable;   /* their pages could be written to */
	_Atomic uint32_t views;      /* that the server has, when it is asked */
	_Atomic uint32_t references; /* that it sent */
	_Atomic uint32_t executed;
	_Atomic int server, looked; /* process; it has looked at arguments of a process that has ended */
} *seen;

static struct pgr *open_end(struct pair *pair, const uint8_t *key, uint32_t off)
{
	const struct pgr_config config = {.bytes = sizeof(config),
					  .wire = "shm",
					  .block = 1,
					  .key = key,
					  .off = off,
					  .give_up_ns = UINT64_C(3000000000)};
	struct pgr *pgr = NULL;

	if (pgr_open(&config, &pgr) != PGR_OK)
		pair_report(pair, PAIR_FAILED, "no endpoint");
	return pgr;
}

static void fill(uint8_t *at, size_t bytes, uint32_t seed)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)(seed * 31 + i * 7 + (i >> 9));
}

static uint32_t wrong_bytes(const uint8_t *at, size_t bytes, uint32_t seed)
{
	uint32_t wrong = 0;

	for (size_t i = 0; i < bytes; i++)
		wrong += at[i] != (uint8_t)(seed * 31 + i * 7 + (i >> 9));
	return wrong;
}

/* Mappings of this process that are memory of another endpoint's. */
static uint32_t views(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	uint32_t count = 0;

	while (maps && fgets(line, sizeof(line), maps))
		count += strstr(line, "memfd:pgr-memory") && strstr(line, " r--s ");
	if (maps)
		fclose(maps);
	return count;
}

static void pause_ms(unsigned int ms)
{
	const struct timespec pause = {.tv_nsec = (long)ms * 1000000};

	nanosleep(&pause, NULL);
}

/* Polls and sleeps for so long. */
static void live(struct pgr *pgr, unsigned int ms)
{
	const uint64_t end_ns = pgr_now(pgr) + ms * UINT64_C(1000000);

	while (pgr_now(pgr) < end_ns)
		if (pgr_poll(pgr) == 0)
			pgr_wait(pgr, UINT64_C(2000000));
}

/* ---- server ---- */

static uint8_t *memory; /* of the side's own */
static bool stopping;

static void on_sent(void *arg, int code)
{
	(void)arg, (void)code;
	seen->early += seen->reading;
	seen->sent++;
	memset(memory, 0xee, BYTES); /* as it may, now */
}

static void look_at(const struct pgr_request *request)
{
	uintptr_t page = (uintptr_t)request->args & ~(uintptr_t)4095;

	seen->executed++;
	if (!request->shared || request->args_bytes <= pgr_packet_bytes(request->pgr))
		return; /* in our own memory, or in a packet */
	seen->referred++;
	if (mprotect((void *)page, 4096, PROT_READ | PROT_WRITE) == 0)
		seen->writable++;
}

static void on_echo(void *arg, const struct pgr_request *request)
{
	const struct pgr_iov iov = {memory, request->args_bytes};

	(void)arg;
	look_at(request);
	for (size_t i = 0; i < iov.bytes; i++)
		memory[i] = (uint8_t)~((const uint8_t *)request->args)[i];
	if (pgr_reply(request->pgr, &request->token, &iov, 1, 0, on_sent, NULL) < 0)
		seen->wrong++;
}

/* A result of so many bytes, of seed 1. */
static void on_give(void *arg, const struct pgr_request *request)
{
	struct pgr_iov iov = {memory, 0};
	uint32_t bytes;

	(void)arg;
	memcpy(&bytes, request->args, sizeof(bytes));
	iov.bytes = bytes;
	fill(memory, bytes, 1);
	if (pgr_reply(request->pgr, &request->token, &iov, 1, 0, on_sent, NULL) < 0)
		seen->wrong++;
}

/* The caller ends while its arguments are read. */
static void on_look(void *arg, const struct pgr_request *request)
{
	pid_t pid;

	(void)arg;
	look_at(request);
	memcpy(&pid, request->args, sizeof(pid));
	kill(pid, SIGKILL);
	while (kill(pid, 0) == 0)
		pause_ms(1);
	seen->wrong += wrong_bytes((const uint8_t *)request->args + 4096, request->args_bytes - 4096, 1) != 0;
	seen->looked++;
	pgr_reply(request->pgr, &request->token, NULL, 0, 0, NULL, NULL);
}

static void on_stop(void *arg, const struct pgr_request *request)
{
	(void)arg;
	pgr_reply(request->pgr, &request->token, NULL, 0, 0, NULL, NULL);
	stopping = true;
}

/* As argument of a test: both ends have a key. */
static int keyed;
static const uint8_t *key_of(const void *arg)
{
	static const uint8_t key[PGR_KEY_BYTES] = {5};

	return arg == &keyed ? key : NULL;
}

static int serve(struct pair *pair, void *arg)
{
	struct pgr *pgr = open_end(pair, key_of(arg), 0);
	struct pgr_stats stats = {.bytes = sizeof(stats)};

	if (!pgr)
		return PAIR_FAILED;
	memory = pgr_alloc(pgr, BYTES);
	seen->server = getpid();
	pgr_serve(pgr, ECHO, NULL, on_echo, NULL);
	pgr_serve(pgr, GIVE, NULL, on_give, NULL);
	pgr_serve(pgr, LOOK, NULL, on_look, NULL);
	pgr_serve(pgr, STOP, NULL, on_stop, NULL);
	pair_send(pair, pgr);
	while (!stopping && !pair->stop) {
		live(pgr, 20);
		seen->views = views();
		pgr_stats(pgr, &stats);
		seen->references = (uint32_t)stats.references;
	}
	live(pgr, 100);
	pgr_close(pgr);
	return PAIR_PASSED;
}

/* ---- client ---- */

static struct pgr *pgr;
static struct pgr_peer *peer;

static int begin(struct pair *pair, const uint8_t *key, uint32_t off)
{
	pgr = open_end(pair, key, off);
	if (!pgr)
		return PAIR_FAILED;
	if (!pair_await(pair) || pgr_bind(pgr, pair->address, PGR_ADDRESS_BYTES, &peer) != PGR_OK)
		return pair_report(pair, PAIR_FAILED, "no server");
	memory = pgr_alloc(pgr, BYTES);
	return memory ? PAIR_PASSED : pair_report(pair, PAIR_FAILED, "no memory");
}

static int end(struct pair *pair, int result)
{
	const int code = pgr_call_and_wait(peer, STOP, NULL, NULL, 0, NULL, 0, 0, NULL);

	pgr_close(pgr);
	return code == PGR_OK ? result : pair_report(pair, PAIR_FAILED, "stop: %s", pgr_code_name(code));
}

static bool wait_for(const _Atomic uint32_t *count, uint32_t value)
{
	for (unsigned int i = 0; i < 200 && *count != value; i++)
		live(pgr, 10);
	return *count == value;
}

struct taking {
	uint32_t asked; /* bytes: arguments stay where they are until the call has ended */
	bool done;
	int code;
	uint32_t wrong;
	size_t bytes;
};

/* Reads the result slowly, where it lies. */
static void on_done(void *arg, int code, const void *result, size_t result_bytes)
{
	struct taking *taking = arg;

	taking->done = true;
	taking->code = code;
	taking->bytes = result_bytes;
	if (code != PGR_OK)
		return;
	seen->reading = 1;
	pause_ms(5);
	taking->wrong = result ? wrong_bytes(result, result_bytes, 1) : UINT32_MAX;
	seen->reading = 0;
}

static int give(uint32_t bytes, struct taking *taking)
{
	const struct pgr_iov in = {&taking->asked, sizeof(taking->asked)};

	*taking = (struct taking){.asked = bytes};
	return pgr_call(peer, GIVE, NULL, &in, 1, NULL, 0, 0, on_done, taking);
}

/* Both ways in place; the results placed in the caller's buffers. */
static int echo(struct pair *pair, void *arg)
{
	static uint8_t back[BYTES];
	struct pgr_stats stats = {.bytes = sizeof(stats)};
	const bool plain = arg != NULL;
	uint32_t expected = 0;

	if (begin(pair, key_of(arg), 0) != PAIR_PASSED)
		return PAIR_FAILED;
	for (uint32_t i = 0; i < CALLS; i++) {
		/* short ones, which are copied, among them; and one in the middle of the memory */
		const size_t bytes = i % 4 == 3 ? 100 : BYTES - 8 * i, at = i % 4 == 2 ? 8 * i : 0;
		const struct pgr_iov in[2] = {{memory + at, bytes / 2},
					      {memory + at + bytes / 2, bytes - bytes / 2}},
				     out = {back, sizeof(back)};
		size_t got = 0;
		int code;

		fill(memory + at, bytes, i);
		expected += bytes > 100;
		code = pgr_call_and_wait(peer, ECHO, NULL, in, 2, &out, 1, 0, &got);
		for (size_t j = 0; j < bytes && code == PGR_OK; j++)
			code = (back[j] ^ memory[at + j]) == 0xff ? PGR_OK : PGR_E_WIRE;
		if (code != PGR_OK || got != bytes)
			return pair_report(pair, PAIR_FAILED, "call %u of %zu bytes: %s", i, bytes,
					   pgr_code_name(code));
	}
	pgr_stats(pgr, &stats);
	if (stats.references != (plain ? 0 : expected) || seen->referred != (plain ? 0 : expected))
		return pair_report(pair, PAIR_FAILED, "%u of %u calls were references, %u were read so",
				   (unsigned int)stats.references, expected, seen->referred);
	if (seen->writable || seen->wrong)
		return pair_report(pair, PAIR_FAILED, "%u arguments could be written to", seen->writable);
	return end(pair, PAIR_PASSED);
}

/* A result is read in `done`, which may take its time; then, and not before, the server has its memory back. */
static int lent(struct pair *pair, void *arg)
{
	struct taking taking;

	(void)arg;
	if (begin(pair, NULL, 0) != PAIR_PASSED)
		return PAIR_FAILED;
	for (uint32_t i = 1; i <= 10; i++) {
		if (give(BYTES, &taking) != PGR_QUEUED)
			return pair_report(pair, PAIR_FAILED, "call %u", i);
		while (!taking.done)
			live(pgr, 1);
		if (taking.code != PGR_OK || taking.bytes != BYTES || taking.wrong)
			return pair_report(pair, PAIR_FAILED, "call %u: %s, %zu bytes, %u wrong", i,
					   pgr_code_name(taking.code), taking.bytes, taking.wrong);
		if (!wait_for(&seen->sent, i) || seen->early)
			return pair_report(pair, PAIR_FAILED, "call %u: %u had back, %u too early", i,
					   seen->sent, seen->early);
	}
	if (!wait_for(&seen->references, 10))
		return pair_report(pair, PAIR_FAILED, "%u references", seen->references);
	return end(pair, PAIR_PASSED);
}

/* Results that nobody takes: too large for their place, of a call that has ended, of a binding that has. */
static int unwanted(struct pair *pair, void *arg)
{
	uint8_t few[64];
	const struct pgr_iov out = {few, sizeof(few)};
	const uint32_t bytes = BYTES;
	const struct pgr_iov in = {(void *)(uintptr_t)&bytes, sizeof(bytes)};
	struct taking taking;
	struct pgr_peer *other;
	int code;

	(void)arg;
	if (begin(pair, NULL, 0) != PAIR_PASSED)
		return PAIR_FAILED;
	code = pgr_call_and_wait(peer, GIVE, NULL, &in, 1, &out, 1, 0, NULL);
	if (code != PGR_E_TOO_LARGE || !wait_for(&seen->sent, 1))
		return pair_report(pair, PAIR_FAILED, "too large: %s, %u had back", pgr_code_name(code),
				   seen->sent);
	if (give(BYTES, &taking) != PGR_QUEUED || pgr_cancel(peer, &taking) != 1)
		return pair_report(pair, PAIR_FAILED, "cancel");
	while (!taking.done)
		live(pgr, 1);
	/* The server may have been so fast that its result was there before the poll that ends the call. */
	if ((taking.code != PGR_E_CANCELLED && taking.code != PGR_OK) || !wait_for(&seen->sent, 2))
		return pair_report(pair, PAIR_FAILED, "cancelled: %s, %u had back",
				   pgr_code_name(taking.code), seen->sent);
	other = peer;
	if (pgr_bind(pgr, pair->address, PGR_ADDRESS_BYTES, &peer) != PGR_OK ||
	    give(100, &taking) != PGR_QUEUED)
		return pair_report(pair, PAIR_FAILED, "another binding");
	while (!taking.done)
		live(pgr, 1);
	if (give(BYTES, &taking) != PGR_QUEUED)
		return pair_report(pair, PAIR_FAILED, "another call");
	pgr_unbind(peer);
	peer = other;
	while (!taking.done)
		live(pgr, 1);
	if (taking.code != PGR_E_CLOSED || !wait_for(&seen->sent, 3))
		return pair_report(pair, PAIR_FAILED, "unbound: %s, %u had back", pgr_code_name(taking.code),
				   seen->sent);
	return end(pair, PAIR_PASSED);
}

/* Memory that was given back is let go of by those who have read it. */
static int given_back(struct pair *pair, void *arg)
{
	enum { FREED = 200, ALL = 500 }; /* every second one; of more than there are views */
	static uint8_t back[BYTES];
	const struct pgr_iov out = {back, sizeof(back)};

	(void)arg;
	if (begin(pair, NULL, 0) != PAIR_PASSED)
		return PAIR_FAILED;
	for (uint32_t i = 0; i < ALL; i++) {
		uint8_t *piece = pgr_alloc(pgr, BYTES);
		const struct pgr_iov in = {piece, BYTES};

		if (!piece)
			return pair_report(pair, PAIR_FAILED, "no memory");
		for (uint32_t j = 0; j < BYTES; j++)
			if (piece[j])
				return pair_report(pair, PAIR_FAILED, "memory that is not zeroed");
		fill(piece, BYTES, i);
		if (pgr_call_and_wait(peer, ECHO, NULL, &in, 1, &out, 1, 0, NULL) != PGR_OK ||
		    (back[77] ^ piece[77]) != 0xff)
			return pair_report(pair, PAIR_FAILED, "call %u", i);
		if (i < FREED && i % 2 && pgr_free(pgr, piece) != PGR_OK)
			return pair_report(pair, PAIR_FAILED, "free");
		if (i == FREED - 1 && !wait_for(&seen->views, FREED / 2))
			return pair_report(pair, PAIR_FAILED, "the server still has %u views", seen->views);
	}
	if (pgr_free(pgr, back) != PGR_E_ARGUMENT || pgr_free(pgr, NULL) != PGR_OK)
		return pair_report(pair, PAIR_FAILED, "free of what was not given");
	if (seen->referred != ALL || !wait_for(&seen->views, 256))
		return pair_report(pair, PAIR_FAILED, "%u references, the server has %u views",
				   seen->referred, seen->views);
	return end(pair, PAIR_PASSED);
}

static void nothing(void *arg, int code, const void *result, size_t result_bytes)
{
	(void)arg, (void)code, (void)result, (void)result_bytes;
}

/* Another process that ends: while its arguments are read, while it reads a result; it closes its endpoint. */
static pid_t start(struct pair *pair, int how)
{
	const pid_t pid = fork();

	if (pid)
		return pid;
	if (begin(pair, NULL, 0) != PAIR_PASSED)
		_exit(1);
	if (how == 0) {
		const struct pgr_iov in = {memory, BYTES};
		const pid_t own = getpid();

		fill(memory + 4096, BYTES - 4096, 1);
		memcpy(memory, &own, sizeof(own));
		pgr_call(peer, LOOK, NULL, &in, 1, NULL, 0, 0, nothing, NULL);
		live(pgr, 10000);
	} else {
		const uint32_t bytes = BYTES;
		const struct pgr_iov in = {(void *)(uintptr_t)&bytes, sizeof(bytes)};
		struct taking taking;

		give(100, &taking);
		while (!taking.done)
			live(pgr, 1);
		pgr_call(peer, GIVE, NULL, &in, 1, NULL, 0, 0, nothing, NULL);
		while (seen->references != 1) /* it does not look at what comes */
			pause_ms(1);
		if (how == 2) {
			pgr_close(pgr);
			pause_ms(10000);
		}
		raise(SIGKILL);
	}
	_exit(1);
}

static int deaths(struct pair *pair, void *arg)
{
	const int how = *(const int *)arg;
	pid_t pid;
	bool good;

	if (begin(pair, NULL, 0) != PAIR_PASSED)
		return PAIR_FAILED;
	pid = start(pair, how);
	if (how == 0) {
		waitpid(pid, NULL, 0);
		for (unsigned int i = 0; i < 200 && !seen->looked; i++)
			live(pgr, 10);
		good = seen->looked && !seen->wrong && seen->referred == 1;
	} else {
		good = wait_for(&seen->sent, 1);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	if (!good)
		return pair_report(pair, PAIR_FAILED, "looked %d, wrong %u, references %u, had back %u",
				   seen->looked, seen->wrong, seen->references, seen->sent);
	if (!wait_for(&seen->views, 0))
		return pair_report(pair, PAIR_FAILED, "%u views are left", seen->views);
	return end(pair, PAIR_PASSED);
}

/* ---- what is no message ---- */

static int file_of(uint64_t id, size_t bytes, int seals)
{
	const uint64_t head[2] = {UINT64_C(0x3179726f6d656d70), id};
	const int fd = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0 || pwrite(fd, head, sizeof(head), 0) < 0 ||
	    fcntl(fd, F_ADD_SEALS, seals) < 0)
		return -1;
	return fd;
}

static int wild(struct pair *pair, void *arg)
{
	enum { SIZE_STAYS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, ALL = SIZE_STAYS | 0x0010 };
	const int good = file_of(7, 65536, ALL), open_size = file_of(8, 65536, F_SEAL_SEAL | 0x0010),
		  writable = file_of(9, 65536, SIZE_STAYS), small = file_of(10, 4096, ALL);
	const struct {
		const char *what;
		uint64_t id, at;
		uint32_t fd, bytes;
		bool right;
	} cases[] = {
		{"as it should be", 7, 4096, (uint32_t)good, 61440, true},
		{"of no bytes", 7, 65536, (uint32_t)good, 0, true},
		{"another number", 11, 4096, (uint32_t)good, 100, false},
		{"beyond the end", 7, 4096, (uint32_t)good, 61441, false},
		{"from beyond the end", 7, 65544, (uint32_t)good, 1, false},
		{"a sum that wraps", 7, UINT64_MAX - 7, (uint32_t)good, 16, false},
		{"its head", 7, 0, (uint32_t)good, 100, false},
		{"not at a multiple of 8", 7, 4097, (uint32_t)good, 100, false},
		{"of a size that can change", 8, 4096, (uint32_t)open_size, 100, false},
		{"that others can write to", 9, 4096, (uint32_t)writable, 100, false},
		{"nothing but a head", 10, 4096, (uint32_t)small, 0, false},
		{"no descriptor", 11, 4096, 900, 100, false},
		{"an impossible descriptor", 11, 4096, UINT32_MAX, 100, false},
		{"a pipe", 11, 4096, 0, 100, false},
		{"a folder", 11, 4096, 1, 100, false},
		{"a file, which has no seals", 12, 4096, 1, 100, false},
	};
	const uint64_t file_head[2] = {UINT64_C(0x3179726f6d656d70), 12};
	FILE *file = tmpfile();
	int pipes[2], folder, result;
	struct pgr_header head;
	uint32_t before = 0;

	(void)arg;
	if (begin(pair, NULL, 0) != PAIR_PASSED)
		return PAIR_FAILED;
	folder = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (good < 0 || pipe(pipes) < 0 || folder < 0 || !file ||
	    fwrite(file_head, sizeof(file_head), 1, file) != 1 || fflush(file) != 0 ||
	    ftruncate(fileno(file), 65536) < 0)
		return pair_report(pair, PAIR_FAILED, "no files");
	result = pgr_call_and_wait(peer, GIVE, NULL, &(struct pgr_iov){&(uint32_t){64}, sizeof(uint32_t)}, 1,
				   NULL, 0, 0, NULL);
	if (result != PGR_OK)
		return pair_report(pair, PAIR_FAILED, "first contact: %s", pgr_code_name(result));
	head = (struct pgr_header){
		.type = PGR_CALL,
		.flags = PGR_OWN_ORDER | PGR_FLAG_REFERENCE,
		.version = PGR_VERSION,
		.client = peer->client,
		.sequence = peer->slots[0]->sequence,
		.incarnation = peer->incarnation,
		.procedure = ECHO,
		.message_bytes = PGR_REFERENCE_BYTES,
		.data_bytes = PGR_REFERENCE_BYTES,
		.packet_bytes = 4096,
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint32_t fd = strcmp(cases[i].what, "a pipe") == 0       ? (uint32_t)pipes[0]
				    : strcmp(cases[i].what, "a folder") == 0   ? (uint32_t)folder
				    : strncmp(cases[i].what, "a file", 6) == 0 ? (uint32_t)fileno(file)
									       : cases[i].fd;
		struct {
			uint64_t id, at;
			uint32_t fd, bytes;
		} reference = {cases[i].id, cases[i].at, fd, cases[i].bytes};
		const struct pgr_piece data = {&reference, sizeof(reference)};

		head.sequence++;
		pgr_send(pgr, &peer->to, &head, 0, &data, 1, false);
		live(pgr, 20);
		if (!pair_server_lives() || seen->executed != before + cases[i].right)
			return pair_report(pair, PAIR_FAILED, "a reference to memory %s: %s", cases[i].what,
					   cases[i].right ? "refused" : "taken");
		before = seen->executed;
	}
	*(peer->slots[0] ? &peer->slots[0]->sequence : &peer->sequence) = head.sequence;
	return end(pair, PAIR_PASSED);
}

int main(void)
{
	static const int how[] = {0, 1, 2};
	const struct {
		const char *what;
		pair_side *client;
		const void *arg;
	} tests[] = {
		{"arguments and results are read where they lie", echo, NULL},
		{"with a key they are copied, as always", echo, &keyed},
		{"a result stays until it has been read", lent, NULL},
		{"and is given back where nobody takes it", unwanted, NULL},
		{"what was given back is let go of", given_back, NULL},
		{"arguments outlive a caller that dies", deaths, &how[0]},
		{"a reader that dies gives a result back", deaths, &how[1]},
		{"and one that closes its endpoint", deaths, &how[2]},
		{"a reference to anything else is refused", wild, NULL},
	};
	const unsigned int count = sizeof(tests) / sizeof(tests[0]);
	int status = 0;

	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (seen == MAP_FAILED)
		return 1;
	printf("TAP version 13\n1..%u\n", count);
	for (unsigned int i = 0; i < count; i++) {
		int result;

		fflush(stdout);
		memset(seen, 0, sizeof(*seen));
		result = pair_run(false, SECONDS, serve, tests[i].client, (void *)(uintptr_t)tests[i].arg);
		if (result == PAIR_SKIPPED)
			printf("ok %u - %s # SKIP %s\n", i + 1, tests[i].what, pair_why());
		else
			printf("%s %u - %s\n", result == PAIR_PASSED ? "ok" : "not ok", i + 1, tests[i].what);
		if (result == PAIR_FAILED) {
			printf("# %s\n", pair_why());
			status = 1;
		}
	}
	return status;
}
