/* SPDX-License-Identifier: BSD-3-Clause */
/* One connection of the out-of-band channel: frames in and out. */
#include "oob/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "oob/proof.h"

#define CHUNK_BYTES 65536u

int drv_link_start(struct drv_link *link, int fd, int endpoint, struct drv_fail *fail)
{
	*link = (struct drv_link){
		.fd = fd, .endpoint = endpoint, .in = malloc(CHUNK_BYTES), .queue = json_array()};
	link->in_room = CHUNK_BYTES;
	if (link->in && link->queue)
		return 0;
	drv_link_close(link);
	return drv_fail_set(fail, DRV_MEMORY, "no memory for the out-of-band connection");
}

void drv_link_close(struct drv_link *link)
{
	if (link->fd >= 0)
		close(link->fd);
	link->fd = -1;
	free(link->in);
	link->in = NULL;
	json_decref(link->queue);
	link->queue = NULL;
}

int drv_frame_make(const json_t *message, struct drv_frame *frame_out, struct drv_fail *fail)
{
	char *text = json_dumps(message, JSON_COMPACT);
	const size_t bytes = text ? strlen(text) : 0;
	char *frame = text ? malloc(4 + bytes) : NULL;

	if (!frame || bytes > DRV_OOB_FRAME_MAX) {
		free(text);
		free(frame);
		return drv_fail_set(fail, DRV_MEMORY, "no memory for an out-of-band message of %zu bytes",
				    bytes);
	}
	for (int i = 0; i < 4; i++)
		frame[i] = (char)(bytes >> (8 * i) & 0xff);
	memcpy(frame + 4, text, bytes);
	free(text);
	*frame_out = (struct drv_frame){frame, 4 + bytes};
	return 0;
}

int drv_link_send_frame(struct drv_link *link, const struct drv_frame *frame, uint64_t deadline_ns,
			struct drv_fail *fail)
{
	if (drv_oob_write_all(link->fd, frame->bytes, frame->count, deadline_ns, fail))
		return -1;
	link->carried_bytes += frame->count;
	return 0;
}

int drv_link_send(struct drv_link *link, const json_t *message, uint64_t deadline_ns, struct drv_fail *fail)
{
	struct drv_frame frame;
	int status;

	if (drv_frame_make(message, &frame, fail))
		return -1;
	status = drv_link_send_frame(link, &frame, deadline_ns, fail);
	free(frame.bytes);
	return status;
}

/* Takes one whole frame from the buffer: 1, or 0 when it is not there yet, or -1. */
static int take_frame(struct drv_link *link, json_t **message_out, struct drv_fail *fail)
{
	uint32_t bytes = 0;
	json_error_t error;
	json_t *message;

	if (link->in_bytes < 4)
		return 0;
	for (int i = 0; i < 4; i++)
		bytes |= (uint32_t)(unsigned char)link->in[i] << (8 * i);
	if (bytes < 2 || bytes > DRV_OOB_FRAME_MAX)
		return drv_fail_set(fail, DRV_PROTOCOL, "endpoint %d sent a frame of %u bytes",
				    link->endpoint, bytes);
	if (link->in_room < 4 + (size_t)bytes) {
		char *larger = realloc(link->in, 4 + (size_t)bytes);

		if (!larger)
			return drv_fail_set(fail, DRV_MEMORY, "no memory for an out-of-band message");
		link->in = larger;
		link->in_room = 4 + (size_t)bytes;
	}
	if (link->in_bytes < 4 + (size_t)bytes)
		return 0;
	message = json_loadb(link->in + 4, bytes, JSON_REJECT_DUPLICATES, &error);
	link->in_bytes -= 4 + (size_t)bytes;
	memmove(link->in, link->in + 4 + bytes, link->in_bytes);
	if (!json_is_string(json_object_get(message, "m")) ||
	    json_object_set_new(message, "from", json_integer(link->endpoint))) {
		json_decref(message);
		return drv_fail_set(fail, DRV_PROTOCOL, "endpoint %d sent an invalid message",
				    link->endpoint);
	}
	*message_out = message;
	return 1;
}

/* An abort becomes the reason that it carries. Endpoint 0 relays what others said, with their number in it. */
static int check_abort(const struct drv_link *link, const json_t *message, struct drv_fail *fail)
{
	const char *text, *reason;

	if (strcmp(json_string_value(json_object_get(message, "m")), "abort") != 0)
		return 0;
	text = json_string_value(json_object_get(message, "text"));
	reason = json_string_value(json_object_get(message, "reason"));
	if (json_is_true(json_object_get(message, "relayed")))
		drv_fail_set(fail, drv_reason_from_name(reason), "%s", text ? text : "no reason given");
	else
		drv_fail_set(fail, drv_reason_from_name(reason), "endpoint %d stopped: %s", link->endpoint,
			     text ? text : "no reason given");
	return 1;
}

/* Reads until nothing is there. -1: link->why. */
static int read_all(struct drv_link *link)
{
	for (;;) {
		json_t *message;
		ssize_t count;
		const int status = take_frame(link, &message, &link->why);

		if (status < 0)
			return -1;
		if (status > 0) {
			if (check_abort(link, message, &link->why)) {
				json_decref(message);
				link->aborted = true;
				return -1;
			}
			if (json_array_append_new(link->queue, message))
				return drv_fail_set(&link->why, DRV_MEMORY,
						    "no memory for an out-of-band message");
			continue;
		}
		count = recv(link->fd, link->in + link->in_bytes, link->in_room - link->in_bytes,
			     MSG_DONTWAIT);
		if (count > 0) {
			link->in_bytes += (size_t)count;
			link->carried_bytes += (size_t)count;
		} else if (count == 0) {
			return drv_fail_set(&link->why, DRV_PEER_LOST,
					    "endpoint %d is gone: it closed the connection", link->endpoint);
		} else if (errno == EAGAIN || errno == EINTR) {
			return 0;
		} else {
			return drv_fail_set(&link->why, DRV_PEER_LOST, "endpoint %d is gone: %s",
					    link->endpoint, strerror(errno));
		}
	}
}

int drv_link_pump(struct drv_link *link, struct drv_fail *fail)
{
	if (!link->broken && !read_all(link))
		return 0;
	link->broken = true;
	*fail = link->why;
	return -1;
}

json_t *drv_link_take(struct drv_link *link)
{
	json_t *message = json_array_get(link->queue, 0);

	if (!message)
		return NULL;
	json_incref(message);
	json_array_remove(link->queue, 0);
	return message;
}
