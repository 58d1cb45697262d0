/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "wire/mailbox_state.h"

/* ---- space in the peer's area ---- */

void mailbox_acknowledge(struct cadge_mailbox *mb, uint64_t position)
{
	mb->acked = position;
	while (mb->freed_first != mb->freed_next) {
		const struct freed *freed = &mb->freed[mb->freed_first & (mb->freed_size - 1)];

		if (freed->position > position)
			break;
		mb->bulk_tail = freed->bulk;
		mb->freed_first++;
	}
}

/* Looks at the credit line. Its check keeps a torn or older write out. */
void mailbox_poll_credit(struct cadge_mailbox *mb)
{
	const uint8_t *line = mb->area + ring_bytes(&mb->shape);
	uint64_t position = word_at(line);

	if (position > mb->acked && position <= mb->out &&
	    word_at(line + 8) == check_of(mb->key, position, NULL, 0)) {
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		mailbox_acknowledge(mb, position);
	}
}

/* See 3 in mailbox.c: space is free when its last entry was consumed and that entry's put is known to have
 * ended. */
static bool has_lines(struct cadge_mailbox *mb, uint32_t lines)
{
	const uint64_t end = after(mb->out, lines, mb->peer_shape.lines);

	if (end - mb->settled > mb->peer_shape.lines)
		return false;
	if (end - mb->acked > mb->peer_shape.lines)
		mailbox_poll_credit(mb);
	return end - mb->acked <= mb->peer_shape.lines;
}

/* ---- putting ---- */

static struct block *free_block(struct cadge_mailbox *mb)
{
	for (uint32_t i = 0; i < BLOCKS; i++) {
		if (!mb->blocks[mb->block].busy)
			return &mb->blocks[mb->block];
		mb->block = (mb->block + 1) % BLOCKS;
	}
	return NULL;
}

/* DONE when it left or will leave, BUSY when the library or the blocks are busy, negative when the connection
 * broke. */
static int finish_put(struct cadge_mailbox *mb, int code, bool *busy_out)
{
	if (code == CADGE_BUSY) {
		mb->busies++;
		mb->blocked = true;
		return CADGE_BUSY;
	}
	if (code < 0) {
		mb->broken = true;
		return CADGE_E_DOWN;
	}
	*busy_out = code == CADGE_QUEUED;
	return CADGE_DONE;
}

static void send_note(struct cadge_mailbox *mb)
{
	uint8_t note[CADGE_MAILBOX_NOTE_BYTES];
	bool busy;

	mb->note_due = true;
	cadge_store64(note, mb->promise);
	cadge_store64(note + 8, mb->credit_given);
	if (finish_put(mb, mb->ops->notify(mb->link, note), &busy) == CADGE_DONE)
		mb->note_due = false;
}

/* Where the payload of an entry goes; the last word is cleared so that the padding is the same everywhere. */
static uint8_t *payload_of(struct block *block, size_t bytes)
{
	if (bytes & 7)
		cadge_store64(block->at + HEAD_BYTES + (bytes & ~(size_t)7), 0);
	return block->at + HEAD_BYTES;
}

/* Puts the entry of a position; its payload is in the block. DONE, BUSY (nothing happened) or E_DOWN. */
static int put_entry(struct cadge_mailbox *mb, struct block *block, uint64_t position, enum entry_kind kind,
		     size_t bytes)
{
	const size_t length = HEAD_BYTES + padded(bytes);
	const uint64_t end = after(position, lines_of(bytes), mb->peer_shape.lines);
	int code;

	cadge_store64(block->at + 8, (uint64_t)kind << 56 | (uint64_t)bytes << 32 | (uint32_t)position);
	cadge_store64(block->at + 16, mb->in);
	cadge_store64(block->at, check_of(mb->peer_key, position, block->at + 8, length / 8 - 1));
	code = finish_put(mb,
			  mb->ops->put(mb->link, block->at, length,
				       (position & (mb->peer_shape.lines - 1)) * LINE_BYTES, &block->op),
			  &block->busy);
	if (code != CADGE_DONE)
		return code;
	mb->credited = mb->in;
	mb->bulk_uncredited = 0;
	if (mb->ops->notify) {
		mb->promise = end > mb->promise ? end : mb->promise;
		send_note(mb);
	}
	return CADGE_DONE;
}

/* A message that fits into the ring, in the order of posts. DONE, BUSY or E_DOWN. */
static int put_short(struct cadge_mailbox *mb, const struct cadge_iov *iov, uint32_t count, size_t bytes,
		     enum entry_kind kind)
{
	const uint32_t lines = lines_of(bytes);
	struct block *block;
	int code;

