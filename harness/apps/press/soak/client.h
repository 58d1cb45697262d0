/* SPDX-License-Identifier: BSD-3-Clause */
/* The good clients: a closed loop over connections to all nodes. And what every client makes of what it is answered. */
#ifndef PRESS_SOAK_CLIENT_H
#define PRESS_SOAK_CLIENT_H

#include <llhttp.h>

#include "press/content/popularity.h"
#include "press/soak/restart_test.h"

#define SOAK_STATUS_MAX 600u

/* Answers on one connection, in a row. */
struct soak_answers {
	llhttp_t llhttp;
	const struct press_files *files;
	/* asked for next; then every further one, `step` on */
	uint32_t file, step;
	/* of the answer that is coming in */
	uint32_t bytes;
	bool wrong;
	/* all that have come: files, right ones; wrong or mixed ones; errors; the last one's status */
	uint32_t right, mixed, errors;
	unsigned status;
};

void soak_answers_start(struct soak_answers *answers, const struct press_files *files, uint32_t file,
			uint32_t step);
/*
 * Takes what has come, at most `most` bytes. 1: all of that; 0: nothing is there; -1: the connection has ended, by an end or
 * a reset, or that was no HTTP, which counts as mixed.
 */
int soak_answers_take(struct soak_answers *answers, int fd, size_t most);
/* Begins to connect to a node. A descriptor that becomes writable, or -1. */
int soak_connect(uint16_t port, int receive_bytes);

enum soak_visit_state { SOAK_AWAY, SOAK_CONNECTING, SOAK_IDLE, SOAK_ASKED };

struct soak_visit {
	struct press_watch watch;
	struct soak_client *client;
	struct soak_site *site;
	uint32_t life;
	enum soak_visit_state state;
	struct soak_answers answers;
	uint64_t asked_ns;
};

struct soak_client {
	struct soak_restart_test *restart_test;
	struct press_loop *loop;
	const struct press_files *files;
	struct press_popularity popularity;
	uint32_t visits_count;
	struct soak_visit *visits;
	/* requests may be sent, until so many have been */
	uint64_t may;
	uint64_t requests, answers, answered_bytes, resets_killed, resets_others, mixed, outstanding;
	uint64_t statuses[SOAK_STATUS_MAX];
};

/* 0, or -1: no memory. */
int soak_client_start(struct soak_client *client);
void soak_client_end(struct soak_client *client);
/* A node listens: its connections are made. */
void soak_client_there(struct soak_client *client, struct soak_site *site);
/* Lets it send until `may` requests have been sent. */
void soak_client_go(struct soak_client *client, uint64_t may);
/* Looks whether a request has had no end for longer than any may. */
void soak_client_tick(struct soak_client *client, uint64_t now_ns);
/* How many connections a node has from here. */
uint32_t soak_client_connections(const struct soak_client *client, const struct soak_site *site);

#endif
