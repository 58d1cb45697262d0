/* SPDX-License-Identifier: BSD-3-Clause */
/* The endpoint calls, and the server that answers is played by hand. */
#ifndef PGR_TESTS_CALLER_H
#define PGR_TESTS_CALLER_H

#include "hand.h"

/* Counts in t.done, and keeps code and result in `t`. */
void on_done(void *arg, int code, const void *result, size_t result_bytes);
/* Calls ECHO at FAR with `bytes` of the pattern; the result goes to t.out if there are out_bytes, else to t.result. */
void call_typed(uint32_t bytes, size_t out_bytes, const struct pgr_signature *with);
void call(uint32_t bytes, size_t out_bytes);
/* Headers that answer the packet that was sent last: any; the first packet of a result; a challenge. */
struct pgr_header answer_of(enum pgr_type type);
struct pgr_header result_of(uint32_t bytes);
struct pgr_header challenge_of(uint32_t claimed, uint64_t cookie);
/* The client learns who its server is, by a short call; then all is quiet, acks included. */
void learn_server(void);

#endif
