# SPDX-License-Identifier: BSD-3-Clause
WIRE := verbs
include $(LAYERS_ROOT)/vmmc/style.mk
