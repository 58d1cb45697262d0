/* SPDX-License-Identifier: BSD-3-Clause */
#include "pm/pm.h"

#include <stdlib.h>

#include "pm/state.h"

#define ROUNDS          8u /* rounds of a receive that finds nothing */
#define CONTROL_PACKETS 4u /* acknowledgements and refusals have room although the window is full */
#define WINDOW_MAX      4096u

static uint16_t load16(const uint8_t *at)
{
	return (uint16_t)(at[0] | at[1] << 8);
}

static void store16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)value;
	at[1] = (uint8_t)(value >> 8);
}

static void write_head(uint8_t *packet, enum kind kind, const struct flow *flow)
{
	packet[0] = (uint8_t)kind;
	packet[1] = flow->channel;
	store16(packet + 2, flow->next);
	store16(packet + 4, flow->expected);
	store16(packet + 6, 0);
}

static void queue_report(struct pm *pm, struct flow *flow)
{
	if (flow->report_queued)
		return;
	flow->report_queued = true;
	flow->next_report = pm->reports;
	pm->reports = flow;
}

static bool may_send(const struct pm *pm, const struct flow *flow)
{
	return pm->running == flow->channel && !flow->stopped && !pm->channel[flow->channel].stopping;
}

/* ---- sending ---- */

void *pm_get_send_buffer(struct pm *pm, uint32_t number, uint32_t peer, size_t bytes)
{
	struct channel *channel = &pm->channel[pm->running];
	struct flow *flow = &channel->flows[peer];
	uint8_t *packet = NULL;

	if (UNLIKELY(bytes > pm_packet_bytes(pm) || number != pm->running || channel->stopping ||
		     !pm->peer[peer].up))
		return NULL;
	if ((uint16_t)(flow->next - flow->acked) + flow->taken < pm->window)
		packet = cadge_wire_take(pm->peer[peer].link);
	if (UNLIKELY(!packet)) {
		pm->no_send_buffer++;
		return NULL;
	}
	flow->taken++;
	return packet + PM_HEAD_BYTES;
}

void pm_return_send_buffer(struct pm *pm, uint32_t channel, uint32_t peer, void *buffer)
{
	pm->channel[channel].flows[peer].taken--;
	cadge_wire_drop(pm->peer[peer].link, (uint8_t *)buffer - PM_HEAD_BYTES);
}

/* Sends what is held and was not sent, as it was built: what it says of the other direction may be old by now. */
static __attribute__((noinline)) void send_rest(struct pm *pm, struct flow *flow)
{
	while (flow->sent != flow->next) {
		const struct held *held = &flow->held[flow->sent & (pm->window - 1)];
		int code = cadge_wire_send_held(pm->peer[flow->peer].link, held->packet, held->bytes);

		if (code == CADGE_BUSY)
			queue_report(pm, flow);
		if (code != CADGE_DONE)
			return;
		pm->packets_again++;
		flow->sent++;
	}
}

int pm_send(struct pm *pm, uint32_t number, uint32_t peer, void *buffer, size_t bytes)
{
	struct flow *flow = &pm->channel[number].flows[peer];
	uint8_t *packet = (uint8_t *)buffer - PM_HEAD_BYTES;
	const uint32_t packet_bytes = (uint32_t)bytes + PM_HEAD_BYTES;
	int code;

	flow->taken--;
	if (UNLIKELY(pm->peer[peer].down)) {
		cadge_wire_drop(pm->peer[peer].link, packet);
		return CADGE_E_DOWN;
	}
	write_head(packet, DATA, flow);
	flow->held[flow->next++ & (pm->window - 1)] = (struct held){.packet = packet, .bytes = packet_bytes};
	if (UNLIKELY((uint16_t)(flow->next - flow->sent) != 1 || !may_send(pm, flow)))
		return CADGE_DONE; /* in its turn */
	code = cadge_wire_send_held(pm->peer[peer].link, packet, packet_bytes);
	if (UNLIKELY(code != CADGE_DONE)) {
		queue_report(pm, flow); /* where the link is down, it says so */
		return CADGE_DONE;
	}
	flow->sent++;
	flow->credited = flow->expected;
	return CADGE_DONE;
}

