/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The out-of-band channel: TCP connections between endpoint 0 and every other endpoint of a launch, a star. On it they
 * agree, exchange addresses, wait for each other and tell each other why they stop. The layer under test never carries
 * any of it.
 *
 * - Endpoint 0 listens on the one address it was given; all others connect, again and again until their deadline.
 * - Both ends of a connection prove that they hold the token of the launch before anything else is said (see
 *   proof.h). A connection that does not is closed and the listener listens on: a port scan must not end a
 *   measurement.
 * - Then each says who it is (hello), and from there on messages travel: JSON objects with a string "m". What is
 *   received carries "from", the number of its sender.
 * - When an endpoint dies or stops, endpoint 0 tells all others which one and why: every function of everybody then
 *   fails with that.
 * - Every function takes a deadline (CLOCK_MONOTONIC ns, absolute) and returns -1 with a reason; afterwards the channel
 *   is broken and only drv_oob_abort and drv_oob_close are legal.
 * - Whoever waits, polls: while nothing has arrived, `idle->step` is called; it may do work or sleep a little. Without
 *   one the function sleeps in the kernel.
 */
#ifndef DRV_OOB_H
#define DRV_OOB_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fail.h"
#include "oob/proof.h"

/* one endpoint's end of the channel */
struct drv_oob;

/* What is called while a wait finds nothing. A negative return ends the wait with `fail` set by the step. */
struct drv_idle {
	int (*step)(void *arg, struct drv_fail *fail);
	void *arg;
};

/*
 * Connects all endpoints: 0 listens at "HOST:PORT" ("[v6]:PORT"), all others connect to it. Only a literal address or a
 * name that resolves on this host. `hello` (borrowed) is what this endpoint says of itself: its members "version",
 * "abi", "schema", "revision" and "launch" must be the same everywhere, else DRV_VERSION_MISMATCH (or DRV_PROTOCOL for
 * "launch") at every endpoint, with a sentence that names both values. Returns when all are there. On success the
 * caller closes *oob_out.
 */
int drv_oob_open(int endpoint, int endpoints, const char *host_port, const struct drv_oob_token *token,
		 const json_t *hello, uint64_t deadline_ns, struct drv_oob **oob_out, struct drv_fail *fail);

/* Sends one message (borrowed) to `to`: from endpoint 0 to any other, from any other to 0. */
int drv_oob_send(struct drv_oob *oob, int to, const json_t *message, uint64_t deadline_ns,
		 struct drv_fail *fail);

/* Endpoint 0: an order to all others. Elsewhere forbidden. */
int drv_oob_order(struct drv_oob *oob, const json_t *message, uint64_t deadline_ns, struct drv_fail *fail);

/*
 * Looks without waiting, at all senders in turn: 1 and *message_out (a new reference) when a message is there, 0 when none is, -1 when an
 * endpoint is gone or stopped. One system call when nothing is there.
 */
int drv_oob_try(struct drv_oob *oob, json_t **message_out, struct drv_fail *fail);

/* Puts a message that was taken back before all others of its sender; takes over the reference. */
void drv_oob_put_back(struct drv_oob *oob, json_t *message);

/* Notices that an endpoint is gone or stopped (-1), and leaves messages that are due later in their place. */
int drv_oob_peek(struct drv_oob *oob, struct drv_fail *fail);

/* Waits for the next message from anybody. *message_out is a new reference. */
int drv_oob_receive(struct drv_oob *oob, const struct drv_idle *idle, uint64_t deadline_ns,
		    json_t **message_out, struct drv_fail *fail);

/* Waits for the next message of endpoint `from`, which must be called `name`. Others' messages stay for later. */
int drv_oob_expect(struct drv_oob *oob, int from, const char *name, const struct drv_idle *idle,
		   uint64_t deadline_ns, json_t **message_out, struct drv_fail *fail);

/*
 * Everybody contributes an object under a name (`mine` is borrowed; it gets a member "m") and receives all of them:
 * *all_out is an array with one object an endpoint, in their order, a new reference. Also a barrier.
 */
int drv_oob_gather(struct drv_oob *oob, const char *name, json_t *mine, const struct drv_idle *idle,
		   uint64_t deadline_ns, json_t **all_out, struct drv_fail *fail);

/* A gather of nothing: returns when all have come to `name`. */
int drv_oob_barrier(struct drv_oob *oob, const char *name, const struct drv_idle *idle, uint64_t deadline_ns,
		    struct drv_fail *fail);

/*
 * Endpoint 0: bytes sent to and received from an endpoint since they connected; of itself, from all together. What the
 * kernel and the network add to them is not counted. NULL: 0.
 */
uint64_t drv_oob_carried(const struct drv_oob *oob, int endpoint);

/* Tells the others why this end stops. Best effort, at most 100 ms each; never fails. NULL is legal. */
void drv_oob_abort(struct drv_oob *oob, enum drv_reason reason, const char *text);

/* Closes all connections. NULL is legal. */
void drv_oob_close(struct drv_oob *oob);

#endif
