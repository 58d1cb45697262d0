/* SPDX-License-Identifier: BSD-3-Clause */
/* The procedures of an endpoint, sorted by their numbers. */
#include "engine.h"

struct pgr_procedure *pgr_procedure_of(struct pgr *pgr, uint32_t number)
{
	struct pgr_procedure *first = pgr->procedures;
	uint32_t left = pgr->procedures_count;

	if (PGR_LIKELY(pgr->recent_procedure && pgr->recent_number == number))
		return pgr->recent_procedure;
	pgr->recent_number = number;

	while (left) { /* sorted */
		const uint32_t half = left / 2;

		if (first[half].number == number)
			return pgr->recent_procedure = &first[half];
		if (first[half].number < number) {
			first += half + 1;
			left -= half + 1;
		} else {
			left = half;
		}
	}
	/* the highest number of all serves the rest */
	first = pgr->procedures_count ? &pgr->procedures[pgr->procedures_count - 1] : NULL;
	pgr->recent_procedure = first && first->number == PGR_ANY_PROCEDURE ? first : NULL;
	return pgr->recent_procedure;
}

int pgr_serve(struct pgr *pgr, uint32_t procedure, const struct pgr_signature *signature,
	      pgr_handler *handler, void *arg)
{
	const struct pgr_procedure *there = pgr_procedure_of(pgr, procedure);
	uint32_t at = pgr->procedures_count;

	if (!pgr->here)
		return PGR_E_CLOSED;
	if (!handler || (there && there->number == procedure))
		return PGR_E_ARGUMENT;
	if (at == PGR_PROCEDURES_MAX)
		return PGR_E_FULL;
	pgr->recent_procedure = NULL;
	for (; at && pgr->procedures[at - 1].number > procedure; at--)
		pgr->procedures[at] = pgr->procedures[at - 1];
	pgr->procedures[at] = (struct pgr_procedure){.number = procedure, .handler = handler, .arg = arg};
	if (signature) {
		pgr->procedures[at].has_signature = true;
		pgr->procedures[at].signature = *signature;
	}
	pgr->procedures_count++;
	return PGR_OK;
}
