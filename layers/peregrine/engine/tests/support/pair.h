/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two processes, on this host or on two hosts of their own: network namespaces without a name, with a veth
 * pair between them. Nothing is made in the namespace of the caller, and all vanishes with the processes.
 */
#ifndef PGR_TEST_PAIR_H
#define PGR_TEST_PAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "../../core/clients.h"
#include "../../core/peer.h"
#include "../../core/slot.h"
#include "../../core/work.h"

enum { PAIR_PASSED = 0, PAIR_FAILED = 1, PAIR_SKIPPED = 77 };

#define PAIR_CLIENT_ADDRESS "10.77.0.1"
#define PAIR_SERVER_ADDRESS "10.77.0.2"
/* where the kernel has IPv6 */
#define PAIR_CLIENT_ADDRESS_V6 "fd77::1"
#define PAIR_SERVER_ADDRESS_V6 "fd77::2"
#define PAIR_CLIENT_DEVICE     "pgr0"
#define PAIR_SERVER_DEVICE     "pgr1"

/* In memory of both. */
struct pair {
	_Atomic int stage;         /* how far setting up the hosts is */
	_Atomic int ready;         /* the server has left its address */
	_Atomic int stop;          /* the client has ended */
	unsigned int narrow_bytes; /* IP packets of more are lost between the hosts; 0: none are */
	uint8_t address[PGR_ADDRESS_BYTES];
	char why[512];             /* it failed, or was skipped */
	_Atomic uint32_t executed; /* calls, at the server */
};

/* One of the two; returns PAIR_PASSED, PAIR_FAILED or PAIR_SKIPPED, the latter two after pair_report. */
typedef int pair_side(struct pair *pair, void *arg);

/*
 * Runs both and waits; each is killed after so many seconds. Without a server the client runs alone: with
 * `hosts`, in a namespace where only lo is, and down. What is left to be said is in pair_why().
 */
int pair_run(bool hosts, unsigned int seconds, pair_side *server, pair_side *client, void *arg);
/* The same between two hosts with a bridge between them, over which no IP packet of more than `bytes` comes. */
int pair_run_narrow(unsigned int bytes, unsigned int seconds, pair_side *server, pair_side *client,
		    void *arg);
const char *pair_why(void);
/* Says why, the first time; returns `result`. */
int pair_report(struct pair *pair, int result, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Opens an endpoint of one of two hosts: device and address are the side's; the rest is the caller's. */
int pair_open(struct pair *pair, struct pgr_config config, bool client, struct pgr **pgr_out);
/* For the client. */
bool pair_server_lives(void);
bool pair_link(bool up); /* between two hosts; false: it could not be changed */
/* Runs `ip` with these arguments, given as one string; false: it failed. */
bool pair_ip(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* For the server: what it says is taken by pair_await. */
void pair_send(struct pair *pair, const struct pgr *pgr);
/* For the client: until the server is there; false: it has ended. */
bool pair_await(struct pair *pair);

#endif
