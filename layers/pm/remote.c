/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that peers write to, and its withdrawal. Shared memory has no key that could be revoked, and a write that was begun
 * may be under way on any path: so the holders of a handle are asked, and memory has left when they have answered.
 *
 * - A life of a link begins with PINS: number of the last withdrawal, nonce of the context, first slot, count, whether this is
 *   the last part of the table, and for each slot the lowest number that is valid. Both ends are up when both have sent and
 *   heard the whole table: so no handle of before is of use that was withdrawn meanwhile.
 * - Each withdrawal is one more PINS with one slot. Whoever hears it refuses writes by such a handle from then on, makes
 *   earlier ones visible (quiet), and answers LEFT with the number of the withdrawal, which stands for those before it as well.
 * - Who is down, or was disconnected by us, is asked no more.
 */
#include <stdlib.h>

#include "pm/state.h"

struct pm_remote {
	struct pm_remote *next; /* of its peer */
	struct pm *pm;
	uint32_t peer, slot;
	uint64_t nonce, number;
	bool withdrawn;
	struct cadge_remote *wire;
};

/* ---- the owner of memory ---- */

/* False: not now. */
static bool send_control(const struct peer *peer, uint8_t *packet, size_t bytes)
{
	if (cadge_wire_send(peer->link, packet, bytes) != CADGE_BUSY)
		return true; /* where the link is down, it says so */
	cadge_wire_drop(peer->link, packet);
	return false;
}

static bool send_pins(const struct pm *pm, const struct peer *peer, uint64_t withdrawal, uint32_t first,
		      uint32_t count)
{
	uint8_t *packet = cadge_wire_take(peer->link), *at;

	if (!packet)
		return false;
	memset(packet, 0, PM_HEAD_BYTES);
	packet[0] = PINS;
	at = packet + PM_HEAD_BYTES;
	cadge_store64(at, withdrawal);
	cadge_store64(at + 8, pm->pins.nonce);
	cadge_store32(at + 16, first);
	cadge_store32(at + 20, first + count == pm->pins.slots_used);
	at += PM_TABLE_HEAD_BYTES;
	for (uint32_t i = 0; i < count; i++)
		cadge_store64(at + i * PM_TABLE_ENTRY_BYTES, pm->pins.valid_from[first + i]);
	return send_control(peer, packet, PM_HEAD_BYTES + PM_TABLE_HEAD_BYTES + count * PM_TABLE_ENTRY_BYTES);
}

/* Who has begun to hear of our pins may write, until it is down. */
static void find_answered(struct pm *pm)
{
	uint64_t answered = UINT64_MAX;

	for (uint32_t i = 0; i < pm->peers; i++) {
		const struct peer *peer = &pm->peer[i];

		if (peer->table_begun && !peer->down && peer->withdrawals_answered < answered)
			answered = peer->withdrawals_answered;
	}
	pm_pins_answered(&pm->pins, answered);
}

/* Both return false where something is left to send. */
static bool send_whole_table(struct pm *pm, struct peer *peer)
{
	const uint32_t most = (pm->packet_bytes - PM_HEAD_BYTES - PM_TABLE_HEAD_BYTES) / PM_TABLE_ENTRY_BYTES;

	if (!peer->table_begun) {
		peer->table_begun = true;
		peer->withdrawals_sent = peer->withdrawals_answered = pm->pins.withdrawals;
		find_answered(pm);
	}
	while (!peer->table_sent) {
		const uint32_t left = pm->pins.slots_used - peer->slots_sent,
			       count = (uint32_t)cadge_least(left, most);

		if (!send_pins(pm, peer, peer->withdrawals_sent, peer->slots_sent, count))
			return false;
		peer->slots_sent += count;
		peer->table_sent = count == left;
	}
	return true;
}

static bool send_withdrawals(struct pm *pm, struct peer *peer)
{
	if (!peer->table_sent)
		return true;
	for (const struct pm_pin *pin = pm->pins.leaving; pin; pin = pin->next) {
		if (pin->withdrawal <= peer->withdrawals_sent)
			continue;
		if (!send_pins(pm, peer, pin->withdrawal, pin->slot, 1))
			return false;
		peer->withdrawals_sent = pin->withdrawal;
	}
	return true;
}

/* After pins were evicted: now, where there is room. */
static void ask_holders(struct pm *pm)
{
	if (!pm->pins.leaving)
		return;
	for (uint32_t i = 0; i < pm->peers; i++)
		if (pm->peer[i].wire_up && !pm->peer[i].down)
			pm->remote_due |= !send_withdrawals(pm, &pm->peer[i]);
}

void *pm_alloc(struct pm *pm, size_t bytes)
{
	return cadge_wire_alloc(pm->wire, bytes);
}

