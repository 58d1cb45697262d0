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
 * - Processes: an endpoint belongs to the process that opened it. In a child that was forked (fork, clone, Python's
 *   multiprocessing) it is closed: whatever returns a code answers PGR_E_CLOSED, pgr_alloc returns NULL, functions that return
 *   nothing do nothing, and no handler or continuation runs. Only address, statistics and texts can still be read. The child
 *   calls pgr_close, which changes nothing for the parent and gives the copied descriptors back: until then, a port that the
 *   parent has closed is not free. Then it opens endpoints of its own. vfork and posix_spawn close nothing. Before
 *   Linux 4.14 the library cannot see a fork: there the child must not use the endpoint.
 * - Snapshots: a restored process (CRIU) or virtual machine has the same endpoints again, and the library cannot see that.
 *   Nothing holds for such an endpoint: its clock may have stood still, so that a call is executed twice, and two copies get each
 *   other's results. Close endpoints before a snapshot, and open them after it was restored.
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

#define PGR_VERSION_TEXT "2.0"
/* On the wire: a packet's header, and what a delegated call carries beyond its arguments. */
#define PGR_HEADER_WIRE_BYTES 48u
#define PGR_TOKEN_WIRE_BYTES  64u

enum pgr_code {
	PGR_OK = 0,
	/* accepted; exactly one event follows */
	PGR_QUEUED = 1,
	/* not accepted, nothing happened: poll, then try again */
	PGR_BUSY = 2,

	/* a rule of this header was broken */
	PGR_E_ARGUMENT = -1,
	/* longer than the endpoint's or the server's limit, or than the caller's buffers */
	PGR_E_TOO_LARGE = -2,
	PGR_E_MEMORY = -3,
	/* no word of the server for the give-up time; the call was executed once or never */
	PGR_E_GIVE_UP = -4,
	/* the server restarted, closed or died meanwhile, or its host says so; the call was executed once or never */
	PGR_E_RESTARTED = -5,
	/* the server has no such procedure */
	PGR_E_PROCEDURE = -6,
	/*
	 * The server's program does not want this client; or it has another key, or another version of the protocol, and
	 * said so. Of that server with another key one's own cannot be sure: the call ends so at the give-up time only, executed
	 * once or never.
	 */
	PGR_E_REFUSED = -7,
	/* the server said until the give-up time that it had no room; executed once or never */
	PGR_E_SERVER_BUSY = -8,
	/* unbound or closed by this side; or the endpoint is of the process that this one was forked from */
	PGR_E_CLOSED = -9,
	/* the wire failed or is not to be had: the sentence of pgr_open says more */
	PGR_E_WIRE = -10,
	/* the kernel forbids it */
	PGR_E_PERMISSION = -11,
	/* no free port in the range */
	PGR_E_PORT = -12,
	/* the call's own deadline has passed, or this side has cancelled it: it was executed once, or never */
	PGR_E_DEADLINE = -13,
	PGR_E_CANCELLED = -14,
	/* there are as many as there may be: bindings (peers_max), procedures */
	PGR_E_FULL = -15,
	/* the server's host says that no program has that port: the call was executed by nobody */
	PGR_E_NOBODY = -16,
	/* this and below: given by the server's own procedure to pgr_fail */
	PGR_E_PROCEDURE_OWN = -64
};
/* A few words for a code, for messages; never NULL, and not to be freed. */
const char *pgr_code_name(int code);

/*
 * The six optimisations of the 1993 paper (section 3), all on. Each bit switches one off, for comparison;
 * both ends should use the same set.
 */
enum pgr_off {
	/* arguments and results are marshalled into one buffer before they are sent */
	PGR_OFF_GATHER = 1,
	/* data go through big-endian 4-byte words by the procedure's signature */
	PGR_OFF_NO_CONVERSION = 2,
	/* each header is built field by field */
	PGR_OFF_TEMPLATES = 4,
	/* each procedure runs on a stack of its own, saved and restored per call */
	PGR_OFF_NO_THREAD_STATE = 8,
	/* arguments and results are copied once more before they are handed over */
	PGR_OFF_IN_PLACE = 16,
	/* multi-packet messages are copied to their place after the last packet came */
	PGR_OFF_EARLY_COPY = 32,
	PGR_OFF_ALL = 63
};

struct pgr;
struct pgr_peer;

struct pgr_iov {
	void *base;
	size_t bytes;
};

