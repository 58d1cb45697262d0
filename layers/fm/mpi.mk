# SPDX-License-Identifier: BSD-3-Clause
WIRE := mpi
include $(LAYERS_ROOT)/fm/style.mk
