/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers that leave one at a time, over a layer that is busy now and then and gives buffers back when it likes. */
#include <string.h>

#include "traffic/answers.h"
#include "tap.h"

enum { BYTES = 64, SEED = 7 };

/* What the layer says next, and what it was given last. */
static int verdict;
static uint64_t posted_token, posted_key;

static int post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint32_t flags,
		uint64_t token)
{
	(void)chan, (void)count, (void)flags;
	posted_token = token;
	posted_key = drv_head_key(iov->base, iov->bytes);
	return verdict;
}

static const struct cadge_layer layer = {.post = post};
static struct drv_engine engine = {.layer = &layer};
static uint8_t memory[DRV_ANSWERS][BYTES];

/* Has an answer due, with this key, and tries to post it. */
static bool answer(struct drv_answers *answers, struct drv_message *message, uint64_t key, int says)
{
	if (!answers->progress.port.due) {
		answers->progress.port.due = true;
		message->key = key;
		message->written = false;
	}
	verdict = says;
	posted_key = posted_token = 0;
	return drv_answers_post(answers, message);
}

int main(void)
{
	struct drv_answers answers = {.progress.port.engine = &engine, .at = memory[0], .stride = BYTES};
	struct drv_message message = {.bytes = BYTES, .seed = SEED};

	answers.progress.lent = answers.lent;
	answers.progress.slots = DRV_ANSWERS;
	tap_ok(!drv_answers_post(&answers, &message) && !posted_token, "nothing leaves that is not due");
	tap_ok(answer(&answers, &message, 1, CADGE_QUEUED) && posted_key == 1 && answers.lent[0],
	       "the first answer leaves, and the layer has its buffer");
	tap_ok(!answer(&answers, &message, 2, CADGE_BUSY) && answers.progress.port.due,
	       "a busy layer leaves the second due");
	answers.lent[0] = false;
	tap_ok(answer(&answers, &message, 2, CADGE_QUEUED) && posted_key == 2,
	       "it leaves as it was written, though another buffer has come back meanwhile");
	tap_ok(answer(&answers, &message, 3, CADGE_QUEUED) && posted_key == 3 &&
		       posted_token == DRV_TOKEN_SERVER,
	       "the third is written to the buffer that came back");
	tap_ok(!answer(&answers, &message, 4, CADGE_DONE) && !posted_token && !answers.progress.failed,
	       "the fourth waits for a buffer");
	answers.lent[1] = false;
	tap_ok(answer(&answers, &message, 4, CADGE_E_DOWN) && answers.progress.failed &&
		       drv_answers_due(&answers),
	       "a layer that fails is told of by the next drain");
	return tap_done();
}
