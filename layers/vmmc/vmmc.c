/* SPDX-License-Identifier: BSD-3-Clause */
/* VMMC: life, deliberate updates, and control messages. See state.h. */
#include <stdlib.h>

#include "vmmc/state.h"

/* ---- control messages ---- */

static void write_head(uint8_t *to, const struct vmmc_head *head)
{
	cadge_store32(to, head->kind);
	cadge_store32(to + 4, head->slot);
	cadge_store32(to + 8, head->generation);
	cadge_store32(to + 12, head->detail);
	cadge_store64(to + 16, head->offset_bytes);
	cadge_store64(to + 24, head->bytes);
}

static struct vmmc_head read_head(const uint8_t *from)
{
	return (struct vmmc_head){
		.kind = cadge_load32(from),
		.slot = cadge_load32(from + 4),
		.generation = cadge_load32(from + 8),
		.detail = cadge_load32(from + 12),
		.offset_bytes = cadge_load64(from + 16),
		.bytes = cadge_load64(from + 24),
	};
}

/* Whether the puts before a control message are visible; where that has to be asked for, asks for all that were begun so far. */
static bool may_leave(struct vmmc_link *link, uint64_t number)
{
	int code;

	if (link->visible >= number || link->vmmc->in_order)
		return true;
	if (link->quieting)
		return false;
	code = cadge_wire_quiet(link->wire, (uintptr_t)&link->quieting);
	if (code == CADGE_DONE) {
		link->visible = link->written;
		return true;
	}
	link->quieting = code == CADGE_QUEUED;
	link->asked = link->written;
	link->vmmc->stuck |= code == CADGE_BUSY;
	return false;
}

/* A packet for a control message; NULL: not now. */
static uint8_t *take_packet(struct vmmc_link *link)
{
	uint8_t *packet = cadge_wire_take(link->wire);

	link->vmmc->stuck |= !packet;
	return packet;
}

/* False: not now. After E_DOWN nobody is left to tell. */
static bool send_packet(struct vmmc_link *link, uint8_t *packet, size_t bytes)
{
	if (UNLIKELY(cadge_wire_send(link->wire, packet, bytes) == CADGE_BUSY)) {
		cadge_wire_drop(link->wire, packet);
		link->vmmc->stuck = true;
		return false;
	}
	return true;
}

static void release_control(struct vmmc_link *link, struct vmmc_control *control)
{
	if (control->pooled)
		CADGE_POOL_GIVE(link->idle_controls, control);
	else
		free(control);
}

/* Sends the control messages that may leave. */
static __attribute__((noinline)) void send_controls(struct vmmc_link *link)
{
	struct vmmc_control *control;

	while (link->up && !link->down && (control = link->first) && may_leave(link, control->number)) {
		uint8_t *packet = take_packet(link);

		if (!packet)
			return;
		memcpy(packet, control->data, control->bytes);
		if (!send_packet(link, packet, control->bytes))
			return;
		link->first = control->next;
		if (!link->first)
			link->last = &link->first;
		release_control(link, control);
	}
}

static void drop_controls(struct vmmc_link *link)
{
	struct vmmc_control *control;

	while ((control = link->first)) {
		link->first = control->next;
		release_control(link, control);
	}
	link->last = &link->first;
}

static int queue_control(struct vmmc_link *link, const struct vmmc_head *head, const void *more,
			 size_t more_bytes)
{
	struct vmmc_control *control = head->kind == CONTROL_NOTIFY ? CADGE_POOL_TAKE(link->idle_controls)
								    : malloc(sizeof(*control));

	if (!control)
		return CADGE_E_MEMORY;
	control->next = NULL;
	control->pooled = head->kind == CONTROL_NOTIFY;
	control->number = link->written;
	control->bytes = (uint32_t)(HEAD_BYTES + more_bytes);
	write_head(control->data, head);
	if (more_bytes)
		memcpy(control->data + HEAD_BYTES, more, more_bytes);
	*link->last = control;
	link->last = &control->next;
	link->vmmc->controls_late++;
	send_controls(link);
	return CADGE_DONE;
}

int vmmc_send_control(struct vmmc_link *link, const struct vmmc_head *head, const void *more,
		      size_t more_bytes)
{
	uint8_t *packet;

	link->written++;
	if (!link->first && may_leave(link, link->written) && (packet = take_packet(link))) {
		write_head(packet, head);
		if (more_bytes)
			memcpy(packet + HEAD_BYTES, more, more_bytes);
		if (send_packet(link, packet, HEAD_BYTES + more_bytes))
			return CADGE_DONE;
	}
	return queue_control(link, head, more, more_bytes);
}

