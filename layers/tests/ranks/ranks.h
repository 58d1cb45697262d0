/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests whose parts run in processes of their own, the *ranks*, two or three, within a host and between emulated hosts: one
 * that dies or fails spoils no other test. Ranks speak to each other over sockets beside what is tested. A program
 * is a list of tests and a call of ranks_run.
 */
#ifndef CADGE_TESTS_RANKS_H
#define CADGE_TESTS_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cadge/layer.h"

enum { RANKS_MAX = 3 };

struct rank {
	unsigned int number, count;
	enum cadge_place place;
	enum cadge_wait_mode wait_mode;
	const char *device, *address;
	int to[RANKS_MAX]; /* -1: itself */
	int verdict;       /* where the reason of a failure goes */
};

struct rank_test {
	const char *name;
	void (*run)(struct rank *rank); /* of every rank; returns where all is well */
	unsigned int ranks;
	unsigned int dies; /* bits of the ranks that others kill */
	bool block;        /* in block mode */
};

/* ---- what a rank does (rank.c) ---- */

/* Ends the rank, and with it the test: failed, or not possible here. */
__attribute__((noreturn, format(printf, 2, 3))) void rank_fail(const struct rank *rank, const char *format,
							       ...);
__attribute__((noreturn, format(printf, 2, 3))) void rank_skip(const struct rank *rank, const char *format,
							       ...);
#define EXPECT(rank, condition, ...) ((condition) ? (void)0 : rank_fail(rank, __VA_ARGS__))

/* One message beside the wire; hear returns its length, and fails where the other has ended. */
void say(const struct rank *rank, unsigned int to, const void *data, size_t bytes);
size_t hear(const struct rank *rank, unsigned int from, void *data, size_t room_bytes);
/* Hears and drops one message if there is one. */
bool hears(const struct rank *rank, unsigned int from);
/* All of these ranks are here. */
void meet(const struct rank *rank, unsigned int first, unsigned int count);
/*
 * What a layer, a style or a wire is opened with: where this rank is, all ranks as peers, messages and regions of a MiB. `error`
 * is one for all, empty now.
 */
struct cadge_open_args rank_open_args(const struct rank *rank, uint32_t depth_max);
uint64_t clock_ns(void);
/* Sleeps. */
void rest_ms(unsigned int ms);
/* After a look that found so much: where that is nothing, another rank may have no core of its own. */
void give_way(int found);
/* Ends this rank by SIGKILL, in front of `witness`, who waits for that in rank_sees_death. */
__attribute__((noreturn)) void rank_dies(const struct rank *rank, unsigned int witness);
void rank_sees_death(const struct rank *rank, unsigned int of);
/* Content that differs by sender, number and place. */
void fill(uint8_t *data, size_t bytes, uint32_t seed);
bool is_filled(const void *data, size_t bytes, uint32_t seed);

/* ---- the program (run.c) ---- */

/* Set by main: mpirun starts the ranks, within a host alone; tests in which a rank dies or sleeps are skipped. */
extern bool ranks_by_mpirun;

/*
 * Runs them all at each place, as TAP; RANKS_ONLY in the environment names one. Returns the exit status.
 *
 * With RANKS_DEVICES and RANKS_ADDRESSES ("va,vb" and "10.7.0.1,10.7.0.2": of rank 0, of rank 1, and again) they run between
 * these interfaces alone, which are there already; RANKS_SETTING ("provider=verbs;ofi_rxm") is then a setting of open, and
 * RANKS_DEADLINE_S of each test.
 */
int ranks_run(int argc, char **argv, const struct rank_test *tests, size_t count);
/*
 * The same for what stands on the wire, whose own tests run at both places: with CADGE_TEST_SHARE in the environment (the
 * short form of the tests) each test runs at one place, in turn.
 */
int ranks_run_styles(int argc, char **argv, const struct rank_test *tests, size_t count);

/* The tests of what the program is linked with, a style or the wire itself: tests/styles/<style>.c, tests/wire/list.c. */
int on_wire_conformance(int argc, char **argv);

#endif
