/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The layer contract: one RPC and messaging API on top of every communication layer.
 *
 * A layer is a shared object that exports exactly one symbol, `cadge_layer_entry`, a function that
 * returns a constant table of slots. A caller (the driver, the conformance suite, a shim) loads it with
 * dlopen(RTLD_NOW | RTLD_LOCAL), checks the table with cadge_layer_check() of cadge/check.h, and from then
 * on talks to the layer through the table alone.
 *
 * Life of a context, in order:
 *
 *	open -> limits -> address (once for each peer) -> [addresses travel out of band]
 *	     -> connect (both sides) -> poll until sink.up for that peer, on both sides
 *	     -> post / poll / call / put ...  -> disconnect -> close
 *
 * Rules that hold for every slot unless its comment says otherwise:
 *
 * - Threads: one context belongs to one thread. Adapters take no locks.
 * - Processes: a context belongs to the process that opened it. A child that is forked neither uses nor closes it.
 * - Blocking: no slot blocks, except `open`, `close` and `wait`. `wait` is the only slot that may sleep.
 * - Ownership: on an error nothing changed hands and no event follows. Strings in tables are static.
 * - Time: adapters never read a clock to measure and never log while operations run.
 * - Order of arguments: outputs come last, end in `_out`, and are written only on success.
 * - Names carry units: _bytes, _ns. Counts are plural nouns.
 * - "The library" is the communication library below the adapter; "the driver" is whoever calls it.
 *
 * Each adapter completes the incomplete types cadge_ctx, cadge_chan, cadge_region, cadge_remote and
 * cadge_lend for itself; they never cross from one layer to another. A shim hands its inner layer only
 * handles that this inner layer made.
 *
 * Growth. ABI 1 is frozen, as of version 0.2.0: a layer that was built against this header runs under every
 * later caller, and a caller under every later layer. Nothing that stands here changes: no slot, field, value or
 * argument moves, goes, or gets another meaning, and no rule becomes stricter. What may be added:
 *
 * - a slot at the end of the table, with a capability of its own, and a callback at the end of the sink, which a
 *   layer calls only where it granted that capability and the sink reaches so far;
 * - a capability, a flag, a right, a return code within its group, a value of an enumeration. A caller takes a code
 *   that it does not know as the worst of its group, and shows a value that it does not know as unknown;
 * - a field at the end of a struct that begins with `bytes`: its size as the side that owns its memory was compiled.
 *
 * Whatever else has to change makes ABI 2, under another entry symbol. `ci/abi-1` keeps the header of that day, a
 * layer and a caller that were written for it, and the tests hold today's header and layers against them. How a
 * struct grows:
 *
 * - What a slot fills (limits, path, library, semantics, traits): the caller sets `bytes` and zeroes the rest.
 *   The slot writes no further than that and leaves `bytes` alone: cadge_fill() of cadge/fill.h. Zero in a later
 *   field means that the layer says nothing of it.
 * - What a slot reads (open_args, sink): the fields of ABI 1 are always there; for a later one the slot looks at
 *   `bytes` first, with CADGE_HAS() of cadge/fill.h.
 * - The table: a caller takes any table from the size of ABI 1 on, and works on a zeroed copy of its own:
 *   cadge_layer_take() of cadge/check.h. Capability bits that it does not know are dropped from the copy.
 *
 * Fixed for ever, and so without `bytes`: cadge_iov, cadge_option, cadge_setting, cadge_reply_to. New behaviour
 * of a slot arrives by a flag, new slots by a capability.
 *
 * An enumeration that crosses the table ends in a name with _WIDE, which stands for nothing: in C++ a value that an
 * enumeration has no room for may not even be read, and such a value is how a later caller asks an older adapter for
 * something new, or a later adapter tells an older caller of it. What is appended stands before it.
 *
 * This header compiles as C11 and as C++17 and needs nothing but the C standard library.
 */
#ifndef CADGE_LAYER_H
#define CADGE_LAYER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CADGE_ABI          1u
#define CADGE_ENTRY_SYMBOL "cadge_layer_entry"
#define CADGE_EXPORT       __attribute__((visibility("default")))
#define CADGE_MUST_CHECK   __attribute__((warn_unused_result))

/*
 * Return codes. Zero and above is progress; negative codes are grouped by what is broken, that is, by what
 * the caller has to tear down.
 */
enum cadge_code {
	CADGE_DONE = 0,   /* finished: buffers are the caller's again, no event follows */
	CADGE_QUEUED = 1, /* accepted: exactly one event will carry this operation's token */
	CADGE_BUSY = 2,   /* not accepted, nothing changed hands; poll, then try again */

