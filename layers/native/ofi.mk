# SPDX-License-Identifier: BSD-3-Clause
LAYER_SOURCES := native/ofi.c common/ofi.c
LAYER_PKGS := libfabric
