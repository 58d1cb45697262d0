/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * VMMC: redirection. The exporter tells the importer's library of the new buffer (REDIRECT). From then on that writes there, and
 * answers with the pieces that it has written before, once they are visible (LANDED). The exporter copies these, and says so
 * (COPIED). Until then no update may overlap one of them, since the copy would write over what is newer.
 */
#include <stdlib.h>

#include "vmmc/state.h"

/* ---- pieces ---- */

static void merge(struct vmmc_source *source, uint32_t number, struct vmmc_piece *into)
{
	struct vmmc_piece *piece = &source->pieces[number];

	into->first = piece->first < into->first ? piece->first : into->first;
	into->end = piece->end > into->end ? piece->end : into->end;
	*piece = source->pieces[--source->pieces_count];
}

/* The piece with the smallest gap to this one. */
static uint32_t nearest(const struct vmmc_source *source, const struct vmmc_piece *to)
{
	uint64_t least = UINT64_MAX;
	uint32_t number = 0;

	for (uint32_t i = 0; i < source->pieces_count; i++) {
		const struct vmmc_piece *piece = &source->pieces[i];
		const uint64_t gap = piece->end < to->first ? to->first - piece->end : piece->first - to->end;

		if (gap < least) {
			least = gap;
			number = i;
		}
	}
	return number;
}

/* One more piece was written; those that touch become one. */
static void add_piece(struct vmmc_source *source, uint64_t first, uint64_t end)
{
	struct vmmc_piece piece = {first, end};

	for (uint32_t i = 0; i < source->pieces_count;)
		if (source->pieces[i].first <= piece.end && piece.first <= source->pieces[i].end) {
			merge(source, i, &piece);
			i = 0;
		} else {
			i++;
		}
	if (source->pieces_count == VMMC_PIECES_MAX)
		merge(source, nearest(source, &piece), &piece);
	source->pieces[source->pieces_count++] = piece;
}

static bool overlaps(const struct vmmc_source *source, uint64_t first, uint64_t end)
{
	for (uint32_t i = 0; i < source->pieces_count; i++)
		if (source->pieces[i].first < end && first < source->pieces[i].end)
			return true;
	return false;
}

/* ---- the importer's side ---- */

struct cadge_remote *vmmc_steer(const struct vmmc_import *to, uint64_t offset_bytes, size_t bytes)
{
	const struct vmmc_source *source = to->source;

	if (!source->instead)
		return to->remote;
	return source->copying && overlaps(source, offset_bytes, offset_bytes + bytes) ? NULL
										       : source->instead;
}

void vmmc_steered(struct vmmc_import *to, uint64_t offset_bytes, size_t bytes)
{
	if (to->source->instead)
		to->link->vmmc->updates_redirected++;
	else if (bytes)
		add_piece(to->source, offset_bytes, offset_bytes + bytes);
}

static struct vmmc_source **find_source(struct vmmc_link *link, uint32_t slot, uint32_t generation)
{
	struct vmmc_source **at = &link->sources;

	while (*at && ((*at)->slot != slot || (*at)->generation != generation))
		at = &(*at)->next;
	return at;
}

struct vmmc_source *vmmc_source_of(struct vmmc_link *link, uint32_t slot, uint32_t generation)
{
	struct vmmc_source **at = find_source(link, slot, generation);

	if (!*at)
		*at = calloc(1, sizeof(**at));
	if (*at) {
		(*at)->slot = slot;
		(*at)->generation = generation;
	}
	return *at;
}

void vmmc_forget_source(struct vmmc_link *link, uint32_t slot, uint32_t generation)
{
	struct vmmc_source **at = find_source(link, slot, generation), *source = *at;

	if (!source)
		return;
	*at = source->next;
	if (source->instead)
		cadge_wire_detach(source->instead);
	free(source);
}

static void answer(struct vmmc_link *link, const struct vmmc_head *to, enum control_kind kind,
		   uint32_t detail, const void *more, size_t more_bytes)
{
	const struct vmmc_head head = {
		.kind = kind, .slot = to->slot, .generation = to->generation, .detail = detail};

	vmmc_send_control(link, &head, more, more_bytes);
}

/* From now on updates go to the new buffer. */
static bool follow(struct vmmc_link *link, const struct vmmc_head *head, struct cadge_blob_in *key)
{
	struct vmmc_source *source = vmmc_source_of(link, head->slot, head->generation);
	uint8_t pieces[VMMC_PIECES_MAX * PIECE_BYTES];

	if (!source || source->instead ||
	    cadge_wire_attach(link->wire, key, &source->instead) != CADGE_DONE) {
		answer(link, head, CONTROL_REDIRECT_ACK, 1, NULL, 0);
		return true;
	}
	for (uint32_t i = 0; i < source->pieces_count; i++) {
		cadge_store64(pieces + i * PIECE_BYTES, source->pieces[i].first);
		cadge_store64(pieces + i * PIECE_BYTES + 8, source->pieces[i].end);
	}
	source->copying = source->pieces_count;
	answer(link, head, CONTROL_REDIRECT_ACK, 0, pieces, source->pieces_count * PIECE_BYTES);
	return true;
}

static bool go_back(struct vmmc_link *link, const struct vmmc_head *head)
{
	struct vmmc_source *source = *find_source(link, head->slot, head->generation);

	if (!source || !source->instead)
		return false;
	cadge_wire_detach(source->instead);
	source->instead = NULL;
	answer(link, head, CONTROL_RESTORE_ACK, 0, NULL, 0);
	return true;
}

static bool forget_pieces(struct vmmc_link *link, const struct vmmc_head *head)
{
	struct vmmc_source *source = *find_source(link, head->slot, head->generation);

	if (!source || !source->copying)
		return false;
	source->copying = false;
	source->pieces_count = 0;
	return true;
}