	/* the operation: everything else goes on */
	CADGE_E_ARGUMENT = -1,    /* the caller broke a rule of this header */
	CADGE_E_TOO_LARGE = -2,   /* longer than a limit; adapters never fragment silently */
	CADGE_E_UNSUPPORTED = -3, /* this layer cannot do that, and says so in its capabilities */
	CADGE_E_LOST = -4,        /* given up by an unreliable layer */
	/* the target does not allow it: wrong tag, no right, outside of an export, endpoint full */
	CADGE_E_REFUSED = -5,

	/* the channel: disconnect it */
	CADGE_E_DOWN = -16, /* the peer is gone or the connection broke */

	/* the context: close it */
	CADGE_E_LIBRARY = -32,   /* the library failed; the reason is in the error text of open, or in why */
	CADGE_E_TRANSPORT = -33, /* the transport or device asked for is not there */
	CADGE_E_PORT = -34,      /* no free port in the given range */

	/* the node: nothing of this layer will work here */
	CADGE_E_MEMORY = -48,     /* out of memory, locked memory or shared memory */
	CADGE_E_PERMISSION = -49, /* the kernel forbids it: capability, ptrace scope, memlock */
	CADGE_E_ABSENT = -50,     /* a kernel feature or a library part is missing */
};

/*
 * Capabilities. `caps` in the table is what the adapter can do somewhere; `caps` in cadge_limits is what this
 * context grants, always a subset. Each bit marked (slot) requires the named slots to be non-NULL, and a
 * non-NULL optional slot requires its bit: cadge_layer_check() refuses a table where the two differ.
 */
#define CADGE_CAP_SELF (UINT64_C(1) << 0) /* a context can be connected to itself */
#define CADGE_CAP_HOST (UINT64_C(1) << 1) /* two processes of one host */
#define CADGE_CAP_NET  (UINT64_C(1) << 2) /* two hosts */
/* every message accepted arrives exactly once or the channel goes down */
#define CADGE_CAP_RELIABLE (UINT64_C(1) << 3)
/* messages of one channel arrive in the order of their posts */
#define CADGE_CAP_ORDERED (UINT64_C(1) << 4)
/* a fast sender sees BUSY; nothing is dropped at a slow receiver */
#define CADGE_CAP_FLOW_CONTROL (UINT64_C(1) << 5)
#define CADGE_CAP_LEND         (UINT64_C(1) << 6) /* (release) received data can be kept without a copy */
/* post, reserve, commit, call, delegate and one-sided operations are legal inside sink callbacks */
#define CADGE_CAP_POST_IN_SINK (UINT64_C(1) << 7)
#define CADGE_CAP_WAIT         (UINT64_C(1) << 8) /* (wait) the context can sleep until there is work */
/* (call, reply, fail) native calls; needs REPLY_IN_SINK or REPLY_LATER */
#define CADGE_CAP_RPC      (UINT64_C(1) << 9)
#define CADGE_CAP_DELEGATE (UINT64_C(1) << 10) /* (delegate) a call can be passed on; needs RPC */
#define CADGE_CAP_PUT      (UINT64_C(1) << 11) /* (put, quiet, expose, unexpose, attach, detach) */
#define CADGE_CAP_GET      (UINT64_C(1) << 12) /* (get, and the five above) */
/* (fetch_add, and the five above) 64-bit, naturally aligned */
#define CADGE_CAP_FETCH_ADD (UINT64_C(1) << 13)
/* (mem_alloc, mem_free) buffers should come from the layer */
#define CADGE_CAP_MEM_ALLOC   (UINT64_C(1) << 14)
#define CADGE_CAP_MEM_REG     (UINT64_C(1) << 15) /* (mem_reg, mem_dereg) buffers must be registered once */
#define CADGE_CAP_BATCH       (UINT64_C(1) << 16) /* (flush) honours CADGE_MORE */
#define CADGE_CAP_COUNTERS    (UINT64_C(1) << 17) /* (counters) */
#define CADGE_CAP_OWN_THREADS (UINT64_C(1) << 18) /* the library starts threads of its own */
/*
 * the library starts once a process: conformance then repeats connect/disconnect where it would repeat
 * open/close
 */
#define CADGE_CAP_ONE_INIT (UINT64_C(1) << 19)
/*
 * sends frames of its own making: the `device` of open is the link that the testbed keeps for such frames,
 * not the data network's
 */
