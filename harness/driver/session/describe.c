/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens a layer in every place and wait mode, each in a process of its own, and prints what it grants. */
#include "session/describe.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/engine.h"
#include "engine/facts.h"
#include "base/text.h"
#include "base/version.h"

#define TRIAL_NS         UINT64_C(10000000000)
#define ANSWER_BYTES_MAX (1u << 20)

/* What a child finds out: the table alone, or one opening. */
struct trial {
	const struct drv_describe_args *args;
	int place, wait; /* -1: the table */
};

static json_t *failure_json(const struct drv_fail *fail)
{
	return json_pack("{s:s, s:o}", "reason_code", drv_reason_name(fail->reason), "reason",
			 drv_json_text(fail->text));
}

static json_t *table_json(const struct cadge_layer *layer)
{
	return json_pack("{s:o, s:o, s:o, s:i, s:o, s:o, s:o}", "name", drv_json_text(layer->name), "style",
			 drv_json_text(layer->style), "substrate", drv_json_text(layer->substrate), "abi",
			 (int)layer->abi, "caps", drv_facts_caps(layer->caps), "options",
			 drv_facts_options(layer), "library", drv_facts_library(layer));
}

static json_t *opened_json(struct drv_engine *engine)
{
	struct cadge_limits limits = {.bytes = sizeof(limits)};
	const struct cadge_layer *layer = engine->layer;

	layer->limits(engine->ctx, &limits);
	/* cadge: another rpc, that of the layer: native or emulated */
	return json_pack("{s:o, s:o, s:o, s:o, s:s, s:o}", "caps", drv_facts_caps(limits.caps & layer->caps),
			 "limits", drv_facts_limits(&limits), "traits", drv_facts_traits(layer, engine->ctx),
			 "semantics", drv_facts_semantics(layer, engine->ctx), "rpc",
			 limits.caps & CADGE_CAP_RPC ? "native" : "emulated", "library",
			 drv_facts_library(layer));
}

static json_t *try_it(const struct trial *trial, const struct cadge_layer *layer)
{
	struct drv_endpoint endpoint = {.peers_count = 1};
	struct drv_launch launch = {.place = (enum drv_place)trial->place,
				    .wait = (enum drv_wait)trial->wait,
				    .endpoints = &endpoint,
				    .endpoints_count = 1};
	/* a small launch: what is asked for must not be what makes it fail */
	struct drv_engine engine = {.launch = &launch,
				    .loaded.layer = layer,
				    .layer = layer,
				    .needs = {.message_bytes = 32, .depth = 1},
				    .block = trial->wait == 1};
	struct drv_fail fail;
	json_t *answer;

	endpoint.device = (char *)(uintptr_t)trial->args->device;
	endpoint.address = (char *)(uintptr_t)trial->args->address;
	if (drv_negotiate_launch(launch.place, launch.wait, layer->caps, &fail) ||
	    drv_engine_open(&engine, &fail))
		return failure_json(&fail);
	answer = opened_json(&engine);
	drv_engine_close(&engine);
	return answer;
}

static _Noreturn void be_child(const struct trial *trial, int out)
{
	struct drv_loaded loaded;
	struct drv_fail fail;
	json_t *answer;
	char *text;

	/* what a library logs is no part of the answer */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		_exit(70);
	if (drv_loader_load(trial->args->modules, trial->args->layer, NULL, &loaded, &fail))
		answer = failure_json(&fail);
	else if (trial->place < 0)
		answer = table_json(loaded.layer);
	else
		answer = try_it(trial, loaded.layer);
	text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;
	for (size_t done = 0, bytes = text ? strlen(text) : 0; done < bytes;) {
		const ssize_t count = write(out, text + done, bytes - done);

		if (count <= 0)
			_exit(70);
		done += (size_t)count;
	}
	/* no exit handlers: a library's may hang, and the answer is out */
	_exit(0);
}