/*
 * Names a call that was received. Consumed by exactly one of pgr_reply, pgr_delegate, pgr_fail. Copied by
 * value; its words mean nothing to anybody but the endpoint that gave it.
 */
struct pgr_token {
	uint64_t word[4];
};

/*
 * What a procedure takes and gives, for two machines of unlike byte order: letters, each with an optional
 * count. `b` bytes (never swapped), `h` 2, `w` 4, `d` 8 bytes; the last one repeats for the rest of the
 * message, so "hw2b" is two bytes, two times four, and then bytes. NULL: bytes. pgr_serve
 * keeps the texts for good, pgr_call struct and texts until `done`.
 */
struct pgr_signature {
	const char *in, *out;
};

/* A call that arrived; all of it is lent until the handler returns, but for the token, which may be copied. */
struct pgr_request {
	struct pgr *pgr;
	uint32_t procedure;
	/* in place and contiguous, at a multiple of 8 */
	const void *args;
	size_t args_bytes;
	struct pgr_token token;
	/* identifier of the caller's binding: 64 random bits */
	uint64_t client;
	/* what pgr_set_client_data hung on it; NULL at first, and after it was forgotten */
	void *client_data;
	/*
	 * 1: the arguments lie in memory that the caller can still write to, though it must not before its call has ended: on shm
	 * all that are of one packet, or in memory of pgr_alloc. Who decides by them copies them first.
	 */
	uint32_t shared;
};
/* Serves a call, or keeps the token to answer later. May call anything but pgr_poll, pgr_wait, pgr_close. */
typedef void pgr_handler(void *arg, const struct pgr_request *request);

/*
 * Continuation of a call: its one event. code PGR_OK: the result's result_bytes lie in the caller's out
 * buffers, or, where it gave none, at `result`, lent until return; on shm the server can still write there. Negative: the result is lost. All buffers
 * are the caller's again. May call what a handler may, pgr_call on the same binding among it.
 */
typedef void pgr_done(void *arg, int code, const void *result, size_t result_bytes);
/* Continuation of a reply that was QUEUED: the buffers are the caller's again. */
typedef void pgr_sent(void *arg, int code);

/* Read by pgr_open and not kept: the texts and the key need not outlive it. Zeros mean what stands behind "0:". */
struct pgr_config {
	/* sizeof, for later versions */
	uint32_t bytes;
	/* "shm", "udp", "ip", "xdp" */
	const char *wire;
	/* udp, ip: may be NULL; xdp: the interface; ignored by shm */
	const char *device;
	/* of this end: an IPv4 address, on udp also an IPv6 one; 0.0.0.0 or :: for all; ignored by shm */
	const char *address;
	/* xdp: "native", "generic"; NULL: generic, or what else is to be had */
	const char *xdp_attach;
	/* udp: bind within; 0, 0: any */
	uint16_t port_first, port_last;
	/* 1: pgr_wait will be used; 0: only polling, which lets shm leave out its wake-ups */
	uint32_t block;
	/* enum pgr_off */
	uint32_t off;
	/*
	 * of a packet, header and all, without what the wire puts before it: no more are sent, and servers are asked for no
	 * more; 192 at least; 0: what the wire takes
	 */
	uint32_t packet_bytes_max;
	/* servers this endpoint will be bound to at a time, 1 KiB each at most while they are idle; 0: 64 */
	uint32_t peers_max;
	/* clients it remembers at a time, 2 KiB each at most; one host has as many as are still free, half; 0: 1024 */
	uint32_t clients_max;
	/* of arguments or a result, each way; 0: 16 MiB; at most 1 GiB less 64 bytes */
	uint64_t message_bytes_max;
	/* saved results and half-received calls of all clients; one host has half at most; 0: 256 MiB */
	uint64_t pool_bytes_max;
	/*
	 * How long a call goes on without a word of its server; 0: 10 s. Where it is longer than the server's memory_ns
	 * less 10 s, a call of which nothing was heard for so long is not made known again to a server that forgot this
	 * client: it ends with GIVE_UP at the give-up time. The next call succeeds.
	 */
	uint64_t give_up_ns;
	/* how long a silent client is remembered; 0: three times the give-up time + 10 s, the least */
	uint64_t memory_ns;
	/* the shortest retransmission time-out; four looks at the clock fit into it; 0: 2 ms */
	uint64_t rto_min_ns;
	/* 16 bytes shared by all endpoints; NULL: none */
	const uint8_t *key;
	/* where pgr_open explains a failure in one sentence; may be NULL */
	char *error;
	size_t error_bytes;
	/* shorter messages in memory of pgr_alloc are copied; 0: those of pgr_packet_bytes at most */
	uint64_t in_place_bytes_min;
};

