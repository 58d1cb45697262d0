/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Payloads: their heads, bodies and trailers, and the one writer that hands a message over.
 *
 * Head, written and checked for every message of a measurement: from 16 bytes on, the sequence number and the
 * seed (little endian); below, as many bytes as there are of f(seed, sequence). The *key* of a message is
 * the first 8 bytes of its head, zero-extended: from 16 bytes on, the sequence number. The head of a
 * reply is made from the key of its request under the complement of the seed. So the server needs nothing but
 * the request, and the caller proves the round trip.
 *
 * Where messages may be lost, the head of one that is compared whole also says of which phase it is: its second word is
 * the seed plus the phase's serial. So one that comes a phase late is known.
 *
 * Body, everything after the head. It is written in one of two ways, or not at all:
 *	full:   words from (seed, phase, sequence), in a phase before and a phase after the measurement;
 *	touch:  one byte again and again, another one for each number. A program with data of its own writes each message
 *		before it leaves (write+read); most native tools send the same bytes every time (none).
 *
 * All buffers of ours have at least 16 bytes of room, whatever the message's size; received data is never
 * read beyond its end.
 */
#ifndef DRV_PAYLOAD_H
#define DRV_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/random.h"
#include "engine/engine.h"
#include "engine/in_place.h"

#define DRV_HEAD_BYTES 16u

