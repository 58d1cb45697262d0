/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The conformance suite: one set of tests that every layer and every shim runs.
 *
 * Roles. The *referee* is the process that the user starts. It starts a *set* of ranks (itself again,
 * directly or under mpirun), tells them which test to run, passes messages between them, and turns their
 * verdicts into TAP. A test that fails, hangs or crashes costs the set its life and the next test gets fresh
 * processes.
 *
 * A test is a function that every rank of the set runs. Rank 0 sends first, by convention. With place `self`
 * there is one rank, and the peer of rank 0 is rank 0.
 */
#ifndef CADGE_CONFORMANCE_H
#define CADGE_CONFORMANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cadge/layer.h"

#define RANKS_MAX     3u
#define OOB_BYTES_MAX 8192u
#define SETTINGS_MAX  16u
#define NAMES_MAX     16u
#define STATED_MAX    16u
#define REASON_BYTES  640u
#define TOKENS_MAX    8192u
#define RECENT_MAX    16u
#define LONG_WAIT_NS  (5 * NS_PER_S)
#define NS_PER_MS     UINT64_C(1000000)
#define NS_PER_S      UINT64_C(1000000000)

#if defined(__SANITIZE_ADDRESS__)
#define UNDER_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_SANITIZER 1
#endif
#endif
#ifndef UNDER_SANITIZER
#define UNDER_SANITIZER 0
#endif

/* Names of tests. */
struct names {
	const char *name[NAMES_MAX];
	size_t count;
};

struct options {
	const char *modules;
	const char *layer;  /* name; NULL when `module` is given */
	const char *module; /* file */
	const char *shim;   /* "delay", or NULL */
	const char *device, *address;
	struct names only; /* run only these tests; none: all */
	struct names skip; /* leave these out */
	const char *mpirun;
	enum cadge_place place;
	enum cadge_wait_mode wait_mode;
	unsigned int cycles; /* of no_growth */
	unsigned int scale;  /* deadlines, and what a wait may use of the processor, are multiplied by this */
	unsigned int deadline_s; /* no test may take longer; 0: each has its own */
	bool json, list, verbose;
	struct cadge_setting settings[SETTINGS_MAX];
	size_t settings_count;
	const char *stated[STATED_MAX]; /* NAME=VALUE, of the layer file */
	size_t stated_count;
};

enum verdict { VERDICT_NONE, VERDICT_OK, VERDICT_FAIL, VERDICT_SKIP };

struct rank;
struct endpoint;

struct test {
	const char *name;
	void (*run)(struct rank *r);
	unsigned int ranks; /* how many it needs; place self always gives one */
	unsigned int deadline_s;
	bool no_self;  /* makes no sense with one process */
	bool ends_set; /* kills a rank: only rank 0 gives a verdict, and fresh processes follow */
};

extern const struct test tests[];
extern const size_t tests_count;

/* Messages between referee and ranks, one a packet. */
enum packet_kind {
	PACKET_HELLO = 1,
	PACKET_PEERS,
	PACKET_RUN,
	PACKET_QUIT,
	PACKET_NOTE,
	PACKET_VERDICT,
	PACKET_DATA,
	PACKET_STACK
};

struct packet {
	uint32_t kind;
	uint32_t rank;  /* to the referee: destination of DATA; from it: source */
	uint32_t value; /* RUN: test number; VERDICT: enum verdict; HELLO: pid; STACK: thread */
	uint32_t bytes; /* that follow in the same packet */
	unsigned char data[OOB_BYTES_MAX];
};
#define PACKET_HEAD_BYTES offsetof(struct packet, data)

struct parcel {
	struct parcel *next;
	uint32_t from;
	size_t bytes;
	unsigned char data[];
};

struct rank {
	const struct options *opt;
	unsigned int number, count;
	pid_t pids[RANKS_MAX];
	int sock;
	const char *file;                /* of the module under test */
	const struct cadge_layer *layer; /* the table under test (the shim's, where there is one) */
	const struct cadge_layer *inner; /* below a shim, else NULL */
	uint64_t caps;                   /* of the table; of the inner one below a shim */
	struct endpoint *polled;         /* kept alive while we wait on the out-of-band channel */
	struct parcel *parcels;
	enum verdict verdict;
	char reason[REASON_BYTES];
};

