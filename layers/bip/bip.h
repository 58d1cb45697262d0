/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * BIP 0.92, Basic Interface for Parallelism (Prylli and Tourancheau, ENS Lyon, manual of September 1997) over wire/wire.h:
 * tagged messages of 4-byte words. A short one goes into a queue of the library that its tag has at the receiver. A long one
 * asks the receiver, is told where the receive lies that was posted for its tag, and is written straight there; so a
 * long send ends only when there is a receive ("loose rendezvous"). One asynchronous send of a context is outstanding at a
 * time, and one receive of a tag. A receive takes the first message for its tag, whoever sent it. There is no flow control,
 * and an error is the end of the program, here: of the context.
 *
 * Where this differs from the published calls:
 * - Each call takes its context, and several peers are connected one by one. Tags are below a number that is said at open.
 * - bip_tsend, bip_trecv, bip_swait and bip_rwait waited: they are not there. The calls below say how far they came, since a
 *   layer may not block; BIP's card moved messages by itself, here bip_progress does.
 * - bip_tisend takes several pieces, of whole words together, so that whoever adds to a message need not copy it. It says
 *   at once where the message has left already.
 * - bip_ready tells which tags have something new, so that nobody has to ask them all.
 * - Buffers that are received into again and again can be announced (bip_register): then a long message needs no new key.
 *   Directly reached is memory of cadge_wire_alloc, and other memory where the substrate can; where it cannot, a long
 *   message still comes, by the target's library, and is counted as such (long_by_library). On a wire that exposes only
 *   memory of its own, a long message into other memory ends the context.
 * - An error is not the end of the process: bip_progress fails from then on, bip_why says the reason. What had come before
 *   can still be taken by bip_tgetmsg.
 * - The switch from short to long is a setting. So is the length of queues, as bip_taginit was.
 * - BIP cut long messages into packets whose size was chosen by their length, in the firmware of its card: not here.
 *
 * Nothing protects a context from its peers, as in 1997: each can send to every tag, fill its queue and so end the context,
 * and write into all of a buffer that was announced. What makes no sense is refused and counted, and never read beyond.
 */
#ifndef CADGE_BIP_BIP_H
#define CADGE_BIP_BIP_H

#include "wire/wire.h"

struct bip; /* a context of one thread */

#define BIP_WORD_BYTES  4u
#define BIP_HEAD_BYTES  4u /* of a short message */
#define BIP_PIECES_MAX  8u /* of a message that is sent */
#define BIP_REGIONS_MAX 8u /* buffers that are announced at a time */

struct bip_events {
	void (*up)(void *arg, uint32_t peer);
	void (*down)(void *arg, uint32_t peer, int code);
	void *arg;
};

struct bip_config {
	uint32_t tags;        /* 1 to 65536: tags are the numbers below */
	uint32_t short_words; /* of the longest short message; may be granted less */
	uint32_t queue;       /* messages that the queue of a tag holds, until bip_taginit says otherwise */
	uint32_t held;        /* short messages of one peer that wait here or are lent, for all tags */
	struct bip_events events;
};

/* As the functions of the wire with these names; NULL is legal in close. What bip_tgetmsg lent was freed before. */
int bip_open(const struct cadge_open_args *args, const struct bip_config *config, struct bip **bip_out);
void bip_close(struct bip *bip);
struct cadge_wire *bip_wire(const struct bip *bip);
int bip_address(struct bip *bip, uint32_t peer, struct cadge_blob_out *blob);
int bip_connect(struct bip *bip, uint32_t peer, struct cadge_blob_in *blob);
/*
 * What the peer sent and nobody took is dropped. A send to it that is outstanding, and a receive that it was filling, end
 * with E_DOWN; into the buffer of the latter it may write until it has ended the connection as well.
 */
int bip_disconnect(struct bip *bip, uint32_t peer);
int bip_describe(struct bip *bip, uint32_t peer, struct cadge_path *path_out);
void bip_counters(const struct bip *bip, void (*each)(void *arg, const char *name, uint64_t value),
		  void *arg);
const char *bip_why(const struct bip *bip);
uint32_t bip_short_words(const struct bip *bip); /* granted; a peer's may be less */

/*
 * Announces a buffer, which stays until bip_unregister or close. DONE, E_ARGUMENT (there are BIP_REGIONS_MAX), E_MEMORY,
 * E_TOO_LARGE, E_LIBRARY. unregister: DONE or E_ARGUMENT (it is not known, or a long message is coming into it).
 */
int bip_register(struct bip *bip, void *base, size_t bytes);
int bip_unregister(struct bip *bip, const void *base);

/*
 * bip_taginit. From now on the tag's queue holds this many messages, at least one; those that are in it stay. DONE,
 * E_ARGUMENT (more are in it), E_MEMORY.
 */
int bip_taginit(struct bip *bip, uint32_t tag, uint32_t messages);

/*
 * bip_tisend. DONE: it has left, and the buffers are the caller's. QUEUED: a long one, outstanding until bip_stest has
 * said otherwise; the buffers are lent until then, the list only during the call. BUSY: nothing happened, the library has
 * no room or the peer is not up; progress, and try again. E_ARGUMENT: one is outstanding, these are no whole words, or the
 * peer has no such tag. E_DOWN, E_TOO_LARGE; E_LIBRARY after an error of the context.
 */
int bip_tisend(struct bip *bip, uint32_t peer, uint32_t tag, const struct cadge_iov *pieces, uint32_t count);
/* bip_stest. DONE, or what went wrong, and nothing is outstanding any more; BUSY: it still is; E_ARGUMENT: nothing is. */
int bip_stest(struct bip *bip);

/*
 * bip_tirecv. The next message for the tag comes to `buffer`, which is lent until bip_rtest has said that it ended. DONE;
 * E_ARGUMENT: one is posted for this tag; E_LIBRARY. A message of more words than these is an error of the context.
 */
int bip_tirecv(struct bip *bip, uint32_t tag, void *buffer, uint32_t words);
struct bip_received {
	uint32_t sender, words;
};
/* bip_rtest. DONE, or E_DOWN, E_TOO_LARGE; BUSY: not yet; E_ARGUMENT: nothing is posted. */
int bip_rtest(struct bip *bip, uint32_t tag, struct bip_received *received_out);

struct bip_message {
	const uint8_t *words; /* not aligned */
	uint32_t count, sender;
};
/*
 * bip_tgetmsg. The next message of the tag's queue where it lies, lent until bip_tfreemsg; several may be. BUSY: there is
 * none; E_TOO_LARGE: it is a long one, which wants a receive; E_ARGUMENT: one is posted, and messages go there.
 */
int bip_tgetmsg(struct bip *bip, uint32_t tag, struct bip_message *message_out);
void bip_tfreemsg(struct bip *bip, const struct bip_message *message);

/*
 * Looks for news once. Returns the number of them (0: nothing to do), or negative: the context is broken. At most one
 * look of the wire comes into the queues; whoever takes out what is there after each look needs queues for no more.
 */
int bip_progress(struct bip *bip);
/* Tags whose queue or receive has got something since they were last told here, each once. */
bool bip_ready(struct bip *bip, uint32_t *tag_out);
/* Nothing is left to do that needs no news of the wire. */
bool bip_may_sleep(const struct bip *bip);

#endif
