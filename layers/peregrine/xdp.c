/* SPDX-License-Identifier: BSD-3-Clause */
#include "peregrine/adapter.h"

PEREGRINE_LAYER("xdp", CADGE_CAP_NET | CADGE_CAP_RAW_LINK, CADGE_PROTECT_KERNEL_OR_NIC, CADGE_WAKER_KERNEL, 1)
