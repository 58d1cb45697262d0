/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Active Messages II (Mainwaring and Culler 1995, as AMUDP's header has its calls) over wire/wire.h: endpoints with tags, a
 * table of handlers and a table of translations each; requests and replies that carry up to 16 words, and a payload that
 * the handler reads where it came (medium), or that lies in the target's segment before the handler runs (long).
 *
 * - A request handler sends at most one reply, to the requester; a reply handler sends nothing. What breaks this is
 *   refused (E_REFUSED). So two processes that send requests to each other cannot wait for each other: replies always
 *   find room.
 * - A sender has as many requests outstanding as it said beforehand; a reply, or the library's word that there was none,
 *   gives one back.
 * - A request with a wrong tag, for a handler or an endpoint that is not there, outside of the segment, or to an endpoint
 *   whose queue is full is returned to its sender, with all it carried: its handler 0 runs.
 * - What is returned was not placed, however long it is: a long message asks the target, and is put once that has granted it.
 *   A long reply asks as well; one for a handler that is not there, or outside of the segment, ends with E_REFUSED. That is
 *   two packets more than to put first, and no copy.
 *
 * What a tag protects from:
 * - Who does not know it gets nothing into handlers, queue or segment, whatever it sends: the key of a segment leaves with the
 *   first grant to a peer, and not before.
 * - Who was granted something once has that key until its link ends. That it places nothing without a grant is up to its
 *   library. A tag that changes holds for what asks from then on; what was granted before still comes (am_coming).
 *
 * Where this differs from the published calls:
 * - A bundle is what is polled together, and peers are connected to it one by one; am_map names an endpoint by the peer
 *   and its number there. A request to a name that is not mapped is refused and not returned.
 * - Where AM_Request waited for a credit or for room, am_request says BUSY: poll, and try again. Requests do not poll.
 * - All handlers have one form, and the payload of a medium or long message may be gathered from pieces.
 * - Long transfers are AM_RequestXferAsync: they end with `ended`, when the source may be changed.
 * - Credits are counted for a peer, not for each pair of endpoints, and a reply is not checked against a tag, since it answers
 *   a request that is outstanding.
 * - Tags are checked by the receiver's library: there are no endpoints that the kernel maps. AM_GetXfer, event masks and
 *   bundles of several threads are not there.
 */
#ifndef CADGE_AM_AM_H
#define CADGE_AM_AM_H

#include "wire/wire.h"

#define AM_HANDLERS_MAX  256u
#define AM_ENDPOINTS_MAX 4u /* of a bundle */
#define AM_NAMES_MAX     256u
#define AM_WORDS_MAX     16u
#define AM_PIECES_MAX    4u
#define AM_HEAD_BYTES    16u /* of a packet */
#define AM_RETURNED      0u  /* the handler of what is returned; no message may name it */

/* Tags of an endpoint, not of a message: nothing matches, as long as no other tag is set; or every message does. */
#define AM_TAG_NONE UINT64_C(0)
#define AM_TAG_ALL  UINT64_MAX

struct am;          /* a bundle */
struct am_endpoint; /* lives as long as its bundle */
struct am_token;    /* of the message at hand; valid inside its handler */

/* Why a request came back. */
enum am_status {
	AM_BAD_ENDPOINT = 1,
	AM_BAD_TAG,
	AM_BAD_HANDLER,
	AM_BAD_SEGMENT, /* outside of it */
	AM_CONGESTION,  /* the endpoint's queue is full */
};

/*
 * `words` and `payload` are lent until it returns; the payload of a long message lies in the segment of the endpoint, and that
 * of one that came back in the memory that it was sent from (in a copy, where it was gathered; without memory for that it
 * has no byte). `payload` is not aligned.
 */
typedef void am_handler(struct am_token *token, const uint32_t *words, uint32_t count, void *payload,
			size_t bytes);

struct am_calls {
	void (*up)(void *arg, uint32_t peer);
	void (*down)(void *arg, uint32_t peer, int code);
	/*
	 * A long message to this handler: its source may be changed. DONE: it was placed; E_REFUSED: it was not, and came
	 * back if it was a request; E_DOWN.
	 */
	void (*ended)(void *arg, uint32_t peer, uint32_t handler, uint64_t token, int code);
	void *arg;
};

struct am_config {
	uint32_t packet_bytes; /* longest packet, head included; may be granted less */
	uint32_t outstanding;  /* requests to a peer without an answer, at most; 2 to 4096 */
	/*
	 * Requests of a peer that wait here for a poll, or were granted and are not there yet, at most; what comes beyond is
	 * returned.
	 */
	uint32_t queue;
	/*
	 * To see what protection costs, on both sides: a message's tag is not looked at, and long ones do not ask once the
	 * peer has the segment's key; what was placed may be returned, without its payload.
	 */
	bool trusting;
	bool uncredited; /* requests are not counted: what bounds them is the wire's packets, and `queue` */
	struct am_calls calls;
};

/* What a message carries beside its payload. */
struct am_words {
	uint32_t count; /* <= AM_WORDS_MAX */
	uint32_t word[AM_WORDS_MAX];
};

/* ---- bundle ---- */

/* As the functions of the wire with these names; NULL is legal in close. */
int am_open(const struct cadge_open_args *args, const struct am_config *config, struct am **am_out);
void am_close(struct am *am);
struct cadge_wire *am_wire(const struct am *am);
int am_address(struct am *am, uint32_t peer, struct cadge_blob_out *blob);
int am_connect(struct am *am, uint32_t peer, struct cadge_blob_in *blob);
int am_disconnect(struct am *am, uint32_t peer);
int am_describe(struct am *am, uint32_t peer, struct cadge_path *path_out);
void am_counters(const struct am *am, void (*each)(void *arg, const char *name, uint64_t value), void *arg);
/* The longest payload of a medium message with `words` words. */
size_t am_medium_bytes_max(const struct am *am, uint32_t words);

/*
 * AM_Poll. Runs the handlers of what came, of at most `budget` requests; others wait in the queue. Returns the number of
 * handlers, ups, downs and ends, or negative: the bundle is broken.
 */
int am_poll(struct am *am, uint32_t budget);
/* Nothing is left to do that needs no news of the wire. */
bool am_may_sleep(const struct am *am);

/* ---- endpoints ---- */

/* NULL: there are AM_ENDPOINTS_MAX. Its tag is AM_TAG_NONE: it takes nothing. */
struct am_endpoint *am_endpoint_allocate(struct am *am);
uint32_t am_endpoint_number(const struct am_endpoint *endpoint);
/* Holds for requests that come from now on. */
void am_set_tag(struct am_endpoint *endpoint, uint64_t tag);
/* Long messages that were granted and are not there yet. 0: no peer's library writes to the segment. */
uint32_t am_coming(const struct am_endpoint *endpoint);
/* NULL: there is none any more; long requests that were granted still run it. DONE; E_ARGUMENT: `id` is none. */
int am_set_handler(struct am_endpoint *endpoint, uint32_t id, am_handler *handler);
/*
 * Memory of the wire, zeroed, that becomes the segment of the endpoint. DONE; E_ARGUMENT (it has one), E_MEMORY, E_TOO_LARGE (a
 * packet has no room for its key), E_LIBRARY.
 */
int am_set_segment(struct am_endpoint *endpoint, size_t bytes);
uint8_t *am_segment(const struct am_endpoint *endpoint);
/* Translation `name` is endpoint `number` of this peer, believed to have this tag. DONE or E_ARGUMENT. */
int am_map(struct am_endpoint *endpoint, uint32_t name, uint32_t peer, uint32_t number, uint64_t tag);

/* ---- messages ---- */

/*
 * DONE; BUSY: no credit, no room, or not up: poll, and try again; E_REFUSED: inside a handler; E_ARGUMENT: no such name or
 * handler, too many words; E_TOO_LARGE; E_DOWN. Short messages have no pieces; all that is given may be changed afterwards.
 */
int am_request(struct am_endpoint *from, uint32_t name, uint32_t handler, const struct am_words *words,
	       const struct cadge_iov *pieces, uint32_t pieces_count);
/*
 * Places the pieces at offset_bytes of the target's segment, then runs the handler there. As am_request, but QUEUED in place of
 * DONE: the pieces are lent until `ended`, their list is not.
 */
int am_request_xfer(struct am_endpoint *from, uint32_t name, uint32_t handler, const struct am_words *words,
		    const struct cadge_iov *pieces, uint32_t pieces_count, uint64_t offset_bytes,
		    uint64_t token);
/*
 * Inside the request's handler, once. DONE, or QUEUED where something is transferred; E_REFUSED (a second one, or not a
 * request), E_ARGUMENT, E_TOO_LARGE, E_DOWN, E_MEMORY; never BUSY.
 */
int am_reply(struct am_token *token, uint32_t handler, const struct am_words *words,
	     const struct cadge_iov *pieces, uint32_t pieces_count);
int am_reply_xfer(struct am_token *token, uint32_t handler, const struct am_words *words,
		  const struct cadge_iov *pieces, uint32_t pieces_count, uint64_t offset_bytes,
		  uint64_t transfer_token);

/* ---- inside a handler ---- */

void *am_user(const struct am_token *token);      /* calls.arg */
uint32_t am_source(const struct am_token *token); /* the peer */
/* Inside handler 0: why it came back, and which handler it was for. */
enum am_status am_returned_status(const struct am_token *token);
uint32_t am_returned_handler(const struct am_token *token);

#endif
