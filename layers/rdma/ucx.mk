# SPDX-License-Identifier: BSD-3-Clause
LAYER_SOURCES := rdma/ucx.c common/ucx.c common/mailbox.c common/mailbox_send.c
LAYER_PKGS := ucx