/* The peer has all before `ack`. False: nothing like that was sent, or it is old. */
static bool acknowledged(struct pm *pm, struct flow *flow, uint16_t ack)
{
	if ((uint16_t)(ack - flow->acked) > (uint16_t)(flow->sent - flow->acked))
		return false;
	for (; flow->acked != ack; flow->acked++)
		cadge_wire_drop(pm->peer[flow->peer].link, flow->held[flow->acked & (pm->window - 1)].packet);
	return true;
}

/* ---- telling peers what came ---- */

static bool send_control(struct pm *pm, struct flow *flow, enum kind kind)
{
	struct cadge_link *link = pm->peer[flow->peer].link;
	uint8_t *packet = cadge_wire_take(link);
	int code = CADGE_BUSY;

	if (!packet)
		return false;
	write_head(packet, kind, flow);
	code = cadge_wire_send(link, packet, PM_HEAD_BYTES);
	if (code == CADGE_BUSY)
		cadge_wire_drop(link, packet);
	if (code == CADGE_DONE)
		flow->credited = flow->expected;
	return code != CADGE_BUSY;
}

static void end_refusal(struct pm *pm, struct flow *flow, enum refused refused)
{
	struct channel *channel = &pm->channel[flow->channel];

	channel->refused -= flow->refused == REPORTED;
	channel->refused += refused == REPORTED;
	flow->refused = refused;
}

/* What one flow has to say and to send. False: something is left, for a later look. */
static bool settle(struct pm *pm, struct flow *flow, bool idle)
{
	const struct channel *channel = &pm->channel[flow->channel];
	const uint16_t owed = (uint16_t)(flow->expected - flow->credited);
	const bool runs = pm->running == flow->channel;

	if (!pm->peer[flow->peer].link || pm->peer[flow->peer].down)
		return true;
	if (flow->sent != flow->next && may_send(pm, flow))
		send_rest(pm, flow); /* comes into debt again where there is no room */
	if (flow->refused == UNREPORTED) {
		if (!send_control(pm, flow, NACK))
			return false;
		pm->nacks_sent++;
		end_refusal(pm, flow, REPORTED);
		return !(runs && channel->idle_count);
	}
	/* Some buffers for one ROOM: what does not fit then is refused and sent again. */
	if (flow->refused == REPORTED && runs && channel->idle_count) {
		if (!(idle || channel->idle_count > pm->buffers / 4) || !send_control(pm, flow, ROOM))
			return false;
		end_refusal(pm, flow, NONE);
		return true;
	}
	if (owed && (idle || owed >= pm->window / 2)) {
		pm->acks_alone++;
		return send_control(pm, flow, ACK);
	}
	return !owed;
}

static void settle_all(struct pm *pm, bool idle)
{
	struct flow *flow = pm->reports, *next;

	pm->reports = NULL;
	for (; flow; flow = next) {
		next = flow->next_report;
		flow->report_queued = false;
		if (!settle(pm, flow, idle))
			queue_report(pm, flow);
	}
}

/* Buffers came back, or the channel runs again: those whose packets were refused are to send them again. */
static __attribute__((noinline)) void recall(struct pm *pm, struct channel *channel)
{
	for (uint32_t i = 0; i < pm->peers; i++)
		if (channel->flows[i].refused == REPORTED)
			queue_report(pm, &channel->flows[i]);
}

/* ---- receiving ---- */

static enum cadge_keep take_data(struct pm *pm, struct flow *flow, uint8_t *data, size_t bytes)
{
	struct channel *channel = &pm->channel[flow->channel];
	struct buffer *buffer;

	if (UNLIKELY(load16(data + 2) != flow->expected)) {
		pm->dropped_after_nack++;
		return CADGE_TAKEN;
	}
	queue_report(pm, flow);
	if (UNLIKELY(!channel->idle || flow->channel != pm->running)) {
		end_refusal(pm, flow, UNREPORTED);
		return CADGE_TAKEN;
	}
	buffer = CADGE_POOL_TAKE(channel->idle);
	channel->idle_count--;
	buffer->packet = (struct pm_packet){
		.data = data + PM_HEAD_BYTES, .bytes = bytes - PM_HEAD_BYTES, .peer = flow->peer};
	buffer->at = data;
	buffer->next = NULL;
	*(channel->first ? &channel->last->next : &channel->first) = buffer;
	channel->last = buffer;
	flow->expected++;
	if (UNLIKELY(flow->refused)) /* it came again before we asked: as well */
		end_refusal(pm, flow, NONE);
	return CADGE_KEEP;
}

