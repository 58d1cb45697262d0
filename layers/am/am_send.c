/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests, replies, and what found no room. */
#include <stdlib.h>

#include "am/am_state.h"

/* ---- packets ---- */

int am_send_packet(struct am *am, struct am_peer *peer, const uint8_t *head, size_t head_bytes,
		   const struct cadge_iov *pieces, uint32_t pieces_count)
{
	uint8_t *packet;
	int code;

	if (UNLIKELY(peer->down))
		return CADGE_E_DOWN;
	packet = cadge_wire_take(peer->link);
	if (UNLIKELY(!packet)) {
		am->stuck = true;
		return CADGE_BUSY;
	}
	memcpy(packet, head, head_bytes);
	packet[6] = (uint8_t)peer->owed;
	packet[7] = (uint8_t)(peer->owed >> 8);
	cadge_iov_gather(pieces, pieces_count, packet + head_bytes);
	code = cadge_wire_send(peer->link, packet, head_bytes + cadge_iov_bytes(pieces, pieces_count));
	if (UNLIKELY(code == CADGE_BUSY)) {
		cadge_wire_drop(peer->link, packet);
		am->stuck = true;
		return code;
	}
	peer->owed = 0;
	return code;
}

int am_send_surely(struct am *am, struct am_peer *peer, const uint8_t *head, size_t head_bytes,
		   const struct cadge_iov *pieces, uint32_t pieces_count)
{
	int code = CADGE_BUSY;

	if (!UNLIKELY(peer->unsent.count)) /* else behind them */
		code = am_send_packet(am, peer, head, head_bytes, pieces, pieces_count);
	if (UNLIKELY(code == CADGE_BUSY)) {
		code = am_copies_add(&peer->unsent, head, head_bytes, pieces, pieces_count);
		am->unsent += code == CADGE_DONE;
		am->replies_unsent++;
	}
	return code;
}

void am_send_unsent(struct am *am)
{
	for (uint32_t i = 0; i < am->peers; i++) {
		struct am_peer *peer = &am->peer[i];

		while (peer->unsent.count) {
			const struct am_copy *copy = peer->unsent.first;

			if (am_send_packet(am, peer, copy->data, copy->bytes, NULL, 0) == CADGE_BUSY)
				break;
			free(am_copies_take(&peer->unsent));
			am->unsent--;
		}
	}
}

/* Tells peers that send requests and get no replies that theirs were handled. */
void am_return_credits(struct am *am)
{
	static const uint8_t head[AM_HEAD_BYTES] = {KIND_ACK};

	am->credits_due = false;
	for (uint32_t i = 0; i < am->peers; i++) {
		struct am_peer *peer = &am->peer[i];

		if (!peer->link || peer->owed < peer->window / 2)
			continue;
		if (am_send_packet(am, peer, head, sizeof(head), NULL, 0) == CADGE_BUSY)
			am->credits_due = true;
		else
			am->acks_sent++;
	}
}

/* ---- copies ---- */

int am_copies_add(struct am_copies *copies, const uint8_t *head, size_t head_bytes,
		  const struct cadge_iov *pieces, uint32_t pieces_count)
{
	const size_t bytes = head_bytes + cadge_iov_bytes(pieces, pieces_count);
	struct am_copy *copy = malloc(sizeof(*copy) + bytes);

	if (!copy)
		return CADGE_E_MEMORY;
	copy->handler = NULL;
	copy->bytes = bytes;
	memcpy(copy->data, head, head_bytes);
	cadge_iov_gather(pieces, pieces_count, copy->data + head_bytes);
	am_copies_append(copies, copy);
	return CADGE_DONE;
}

void am_copies_append(struct am_copies *copies, struct am_copy *copy)
{
	copy->next = NULL;
	if (copies->count++)
		copies->last->next = copy;
	else
		copies->first = copy;
	copies->last = copy;
}

struct am_copy *am_copies_take(struct am_copies *copies)
{
	struct am_copy *copy = copies->first;

	copies->first = copy->next;
	copies->count--;
	return copy;
}

struct am_copy *am_copies_pick(struct am_copies *copies, uint64_t number)
{
	struct am_copy *before = NULL, *copy = copies->count ? copies->first : NULL;