#define CADGE_CAP_RAW_LINK (UINT64_C(1) << 20)
/* reply and fail are legal inside sink.call; needs RPC */
#define CADGE_CAP_REPLY_IN_SINK (UINT64_C(1) << 21)
/* a reply token may outlive sink.call (that of an active message may not); needs RPC */
#define CADGE_CAP_REPLY_LATER (UINT64_C(1) << 22)
/* rights and peer of expose hold: what they do not allow ends with E_REFUSED and leaves the memory as it was */
#define CADGE_CAP_RIGHTS (UINT64_C(1) << 23)
/* put takes CADGE_NOTIFY, and the target's poll calls sink.notified; needs PUT */
#define CADGE_CAP_NOTIFY (UINT64_C(1) << 24)
/* (compare_swap, and the five of PUT) 64-bit, naturally aligned */
#define CADGE_CAP_COMPARE_SWAP (UINT64_C(1) << 25)
/* (reserve, commit, cancel) messages can be built in memory that the library sends from */
#define CADGE_CAP_RESERVE (UINT64_C(1) << 26)
/* (event) a descriptor tells of work, so that a program's own event loop can hold a context; needs WAIT */
#define CADGE_CAP_EVENT_FD (UINT64_C(1) << 27)
#define CADGE_CAP_WHY      (UINT64_C(1) << 28) /* (why) the library explains its errors after open */
/* all bits that this header knows */
#define CADGE_CAPS_KNOWN ((UINT64_C(1) << 29) - 1)

/* Who keeps a process from memory and messages that are not its own. */
enum cadge_protection {
	CADGE_PROTECT_NONE,
	CADGE_PROTECT_SENDER_LIBRARY,
	CADGE_PROTECT_RECEIVER_LIBRARY,
	CADGE_PROTECT_KERNEL_OR_NIC,
	CADGE_PROTECT_WIDE = INT32_MAX,
};
/* How a message comes to the receiver's code. */
enum cadge_control_transfer {
	CADGE_CONTROL_POLL,      /* the receiver has to look */
	CADGE_CONTROL_HANDLER,   /* a handler runs inside the receiver's poll */
	CADGE_CONTROL_INTERRUPT, /* the kernel wakes the receiver */
	CADGE_CONTROL_NONE,      /* one-sided: the receiver is not told */
	CADGE_CONTROL_WIDE = INT32_MAX,
};
/* What stops a sender that is faster than its receiver. */
enum cadge_flow {
	CADGE_FLOW_NONE,     /* nothing: messages are dropped or pile up */
	CADGE_FLOW_CREDITS,  /* it sends as much as the receiver has room for */
	CADGE_FLOW_ACK_NACK, /* it sends, and sends again what the receiver refused */
	CADGE_FLOW_LIBRARY,  /* the library or the kernel below, in a way of its own */
	CADGE_FLOW_WIDE = INT32_MAX,
};
enum cadge_order {
	CADGE_ORDER_NONE,
	CADGE_ORDER_CHANNEL, /* the messages of one channel, in the order of their posts */
	CADGE_ORDER_WIDE = INT32_MAX,
};
/* Who ends the sleep of a receiver in `wait`. */
enum cadge_waker {
	CADGE_WAKER_NONE,    /* nobody: this context does not sleep */
	CADGE_WAKER_KERNEL,  /* a descriptor that becomes readable */
	CADGE_WAKER_LIBRARY, /* the sender's or the receiver's library */
	CADGE_WAKER_CADGE,   /* a notification that the adapter adds to what it sends */
	CADGE_WAKER_WIDE = INT32_MAX,
};
/* What threads of the library are for. */
enum cadge_thread_role {
	CADGE_THREADS_NONE,
	CADGE_THREADS_HOUSEKEEPING, /* timers, connections, rare events: no message waits for one */
	CADGE_THREADS_PROGRESS,     /* they move messages: a message may wait until one gets a processor */
	CADGE_THREADS_WIDE = INT32_MAX,
};

/*
 * What the 1998 comparison of five layers compared, as facts of an opened context: place, provider and wait
 * mode change them. Shown, never computed with.
 */
struct cadge_traits {
	uint32_t bytes; /* sizeof, set by the caller */
	enum cadge_protection protection;
	enum cadge_control_transfer control_transfer;
	enum cadge_flow flow;   /* NONE exactly where FLOW_CONTROL is not granted */
	enum cadge_order order; /* CHANNEL exactly where ORDERED is granted */
	enum cadge_waker waker; /* NONE exactly where WAIT is not granted */
	/* the piece in which long messages travel: 1 a byte stream, else a packet or chunk; 0: whole, or unknown */
	uint32_t granule_bytes;
	/* copies of the payload by adapter and library, short messages, user space */
	uint32_t copies_on_send;
	uint32_t copies_on_receive;
	uint32_t multiprogramming; /* 1: several processes of one host can use the layer at a time */
	/* threads of the library: what for, and how many at most in this process; NONE and 0 without OWN_THREADS */
	enum cadge_thread_role thread_role;
	uint32_t threads_max;
};