void pm_free(struct pm *pm, void *base, size_t bytes)
{
	pm_pins_free(&pm->pins, base, bytes);
	ask_holders(pm);
}

int pm_mlock(struct pm *pm, enum pm_side side, void *base, size_t bytes, struct pm_pin **pin_out)
{
	int code = pm_pins_lock(&pm->pins, side, base, bytes, pin_out);

	ask_holders(pm);
	return code;
}

struct pm_pin *pm_locked(const struct pm *pm, enum pm_side side, const void *base, size_t bytes)
{
	return pm_pins_locked(&pm->pins, side, base, bytes);
}

void pm_munlock(struct pm *pm, struct pm_pin *pin)
{
	pm_pins_unlock(&pm->pins, pin);
}

void pm_withdraw(struct pm *pm, struct pm_pin *pin)
{
	pm_pins_withdraw(&pm->pins, pin);
	ask_holders(pm);
}

int pm_forget(struct pm *pm, const void *base, size_t bytes)
{
	int code = pm_pins_forget(&pm->pins, base, bytes);

	ask_holders(pm);
	return code;
}

/* ---- the holder of a handle ---- */

static bool is_valid(const struct peer *peer, const struct pm_remote *remote)
{
	return remote->nonce == peer->nonce && remote->number >= peer->valid_from[remote->slot];
}

static struct pm_remote read_handle(struct cadge_blob_in *handle)
{
	struct pm_remote remote = {.nonce = cadge_blob_take_u64(handle)};

	remote.slot = cadge_blob_take_u32(handle);
	remote.number = cadge_blob_take_u64(handle);
	return remote;
}

int pm_attach(struct pm *pm, uint32_t number, struct cadge_blob_in *handle, struct pm_remote **remote_out)
{
	struct peer *peer = &pm->peer[number];
	struct pm_remote read = read_handle(handle), *remote;
	int code;

	if (!handle->ok || read.slot >= PM_PINS_MAX)
		return CADGE_E_ARGUMENT;
	if (!peer->link)
		return CADGE_E_DOWN;
	if (peer->table_received && !is_valid(peer, &read))
		return CADGE_E_REFUSED;
	remote = malloc(sizeof(*remote));
	if (!remote)
		return CADGE_E_MEMORY;
	*remote = read;
	code = cadge_wire_attach(peer->link, handle, &remote->wire);
	if (code != CADGE_DONE) {
		free(remote);
		return code;
	}
	remote->pm = pm;
	remote->peer = number;
	remote->next = peer->remotes;
	peer->remotes = remote;
	*remote_out = remote;
	return CADGE_DONE;
}

void pm_detach(struct pm_remote *remote)
{
	(void)CADGE_LIST_REMOVE(remote->pm->peer[remote->peer].remotes, remote);
	cadge_wire_detach(remote->wire);
	free(remote);
}

bool pm_is_withdrawn(const struct pm_remote *remote)
{
	return remote->withdrawn;
}

bool pm_is_of(const struct pm_remote *remote, struct cadge_blob_in handle)
{
	const struct pm_remote read = read_handle(&handle);

	return handle.ok && read.nonce == remote->nonce && read.slot == remote->slot &&
	       read.number == remote->number;
}

enum cadge_progress pm_reach(const struct pm_remote *remote)
{
	return cadge_wire_reach(remote->wire, CADGE_MAY_WRITE);
}

/* Why no operation can begin; where the peer is up it is the token. */
static int not_now(const struct peer *peer)
{
	if (peer->up)
		return CADGE_E_ARGUMENT;
	return peer->link && !peer->down ? CADGE_BUSY : CADGE_E_DOWN;
}

int pm_write(struct pm *pm, uint32_t number, const struct pm_remote *remote, uint64_t offset_bytes,
	     const void *local, size_t bytes, uint64_t token)
{
	const struct peer *peer = &pm->peer[number];
	int code = CADGE_E_REFUSED;

	if (UNLIKELY(!peer->up || token == PM_QUIET_TOKEN))
		return not_now(peer);
	if (!UNLIKELY(remote->withdrawn))
		code = cadge_wire_put(peer->link, local, bytes, remote->wire, offset_bytes, token);
	pm->writes_refused += code == CADGE_E_REFUSED;
	return code;
}

int pm_quiet(struct pm *pm, uint32_t number, uint64_t token)
{
	const struct peer *peer = &pm->peer[number];

	if (UNLIKELY(!peer->up || token == PM_QUIET_TOKEN))
		return not_now(peer);
	return cadge_wire_quiet(peer->link, token);
}