/* Reads until end of file or the time limit. 0 and a NUL-terminated text, or -1. */
static int read_answer(int in, char *text)
{
	const uint64_t until_ns = drv_now_ns() + TRIAL_NS;
	size_t used = 0;

	for (;;) {
		struct pollfd entry = {.fd = in, .events = POLLIN};
		const uint64_t now_ns = drv_now_ns();
		ssize_t count;

		if (now_ns >= until_ns || used + 1 >= ANSWER_BYTES_MAX)
			return -1;
		if (poll(&entry, 1, (int)((until_ns - now_ns) / 1000000) + 1) <= 0)
			continue;
		count = read(in, text + used, ANSWER_BYTES_MAX - 1 - used);
		if (count < 0)
			return -1;
		text[used += (size_t)count] = '\0';
		if (count == 0)
			return 0;
	}
}

/* Runs one trial in a child. Always an object, or NULL when memory is short. */
static json_t *in_child(const struct trial *trial)
{
	char *text = calloc(1, ANSWER_BYTES_MAX);
	struct drv_fail fail = {0};
	json_t *answer = NULL;
	int ends[2], state = 0;
	bool late;
	pid_t child;

	if (!text || pipe(ends)) {
		free(text);
		return NULL;
	}
	child = fork();
	if (child == 0) {
		close(ends[0]);
		be_child(trial, ends[1]);
	}
	close(ends[1]);
	late = child < 0 || read_answer(ends[0], text) != 0;
	close(ends[0]);
	if (child > 0) {
		if (late)
			kill(child, SIGKILL);
		while (waitpid(child, &state, 0) < 0 && errno == EINTR)
			;
	}
	if (child < 0)
		drv_fail_set(&fail, DRV_SYSTEM, "cannot start a process to open it in: %s", strerror(errno));
	else if (late)
		drv_fail_set(&fail, DRV_DEADLINE, "the library did not return within %d s",
			     (int)(TRIAL_NS / 1000000000));
	else if (WIFSIGNALED(state))
		drv_fail_set(&fail, DRV_LIBRARY, "the library crashed: %s", strsignal(WTERMSIG(state)));
	else
		answer = json_loads(text, 0, NULL);
	if (!answer) {
		if (!fail.reason)
			drv_fail_set(&fail, DRV_LIBRARY, "the library ended the process with status %d",
				     WEXITSTATUS(state));
		answer = failure_json(&fail);
	}
	free(text);
	return answer;
}

int drv_describe(const struct drv_describe_args *args)
{
	struct trial trial = {.args = args, .place = -1, .wait = -1};
	json_t *document = json_object(), *opens = json_array(), *table = in_child(&trial);
	const bool loads = json_object_get(table, "name") != NULL;
	int status = loads ? 0 : 3;
	char *text;

	for (trial.place = 0; loads && trial.place < 3; trial.place++)
		for (trial.wait = 0; trial.wait < 2; trial.wait++) {
			json_t *row = in_child(&trial);
			const bool opened = row && !json_object_get(row, "reason_code");

			if (!row || drv_json_set(row, "place", json_string(drv_place_names[trial.place])) ||
			    drv_json_set(row, "wait", json_string(drv_wait_names[trial.wait])) ||
			    drv_json_set(row, "opens", json_boolean(opened)) ||
			    json_array_append_new(opens, row))
				status = 70;
		}
	if (drv_json_set(document, "schema", json_string("cadge.describe/1")) ||
	    drv_json_set(document, "layer", drv_json_text(args->layer)) ||
	    drv_json_set(document, "table", loads ? json_incref(table) : json_null()) ||
	    drv_json_set(document, "reason",
			 loads ? json_null() : json_incref(json_object_get(table, "reason"))) ||
	    drv_json_set(document, "reason_code",
			 loads ? json_null() : json_incref(json_object_get(table, "reason_code"))) ||
	    drv_json_set(document, "opens", opens))
		status = 70;
	json_decref(table);
	text = status == 70 ? NULL : json_dumps(document, JSON_INDENT(1));
	json_decref(document);
	if (!text || puts(text) == EOF || fflush(stdout) == EOF) {
		fprintf(stderr, "cadge-driver: the description cannot be written\n");
		status = 70;
	}
	free(text);
	return status;
}