/* NACK and ROOM: back to what the peer takes next, and stop there or go on. */
static void go_back(struct pm *pm, struct flow *flow, bool stop)
{
	flow->sent = flow->acked;
	flow->stopped = stop;
	pm->nacks_received += stop;
	if (!stop && may_send(pm, flow))
		send_rest(pm, flow);
}

static enum cadge_keep on_packet(void *arg, uint32_t peer, void *data, size_t bytes)
{
	struct pm *pm = arg;
	const uint8_t *head = data;
	struct flow *flow;
	bool new;

	if (UNLIKELY(bytes < PM_HEAD_BYTES || head[1] >= pm->channels || head[0] > LEFT)) {
		pm->refused++;
		return CADGE_TAKEN;
	}
	if (UNLIKELY(head[0] > ROOM)) {
		pm->refused += !pm_remote_packet(pm, peer, head, bytes);
		return CADGE_TAKEN;
	}
	flow = &pm->channel[head[1]].flows[peer];
	new = acknowledged(pm, flow, load16(head + 4));
	if (head[0] == DATA)
		return take_data(pm, flow, data, bytes);
	if (head[0] != ACK && new)
		go_back(pm, flow, head[0] == NACK);
	pm->refused += !new;
	return CADGE_TAKEN;
}

int pm_next(struct pm *pm, uint32_t number, struct pm_packet **packet_out)
{
	struct channel *channel = &pm->channel[number];
	struct buffer *buffer = channel->first;

	if (!buffer || UNLIKELY(number != pm->running))
		return CADGE_BUSY;
	channel->first = buffer->next;
	*packet_out = &buffer->packet;
	return CADGE_DONE;
}

int pm_receive(struct pm *pm, uint32_t number, struct pm_packet **packet_out)
{
	int code = pm_next(pm, number, packet_out);

	if (code == CADGE_DONE)
		return code;
	code = cadge_wire_progress(pm->wire, ROUNDS);
	if (UNLIKELY(code < 0))
		return code;
	if (pm->reports)
		settle_all(pm, code == 0);
	if (UNLIKELY(pm->remote_due))
		pm_remote_settle(pm);
	return pm_next(pm, number, packet_out);
}

static void release(struct pm *pm, struct buffer *buffer)
{
	struct channel *channel = buffer->channel;

	cadge_wire_release(pm->wire, buffer->at);
	buffer->at = NULL;
	CADGE_POOL_GIVE(channel->idle, buffer);
	channel->idle_count++;
}

void pm_release_receive_buffer(struct pm *pm, struct pm_packet *packet)
{
	struct buffer *buffer = (struct buffer *)(void *)packet;

	release(pm, buffer);
	if (UNLIKELY(buffer->channel->refused))
		recall(pm, buffer->channel);
}

/* ---- context switch ---- */

int pm_context_switch(struct pm *pm, uint32_t from, uint32_t to)
{
	struct channel *out = &pm->channel[from];

	if (from != pm->running || to >= pm->channels || to == from)
		return CADGE_E_ARGUMENT;
	out->stopping = true;
	for (uint32_t i = 0; i < pm->peers; i++)
		if (pm->peer[i].link && !pm->peer[i].down && out->flows[i].sent != out->flows[i].acked)
			return CADGE_BUSY;
	out->stopping = false;
	pm->running = to;
	for (uint32_t i = 0; i < pm->peers; i++)
		if (pm->channel[to].flows[i].sent != pm->channel[to].flows[i].next)
			queue_report(pm, &pm->channel[to].flows[i]);
	recall(pm, &pm->channel[to]);
	return CADGE_DONE;
}

