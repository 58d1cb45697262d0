/* SPDX-License-Identifier: BSD-3-Clause */
/* See echo.h. */
#include "echo.h"

#include <sched.h>
#include <stdlib.h>

#define WAIT_NS UINT64_C(20000000)

/* Lets time pass. */
static void idle(struct pgr *pgr, bool block)
{
	if (block)
		pgr_wait(pgr, WAIT_NS);
	else
		sched_yield(); /* the other side may have no core of its own */
}

/* ---- server ---- */

/* A reply whose buffers are lent, in a list: nobody may ask for them any more when the client has gone. */
struct reply {
	struct server *server;
	struct reply *next, **back;
	uint8_t data[];
};

struct server {
	struct pair *pair;
	struct reply *lent;
	int wrong, odd;
};

static void on_sent(void *arg, int code)
{
	struct reply *reply = arg;

	(void)code;
	*reply->back = reply->next;
	if (reply->next)
		reply->next->back = reply->back;
	free(reply);
}

static void on_call(void *arg, const struct pgr_request *request)
{
	struct server *server = arg;
	const uint8_t *args = request->args;
	struct reply *reply = malloc(sizeof(*reply) + request->args_bytes);
	struct pgr_iov iov[2];
	int code;

	server->pair->executed++;
	server->odd += (uintptr_t)args % 8 != 0;
	for (size_t i = 0; i < request->args_bytes; i++)
		reply->data[i] = (uint8_t)~args[i];
	*reply = (struct reply){server, server->lent, &server->lent};
	if (reply->next)
		reply->next->back = &reply->next;
	server->lent = reply;
	iov[0] = (struct pgr_iov){reply->data, request->args_bytes / 3};
	iov[1] = (struct pgr_iov){reply->data + iov[0].bytes, request->args_bytes - iov[0].bytes};
	code = pgr_reply(request->pgr, &request->token, iov, 2, 0, on_sent, reply);
	if (code != PGR_QUEUED)
		on_sent(reply, code);
	server->wrong += code < 0 || code == PGR_BUSY;
}

int echo_serve(struct pair *pair, struct pgr *pgr, bool block)
{
	struct server server = {.pair = pair};

	if (pgr_serve(pgr, ECHO_PROCEDURE, NULL, on_call, &server) != PGR_OK)
		return pair_report(pair, PAIR_FAILED, "the server could not serve");
	pair_send(pair, pgr);
	while (!pair->stop)
		if (pgr_poll(pgr) == 0)
			idle(pgr, block);
	pgr_close(pgr);
	while (server.lent)
		on_sent(server.lent, PGR_E_CLOSED);
	if (server.odd)
		return pair_report(pair, PAIR_FAILED, "%d times arguments do not begin at a multiple of 8",
				   server.odd);
	return server.wrong
		       ? pair_report(pair, PAIR_FAILED, "the server failed to reply %d times", server.wrong)
		       : PAIR_PASSED;
}

/* ---- client ---- */

struct run {
	struct pair *pair;
	const struct echo_calls *calls;
	uint32_t begun, ended;
	bool failed;
};

struct call {
	struct run *run;
	uint32_t id, bytes;
	uint8_t *in, *out;
};

static void on_done(void *arg, int code, const void *result, size_t result_bytes)
{
	struct call *call = arg;
	struct run *run = call->run;
	uint32_t i = 0;

	(void)result;
	run->ended++;
	if (code == PGR_OK && result_bytes == call->bytes)
		while (i < call->bytes && (call->out[i] ^ call->in[i]) == 0xff)
			i++;
	if (code != PGR_OK || result_bytes != call->bytes || i < call->bytes) {
		run->failed = true;
		pair_report(run->pair, 0, "%s: call %u of %u bytes: %s, %zu bytes, right up to byte %u",
			    run->calls->what, call->id, call->bytes, pgr_code_name(code), result_bytes, i);
	}
	free(call->in);
	free(call->out);
	free(call);
}

static void begin(struct run *run, struct pgr_peer *peer)
{
	struct call *call = calloc(1, sizeof(*call));
	struct pgr_iov in[2], out[2];
	int code;

	call->run = run;
	call->id = run->begun++;
	call->bytes = run->calls->sizes[call->id % run->calls->sizes_count];
	call->in = malloc(call->bytes + 1);
	call->out = calloc(1, call->bytes + 1);
	for (uint32_t i = 0; i < call->bytes; i++)
		call->in[i] = (uint8_t)(i * 7 + (i >> 8) + call->id * 31);
	in[0] = (struct pgr_iov){call->in, call->bytes / 2};
	in[1] = (struct pgr_iov){call->in + call->bytes / 2, call->bytes - call->bytes / 2};
	out[0] = (struct pgr_iov){call->out, call->bytes / 5};
	out[1] = (struct pgr_iov){call->out + call->bytes / 5, call->bytes - call->bytes / 5};
	code = pgr_call(peer, ECHO_PROCEDURE, NULL, in, 2, out, 2,
			run->begun - run->ended < run->calls->outstanding ? PGR_MORE : 0, on_done, call);
	if (code == PGR_QUEUED)
		return;
	on_done(call, code < 0 ? code : PGR_E_ARGUMENT, NULL, 0);
}

int echo_call(struct pair *pair, struct pgr *pgr, struct pgr_peer *peer, bool block,
	      const struct echo_calls *calls)
{
	struct run run = {.pair = pair, .calls = calls};

	while (run.ended < calls->calls && !run.failed) {
		while (run.begun < calls->calls && run.begun - run.ended < calls->outstanding && !run.failed)
			begin(&run, peer);
		pgr_flush(pgr);
		if (pgr_poll(pgr) == 0)
			idle(pgr, block);
	}
	return run.failed ? PAIR_FAILED : PAIR_PASSED;
}