/* Where the two ends of a channel stand. */
enum cadge_place {
	CADGE_PLACE_SELF = 0, /* one context, connected to itself */
	CADGE_PLACE_HOST = 1, /* two processes of one host ("within") */
	CADGE_PLACE_NET = 2,  /* two hosts ("between") */
	CADGE_PLACE_WIDE = INT32_MAX,
};

/* How the driver will wait for events. Adaptive waiting is the driver's policy and uses BLOCK. */
enum cadge_wait_mode {
	CADGE_WAIT_POLL = 0,  /* only poll will be called */
	CADGE_WAIT_BLOCK = 1, /* wait will be called whenever poll found nothing */
	CADGE_WAIT_WIDE = INT32_MAX,
};

/* Where buffers and regions lie. A layer refuses in open what it cannot use (E_UNSUPPORTED). */
enum cadge_memory_kind {
	CADGE_MEMORY_HOST = 0, /* the process's own memory; the only kind so far */
	CADGE_MEMORY_WIDE = INT32_MAX,
};

/* What a peer may do with an exposed region, and what it intends to: any of these. */
#define CADGE_MAY_READ   1u /* get */
#define CADGE_MAY_WRITE  2u /* put */
#define CADGE_MAY_ATOMIC 4u /* fetch_add, compare_swap */
#define CADGE_MAY_ALL    7u
#define CADGE_ALL_PEERS  UINT32_MAX /* in place of a peer's number */

struct cadge_ctx;    /* one opened layer; owns everything below */
struct cadge_chan;   /* one connection to one peer */
struct cadge_region; /* local memory exposed to remote access */
struct cadge_remote; /* a peer's exposed memory, as seen from here */
struct cadge_lend;   /* received data that the caller keeps for a while */

/* Fixed for ever. */
struct cadge_iov {
	void *base;
	size_t bytes;
};

/* An open-time option that a layer understands, for --help, manifests and refusals. Fixed for ever. */
struct cadge_option {
	const char *name;          /* lower case, words joined by '_'; unit as suffix */
	const char *default_value; /* "" where the library decides */
	const char *help;          /* one sentence */
};

/* Fixed for ever. */
struct cadge_setting {
	const char *name;
	const char *value;
};

struct cadge_layer;

struct cadge_open_args {
	uint32_t bytes; /* sizeof(struct cadge_open_args) */
	enum cadge_place place;
	enum cadge_wait_mode wait_mode;
	/* network interface to use, e.g. "lo", "data0", with RAW_LINK "raw0"; never NULL */
	const char *device;
	const char *address; /* IP address of this end on `device`, for listening sockets; never NULL */
	uint16_t port_first, port_last; /* listening sockets only here, inclusive; 0, 0: any port */
	uint32_t peers_max;             /* how many peers will be connected, >= 1 */
	uint32_t depth_max;             /* operations that the driver will keep outstanding a channel, >= 1 */
	uint64_t message_bytes_max;     /* largest message the driver will post */
	uint64_t region_bytes_max;      /* largest region the driver will expose; 0: none */
	const struct cadge_setting *settings;
	size_t settings_count;
	/* shims only: the layer to wrap, already checked; NULL for adapters */
	const struct cadge_layer *inner;
	char *error; /* where open explains a failure in one sentence, NUL-terminated */
	size_t error_bytes;
	enum cadge_memory_kind memory_kind; /* of all buffers and regions */
};

struct cadge_limits {
	uint32_t bytes;             /* sizeof, set by the caller */
	uint64_t caps;              /* what this context grants: subset of the table's caps */
	uint64_t message_bytes_max; /* largest post, call or reply */
	uint64_t rma_bytes_max;     /* largest put or get; 0 without */
	/* outstanding operations a channel that the adapter takes before BUSY is certain */
	uint32_t depth_max;
	uint32_t iov_max;     /* entries in an iov, >= 2 */
	uint32_t token_bytes; /* size of a reply token on the wire; 0 without RPC */
	/* the adapter's and library's header bytes a short message, where known */
	uint32_t wire_overhead_bytes;
	/* The last three may depend on what two libraries settle between them: they hold once a channel is up. */
	uint64_t short_bytes_max; /* largest message on the short path; above it `long_path` is used */
	const char *short_path;   /* e.g. "eager", "inline", "one write" */
	/* e.g. "rendezvous", "mailbox chunks"; equal to short_path if there is one path */
	const char *long_path;
};