static bool take_note(struct vmmc_link *link, const struct vmmc_head *head)
{
	struct vmmc *vmmc = link->vmmc;
	struct vmmc_export *export = vmmc_find_export(vmmc, link->peer, head);

	if (!export || !(export->rights & CADGE_MAY_WRITE) || head->offset_bytes > export->bytes ||
	    head->bytes > export->bytes - head->offset_bytes)
		return false;
	vmmc->notes_received++;
	vmmc->happened++;
	vmmc->events.notified(vmmc->events.arg, link->peer, export, head->offset_bytes, head->bytes);
	return true;
}

static enum cadge_keep on_packet(void *arg, uint32_t peer, void *data, size_t bytes)
{
	struct vmmc *vmmc = arg;
	struct vmmc_link *link = &vmmc->links[peer];
	struct vmmc_head head;
	bool good = false;

	if (bytes >= HEAD_BYTES) {
		head = read_head(data);
		if (head.kind == CONTROL_NOTIFY)
			good = take_note(link, &head);
		else if (head.slot < VMMC_EXPORTS_MAX)
			good = vmmc_redirect_control(link, &head, (uint8_t *)data + HEAD_BYTES,
						     bytes - HEAD_BYTES);
	}
	vmmc->controls_refused += !good;
	return CADGE_TAKEN;
}

/* ---- updates ---- */

/* An update that is not just put: refused, or of an export that can be redirected. NULL: `code_out` says why. */
static __attribute__((noinline)) const struct cadge_remote *
special_target(const struct vmmc_import *to, uint64_t offset_bytes, size_t bytes, int *code_out)
{
	const struct cadge_remote *remote = NULL;

	if (to->writes)
		remote = vmmc_steer(to, offset_bytes, bytes);
	*code_out = to->writes ? CADGE_BUSY : CADGE_E_REFUSED;
	return remote;
}

int vmmc_send(struct vmmc_import *to, uint64_t offset_bytes, const void *from, size_t bytes, uint32_t flags,
	      struct vmmc_token token)
{
	struct vmmc_link *link = to->link;
	struct vmmc *vmmc = link->vmmc;
	struct vmmc_op *op = link->idle_ops;
	const struct cadge_remote *remote = to->remote;
	const bool special = to->source || !to->writes;
	int code = CADGE_BUSY;

	if (UNLIKELY(!op || ((flags & VMMC_NOTIFY) && !link->idle_controls)))
		return CADGE_BUSY;
	if (UNLIKELY(special))
		remote = special_target(to, offset_bytes, bytes, &code);
	if (remote)
		code = cadge_wire_put(link->wire, from, bytes, remote, offset_bytes, (uintptr_t)op);
	if (code == CADGE_QUEUED) {
		link->idle_ops = op->next;
		op->token = token;
	} else if (UNLIKELY(code != CADGE_DONE)) {
		vmmc->updates_refused += code == CADGE_E_REFUSED;
		return code;
	}
	vmmc->updates++;
	/* Counted here, where the update is sure: nothing is pinned for it. */
	if (bytes)
		utlb_translate(&vmmc->utlb, from, bytes);
	if (UNLIKELY(special))
		vmmc_steered(to, offset_bytes, bytes);
	if (flags & VMMC_NOTIFY) {
		const struct vmmc_head head = {.kind = CONTROL_NOTIFY,
					       .slot = to->slot,
					       .generation = to->generation,
					       .offset_bytes = offset_bytes,
					       .bytes = bytes};

		vmmc->notes_sent++;
		vmmc_send_control(link, &head, NULL, 0);
	}
	return code;
}

int vmmc_quiet(struct vmmc *vmmc, uint32_t peer, struct vmmc_token token)
{
	struct vmmc_link *link = &vmmc->links[peer];
	struct vmmc_op *op = link->idle_ops;
	int code;

	if (UNLIKELY(!op || !link->wire))
		return link->wire ? CADGE_BUSY : CADGE_E_DOWN;
	code = cadge_wire_quiet(link->wire, (uintptr_t)op);
	if (code == CADGE_QUEUED) {
		link->idle_ops = op->next;
		op->token = token;
	}
	return code;
}