/* PGR_OK or E_ARGUMENT, E_WIRE, E_PERMISSION, E_PORT, E_MEMORY; *pgr_out is only set by PGR_OK. */
int pgr_open(const struct pgr_config *config, struct pgr **pgr_out);
/*
 * Ends it; calls that are outstanding get no event. NULL is legal. In a forked child it frees the copy; but not where another
 * thread was inside the endpoint while this process was forked: that copy can only be left.
 */
void pgr_close(struct pgr *pgr);

/*
 * The address of this endpoint, for pgr_bind elsewhere: position-independent bytes, good as long as the endpoint
 * is open. *address_bytes_inout is the room, PGR_ADDRESS_BYTES at least (else E_TOO_LARGE), and then the bytes.
 */
#define PGR_ADDRESS_BYTES 32u
int pgr_address(const struct pgr *pgr, void *address, size_t *address_bytes_inout);
/*
 * An address from a text, as an endpoint of this wire understands it: on udp HOST:PORT or [IPv6]:PORT, where HOST may be a name
 * (which may take as long as the resolver does), of the family of this end's own address; on other wires what
 * pgr_address_text wrote. E_ARGUMENT: no such text; E_WIRE: the name is not known; E_MEMORY; E_TOO_LARGE as pgr_address.
 */
int pgr_resolve(const struct pgr *pgr, const char *text, void *address, size_t *address_bytes_inout);
/* The text of an address; cut to fit. PGR_ADDRESS_TEXT_BYTES are enough. PGR_OK or E_ARGUMENT. */
#define PGR_ADDRESS_TEXT_BYTES 80u
int pgr_address_text(const struct pgr *pgr, const void *address, size_t address_bytes, char *text,
		     size_t text_bytes);

/*
 * Registers a procedure, before the first call arrives; at most 1,024. Several numbers may share a handler;
 * PGR_ANY_PROCEDURE serves what no other does. E_ARGUMENT: the number is taken; E_FULL.
 */
#define PGR_ANY_PROCEDURE UINT32_MAX
int pgr_serve(struct pgr *pgr, uint32_t procedure, const struct pgr_signature *signature,
	      pgr_handler *handler, void *arg);

/*
 * Hangs something on the binding that the call came from, for its later requests. It stays the caller's; nobody
 * is told when it is forgotten.
 */
void pgr_set_client_data(struct pgr *pgr, const struct pgr_token *token, void *data);

/*
 * Is asked about each binding that becomes known here, when it has proved its address and before its first call is
 * executed; again where it had been forgotten, comes from another address, or found no room. `address` is lent,
 * PGR_ADDRESS_BYTES of it; `client` is what requests name it by. *client_data_inout is what pgr_set_client_data hangs on it,
 * NULL at first. 0: welcome. Else the call is refused, and ends with E_REFUSED. May call what a handler may.
 */
typedef int pgr_contact(void *arg, uint64_t client, const void *address, void **client_data_inout);
/* NULL: everybody is welcome, as at first. */
void pgr_on_contact(struct pgr *pgr, pgr_contact *contact, void *arg);

/*
 * Binds to a server; sends nothing yet. PGR_OK, E_ARGUMENT (no address of this wire, or one from which nobody can answer: 0.0.0.0
 * or ::, of many hosts, port 0), E_FULL (peers_max are bound),
 * E_WIRE (shm: it is closed, has ended, or is in another PID namespace), E_PERMISSION, E_MEMORY, E_SERVER_BUSY (shm: 64
 * others are bound to it. Where some of them have ended, the server is woken to let go of them, which it had not done
 * 0.1 s later). The binding belongs to the endpoint, which ends it when it is closed. On shm a binding costs 2 MiB of memory each
 * way from then on.
 */
int pgr_bind(struct pgr *pgr, const void *address, size_t address_bytes, struct pgr_peer **peer_out);
/* Ends the binding; what is outstanding ends with E_CLOSED, in the next poll. */
void pgr_unbind(struct pgr_peer *peer);

/*
 * Calls. Arguments are gathered from in[0..in_count), the result is scattered over out[0..out_count) (0: lent
 * to `done`). Both lists are copied (at most PGR_IOV_MAX entries each), the buffers lent until `done`.
 * QUEUED, or BUSY while no slot is free; E_ARGUMENT, E_TOO_LARGE, E_MEMORY. PGR_MORE: more calls follow at once;
 * this one may wait for pgr_flush or the next poll.
 */
