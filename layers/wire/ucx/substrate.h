/* SPDX-License-Identifier: BSD-3-Clause */
/* UCX under a style. */
#ifndef CADGE_WIRE_UCX_SUBSTRATE_H
#define CADGE_WIRE_UCX_SUBSTRATE_H

#include "wire/style.h"
#include "wire/ucx/ucx.h"

#define CADGE_SUBSTRATE            "ucx"
#define CADGE_SUBSTRATE_CAPS(caps) ((caps) | CADGE_CAP_OWN_THREADS)
#define CADGE_SUBSTRATE_SLOTS      CADGE_STYLE_SLOTS
/* Copies: into shared memory, or the socket's buffers; out of them where a packet may be kept: it is UCX's copy, where it is short. */
#define CADGE_SUBSTRATE_PACKETS(holds)                                                                       \
	CADGE_SUBSTRATE_PUTS, .copies_on_receive = (holds), .waker = CADGE_WAKER_LIBRARY
#define CADGE_SUBSTRATE_PUTS                                                                                 \
	.copies_on_send = 1, .thread_role = CADGE_THREADS_HOUSEKEEPING, .threads_max = CADGE_UCX_THREADS

#endif