	if (!has_lines(mb, lines))
		return CADGE_BUSY;
	block = free_block(mb);
	if (!block)
		return CADGE_BUSY;
	cadge_iov_gather(iov, count, payload_of(block, bytes));
	code = put_entry(mb, block, mb->out, kind, bytes);
	if (code == CADGE_DONE)
		mb->out = after(mb->out, lines, mb->peer_shape.lines);
	return code;
}

/* ---- order between puts ---- */

/* Entries before this position were all put. */
static uint64_t put_before(const struct cadge_mailbox *mb)
{
	return mb->chunk_described == mb->chunk_next ? mb->out
						     : mb->chunks[mb->chunk_described % CHUNKS].position;
}

static void ordered(struct cadge_mailbox *mb, uint64_t serial, uint64_t position)
{
	mb->visible_serial = serial;
	mb->settled = position;
}

/* Asks for what was put so far to be visible before anything that is put later, where somebody needs that. */
static void make_order(struct cadge_mailbox *mb)
{
	bool queued;

	if ((mb->visible_serial >= mb->wanted_serial && !mailbox_must_settle(mb)) || mb->quiet_busy)
		return;
	if (mb->ops->fence) {
		if (finish_put(mb, mb->ops->fence(mb->link), &queued) == CADGE_DONE)
			ordered(mb, mb->serial, put_before(mb));
		return;
	}
	if (finish_put(mb, mb->ops->quiet(mb->link, &mb->quiet_op), &queued) != CADGE_DONE)
		return;
	mb->quiets++;
	if (queued) {
		mb->quiet_busy = true;
		mb->quiet_serial = mb->serial;
		mb->quiet_position = put_before(mb);
	} else {
		ordered(mb, mb->serial, put_before(mb));
	}
}

/* ---- long messages ---- */

/* A message whose last byte has left reports itself, once. */
static void send_check(struct cadge_mailbox *mb, struct send *send)
{
	if (send->issued && !send->pending)
		mb->finished[(mb->finished_first + mb->finished_count++) % mb->depth] =
			(uint32_t)(send - mb->sends);
}

void mailbox_send_issued(struct cadge_mailbox *mb, struct send *send, int code)
{
	send->issued = true;
	send->code = code;
	mb->queue_first = (mb->queue_first + 1) % mb->depth;
	mb->queue_count--;
	send_check(mb, send);
}

/* The next contiguous part of a message, at most `most` bytes. */
static const uint8_t *send_part(const struct send *send, size_t most, size_t *bytes_out)
{
	const struct cadge_iov *entry = &send->iov[send->entry];
	const size_t bytes = entry->bytes - send->entry_bytes;

	*bytes_out = bytes < most ? bytes : most;
	return (const uint8_t *)entry->base + send->entry_bytes;
}

static void send_skip(struct send *send, size_t bytes)
{
	send->entry_bytes += bytes;
	while (send->entry < send->count && send->entry_bytes == send->iov[send->entry].bytes) {
		send->entry++;
		send->entry_bytes = 0;
	}
}

static uint8_t *stage_of(struct cadge_mailbox *mb, const struct chunk *chunk)
{
	return mb->staged + (size_t)chunk->op.index * mb->shape.chunk_bytes;
}

static void stage(struct cadge_mailbox *mb, const struct chunk *chunk)
{
	size_t part;

	for (size_t done = 0; done < chunk->bytes; done += part) {
		const uint8_t *from = send_part(chunk->send, chunk->bytes - done, &part);

		memcpy(stage_of(mb, chunk) + done, from, part);
		send_skip(chunk->send, part);
	}
	mb->copied_bytes += chunk->bytes;
}

