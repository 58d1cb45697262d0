# SPDX-License-Identifier: BSD-3-Clause
WIRE := mpi
include $(LAYERS_ROOT)/vmmc/style.mk
