/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a node knows of all nodes: which files each of them holds, from their caching messages, and how busy each one is.
 * And what follows from it: who serves a request. The rule is that of PRESS, a locality-conscious server without a
 * distributor in front (Bianchini and Carrera): what is held here is served here; what nobody holds is read here; anything
 * else is served by the least busy node that holds it, unless that one is overloaded: then this node reads the file too,
 * so that there is one more copy of it.
 */
#ifndef PRESS_DIRECTORY_H
#define PRESS_DIRECTORY_H

#include <stdbool.h>
#include <stdint.h>

#define PRESS_NODES_MAX 64u

/*
 * A node is overloaded with more open requests than this, if ours has fewer than half as many. From the published policy
 * only the rule is known; the number is ours.
 */
#define PRESS_OVERLOAD 32u

struct press_directory {
	uint32_t files, self;
	/* by file: bit n stands for node n, this one's own among them */
	uint64_t *holders;
	/* by node: open requests, as far as it is known */
	uint32_t load[PRESS_NODES_MAX];
};

/* 0, or -1 when memory is short. */
int press_directory_start(struct press_directory *directory, uint32_t files, uint32_t self);
void press_directory_free(struct press_directory *directory);

static inline void press_directory_note(struct press_directory *directory, uint32_t file, uint32_t node,
					bool held)
{
	const uint64_t bit = UINT64_C(1) << node;

	directory->holders[file] = held ? directory->holders[file] | bit : directory->holders[file] & ~bit;
}

/* The node is gone, and with it what it held. */
void press_directory_forget(struct press_directory *directory, uint32_t node);

/* The node that serves a request for this file. */
uint32_t press_directory_choose(const struct press_directory *directory, uint32_t file);

#endif
