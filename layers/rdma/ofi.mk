# SPDX-License-Identifier: BSD-3-Clause
WIRE := ofi
RDMA_UNIT := wire/ofi/rma.c wire/ofi/memory.c wire/ofi/flow.c
include $(LAYERS_ROOT)/rdma/style.mk
