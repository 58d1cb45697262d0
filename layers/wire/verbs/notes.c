/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notes of the wire on verbs. Where no receive is posted the sender's device waits, and all puts behind it. So each end says how
 * many receives it has posted for them, and by a write how many it has taken. A peer that has so many to take is awake.
 */
#include "wire/verbs/state.h"

static uint8_t *credit_line(const struct cadge_link *link)
{
	return link->queue.word + verbs_own_bytes(&link->wire->verbs);
}

/* How many the peer has taken: a number and its complement, or the one before. */
static uint32_t acknowledged(const struct cadge_link *link)
{
	const uint64_t word =
		__atomic_load_n((const uint64_t *)(const void *)credit_line(link), __ATOMIC_ACQUIRE);

	return (uint32_t)word == (uint32_t)~(word >> 32) ? (uint32_t)word : link->notes.acknowledged;
}

int cadge_wire_note(struct cadge_link *link, const void *note)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	const struct verbs_op op = {.kind = VERBS_SILENT};
	struct wire_notes *notes = &link->notes;
	int code;

	if (!notes->peer_room)
		return CADGE_DONE;
	notes->acknowledged = acknowledged(link);
	if (notes->sent - notes->acknowledged >= notes->peer_room)
		return CADGE_BUSY;
	code = verbs_issue_copy(&link->queue, &wr, note, CADGE_WIRE_NOTE_BYTES, &op);
	notes->sent += code == CADGE_DONE;
	return code;
}

static bool owes(const struct cadge_link *link)
{
	return link->state.up && !link->queue.broken &&
	       link->notes.taken - link->notes.credited >= link->wire->notes / 2;
}

bool cadge_wire_owes_credit(const struct cadge_wire *wire)
{
	for (uint32_t i = 0; wire->notes && i < wire->verbs.peers; i++)
		if (owes(&wire->links[i]))
			return true;
	return false;
}

void cadge_wire_notes_credit(struct cadge_wire *wire)
{
	for (uint32_t i = 0; i < wire->verbs.peers; i++) {
		struct cadge_link *link = &wire->links[i];
		const uint64_t word = (uint64_t)~link->notes.taken << 32 | link->notes.taken;
		struct ibv_send_wr wr = {
			.opcode = IBV_WR_RDMA_WRITE,
			.wr.rdma = {.remote_addr = link->notes.credit.addr, .rkey = link->notes.credit.rkey}};
		const struct verbs_op op = {.kind = VERBS_SILENT};

		if (owes(link) && verbs_issue_copy(&link->queue, &wr, &word, sizeof(word), &op) == CADGE_DONE)
			link->notes.credited = link->notes.taken;
	}
}

void cadge_wire_notes_address(const struct cadge_link *link, struct cadge_blob_out *blob)
{
	cadge_blob_u32(blob, link->wire->notes);
	verbs_far_put(blob, credit_line(link), link->wire->verbs.own.mr->rkey);
}

void cadge_wire_notes_take(struct cadge_link *link, struct cadge_blob_in *blob)
{
	link->notes = (struct wire_notes){.peer_room = cadge_blob_take_u32(blob)};
	link->notes.credit = verbs_far_take(blob);
}
