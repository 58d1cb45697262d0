/* SPDX-License-Identifier: BSD-3-Clause */
/* verbs under a style: it is for two hosts, and the device copies. */
#ifndef CADGE_WIRE_VERBS_SUBSTRATE_H
#define CADGE_WIRE_VERBS_SUBSTRATE_H

#include "wire/style.h"

#define CADGE_SUBSTRATE                "verbs"
#define CADGE_SUBSTRATE_CAPS(caps)     ((caps) & ~CADGE_CAP_HOST)
#define CADGE_SUBSTRATE_SLOTS          CADGE_STYLE_SLOTS
#define CADGE_SUBSTRATE_PACKETS(holds) .waker = CADGE_WAKER_KERNEL
#define CADGE_SUBSTRATE_PUTS           .thread_role = CADGE_THREADS_NONE

#endif
