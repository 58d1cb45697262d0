/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peregrine: remote procedure calls at the limit of the hardware, executed at most once.
 *
 * An endpoint (struct pgr) is one open wire; it calls and serves at the same time. A peer (struct pgr_peer)
 * is its binding to one other endpoint, with 64 call slots. The protocol is that of PROTOCOL.md.
 *
 *	pgr_open -> pgr_serve ... -> pgr_address [travels to the other side by other means]
 *	         -> pgr_bind -> pgr_call / pgr_poll ... -> pgr_close
 *
 * Rules that hold unless a comment says otherwise:
 *
 * - Threads: an endpoint and all that belongs to it is used by one thread at a time. There are no locks and
 *   no threads of the library's own. Several endpoints in several threads are independent.
 * - Blocking: only pgr_wait and pgr_call_and_wait sleep or spin.
 * - Progress: packets are received, repeated and acknowledged inside pgr_poll, which must be called now and
 *   then by clients and servers alike. Handlers and continuations run inside it, on the caller's thread.
 * - Ownership: buffers are lent, never taken. On an error nothing changed hands and no event follows.
 * - Units: _bytes, _ns. Return values: PGR_OK, PGR_QUEUED or PGR_BUSY (>= 0), or a negative enum pgr_code.
 */
#ifndef PGR_H
#define PGR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PGR_VERSION_TEXT "1.0"
/* On the wire: a packet's header, and what a delegated call carries beyond its arguments. */
#define PGR_HEADER_WIRE_BYTES 48u
#define PGR_TOKEN_WIRE_BYTES  64u

enum pgr_code {
	PGR_OK = 0,
	PGR_QUEUED = 1, /* accepted; exactly one event follows */
	PGR_BUSY = 2,   /* not accepted, nothing happened: poll, then try again */

	PGR_E_ARGUMENT = -1, /* a rule of this header was broken */
	PGR_E_TOO_LARGE =
		-2, /* longer than the endpoint's or the server's limit, or than the caller's buffers */
	PGR_E_MEMORY = -3, /* no memory */
	PGR_E_GIVE_UP =
		-4, /* no word of the server for the give-up time; the call was executed once or never */
	PGR_E_RESTARTED = -5, /* the server restarted meanwhile; the call was executed once or never */
	PGR_E_PROCEDURE = -6, /* the server has no such procedure */
	PGR_E_REFUSED = -7,   /* not authorised, or another version of the protocol */
	PGR_E_SERVER_BUSY =
		-8, /* the server said until the give-up time that it had no room; executed once or never */
	PGR_E_CLOSED = -9,      /* unbound or closed by this side */
	PGR_E_WIRE = -10,       /* the wire failed or is not to be had: the text of pgr_open says more */
	PGR_E_PERMISSION = -11, /* the kernel forbids it */
	PGR_E_PORT = -12,       /* no free port in the range */
	/* -64 and below: given by the server's own procedure to pgr_fail */
	PGR_E_PROCEDURE_OWN = -64
};
const char *pgr_code_name(int code);

/*
 * The six optimisations of the 1993 paper (section 3), all on. Each bit switches one off, for comparison;
 * both ends should use the same set.
 */
enum pgr_off {
	PGR_OFF_GATHER = 1, /* arguments and results are marshalled into one buffer before they are sent */
	PGR_OFF_NO_CONVERSION = 2, /* data go through big-endian 4-byte words by the procedure's signature */
	PGR_OFF_TEMPLATES = 4,     /* each header is built field by field */
	PGR_OFF_NO_THREAD_STATE =
		8,             /* each procedure runs on a stack of its own, saved and restored per call */
	PGR_OFF_IN_PLACE = 16, /* arguments and results are copied once more before they are handed over */
	PGR_OFF_EARLY_COPY =
		32, /* multi-packet messages are copied to their place after the last packet came */
	PGR_OFF_ALL = 63
};

struct pgr;
struct pgr_peer;

struct pgr_iov {
	void *base;
	size_t bytes;
};

