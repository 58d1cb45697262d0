/* SPDX-License-Identifier: BSD-3-Clause */
/* Another version of the protocol, and another key: whoever asks is told, and believes what can be believed. */
#include "caller.h"

static const uint8_t key[PGR_KEY_BYTES] = "sixteen letters";

static bool refused_as(uint8_t version, enum pgr_reject reason)
{
	return one_reject(reason) && t.seen[0].packet.head.version == version &&
	       t.seen[0].packet.head.sequence == 1 && t.seen[0].packet.head.client == CLIENT &&
	       t.seen[0].packet.head.slot == 5 && is_at(&t.seen[0].to, FAR);
}

static void test_version(void)
{
	const struct pgr_config config = {.key = key};

	for (unsigned int keyed = 0; keyed < 2; keyed++) {
		open_endpoint(keyed ? &config : NULL);
		for (unsigned int version = 0; version < 256; version++) {
			struct pgr_header head = call_of(1, ECHO, 10);
			uint8_t packet[PACKET_BYTES];
			size_t bytes;

			if (version == PGR_VERSION)
				continue;
			/* a call, a probe: refused in the asker's version, by no longer packet, and never executed */
			head.version = (uint8_t)version;
			bytes = make(&head, 0, pattern, packet);
			put(&head, pattern);
			CHECK(version ? refused_as((uint8_t)version, PGR_REJECT_VERSION) &&
						t.seen[0].bytes <= bytes
				      : silent());
			head = bare_of(PGR_PROBE, 1);
			head.version = (uint8_t)version;
			put(&head, NULL);
			CHECK(version ? refused_as((uint8_t)version, PGR_REJECT_VERSION) : silent());
			/* what answers is never answered */
			for (unsigned int type = PGR_RESULT; type <= PGR_REJECT; type++) {
				head.type = (uint8_t)(type == PGR_PROBE ? PGR_ACK : type);
				put(&head, NULL);
				CHECK(silent());
			}
		}
		CHECK(t.executed == 0 && stats()->clients == 0);
		close_endpoint();
	}
}

/* A server without our key, or with another one, refuses in a way that proves nothing. */
static void test_unproved(void)
{
	const struct pgr_config config = {.key = key};
	struct pgr_header head;

	open_endpoint(&config);
	call(10, 0);
	for (unsigned int tries = 0; !t.done && tries < 300; tries++) {
		head = answer_of(PGR_REJECT);
		head.procedure = tries % 2 ? PGR_REJECT_NOT_AUTHORISED : PGR_REJECT_BUSY;
		head.incarnation = 0;
		t.key = NULL;
		put(&head, NULL);
		t.key = key;
		pass(100 * MS);
	}
	/* the call was repeated all the time, and the refusal explains its end */
	CHECK(t.done == 1 && t.code == PGR_E_REFUSED && stats()->retransmissions >= 40);
	/* with the right check it is believed at once */
	call(10, 0);
	head = answer_of(PGR_REJECT);
	head.procedure = PGR_REJECT_NOT_AUTHORISED;
	head.incarnation = 0;
	put(&head, NULL);
	CHECK(t.done == 1 && t.code == PGR_E_REFUSED);
}

/* Who has no key and meets a server that has one hears at once that this is why. */
static void test_no_key(void)
{
	struct pgr_header head;

	open_endpoint(NULL);
	call(10, 0);
	head = answer_of(PGR_REJECT);
	head.procedure = PGR_REJECT_NOT_AUTHORISED;
	head.incarnation = 0;
	put(&head, NULL);
	CHECK(t.done == 1 && t.code == PGR_E_REFUSED);
	/* so does one of another version */
	call(10, 0);
	head = answer_of(PGR_REJECT);
	head.procedure = PGR_REJECT_VERSION;
	head.incarnation = 0;
	put(&head, NULL);
	CHECK(t.done == 1 && t.code == PGR_E_REFUSED);
}

const struct protocol_test protocol_versions[] = {
	{"another version is refused", test_version},
	{"a refusal that proves nothing", test_unproved},
	{"a refusal where there is no key", test_no_key},
	{NULL, NULL},
};
