/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What both ends of an exchange of requests and replies agree on, and what it asks of a layer. requester.h and responder.h
 * have the ends.
 */
#ifndef DRV_EXCHANGE_H
#define DRV_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "launch/negotiate.h"
#include "launch/pattern.h"
#include "traffic/payload.h"

enum drv_form {
	/* payload alone */
	DRV_FORM_BARE,
	/* a call over messages: payload, trailer of 16 bytes */
	DRV_FORM_EMULATED,
	/* the layer's own calls */
	DRV_FORM_NATIVE,
};

/* How the bytes of a reply come to the caller. In the order of drv_payload_words. */
enum drv_payload {
	/* as the layer likes best: its own calls place them, messages are looked at where the layer has them */
	DRV_PAYLOAD_USUAL,
	/* placed where the caller said; only by calls of the layer's own */
	DRV_PAYLOAD_SOLICITED,
	/* looked at where the layer has them */
	DRV_PAYLOAD_UNSOLICITED,
	/* the same, and copied from there to where the caller wants them */
	DRV_PAYLOAD_COPIED,
};
extern const char *const drv_payload_words[];

/* Who takes a reply. In the order of drv_reply_words; see requester.h. */
enum drv_reply {
	/* a continuation, in the delivery context */
	DRV_REPLY_CONT,
	/* a caller in another thread, which is blocked until the reply is there */
	DRV_REPLY_WAIT,
	/* a worker, to which the continuation is queued */
	DRV_REPLY_DEFER,
};
extern const char *const drv_reply_words[];

/* What both sides of an exchange agree on. */
struct drv_exchange {
	enum drv_form form;
	uint64_t request_bytes, reply_bytes;
	/* requests outstanding at a time, of one client */
	uint32_t depth;
	/* how many clients ask one server, and servers one client asks; 0 stands for 1 */
	uint32_t clients, servers;
	/* a server keeps account of each channel by itself, and so many clients ask it on each */
	bool by_channel;
	uint64_t seed;
	/* requests and replies are written anew and read whole */
	enum drv_touch touch;
	enum drv_payload payload;
	/* the second of two on one engine: it has buffers, tokens and numbers of its own */
	bool flow_1;
	enum drv_reply reply;
};

/* Bytes of the messages that carry so large a payload. */
static inline uint64_t drv_form_bytes(enum drv_form form, uint64_t payload_bytes)
{
	return payload_bytes + (form == DRV_FORM_EMULATED ? DRV_RPC_TRAILER_BYTES : 0);
}

/* The key of a request that asks for an answer of so many bytes. Numbers below 2^32 distinguish requests. */
static inline uint64_t drv_ask_key(uint64_t number, size_t answer_bytes)
{
	return number << 32 | (uint32_t)answer_bytes;
}

static inline size_t drv_ask_bytes(uint64_t key)
{
	return (uint32_t)key;
}

/* The form of a call between ends that can `both`: the layer's own, or made of messages. */
enum drv_form drv_call_form(const struct drv_ability *both);

/* What calls of these sizes ask of a layer: as messages, since what it grants is not known before it is opened. */
void drv_calls_need(uint64_t request_bytes, uint64_t reply_bytes, uint64_t depth,
		    struct drv_needs *needs_out);

/*
 * Whether messages of these sizes, and so many requests at a time, can be exchanged: 0, or -1 with what was wanted.
 * The words are for people: "message", "request", "reply".
 */
int drv_exchange_negotiate(const struct drv_exchange *exchange, const char *request, const char *reply,
			   const struct drv_offer *offer, struct drv_fail *fail);

/* Members of the exchange of a pattern whose calls and touch are parameters of the usual names; `depth` is the pattern's. */
#define DRV_CALLS_OF(parameters, both, number)                                                               \
	.form = drv_call_form(both), .request_bytes = (parameters)->request_bytes,                           \
	.reply_bytes = (parameters)->reply_bytes, .seed = (number),                                          \
	.touch = (enum drv_touch)(parameters)->touch

/*
 * Of a pattern with one exchange, which `exchange_of` makes of parameters, what both ends can, and a seed: that of a role,
 * and the `needs` and `negotiate` of the pattern's table.
 */
#define DRV_EXCHANGE_RULES(exchange_of)                                                                      \
	static struct drv_exchange exchange_in(const struct drv_role_run *run)                               \
	{                                                                                                    \
		return exchange_of(run->parameters, &run->engine->offer.both, run->seed);                    \
	}                                                                                                    \
	static void exchange_needs(const void *parameters, struct drv_needs *needs_out)                      \
	{                                                                                                    \
		const struct drv_ability none = {0};                                                         \
		const struct drv_exchange exchange = exchange_of(parameters, &none, 0);                      \
                                                                                                             \
		drv_calls_need(exchange.request_bytes, exchange.reply_bytes, exchange.depth, needs_out);     \
	}                                                                                                    \
	static int exchange_negotiate(const void *parameters, const struct drv_offer *offer,                 \
				      struct drv_fail *fail)                                                 \
	{                                                                                                    \
		const struct drv_exchange exchange = exchange_of(parameters, &offer->both, 0);               \
                                                                                                             \
		return drv_exchange_negotiate(&exchange, "request", "reply", offer, fail);                   \
	}

#endif
