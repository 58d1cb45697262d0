/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol packet by packet: one endpoint, no network. What it would hear is put before it by hand, what
 * it says is caught and swallowed. PROTOCOL.md is the rule; each expectation stands before its check. TAP on
 * standard output. The tests stand in protocol/, a file a subject.
 */
#include "protocol/hand.h"

/* A test's place is the seed of its chance. */
static void run(const struct protocol_test *test, unsigned int place)
{
	memset(&t, 0, sizeof(t));
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i * 7 + (i >> 8) * 31 + 1);
	net_reset(place, PACKET_BYTES);
	t.good = true;
	test->run();
	if (t.pgr)
		close_endpoint();
	printf("%s %u - %s\n", t.good ? "ok" : "not ok", place + 1, test->name);
	fflush(stdout);
}

int main(void)
{
#define ENTRY(file) protocol_##file,
	static const struct protocol_test *const files[] = {PROTOCOL_FILES(ENTRY)};
	const size_t files_count = sizeof(files) / sizeof(files[0]);
	unsigned int count = 0, place = 0;
	int status = 0;

	for (size_t i = 0; i < files_count; i++)
		for (const struct protocol_test *test = files[i]; test->name; test++)
			count++;
	printf("TAP version 13\n1..%u\n", count);
	for (size_t i = 0; i < files_count; i++)
		for (const struct protocol_test *test = files[i]; test->name; test++) {
			run(test, place++);
			status |= !t.good;
		}
	net_reset(1, PACKET_BYTES);
	return status;
}
