/* SPDX-License-Identifier: BSD-3-Clause */
/* Where messages may be lost, one that comes a phase late is not judged by what is written now. */
#include <string.h>

#include "traffic/check.h"
#include "tap.h"

enum { BYTES = 256, SHORT = 8, SEED = 77 };

struct phase {
	bool full;
	uint64_t serial;
};

static const struct phase first = {true, 1}, measured = {false, 1}, last = {true, 2};

/* Takes message `number`, written in one phase, in another one. Mismatches so far. */
static uint64_t take(struct drv_check *check, struct phase written, struct phase now, size_t bytes,
		     uint64_t number)
{
	uint8_t buffer[BYTES];
	struct drv_message message = {.at = buffer,
				      .bytes = bytes,
				      .seed = SEED,
				      .key = number,
				      .full = written.full,
				      .touch = check->touch,
				      .phase = written.serial,
				      .lossy = !check->reliable};

	memset(buffer, 0xee, sizeof(buffer));
	drv_message_write(&message);
	drv_check_phase(check, now.full, now.serial);
	drv_check_take(check, buffer, bytes);
	return check->mismatches;
}

static void test_late(bool touch)
{
	struct drv_check check = {.seed = SEED, .touch = touch};

	tap_ok(take(&check, first, first, BYTES, 0) == 0 && check.full_checked == 1,
	       "touch %d: a message of this phase is compared whole", touch);
	tap_ok(take(&check, first, measured, BYTES, 1) == 0, "one of the first phase may come in the second");
	tap_ok(take(&check, measured, measured, BYTES, 2) == 0, "beside those of the second");
	tap_ok(take(&check, measured, last, BYTES, 3) == 0 && take(&check, first, last, BYTES, 4) == 0 &&
		       check.full_checked == 1,
	       "and one of either in the third, where it is not compared");
	tap_ok(take(&check, last, last, BYTES, 5) == 0 && check.full_checked == 2,
	       "as those of the third are");
	tap_ok(take(&check, measured, last, SHORT, 6) == 0, "a head alone is of no phase");
	tap_ok(check.executions == 7 && check.key_sum >= 15, "all of them are carried out");
}

static void test_found(void)
{
	struct drv_check lossy = {.seed = SEED, .touch = true}, reliable = lossy;
	uint8_t buffer[BYTES];
	struct drv_message message = {
		.at = buffer, .bytes = BYTES, .seed = SEED, .full = true, .phase = 2, .lossy = true};

	drv_check_phase(&lossy, true, 2);
	drv_message_write(&message);
	buffer[BYTES - 1] ^= 1;
	drv_check_take(&lossy, buffer, BYTES);
	tap_ok(lossy.mismatches == 1 && lossy.full_checked == 1, "old bytes in a new message are found");
	buffer[BYTES - 1] ^= 1;
	drv_store64(buffer + 8, SEED + 3);
	drv_check_take(&lossy, buffer, BYTES);
	tap_ok(lossy.mismatches == 2, "and a head of no phase");
	reliable.reliable = true;
	tap_ok(take(&reliable, last, last, BYTES, 0) == 0 && take(&reliable, first, last, BYTES, 1) == 1 &&
		       take(&reliable, first, measured, BYTES, 2) == 2 &&
		       take(&reliable, measured, last, BYTES, 3) == 3,
	       "where nothing is lost, nothing comes late");
}

/* Messages that come in order are numbered; below a head's length they hold their number alone. */
static void test_order(size_t bytes)
{
	struct drv_check check = {.seed = SEED, .by_number = true, .reliable = true};

	tap_ok(take(&check, measured, measured, bytes, 0) == 0 &&
		       take(&check, measured, measured, bytes, 1) == 0,
	       "%zu bytes: messages that come in order", bytes);
	tap_ok(take(&check, measured, measured, bytes, 1) == 1, "one that comes twice is found");
	check.next_number = 2;
	tap_ok(take(&check, measured, measured, bytes, 3) == 2, "one that is left out is found");
	check.reliable = false;
	check.next_number = 4;
	tap_ok(take(&check, measured, measured, bytes, 6) == 2, "and is none where messages are lost");
	tap_ok(take(&check, measured, measured, bytes, 5) == 3, "but one that was overtaken");
}

int main(void)
{
	test_order(BYTES);
	test_order(SHORT);
	test_late(false);
	test_late(true);
	test_found();
	return tap_done();
}