	for (; copy && copy->number != number; copy = copy->next)
		before = copy;
	if (!copy || !before)
		return copy ? am_copies_take(copies) : NULL;
	before->next = copy->next;
	if (copies->last == copy)
		copies->last = before;
	copies->count--;
	return copy;
}

void am_copies_destroy(struct am_copies *copies)
{
	while (copies->count)
		free(am_copies_take(copies));
}

/* ---- messages ---- */

struct message {
	uint8_t kind, handler, to, from;
	uint64_t tag;
	const struct am_words *words;
};

/* Returns its length. */
static uint32_t write_head(uint8_t *head, const struct message *message)
{
	const uint32_t count = message->words ? message->words->count : 0;

	head[0] = message->kind;
	head[1] = message->handler;
	head[2] = (uint8_t)count;
	head[3] = message->to;
	head[4] = message->from;
	head[5] = head[6] = head[7] = 0;
	cadge_store64(head + 8, message->tag);
	for (uint32_t i = 0; i < count; i++)
		cadge_store32(head + AM_HEAD_BYTES + 4 * i, message->words->word[i]);
	return AM_HEAD_BYTES + 4 * count;
}

static int check(const struct am *am, uint32_t handler, const struct am_words *words,
		 const struct cadge_iov *pieces, uint32_t pieces_count, bool is_long)
{
	const uint32_t count = words ? words->count : 0;

	if (UNLIKELY(count > AM_WORDS_MAX || pieces_count > AM_PIECES_MAX || handler == AM_RETURNED ||
		     handler >= AM_HANDLERS_MAX))
		return CADGE_E_ARGUMENT;
	if (UNLIKELY(!is_long && cadge_iov_bytes(pieces, pieces_count) > am_medium_bytes_max(am, count)))
		return CADGE_E_TOO_LARGE;
	return CADGE_DONE;
}

/* Whether a request may leave, and as what. DONE, or what am_request returns. */
static int check_request(struct am_endpoint *from, uint32_t name, const struct am_name **name_out)
{
	struct am *am = from->am;
	const struct am_name *to = &from->names[name % AM_NAMES_MAX];
	const struct am_peer *peer;

	if (UNLIKELY(am->inside))
		return CADGE_E_REFUSED;
	if (UNLIKELY(name >= AM_NAMES_MAX || !to->used))
		return CADGE_E_ARGUMENT;
	peer = &am->peer[to->peer];
	if (UNLIKELY(!peer->link || peer->down))
		return CADGE_E_DOWN;
	if (UNLIKELY(!peer->credits)) {
		am->requests_without_credit++;
		return CADGE_BUSY;
	}
	*name_out = to;
	return CADGE_DONE;
}

int am_request(struct am_endpoint *from, uint32_t name, uint32_t handler, const struct am_words *words,
	       const struct cadge_iov *pieces, uint32_t pieces_count)
{
	uint8_t head[AM_HEAD_BYTES + sizeof(uint32_t) * AM_WORDS_MAX];
	struct am *am = from->am;
	const struct am_name *to;
	int code = check(am, handler, words, pieces, pieces_count, false);

	if (code == CADGE_DONE)
		code = check_request(from, name, &to);
	if (UNLIKELY(code != CADGE_DONE))
		return code;
	code = am_send_packet(am, &am->peer[to->peer], head,
			      write_head(head, &(struct message){.kind = KIND_REQUEST,
								 .handler = (uint8_t)handler,
								 .to = to->number,
								 .from = (uint8_t)from->number,
								 .tag = to->tag,
								 .words = words}),
			      pieces, pieces_count);
	am->peer[to->peer].credits -= code == CADGE_DONE && !am->uncredited;
	return code;
}

