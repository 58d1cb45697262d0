/* SPDX-License-Identifier: BSD-3-Clause */
/* libfabric under a style. */
#ifndef CADGE_WIRE_OFI_SUBSTRATE_H
#define CADGE_WIRE_OFI_SUBSTRATE_H

#include "wire/style.h"

#define CADGE_SUBSTRATE            "ofi"
#define CADGE_SUBSTRATE_CAPS(caps) (caps)
#define CADGE_SUBSTRATE_SLOTS      CADGE_STYLE_SLOTS
/* Copies of a packet: out of where it was built, and into the landing that was posted. */
#define CADGE_SUBSTRATE_PACKETS(holds)                                                                       \
	.copies_on_send = 1, .copies_on_receive = 1, .waker = CADGE_WAKER_KERNEL
/* Within a host the kernel copies, from process to process. */
#define CADGE_SUBSTRATE_PUTS .copies_on_send = 0

#endif
