/* SPDX-License-Identifier: BSD-3-Clause */
/* What UCX says of an endpoint: the lanes that it uses, and the lengths at which it changes its protocol. */
#ifndef CADGE_WIRE_UCX_PATH_H
#define CADGE_WIRE_UCX_PATH_H

#include "wire/ucx/ucx.h"

struct cadge_ucx_path {
	bool memory, network;
	bool foreign; /* a network device that was not asked for */
	bool other;   /* a transport other than TCP */
	bool atomics; /* a lane is for atomic operations: a device carries them out, and not the peer's library */
	/*
	 * Puts and gets of memory that is not mapped are copied by the kernel (CMA), without the peer's library: such a
	 * lane is there, and a library that uses it so. Those that print a line in place of tables send messages instead.
	 */
	bool copies_between;
	char device[64];
	char lanes[256]; /* "am: posix/memory; rma_bw: cma/memory" */
	char sends[256]; /* "am_send: 0..<egr/short>..93..<egr/bcopy>..8256..<rndv>..(inf)", or "" */
	uint64_t rendezvous_bytes; /* the shortest active message by rendezvous; 0: not told, none, or all */
	bool all_rendezvous;       /* however short */
};

/* Reads an endpoint of which the device `asked` was asked for. DONE or E_MEMORY. */
int cadge_ucx_path_of(ucp_ep_h ep, const char *asked, struct cadge_ucx_path *path);
/* Reads what ucp_ep_print_info wrote; the text is changed. */
void cadge_ucx_path_read(char *text, const char *asked, struct cadge_ucx_path *path);

#endif
