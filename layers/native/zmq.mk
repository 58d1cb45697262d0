# SPDX-License-Identifier: BSD-3-Clause
LAYER_SOURCES := native/zmq.c common/adapter.c common/adapter_net.c
LAYER_PKGS := libzmq
