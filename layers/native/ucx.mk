# SPDX-License-Identifier: BSD-3-Clause
LAYER_SOURCES := native/ucx.c kit/adapter.c kit/adapter_net.c wire/ucx/ucx.c wire/rdma_device.c wire/ucx/path.c wire/ucx/landing.c
LAYER_PKGS := ucx
LAYER_CFLAGS := -fno-plt
