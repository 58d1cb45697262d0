/* SPDX-License-Identifier: BSD-3-Clause */
/* The supervisor's side of the nodes: it starts, kills and buries them, and passes their addresses on. */
#ifndef PRESS_SOAK_RESTART_TEST_H
#define PRESS_SOAK_RESTART_TEST_H

#include "press/http/loop.h"
#include "press/soak/plan.h"
#include "press/soak/control.h"

enum soak_state { SOAK_ABSENT, SOAK_STARTING, SOAK_THERE };

/* A node, as the supervisor sees it. */
struct soak_site {
	struct press_watch control, exit;
	struct soak_restart_test *restart_test;
	uint32_t number;
	enum soak_state state;
	/* counts its starts */
	uint32_t life;
	int pid;
	/* of this life: SIGKILL was sent, or it was asked to stop */
	bool killed, stopped;
	/* it listens, and `there` has not been told yet */
	bool fresh;
	uint16_t port;
	uint64_t restart_ns;
	/* how long its disk takes, from its next life on */
	uint64_t service_ns;
	/* by node: the session under way or held last, 0: none; and this node's address for it, once it has come */
	uint64_t sessions[PRESS_NODES_MAX];
	struct soak_control offers[PRESS_NODES_MAX];
	bool reported;
	struct soak_report report;
};

struct soak_restart_test {
	const struct soak_plan *plan;
	struct press_loop *loop;
	char **argv;
	/* from 1 on */
	struct soak_site sites[PRESS_NODES_MAX];
	/* a node listens; called by soak_restart_test_tick */
	void (*there)(void *arg, struct soak_site *site);
	void *arg;
	uint64_t session;
	/* what happened */
	uint64_t kills, restarts;
	/* layers noticed a death by themselves; they said so of a node that lived; nodes ended that nobody killed */
	uint64_t noticed, false_downs, crashes;
	/* the first thing that must not happen, or the reason why the layer cannot do this; "" */
	char trouble[640], refusal[640];
};

/* Starts all nodes. 0, or -1 with the trouble. */
int soak_restart_test_start(struct soak_restart_test *restart_test);
/* Starts again those whose time has come. Descriptors are made here, and not while the loop is in the middle of a turn. */
void soak_restart_test_tick(struct soak_restart_test *restart_test, uint64_t now_ns);
/* It comes back at `restart_ns`. */
void soak_kill(struct soak_site *site, uint64_t restart_ns);
/* Asks all for reports, which are there when soak_restart_test_reported says so. */
void soak_restart_test_ask(struct soak_restart_test *restart_test);
bool soak_restart_test_reported(const struct soak_restart_test *restart_test);
/* All are there, have a channel to each other, and know what each other holds. As of the last reports. */
bool soak_restart_test_connected(const struct soak_restart_test *restart_test);
/* Tells all to stop, and waits until they have; whoever has something left over has crashed. */
void soak_restart_test_end(struct soak_restart_test *restart_test);

void soak_trouble(struct soak_restart_test *restart_test, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
