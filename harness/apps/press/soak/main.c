/* SPDX-License-Identifier: BSD-3-Clause */
/* The supervisor: load, kills, what is left when all is quiet, and the account of it, as JSON. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "measure/clock.h"
#include "press/soak/malformed_clients.h"
#include "press/soak/usage.h"
#include "traffic/payload.h"

#define TURN_NS         UINT64_C(1000000)
#define TICK_NS         UINT64_C(1000000)
#define CHECK_NS        UINT64_C(1000000000)
#define SETTLE_NS       UINT64_C(30000000000)
#define ASK_NS          UINT64_C(20000000)
#define BACK_NS         UINT64_C(200000000)
#define RUSH            2000u
#define RUSH_NS         UINT64_C(8000000)
#define MALFORMED_EVERY 250u
#define SKIPPED         77

struct soak {
	struct soak_plan plan;
	struct press_loop loop;
	struct press_files files;
	struct soak_restart_test restart_test;
	struct soak_client client;
	struct soak_malformed_clients malformed_clients;
	struct soak_rush rush;
	struct soak_usage usage;
	uint64_t begun_ns, tick_ns, check_ns, query_ns, random;
	/* requests at which the next node is killed, and the next bad client comes */
	uint64_t next_kill, next_malformed_client;
};

static uint64_t draw(struct soak *soak, uint64_t below)
{
	soak->random = drv_mix(soak->random, 1);
	return (soak->random >> 16) % below;
}

static bool is_over(const struct soak *soak)
{
	return soak->restart_test.trouble[0] || soak->restart_test.refusal[0];
}

static void on_there(void *arg, struct soak_site *site)
{
	soak_client_there(&((struct soak *)arg)->client, site);
}

/* Any node but the first, at whatever it is; it stays away for a moment. */
static void kill_some(struct soak *soak)
{
	const uint32_t first = (uint32_t)draw(soak, soak->plan.nodes - 1);

	for (uint32_t i = 0; i < soak->plan.nodes - 1; i++) {
		struct soak_site *site = &soak->restart_test.sites[2 + (first + i) % (soak->plan.nodes - 1)];

		if (site->state != SOAK_ABSENT && !site->killed) {
			soak_kill(site, drv_now_ns() + draw(soak, BACK_NS));
			return;
		}
	}
}

static void turn(void *arg)
{
	struct soak *soak = arg;
	uint64_t now_ns;

	press_loop_turn(&soak->loop, TURN_NS);
	now_ns = drv_now_ns();
	if (now_ns < soak->tick_ns)
		return;
	soak->tick_ns = now_ns + TICK_NS;
	soak_restart_test_tick(&soak->restart_test, now_ns);
	soak_malformed_clients_tick(&soak->malformed_clients, now_ns);
	if (now_ns < soak->check_ns)
		return;
	soak->check_ns = now_ns + CHECK_NS;
	soak_client_tick(&soak->client, now_ns);
	soak_usage_sample(&soak->usage, &soak->restart_test, soak->client.requests);
}

/* Nothing is under way any more, in any node: what is there now is there to stay. */
static bool is_quiet(const struct soak *soak)
{
	for (uint32_t i = 1; i <= soak->plan.nodes; i++) {
		const struct soak_site *site = &soak->restart_test.sites[i];
		const struct soak_report *report = &site->report;

		if (report->tasks || report->pins || report->rooms || report->in_flight || report->queues ||
		    report->load || report->connections != soak_client_connections(&soak->client, site))
			return false;
	}
	return true;
}

static void print_unrest(struct soak *soak)
{
	for (uint32_t i = 1; i <= soak->plan.nodes; i++) {
		const struct soak_site *site = &soak->restart_test.sites[i];
		const struct soak_report *report = &site->report;

		fprintf(stderr,
			"node %u: state %d, tasks %u, pins %u, rooms %u, lent %u, queues %u, load %u, "
			"connections %u "
			"of %u\n",
			i, site->state, report->tasks, report->pins, report->rooms, report->in_flight,
			report->queues, report->load, report->connections,
			soak_client_connections(&soak->client, site));
		for (uint32_t j = 1; j <= soak->plan.nodes; j++)
			fprintf(stderr, "  with %u: session %llu, up %llu, knows what it holds: %d\n", j,
				(unsigned long long)site->sessions[j],
				(unsigned long long)report->sessions[j],
				report->holds[j] == soak->restart_test.sites[j].report.holds[j]);
	}
}