/* Reserves a position and a piece of bulk for the next part of a message. False: no space now. */
static bool chunk_begin(struct cadge_mailbox *mb, struct send *send)
{
	const uint32_t bulk_bytes = mb->peer_shape.bulk_bytes;
	const uint64_t left = send->bytes - send->taken_bytes;
	const uint32_t bytes = left < mb->chunk_bytes ? (uint32_t)left : mb->chunk_bytes;
	const uint32_t room = (bytes + LINE_BYTES - 1) & ~(LINE_BYTES - 1);
	const uint32_t at = (uint32_t)mb->bulk_head & (bulk_bytes - 1);
	const uint32_t skip = at + room > bulk_bytes ? bulk_bytes - at : 0;
	struct chunk *chunk = &mb->chunks[mb->chunk_next % CHUNKS];

	if (mb->chunk_next - mb->chunk_first == CHUNKS || !has_lines(mb, 1))
		return false;
	if (mb->bulk_head + skip + room - mb->bulk_tail > bulk_bytes) {
		mailbox_poll_credit(mb);
		if (mb->bulk_head + skip + room - mb->bulk_tail > bulk_bytes)
			return false;
	}
	chunk->send = send;
	chunk->position = mb->out;
	chunk->message_bytes = send->bytes;
	chunk->message_offset = send->taken_bytes;
	chunk->bulk_offset = (at + skip) & (bulk_bytes - 1);
	chunk->bytes = bytes;
	chunk->placed_bytes = chunk->pending = 0;
	send->taken_bytes += bytes;
	mb->bulk_head += skip + room;
	mb->out = after(mb->out, 1, mb->peer_shape.lines);
	mb->freed[mb->freed_next++ & (mb->freed_size - 1)] = (struct freed){mb->out, mb->bulk_head};
	mb->chunk_next++;
	if (mb->staged)
		stage(mb, chunk);
	return true;
}

/* Puts what is not yet put of a chunk. Only the youngest chunk is ever incomplete. */
static bool chunk_place(struct cadge_mailbox *mb, struct chunk *chunk)
{
	struct send *send = chunk->send;

	while (chunk->placed_bytes < chunk->bytes) {
		size_t bytes = chunk->bytes - chunk->placed_bytes;
		const uint64_t to = bulk_at(&mb->peer_shape) + chunk->bulk_offset + chunk->placed_bytes;
		const uint8_t *from = mb->staged ? stage_of(mb, chunk) : send_part(send, bytes, &bytes);
		bool queued;

		if (finish_put(mb, mb->ops->put(mb->link, from, bytes, to, &chunk->op), &queued) !=
		    CADGE_DONE)
			return false;
		chunk->placed_bytes += (uint32_t)bytes;
		chunk->pending += queued;
		if (!mb->staged) {
			send->pending += queued;
			send_skip(send, bytes);
		}
	}
	chunk->serial = mb->wanted_serial = ++mb->serial;
	if (send->taken_bytes == send->bytes)
		mailbox_send_issued(mb, send, CADGE_DONE);
	return true;
}

/* Tells the peer of a chunk that is visible. */
static bool chunk_describe(struct cadge_mailbox *mb, const struct chunk *chunk)
{
	struct block *block = free_block(mb);
	uint8_t *at;

	if (!block)
		return false;
	at = payload_of(block, DESCRIPTOR_BYTES);
	cadge_store64(at, chunk->message_bytes);
	cadge_store64(at + 8, chunk->message_offset);
	cadge_store32(at + 16, chunk->bulk_offset);
	cadge_store32(at + 20, chunk->bytes);
	return put_entry(mb, block, chunk->position, ENTRY_CHUNK, DESCRIPTOR_BYTES) == CADGE_DONE;
}

/* One step of everything that is under way. False: nothing moved. */
static bool advance(struct cadge_mailbox *mb)
{
	struct chunk *youngest = &mb->chunks[(mb->chunk_next - 1) % CHUNKS];
	const bool placing = mb->chunk_next != mb->chunk_first && youngest->placed_bytes < youngest->bytes;
	uint64_t placed = mb->chunk_next - placing;
	bool moved = false;

	if (placing && chunk_place(mb, youngest)) {
		placed++;
		moved = true;
	}
	make_order(mb);
	while (mb->chunk_described != placed) {
		const struct chunk *chunk = &mb->chunks[mb->chunk_described % CHUNKS];

		if (mb->visible_serial < chunk->serial || !chunk_describe(mb, chunk))
			break;
		mb->chunk_described++;
		moved = true;
	}
	while (mb->chunk_first != mb->chunk_described && !mb->chunks[mb->chunk_first % CHUNKS].pending)
		mb->chunk_first++;
	if (mb->queue_count && placed == mb->chunk_next) {
		struct send *send = &mb->sends[mb->queue[mb->queue_first]];

		if (send->bytes > mb->short_bytes) {
			moved |= chunk_begin(mb, send);
		} else if (put_short(mb, send->iov, send->count, send->bytes, ENTRY_SHORT) == CADGE_DONE) {
			mailbox_send_issued(mb, send, CADGE_DONE);
			moved = true;
		}
	}
	return moved && !mb->broken;
}