/* Names a call that was received. Consumed by exactly one of pgr_reply, pgr_delegate, pgr_fail. Copied by
 * value. */
struct pgr_token {
	uint64_t word[4];
};

/*
 * What a procedure takes and gives, for two machines of unlike byte order: letters, each with an optional
 * count. `b` bytes (never swapped), `h` 2, `w` 4, `d` 8 bytes; the last one repeats for the rest of the
 * message. NULL: bytes.
 */
struct pgr_signature {
	const char *in, *out;
};

/* A call that arrived. `args` (in place, contiguous) is lent until the handler returns. */
struct pgr_request {
	struct pgr *pgr;
	uint32_t procedure;
	const void *args;
	size_t args_bytes;
	struct pgr_token token;
	uint64_t client; /* identifier of the caller's binding */
	/* what pgr_set_client_data hung on it; NULL at first, and after it was forgotten */
	void *client_data;
};
/* Serves a call, or keeps the token to answer later. May call anything but pgr_poll, pgr_wait, pgr_close. */
typedef void pgr_handler(void *arg, const struct pgr_request *request);

/*
 * Continuation of a call: its one event. code PGR_OK: the result's result_bytes lie in the caller's out
 * buffers, or, where it gave none, at `result`, lent until return. Negative: the result is lost. All buffers
 * are the caller's again.
 */
typedef void pgr_done(void *arg, int code, const void *result, size_t result_bytes);
/* Continuation of a reply that was QUEUED: the buffers are the caller's again. */
typedef void pgr_sent(void *arg, int code);

struct pgr_config {
	uint32_t bytes;                 /* sizeof, for later versions */
	const char *wire;               /* "shm", "udp", "ip", "xdp" */
	const char *device;             /* udp, ip: may be NULL; xdp: the interface */
	const char *address;            /* of this end: an IPv4 address; ignored by shm */
	const char *xdp_attach;         /* "native", "generic"; NULL: generic, or what else is to be had */
	uint16_t port_first, port_last; /* udp: bind within; 0, 0: any */
	uint32_t block; /* 1: pgr_wait will be used; 0: only polling, which lets shm leave out its wake-ups */
	uint32_t off;   /* enum pgr_off */
	uint32_t peers_max;         /* servers this endpoint will be bound to; 0: 64 */
	uint32_t clients_max;       /* clients it remembers; 0: 1024 */
	uint64_t message_bytes_max; /* arguments or result; 0: 16 MiB; at most 1 GiB */
	uint64_t pool_bytes_max;    /* saved results and half-received calls of all clients; 0: 256 MiB */
	uint64_t give_up_ns;        /* 0: 10 s */
	/* how long a silent client is remembered; 0: three times the give-up time + 10 s, the least */
	uint64_t memory_ns;
	uint64_t rto_min_ns; /* 0: 2 ms */
	const uint8_t *key;  /* 16 bytes shared by all endpoints, or NULL; copied */
	char *error;         /* where pgr_open explains a failure in one sentence; may be NULL */
	size_t error_bytes;
};

/* PGR_OK or E_ARGUMENT, E_WIRE, E_PERMISSION, E_PORT, E_MEMORY. */
int pgr_open(const struct pgr_config *config, struct pgr **pgr_out);
/* Ends it; calls that are outstanding get no event. NULL is legal. */
void pgr_close(struct pgr *pgr);

/* The address of this endpoint, for pgr_bind elsewhere: position-independent bytes, at most
 * PGR_ADDRESS_BYTES. */
#define PGR_ADDRESS_BYTES 32u
int pgr_address(const struct pgr *pgr, void *address, size_t *address_bytes_inout);

/*
 * Registers a procedure. Several numbers may share a handler; PGR_ANY_PROCEDURE serves what no other does.
 * Before the first call arrives.
 */
#define PGR_ANY_PROCEDURE UINT32_MAX
int pgr_serve(struct pgr *pgr, uint32_t procedure, const struct pgr_signature *signature,
	      pgr_handler *handler, void *arg);

/* Hangs something on the binding that the call came from. It stays the caller's; nobody is told when it is
 * forgotten. */