#define PGR_IOV_MAX 8u
#define PGR_MORE    1u
int pgr_call(struct pgr_peer *peer, uint32_t procedure, const struct pgr_signature *signature,
	     const struct pgr_iov *in, uint32_t in_count, const struct pgr_iov *out, uint32_t out_count,
	     uint32_t flags, pgr_done *done, void *arg);
/*
 * End the calls of this binding that are outstanding under this `arg` of theirs: with E_DEADLINE, unless they have ended
 * `within_ns` from now (the earlier one holds, where it is said twice); with E_CANCELLED. `done` runs in a poll: in the
 * next one after pgr_cancel, at most a quarter of rto_min_ns late after a deadline. Then the buffers are the caller's
 * again. The server is not told: it has executed such a call once, or will, or never. Where its result lies in our inbox
 * already, that poll may still end it with the result. Return how many there are.
 */
unsigned int pgr_deadline(struct pgr_peer *peer, const void *arg, uint64_t within_ns);
unsigned int pgr_cancel(struct pgr_peer *peer, const void *arg);
/*
 * pgr_call, then polls (and sleeps, where the endpoint blocks) until it is done, for within_ns at most; 0: for as long as
 * its server says anything. Returns what `done` would get, or what pgr_call refuses with; E_ARGUMENT inside a poll.
 * *result_bytes_out may be NULL.
 */
int pgr_call_and_wait(struct pgr_peer *peer, uint32_t procedure, const struct pgr_signature *signature,
		      const struct pgr_iov *in, uint32_t in_count, const struct pgr_iov *out,
		      uint32_t out_count, uint64_t within_ns, size_t *result_bytes_out);

/*
 * Answers a call. PGR_OK: the buffers are the caller's. QUEUED (longer than a packet, or delegated): lent
 * until `sent` (may be NULL only where the buffers stay for good). A token whose caller has gone is consumed
 * silently (PGR_OK). BUSY: the pool has no room to keep the result; the token is still good: poll, reply
 * again. So it is after E_ARGUMENT, E_TOO_LARGE, E_MEMORY. `flags`: PGR_MORE.
 */
int pgr_reply(struct pgr *pgr, const struct pgr_token *token, const struct pgr_iov *iov, uint32_t count,
	      uint32_t flags, pgr_sent *sent, void *arg);
/* Answers with an error, PGR_E_PROCEDURE_OWN or below: the code of the caller's `done`. PGR_OK or E_ARGUMENT. */
int pgr_fail(struct pgr *pgr, const struct pgr_token *token, int code);
/*
 * Memory for arguments and results: `bytes` of it, zeroed, at the beginning of a page; NULL: none is left. On shm a message of
 * more than pgr_packet_bytes that lies in it in one piece, at a multiple of 8, is not copied: the other side reads it where it
 * lies, and cannot write there. So arguments are not written to before `done`, nor a result before `sent`, which comes when
 * the client has read it; a result that is lent to `done` lies in the server's memory. It is of use at any length for what was
 * written before or is sent again, and from some 256 KiB on for what was written just now: while a shorter one is copied,
 * both sides work at once. It is memory like any other on other wires, with a key, with PGR_OFF_GATHER or PGR_OFF_NO_CONVERSION,
 * before Linux 5.1, and where `ulimit -f` allows no file of so many bytes.
 */
void *pgr_alloc(struct pgr *pgr, size_t bytes);
/* Gives it back; pgr_close does so with what is left. What lies in it and is lent must not be. E_ARGUMENT: pgr_alloc has not given it. */
int pgr_free(struct pgr *pgr, void *memory);

/*
 * Passes the call on to another server, which will answer the first caller. The arguments are copied. PGR_OK,
 * or BUSY while no slot to that server is free; E_ARGUMENT, E_TOO_LARGE, E_MEMORY, after which the token is still
 * good. What becomes of the call is told to nobody here.
 */
int pgr_delegate(struct pgr_peer *to, const struct pgr_token *token, uint32_t procedure,
		 const struct pgr_iov *iov, uint32_t count);

/*
 * Takes calls that the server at this address passes on (allow 1), or no longer (0). Without it none are taken: whoever
 * passes a call on says where its result goes, so this end has to trust its word for the caller's address. Anybody
 * else's delegated calls are refused. PGR_OK, E_ARGUMENT (no address that pgr_bind would take), E_MEMORY.
 */
