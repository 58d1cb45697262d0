/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The out-of-band channel: one TCP connection between the two endpoints of a launch, on which they agree,
 * exchange addresses, wait for each other and tell each other why they stop. The layer under test never
 * carries any of it.
 *
 * - Endpoint 1 listens on the one address it was given; endpoint 0 connects, again and again until its
 * deadline.
 * - Both prove that they hold the token of the launch before anything else is said (see oob_auth.c). A
 * connection that does not is closed and the listener listens on: a port scan must not end a measurement.
 * - Then frames: a 4-byte little-endian length, and that many bytes of JSON (one object with a string "m").
 * - Every function takes a deadline (CLOCK_MONOTONIC ns, absolute) and returns -1 with a reason; afterwards
 * the channel is broken and only drv_oob_close is legal, except after DRV_STOPPED reasons that came as an
 * abort.
 * - Whoever waits, polls: while nothing has arrived, `idle->step` is called; it may do work or sleep a
 * little. Without one the function sleeps in poll(2).
 */
#ifndef DRV_OOB_H
#define DRV_OOB_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "fail.h"

#define DRV_OOB_TOKEN_MAX 256
#define DRV_OOB_FRAME_MAX (UINT32_C(16) << 20)

struct drv_oob; /* one connection */

struct drv_oob_token {
	uint8_t bytes[DRV_OOB_TOKEN_MAX];
	size_t count; /* 16 at least */
};

/* What is called while a wait finds nothing. A negative return ends the wait with `fail` set by the step. */
struct drv_idle {
	int (*step)(void *arg, struct drv_fail *fail);
	void *arg;
};

/*
 * Reads a token file: regular, owned by this user, mode 0600 exactly, 16 to 256 bytes without the last
 * newline. The token is never printed.
 */
int drv_oob_token_read(const char *path, struct drv_oob_token *token_out, struct drv_fail *fail);

/*
 * Makes the connection: endpoint 1 listens at "HOST:PORT" ("[v6]:PORT") and accepts one authenticated peer,
 * endpoint 0 connects to it. Only a literal address or a name that resolves on this host. On success the
 * caller closes *oob_out.
 */
int drv_oob_open(int endpoint, const char *host_port, const struct drv_oob_token *token, uint64_t deadline_ns,
		 struct drv_oob **oob_out, struct drv_fail *fail);

/*
 * The first exchange: both send `mine` and receive the other's. The members "version", "abi", "schema",
 * "revision" and "launch" must be equal, else DRV_VERSION_MISMATCH (or DRV_PROTOCOL for "launch") with a
 * sentence that names both values. *theirs_out is a new reference.
 */
int drv_oob_hello(struct drv_oob *oob, const json_t *mine, uint64_t deadline_ns, json_t **theirs_out,
		  struct drv_fail *fail);

/* Sends one message; steals no reference. `message` must be an object with "m". */
int drv_oob_send(struct drv_oob *oob, const json_t *message, uint64_t deadline_ns, struct drv_fail *fail);

/* Waits for the next message. An "abort" from the peer is returned as its reason. *message_out is a new
 * reference. */
int drv_oob_receive(struct drv_oob *oob, const struct drv_idle *idle, uint64_t deadline_ns,
		    json_t **message_out, struct drv_fail *fail);

/* The same, and the message must be called `name`. */
int drv_oob_expect(struct drv_oob *oob, const char *name, const struct drv_idle *idle, uint64_t deadline_ns,
		   json_t **message_out, struct drv_fail *fail);

/*
 * Looks without waiting: 1 and *message_out when a message is there, 0 when none is, -1 when the peer is gone
 * or aborted. One system call when nothing is there.
 */
int drv_oob_try(struct drv_oob *oob, json_t **message_out, struct drv_fail *fail);

/* Notices that the peer is gone or aborted (-1), and leaves a message that is due later in its place. Once
 * per idle while. */
int drv_oob_peek(struct drv_oob *oob, struct drv_fail *fail);

/* Both send `mine` (an object called `name`) and receive the other's of that name: an exchange, and a
 * barrier. */
int drv_oob_exchange(struct drv_oob *oob, const char *name, const json_t *mine, const struct drv_idle *idle,
		     uint64_t deadline_ns, json_t **theirs_out, struct drv_fail *fail);

/* A barrier: returns when both have come to `name`. */
int drv_oob_barrier(struct drv_oob *oob, const char *name, const struct drv_idle *idle, uint64_t deadline_ns,
		    struct drv_fail *fail);

/* Tells the peer why this end stops. Best effort, at most 100 ms; never fails. NULL oob is legal. */
void drv_oob_abort(struct drv_oob *oob, enum drv_reason reason, const char *text);

/* Closes the connection. NULL is legal. */
void drv_oob_close(struct drv_oob *oob);

#endif
