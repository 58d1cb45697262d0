/* SPDX-License-Identifier: BSD-3-Clause */
/* BIP: queues and receives of tags, and the grants of long messages. */
#include "bip/bip_state.h"

#include <stdlib.h>

static void report_ready(struct bip *bip, struct bip_tag *tag)
{
	if (tag->ready)
		return;
	tag->ready = true;
	tag->next_ready = NULL;
	*bip->ready_end = tag;
	bip->ready_end = &tag->next_ready;
}

bool bip_ready(struct bip *bip, uint32_t *tag_out)
{
	struct bip_tag *tag = bip->ready;

	if (!tag)
		return false;
	bip->ready = tag->next_ready;
	if (!bip->ready)
		bip->ready_end = &bip->ready;
	tag->ready = false;
	*tag_out = bip_tag_number(bip, tag);
	return true;
}

static void release(struct bip *bip, const struct bip_entry *entry)
{
	if (!entry->data)
		return;
	bip->peer[entry->peer].held--;
	cadge_wire_release(bip->wire, entry->data);
}

static void end_receive(struct bip *bip, struct bip_tag *tag, int code)
{
	if (tag->exposed)
		cadge_wire_unexpose(bip->wire, tag->exposed);
	tag->exposed = NULL;
	tag->code = code;
	tag->step = FINISHED;
	report_ready(bip, tag);
}

/* The announced region that holds all of these bytes; BIP_REGIONS_MAX: there is none. */
static uint32_t region_of(const struct bip *bip, const uint8_t *base, size_t bytes)
{
	uint32_t i;

	for (i = 0; i < BIP_REGIONS_MAX; i++) {
		const struct bip_region *region = &bip->region[i];
		const uintptr_t offset_bytes = (uintptr_t)base - (uintptr_t)region->base;

		if (region->region && bytes <= region->bytes && offset_bytes <= region->bytes - bytes)
			break;
	}
	return i;
}

/* Says where the message may be written. DONE or an error of the wire. */
static int write_grant(struct bip *bip, struct bip_tag *tag, struct cadge_blob_out *out, uint32_t number)
{
	const size_t bytes = (size_t)tag->received.words * BIP_WORD_BYTES;
	const struct bip_region *region = &bip->region[number];
	int code = CADGE_DONE;

	cadge_blob_u32(out, number);
	if (number == BIP_REGIONS_MAX) {
		cadge_blob_u64(out, 0);
		code = cadge_wire_expose(bip->wire, tag->buffer, bytes, CADGE_MAY_WRITE, out, &tag->exposed);
		bip->keys_sent += code == CADGE_DONE;
		return code;
	}
	cadge_blob_u64(out, (uint64_t)(tag->buffer - region->base));
	if (!(bip->peer[tag->received.sender].announced >> number & 1)) {
		cadge_blob_raw(out, region->key, region->key_bytes);
		bip->keys_sent++;
	}
	return code;
}

/* Lets the sender write; where the wire has no room, later. */
static void grant(struct bip *bip, struct bip_tag *tag)
{
	struct bip_peer *peer = &bip->peer[tag->received.sender];
	const uint32_t number = region_of(bip, tag->buffer, (size_t)tag->received.words * BIP_WORD_BYTES);
	uint8_t *packet = bip_take(bip, peer, GRANT, bip_tag_number(bip, tag));
	struct cadge_blob_out out = {.at = packet,
				     .room_bytes = GRANT_BYTES + KEY_BYTES_MAX,
				     .used_bytes = BIP_HEAD_BYTES,
				     .ok = true};
	int code;

	tag->step = OWED;
	bip->owed |= !packet;
	if (!packet)
		return;
	code = write_grant(bip, tag, &out, number);
	if (UNLIKELY(code != CADGE_DONE)) {
		cadge_wire_drop(peer->link, packet);
		bip_fail(bip, "the buffer of a receive for tag %u cannot be written to by peers (code %d)",
			 bip_tag_number(bip, tag), code);
		return;
	}
	code = bip_send_packet(bip, peer, packet, out.used_bytes);
	if (UNLIKELY(code != CADGE_DONE)) {
		if (tag->exposed)
			cadge_wire_unexpose(bip->wire, tag->exposed);
		tag->exposed = NULL;
		bip->owed = true; /* unless `down` follows */
		return;
	}
	tag->step = GRANTED;
	if (number < BIP_REGIONS_MAX)
		peer->announced |= 1u << number;
}

