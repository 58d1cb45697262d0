# SPDX-License-Identifier: BSD-3-Clause
WIRE := ofi
include $(LAYERS_ROOT)/fm/style.mk
