/* SPDX-License-Identifier: BSD-3-Clause */
/* The serving side of a floor's exchange, of which messages may be lost: what comes late is not judged by what is sent now. */
#include <string.h>

#include "../../floors/loop.h"
#include "tap.h"

enum { BYTES = 256, SEED = 77 };

static struct {
	uint8_t message[BYTES];
	unsigned left;
} arriving;

static int receive(struct drv_floor_loop *loop, const uint8_t **data, size_t *bytes)
{
	(void)loop;
	if (!arriving.left)
		return -1;
	arriving.left--;
	*data = arriving.message;
	*bytes = BYTES;
	return 1;
}

static int send_nothing(struct drv_floor_loop *loop, size_t bytes)
{
	(void)loop;
	(void)bytes;
	return 0;
}

/* Serves one message: the `number`th, with a body as full comparisons of phase `written` have it. Mismatches so far. */
static uint64_t serve(struct drv_floor_loop *loop, uint64_t number, uint64_t written)
{
	drv_body_fill(arriving.message, BYTES, SEED, written, number);
	drv_head_write(arriving.message, BYTES, SEED, number);
	arriving.left = 1;
	(void)floor_server_loop(loop, false, send_nothing, receive);
	return loop->mismatches;
}

int main(void)
{
	static uint8_t out[BYTES];
	struct drv_floor_loop loop = {.bytes = BYTES, .seed = SEED, .made_at = out};
	struct drv_role_run run = {.state = &loop, .role = &(const struct drv_role){.measures = false}};
	struct drv_counts counts = {0};

	drv_form_phase(&run, &(const struct drv_phase){.full = true, .serial = 1, .control = 0}, &counts);
	tap_ok(serve(&loop, 0, 1) == 0 && loop.full_checked == 1,
	       "a message of this phase is compared whole");
	drv_form_phase(&run, &(const struct drv_phase){.full = true, .serial = 2, .control = 4}, &counts);
	tap_ok(serve(&loop, 3, 1) == 0 && loop.full_checked == 1 && loop.executions == 2,
	       "one that was lost before the phase began, and comes late, is served and not compared");
	tap_ok(serve(&loop, 4, 2) == 0 && loop.full_checked == 2, "the first of the phase is compared");
	tap_ok(serve(&loop, 5, 1) == 1 && strstr(loop.mismatch, "wrong body"),
	       "and old bytes in a new message are found");
	return tap_done();
}
