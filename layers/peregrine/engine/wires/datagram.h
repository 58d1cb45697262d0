/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the wires on datagram sockets share: packets held back, sent and received, one by one or many at once,
 * and a socket of its own for the one peer that there is, and what hosts and routers say of packets that they
 * do not take; datagram_socket.c, datagram_send.c, datagram_receive.c, datagram_direct.c, datagram_errors.c.
 * And what the wires without ports share: numbers of endpoints, in front of each packet.
 */
#ifndef PGR_DATAGRAM_H
#define PGR_DATAGRAM_H

#include <netinet/in.h>
#include <string.h>

#include "../base/base.h"
#include "wire.h"

/*
 * The wires ip and xdp: 8 bytes before the header, the number of the endpoint that shall have the packet and
 * that of its sender. A number is 4 bytes as they are, in no byte order.
 */
enum {
	/* RFC 3692: for experiments */
	PGR_IP_PROTOCOL = 253,
	/* an IPv4 header without options */
	PGR_IP_BYTES = 20,
	PGR_PREFIX_BYTES = 8,
	/* in an address: behind the IPv4 address */
	PGR_AT_NUMBER = 4,
};

enum {
	/* packets held back: as many as the kernel cuts a datagram into */
	PGR_HELD_MAX = 64,
	/* of each; more are sent at once */
	PGR_HELD_PIECES = 4,
	/* of data, that a held packet owns; more stay where they lie */
	PGR_HELD_BYTES = 256,
	/* datagrams received by one call, under load */
	PGR_RECEIVE_MAX = 32,
	PGR_DATAGRAM_BYTES = 65535,
	/* of the room for one, with what goes before it so that the packet in it begins at a multiple of 8 */
	PGR_ROOM_BYTES = 65536 + 64,
	/* packets of one peer that make it worth a socket */
	PGR_DIRECT_RUN = 64,
	/* receives and packets of it, for one look at the first socket */
	PGR_DIRECT_PASS = 64,
};

/* Of a socket. */
union pgr_name {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};
static inline socklen_t pgr_name_bytes(const union pgr_name *name)
{
	return PGR_LIKELY(name->any.sa_family == AF_INET) ? sizeof(name->v4) : sizeof(name->v6);
}

struct pgr_held {
	struct pgr_to to;
	uint8_t head[PGR_PREFIX_BYTES + PGR_HEADER_BYTES + PGR_EXTENSIONS_BYTES + PGR_HELD_BYTES];
	struct iovec iov[PGR_HELD_PIECES];
	unsigned int count;
	/* of the packet */
	size_t bytes;
};

/*
 * A second socket, connected to the peer from which all packets have come for a while. The kernel looks up
 * the way to it once and not for each packet; it gives this socket what that peer sends, and the first one
 * all the rest.
 */
struct pgr_direct {
	/* the wire can have one: its socket is bound to a port */
	bool wanted;
	/* others speak, too: it is read until it is empty, then closed */
	bool ending;
	/* under load: the kernel joins what it receives (UDP_GRO), as on the first socket */
	bool joined;
	/* -1: there is none */
	int fd;
	/* whom it is connected to */
	struct pgr_to to;
	/* who sent the last packet, */
	struct pgr_to last;
	/* and how many before it, up to PGR_DIRECT_RUN */
	unsigned int run;
	/* receives, and packets, since the first socket was looked at */
	unsigned int passed;
};

