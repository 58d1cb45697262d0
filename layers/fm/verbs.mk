# SPDX-License-Identifier: BSD-3-Clause
WIRE := verbs
include $(LAYERS_ROOT)/fm/style.mk