void pgr_set_client_data(struct pgr *pgr, const struct pgr_token *token, void *data);

/* Binds to a server; sends nothing yet. */
int pgr_bind(struct pgr *pgr, const void *address, size_t address_bytes, struct pgr_peer **peer_out);
/* Ends the binding; what is outstanding ends with E_CLOSED, in the next poll. */
void pgr_unbind(struct pgr_peer *peer);

/*
 * Calls. Arguments are gathered from in[0..in_count), the result is scattered over out[0..out_count) (0: lent
 * to `done`). Both lists are copied (at most PGR_IOV_MAX entries each), the buffers lent until `done`.
 * QUEUED, or BUSY while no slot is free. PGR_MORE: more calls follow at once; this one may wait for pgr_flush
 * or the next poll.
 */
#define PGR_IOV_MAX 8u
#define PGR_MORE    1u
int pgr_call(struct pgr_peer *peer, uint32_t procedure, const struct pgr_signature *signature,
	     const struct pgr_iov *in, uint32_t in_count, const struct pgr_iov *out, uint32_t out_count,
	     uint32_t flags, pgr_done *done, void *arg);
/* The same, and polls (and sleeps, where the endpoint blocks) until it is done. Returns its code. */
int pgr_call_and_wait(struct pgr_peer *peer, uint32_t procedure, const struct pgr_signature *signature,
		      const struct pgr_iov *in, uint32_t in_count, const struct pgr_iov *out,
		      uint32_t out_count, size_t *result_bytes_out);

/*
 * Answers a call. PGR_OK: the buffers are the caller's. QUEUED (longer than a packet, or delegated): lent
 * until `sent` (may be NULL only where the buffers stay for good). A token whose caller has gone is consumed
 * silently (PGR_OK). BUSY: the pool has no room to keep the result; the token is still good: poll, reply
 * again.
 */
int pgr_reply(struct pgr *pgr, const struct pgr_token *token, const struct pgr_iov *iov, uint32_t count,
	      uint32_t flags, pgr_sent *sent, void *arg);
/* Answers with an error, PGR_E_PROCEDURE_OWN or below. */
int pgr_fail(struct pgr *pgr, const struct pgr_token *token, int code);
/*
 * Passes the call on to another server, which will answer the first caller. The arguments are copied. PGR_OK,
 * or BUSY while no slot to that server is free.
 */
int pgr_delegate(struct pgr_peer *to, const struct pgr_token *token, uint32_t procedure,
		 const struct pgr_iov *iov, uint32_t count);

/* What was held back leaves now. */
void pgr_flush(struct pgr *pgr);
/*
 * Receives, runs handlers and continuations, repeats what is late. Returns how many of them ran, or
 * negative.
 */
int pgr_poll(struct pgr *pgr);
/* Sleeps until there may be something to poll, or timeout_ns. Only with config.block. */
int pgr_wait(struct pgr *pgr, uint64_t timeout_ns);

struct pgr_stats {
	uint64_t packets_sent, packets_received,
		packets_dropped; /* dropped: not for us, malformed, past or hostile */
	uint64_t calls, calls_failed, executed;
	uint64_t retransmissions, duplicates, challenges_sent, rejects_sent;
	uint64_t pool_bytes, pool_bytes_peak;
	uint64_t clients, server_bytes_per_client; /* without saved results */
	uint64_t rto_ns;                           /* the longest in force now, over peers */
	uint64_t copies;                           /* of payload, beyond the wire's own */
};
void pgr_stats(const struct pgr *pgr, struct pgr_stats *stats_out);
/* 64 random bits, not 0. */
uint64_t pgr_nonce(void);
/* Largest message that travels in one packet. */
size_t pgr_packet_bytes(const struct pgr *pgr);
/* What the wire says of itself, e.g. "udp 127.0.0.1:18700, packets of 1424 bytes". */
void pgr_describe(const struct pgr *pgr, char *text, size_t text_bytes);

#ifdef __cplusplus
}
#endif

#endif