/* Lets everything come to rest, and looks at what there is. */
static void settle(struct soak *soak, const char *when)
{
	const uint64_t until_ns = drv_now_ns() + SETTLE_NS;
	bool rests = false;

	while (!rests && !is_over(soak) && drv_now_ns() < until_ns) {
		turn(soak);
		if (soak->client.outstanding || soak_malformed_clients_here(&soak->malformed_clients) ||
		    drv_now_ns() < soak->query_ns)
			continue;
		rests = soak_restart_test_reported(&soak->restart_test) &&
			soak_restart_test_connected(&soak->restart_test) && is_quiet(soak);
		soak->query_ns = drv_now_ns() + ASK_NS;
		if (!rests)
			soak_restart_test_ask(&soak->restart_test);
	}
	if (is_over(soak))
		return;
	soak_usage_settled(&soak->usage, &soak->restart_test, when, soak->client.requests);
	for (uint32_t i = 1; i <= soak->plan.nodes; i++)
		soak->restart_test.sites[i].reported = false;
	if (rests)
		return;
	print_unrest(soak);
	soak_trouble(&soak->restart_test, "%s: something was still under way 30 s after the last request",
		     when);
}

/* Requests until there have been so many, with kills and bad clients spread over them. */
static void load(struct soak *soak, uint64_t requests)
{
	const uint64_t between = soak->plan.kills ? soak->plan.requests / (soak->plan.kills + 1) : 0;

	soak_client_go(&soak->client, requests);
	while (!is_over(soak) && soak->client.requests < requests) {
		turn(soak);
		if (soak->restart_test.kills < soak->plan.kills && soak->client.requests >= soak->next_kill) {
			kill_some(soak);
			/* at every fifth time the next one follows at once */
			if (soak->restart_test.kills % 5)
				soak->next_kill = (soak->restart_test.kills + 1) * between;
		}
		if (soak->client.requests >= soak->next_malformed_client) {
			soak->next_malformed_client += MALFORMED_EVERY;
			soak_malformed_clients_send(&soak->malformed_clients);
		}
	}
}

/* The last node comes back with disks so slow that its queue of reads gets full. */
static void rush(struct soak *soak)
{
	struct soak_site *site = &soak->restart_test.sites[soak->plan.nodes];

	site->service_ns = RUSH_NS;
	soak_kill(site, 0);
	settle(soak, "slow disks");
	if (is_over(soak))
		return;
	soak->rush = soak_rush(site, &soak->loop, &soak->files, RUSH, turn, soak);
	if (soak->rush.bad || !soak->rush.unavailable || !soak->rush.right)
		soak_trouble(&soak->restart_test,
			     "a full queue of reads: %llu answers, %llu times 503, %llu neither",
			     (unsigned long long)soak->rush.right, (unsigned long long)soak->rush.unavailable,
			     (unsigned long long)soak->rush.bad);
	settle(soak, "full queue");
}

static void run(struct soak *soak)
{
	const uint64_t requests = soak->plan.requests;

	settle(soak, "begin");
	load(soak, requests / 10);
	settle(soak, "a tenth");
	load(soak, requests / 2);
	settle(soak, "half");
	load(soak, requests);
	/* those that the last requests left no time for */
	while (!is_over(soak) && soak->restart_test.kills < soak->plan.kills)
		kill_some(soak), settle(soak, "late kill");
	settle(soak, "end");
	if (!is_over(soak))
		rush(soak);
}

/* ---- the account ---- */

static json_t *statuses(const uint64_t counts[SOAK_STATUS_MAX])
{
	json_t *object = json_object();
	char name[8];

	for (unsigned i = 0; i < SOAK_STATUS_MAX; i++)
		if (counts[i]) {
			snprintf(name, sizeof(name), "%u", i);
			json_object_set_new(object, name, json_integer((json_int_t)counts[i]));
		}
	return object;
}

static json_t *malformed_clients_account(const struct soak_malformed_clients *malformed_clients)
{
	json_t *object = json_object();

	for (int i = 0; i < SOAK_MALFORMED_CLIENT_KINDS; i++) {
		const struct soak_malformed_client_count *count = &malformed_clients->counts[i];

		json_object_set_new(object, soak_malformed_client_names[i],
				    json_pack("{s:I, s:I, s:I, s:I, s:o}", "came", (json_int_t)count->came,
					      "as_they_should", (json_int_t)count->good, "cut_by_a_kill",
					      (json_int_t)count->cut, "otherwise", (json_int_t)count->bad,
					      "statuses", statuses(count->statuses)));
	}
	return object;
}

