/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why this is correct on transports that promise no order at all.
 *
 * 1. A ring entry is one put: header and payload. Its first word is a 64-bit check over everything else in
 * it, over the position in the endless ring, and over a key that the receiver chose for this life of the
 * area. The receiver takes an entry only when the check fits what it reads. Words that have not arrived still
 * hold something older, so the check fits before memory holds the whole entry with probability 2^-64 an
 * attempt, whatever the order of words, and whether a word is written at once or byte by byte. What was read
 * as new does not become old again (coherence), so the payload can be lent where it lies.
 * 2. A piece of a long message is a put of any length to the bulk ring, and then an entry that describes it.
 * The entry is put only after quiet (or fence) has ordered the piece before it.
 * 3. Space is written again only when two things are known. The receiver has consumed it: it says so in the
 * header of each entry it sends the other way, and, when little goes that way, by a put to the credit line,
 * position and check, so that a torn credit is ignored. Entries are taken in order, so their acknowledgements
 * never go back; credits could overtake one another and leave an old one standing, therefore the next credit
 * is put only after quiet for the last. And the put that filled it has ended: an entry can fit although parts
 * of its put are still to come, where these happen to equal what lay there before, and would then spoil the
 * next lap. A quiet for each quarter of the ring, asked for long before it is needed, settles that. (Bulk is
 * settled by 2.)
 * 4. Order and exactly-once: the receiver looks at one position only, the next; a position is passed once.
 * 5. Nobody waits for ever: a sender that lacks space is owed a credit, since the receiver puts one as soon
 * as a quarter of ring or bulk is consumed and not yet told, and no message needs more than a quarter of
 * either (a piece that does not fit before the end of the bulk ring skips it: at most another quarter).
 * 6. Block mode: a notification may overtake the put that it announces. It carries how far the ring is
 * written and the credit that is given, and a side that was promised more than it sees does not sleep.
 */
#include <stdlib.h>
#include <string.h>

#include "wire/mailbox_state.h"

/* ---- geometry ---- */

static uint32_t power_of_two(uint64_t at_least, uint32_t low, uint32_t high)
{
	uint32_t value = low;

	while (value < at_least && value < high)
		value *= 2;
	return value;
}

static bool is_power_of_two(uint32_t value)
{
	return value && !(value & (value - 1));
}

static bool shape_is_sound(const struct cadge_mailbox_shape *shape)
{
	return is_power_of_two(shape->lines) && shape->lines <= LINES_MAX &&
	       shape->short_bytes >= DESCRIPTOR_BYTES && shape->short_bytes <= SHORT_BYTES_MAX &&
	       lines_of(shape->short_bytes) <= shape->lines / 4 &&
	       (!shape->bulk_bytes ||
		(is_power_of_two(shape->bulk_bytes) && shape->bulk_bytes <= BULK_BYTES_MAX &&
		 shape->chunk_bytes >= LINE_BYTES && shape->chunk_bytes <= shape->bulk_bytes / 4 &&
		 shape->chunk_bytes % LINE_BYTES == 0));
}

void cadge_mailbox_shape(uint32_t depth_max, uint64_t message_bytes_max,
			 struct cadge_mailbox_shape *shape_out)
{
	const uint32_t short_bytes = SHORT_BYTES_MAX - HEAD_BYTES;
	const uint32_t chunk_bytes = power_of_two(message_bytes_max, 4096, CHUNK_BYTES_MAX);

	*shape_out = (struct cadge_mailbox_shape){
		.lines = power_of_two(UINT64_C(8) * depth_max, 512, 8192),
		.short_bytes = short_bytes,
		.bulk_bytes = message_bytes_max > short_bytes ? 16 * chunk_bytes : 0,
		.chunk_bytes = message_bytes_max > short_bytes ? chunk_bytes + ROUND_ROOM_BYTES : 0,
	};
}

size_t cadge_mailbox_area_bytes(const struct cadge_mailbox_shape *shape)
{
	return bulk_at(shape) + shape->bulk_bytes;
}

size_t cadge_mailbox_staging_bytes(const struct cadge_mailbox_shape *shape, bool put_anywhere)
{
	return LINE_BYTES + BLOCKS * block_bytes(shape) +
	       (put_anywhere ? 0 : (size_t)CHUNKS * shape->chunk_bytes);
}

size_t cadge_mailbox_overhead_bytes(void)
{
	return HEAD_BYTES;
}