/* Where the bytes really go. */
enum cadge_medium {
	CADGE_MEDIUM_UNKNOWN,
	CADGE_MEDIUM_PROCESS,  /* never leaves the process */
	CADGE_MEDIUM_MEMORY,   /* shared memory, or one process reading another's */
	CADGE_MEDIUM_LOOPBACK, /* the kernel's sockets within one host */
	CADGE_MEDIUM_NETWORK,  /* leaves through `device` */
	CADGE_MEDIUM_WIDE = INT32_MAX,
};

/* What the library really uses on a channel, read back from the library, not from what was asked. */
struct cadge_path {
	uint32_t bytes; /* sizeof, set by the caller */
	enum cadge_medium medium;
	uint32_t as_asked; /* 0: the library uses another transport or device than asked: unsound */
	char asked[128];   /* e.g. "device data0", "provider tcp;ofi_rxm" */
	char used[384];    /* e.g. "am: posix/memory; rma: posix/memory; cma/memory" */
	char device[64];   /* network interface, "" for memory */
	char note[192];    /* what a reader must know, e.g. "notification after each write (block)"; or "" */
};

/* Which library serves this layer. The driver finds file and build id from `symbol` (dladdr). */
struct cadge_library {
	uint32_t bytes;   /* sizeof, set by the caller */
	const char *name; /* "UCX", "libfabric", "Open MPI", "Linux sockets" */
	/* what the loaded library says of itself; kernel release for kernel services */
	const char *stated_version;
	const void *symbol; /* an address inside the library's text; NULL for kernel services */
};

/* Who carries out an operation at the target. Filled by the adapter as its belief; proved by conformance. */
enum cadge_progress {
	CADGE_PROGRESS_NONE,    /* the operation does not exist here */
	CADGE_PROGRESS_DIRECT,  /* completes and is visible although the target's processes are stopped */
	CADGE_PROGRESS_LIBRARY, /* the target's library has to run */
	CADGE_PROGRESS_CADGE,   /* layers/common or the driver supplies it */
	CADGE_PROGRESS_WIDE = INT32_MAX,
};

struct cadge_semantics {
	uint32_t bytes; /* sizeof, set by the caller */
	enum cadge_progress message, put, get, fetch_add, compare_swap;
};

/* sink.recv and sink.replied return one of these. */
enum cadge_keep {
	CADGE_TAKEN = 0, /* done with the data; it may vanish now */
	CADGE_KEEP = 1,  /* only with CADGE_CAP_LEND: data stays valid until release(lend) */
	CADGE_KEEP_WIDE = INT32_MAX,
};

/* How the bytes of a reply came to the caller. */
enum cadge_placement {
	CADGE_PLACED, /* they are in the out_iov of the call */
	CADGE_LENT,   /* they are at `data`, as in recv */
	CADGE_PLACEMENT_WIDE = INT32_MAX,
};

/*
 * Names the caller of a native call; consumed by exactly one of reply, delegate, fail. Copied by value. Fixed
 * for ever.
 */
struct cadge_reply_to {
	uint64_t word[4];
};

/*
 * Where events go. The caller fills it; the adapter calls it from inside poll (and only there), in the
 * library's own delivery context, so that a layer with handlers shows its true latency. Inside a callback
 * `poll`, `wait`, `disconnect` and `close` are forbidden; what sends is legal only with
 * CADGE_CAP_POST_IN_SINK, `reply` and `fail` only with CADGE_CAP_REPLY_IN_SINK. `peer` is the number that was
 * given to connect. `self` is for the caller's use: adapters pass the sink on untouched. Callbacks are never
 * NULL, but those of capabilities that the context does not grant.
 */
