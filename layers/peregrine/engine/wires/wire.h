/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What carries packets. A wire moves packets of up to packet_bytes_max between addresses; it may lose, repeat
 * and reorder them unless it says `reliable`. It knows nothing of calls.
 */
#ifndef PGR_WIRE_H
#define PGR_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/packet.h"
#include "../pgr.h"

/*
 * Where a packet goes, or came from: bytes of the wire's own, zero-padded. Two are the same if all bytes are. The first
 * four say whose it is: the host's IPv4 address, a word of its IPv6 network, on shm the process.
 */
struct pgr_to {
	uint8_t bytes[PGR_ADDRESS_BYTES];
};

struct pgr_wire;

/* Called by the wire for each packet, which is lent until it returns. May send. False: it is no packet of ours. */
typedef bool pgr_input(void *engine, const struct pgr_to *from, const void *packet, size_t bytes);

struct pgr_wire_ops {
	const char *name;
	int (*open)(const struct pgr_config *config, pgr_input *input, void *engine,
		    struct pgr_wire **wire_out);
	/* Of a copy that a fork made, only what is this process's own is given back. */
	void (*close)(struct pgr_wire *wire);
	/*
	 * Sends one packet gathered from pieces (the first is the header with its extensions). Copies or
	 * hands it over before it returns. 0; or 1: no room now, nothing happened (an unreliable wire may
	 * lose it instead). `more`: others follow, it may be held until flush.
	 */
	int (*send)(struct pgr_wire *wire, const struct pgr_to *to, const struct pgr_piece *pieces,
		    unsigned int count, bool more);
	void (*flush)(struct pgr_wire *wire);
	/* Receives a bounded number of packets; returns how many. */
	int (*receive)(struct pgr_wire *wire);
	/* Sleeps until there may be something to receive. */
	void (*wait)(struct pgr_wire *wire, uint64_t timeout_ns);
	/* Descriptors that become readable when there is something to receive; -1: none. */
	void (*watch)(struct pgr_wire *wire, int fds[PGR_FDS]);
	/* Whether one endpoint of this wire can have this address, and answer from it. NULL: any. */
	bool (*is_address)(const struct pgr_wire *wire, const struct pgr_to *to);
	/* Prepares to send to an address (mapping). 0 or a pgr_code; idempotent. NULL: not needed. */
	int (*reach)(struct pgr_wire *wire, const struct pgr_to *to);
	/* Whether who has this address has closed it, or ended, as far as that can be told. NULL: it cannot. */
	bool (*ended)(struct pgr_wire *wire, const struct pgr_to *to);
	/*
	 * Whether of the large packets that were sent there the last but one has not been read yet; false where that would be
	 * told too late. NULL: it cannot be told.
	 */
	bool (*behind)(struct pgr_wire *wire, const struct pgr_to *to);
	/* An address from its text, and back. PGR_OK, E_ARGUMENT, E_WIRE, E_MEMORY. NULL: hexadecimal digits are its text. */
	int (*resolve)(const struct pgr_wire *wire, const char *text, struct pgr_to *to_out);
	void (*text)(const struct pgr_wire *wire, const struct pgr_to *to, char *text, size_t text_bytes);
	void (*describe)(const struct pgr_wire *wire, char *text, size_t text_bytes);
	/* NULL: CLOCK_BOOTTIME; tests have a clock of their own */
	uint64_t (*now_ns)(void);
};

/* Every wire begins with this. */
struct pgr_wire {
	const struct pgr_wire_ops *ops;
	struct pgr_to own;
	/* header, extensions and data */
	uint32_t packet_bytes_max;
	/* that a receiver can hold unread, of the largest kind: base of credits */
	uint32_t window_packets;
	/* loses, repeats and reorders nothing while both ends live */
	bool reliable;
	/* both ends are processes of one host, whose number an address begins with */
	bool joins_processes;
	/* it holds packets back whose data still lie with the caller; false after a flush */
	bool holds_callers_data;
	/* why the kernel refused a packet, last, by its errno, and to whom it was; 0: it never has */
	int refused;
	struct pgr_to refused_to;
	/* of the engine: false in a child that was forked; NULL: nobody asks */
	const bool *here;
	/*
	 * Called in `receive` for a packet of ours of which its host says that nobody takes it, with so much as it quotes. NULL:
	 * nobody asks.
	 */
	void (*on_unreachable)(void *engine, const void *packet, size_t bytes);
};
/* Whether it was copied by a fork: then what it shares with others, the kernel's rings among them, is not touched. */
static inline bool pgr_wire_is_copy(const struct pgr_wire *wire)
{
	return wire->here && !*wire->here;
}

extern const struct pgr_wire_ops pgr_wire_shm, pgr_wire_udp, pgr_wire_ip, pgr_wire_xdp;
/* wires.c: finds one by its name; NULL. */
const struct pgr_wire_ops *pgr_wire_find(const char *name);

#endif
