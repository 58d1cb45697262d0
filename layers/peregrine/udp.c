/* SPDX-License-Identifier: BSD-3-Clause */
#include "peregrine/adapter.h"

PEREGRINE_LAYER("udp", CADGE_CAP_HOST | CADGE_CAP_NET, CADGE_PROTECT_KERNEL_OR_NIC, CADGE_WAKER_KERNEL, 0)