static inline uint64_t drv_load64(const void *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline uint32_t drv_load32(const void *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline void drv_store64(void *at, uint64_t value)
{
	memcpy(at, &value, sizeof(value));
}

/* The 16 bytes that a head of `bytes` bytes is cut from. */
static inline void drv_head_words(uint64_t words_out[2], size_t bytes, uint64_t seed, uint64_t number)
{
	if (bytes >= DRV_HEAD_BYTES) {
		words_out[0] = number;
		words_out[1] = seed;
	} else {
		words_out[0] = drv_mix(seed, number);
		words_out[1] = bytes > 8 ? drv_mix(seed, ~number) : 0;
	}
}

/* The first 8 bytes of a message, zero-extended. */
static inline uint64_t drv_head_key(const void *data, size_t bytes)
{
	const uint8_t *at = data;
	uint64_t key = 0;

	if (__builtin_expect(bytes >= 8, 1))
		return drv_load64(at);
	if (bytes >= 4)
		return drv_load32(at) | (uint64_t)drv_load32(at + bytes - 4) << 8 * (bytes - 4);
	for (size_t i = 0; i < bytes; i++)
		key |= (uint64_t)at[i] << 8 * i;
	return key;
}

/* The key of message `number`, of `bytes` bytes. */
static inline uint64_t drv_key_of(size_t bytes, uint64_t seed, uint64_t number)
{
	uint64_t words[2];

	drv_head_words(words, bytes, seed, number);
	return bytes >= 8 ? words[0] : words[0] & ((UINT64_C(1) << 8 * bytes) - 1);
}

/* Writes the head of a message of `bytes` bytes into `buffer` (room for 16). Returns its key. */
static inline uint64_t drv_head_write(void *buffer, size_t bytes, uint64_t seed, uint64_t number)
{
	uint64_t words[2];

	drv_head_words(words, bytes, seed, number);
	memcpy(buffer, words, sizeof(words));
	return bytes >= 8 ? words[0] : words[0] & ((UINT64_C(1) << 8 * bytes) - 1);
}

/* Whether received data begins as drv_head_write would have made it. */
static inline bool drv_head_holds(const void *data, size_t bytes, uint64_t seed, uint64_t number)
{
	const uint8_t *at = data;
	uint64_t words[2];

	drv_head_words(words, bytes, seed, number);
	if (__builtin_expect(bytes >= DRV_HEAD_BYTES, 1))
		return drv_load64(at) == words[0] && drv_load64(at + 8) == words[1];
	if (bytes >= 8)
		return drv_load64(at) == words[0] &&
		       drv_load64(at + bytes - 8) == drv_load64((const uint8_t *)words + bytes - 8);
	return bytes == 0 || drv_head_key(at, bytes) == (words[0] & ((UINT64_C(1) << 8 * bytes) - 1));
}

/* Fills the body of a message of `bytes` bytes. `phase` tells stale bytes from new ones. */
void drv_body_fill(void *buffer, size_t bytes, uint64_t seed, uint64_t phase, uint64_t number);

/* Whether every byte of the body is as drv_body_fill makes it. True where there is no body. */
bool drv_body_holds(const void *data, size_t bytes, uint64_t seed, uint64_t phase, uint64_t number);

/* How many messages a full comparison goes through: `depth` of them, or as many as fit into 16 MiB. */
uint64_t drv_full_messages(uint64_t larger_bytes, uint32_t depth);

/* In the order of drv_touch_words, which a parameter of the type DRV_CHOICE takes. */
enum drv_touch { DRV_TOUCH_NONE, DRV_TOUCH_WRITE_READ };
extern const char *const drv_touch_words[];

/* What message `number` holds behind its head. */
static inline uint8_t drv_touch_byte(uint64_t seed, uint64_t number)
{
	return (uint8_t)(drv_mix(seed, number) >> 56);
}

/* Writes everything behind the head, as fast as the C library can. */
static inline void drv_touch_write(void *message, size_t bytes, uint64_t seed, uint64_t number)
{
	if (bytes > DRV_HEAD_BYTES)
		memset((uint8_t *)message + DRV_HEAD_BYTES, drv_touch_byte(seed, number),
		       bytes - DRV_HEAD_BYTES);
}

/* Reads every byte behind the head; whether their sum is that of what drv_touch_write wrote. */
bool drv_touch_read(const void *message, size_t bytes, uint64_t seed, uint64_t number);

/*
 * The trailer of an emulated call, little endian: id (8 bytes), kind (4), magic (4). It follows the payload: that begins
 * where the buffer is aligned, and both are one piece, so that a library is handed what it would be handed for a bare
 * message that is so much longer.
 */
#define DRV_RPC_TRAILER_BYTES 16u
#define DRV_RPC_MAGIC         UINT32_C(0x67644143)
#define DRV_RPC_REQUEST       1u
#define DRV_RPC_REPLY         2u

/* Writes the trailer behind a payload. Only then: writing the head of a short payload goes beyond its end. */
DRV_INLINE void drv_trailer_write(uint8_t *payload, size_t payload_bytes, uint64_t id, uint64_t kind)
{
	drv_store64(payload + payload_bytes, id);
	drv_store64(payload + payload_bytes + 8, (uint64_t)DRV_RPC_MAGIC << 32 | kind);
}

/* Whether a message ends with a trailer of that kind, and its id. */
DRV_INLINE bool drv_trailer_read(const void *message, size_t bytes, uint64_t kind, uint64_t *id_out)
{
	const uint8_t *end = (const uint8_t *)message + bytes;

	if (DRV_UNLIKELY(bytes < DRV_RPC_TRAILER_BYTES ||
			 drv_load64(end - 8) != ((uint64_t)DRV_RPC_MAGIC << 32 | kind)))
		return false;
	*id_out = drv_load64(end - DRV_RPC_TRAILER_BYTES);
	return true;
}

/* One message to write and to hand over. */
struct drv_message {
	/* a buffer of the caller's, with room for all bytes, and for 16 at least */
	uint8_t *at;
	/* without the trailer */
	size_t bytes;
	/* its head */
	uint64_t seed, key;
	/* its body: full, else touch, else none */
	bool full, touch;
	uint64_t phase;
	/* it may be lost, and come in a later phase: its head says of which it is */
	bool lossy;
	/* its trailer: DRV_RPC_REQUEST or DRV_RPC_REPLY, and the id; 0: none */
	uint32_t trailer;
	uint64_t id;
	/* it lies in the buffer already: the layer was busy */
	bool written;
	/* it is touched, and the library lends memory to write it in */
	bool in_place;
};

/* What all messages of a flow have in common. */
struct drv_message drv_message_of(const struct drv_engine *engine, uint64_t bytes, uint64_t seed, bool touch);

/* Bytes of the message, with its trailer. */
static inline size_t drv_message_bytes(const struct drv_message *message)
{
	return message->bytes + (message->trailer ? DRV_RPC_TRAILER_BYTES : 0);
}

/* Writes a body that is compared whole, and to the head of which phase it is. */
void drv_message_fill(const struct drv_message *message, uint8_t *at);

/* Writes head, body and trailer to a buffer. */
DRV_INLINE void drv_message_write_to(const struct drv_message *message, uint8_t *at)
{
	drv_head_write(at, message->bytes, message->seed, message->key);
	if (message->full)
		drv_message_fill(message, at);
	else if (message->touch)
		drv_touch_write(at, message->bytes, message->seed, message->key);
	if (message->trailer)
		drv_trailer_write(at, message->bytes, message->id, message->trailer);
}

/* The same to its own buffer; once, however often the layer is busy. */
DRV_INLINE void drv_message_write(struct drv_message *message)
{
	if (message->written)
		return;
	drv_message_write_to(message, message->at);
	message->written = true;
}

/* The same of one that is in place: written in memory of the library's. */
int drv_message_post_in_place(const struct drv_engine *engine, struct cadge_chan *chan,
			      const struct drv_message *message, uint64_t token);

/* Writes and posts a message. Codes as of post; after BUSY it is to be posted again. */
DRV_INLINE int drv_message_post(const struct drv_engine *engine, struct cadge_chan *chan,
				struct drv_message *message, uint64_t token)
{
	struct cadge_iov iov = {message->at, drv_message_bytes(message)};

	if (message->in_place)
		return drv_message_post_in_place(engine, chan, message, token);
	drv_message_write(message);
	return engine->layer->post(chan, &iov, 1, 0, token);
}

#endif