/* Sends a long message: a request in a packet, or BUSY; a reply surely. QUEUED, DONE, BUSY, E_DOWN, E_MEMORY. */
static int transfer(struct am *am, uint32_t number, const struct message *message,
		    const struct cadge_iov *pieces, uint32_t pieces_count, uint64_t offset_bytes,
		    uint64_t token)
{
	struct am_peer *peer = &am->peer[number];
	struct am_xfer *xfer = am_xfer_take(am, number);
	int code;

	if (!xfer)
		return CADGE_E_MEMORY;
	if (pieces_count)
		memcpy(xfer->piece, pieces, pieces_count * sizeof(*pieces));
	xfer->pieces_count = pieces_count;
	xfer->at_bytes = offset_bytes;
	xfer->token = token;
	xfer->head_bytes = write_head(xfer->head, message);
	cadge_store64(xfer->head + xfer->head_bytes, offset_bytes);
	cadge_store64(xfer->head + xfer->head_bytes + 8, cadge_iov_bytes(pieces, pieces_count));
	cadge_store64(xfer->head + xfer->head_bytes + 16, xfer->number);
	xfer->head_bytes += LONG_BYTES;
	if (am->trusting && message->to < AM_ENDPOINTS_MAX && peer->segment[message->to]) {
		xfer->head[0] |= KIND_UNASKED;
		xfer->remote = peer->segment[message->to];
		return am_xfer_place(am, xfer);
	}
	code = (message->kind & KIND_MASK) == KIND_REPLY
		       ? am_send_surely(am, peer, xfer->head, xfer->head_bytes, NULL, 0)
		       : am_send_packet(am, peer, xfer->head, xfer->head_bytes, NULL, 0);
	if (code != CADGE_DONE)
		am_xfer_give(am, xfer);
	return code == CADGE_DONE ? CADGE_QUEUED : code;
}

int am_request_xfer(struct am_endpoint *from, uint32_t name, uint32_t handler, const struct am_words *words,
		    const struct cadge_iov *pieces, uint32_t pieces_count, uint64_t offset_bytes,
		    uint64_t token)
{
	struct am *am = from->am;
	const struct am_name *to;
	int code = check(am, handler, words, pieces, pieces_count, true);

	if (code == CADGE_DONE)
		code = check_request(from, name, &to);
	if (code != CADGE_DONE)
		return code;
	code = transfer(am, to->peer,
			&(struct message){.kind = KIND_REQUEST | KIND_LONG,
					  .handler = (uint8_t)handler,
					  .to = to->number,
					  .from = (uint8_t)from->number,
					  .tag = to->tag,
					  .words = words},
			pieces, pieces_count, offset_bytes, token);
	am->peer[to->peer].credits -= code >= 0 && code != CADGE_BUSY && !am->uncredited;
	return code;
}

/* A reply to what is at hand. */
static struct message reply_of(const struct am_token *token, uint8_t kind, uint32_t handler,
			       const struct am_words *words)
{
	return (struct message){.kind = kind,
				.handler = (uint8_t)handler,
				.to = token->source_endpoint,
				.from = (uint8_t)token->endpoint->number,
				.words = words};
}

static int check_reply(const struct am_token *token, uint32_t handler, const struct am_words *words,
		       const struct cadge_iov *pieces, uint32_t pieces_count, bool is_long)
{
	if (UNLIKELY((token->kind & KIND_MASK) != KIND_REQUEST || token->replied))
		return CADGE_E_REFUSED;
	return check(token->am, handler, words, pieces, pieces_count, is_long);
}

int am_reply(struct am_token *token, uint32_t handler, const struct am_words *words,
	     const struct cadge_iov *pieces, uint32_t pieces_count)
{
	uint8_t head[AM_HEAD_BYTES + sizeof(uint32_t) * AM_WORDS_MAX];
	const struct message message = reply_of(token, KIND_REPLY, handler, words);
	int code = check_reply(token, handler, words, pieces, pieces_count, false);

	if (UNLIKELY(code != CADGE_DONE))
		return code;
	code = am_send_surely(token->am, &token->am->peer[token->peer], head, write_head(head, &message),
			      pieces, pieces_count);
	token->replied = code == CADGE_DONE;
	return code;
}

int am_reply_xfer(struct am_token *token, uint32_t handler, const struct am_words *words,
		  const struct cadge_iov *pieces, uint32_t pieces_count, uint64_t offset_bytes,
		  uint64_t transfer_token)
{
	const struct message message = reply_of(token, KIND_REPLY | KIND_LONG, handler, words);
	int code = check_reply(token, handler, words, pieces, pieces_count, true);

	if (code != CADGE_DONE)
		return code;
	code = transfer(token->am, token->peer, &message, pieces, pieces_count, offset_bytes, transfer_token);
	token->replied = code >= 0;
	return code;
}
