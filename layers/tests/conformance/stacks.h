/* SPDX-License-Identifier: BSD-3-Clause */
/* What the threads of ranks are doing when a test does not end. A rank answers SIGQUIT with its stack, in a packet. */
#ifndef CADGE_STACKS_H
#define CADGE_STACKS_H

#include "referee.h"

/* In a rank: from now on each of its threads answers over this socket. */
void stacks_answer(int sock);
/* In the referee: asks all threads of all ranks, and prints what they answer on stderr. */
void stacks_print(struct set *set, const char *test);

#endif
