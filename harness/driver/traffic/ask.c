/* SPDX-License-Identifier: BSD-3-Clause */
/* One request at a time: its start, the answers of a responder, and the steps of the role. */
#include "traffic/ask.h"

static enum cadge_keep on_recv(struct cadge_sink *sink, uint32_t peer, const void *data, size_t bytes,
			       struct cadge_lend *lend)
{
	struct drv_requester *requester = (struct drv_requester *)sink;
	/* of what comes late as well, whose size is another one */
	const size_t expected = bytes < DRV_HEAD_BYTES ? SIZE_MAX : drv_ask_bytes(drv_load64(data));

	(void)peer, (void)lend;
	if (DRV_LIKELY(drv_ask_awaits(requester, data, bytes, expected)))
		drv_ask_take(requester, data, bytes, requester->awaited);
	return CADGE_TAKEN;
}

int drv_ask_start(struct drv_role_run *run, drv_recv_fn recv, uint32_t slots, size_t bytes_max, bool touch,
		  struct drv_fail *fail)
{
	const struct drv_exchange exchange = {.form = DRV_FORM_BARE,
					      .request_bytes = bytes_max,
					      .depth = slots,
					      .seed = run->seed,
					      .touch = touch ? DRV_TOUCH_WRITE_READ : DRV_TOUCH_NONE};
	struct drv_requester *requester = run->state;
	struct drv_port *port = &requester->progress.port;

	if (drv_requester_start(requester, run->engine, exchange, NULL, fail))
		return -1;
	requester->asks = true;
	port->sink.recv = recv ? recv : on_recv;
	port->sink.sent = drv_progress_on_sent;
	/* answers have the seed inverted in their heads */
	port->match = DRV_MATCH_HEAD;
	port->match_word = ~run->seed;
	run->engine->sink = requester->progress.sink;
	run->sleep = DRV_SLEEP_EACH;
	return 0;
}

int drv_call(struct drv_requester *requester, size_t bytes, uint64_t key, uint64_t *span_out,
	     struct drv_fail *fail)
{
	const uint64_t begin = drv_clock_now(&requester->progress.port.engine->clock);
	int status;

	if (drv_ask(requester, 0, bytes, key, fail))
		return -1;
	status = drv_ask_finish(requester, fail);
	*span_out = requester->answered_at - begin;
	return status;
}

int drv_ask_verify(struct drv_role_run *run, uint64_t serial, drv_ask_fn ask, struct drv_fail *fail)
{
	struct drv_requester *requester = run->state;
	uint64_t ignored;
	int status;

	requester->step = DRV_STEP_VERIFY;
	requester->message.full = true;
	requester->message.phase = serial;
	drv_check_phase(&requester->progress.check, true, serial);
	status = ask(run, &ignored, fail);
	requester->message.full = false;
	drv_check_phase(&requester->progress.check, false, serial);
	return status < 0 ? -1 : 0;
}

int drv_ask_warmup(struct drv_role_run *run, uint64_t cap_ns, drv_ask_fn ask, struct drv_fail *fail)
{
	const struct drv_clock *clock = &run->engine->clock;
	struct drv_requester *requester = run->state;
	struct drv_warmup *warmup = &requester->warmup;
	uint64_t span = 0;
	bool over = false;
	int status = 0;

	requester->step = DRV_STEP_WARMUP;
	drv_warmup_begin(warmup, clock, cap_ns);
	while (status >= 0 && !over) {
		status = ask(run, &span, fail);
		over = status ? drv_warmup_expired(warmup, drv_clock_now(clock))
			      : drv_warmup_add(warmup, drv_clock_now(clock), span);
	}
	drv_record_warmup(run->record, warmup);
	requester->patience = drv_warmup_patience(warmup, clock);
	return status < 0 ? -1 : 0;
}
