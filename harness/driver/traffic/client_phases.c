/* SPDX-License-Identifier: BSD-3-Clause */
/* The phases that the loop runs: verification, warm-up, and each way of measuring. */
#include <sys/prctl.h>

#include "traffic/client_parts.h"
#include "traffic/loss.h"

#define SETTLE_NS UINT64_C(500000000)

int drv_client_verify(struct drv_client *client, uint64_t phase, struct drv_fail *fail)
{
	client->mode = DRV_MODE_VERIFY;
	client->writes = true;
	client->phase = phase;
	client->limit = client->posted +
			drv_full_messages(client->exchange.request_bytes > client->exchange.reply_bytes
						  ? client->exchange.request_bytes
						  : client->exchange.reply_bytes,
					  client->exchange.depth);
	return drv_client_run(client, fail);
}

/* Of launches that count operations: after how many this phase ends. Rounds are whole. */
static uint64_t limit_of(const struct drv_client *client)
{
	const uint64_t operations = drv_engine_operations(client->port.engine);
	const uint64_t step = client->rounds ? client->exchange.depth : 1;

	return operations == UINT64_MAX ? UINT64_MAX : client->posted + (operations + step - 1) / step * step;
}

int drv_client_warmup(struct drv_client *client, uint64_t cap_ns, struct drv_fail *fail)
{
	struct drv_engine *engine = client->port.engine;

	client->mode = DRV_MODE_WARMUP;
	client->writes = client->exchange.touch != DRV_TOUCH_NONE;
	client->limit = limit_of(client);
	drv_warmup_start(&client->warmup, drv_clock_now(&engine->clock),
			 drv_clock_to_ticks(&engine->clock, 100000),
			 drv_clock_to_ticks(&engine->clock, cap_ns));
	if (drv_client_run(client, fail))
		return -1;
	client->op_deadline = drv_clock_to_ticks(
		&engine->clock,
		drv_loss_deadline_ns(client->warmup.operations
					     ? drv_clock_to_ns(&engine->clock, client->warmup.median)
					     : 0));
	return 0;
}

struct drv_client_begun drv_client_begin(const struct drv_client *client)
{
	return (struct drv_client_begun){.started = drv_clock_now(&client->port.engine->clock),
					 .completed = client->completed,
					 .lost = client->lost,
					 .late = client->late};
}

void drv_client_total(const struct drv_client *client, const struct drv_client_begun *begun, uint64_t end,
		      struct drv_record *record)
{
	const struct drv_clock *clock = &client->port.engine->clock;
	/* a loss at the end took time as well, which no completion marks */
	const uint64_t last = client->lost == begun->lost ? client->last : drv_clock_now(clock);

	record->elapsed_ns = drv_clock_to_ns(clock, (last < end ? end : last) - begun->started);
	record->operations = client->completed - begun->completed;
	record->bytes = record->operations * (client->exchange.request_bytes + client->exchange.reply_bytes);
	record->lost = client->lost - begun->lost;
	record->late = client->late - begun->late;
}

/* Measures, as the mode says, and fills the totals. */
static int measure(struct drv_client *client, uint64_t duration_ns, struct drv_record *record,
		   struct drv_fail *fail)
{
	const bool paced = client->mode == DRV_MODE_PACED;
	struct drv_client_begun begun;
	int status;

	client->writes = client->exchange.touch != DRV_TOUCH_NONE;
	client->limit = limit_of(client);
	begun = drv_client_begin(client);
	client->end = drv_engine_end(client->port.engine, begun.started, duration_ns);
	if (paced)
		drv_pace_begin(client->pace, begun.started, client->end);
	status = drv_client_run(client, fail);
	/* after the last call of an open loop none was due until its end: that is time that it took as well */
	drv_client_total(client, &begun, paced && client->end != UINT64_MAX ? client->end : 0, record);
	return status;
}

int drv_client_measure(struct drv_client *client, uint64_t duration_ns, struct drv_record *record,
		       struct drv_fail *fail)
{
	client->mode = DRV_MODE_MEASURE;
	return measure(client, duration_ns, record, fail);
}

int drv_client_pace(struct drv_client *client, struct drv_pace *pace, uint64_t duration_ns,
		    struct drv_record *record, struct drv_fail *fail)
{
	int status;

	client->mode = DRV_MODE_PACED;
	client->pace = pace;
	/* else the kernel may wake who sleeps until a call is due 50 us too late; 0 is the usual again */
	if (client->port.engine->block)
		prctl(PR_SET_TIMERSLACK, 1UL);
	status = measure(client, duration_ns, record, fail);
	if (client->port.engine->block)
		prctl(PR_SET_TIMERSLACK, 0UL);
	return status;
}

int drv_client_tally(struct drv_client *client, struct drv_tally *tally, uint64_t service_most_ns,
		     uint64_t duration_ns, struct drv_record *record, struct drv_fail *fail)
{
	client->mode = DRV_MODE_TALLIED;
	client->tally = tally;
	client->op_deadline += drv_clock_to_ticks(&client->port.engine->clock, service_most_ns);
	return measure(client, duration_ns, record, fail);
}

int drv_client_stamp(struct drv_client *client, struct drv_stamps *stamps, uint64_t duration_ns,
		     struct drv_record *record, struct drv_fail *fail)
{
	client->mode = DRV_MODE_STAMPED;
	client->stamps = stamps;
	return measure(client, duration_ns, record, fail);
}

int drv_client_rounds(struct drv_client *client, uint64_t duration_ns, struct drv_record *record,
		      struct drv_fail *fail)
{
	client->mode = DRV_MODE_ROUNDS;
	return measure(client, duration_ns, record, fail);
}

bool drv_client_settle(struct drv_client *client)
{
	struct drv_engine *engine = client->port.engine;
	const uint64_t until_ns = drv_now_ns() + SETTLE_NS;
	bool waiting = true;

	client->mode = DRV_MODE_WARMUP; /* nothing is recorded any more */
	client->warmup.over = true;
	client->ending = true;
	while (waiting && !engine->down_code && drv_now_ns() < until_ns) {
		if (engine->layer->poll(engine->ctx, client->sink) < 0)
			return false;
		waiting = client->lents > 0;
		for (uint32_t index = 0; index < client->exchange.depth; index++)
			waiting |= client->slots[index].waiting;
	}
	return !waiting;
}
