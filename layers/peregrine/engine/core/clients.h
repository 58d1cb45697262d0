/* SPDX-License-Identifier: BSD-3-Clause */
/* The clients of a server, and what each host holds of it. */
#ifndef PGR_CLIENTS_H
#define PGR_CLIENTS_H

#include "engine.h"

/* A slot of a client's, as the server knows it. */
struct pgr_client_slot {
	/* of the newest call that was taken up */
	uint64_t sequence;
	/* NULL: executed and acknowledged */
	struct pgr_work *work;
};

enum { PGR_OF_ALL, PGR_OF_QUOTA, PGR_QUEUES };

/* What one host holds (on shm: one process) of what is for all. */
struct pgr_quota {
	struct pgr_quota *next;
	/* the first bytes of its addresses */
	uint32_t who;
	/* clients and works that name it; with the last one it goes */
	uint32_t users;
	uint32_t clients;
	struct pgr_queue silent;
	uint64_t pool_bytes;
};

/* What a server knows of a binding. */
struct pgr_client {
	uint64_t id;
	/* where it is, by the last cookie that it has shown */
	struct pgr_to to;
	/* in its bucket */
	struct pgr_client *next;
	/* the host's, or process's, that it belongs to */
	struct pgr_quota *quota;
	/* its neighbours in the queue of all, and in its share's; when it was put behind the others */
	struct pgr_client *before[PGR_QUEUES], *behind[PGR_QUEUES];
	uint64_t queued_ns;
	uint64_t last_packet_ns;
	/* when it was last given a cookie since it is known */
	uint64_t challenged_ns;
	/* pgr->period when it last had work here */
	uint32_t active;
	/* the server's own */
	void *data;
	/* slots of whose last call the result was dropped unacknowledged */
	uint64_t lost;
	struct pgr_client_slot slots[PGR_SLOTS];
};
_Static_assert(sizeof(struct pgr_client) <= 2048, "a known client costs the server at most 2 KiB");

/* ---- quota.c ---- */
/* The share that an address belongs to, until it is put back; NULL: no memory. */
struct pgr_quota *pgr_quota_get(struct pgr *pgr, const struct pgr_to *to);
/* NULL is legal. */
void pgr_quota_put(struct pgr *pgr, struct pgr_quota *quota);
/* A client that is new, or goes to another address, is of this share from now on, and is no more. */
void pgr_quota_enter(struct pgr *pgr, struct pgr_quota *quota, struct pgr_client *client);
void pgr_quota_leave(struct pgr *pgr, struct pgr_client *client);
PGR_COLD void pgr_client_requeue(struct pgr *pgr, struct pgr_client *client);
/* It has spoken. */
static inline void pgr_client_note_packet(struct pgr *pgr, struct pgr_client *client)
{
	client->last_packet_ns = pgr->now_ns;
	if (PGR_UNLIKELY(pgr->now_ns - client->queued_ns >= PGR_REQUEUE_NS))
		pgr_client_requeue(pgr, client);
}

/* ---- contact.c ---- */
/* Who is known by this identifier; NULL. */
struct pgr_client *pgr_client_of(struct pgr *pgr, uint64_t id);
/*
 * Who sent this, if he has shown that he is where he says; else he is answered and NULL is returned. `client`: who is known by
 * his identifier; NULL.
 */
PGR_COLD struct pgr_client *pgr_client_first_contact(struct pgr *pgr, struct pgr_client *client,
						     const struct pgr_to *from,
						     const struct pgr_packet *packet);
/* Whether the packet, from there, has a cookie that is right; else it is challenged. */
PGR_COLD bool pgr_cookie_shown(struct pgr *pgr, struct pgr_client *client, const struct pgr_to *from,
			       const struct pgr_packet *packet);
/* Something is being done or kept for it, so it is not forgotten: what it may say next has to find its slot. */
bool pgr_client_has_work(const struct pgr_client *client);
/* The client has moved on or is forgotten: what it asked for is given up. */
void pgr_client_abandon(struct pgr *pgr, struct pgr_client_slot *slot);
/* Releases a client and all that was kept for it. */
void pgr_client_forget(struct pgr *pgr, struct pgr_client *client);
/* An answer without data to the packet `to`. */
void pgr_server_answer(struct pgr *pgr, const struct pgr_to *from, const struct pgr_header *to, uint8_t type,
		       uint32_t procedure, uint32_t packet_bytes, uint16_t credits);
PGR_COLD void pgr_server_reject(struct pgr *pgr, const struct pgr_to *from, const struct pgr_header *to,
				uint32_t reason);

/* ---- send.c: credits ---- */
/* It has work here. */
static inline void pgr_client_active(struct pgr *pgr, struct pgr_client *client)
{
	if (PGR_LIKELY(client->active == pgr->period))
		return;
	client->active = pgr->period;
	pgr->clients_counted++;
}
/* The credits that go into a packet to a client, which thereby had work here lately; and to a server. */
static inline uint16_t pgr_grant_to_client(struct pgr *pgr, struct pgr_client *client)
{
	pgr_client_active(pgr, client);
	return pgr->grant_to_clients;
}

#endif
