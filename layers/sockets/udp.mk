# SPDX-License-Identifier: BSD-3-Clause
LAYER_SOURCES := sockets/udp.c sockets/blocks.c sockets/endpoint.c sockets/route.c sockets/settings.c common/adapter.c
LAYER_PKGS :=
