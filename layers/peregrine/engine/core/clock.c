/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock, round trips (RFC 6298, with Karn's rule), and how long a call waits for its answer. */
#include "peer.h"
#include "slot.h"

#include <time.h>

uint64_t pgr_now(struct pgr *pgr)
{
	struct timespec now;

	if (PGR_UNLIKELY(pgr->wire->ops->now_ns != NULL))
		return pgr->now_ns = pgr->wire->ops->now_ns();
	clock_gettime(CLOCK_BOOTTIME, &now); /* goes on while the machine sleeps, as other machines do */
	return pgr->now_ns = (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void pgr_round_trip(struct pgr_peer *peer, uint64_t sample_ns)
{
	const uint64_t least_ns = peer->pgr->config.rto_min_ns;

	if (!peer->srtt_ns) {
		peer->srtt_ns = sample_ns;
		peer->rttvar_ns = sample_ns / 2;
	} else {
		const uint64_t off_ns =
			peer->srtt_ns > sample_ns ? peer->srtt_ns - sample_ns : sample_ns - peer->srtt_ns;

		peer->rttvar_ns = (3 * peer->rttvar_ns + off_ns) / 4;
		peer->srtt_ns = (7 * peer->srtt_ns + sample_ns) / 8;
	}
	peer->rto_ns = peer->srtt_ns + 4 * peer->rttvar_ns;
	if (peer->rto_ns < least_ns)
		peer->rto_ns = least_ns;
}

uint64_t pgr_backed_off(const struct pgr *pgr, uint64_t rto_ns, uint8_t repeats)
{
	const uint64_t most_ns = pgr->config.give_up_ns / PGR_TRIES_MIN;
	const uint64_t ns = rto_ns << (repeats < PGR_BACKOFF_MAX ? repeats : PGR_BACKOFF_MAX);

	return ns < most_ns ? ns : most_ns;
}

void pgr_service_time(struct pgr_peer *peer, uint64_t took_ns)
{
	const uint64_t most_ns = peer->pgr->config.give_up_ns / PGR_TRIES_MIN;

	pgr_round_trip(peer, took_ns < most_ns ? took_ns : most_ns);
}

uint64_t pgr_slot_timeout(const struct pgr_slot *slot)
{
	const struct pgr_peer *peer = slot->peer;
	const struct pgr *pgr = peer->pgr;
	uint64_t rto_ns = peer->rto_ns;

	if (pgr->reliable)
		return pgr->probe_ns;
	if (!rto_ns) /* no sample yet */
		rto_ns = 5 * pgr->config.rto_min_ns;
	return pgr_backed_off(pgr, rto_ns, slot->repeats);
}

void pgr_slot_arm_repeat(struct pgr_slot *slot)
{
	slot->due_ns = pgr_now(slot->peer->pgr) + pgr_slot_timeout(slot);
}

void pgr_slot_arm(struct pgr_slot *slot)
{
	const struct pgr *pgr = slot->peer->pgr;

	pgr_slot_arm_repeat(slot);
	slot->give_up_ns = pgr->now_ns + pgr->config.give_up_ns;
}

void pgr_slot_arm_first(struct pgr_slot *slot)
{
	pgr_slot_arm(slot);
	slot->claimed_ns = slot->peer->pgr->now_ns;
}
