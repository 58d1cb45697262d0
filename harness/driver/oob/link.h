/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection of the out-of-band channel: frames of JSON (a 4-byte little-endian length, then an object with a
 * string "m"), and a queue of messages that arrived before anybody wanted them. Private to this room.
 */
#ifndef DRV_OOB_LINK_H
#define DRV_OOB_LINK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fail.h"

/* one message; 64 endpoints with 64 addresses of some hundred bytes each fit many times */
#define DRV_OOB_FRAME_MAX (UINT32_C(64) << 20)

struct drv_link {
	/* -1: closed */
	int fd;
	/* the endpoint at the other end */
	int endpoint;
	/* bytes received and not yet handed out */
	char *in;
	size_t in_bytes, in_room;
	/* array of messages */
	json_t *queue;
	/* owned by the star: the next link in its list of those that hold messages, and whether this one is in it */
	struct drv_link *next;
	bool listed;
	/* bytes sent and received, whole frames */
	uint64_t carried_bytes;
	/* the other end is gone or stopped, and why; what it said before is in the queue */
	bool broken, aborted;
	struct drv_fail why;
};

/* Takes over a connected, authenticated socket. */
int drv_link_start(struct drv_link *link, int fd, int endpoint, struct drv_fail *fail);
void drv_link_close(struct drv_link *link);

/* A message as it goes over links; the caller frees its bytes. */
struct drv_frame {
	char *bytes;
	size_t count;
};
int drv_frame_make(const json_t *message, struct drv_frame *frame_out, struct drv_fail *fail);
int drv_link_send_frame(struct drv_link *link, const struct drv_frame *frame, uint64_t deadline_ns,
			struct drv_fail *fail);

/* Sends one message to one. */
int drv_link_send(struct drv_link *link, const json_t *message, uint64_t deadline_ns, struct drv_fail *fail);

/*
 * Reads what is there into the queue, without waiting. Each message gets a member "from". -1: the other end is gone,
 * stopped (an "abort"; then link->aborted is true and the reason is its own), or talks nonsense; so it stays.
 */
int drv_link_pump(struct drv_link *link, struct drv_fail *fail);

/* The oldest message, or NULL. The caller gets the reference. */
json_t *drv_link_take(struct drv_link *link);

#endif