struct cadge_sink {
	uint32_t bytes; /* sizeof(struct cadge_sink) */
	/* The channel to `peer` is usable in both directions as far as this side can tell. */
	void (*up)(struct cadge_sink *self, uint32_t peer);
	/* The channel to `peer` is broken; follows every failed or lost connection at most once. */
	void (*down)(struct cadge_sink *self, uint32_t peer, int code);
	/*
	 * A message of `bytes` bytes arrived (bytes may be 0; data may then be NULL). `data` is lent until
	 * the callback returns, or with KEEP until release(lend). `lend` is NULL without CADGE_CAP_LEND.
	 */
	enum cadge_keep (*recv)(struct cadge_sink *self, uint32_t peer, const void *data, size_t bytes,
				struct cadge_lend *lend);
	/*
	 * The operation `token` that was QUEUED is finished. code DONE: its local buffers are the caller's
	 * again, results of get and fetch_add are there, a quiet is complete. It never means delivered.
	 * Negative: failed, buffers are the caller's again as well.
	 */
	void (*sent)(struct cadge_sink *self, uint32_t peer, uint64_t token, int code);
	/*
	 * Native RPC: a call arrived. `args` is lent until return. The token outlives the callback with
	 * CADGE_CAP_REPLY_LATER; without it the call is answered before the callback returns.
	 */
	void (*call)(struct cadge_sink *self, uint32_t peer, uint32_t op, const void *args, size_t bytes,
		     const struct cadge_reply_to *reply_to);
	/* Native RPC: the result of call `token` (its only event). `bytes` is the length of the result. */
	enum cadge_keep (*replied)(struct cadge_sink *self, uint32_t peer, uint64_t token, int code,
				   enum cadge_placement placement, const void *data, size_t bytes,
				   struct cadge_lend *lend);
	/*
	 * NOTIFY. `peer` wrote `bytes` bytes at offset_bytes of our `region` by a put with CADGE_NOTIFY, and
	 * they are visible.
	 */
	void (*notified)(struct cadge_sink *self, uint32_t peer, struct cadge_region *region,
			 uint64_t offset_bytes, uint64_t bytes);
};

/*
 * Flags. A flag belongs to a capability, and a caller gives it only where that is granted; all other bits are
 * 0. Without BATCH MORE means nothing; without NOTIFY put refuses CADGE_NOTIFY (E_UNSUPPORTED).
 */
/* post, commit, reply, put, call: more will follow at once; with BATCH the adapter may hold this until flush */
#define CADGE_MORE 1u
/* put: tell the target, by sink.notified, when the bytes are visible there */
#define CADGE_NOTIFY 2u

struct cadge_layer {
	uint32_t abi;      /* CADGE_ABI */
	uint32_t bytes;    /* sizeof(struct cadge_layer) at compile time of the adapter */
	const char *name;  /* "style-substrate", e.g. "sockets-tcp"; shims: "shim-delay" */
	const char *style; /* sockets, native, am, fm, bip, pm, vmmc, rdma, mpi, peregrine, null, shim */
	const char *substrate;
	uint64_t caps;
	const struct cadge_option *options; /* ends with a NULL name; may be NULL */

	/* ---- required ---- */

	/*
	 * Starts the library and makes a context for args->place and args->wait_mode. May block, may start
	 * threads (CADGE_CAP_OWN_THREADS). Everything in args is the caller's and read only during the call.
	 * DONE; E_UNSUPPORTED: place, wait mode or memory kind impossible here; E_TRANSPORT: device or
	 * transport asked for is not there; E_PORT; E_MEMORY; E_PERMISSION; E_ABSENT; E_LIBRARY; E_ARGUMENT:
	 * unknown setting. On failure args->error says why in one sentence and *ctx_out is untouched.
	 */
	int (*open)(const struct cadge_open_args *args, struct cadge_ctx **ctx_out);
	/*
	 * Releases everything, connected or not, operations outstanding or not; their events are lost. After
	 * `down` or the death of a peer it returns without waiting for that peer. May block for at most a
	 * second. NULL is legal.
	 */
	void (*close)(struct cadge_ctx *ctx);
	/* Says what this context can do; constant from open to close, but for the paths. Never fails. */
	void (*limits)(const struct cadge_ctx *ctx, struct cadge_limits *limits_out);
	/*
	 * Writes the address that `peer` has to pass to its connect in order to reach this context. It may
	 * differ by peer (it can carry the slot number that the peer stamps on what it sends). On entry
	 * *bytes_inout is the room at `blob` (at least 2048 is always given), on return the length. The blob
	 * is position-independent bytes.
	 */
	int (*address)(struct cadge_ctx *ctx, uint32_t peer, void *blob, size_t *bytes_inout);
	/*
	 * Begins to connect to the context whose address(…) for us is `blob`. `peer` < peers_max is our
	 * number for it. Symmetric: both sides call it, in any order; it does not block; poll delivers
	 * sink.up (or down). The channel handle is valid at once but operations before `up` may return BUSY.
	 */
	int (*connect)(struct cadge_ctx *ctx, uint32_t peer, const void *blob, size_t bytes,
		       struct cadge_chan **chan_out);
	/*
	 * Ends a channel; no event of it follows. Does not flush: the caller has drained what matters to it.
	 * Does not block for a dead peer. The same `peer` number may be connected again afterwards (new
	 * addresses).
	 */
	int (*disconnect)(struct cadge_ctx *ctx, struct cadge_chan *chan);
	/*
	 * Sends one message gathered from iov[0..count). The total may be 0 and is at most message_bytes_max.
	 * DONE: the buffers are the caller's. QUEUED: they are lent until sink.sent(token). BUSY: nothing
	 * happened. E_TOO_LARGE, E_DOWN, E_ARGUMENT. The iov array itself is read only during the call.
	 */
	int (*post)(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		    uint64_t token);
	/*
	 * Makes progress on all channels and calls the sink. Never blocks. Returns the number of events
	 * delivered (0: nothing to do now) or a negative context or node error. May deliver several events at
	 * a time, but returns after a bounded number.
	 */
	int (*poll)(struct cadge_ctx *ctx, struct cadge_sink *sink);

