# SPDX-License-Identifier: BSD-3-Clause
RDMA_UNIT := wire/verbs/memory.c wire/verbs/remote.c wire/verbs/wire.c
include $(LAYERS_ROOT)/rdma/style.mk
