/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests on their way to another thread and back: copies, order, and what the layer has no room for. */
#include "servers/handoff.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "threads/hands.h"

/* Any thread: reads the request, does what the handler does, writes the answer. */
static void work_for(struct drv_errand *errand)
{
	const struct drv_handoff *handoff = errand->owner;
	const struct drv_exchange *exchange = &handoff->exchange;
	const struct drv_check *check = &errand->server->check;
	struct drv_message reply = errand->server->message;

	if (check->reads)
		errand->good &= drv_check_holds(check, errand->request, (size_t)exchange->request_bytes,
						errand->work.key);
	if (handoff->service)
		drv_service_do(handoff->service, errand->work.key);
	reply.at = errand->reply;
	reply.key = errand->work.key;
	reply.id = errand->work.id;
	reply.written = false;
	drv_message_write(&reply);
}

static void be_hand(struct drv_hand *hand, void *arg)
{
	struct drv_handoff *handoff = arg;
	uint64_t number;

	while (drv_hand_take(hand, &number)) {
		work_for(&handoff->errands[number]);
		if (!drv_hand_give(hand, number))
			return;
	}
}

static uint32_t index_of(const struct drv_handoff *handoff, const struct drv_errand *errand)
{
	return (uint32_t)(errand - handoff->errands);
}

static void __attribute__((cold, noinline)) note_failure(struct drv_handoff *handoff, const char *what,
							 int code)
{
	if (!handoff->failed)
		drv_engine_fail(what, code, &handoff->fail);
	handoff->failed = true;
}

/* Counts an answer: whether one to a later request of the channel went before it. */
static void count_answer(struct drv_handoff *handoff, uint32_t channel, uint64_t place)
{
	if (place < handoff->lines[channel].answered)
		handoff->reordered++;
	else
		handoff->lines[channel].answered = place + 1;
}

/* Hands an answer to the layer. False: it has no room now. */
static bool answer(struct drv_handoff *handoff, struct drv_errand *errand)
{
	struct drv_engine *engine = handoff->engine;
	const struct drv_exchange *exchange = &handoff->exchange;
	const uint32_t index = index_of(handoff, errand);
	const uint64_t token = DRV_TOKEN_SERVER | DRV_TOKEN_HANDED_OFF | index;
	const struct cadge_iov iov = {errand->reply,
				      (size_t)drv_form_bytes(exchange->form, exchange->reply_bytes)};
	const bool native = exchange->form == DRV_FORM_NATIVE;
	const int code =
		native ? engine->layer->reply(engine->ctx, &errand->work.reply_to, &iov, 1, 0, token)
		       : engine->layer->post(errand->server->chans[errand->work.peer], &iov, 1, 0, token);

	if (code == CADGE_BUSY)
		return false;
	count_answer(handoff, errand->channel, errand->place);
	if (code == CADGE_QUEUED)
		return true;
	handoff->free_ring[handoff->free_tail++ & handoff->mask] = index;
	if (code != CADGE_DONE)
		note_failure(handoff, native ? "reply" : "post", code);
	return true;
}

/* Somebody has worked for it. */
static void take_back(struct drv_handoff *handoff, struct drv_errand *errand)
{
	struct drv_check *check = &errand->server->check;

	check->full_checked += check->full;
	drv_check_judge(check, errand->good, errand->work.key, (size_t)handoff->exchange.request_bytes);
	if (handoff->waiting_head != handoff->waiting_tail || !answer(handoff, errand))
		handoff->waiting_ring[handoff->waiting_tail++ & handoff->mask] = index_of(handoff, errand);
}

bool drv_handoff_pass(struct drv_handoff *handoff, struct drv_server *server, uint32_t channel,
		      const void *request, size_t bytes, const struct drv_work *work)
{
	struct drv_errand *errand;
	uint32_t index, hand = 0;

	if (handoff->free_head == handoff->free_tail)
		return false;
	index = handoff->free_ring[handoff->free_head & handoff->mask];
	errand = &handoff->errands[index];
	errand->server = server;
	errand->channel = channel;
	errand->work = *work;
	errand->place = handoff->lines[channel].came;
	errand->good = drv_check_head(&server->check, request, bytes, &errand->work.key);
	memcpy(errand->request, request, bytes);
	if (handoff->common) {
		/* it has room for all that can be on their way */
		drv_queue_put(handoff->common, errand);
	} else {
		for (uint32_t i = 1; i < drv_hands_wanted(handoff->engine); i++)
			if (handoff->out_of_hand[i] < handoff->out_of_hand[hand])
				hand = i;
		drv_hands_give(handoff->engine, hand, index);
		handoff->out_of_hand[hand]++;
	}
	handoff->free_head++;
	handoff->out++;
	handoff->lines[channel].came++;
	handoff->came++;
	return true;
}

void drv_handoff_answered(struct drv_handoff *handoff, uint32_t channel)
{
	count_answer(handoff, channel, handoff->lines[channel].came++);
	handoff->came++;
}

