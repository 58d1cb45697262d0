/* SPDX-License-Identifier: BSD-3-Clause */
/* Bad clients beside the load: each comes to some node, does one thing, and sees what becomes of it. */
#ifndef PRESS_SOAK_MALFORMED_CLIENT_H
#define PRESS_SOAK_MALFORMED_CLIENT_H

#include "press/soak/client.h"

enum soak_malformed_client_kind {
	SOAK_PATH,        /* names with .. and the like */
	SOAK_LONG_NAME,   /* a name of 10,000 bytes */
	SOAK_LONG_HEADER, /* a header of 20,000 bytes */
	SOAK_MALFORMED,   /* bytes that are no HTTP, or nearly */
	SOAK_RANGE,       /* a part of a file */
	SOAK_METHOD,      /* what is neither GET nor HEAD */
	SOAK_VERSION,     /* HTTP of another version */
	SOAK_PIPELINED,   /* sixteen requests at once */
	SOAK_HALF_CLOSED, /* says all, and that it will say no more */
	SOAK_SLOW_WRITER, /* one byte at a time */
	SOAK_SLOW_READER, /* with a small window, a little at a time */
	SOAK_GONE_EARLY,  /* asks, and is gone */
	SOAK_GONE_MIDWAY, /* is gone in the middle of a file */
	SOAK_NEVER_READS, /* takes nothing of what it asked for */
	SOAK_NEVER_ENDS,  /* does not end its request */
	SOAK_MALFORMED_CLIENT_KINDS,
};

/* From here on they take ten seconds, and come when the plan is patient. */
#define SOAK_PATIENT SOAK_NEVER_READS

/* By kind: how many came; it went as it should; the node was killed meanwhile; anything else. */
struct soak_malformed_client_count {
	uint64_t came, good, cut, bad;
	uint64_t statuses[SOAK_STATUS_MAX];
};

struct soak_malformed_client {
	struct press_watch watch;
	struct soak_malformed_clients *all;
	struct soak_site *site;
	uint32_t life;
	enum soak_malformed_client_kind kind;
	bool used, ready;
	struct soak_answers answers;
	char *text;
	size_t bytes, sent;
	uint64_t begun_ns, step_ns;
};

#define SOAK_MALFORMED_CLIENTS_MAX 32u

struct soak_malformed_clients {
	struct soak_restart_test *restart_test;
	struct press_loop *loop;
	const struct press_files *files;
	uint32_t largest, next;
	uint64_t began;
	struct soak_malformed_client malformed_clients[SOAK_MALFORMED_CLIENTS_MAX];
	struct soak_malformed_client_count counts[SOAK_MALFORMED_CLIENT_KINDS];
};

extern const char *const soak_malformed_client_names[];

void soak_malformed_clients_start(struct soak_malformed_clients *malformed_clients);
/* One more, if there is a node and room for it. */
void soak_malformed_clients_send(struct soak_malformed_clients *malformed_clients);
void soak_malformed_clients_tick(struct soak_malformed_clients *malformed_clients, uint64_t now_ns);
uint32_t soak_malformed_clients_here(const struct soak_malformed_clients *malformed_clients);
void soak_malformed_clients_end(struct soak_malformed_clients *malformed_clients);

/* A full queue of helpers: more clients at once than it takes, each of whom wants another file. */
struct soak_rush {
	uint64_t asked, right, unavailable, bad;
};

/* Until all were answered, or 60 s. `turn` keeps everything else going. */
struct soak_rush soak_rush(struct soak_site *site, struct press_loop *loop, const struct press_files *files,
			   uint32_t clients, void (*turn)(void *arg), void *arg);

#endif
