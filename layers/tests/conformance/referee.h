/* SPDX-License-Identifier: BSD-3-Clause */
/* The referee: starts sets of ranks, relays between them, and keeps each test inside its deadline. */
#ifndef CADGE_REFEREE_H
#define CADGE_REFEREE_H

#include "conformance.h"

struct outcome {
	enum verdict verdict;
	char reason[REASON_BYTES];
	uint64_t took_ns;
};

struct set {
	const struct options *opt;
	char **argv;
	bool mpirun;
	bool hosts; /* each rank on an emulated host of its own: hosts.h */
	int listener;
	char socket_name[64];
	unsigned int ranks; /* 0: no set is running */
	pid_t launcher;     /* mpirun; 0 without */
	pid_t pids[RANKS_MAX];
	int socks[RANKS_MAX];
	char notes[RANKS_MAX][64];
	char unclean[REASON_BYTES]; /* how an earlier set ended, when not in good order; "" */
};

/* argv is what ranks are started with. 0 or -1 with a message on stderr. */
int set_init(struct set *set, const struct options *opt, char **argv, bool mpirun, bool hosts);
/* Runs test number `index` in a set of the right size; starts or restarts it as needed. */
void set_run(struct set *set, unsigned int index, struct outcome *out);
/* Ends a running set in good order. -1 and a reason: a rank did not end with 0. */
int set_quit(struct set *set, char *reason, size_t reason_bytes);
void set_kill(struct set *set);
void set_free(struct set *set);

#endif