static void on_ended(void *arg, uint32_t peer, uint64_t number, int code)
{
	struct vmmc *vmmc = arg;
	struct vmmc_link *link = &vmmc->links[peer];
	struct vmmc_op *op = (struct vmmc_op *)(uintptr_t)number;

	if (number == (uintptr_t)&link->quieting) {
		link->quieting = false;
		if (code == CADGE_DONE) {
			link->visible = link->asked;
			send_controls(link);
		}
		return;
	}
	CADGE_POOL_GIVE(link->idle_ops, op);
	vmmc->happened++;
	vmmc->events.sent(vmmc->events.arg, peer, op->token, code);
}

/* ---- progress ---- */

static __attribute__((noinline)) void try_again(struct vmmc *vmmc)
{
	vmmc->stuck = false;
	for (uint32_t i = 0; i < vmmc->peers; i++)
		if (vmmc->links[i].first)
			send_controls(&vmmc->links[i]);
}

int vmmc_progress(struct vmmc *vmmc, unsigned int rounds)
{
	int code;

	vmmc->happened = 0;
	code = cadge_wire_progress(vmmc->wire, rounds);
	if (UNLIKELY(vmmc->stuck))
		try_again(vmmc);
	if (UNLIKELY(vmmc->answers))
		vmmc_drop_answered(vmmc);
	return code < 0 ? code : vmmc->happened;
}

bool vmmc_may_sleep(const struct vmmc *vmmc)
{
	return !vmmc->stuck;
}

static void on_up(void *arg, uint32_t peer)
{
	struct vmmc *vmmc = arg;

	vmmc->links[peer].up = true;
	vmmc->happened++;
	send_controls(&vmmc->links[peer]); /* the ends of exports since connect */
	vmmc->events.up(vmmc->events.arg, peer);
}

static void on_down(void *arg, uint32_t peer, int code)
{
	struct vmmc *vmmc = arg;

	vmmc->links[peer].down = true;
	vmmc->answers = true; /* it is waited for no more */
	vmmc->happened++;
	vmmc_end_redirections(&vmmc->links[peer], true);
	vmmc->events.down(vmmc->events.arg, peer, code);
}

/* ---- connecting ---- */

int vmmc_address(struct vmmc *vmmc, uint32_t peer, struct cadge_blob_out *blob)
{
	if (peer >= vmmc->peers)
		return CADGE_E_ARGUMENT;
	cadge_blob_u64(blob, vmmc->nonce_all);
	cadge_blob_u64(blob, vmmc->links[peer].nonce_for_peer);
	return cadge_wire_address(vmmc->wire, peer, blob);
}

int vmmc_connect(struct vmmc *vmmc, uint32_t peer, struct cadge_blob_in *blob)
{
	const uint64_t nonce_all = cadge_blob_take_u64(blob), nonce_mine = cadge_blob_take_u64(blob);
	struct vmmc_link *link;
	int code;

	if (!blob->ok || peer >= vmmc->peers)
		return CADGE_E_ARGUMENT;
	link = &vmmc->links[peer];
	code = cadge_wire_connect(vmmc->wire, peer, blob, &link->wire);
	if (code != CADGE_DONE)
		return code;
	link->up = link->down = link->quieting = false;
	link->nonce_all = nonce_all;
	link->nonce_mine = nonce_mine;
	link->written = link->visible = 0;
	link->withdrawals_before = vmmc->withdrawals;
	link->withdrawals_answered = 0;
	link->idle_ops = NULL;
	for (uint32_t i = vmmc->operations; i-- > 0;)
		CADGE_POOL_GIVE(link->idle_ops, &link->ops[i]);
	memset(link->gone, 0, sizeof(link->gone));
	return CADGE_DONE;
}

int vmmc_disconnect(struct vmmc *vmmc, uint32_t peer)
{
	struct vmmc_link *link = &vmmc->links[peer];
	int code = link->wire ? cadge_wire_disconnect(link->wire) : CADGE_E_ARGUMENT;

	if (code != CADGE_DONE)
		return code;
	link->wire = NULL;
	link->up = false;
	drop_controls(link);
	vmmc_forget_imports(link);
	vmmc_end_redirections(link, false);
	vmmc_drop_answered(vmmc);
	return cadge_nonce(&link->nonce_for_peer);
}

int vmmc_describe(struct vmmc *vmmc, uint32_t peer, struct cadge_path *path_out)
{
	return vmmc->links[peer].wire ? cadge_wire_describe(vmmc->links[peer].wire, path_out) : CADGE_E_DOWN;
}

/* ---- life ---- */

