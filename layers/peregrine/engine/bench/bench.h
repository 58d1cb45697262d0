/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Readings of the engine, and of what it is compared with. A reading is taken by two processes, pinned to two
 * cores, on one host or on two (tests/support/pair.h); the client returns its value.
 */
#ifndef PGR_BENCH_H
#define PGR_BENCH_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <x86intrin.h>

#include "../core/engine.h"
#include "../tests/support/pair.h"

#define CALLS      60000u
#define WARM_UP    1000u
#define LINES      128u /* pairs of lines that a floor goes through */
#define BIG_BYTES  (4u << 20)
#define BIG_ROUNDS 60u
#define DEPTH      64u
#define LONG_BYTES (16u << 20) /* of a call beside which others go on */
#define LONG_CALLS 64u

struct reading {
	const char *name, *unit; /* "ns": the value is in ticks of the time stamp counter */
	void (*server)(void);
	double (*client)(void);
	const char *floor;  /* name of the reading that it is divided by; NULL: it is a floor itself */
	const char *wire;   /* of the engine */
	const char *attach; /* xdp */
	size_t bytes;       /* of arguments; of arguments and result, where both are touched */
	size_t part;        /* bare ring: bytes that are shown at once */
	bool hosts;         /* two, with a link between them */
	bool pause;         /* while it spins */
	bool pull;          /* by process_vm_readv, instead of memcpy */
	bool connected;     /* send and recv on connected sockets, instead of sendmsg and recvmsg */
	bool lossy;         /* one packet in a hundred, at both ends */
	bool in_place;      /* touched: messages lie in memory of pgr_alloc */
	bool again;         /* touched: arguments alone, written once and read each time */
	bool touch;         /* frames: written before they are sent, read where they arrive */
	const char *
		run; /* name of the reading before it whose run gave this one too; it has no ends of its own */
	unsigned int more; /* which of that run's further values this is */
};
extern const struct reading *reading; /* which is taken now */

/* main.c: takes one now; NAN, and why, where this machine cannot; ends the program where it fails. */
double take_reading(const struct reading *one, double tick_ns, char *why, size_t why_bytes);
/* A list of values for people and programs that read JSON. */
void print_values(FILE *to, const char *name, const double *from, unsigned int count);
#define ROUNDS_MAX 64u
/* Median and extremes. */
struct summary {
	double median, low, high;
};
struct summary sum_up(const double *from, unsigned int count);
/* One a round; NULL: it was not taken. */
const double *values_of(const char *name, unsigned int rounds);

/* readings.c of the program: what it takes; what several readings say together; what else it can do, up to one without a name. */
extern const struct reading readings[];
extern const size_t readings_count;
void print_more(FILE *to, unsigned int rounds, bool json);
struct mode {
	const char *option;
	void (*run)(unsigned int rounds, double tick_ns, FILE *keep);
	bool keeps;
};
extern const struct mode modes[];
/* memory.c */
void print_memory(unsigned int rounds, double tick_ns, FILE *keep);

#define MORE_MAX 2u

/* Between the two processes of one reading. */
struct shared {
	_Alignas(64) _Atomic int ready; /* the server is */
	_Atomic int *stop;              /* the client has ended */
	uint8_t address[PGR_ADDRESS_BYTES];
	struct sockaddr_in name;
	pid_t server;      /* copies: where to read from */
	uint64_t sum;      /* of all that was read, so that it is read */
	uint8_t mac[2][6]; /* of client and server */
	_Atomic int macs;
	double value, more[MORE_MAX];
	_Alignas(4096) struct line {
		_Alignas(64) _Atomic uint64_t word;
	} lines[2 * LINES];
	_Alignas(4096) uint8_t big[BIG_BYTES];
};
extern struct shared *shared;

/* Readings within a reading, in ticks or ns; as many as CALLS. */
extern uint32_t samples[CALLS];
double p50(uint32_t count);
int by_value(const void *a, const void *b);
uint64_t now_ns(void);

/*
 * Touched: before each message its sender writes every byte anew, and its receiver reads every byte, inside the time. How
 * many there are, by their size; the sum of a message's words.
 */
unsigned int touched_rounds(void);
uint64_t sum_of(const uint8_t *at, size_t bytes);

/* lines.c: two lines of cache */
void lines_server(void);
double lines_client(void);
/* calls.c: the engine */
void calls_server(void);
double calls_client(void); /* one at a time */
void touched_server(void);
double touched_client(void);        /* one at a time, arguments and result touched */
double calls_deep_client(void);     /* null calls a second, DEPTH outstanding */
double calls_big_client(void);      /* arguments of BIG_BYTES */
double calls_tail_client(void);     /* p99.9 of calls with DEPTH outstanding, in time-outs */
double calls_time_out_client(void); /* the retransmission time-out then in force, us */
double calls_long_client(void);     /* arguments of LONG_BYTES, one at a time */
double
calls_beside_client(void); /* null calls beside those, on one binding; then their p99, the long ones' GB/s */

#endif