struct pgr_datagram {
	struct pgr_wire wire;
	pgr_input *input;
	void *engine;
	int fd;
	/* of this endpoint, where there are no ports */
	uint32_t number;
	/* Fills the name, and writes what goes before the packet; returns its bytes: PGR_PREFIX_BYTES, 0. */
	size_t (*address)(const struct pgr_datagram *datagram, const struct pgr_to *to, union pgr_name *name,
			  uint8_t *prefix);
	/* How many bytes lie before the packet, and who sent it; SIZE_MAX: it is not for us. */
	size_t (*skip)(const struct pgr_datagram *datagram, const union pgr_name *name, const uint8_t *at,
		       size_t bytes, struct pgr_to *from);
	struct pgr_direct direct;
	/* the kernel cuts up what is sent (UDP_SEGMENT) */
	bool segments;
	/* and may join what is received (UDP_GRO) */
	bool joined;
	/* a socket has told an error: the kernel may keep more of it */
	bool errors;
	/* receives in a row that found something: more than one means load */
	unsigned int busy_receives;
	unsigned int held_count;
	struct pgr_held held[PGR_HELD_MAX];
	/* for as many datagrams as one call receives */
	uint8_t *rooms;
	/* into a room, where a datagram goes */
	size_t lead_bytes;
	char text[160];
};

/*
 * Makes the wire with its socket, not bound yet, on IPv4, or on IPv6 where that is allowed and config->address is one;
 * *at_out is that. Releases all when it fails.
 */
int pgr_datagram_open(const struct pgr_config *config, const struct pgr_wire_ops *ops, bool allow_v6,
		      int type, int protocol, struct pgr_datagram **datagram_out, union pgr_name *at_out);
/* Whether it is an address of one host: from any other nobody can answer. */
bool pgr_is_unicast(const union pgr_name *name);
/* The kernel keeps what is said of packets that were not taken: pgr_datagram_errors reads it, in a poll. */
bool pgr_datagram_keep_errors(int fd, int family);
PGR_COLD void pgr_datagram_errors(struct pgr_datagram *datagram);
/* Packets leave whole or not at all, whatever a router says of its path, who may be anybody: the engine sees what arrives. */
bool pgr_datagram_forbid_fragments(int fd, int family);
/* Bound: fills packet_bytes_max and window_packets, by the device and by the buffer that was to be had. */
int pgr_datagram_measure(struct pgr_datagram *datagram, const struct pgr_config *config,
			 const union pgr_name *at, int *buffer_bytes_out);

/* For struct pgr_wire_ops. */
void pgr_datagram_close(struct pgr_wire *wire);
int pgr_datagram_send(struct pgr_wire *wire, const struct pgr_to *to, const struct pgr_piece *pieces,
		      unsigned int count, bool more);
void pgr_datagram_flush(struct pgr_wire *wire);
int pgr_datagram_receive(struct pgr_wire *wire);
void pgr_datagram_wait(struct pgr_wire *wire, uint64_t timeout_ns);
void pgr_datagram_watch(struct pgr_wire *wire, int fds[PGR_FDS]);
void pgr_datagram_describe(const struct pgr_wire *wire, char *text, size_t text_bytes);

/* The socket for packets to this address. */
static inline int pgr_datagram_fd(const struct pgr_datagram *datagram, const struct pgr_to *to)
{
	const struct pgr_direct *direct = &datagram->direct;

	return direct->fd >= 0 && !direct->ending && memcmp(to, &direct->to, sizeof(*to)) == 0 ? direct->fd
											       : datagram->fd;
}
/* A packet of ours came: junk from a stranger ends nothing. */
static inline void pgr_direct_note(struct pgr_direct *direct, const struct pgr_to *from)
{
	if (memcmp(from, &direct->last, sizeof(*from)) == 0) {
		direct->run += direct->run < PGR_DIRECT_RUN;
	} else {
		direct->last = *from;
		direct->run = 0;
		direct->ending = direct->fd >= 0;
	}
}
/* Opens it. Where that fails, all stays as it is, and it is not tried again. */
void pgr_direct_open(struct pgr_datagram *datagram);
void pgr_direct_close(struct pgr_direct *direct);

/* Sleeps until there is something to read from one of them, or timeout_ns; an fd of -1 is passed over. */
void pgr_wait_readable(int fd, int other_fd, uint64_t timeout_ns);
/* A new endpoint's number: random, not 0. */
uint32_t pgr_number_new(void);

#endif