void bip_grant_owed(struct bip *bip)
{
	bip->owed = false;
	for (uint32_t i = 0; i < bip->tags; i++)
		if (bip->tag[i].step == OWED && !bip->broken)
			grant(bip, &bip->tag[i]);
}

/* A message takes the receive that is posted. */
static void take_receive(struct bip *bip, struct bip_tag *tag, const struct bip_entry *entry)
{
	tag->received = (struct bip_received){.sender = entry->peer, .words = entry->words};
	if (UNLIKELY(entry->words > tag->room_words)) {
		bip_fail(bip, "a message of %u words for tag %u, whose receive has %u", entry->words,
			 bip_tag_number(bip, tag), tag->room_words);
		end_receive(bip, tag, CADGE_E_TOO_LARGE);
	} else if (entry->data) {
		if (entry->words)
			memcpy(tag->buffer, entry->data + BIP_HEAD_BYTES,
			       (size_t)entry->words * BIP_WORD_BYTES);
		bip->short_copied++;
		end_receive(bip, tag, CADGE_DONE);
	} else {
		grant(bip, tag);
	}
}

/* Whether it is in the queue now: there is no flow control, so one too many is an error. */
static bool enqueue(struct bip *bip, struct bip_tag *tag, const struct bip_entry *entry)
{
	struct bip_peer *peer = &bip->peer[entry->peer];
	uint32_t at = tag->first + tag->count;

	if (UNLIKELY(tag->count == tag->room)) {
		bip_fail(bip, "the queue of tag %u is full: %u messages wait", bip_tag_number(bip, tag),
			 tag->room);
		return false;
	}
	if (UNLIKELY(entry->data && peer->held == bip->held_max)) {
		bip_fail(bip, "%u short messages of peer %u wait", peer->held, entry->peer);
		return false;
	}
	peer->held += entry->data != NULL;
	tag->ring[at < tag->room ? at : at - tag->room] = *entry;
	if (++tag->count > bip->queue_most)
		bip->queue_most = tag->count;
	report_ready(bip, tag);
	return true;
}

static struct bip_entry dequeue(struct bip_tag *tag)
{
	const struct bip_entry entry = tag->ring[tag->first];

	if (++tag->first == tag->room)
		tag->first = 0;
	tag->count--;
	return entry;
}

static enum cadge_keep on_short(struct bip *bip, struct bip_tag *tag, const struct bip_entry *entry)
{
	if (tag->step == POSTED) {
		take_receive(bip, tag, entry);
		return CADGE_TAKEN;
	}
	if (UNLIKELY(!enqueue(bip, tag, entry)))
		return CADGE_TAKEN;
	bip->short_queued++;
	return CADGE_KEEP;
}

/* What belongs to long messages, and what makes no sense. */
static __attribute__((noinline)) void on_long(struct bip *bip, uint32_t peer, uint32_t number,
					      const uint8_t *data, size_t bytes)
{
	struct bip_tag *tag = number < bip->tags ? &bip->tag[number] : NULL;
	struct bip_entry entry = {.peer = peer};

	if (data[0] == REQUEST && bytes == REQUEST_BYTES)
		entry.words = cadge_load32(data + BIP_HEAD_BYTES);
	if (data[0] == GRANT) /* its tag is the peer's */
		bip_on_grant(bip, peer, number, data, bytes);
	else if (entry.words && tag && tag->step == POSTED)
		take_receive(bip, tag, &entry);
	else if (entry.words && tag)
		enqueue(bip, tag, &entry);
	else if (data[0] == END && tag && tag->step == GRANTED && tag->received.sender == peer)
		end_receive(bip, tag, CADGE_DONE);
	else
		bip->packets_refused++;
}

enum cadge_keep bip_on_packet(void *arg, uint32_t number, void *data, size_t bytes)
{
	struct bip *bip = arg;
	const uint8_t *head = data;
	uint32_t tag;