	/* What the library really uses on this channel. Valid after `up`. */
	int (*describe_path)(struct cadge_chan *chan, struct cadge_path *path_out);
	/* Which library this is. Legal before open. */
	void (*library)(struct cadge_library *library_out);
	/* Who does the work of each operation at the target, for this context. */
	void (*semantics)(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out);
	/* How this context works, see cadge_traits. */
	void (*traits)(const struct cadge_ctx *ctx, struct cadge_traits *traits_out);

	/* ---- optional, each tied to a capability ---- */

	/*
	 * WAIT. Sleeps until poll would have something to do, or something that was refused with BUSY could
	 * be accepted, or timeout_ns passed: arms the library's notification, checks once more for work,
	 * sleeps. Early return is legal. DONE: look again with poll. Negative: context error.
	 */
	int (*wait)(struct cadge_ctx *ctx, uint64_t timeout_ns);
	/*
	 * EVENT_FD, block mode only. Arms as wait does, and does not sleep. DONE: nothing to do now; *fd_out
	 * becomes readable when there is, and poll is due after *due_ns_out nanoseconds at the latest
	 * (UINT64_MAX: never by itself). BUSY: there is work now, call poll; nothing was written. Negative:
	 * context error. The descriptor is the layer's and the same from open to close; the caller watches it,
	 * level-triggered, and neither reads nor closes it. Whatever else is called on the context in between,
	 * event is called again before the next sleep.
	 */
	int (*event)(struct cadge_ctx *ctx, int *fd_out, uint64_t *due_ns_out);
	/* LEND. Gives kept data back. */
	void (*release)(struct cadge_ctx *ctx, struct cadge_lend *lend);
	/* BATCH. Everything posted with CADGE_MORE leaves now. */
	int (*flush)(struct cadge_chan *chan);

	/*
	 * RESERVE. Memory of the library for one message of up to `bytes` bytes, at most message_bytes_max,
	 * aligned to 8. DONE: it is the caller's to fill until commit or cancel. BUSY: none is free, poll and
	 * try again; E_TOO_LARGE, E_DOWN. disconnect takes it back.
	 */
	int (*reserve)(struct cadge_chan *chan, size_t bytes, uint32_t flags, void **base_out);
	/*
	 * RESERVE. Sends the first `bytes` bytes of what was reserved. Results and events as post, but that
	 * with DONE, QUEUED and every error the memory is the library's again; BUSY: it is still reserved.
	 */
	int (*commit)(struct cadge_chan *chan, void *base, size_t bytes, uint32_t flags, uint64_t token);
	/* RESERVE. Gives it back unsent. */
	void (*cancel)(struct cadge_chan *chan, void *base);

	/*
	 * RPC. Calls procedure `op` with the arguments in in_iov; the result is to be placed in out_iov
	 * (out_count may be 0: the result is then lent). QUEUED: buffers are lent until sink.replied(token),
	 * the call's only event. Never DONE. BUSY or an error: nothing happened.
	 */
	int (*call)(struct cadge_chan *chan, uint32_t op, const struct cadge_iov *in_iov, uint32_t in_count,
		    const struct cadge_iov *out_iov, uint32_t out_count, uint32_t flags, uint64_t token);
	/* RPC. Answers; consumes reply_to unless BUSY. Results as post: QUEUED ends with sink.sent(token). */
	int (*reply)(struct cadge_ctx *ctx, const struct cadge_reply_to *reply_to,
		     const struct cadge_iov *iov, uint32_t count, uint32_t flags, uint64_t token);
	/* RPC. Answers with an error code (negative); consumes reply_to unless BUSY. */
	int (*fail)(struct cadge_ctx *ctx, const struct cadge_reply_to *reply_to, int code, uint32_t flags);
	/* DELEGATE. Passes the call on to another server, which will reply to the first caller; consumes
	 * reply_to. */
	int (*delegate)(struct cadge_chan *to, const struct cadge_reply_to *reply_to, uint32_t op,
			const struct cadge_iov *iov, uint32_t count, uint32_t flags, uint64_t token);

