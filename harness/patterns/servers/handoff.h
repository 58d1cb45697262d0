/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A responder some of whose requests are not answered in place. The thread that owns the context copies one out of the layer's
 * delivery and passes it on; another thread works for it and writes the answer; and the owner, which alone touches the context,
 * gives that to the layer. The others are the owner's workers, or the server's threads by a queue that all of them look at
 * (jobs.h).
 *
 * Requests of one channel that several threads work for may be answered in another order than they came. How many were,
 * it counts.
 */
#ifndef SERVERS_HANDOFF_H
#define SERVERS_HANDOFF_H

#include "threads/jobs.h"
#include "traffic/responder.h"

/* Bit of a token: of an answer that another thread has written. */
#define DRV_TOKEN_HANDED_OFF (UINT64_C(1) << 61)

/* So many polls in a row that brought requests make a thread pass some on, where it may answer in place as well. */
#define DRV_HANDOFF_BUSY_POLLS 8u

/* One request that was passed on, by job. */
struct drv_errand {
	struct drv_work work;
	/* of its channel's requests */
	uint64_t place;
	/* of the engine's pool: a copy of the payload, and where the answer is written */
	uint8_t *request, *reply;
	/* head, and once somebody has worked for it body, are what the client wrote */
	bool good;
};

struct drv_handoff {
	/* first: callbacks get a pointer to it. It answers in place, by channel; whoever works for a request does as it does. */
	struct drv_responder server;
	/* what its sink did before it passed anything on */
	struct cadge_sink in_place;
	struct drv_jobs jobs;
	struct drv_errand *errands;
	/* by channel: requests that came, and the last of them that was answered, plus one */
	struct {
		uint64_t came, answered;
	} lines[DRV_PEERS_MAX];
	/* requests that came, as of the last look; looks in a row that found more */
	uint64_t came, came_before;
	uint32_t busy_polls;
	/* answers out of order */
	uint64_t reordered;
};

/*
 * From now on its server, which was started, passes requests on: starts the workers. `common`: of all threads, zeroed, theirs
 * until all have stopped; NULL for workers. To be ended with drv_handoff_stop in any case.
 */
int drv_handoff_start(struct drv_handoff *handoff, struct drv_queue *common, struct drv_fail *fail);
/* Stops its server as well. Legal on zeroes. */
void drv_handoff_stop(struct drv_handoff *handoff);

/* Whether the next request is to be passed on. Workers do all; in the common queue go those that come to a busy thread. */
static inline bool drv_handoff_wants(const struct drv_handoff *handoff)
{
	return handoff->jobs.policy != DRV_POLICY_SHARED || handoff->busy_polls >= DRV_HANDOFF_BUSY_POLLS;
}

/* Passes a request on; false: there is no room for it. */
bool drv_handoff_pass(struct drv_handoff *handoff, const void *request, size_t bytes,
		      const struct drv_work *work);

/*
 * Works for what others passed on, answers what others have worked for, and what could not be answered in place at once. 0, or
 * -1 with the reason. After poll.
 */
int drv_handoff_drain(struct drv_handoff *handoff, struct drv_fail *fail);

/* Serves until a message comes from out of band: *message_out is a new reference. */
int drv_handoff_run(struct drv_handoff *handoff, json_t **message_out, struct drv_fail *fail);

#endif
