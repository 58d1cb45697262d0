/* SPDX-License-Identifier: BSD-3-Clause */
/* What an endpoint says of itself: codes, addresses, statistics. */
#include "clients.h"
#include "peer.h"

#include <stdio.h>
#include <stdlib.h>

const char *pgr_code_name(int code)
{
	static const char *const names[] = {
		"done",
		"a wrong argument",
		"too large",
		"out of memory",
		"no answer from the server",
		"the server restarted or died",
		"no such procedure",
		"refused",
		"the server is busy",
		"closed",
		"the wire failed",
		"not permitted",
		"no free port",
		"the deadline has passed",
		"cancelled",
		"there are as many as there may be",
		"nobody is there",
	};

	if (code <= PGR_E_PROCEDURE_OWN)
		return "failed by the procedure";
	if (code == PGR_QUEUED)
		return "queued";
	if (code == PGR_BUSY)
		return "busy";
	return code > 0 || -code >= (int)(sizeof(names) / sizeof(names[0])) ? "unknown code" : names[-code];
}

int pgr_address(const struct pgr *pgr, void *address, size_t *address_bytes_inout)
{
	if (*address_bytes_inout < PGR_ADDRESS_BYTES)
		return PGR_E_TOO_LARGE;
	memcpy(address, pgr->wire->own.bytes, PGR_ADDRESS_BYTES);
	*address_bytes_inout = PGR_ADDRESS_BYTES;
	return PGR_OK;
}

/* Hexadecimal digits; zeros at the end of an address are left out. */
static int read_digits(const char *text, struct pgr_to *to_out)
{
	const size_t digits = strlen(text);

	*to_out = (struct pgr_to){{0}};
	if (!digits || digits % 2 || digits > 2 * sizeof(to_out->bytes) ||
	    strspn(text, "0123456789abcdefABCDEF") != digits)
		return PGR_E_ARGUMENT;
	for (size_t i = 0; i < digits / 2; i++) {
		const char pair[3] = {text[2 * i], text[2 * i + 1], '\0'};

		to_out->bytes[i] = (uint8_t)strtoul(pair, NULL, 16);
	}
	return PGR_OK;
}

static void write_digits(const struct pgr_to *to, char *text, size_t text_bytes)
{
	size_t bytes = sizeof(to->bytes);

	while (bytes > 1 && !to->bytes[bytes - 1])
		bytes--;
	for (size_t i = 0; i < bytes && 2 * i < text_bytes; i++)
		snprintf(text + 2 * i, text_bytes - 2 * i, "%02x", to->bytes[i]);
}

int pgr_resolve(const struct pgr *pgr, const char *text, void *address, size_t *address_bytes_inout)
{
	struct pgr_to to;
	int code;

	if (*address_bytes_inout < PGR_ADDRESS_BYTES)
		return PGR_E_TOO_LARGE;
	if (!text)
		return PGR_E_ARGUMENT;
	code = pgr->wire->ops->resolve ? pgr->wire->ops->resolve(pgr->wire, text, &to)
				       : read_digits(text, &to);
	if (code != PGR_OK)
		return code;
	memcpy(address, to.bytes, sizeof(to.bytes));
	*address_bytes_inout = PGR_ADDRESS_BYTES;
	return PGR_OK;
}

int pgr_address_text(const struct pgr *pgr, const void *address, size_t address_bytes, char *text,
		     size_t text_bytes)
{
	struct pgr_to to = {{0}};

	if (!address_bytes || address_bytes > sizeof(to.bytes) || !text_bytes)
		return PGR_E_ARGUMENT;
	memcpy(to.bytes, address, address_bytes);
	if (pgr->wire->ops->text)
		pgr->wire->ops->text(pgr->wire, &to, text, text_bytes);
	else
		write_digits(&to, text, text_bytes);
	return PGR_OK;
}

/* Writes no further than the caller's struct goes, and leaves its size. */
static int fill(void *out, const void *from, size_t from_bytes)
{
	size_t bytes;

	memcpy(&bytes, out, sizeof(bytes));
	if (bytes <= sizeof(bytes))
		return PGR_E_ARGUMENT;
	if (bytes > from_bytes)
		bytes = from_bytes;
	memcpy((uint8_t *)out + sizeof(bytes), (const uint8_t *)from + sizeof(bytes), bytes - sizeof(bytes));
	return PGR_OK;
}

int pgr_stats(const struct pgr *pgr, struct pgr_stats *stats_out)
{
	struct pgr_stats stats = pgr->stats;

	stats.clients = pgr->clients_count;
	stats.server_bytes_per_client = sizeof(struct pgr_client) + sizeof(struct pgr_client *);
	for (const struct pgr_peer *peer = pgr->peers; peer; peer = peer->next)
		if (peer->rto_ns > stats.rto_ns)
			stats.rto_ns = peer->rto_ns;
	return fill(stats_out, &stats, sizeof(stats));
}

int pgr_peer_stats(const struct pgr_peer *peer, struct pgr_peer_stats *stats_out)
{
	const uint64_t now_ns = pgr_now(peer->pgr);
	const struct pgr_peer_stats stats = {
		.round_trip_ns = peer->srtt_ns,
		.variation_ns = peer->rttvar_ns,
		.rto_ns = peer->rto_ns,
		.silent_ns = peer->last_packet_ns ? now_ns - peer->last_packet_ns : UINT64_MAX,
		.outstanding = (uint32_t)__builtin_popcountll(~peer->free),
		.under_way = peer->under_way,
		.credits = peer->credits,
		.packet_bytes = peer->packet_bytes,
	};

	return fill(stats_out, &stats, sizeof(stats));
}

size_t pgr_packet_bytes(const struct pgr *pgr)
{
	return pgr->single_bytes;
}

void pgr_why(const struct pgr *pgr, char *text, size_t text_bytes)
{
	char whom[PGR_ADDRESS_TEXT_BYTES];

	if (text_bytes)
		text[0] = '\0';
	if (!pgr->wire->refused || pgr_address_text(pgr, pgr->wire->refused_to.bytes, PGR_ADDRESS_BYTES, whom,
						    sizeof(whom)) != PGR_OK)
		return;
	snprintf(text, text_bytes, "%s: %s", whom, strerror(pgr->wire->refused));
}

void pgr_describe(const struct pgr *pgr, char *text, size_t text_bytes)
{
	pgr->wire->ops->describe(pgr->wire, text, text_bytes);
}