void vmmc_close(struct vmmc *vmmc)
{
	if (!vmmc)
		return;
	for (uint32_t i = 0; vmmc->links && i < vmmc->peers; i++) {
		drop_controls(&vmmc->links[i]);
		vmmc_forget_imports(&vmmc->links[i]);
	}
	cadge_wire_close(vmmc->wire);
	for (uint32_t i = 0; vmmc->links && i < vmmc->peers; i++) {
		free(vmmc->links[i].ops);
		free(vmmc->links[i].pool);
	}
	vmmc_forget_exports(vmmc);
	utlb_destroy(&vmmc->utlb);
	free(vmmc->links);
	free(vmmc);
}

static int make_link(struct vmmc *vmmc, struct vmmc_link *link, uint32_t peer)
{
	link->vmmc = vmmc;
	link->peer = peer;
	link->last = &link->first;
	link->ops = calloc(vmmc->operations, sizeof(*link->ops));
	link->pool = calloc(vmmc->notes, sizeof(*link->pool));
	if (!link->ops || !link->pool)
		return CADGE_E_MEMORY;
	for (uint32_t i = vmmc->notes; i-- > 0;)
		CADGE_POOL_GIVE(link->idle_controls, &link->pool[i]);
	return cadge_nonce(&link->nonce_for_peer);
}

static int make(struct vmmc *vmmc, uint32_t peers, uint32_t cache_pages)
{
	int code = cadge_nonce(&vmmc->nonce_all);

	vmmc->links = calloc(peers, sizeof(*vmmc->links));
	if (!vmmc->links || !utlb_create(&vmmc->utlb, cache_pages))
		return CADGE_E_MEMORY;
	while (code == CADGE_DONE && vmmc->peers < peers) {
		code = make_link(vmmc, &vmmc->links[vmmc->peers], vmmc->peers);
		vmmc->peers++;
	}
	return code;
}

int vmmc_open(const struct cadge_open_args *args, const struct vmmc_config *config, struct vmmc **vmmc_out)
{
	static const struct cadge_wire_calls calls = {
		.up = on_up, .down = on_down, .packet = on_packet, .ended = on_ended};
	struct vmmc *vmmc = calloc(1, sizeof(*vmmc));
	const struct cadge_wire_needs needs = {
		.features = CADGE_WIRE_REMOTE,
		.packet_bytes = HEAD_BYTES + MORE_BYTES,
		.packets = config->notes + 2,
		.operations = config->operations + 1, /* and the quiet of control messages */
		.trusting = config->trusting,
		.calls = &calls,
		.arg = vmmc,
	};
	int code;

	if (!vmmc)
		return cadge_refuse(args, CADGE_E_MEMORY, "out of memory for %u peers", args->peers_max);
	vmmc->events = config->events;
	vmmc->operations = config->operations;
	vmmc->notes = config->notes;
	code = cadge_wire_open(args, &needs, &vmmc->wire);
	if (code == CADGE_DONE) {
		vmmc->in_order = cadge_wire_facts(vmmc->wire)->puts_in_order;
		code = make(vmmc, args->peers_max, config->cache_pages);
		if (code != CADGE_DONE)
			cadge_refuse(args, code, "out of memory for %u peers", args->peers_max);
	}
	if (code != CADGE_DONE) {
		vmmc_close(vmmc);
		return code;
	}
	*vmmc_out = vmmc;
	return CADGE_DONE;
}

struct cadge_wire *vmmc_wire(const struct vmmc *vmmc)
{
	return vmmc->wire;
}

void vmmc_counters(const struct vmmc *vmmc, void (*each)(void *arg, const char *name, uint64_t value),
		   void *arg)
{
	each(arg, "updates", vmmc->updates);
	each(arg, "updates_refused", vmmc->updates_refused);
	each(arg, "updates_redirected", vmmc->updates_redirected);
	each(arg, "imports_refused", vmmc->imports_refused);
	each(arg, "notifications_sent", vmmc->notes_sent);
	each(arg, "notifications_received", vmmc->notes_received);
	each(arg, "withdrawals", vmmc->withdrawals);
	each(arg, "withdrawals_answered", vmmc->withdrawals_answered);
	each(arg, "letters_late", vmmc->controls_late);
	each(arg, "letters_refused", vmmc->controls_refused);
	each(arg, "redirections", vmmc->redirections);
	each(arg, "redirection_copied_bytes", vmmc->copied_bytes);
	each(arg, "translation_hits", vmmc->utlb.hits);
	each(arg, "translation_misses", vmmc->utlb.misses);
	each(arg, "translation_evictions", vmmc->utlb.evictions);
	cadge_wire_counters(vmmc->wire, each, arg);
}
