# SPDX-License-Identifier: BSD-3-Clause
LAYER_SOURCES := native/ofi.c native/fabric.c kit/adapter.c kit/adapter_net.c wire/ofi/ofi.c wire/rdma_device.c wire/ofi/params.c
LAYER_PKGS := libfabric