bool pm_may_sleep(const struct pm *pm)
{
	return !pm->reports && !pm->remote_due && !pm->channel[pm->running].first;
}

/* ---- life ---- */

static void on_up(void *arg, uint32_t peer)
{
	pm_remote_up(arg, peer);
}

static void on_down(void *arg, uint32_t peer, int code)
{
	struct pm *pm = arg;

	pm_remote_down(pm, peer);
	pm->events.down(pm->events.arg, peer, code);
}

static void on_ended(void *arg, uint32_t peer, uint64_t token, int code)
{
	struct pm *pm = arg;

	if (UNLIKELY(token == PM_QUIET_TOKEN))
		pm_remote_quiet_ended(pm, peer, code);
	else
		pm->events.ended(pm->events.arg, peer, token, code);
}

void pm_close(struct pm *pm)
{
	if (!pm)
		return;
	for (uint32_t c = 0; c < pm->channels; c++) {
		for (uint32_t i = 0; pm->channel[c].buffers && i < pm->buffers; i++)
			if (pm->channel[c].buffers[i].at)
				release(pm, &pm->channel[c].buffers[i]);
		free(pm->channel[c].buffers);
	}
	for (uint32_t i = 0; i < pm->peers; i++)
		pm_remote_forget(pm, i);
	pm_pins_close(&pm->pins);
	cadge_wire_close(pm->wire);
	free(pm->held);
	free(pm->flows);
	free(pm);
}

static bool make_channels(struct pm *pm)
{
	const size_t flows = (size_t)pm->channels * pm->peers;

	pm->flows = calloc(flows, sizeof(*pm->flows));
	pm->held = calloc(flows * pm->window, sizeof(*pm->held));
	if (!pm->flows || !pm->held)
		return false;
	for (size_t i = 0; i < flows; i++) {
		pm->flows[i].peer = (uint32_t)(i % pm->peers);
		pm->flows[i].channel = (uint8_t)(i / pm->peers);
		pm->flows[i].held = pm->held + i * pm->window;
	}
	for (uint32_t c = 0; c < pm->channels; c++) {
		struct channel *channel = &pm->channel[c];

		channel->flows = pm->flows + (size_t)c * pm->peers;
		channel->buffers = calloc(pm->buffers, sizeof(*channel->buffers));
		if (!channel->buffers)
			return false;
		for (uint32_t i = pm->buffers; i-- > 0;) {
			channel->buffers[i].channel = channel;
			CADGE_POOL_GIVE(channel->idle, &channel->buffers[i]);
		}
		channel->idle_count = pm->buffers;
	}
	return true;
}

static int open_wire(const struct cadge_open_args *args, const struct pm_config *config, struct pm *pm)
{
	static const struct cadge_wire_calls calls = {
		.up = on_up, .down = on_down, .packet = on_packet, .ended = on_ended};
	const struct cadge_wire_needs needs = {
		.features = CADGE_WIRE_KEEP | CADGE_WIRE_REMOTE,
		.packet_bytes = config->packet_bytes,
		.packets = config->channels * config->window + CONTROL_PACKETS,
		/* All buffers, whoever fills them; libfabric counts them for all peers together. */
		.held = (config->channels * config->buffers + args->peers_max - 1) / args->peers_max,
		.operations = config->operations + 1, /* and the quiet before an answer */
		.calls = &calls,
		.arg = pm,
	};

	return cadge_wire_open(args, &needs, &pm->wire);
}