/* rank.c: the out-of-band channel and verdicts. All int functions return 0, or -1 after fail(). */
int rank_main(const struct options *opt, const char *socket_name, unsigned int number);
/* A connected socket to the referee of that (abstract) name, or -1 with a message on stderr. */
int referee_connect(const char *socket_name);
int fail(struct rank *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
int skip(struct rank *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void note(struct rank *r, const char *what);
int oob_send(struct rank *r, unsigned int to, const void *data, size_t bytes);
int oob_recv(struct rank *r, unsigned int from, void *data, size_t bytes_max, size_t *bytes_out);
int oob_try(struct rank *r, unsigned int from, void *data, size_t bytes_max,
	    size_t *bytes_out); /* 1: got one */
int oob_barrier(struct rank *r);
static inline unsigned int rank_other(const struct rank *r)
{
	return r->count == 1 ? 0 : 1 - r->number;
}
/* True on the rank that starts (sends first), and on the one that answers; both with place self. */
static inline bool rank_starts(const struct rank *r)
{
	return r->number == 0;
}
static inline bool rank_answers(const struct rank *r)
{
	return r->count == 1 || r->number == 1;
}

uint64_t now_ns(void);
uint64_t mix64(uint64_t x);

/* load.c */
const struct cadge_layer *module_load(const char *file, char *reason, size_t reason_bytes);
/* The module's own table, of which module_load returned a copy. */
const struct cadge_layer *module_table(const struct cadge_layer *layer);
int module_find(const struct options *opt, char *file_out, size_t file_bytes, char *shim_file_out);
int module_exports(const char *file, char *names_out, size_t names_bytes, unsigned int *count_out);

/* endpoint.c: one opened context with its channels. */
struct peer_state {
	struct cadge_chan *chan;
	unsigned int rank; /* who that is */
	unsigned int ups, downs;
	int down_code;
};

struct token_slot {
	uint64_t token;
	bool used;
	void *arg;
};

struct endpoint {
	struct cadge_sink sink; /* first: callbacks cast back */
	struct rank *r;
	const struct cadge_layer *layer;
	struct cadge_ctx *ctx;
	struct cadge_limits limits;
	struct peer_state peer[RANKS_MAX];
	unsigned int peers;
	bool in_poll, may_lose_peer;
	/* endpoint_connect sleeps in one wait of LONG_WAIT_NS where it would in many of 1 ms */
	bool long_waits, sleeps_long;
	bool may_be_refused; /* operations may end with E_REFUSED; each counts in `refused` */
	unsigned int refused;
	/* the first 16 bytes and the length of the messages that came last, to know one that comes again */
	struct {
		unsigned char head[16];
		size_t bytes;
	} recent[RECENT_MAX];
	unsigned int recent_count;
	unsigned int delivered;     /* callbacks of this poll */
	uint64_t miscounted, polls; /* polls whose result differs from the callbacks made */
	unsigned int outstanding;
	uint64_t token_serial;
	unsigned int token_cursor;
	struct token_slot tokens[TOKENS_MAX];
	void *arg; /* of the test's hooks */
	enum cadge_keep (*on_recv)(struct endpoint *ep, uint32_t peer, const void *data, size_t bytes,
				   struct cadge_lend *lend);
	void (*on_sent)(struct endpoint *ep, void *token_arg, int code);
	void (*on_call)(struct endpoint *ep, uint32_t peer, uint32_t op, const void *args, size_t bytes,
			const struct cadge_reply_to *reply_to);
	enum cadge_keep (*on_replied)(struct endpoint *ep, void *token_arg, int code,
				      enum cadge_placement placement, const void *data, size_t bytes,
				      struct cadge_lend *lend);
	void (*on_notified)(struct endpoint *ep, uint32_t peer, struct cadge_region *region,
			    uint64_t offset_bytes, uint64_t bytes);
};

struct wishes {
	uint32_t depth_max;
	uint64_t message_bytes_max, region_bytes_max;
};
extern const struct wishes wishes_default;

/* The arguments of open as this run wants them; `error` must hold error_bytes. */
void endpoint_args(const struct rank *r, const struct wishes *w, char *error, size_t error_bytes,
		   struct cadge_open_args *args_out);
int endpoint_open(struct rank *r, const struct wishes *w, struct endpoint **ep_out);
/* Addresses out of band, connect, poll until up, everywhere. */
int endpoint_connect(struct endpoint *ep);
int endpoint_disconnect(struct endpoint *ep);
/* Opens and connects. */
int endpoint_start(struct rank *r, const struct wishes *w, struct endpoint **ep_out);
/* Waits for the others, disconnects, closes. */
int endpoint_stop(struct endpoint *ep);
/* Closes at once; fails when that takes longer than the contract allows. */
int endpoint_close(struct endpoint *ep);
/* The smallest time that close may not exceed, including what a loaded machine adds. */
#define CLOSE_LIMIT_NS (3 * NS_PER_S)
int endpoint_poll(struct endpoint *ep); /* events delivered, or -1 */
void endpoint_idle(struct endpoint *ep);
uint64_t token_new(struct endpoint *ep, void *arg);
void token_drop(struct endpoint *ep, uint64_t token);
/* Posts; while BUSY polls. *code_out: DONE or QUEUED. `arg` comes back in on_sent (only when QUEUED). */
int endpoint_post(struct endpoint *ep, uint32_t peer, const struct cadge_iov *iov, uint32_t count,
		  uint32_t flags, void *arg, int *code_out);
/* Polls until nothing is outstanding. */
int endpoint_drain(struct endpoint *ep);
/*
 * Counts an operation that returned `code` for `token`: 0 when DONE or QUEUED, 1 when BUSY, else -1 after
 * fail().
 */
int endpoint_account(struct endpoint *ep, int code, uint64_t token, const char *what);
void *buffer_new(struct endpoint *ep, size_t bytes);
void buffer_free(struct endpoint *ep, void *base, size_t bytes);

/* pattern.c: what is in a message. From 16 bytes on the first line names seed and sequence. */
#define PATTERN_HEAD_BYTES 16u
void pattern_fill(void *data, size_t bytes, uint64_t seed, uint64_t sequence);
/* True when all bytes are as filled; else the first wrong offset. */
bool pattern_check(const void *data, size_t bytes, uint64_t seed, uint64_t sequence, size_t *wrong_out);
/* Sequence of a message of at least 16 bytes; false when the first line is not ours. */
bool pattern_sequence(const void *data, size_t bytes, uint64_t seed, uint64_t *sequence_out);

/* flow.c: many messages with a window; gathers facts and judges nothing. */
struct flow {
	uint64_t seed, messages;
	size_t bytes_min, bytes_max; /* >= 16 */
	unsigned int window;
	bool send, receive;
	bool layer_memory;
	/* facts of the receiving side */
	uint64_t received, corrupt, foreign, backwards, repeated, missing, wrong_length;
	uint64_t first_bad_sequence;
	size_t first_bad_offset;
	/* of the sending side */
	uint64_t busy;
};
int flow_run(struct endpoint *ep, uint32_t peer, struct flow *f);
size_t flow_size(const struct flow *f, uint64_t sequence);

/* echo.c: one message at a time, answered and checked on both sides. */
int echo_run(struct endpoint *ep, uint32_t peer, uint64_t seed, const size_t *sizes, size_t count);

/* proc.c: what the kernel knows about us. */
struct footprint {
	uint64_t resident_bytes;
	unsigned int descriptors, threads, shm_files, sysv_segments;
};
void footprint_take(struct footprint *out);
uint64_t voluntary_switches(void);
uint64_t cpu_ns(void);
uint64_t interface_rx_bytes(const char *device);
/* The interface that counts what ranks send each other over `device`: where all are on one host the kernel's loopback. */
const char *interface_counted(const char *device);
/* How often all threads of this process but the calling one have got a processor. */
uint64_t other_threads_ran(void);
bool process_is_stopped(pid_t pid);
bool isolated(void);    /* own mount and IPC namespaces: counts of /dev/shm and segments are exact */
bool own_network(void); /* own network namespace: interface counters are exact */

/* The tests. */
void test_table_is_sound(struct rank *r);
void test_one_export(struct rank *r);
void test_library_stated(struct rank *r);
void test_opens_and_limits(struct rank *r);
void test_layer_file_true(struct rank *r);
void test_open_bad_setting(struct rank *r);
void test_open_bad_device(struct rank *r);
void test_open_bad_memory(struct rank *r);
void test_structs_may_grow(struct rank *r);
void test_traits_as_granted(struct rank *r);
void test_threads_as_stated(struct rank *r);
void test_reserve_and_commit(struct rank *r);
void test_wait_after_connect(struct rank *r);
void test_wait_after_busy(struct rank *r);
void test_wait_peer_dies(struct rank *r);
void test_event_tells(struct rank *r);
void test_rights_hold(struct rank *r);
void test_put_notifies(struct rank *r);
void test_message_empty(struct rank *r);
void test_message_one_byte(struct rank *r);
void test_message_odd_sizes(struct rank *r);
void test_message_gathered(struct rank *r);
void test_message_max(struct rank *r);
void test_message_over_max_refused(struct rank *r);
void test_payload_intact(struct rank *r);
void test_depth_one(struct rank *r);
void test_depth_max(struct rank *r);
void test_busy_then_progress(struct rank *r);
void test_order_as_claimed(struct rank *r);
void test_exactly_once_as_claimed(struct rank *r);
void test_both_directions_at_once(struct rank *r);
void test_poll_counts_events(struct rank *r);
void test_poll_never_sleeps(struct rank *r);
void test_post_in_sink_as_claimed(struct rank *r);
void test_lend_as_claimed(struct rank *r);
void test_long_stay_warm(struct rank *r);
void test_wait_sleeps_and_wakes(struct rank *r);
void test_put_get_fetch_add(struct rank *r);
void test_quiet_is_visible(struct rank *r);
void test_semantics_proved(struct rank *r);
void test_native_rpc(struct rank *r);
void test_rpc_delegate(struct rank *r);
void test_capability_lies(struct rank *r);
void test_describe_path_true(struct rank *r);
void test_close_with_work_outstanding(struct rank *r);
void test_close_with_messages_unread(struct rank *r);
void test_disconnect_reconnect(struct rank *r);
void test_no_growth(struct rank *r);
void test_two_peers(struct rank *r);
void test_peer_dies(struct rank *r);

#endif
