# SPDX-License-Identifier: BSD-3-Clause
LAYER_SOURCES := native/zmq.c kit/adapter.c kit/adapter_net.c
LAYER_PKGS := libzmq
