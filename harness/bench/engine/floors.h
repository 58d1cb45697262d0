/* SPDX-License-Identifier: BSD-3-Clause */
/* What the machine can do at best, for the engine's own program of readings (layers/peregrine/engine/bench). */
#ifndef ENGINE_FLOORS_H
#define ENGINE_FLOORS_H

#include "bench/bench.h"

/* rings.c: a message each way through a bare ring, touched */
void rings_server(void);
double rings_client(void);
void line_rings_server(void); /* of one line, not touched */
double line_rings_client(void);
/* copies.c: one copy of what is dirty in the other core's cache */
void copy_server(void);
double copy_client(void);
/* datagrams.c: the system calls that the wires udp and ip make, bare, or plain send and recv; a stream of
 * datagrams */
void datagrams_server(void);
double datagrams_client(void);
void datagram_stream_server(void);
double datagram_stream_client(void);
/* frames.c: raw frames through AF_XDP sockets */
void frames_server(void);
double frames_client(void);      /* one at a time */
double frames_deep_client(void); /* DEPTH outstanding; frames answered a second */
double frames_stream_client(void);
void frames_stream_server(void);
/* sizes.c; keep: the same as JSON, or NULL */
void print_sizes(unsigned int rounds, double tick_ns, FILE *keep);

#endif
