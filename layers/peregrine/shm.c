/* SPDX-License-Identifier: BSD-3-Clause */
#include "peregrine/adapter.h"

PEREGRINE_LAYER("shm", CADGE_CAP_HOST | CADGE_CAP_MEM_ALLOC, CADGE_PROTECT_NONE, CADGE_WAKER_LIBRARY, 1)