/* ---- life ---- */

/* Everything of one connection back to its beginning. Positions start at the second lap: no entry fits zeroed
 * memory. */
static void reset(struct cadge_mailbox *mb)
{
	memset(mb->area, 0, cadge_mailbox_area_bytes(&mb->shape));
	mb->link = NULL;
	mb->in = mb->credited = mb->promised_in = mb->shape.lines;
	mb->bulk_uncredited = mb->assembled_bytes = 0;
	mb->bulk_head = mb->bulk_tail = 0;
	mb->freed_first = mb->freed_next = 0;
	mb->chunk_first = mb->chunk_described = mb->chunk_next = 0;
	mb->serial = mb->visible_serial = mb->wanted_serial = mb->quiet_serial = 0;
	mb->credit_serial = mb->credit_given = 0;
	mb->promise = mb->promised_acked = 0;
	mb->quiet_busy = mb->credit_busy = mb->note_due = mb->greeted = false;
	mb->greeting_due = mb->up = mb->broken = mb->down_reported = mb->blocked = false;
	for (uint32_t i = 0; i < BLOCKS; i++)
		mb->blocks[i].busy = false;
	mb->queue_count = mb->finished_count = mb->idle_count = 0;
	while (mb->idle_count < mb->depth) {
		mb->idle[mb->idle_count] = mb->depth - 1 - mb->idle_count;
		mb->idle_count++;
	}
}

int cadge_mailbox_create(const struct cadge_mailbox_config *config, struct cadge_mailbox **mailbox_out)
{
	const struct cadge_mailbox_shape *shape = &config->shape;
	struct cadge_mailbox *mb;
	uint8_t *staging = config->staging;

	if (!shape_is_sound(shape) || !config->depth_max ||
	    (!shape->bulk_bytes && config->message_bytes_max > shape->short_bytes))
		return CADGE_E_ARGUMENT;
	mb = calloc(1, sizeof(*mb));
	if (!mb)
		return CADGE_E_MEMORY;
	mb->ops = config->ops;
	mb->shape = *shape;
	mb->area = config->area;
	mb->key = config->key;
	mb->peer = config->peer;
	mb->depth = config->depth_max;
	mb->message_bytes_max = config->message_bytes_max;
	mb->credit_at = staging;
	staging += LINE_BYTES;
	for (uint32_t i = 0; i < BLOCKS; i++, staging += block_bytes(shape))
		mb->blocks[i] = (struct block){.op = {mb, OP_BLOCK, i}, .at = staging};
	mb->staged = config->put_anywhere ? NULL : staging;
	for (uint32_t i = 0; i < CHUNKS; i++)
		mb->chunks[i].op = (struct cadge_mailbox_op){mb, OP_CHUNK, i};
	mb->quiet_op = (struct cadge_mailbox_op){mb, OP_QUIET, 0};
	mb->credit_op = (struct cadge_mailbox_op){mb, OP_CREDIT, 0};
	mb->sends = calloc(mb->depth, sizeof(*mb->sends));
	mb->idle = calloc(3 * (size_t)mb->depth, sizeof(*mb->idle));
	if (shape->bulk_bytes)
		mb->assembly = malloc(mb->message_bytes_max);
	if (!mb->sends || !mb->idle || (shape->bulk_bytes && !mb->assembly)) {
		cadge_mailbox_destroy(mb);
		return CADGE_E_MEMORY;
	}
	mb->queue = mb->idle + mb->depth;
	mb->finished = mb->queue + mb->depth;
	reset(mb);
	*mailbox_out = mb;
	return CADGE_DONE;
}

void cadge_mailbox_destroy(struct cadge_mailbox *mb)
{
	if (!mb)
		return;
	free(mb->sends);
	free(mb->idle);
	free(mb->assembly);
	free(mb->freed);
	free(mb);
}

void cadge_mailbox_card(const struct cadge_mailbox *mb, void *card_out)
{
	struct cadge_blob_out out = {.at = card_out, .room_bytes = CADGE_MAILBOX_CARD_BYTES, .ok = true};

	cadge_blob_u32(&out, CARD_MAGIC);
	cadge_blob_u32(&out, mb->shape.lines);
	cadge_blob_u32(&out, mb->shape.short_bytes);
	cadge_blob_u32(&out, mb->shape.bulk_bytes);
	cadge_blob_u32(&out, mb->shape.chunk_bytes);
	cadge_blob_u32(&out, 0);
	cadge_blob_u64(&out, mb->key);
}