int pm_open(const struct cadge_open_args *args, const struct pm_config *config, struct pm **pm_out)
{
	struct pm *pm;
	int code;

	if (config->packet_bytes < PM_PACKET_BYTES_MIN)
		return cadge_refuse(args, CADGE_E_ARGUMENT, "packets of %u bytes are shorter than %u",
				    config->packet_bytes, PM_PACKET_BYTES_MIN);
	if (config->window < 2 || config->window > WINDOW_MAX || (config->window & (config->window - 1)) ||
	    !config->buffers || !config->channels || config->channels > PM_CHANNELS_MAX)
		return cadge_refuse(args, CADGE_E_ARGUMENT, "no such window, buffers or channels");
	pm = calloc(1, sizeof(*pm) + args->peers_max * sizeof(pm->peer[0]));
	if (!pm)
		return cadge_refuse(args, CADGE_E_MEMORY, "out of memory for %u peers", args->peers_max);
	code = open_wire(args, config, pm);
	if (code != CADGE_DONE) {
		free(pm);
		return code;
	}
	pm->events = config->events;
	pm->peers = args->peers_max;
	pm->window = config->window;
	pm->buffers = config->buffers;
	pm->channels = config->channels;
	pm->packet_bytes = cadge_wire_facts(pm->wire)->packet_bytes_max;
	pm->pins.wire = pm->wire;
	pm->pins.answered = UINT64_MAX; /* nobody has a handle */
	for (unsigned int i = 0; i < 2; i++)
		pm->pins.side[i].quota_bytes = config->quota_bytes[i];
	code = cadge_nonce(&pm->pins.nonce);
	if (code == CADGE_DONE && !make_channels(pm))
		code = CADGE_E_MEMORY;
	if (code != CADGE_DONE) {
		pm_close(pm);
		return cadge_refuse(args, code, "out of memory for %u peers", args->peers_max);
	}
	*pm_out = pm;
	return CADGE_DONE;
}

struct cadge_wire *pm_wire(const struct pm *pm)
{
	return pm->wire;
}

uint32_t pm_packet_bytes(const struct pm *pm)
{
	return pm->packet_bytes - PM_HEAD_BYTES;
}

int pm_address(struct pm *pm, uint32_t peer, struct cadge_blob_out *blob)
{
	return cadge_wire_address(pm->wire, peer, blob);
}

int pm_connect(struct pm *pm, uint32_t peer, struct cadge_blob_in *blob)
{
	return peer < pm->peers ? cadge_wire_connect(pm->wire, peer, blob, &pm->peer[peer].link)
				: CADGE_E_ARGUMENT;
}

/* Messages of this peer that nobody has received yet. */
static void drop_received(struct pm *pm, struct channel *channel, uint32_t peer)
{
	struct buffer *buffer = channel->first, *next;

	channel->first = NULL;
	for (; buffer; buffer = next) {
		next = buffer->next;
		buffer->next = NULL;
		if (buffer->packet.peer == peer) {
			release(pm, buffer);
			continue;
		}
		*(channel->first ? &channel->last->next : &channel->first) = buffer;
		channel->last = buffer;
	}
}

int pm_disconnect(struct pm *pm, uint32_t peer)
{
	int code = pm->peer[peer].link ? cadge_wire_disconnect(pm->peer[peer].link) : CADGE_E_ARGUMENT;

	if (code != CADGE_DONE)
		return code;
	pm_remote_forget(pm, peer);
	for (uint32_t c = 0; c < pm->channels; c++) {
		struct channel *channel = &pm->channel[c];
		struct flow *flow = &channel->flows[peer];

		drop_received(pm, channel, peer);
		end_refusal(pm, flow, NONE);
		flow->acked = flow->sent = flow->next = flow->taken = 0;
		flow->expected = flow->credited = 0;
		flow->stopped = false;
		if (channel->refused)
			recall(pm, channel);
	}
	return CADGE_DONE;
}

int pm_describe(struct pm *pm, uint32_t peer, struct cadge_path *path_out)
{
	return pm->peer[peer].link ? cadge_wire_describe(pm->peer[peer].link, path_out) : CADGE_E_DOWN;
}

void pm_counters(const struct pm *pm, void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	each(arg, "no_send_buffer", pm->no_send_buffer);
	each(arg, "nacks_sent", pm->nacks_sent);
	each(arg, "nacks_received", pm->nacks_received);
	each(arg, "acks_alone", pm->acks_alone);
	each(arg, "packets_sent_late_or_again", pm->packets_again);
	each(arg, "packets_dropped_after_nack", pm->dropped_after_nack);
	each(arg, "packets_refused", pm->refused);
	each(arg, "writes_refused", pm->writes_refused);
	each(arg, "withdrawals_heard", pm->withdrawals_received);
	pm_pins_counters(&pm->pins, each, arg);
	cadge_wire_counters(pm->wire, each, arg);
}
