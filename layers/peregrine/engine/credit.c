/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flow control. A receiver can hold window_packets that it has not read yet. It shares them out among those
 * who sent lately, and says so in each packet that it sends; one credit is left to each however many they
 * are.
 */
#include "engine.h"

static uint16_t share(uint32_t window, uint32_t among)
{
	const uint32_t each = window / (among ? among : 1);

	return (uint16_t)(each < 1 ? 1 : each > PGR_CREDITS_MAX ? PGR_CREDITS_MAX : each);
}

uint16_t pgr_grant_to_client(struct pgr *pgr, struct pgr_client *client)
{
	client->active_ns = pgr->now_ns;
	return share(pgr->wire->window_packets, pgr->clients_active);
}

uint16_t pgr_grant_to_server(const struct pgr *pgr)
{
	return share(pgr->wire->window_packets, pgr->peers_count);
}