/* ---- the exporter's side ---- */

/* A redirection has ended, or did not begin. */
static void end_redirection(struct vmmc_export *export)
{
	cadge_wire_unexpose(export->vmmc->wire, export->to_region);
	export->to_region = NULL;
	export->to = NULL;
	export->redirection = NOT_REDIRECTED;
}

static void report_redirected(struct vmmc_export *export, int code, uint64_t copied_bytes)
{
	struct vmmc *vmmc = export->vmmc;

	vmmc->happened++;
	vmmc->events.redirected(vmmc->events.arg, export, code, copied_bytes);
}

/* Copies what had landed, as far as it belongs to both buffers; returns how much. */
static uint64_t copy_pieces(const struct vmmc_export *export, const uint8_t *pieces, size_t bytes)
{
	uint64_t copied_bytes = 0;

	for (size_t at = 0; at + PIECE_BYTES <= bytes; at += PIECE_BYTES) {
		const uint64_t first = cadge_load64(pieces + at);
		const uint64_t end = cadge_least(cadge_load64(pieces + at + 8), export->to_bytes);

		if (first >= end)
			continue;
		memcpy(export->to + first, export->base + first, end - first);
		copied_bytes += end - first;
	}
	return copied_bytes;
}

static bool landed(struct vmmc_link *link, struct vmmc_export *export, const struct vmmc_head *head,
		   const uint8_t *pieces, size_t bytes)
{
	uint64_t copied_bytes;

	if (!export || export->redirection != REDIRECTING)
		return false;
	if (head->detail) {
		end_redirection(export);
		report_redirected(export, CADGE_E_MEMORY, 0);
		return true;
	}
	copied_bytes = copy_pieces(export, pieces, bytes);
	export->vmmc->copied_bytes += copied_bytes;
	export->vmmc->redirections++;
	export->redirection = REDIRECTED;
	if (bytes)
		answer(link, head, CONTROL_REDIRECT_DONE, 0, NULL, 0);
	report_redirected(export, CADGE_DONE, copied_bytes);
	return true;
}

static bool restored(struct vmmc_export *export)
{
	if (!export || export->redirection != RESTORING)
		return false;
	end_redirection(export);
	report_redirected(export, CADGE_DONE, 0);
	return true;
}

static int begin_redirection(struct vmmc_link *link, struct vmmc_export *export, void *to, size_t bytes,
			     struct vmmc_head *head)
{
	uint8_t key[MORE_BYTES];
	struct cadge_blob_out out = {.at = key, .room_bytes = sizeof(key), .ok = true};
	int code =
		cadge_wire_expose(export->vmmc->wire, to, bytes, CADGE_MAY_WRITE, &out, &export->to_region);

	if (code != CADGE_DONE)
		return code;
	head->kind = CONTROL_REDIRECT;
	code = vmmc_send_control(link, head, key, out.used_bytes);
	if (code != CADGE_DONE) {
		end_redirection(export);
		return code;
	}
	export->to = to;
	export->to_bytes = bytes;
	export->redirection = REDIRECTING;
	return CADGE_QUEUED;
}

int vmmc_redirect(struct vmmc_export *export, void *to, size_t bytes)
{
	struct vmmc_head head = {
		.kind = CONTROL_RESTORE, .slot = export->slot, .generation = export->generation};
	struct vmmc_link *link;
	int code;

	if (!(export->flags & VMMC_REDIRECTABLE) || !to != !bytes)
		return CADGE_E_ARGUMENT;
	if (bytes > export->bytes)
		return CADGE_E_TOO_LARGE;
	link = &export->vmmc->links[export->peer];
	if (!link->up || link->down || export->binding != link->nonce_for_peer)
		return link->up ? CADGE_E_DOWN : CADGE_BUSY;
	if (export->redirection == REDIRECTING || export->redirection == RESTORING)
		return CADGE_BUSY;
	if ((export->redirection == REDIRECTED) != !to)
		return CADGE_E_ARGUMENT;
	if (to)
		return begin_redirection(link, export, to, bytes, &head);
	code = vmmc_send_control(link, &head, NULL, 0);
	if (code != CADGE_DONE)
		return code;
	export->redirection = RESTORING;
	return CADGE_QUEUED;
}

/* ---- both ---- */

bool vmmc_redirect_control(struct vmmc_link *link, const struct vmmc_head *head, const uint8_t *more,
			   size_t more_bytes)
{
	struct cadge_blob_in key = {.at = more, .left_bytes = more_bytes, .ok = true};

	switch (head->kind) {
	case CONTROL_UNEXPORT: vmmc_unexported(link, head); return true;
	case CONTROL_UNEXPORT_ACK: return vmmc_unexport_answered(link, head);
	case CONTROL_REDIRECT: return head->generation > link->gone[head->slot] && follow(link, head, &key);
	case CONTROL_REDIRECT_ACK:
		return landed(link, vmmc_find_export(link->vmmc, link->peer, head), head, more, more_bytes);
	case CONTROL_REDIRECT_DONE: return forget_pieces(link, head);
	case CONTROL_RESTORE: return go_back(link, head);
	case CONTROL_RESTORE_ACK: return restored(vmmc_find_export(link->vmmc, link->peer, head));
	default: return false;
	}
}

void vmmc_end_redirections(struct vmmc_link *link, bool reports)
{
	for (uint32_t i = 0; i < VMMC_EXPORTS_MAX; i++) {
		struct vmmc_export *export = link->vmmc->exports[i];

		if (!export || export->peer != link->peer || export->redirection == NOT_REDIRECTED)
			continue;
		end_redirection(export);
		if (reports)
			report_redirected(export, CADGE_E_DOWN, 0);
	}
}