static void print_account(struct soak *soak)
{
	const struct soak_client *client = &soak->client;
	const struct soak_restart_test *restart_test = &soak->restart_test;
	const bool refused = restart_test->refusal[0], failed = !refused && restart_test->trouble[0];
	json_t *account = json_pack(
		"{s:s, s:s, s:i, s:s, s:s, s:i, s:I, s:f, s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:I}", "layer",
		soak->plan.layer, "place", drv_place_names[soak->plan.place], "version",
		(int)soak->plan.version, "status",
		refused  ? "refused"
		: failed ? "failed"
			 : "held",
		"reason",
		refused  ? restart_test->refusal
		: failed ? restart_test->trouble
			 : "",
		"nodes", (int)soak->plan.nodes, "files", (json_int_t)soak->files.count, "seconds",
		(double)(drv_now_ns() - soak->begun_ns) / 1e9, "requests", (json_int_t)client->requests,
		"answers", (json_int_t)client->answers, "answered_bytes", (json_int_t)client->answered_bytes,
		"http_errors", statuses(client->statuses), "resets_by_a_kill",
		(json_int_t)client->resets_killed, "resets_by_others", (json_int_t)client->resets_others,
		"wrong_files", (json_int_t)client->mixed, "without_an_end", (json_int_t)client->outstanding);

	json_object_update_new(
		account,
		json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "kills",
			  (json_int_t)restart_test->kills, "restarts", (json_int_t)restart_test->restarts,
			  "deaths_noticed_by_layers", (json_int_t)restart_test->noticed,
			  "downs_of_the_living", (json_int_t)restart_test->false_downs, "crashes",
			  (json_int_t)restart_test->crashes, "bad_clients",
			  malformed_clients_account(&soak->malformed_clients), "full_queue",
			  json_pack("{s:I, s:I, s:I, s:I}", "asked", (json_int_t)soak->rush.asked, "answers",
				    (json_int_t)soak->rush.right, "503", (json_int_t)soak->rush.unavailable,
				    "otherwise", (json_int_t)soak->rush.bad),
			  "settled", json_incref(soak->usage.settled), "samples",
			  json_incref(soak->usage.samples)));
	json_dumpf(account, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
	putchar('\n');
	json_decref(account);
}

/* What must not have happened, whoever has noticed. */
static void judge(struct soak *soak)
{
	const struct soak_client *client = &soak->client;
	uint64_t errors = 0;

	for (unsigned i = 0; i < SOAK_STATUS_MAX; i++)
		errors += client->statuses[i];
	if (client->mixed)
		soak_trouble(&soak->restart_test, "%llu files were wrong or mixed",
			     (unsigned long long)client->mixed);
	if (errors != client->statuses[503])
		soak_trouble(&soak->restart_test, "good requests got other errors than 503");
	if (client->requests != client->answers + errors + client->resets_killed + client->resets_others +
					client->mixed + client->outstanding)
		soak_trouble(&soak->restart_test, "requests and their ends do not add up");
	if (soak->restart_test.false_downs)
		soak_trouble(&soak->restart_test,
			     "the layer said %llu times that a node was down which was not",
			     (unsigned long long)soak->restart_test.false_downs);
	soak_usage_judge(&soak->usage, &soak->restart_test);
}

static int supervise(struct soak *soak)
{
	const uint64_t between = soak->plan.requests / (soak->plan.kills + 1);

	soak->begun_ns = drv_now_ns();
	soak->random = drv_mix(soak->plan.seed, 2);
	soak->next_kill = between;
	soak->next_malformed_client = MALFORMED_EVERY;
	soak->restart_test.plan = &soak->plan;
	soak->restart_test.loop = soak->client.loop = soak->malformed_clients.loop = &soak->loop;
	soak->restart_test.there = on_there;
	soak->restart_test.arg = soak;
	soak->client.restart_test = soak->malformed_clients.restart_test = &soak->restart_test;
	soak->client.files = soak->malformed_clients.files = &soak->files;
	if (press_loop_start(&soak->loop) ||
	    press_files_make(&soak->files, PRESS_CLARKNET, soak->plan.working_bytes, soak->plan.seed) ||
	    soak_client_start(&soak->client) || soak_usage_start(&soak->usage)) {
		fprintf(stderr, "soak: no memory\n");
		return 1;
	}
	soak_malformed_clients_start(&soak->malformed_clients);
	if (!soak_restart_test_start(&soak->restart_test))
		run(soak);
	soak_malformed_clients_end(&soak->malformed_clients);
	soak_client_end(&soak->client);
	soak_restart_test_end(&soak->restart_test);
	if (!soak->restart_test.refusal[0])
		judge(soak);
	print_account(soak);
	soak_usage_end(&soak->usage);
	press_files_free(&soak->files);
	press_loop_end(&soak->loop);
	return soak->restart_test.refusal[0] ? SKIPPED : soak->restart_test.trouble[0] ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct soak *soak = calloc(1, sizeof(*soak));
	struct rlimit files;
	int status = 2;

	if (!soak || soak_plan_read(&soak->plan, argc, argv)) {
		free(soak);
		return status;
	}
	/* a rush takes a descriptor for each client, at both ends */
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	soak->restart_test.argv = argv;
	status = soak->plan.number ? soak_node(&soak->plan) : supervise(soak);
	free(soak);
	return status;
}