	if (UNLIKELY(bytes < BIP_HEAD_BYTES)) {
		bip->packets_refused++;
		return CADGE_TAKEN;
	}
	tag = (uint32_t)head[2] | (uint32_t)head[3] << 8;
	if (head[0] == SHORT && tag < bip->tags && bytes % BIP_WORD_BYTES == 0) {
		const struct bip_entry entry = {
			.data = data, .peer = number, .words = (uint32_t)(bytes / BIP_WORD_BYTES - 1)};

		return on_short(bip, &bip->tag[tag], &entry);
	}
	on_long(bip, number, tag, data, bytes);
	return CADGE_TAKEN;
}

int bip_tirecv(struct bip *bip, uint32_t number, void *buffer, uint32_t words)
{
	struct bip_tag *tag = &bip->tag[number];

	if (UNLIKELY(bip->broken))
		return bip->broken;
	if (tag->step != NONE)
		return CADGE_E_ARGUMENT;
	tag->buffer = buffer;
	tag->room_words = words;
	tag->step = POSTED;
	if (tag->count) {
		const struct bip_entry entry = dequeue(tag);

		take_receive(bip, tag, &entry);
		release(bip, &entry);
	}
	return CADGE_DONE;
}

int bip_rtest(struct bip *bip, uint32_t number, struct bip_received *received_out)
{
	struct bip_tag *tag = &bip->tag[number];

	if (tag->step == NONE)
		return CADGE_E_ARGUMENT;
	if (tag->step != FINISHED)
		return CADGE_BUSY;
	tag->step = NONE;
	*received_out = tag->received;
	return tag->code;
}

int bip_tgetmsg(struct bip *bip, uint32_t number, struct bip_message *message_out)
{
	struct bip_tag *tag = &bip->tag[number];
	struct bip_entry entry;

	if (UNLIKELY(tag->step != NONE))
		return CADGE_E_ARGUMENT;
	if (!tag->count)
		return CADGE_BUSY;
	if (UNLIKELY(!tag->ring[tag->first].data))
		return CADGE_E_TOO_LARGE;
	entry = dequeue(tag);
	*message_out = (struct bip_message){
		.words = entry.data + BIP_HEAD_BYTES, .count = entry.words, .sender = entry.peer};
	return CADGE_DONE;
}

void bip_tfreemsg(struct bip *bip, const struct bip_message *message)
{
	bip->peer[message->sender].held--;
	cadge_wire_release(bip->wire, (void *)(uintptr_t)(message->words - BIP_HEAD_BYTES));
}

int bip_taginit(struct bip *bip, uint32_t number, uint32_t messages)
{
	struct bip_tag *tag = &bip->tag[number];
	struct bip_entry *ring;
	uint32_t count = 0;

	if (number >= bip->tags || !messages || messages < tag->count)
		return CADGE_E_ARGUMENT;
	ring = calloc(messages, sizeof(*ring));
	if (!ring)
		return CADGE_E_MEMORY;
	while (tag->count)
		ring[count++] = dequeue(tag);
	free(tag->ring);
	tag->ring = ring;
	tag->first = 0;
	tag->count = count;
	tag->room = messages;
	return CADGE_DONE;
}

void bip_forget_messages(struct bip *bip, uint32_t peer, bool all)
{
	for (struct bip_tag *tag = bip->tag; tag < bip->tag + bip->tags; tag++) {
		for (uint32_t i = tag->count; i; i--) { /* once round the ring, without what goes */
			const struct bip_entry entry = dequeue(tag);

			if (entry.peer != peer || (entry.data && !all))
				tag->ring[(tag->first + tag->count++) % tag->room] = entry;
			else
				release(bip, &entry);
		}
		if ((tag->step == OWED || tag->step == GRANTED) && tag->received.sender == peer)
			end_receive(bip, tag, CADGE_E_DOWN);
	}
}

void bip_free_tags(struct bip *bip)
{
	for (uint32_t i = 0; bip->tag && i < bip->tags; i++) {
		struct bip_tag *tag = &bip->tag[i];

		while (tag->count) {
			const struct bip_entry entry = dequeue(tag);

			release(bip, &entry);
		}
		free(tag->ring);
	}
	free(bip->tag);
}
