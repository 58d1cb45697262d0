# SPDX-License-Identifier: BSD-3-Clause
# What the engine is made of, relative to layers/, and what it needs. For layers, tests and its own library alike.
PGR_SOURCES := $(addprefix peregrine/engine/,packet.c endpoint.c client.c client_bind.c client_call.c client_result.c \
	server.c share.c reply.c delegate.c blast.c path.c timer.c credit.c buffer.c memory.c theirs.c convert.c coroutine.c wire_shm.c shm_reach.c datagram.c \
	datagram_send.c datagram_receive.c datagram_direct.c datagram_errors.c wire_udp.c wire_ip.c wire_xdp.c xdp_socket.c xdp_program.c)
PGR_PKGS := libsodium
