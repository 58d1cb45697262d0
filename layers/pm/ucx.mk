# SPDX-License-Identifier: BSD-3-Clause
WIRE := ucx
include $(LAYERS_ROOT)/pm/style.mk