	/*
	 * PUT, GET, FETCH_ADD, COMPARE_SWAP. Exposes memory to one peer, or to CADGE_ALL_PEERS, for what
	 * `rights` allow. The memory is the caller's and must stay until unexpose; with MEM_ALLOC it should
	 * come from mem_alloc. `key` receives what peers need to attach (room: at least 2048). Without RIGHTS
	 * only CADGE_MAY_ALL for CADGE_ALL_PEERS is legal (else E_UNSUPPORTED). The same memory may be exposed
	 * several times.
	 */
	int (*expose)(struct cadge_ctx *ctx, void *base, size_t bytes, uint32_t rights, uint32_t peer,
		      uint32_t flags, void *key, size_t *key_bytes_inout, struct cadge_region **region_out);
	void (*unexpose)(struct cadge_ctx *ctx, struct cadge_region *region);
	/*
	 * Makes a peer's region usable through this channel, for what `intent` says (CADGE_MAY_…). The key is
	 * read only during the call. With RIGHTS: E_REFUSED where the key allows less, or is for another peer;
	 * an operation that was not intended is refused as well, in its code or in sink.sent.
	 */
	int (*attach)(struct cadge_chan *chan, const void *key, size_t key_bytes, uint32_t intent,
		      uint32_t flags, struct cadge_remote **remote_out);
	void (*detach)(struct cadge_chan *chan, struct cadge_remote *remote);
	/*
	 * Writes `bytes` from `local` to offset_bytes in the remote region. DONE or sink.sent means local
	 * completion: the buffer is reusable. It says nothing of visibility: see quiet.
	 */
	int (*put)(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *remote,
		   uint64_t offset_bytes, uint32_t flags, uint64_t token);
	/* Reads into `local`. DONE or sink.sent means the bytes are there. */
	int (*get)(struct cadge_chan *chan, void *local, size_t bytes, struct cadge_remote *remote,
		   uint64_t offset_bytes, uint32_t flags, uint64_t token);
	/* Adds to the 64-bit word at offset_bytes (multiple of 8) and fetches what was there before. */
	int (*fetch_add)(struct cadge_chan *chan, uint64_t addend, uint64_t *before_out,
			 struct cadge_remote *remote, uint64_t offset_bytes, uint32_t flags, uint64_t token);
	/* Writes `desired` to that word if it holds `expected`, and fetches what was there before. */
	int (*compare_swap)(struct cadge_chan *chan, uint64_t expected, uint64_t desired,
			    uint64_t *before_out, struct cadge_remote *remote, uint64_t offset_bytes,
			    uint32_t flags, uint64_t token);
	/*
	 * DONE or sink.sent(token): every put of this channel that was accepted earlier is visible to the
	 * target's CPU. May need the target's library to run where semantics says LIBRARY.
	 */
	int (*quiet)(struct cadge_chan *chan, uint32_t flags, uint64_t token);

	/* MEM_ALLOC. Memory for buffers and regions, aligned to a page, zeroed. NULL when there is none. */
	void *(*mem_alloc)(struct cadge_ctx *ctx, size_t bytes);
	void (*mem_free)(struct cadge_ctx *ctx, void *base, size_t bytes);
	/* MEM_REG. Announces a buffer that will be used again and again; without it operations still work. */
	int (*mem_reg)(struct cadge_ctx *ctx, void *base, size_t bytes);
	int (*mem_dereg)(struct cadge_ctx *ctx, void *base, size_t bytes);

	/*
	 * COUNTERS. Calls each(arg, name, value) for what the adapter or library counts: copies, retries, drops. A name
	 * of lower-case letters, dots and underscores, below 40 bytes, counts up from open, unless it ends in `_now` or
	 * `_most`, which is a state. Results hold what was added to counts; other names are for whoever reads them all.
	 */
	void (*counters)(const struct cadge_ctx *ctx,
			 void (*each)(void *arg, const char *name, uint64_t value), void *arg);
	/*
	 * WHY. What the library said of the last error of this context after open, in one line; "" before the
	 * first. Valid until the next call on the context. Never NULL.
	 */
	const char *(*why)(const struct cadge_ctx *ctx);
};

/* The size of the table in ABI 1: what lies behind its last slot came later. */
#define CADGE_LAYER_BYTES_ABI1 ((uint32_t)(offsetof(struct cadge_layer, why) + sizeof(void (*)(void))))

/* The one exported symbol. The table is constant for the life of the process. */
CADGE_EXPORT const struct cadge_layer *cadge_layer_entry(void);
typedef const struct cadge_layer *(*cadge_layer_entry_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