static void drain_hands(struct drv_handoff *handoff)
{
	uint64_t number;
	uint32_t hand;

	while (handoff->out && drv_hands_take(handoff->engine, &hand, &number)) {
		handoff->out_of_hand[hand]--;
		handoff->out--;
		take_back(handoff, &handoff->errands[number]);
	}
}

static void drain_back(struct drv_handoff *handoff)
{
	struct drv_errand *errand;

	while (handoff->out && (errand = drv_queue_take(handoff->back))) {
		handoff->out--;
		take_back(handoff, errand);
	}
}

/* Works for one request of the queue. False: it is empty. */
static bool work_for_one(struct drv_handoff *handoff)
{
	struct drv_errand *errand = drv_queue_take(handoff->common);

	if (!errand)
		return false;
	work_for(errand);
	if (errand->owner == handoff) {
		handoff->out--;
		take_back(handoff, errand);
	} else {
		handoff->stolen++;
		drv_queue_put(errand->owner->back, errand);
	}
	return true;
}

/*
 * Every thread looks at the queue before it looks at its own connections. In block mode a thread whose requests are with
 * others does not go to sleep: nobody could wake it.
 */
static void drain_common(struct drv_handoff *handoff)
{
	handoff->busy_polls = handoff->came == handoff->came_before ? 0 : handoff->busy_polls + 1;
	handoff->came_before = handoff->came;
	drain_back(handoff);
	work_for_one(handoff);
	while (handoff->engine->block && handoff->out) {
		if (!work_for_one(handoff))
			sched_yield();
		drain_back(handoff);
	}
}

int drv_handoff_drain(struct drv_handoff *handoff)
{
	if (handoff->common)
		drain_common(handoff);
	else
		drain_hands(handoff);
	while (handoff->waiting_head != handoff->waiting_tail &&
	       answer(handoff,
		      &handoff->errands[handoff->waiting_ring[handoff->waiting_head & handoff->mask]]))
		handoff->waiting_head++;
	return handoff->failed ? -1 : 0;
}

bool drv_handoff_sent(struct drv_handoff *handoff, uint64_t token, int code)
{
	const uint64_t index = token & ~(DRV_TOKEN_SERVER | DRV_TOKEN_HANDED_OFF);

	if (index >= handoff->count || handoff->free_tail - handoff->free_head >= handoff->count)
		return false;
	handoff->free_ring[handoff->free_tail++ & handoff->mask] = (uint32_t)index;
	if (code < 0 && code != CADGE_E_LOST)
		note_failure(handoff, "post", code);
	return true;
}

/* Twice as many as clients may have outstanding, so that a late completion holds up nothing; of a queue, its room. */
static uint32_t errands_of(const struct drv_handoff *handoff)
{
	const uint32_t wanted =
		handoff->engine->channels_count * drv_server_outstanding(&handoff->exchange) * 2;

	return handoff->common && wanted > DRV_HANDOFF_SHARE ? DRV_HANDOFF_SHARE : wanted;
}

int drv_handoff_start(struct drv_handoff *handoff, struct drv_engine *engine, struct drv_exchange exchange,
		      struct drv_service *service, struct drv_queue *common, struct drv_fail *fail)
{
	const size_t request_stride = drv_memory_stride(exchange.request_bytes);
	const size_t reply_stride = drv_memory_stride(drv_form_bytes(exchange.form, exchange.reply_bytes));
	uint8_t *memory;
	uint32_t ring = 1;

	*handoff = (struct drv_handoff){
		.engine = engine, .exchange = exchange, .service = service, .common = common};
	handoff->count = errands_of(handoff);
	while (ring < handoff->count)
		ring *= 2;
	handoff->mask = ring - 1;
	handoff->errands = calloc(handoff->count, sizeof(*handoff->errands));
	handoff->free_ring = calloc(ring, sizeof(*handoff->free_ring));
	handoff->waiting_ring = calloc(ring, sizeof(*handoff->waiting_ring));
	handoff->back = aligned_alloc(DRV_QUEUE_ALIGN, sizeof(*handoff->back));
	if (!handoff->errands || !handoff->free_ring || !handoff->waiting_ring || !handoff->back)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for requests that are passed on");
	memset(handoff->back, 0, sizeof(*handoff->back));
	/* no client of this endpoint uses that pool */
	memory = drv_pool_take(engine, DRV_POOL_CLIENT, handoff->count * (request_stride + reply_stride),
			       fail);
	if (!memory)
		return -1;
	for (uint32_t i = 0; i < handoff->count; i++) {
		struct drv_errand *errand = &handoff->errands[i];

		errand->owner = handoff;
		errand->request = memory + i * request_stride;
		errand->reply = memory + handoff->count * request_stride + i * reply_stride;
		handoff->free_ring[handoff->free_tail++] = i;
	}
	return common ? 0 : drv_hands_start(engine, be_hand, handoff, handoff->count, fail);
}

void drv_handoff_stop(struct drv_handoff *handoff)
{
	if (!handoff->engine)
		return;
	if (!handoff->common)
		drv_hands_end(handoff->engine);
	free(handoff->errands);
	free(handoff->free_ring);
	free(handoff->waiting_ring);
	free(handoff->back);
	*handoff = (struct drv_handoff){.engine = NULL};
}
