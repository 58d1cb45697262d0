# SPDX-License-Identifier: BSD-3-Clause
RDMA_UNIT := wire/mpi/memory.c wire/mpi/wire.c
include $(LAYERS_ROOT)/rdma/style.mk