/* Makes writes before the last withdrawal visible, then answers it. False: not now. */
static bool answer(struct peer *peer)
{
	uint8_t *packet;

	if (peer->quiet < peer->withdrawals_received && !peer->quieting) {
		const int code = cadge_wire_quiet(peer->link, PM_QUIET_TOKEN);

		if (code == CADGE_BUSY)
			return false;
		peer->quiet_asked = peer->withdrawals_received;
		peer->quieting = code == CADGE_QUEUED;
		if (code == CADGE_DONE)
			peer->quiet = peer->quiet_asked;
	}
	if (peer->withdrawals_replied == peer->quiet)
		return true;
	packet = cadge_wire_take(peer->link);
	if (!packet)
		return false;
	memset(packet, 0, PM_HEAD_BYTES);
	packet[0] = LEFT;
	cadge_store64(packet + PM_HEAD_BYTES, peer->quiet);
	if (!send_control(peer, packet, PM_HEAD_BYTES + 8))
		return false;
	peer->withdrawals_replied = peer->quiet;
	return true;
}

void pm_remote_quiet_ended(struct pm *pm, uint32_t number, int code)
{
	struct peer *peer = &pm->peer[number];

	peer->quieting = false;
	if (code == CADGE_DONE)
		peer->quiet = peer->quiet_asked;
	pm->remote_due = true;
}

/* ---- what peers say ---- */

static bool take_pins(struct pm *pm, struct peer *peer, const uint8_t *body, size_t bytes)
{
	const uint64_t withdrawal = cadge_load64(body), nonce = cadge_load64(body + 8);
	const uint32_t first = cadge_load32(body + 16);
	const size_t count = (bytes - PM_TABLE_HEAD_BYTES) / PM_TABLE_ENTRY_BYTES;

	if (first > PM_PINS_MAX || count > PM_PINS_MAX - first ||
	    bytes != PM_TABLE_HEAD_BYTES + count * PM_TABLE_ENTRY_BYTES ||
	    (peer->table_received && (nonce != peer->nonce || withdrawal <= peer->withdrawals_received)))
		return false;
	for (size_t i = 0; i < count; i++)
		peer->valid_from[first + i] =
			cadge_load64(body + PM_TABLE_HEAD_BYTES + i * PM_TABLE_ENTRY_BYTES);
	peer->nonce = nonce;
	peer->withdrawals_received = withdrawal;
	if (peer->table_received)
		pm->withdrawals_received++;
	else /* nothing was written yet */
		peer->quiet = peer->withdrawals_replied = withdrawal;
	peer->table_received = peer->table_received || cadge_load32(body + 20);
	for (struct pm_remote *remote = peer->remotes; remote && peer->table_received; remote = remote->next)
		remote->withdrawn = remote->withdrawn || !is_valid(peer, remote);
	return true;
}

static bool take_left(struct peer *peer, const uint8_t *body, size_t bytes)
{
	const uint64_t withdrawal = bytes == 8 ? cadge_load64(body) : 0;

	if (withdrawal <= peer->withdrawals_answered || withdrawal > peer->withdrawals_sent)
		return false;
	peer->withdrawals_answered = withdrawal;
	return true;
}

bool pm_remote_packet(struct pm *pm, uint32_t number, const uint8_t *data, size_t bytes)
{
	struct peer *peer = &pm->peer[number];
	const uint8_t *body = data + PM_HEAD_BYTES;
	const size_t body_bytes = bytes - PM_HEAD_BYTES;
	bool good;

	if (data[0] == LEFT)
		good = take_left(peer, body, body_bytes);
	else
		good = body_bytes >= PM_TABLE_HEAD_BYTES && take_pins(pm, peer, body, body_bytes);
	pm->remote_due |= good;
	return good;
}

/* ---- lives ---- */

void pm_remote_up(struct pm *pm, uint32_t number)
{
	pm->peer[number].wire_up = true;
	pm->remote_due = true;
}

void pm_remote_down(struct pm *pm, uint32_t number)
{
	pm->peer[number].up = false;
	pm->peer[number].down = true;
	pm->remote_due = true;
}

void pm_remote_forget(struct pm *pm, uint32_t number)
{
	struct peer *peer = &pm->peer[number];
	struct pm_remote *remote;

	while ((remote = CADGE_POOL_TAKE(peer->remotes))) /* the wire has detached what they name */
		free(remote);
	*peer = (struct peer){.link = NULL};
	find_answered(pm);
}

void pm_remote_settle(struct pm *pm)
{
	pm->remote_due = false;
	for (uint32_t i = 0; i < pm->peers; i++) {
		struct peer *peer = &pm->peer[i];

		if (!peer->wire_up || peer->down)
			continue;
		pm->remote_due |= !send_whole_table(pm, peer) || !send_withdrawals(pm, peer) || !answer(peer);
		if (peer->table_sent && peer->table_received && !peer->up) {
			peer->up = true;
			pm->events.up(pm->events.arg, i);
		}
	}
	find_answered(pm);
}
