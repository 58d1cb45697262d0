/* SPDX-License-Identifier: BSD-3-Clause */
/* BIP: the send that is outstanding. */
#include "bip/bip_state.h"

static void end_send(struct bip *bip, int code)
{
	struct bip_send *send = &bip->send;
	struct cadge_remote **alone = &bip->peer[send->peer].regions[BIP_REGIONS_MAX];

	send->code = code;
	send->step = ENDED;
	if (*alone && !send->pending) {
		cadge_wire_detach(*alone);
		*alone = NULL;
	}
}

/* Stops a send; what the wire has of it ends first, since it has the caller's buffers. */
static void stop_send(struct bip_send *send, int code)
{
	send->code = code;
	send->step = DRAINING;
}

static void put_pieces(struct bip *bip, struct cadge_link *link)
{
	struct bip_send *send = &bip->send;

	for (; send->at < send->count; send->at++) {
		const struct cadge_iov *piece = &send->pieces[send->at];
		const int code = cadge_wire_put(link, piece->base, piece->bytes, send->remote,
						send->offset_bytes, send->serial);

		if (code == CADGE_BUSY)
			return;
		if (UNLIKELY(code < 0)) {
			stop_send(send, code);
			return;
		}
		send->pending += code == CADGE_QUEUED;
		send->offset_bytes += piece->bytes;
	}
	send->step = bip->in_order ? ENDING : QUIETING;
}

static void quiet(struct bip_send *send, struct cadge_link *link)
{
	const int code = cadge_wire_quiet(link, send->serial);

	if (code == CADGE_BUSY)
		return;
	send->pending += code == CADGE_QUEUED;
	send->step = ENDING;
	if (UNLIKELY(code < 0))
		stop_send(send, code);
}

static void report_end(struct bip *bip, struct bip_peer *peer)
{
	uint8_t *packet = bip_take(bip, peer, END, bip->send.tag);
	const int code = packet ? bip_send_packet(bip, peer, packet, BIP_HEAD_BYTES) : CADGE_BUSY;

	if (code != CADGE_BUSY)
		stop_send(&bip->send, code);
}

void bip_send_on(struct bip *bip)
{
	struct bip_send *send = &bip->send;
	struct bip_peer *peer = &bip->peer[send->peer];

	if (send->step == PUTTING)
		put_pieces(bip, peer->link);
	if (send->step == QUIETING)
		quiet(send, peer->link);
	if (send->step == ENDING && (bip->in_order || !send->pending))
		report_end(bip, peer);
	if (send->step == DRAINING && !send->pending)
		end_send(bip, send->code);
}

static __attribute__((noinline)) int ask(struct bip *bip, struct bip_peer *peer, uint32_t tag,
					 const struct cadge_iov *pieces, uint32_t count, size_t bytes)
{
	struct bip_send *send = &bip->send;
	uint8_t *packet;
	int code;

	if (bytes / BIP_WORD_BYTES > UINT32_MAX)
		return CADGE_E_TOO_LARGE;
	packet = bip_take(bip, peer, REQUEST, tag);
	if (!packet)
		return CADGE_BUSY;
	cadge_store32(packet + BIP_HEAD_BYTES, (uint32_t)(bytes / BIP_WORD_BYTES));
	code = bip_send_packet(bip, peer, packet, REQUEST_BYTES);
	if (code != CADGE_DONE)
		return code;
	*send = (struct bip_send){.step = ASKED,
				  .peer = (uint32_t)(peer - bip->peer),
				  .tag = tag,
				  .serial = send->serial + 1,
				  .count = count};
	memcpy(send->pieces, pieces, count * sizeof(*pieces));
	return CADGE_QUEUED;
}

int bip_tisend(struct bip *bip, uint32_t number, uint32_t tag, const struct cadge_iov *pieces, uint32_t count)
{
	struct bip_peer *peer = &bip->peer[number];
	const size_t bytes = cadge_iov_bytes(pieces, count);
	uint8_t *packet;

	if (UNLIKELY(bip->broken))
		return bip->broken;
	if (UNLIKELY(bip->send.step != IDLE || bytes % BIP_WORD_BYTES || count > BIP_PIECES_MAX))
		return CADGE_E_ARGUMENT;
	if (UNLIKELY(!peer->up))
		return peer->link && !peer->down ? CADGE_BUSY : CADGE_E_DOWN;
	if (UNLIKELY(tag >= peer->tags))
		return CADGE_E_ARGUMENT;
	if (bytes > peer->short_bytes)
		return ask(bip, peer, tag, pieces, count, bytes);
	packet = bip_take(bip, peer, SHORT, tag);
	if (UNLIKELY(!packet))
		return CADGE_BUSY;
	cadge_iov_gather(pieces, count, packet + BIP_HEAD_BYTES);
	return bip_send_packet(bip, peer, packet, BIP_HEAD_BYTES + bytes);
}

int bip_stest(struct bip *bip)
{
	struct bip_send *send = &bip->send;

	if (send->step == IDLE)
		return CADGE_E_ARGUMENT;
	if (send->step != ENDED)
		return CADGE_BUSY;
	send->step = IDLE;
	return send->code;
}

/* Memory of the peer that a grant names; NULL: there is no such thing. */
static const struct cadge_remote *remote_of(struct bip_peer *peer, uint32_t number, struct cadge_blob_in *key)
{
	struct cadge_remote **known = &peer->regions[cadge_least(number, BIP_REGIONS_MAX)];

	if (key->left_bytes) {
		if (*known)
			cadge_wire_detach(*known);
		*known = NULL;
		if (cadge_wire_attach(peer->link, key, known) != CADGE_DONE)
			*known = NULL;
	}
	return *known;
}

void bip_on_grant(struct bip *bip, uint32_t number, uint32_t tag, const uint8_t *data, size_t bytes)
{
	struct bip_send *send = &bip->send;
	struct cadge_blob_in in = {
		.at = data + BIP_HEAD_BYTES, .left_bytes = bytes - BIP_HEAD_BYTES, .ok = true};
	const uint32_t region = cadge_blob_take_u32(&in);
	const uint64_t offset_bytes = cadge_blob_take_u64(&in);

	if (!in.ok || send->step != ASKED || send->peer != number || send->tag != tag) {
		bip->packets_refused++;
		return;
	}
	send->offset_bytes = offset_bytes;
	send->remote = remote_of(&bip->peer[number], region, &in);
	if (!send->remote) {
		bip->packets_refused++;
		end_send(bip, CADGE_E_REFUSED);
		return;
	}
	if (cadge_wire_reach(send->remote, CADGE_MAY_WRITE) == CADGE_PROGRESS_DIRECT)
		bip->long_direct++;
	else
		bip->long_by_library++;
	send->step = PUTTING;
	bip_send_on(bip);
}

void bip_on_ended(void *arg, uint32_t peer, uint64_t token, int code)
{
	struct bip *bip = arg;
	struct bip_send *send = &bip->send;

	(void)peer;
	if (token != send->serial || !send->pending)
		return;
	send->pending--;
	if (UNLIKELY(code < 0 && send->step != ENDED))
		stop_send(send, code);
	if (send->step >= PUTTING)
		bip_send_on(bip);
}

void bip_forget_send(struct bip *bip, uint32_t peer)
{
	struct bip_send *send = &bip->send;

	if (send->step == IDLE || send->step == ENDED || send->peer != peer)
		return;
	send->code = CADGE_E_DOWN;
	send->step = ENDED;
	send->pending = 0; /* what still ends is not of this send any more */
}
