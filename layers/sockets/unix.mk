# SPDX-License-Identifier: BSD-3-Clause
LAYER_SOURCES := sockets/unix.c sockets/session/session.c sockets/session/handshake.c sockets/stream.c sockets/blocks.c \
	sockets/endpoint.c sockets/settings.c kit/adapter.c kit/adapter_net.c
LAYER_PKGS :=
