# SPDX-License-Identifier: BSD-3-Clause
RDMA_UNIT := wire/ofi/rma.c wire/ofi/memory.c wire/ofi/flow.c
include $(LAYERS_ROOT)/rdma/style.mk