int cadge_mailbox_attach(struct cadge_mailbox *mb, const void *card, size_t card_bytes, void *link)
{
	struct cadge_blob_in in = {.at = card, .left_bytes = card_bytes, .ok = true};
	uint32_t magic = cadge_blob_take_u32(&in);
	struct cadge_mailbox_shape peer = {0};
	struct freed *freed;

	peer.lines = cadge_blob_take_u32(&in);
	peer.short_bytes = cadge_blob_take_u32(&in);
	peer.bulk_bytes = cadge_blob_take_u32(&in);
	peer.chunk_bytes = cadge_blob_take_u32(&in);
	cadge_blob_take_u32(&in);
	mb->peer_key = cadge_blob_take_u64(&in);
	if (!in.ok || in.left_bytes || magic != CARD_MAGIC || !shape_is_sound(&peer) || !link || mb->link)
		return CADGE_E_ARGUMENT;
	if (peer.lines > mb->freed_size) {
		freed = realloc(mb->freed, peer.lines * sizeof(*freed));
		if (!freed)
			return CADGE_E_MEMORY;
		mb->freed = freed;
		mb->freed_size = peer.lines;
	}
	mb->peer_shape = peer;
	mb->out = mb->acked = mb->settled = mb->promised_acked = peer.lines;
	mb->short_bytes = peer.short_bytes < mb->shape.short_bytes ? peer.short_bytes : mb->shape.short_bytes;
	mb->chunk_bytes = mb->staged && mb->shape.chunk_bytes < peer.chunk_bytes ? mb->shape.chunk_bytes
										 : peer.chunk_bytes;
	mb->link = link;
	mb->greeting_due = true;
	return CADGE_DONE;
}

void cadge_mailbox_detach(struct cadge_mailbox *mb)
{
	mb->key = fold(mb->key ^ UINT64_C(0xa0761d6478bd642f), UINT64_C(0xe7037ed1a0b428db));
	reset(mb);
}

void cadge_mailbox_fail(struct cadge_mailbox *mb)
{
	if (mb->link)
		mb->broken = true;
}

/* ---- receiving ---- */

/* The kind of the entry at the next position, or 0 where it has not arrived whole. */
static unsigned int next_entry(const struct cadge_mailbox *mb, const uint8_t **entry_out, size_t *bytes_out)
{
	const uint8_t *entry = mb->area + (mb->in & (mb->shape.lines - 1)) * LINE_BYTES;
	const uint64_t what = word_at(entry + 8);
	const size_t bytes = what >> 32 & 0xffffff;

	if ((uint32_t)what != (uint32_t)mb->in || bytes > mb->shape.short_bytes)
		return 0;
	if (word_at(entry) != check_of(mb->key, mb->in, entry + 8, (HEAD_BYTES + padded(bytes)) / 8 - 1))
		return 0;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	/* The first look may have met the old kind and the new position: writers need not write whole words. */
	if (word_at(entry + 8) != what)
		return 0;
	*entry_out = entry;
	*bytes_out = bytes;
	return (unsigned int)(what >> 56);
}

static void deliver(struct cadge_mailbox *mb, struct cadge_sink *sink, const void *data, size_t bytes)
{
	sink->recv(sink, mb->peer, data, bytes, NULL);
}

/* A piece of a long message: lent where it lies if it is whole. Returns events, or -1 for what no peer of
 * ours sends. */
static int take_chunk(struct cadge_mailbox *mb, struct cadge_sink *sink, const uint8_t *descriptor)
{
	const uint64_t total = cadge_load64(descriptor), offset = cadge_load64(descriptor + 8);
	const uint32_t at = cadge_load32(descriptor + 16), bytes = cadge_load32(descriptor + 20);
	const uint8_t *data = mb->area + bulk_at(&mb->shape) + at;
	int events = 0;

	if (total > mb->message_bytes_max || offset != mb->assembled_bytes || offset > total ||
	    bytes > total - offset || at > mb->shape.bulk_bytes || bytes > mb->shape.bulk_bytes - at)
		return -1;
	if (bytes == total) {
		deliver(mb, sink, data, bytes);
		events++;
	} else {
		memcpy(mb->assembly + offset, data, bytes);
		mb->copied_bytes += bytes;
		mb->assembled_bytes += bytes;
		if (mb->assembled_bytes == total) {
			mb->assembled_bytes = 0;
			deliver(mb, sink, mb->assembly, total);
			events++;
		}
	}
	mb->bulk_uncredited += (bytes + LINE_BYTES - 1) & ~(LINE_BYTES - 1);
	return events;
}