/* The peer is owed to be told what was consumed: see 5 above. One credit at a time: see 3. */
bool mailbox_owes_credit(const struct cadge_mailbox *mb)
{
	return mb->in - mb->credited >= mb->shape.lines / 4 ||
	       (mb->bulk_uncredited && mb->bulk_uncredited >= mb->shape.bulk_bytes / 4);
}

static void give_credit(struct cadge_mailbox *mb)
{
	const uint64_t position = mb->in;

	if (mb->credit_busy)
		return;
	if (mb->visible_serial < mb->credit_serial) {
		mb->wanted_serial =
			mb->wanted_serial < mb->credit_serial ? mb->credit_serial : mb->wanted_serial;
		make_order(mb);
		if (mb->visible_serial < mb->credit_serial)
			return;
	}
	cadge_store64(mb->credit_at, position);
	cadge_store64(mb->credit_at + 8, check_of(mb->peer_key, position, NULL, 0));
	if (finish_put(mb,
		       mb->ops->put(mb->link, mb->credit_at, CREDIT_BYTES, ring_bytes(&mb->peer_shape),
				    &mb->credit_op),
		       &mb->credit_busy) != CADGE_DONE)
		return;
	mb->credits++;
	mb->credited = mb->credit_given = position;
	mb->bulk_uncredited = 0;
	mb->credit_serial = ++mb->serial;
	if (mb->ops->notify)
		send_note(mb);
}

void mailbox_pump(struct cadge_mailbox *mb)
{
	mb->blocked = false;
	if (mb->greeting_due) {
		if (put_short(mb, NULL, 0, 0, ENTRY_GREETING) != CADGE_DONE)
			return;
		mb->greeting_due = false;
	}
	for (unsigned int step = 0; step < 4 * CHUNKS && advance(mb); step++)
		;
	if (!mb->broken && mailbox_owes_credit(mb))
		give_credit(mb);
	if (!mb->broken && mb->note_due)
		send_note(mb);
}

void cadge_mailbox_done(struct cadge_mailbox_op *op, int code)
{
	struct cadge_mailbox *mb = op->mailbox;
	struct chunk *chunk;

	if (code < 0)
		mb->broken = true;
	switch ((enum op_kind)op->kind) {
	case OP_BLOCK: mb->blocks[op->index].busy = false; break;
	case OP_CREDIT: mb->credit_busy = false; break;
	case OP_QUIET:
		mb->quiet_busy = false;
		ordered(mb, mb->quiet_serial, mb->quiet_position);
		break;
	case OP_CHUNK:
		chunk = &mb->chunks[op->index];
		chunk->pending--;
		if (!mb->staged) {
			chunk->send->pending--;
			if (code < 0)
				chunk->send->code = CADGE_E_DOWN;
			send_check(mb, chunk->send);
		}
		break;
	}
}

int cadge_mailbox_post(struct cadge_mailbox *mb, const struct cadge_iov *iov, uint32_t count, uint64_t token)
{
	struct send *send;
	uint32_t number, last;
	size_t bytes;

	if (!mb->up || mb->broken)
		return mb->broken ? CADGE_E_DOWN : CADGE_BUSY;
	if (count > CADGE_MAILBOX_IOV_MAX)
		return CADGE_E_ARGUMENT;
	bytes = cadge_iov_bytes(iov, count);
	if (bytes > mb->message_bytes_max || (bytes > mb->short_bytes && !mb->peer_shape.bulk_bytes))
		return CADGE_E_TOO_LARGE;
	if (bytes <= mb->short_bytes && !mb->queue_count)
		return put_short(mb, iov, count, bytes, ENTRY_SHORT);
	if (!mb->idle_count)
		return CADGE_BUSY;
	number = mb->idle[--mb->idle_count];
	send = &mb->sends[number];
	*send = (struct send){.token = token, .bytes = bytes, .count = count};
	memcpy(send->iov, iov, count * sizeof(*iov));
	send_skip(send, 0); /* over empty entries */
	mb->queue[(mb->queue_first + mb->queue_count++) % mb->depth] = number;
	mailbox_pump(mb);
	last = (mb->finished_first + mb->finished_count - 1) % mb->depth;
	if (mb->finished_count && mb->finished[last] == number &&
	    send->code == CADGE_DONE) { /* all of it has left */
		mb->finished_count--;
		mb->idle[mb->idle_count++] = number;
		return CADGE_DONE;
	}
	return CADGE_QUEUED;
}