int pgr_delegations_from(struct pgr *pgr, const void *address, size_t address_bytes, uint32_t allow);

/*
 * Before an orderly end: takes no new call from now on (clients hear that the server is busy), and returns how many calls are
 * still here: executing, or with a result that its client has not acknowledged yet. Poll until it returns 0, or for as long as
 * seems right; then pgr_close. Calls of this endpoint's own go on.
 */
uint32_t pgr_drain(struct pgr *pgr);

/* What was held back leaves now. */
void pgr_flush(struct pgr *pgr);
/*
 * Receives, runs handlers and continuations, repeats what is late. Returns how many of them ran, or E_ARGUMENT
 * from within one of them. A bounded amount of work: there may be more to do when it returns.
 */
int pgr_poll(struct pgr *pgr);
/*
 * Sleeps until there may be something to poll, or timeout_ns have passed; a signal ends it early. PGR_OK;
 * E_ARGUMENT without config.block.
 */
int pgr_wait(struct pgr *pgr, uint64_t timeout_ns);
/*
 * For a program with an event loop of its own, in place of pgr_wait: what it has to watch until it polls
 * again. Fills fds with descriptors that become readable (-1: none), the same or others than before, and
 * *due_ns_out with the time after which poll is due at the latest (UINT64_MAX: never by itself). BUSY: poll
 * now. E_ARGUMENT without config.block.
 */
#define PGR_FDS 2u
int pgr_watch(struct pgr *pgr, int fds[PGR_FDS], uint64_t *due_ns_out);

/* Counts since pgr_open, unless a comment says otherwise. */
struct pgr_stats {
	/* sizeof(struct pgr_stats), set by the caller: a later library, which counts more, writes no further; 0 is refused */
	size_t bytes;
	/* dropped: not for us, malformed, past or hostile */
	uint64_t packets_sent, packets_received, packets_dropped;
	/* called by this endpoint, ended with another code than OK; executed for others */
	uint64_t calls, calls_failed, executed;
	/* said again by this end; heard again; sent to strangers; sent in place of results */
	uint64_t retransmissions, duplicates, challenges_sent, rejects_sent;
	/* in the pool now, and at most */
	uint64_t pool_bytes, pool_bytes_peak;
	/* known now; what each costs, without saved results */
	uint64_t clients, server_bytes_per_client;
	/* the longest in force now, over peers */
	uint64_t rto_ns;
	/* of payload, beyond the wire's own */
	uint64_t copies;
	/* bindings that send packets of 1,200 bytes, since larger ones did not arrive */
	uint64_t bindings_shrunk;
	/* arguments and results that the other side reads in memory of this one's */
	uint64_t references;
};
/* PGR_OK; E_ARGUMENT: stats_out->bytes is not set. So with pgr_peer_stats. */
int pgr_stats(const struct pgr *pgr, struct pgr_stats *stats_out);
/* Of a binding, now. */
struct pgr_peer_stats {
	/* as in pgr_stats */
	size_t bytes;
	/* smoothed round trip, its variation, and the time-out in force (RFC 6298); 0: no sample yet, or a wire that loses nothing */
	uint64_t round_trip_ns, variation_ns, rto_ns;
	/* since the server last said anything; UINT64_MAX: it never has */
	uint64_t silent_ns;
	/* calls outstanding; packets of theirs under way, and how many may be */
	uint32_t outstanding, under_way, credits;
	/* of data in a full packet */
	uint32_t packet_bytes;
};
int pgr_peer_stats(const struct pgr_peer *peer, struct pgr_peer_stats *stats_out);
/* 64 random bits, not 0. */
uint64_t pgr_nonce(void);
/* Bytes of the largest message that travels in one packet. */
size_t pgr_packet_bytes(const struct pgr *pgr);
/*
 * Why a packet could not leave, last, in one line: "10.0.0.7:18700: Network is unreachable"; "" if all could. Where a call then
 * gets no answer, it ends with E_GIVE_UP as if the packet had been lost: the next one may find its way. Cut to fit.
 */
void pgr_why(const struct pgr *pgr, char *text, size_t text_bytes);
/* What the wire says of itself, e.g. "udp 127.0.0.1:18700, packets of 1424 bytes"; cut to fit. */
void pgr_describe(const struct pgr *pgr, char *text, size_t text_bytes);

#ifdef __cplusplus
}
#endif

#endif