static int receive(struct cadge_mailbox *mb, struct cadge_sink *sink)
{
	const uint8_t *entry;
	size_t bytes;
	int events = 0;

	for (unsigned int n = 0; n < BURST && (mb->up || !mb->greeted);
	     n++) { /* up comes before the first message */
		const unsigned int kind = next_entry(mb, &entry, &bytes);
		uint64_t acked;
		int more = 1;

		if (!kind)
			break;
		acked = cadge_load64(entry + 16);
		if (acked > mb->acked && acked <= mb->out)
			mailbox_acknowledge(mb, acked);
		if (kind == ENTRY_SHORT) {
			deliver(mb, sink, entry + HEAD_BYTES, bytes);
		} else if (kind == ENTRY_CHUNK && bytes == DESCRIPTOR_BYTES) {
			more = take_chunk(mb, sink, entry + HEAD_BYTES);
		} else {
			mb->greeted = kind == ENTRY_GREETING;
			more = mb->greeted ? 0 : -1;
		}
		if (more < 0) {
			mb->broken = true;
			break;
		}
		events += more;
		mb->in = after(mb->in, lines_of(bytes), mb->shape.lines);
	}
	return events;
}

/* What has to be told besides messages. */
static int report(struct cadge_mailbox *mb, struct cadge_sink *sink)
{
	int events = 0;

	if (mb->greeted && !mb->greeting_due && !mb->up && !mb->broken) {
		mb->up = true;
		sink->up(sink, mb->peer);
		events++;
	}
	while (mb->broken && mb->queue_count)
		mailbox_send_issued(mb, &mb->sends[mb->queue[mb->queue_first]], CADGE_E_DOWN);
	while (mb->finished_count) {
		const uint32_t number = mb->finished[mb->finished_first];
		const uint64_t token = mb->sends[number].token;
		const int code = mb->sends[number].code;

		mb->finished_first = (mb->finished_first + 1) % mb->depth;
		mb->finished_count--;
		mb->idle[mb->idle_count++] = number;
		sink->sent(sink, mb->peer, token, code);
		events++;
	}
	if (mb->broken && !mb->down_reported) {
		mb->down_reported = true;
		sink->down(sink, mb->peer, CADGE_E_DOWN);
		events++;
	}
	return events;
}

int cadge_mailbox_poll(struct cadge_mailbox *mb, struct cadge_sink *sink)
{
	int events;

	if (!mb->link)
		return 0;
	events = mb->broken ? 0 : receive(mb, sink);
	if (!mb->broken && (mb->queue_count || mb->chunk_next != mb->chunk_first || mb->greeting_due ||
			    mb->note_due || mailbox_must_settle(mb) || mailbox_owes_credit(mb)))
		mailbox_pump(mb);
	if (mb->finished_count || !mb->up || mb->broken)
		events += report(mb, sink);
	return events;
}

void cadge_mailbox_notified(struct cadge_mailbox *mb, const void *note)
{
	const uint64_t in = cadge_load64(note), acked = cadge_load64((const uint8_t *)note + 8);

	mb->promised_in = in > mb->promised_in ? in : mb->promised_in;
	mb->promised_acked = acked > mb->promised_acked ? acked : mb->promised_acked;
}

bool cadge_mailbox_may_sleep(struct cadge_mailbox *mb)
{
	const uint64_t acked = mb->acked;
	const uint8_t *entry;
	size_t bytes;

	if (!mb->link)
		return true;
	if (mb->blocked || mb->note_due || mb->greeting_due || mb->finished_count ||
	    (mb->broken && !mb->down_reported))
		return false;
	if (mb->broken)
		return true;
	mailbox_poll_credit(mb);
	return mb->acked == acked && mb->in >= mb->promised_in && mb->acked >= mb->promised_acked &&
	       !next_entry(mb, &entry, &bytes) && !mailbox_owes_credit(mb);
}

void cadge_mailbox_counters(const struct cadge_mailbox *mb,
			    void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	each(arg, "mailbox_library_busies", mb->busies);
	each(arg, "mailbox_copied_bytes", mb->copied_bytes);
	each(arg, "mailbox_credits", mb->credits);
	each(arg, "mailbox_quiets", mb->quiets);
}
