# SPDX-License-Identifier: BSD-3-Clause
RDMA_UNIT := wire/ucx/rma.c wire/ucx/memory.c wire/ucx/wire.c
include $(LAYERS_ROOT)/rdma/style.mk
