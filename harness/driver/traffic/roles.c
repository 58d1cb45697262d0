/* SPDX-License-Identifier: BSD-3-Clause */
/* The acting role of patterns that exchange requests and replies, on top of the requester. */
#include "traffic/roles.h"

enum drv_form drv_call_form(const struct drv_ability *both)
{
	return both->caps & CADGE_CAP_RPC ? DRV_FORM_NATIVE : DRV_FORM_EMULATED;
}

void drv_calls_need(uint64_t request_bytes, uint64_t reply_bytes, uint64_t depth, struct drv_needs *needs_out)
{
	needs_out->message_bytes =
		(request_bytes > reply_bytes ? request_bytes : reply_bytes) + DRV_RPC_TRAILER_BYTES;
	needs_out->depth = (uint32_t)depth;
}

int drv_exchange_negotiate(const struct drv_exchange *exchange, const char *request, const char *reply,
			   const struct drv_offer *offer, struct drv_fail *fail)
{
	if (exchange->depth > DRV_REQUESTER_DEPTH_MAX)
		return drv_fail_set(fail, DRV_DEPTH_TOO_DEEP,
				    "wanted %u operations outstanding, the driver keeps at most %u",
				    exchange->depth, DRV_REQUESTER_DEPTH_MAX);
	if (drv_reply_thread_negotiate(exchange, &offer->both, fail))
		return -1;
	return drv_negotiate_message(drv_form_bytes(exchange->form, exchange->request_bytes), request,
				     &offer->both, fail) ||
			       drv_negotiate_message(drv_form_bytes(exchange->form, exchange->reply_bytes),
						     reply, &offer->both, fail)
		       ? -1
		       : 0;
}

int drv_requester_role_prepare(struct drv_play *play, struct drv_exchange exchange, struct drv_fail *fail)
{
	struct drv_requester *requester = play->state;
	struct drv_samples *samples = drv_record_first_samples(play->record, fail);

	if (!samples || drv_requester_start(requester, play->engine, exchange, samples, fail))
		return -1;
	play->engine->sink = requester->progress.sink;
	play->sleep = exchange.depth == 1 ? DRV_SLEEP_EACH : DRV_SLEEP_FREE;
	return 0;
}

void drv_requester_role_stop(struct drv_play *play)
{
	drv_requester_stop(play->state);
}

int drv_requester_role_verify(struct drv_play *play, uint64_t serial, struct drv_fail *fail)
{
	return drv_requester_verify(play->state, serial, fail);
}

int drv_requester_role_warmup(struct drv_play *play, uint64_t cap_ns, struct drv_fail *fail)
{
	struct drv_requester *requester = play->state;
	const int status = drv_requester_warmup(requester, cap_ns, fail);

	drv_record_warmup(play->record, &requester->warmup);
	return status;
}

int drv_requester_role_measure(struct drv_play *play, struct drv_fail *fail)
{
	return drv_requester_measure(play->state, play->duration_ns, play->record, fail);
}

bool drv_requester_role_settle(struct drv_play *play)
{
	return drv_requester_settle(play->state);
}

void drv_requester_role_phase(struct drv_play *play, const struct drv_phase *phase,
			      struct drv_counts *counts_out)
{
	(void)phase;
	drv_requester_counts(play->state, counts_out);
}
