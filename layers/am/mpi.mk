# SPDX-License-Identifier: BSD-3-Clause
WIRE := mpi
include $(LAYERS_ROOT)/am/style.mk
