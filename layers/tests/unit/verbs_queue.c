/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs over a completion queue that this test fills: which sentence says why one broke. */
#include <string.h>

#include "tests/unit/support/tap.h"
#include "wire/verbs/verbs.h"

#define OF_RECEIVE (UINT64_C(1) << 47)

static struct ibv_wc wcs[4];
static int wcs_count;

static int poll_cq(struct ibv_cq *cq, int room, struct ibv_wc *wc)
{
	const int count = room < wcs_count ? room : wcs_count;

	(void)cq;
	memcpy(wc, wcs, (size_t)count * sizeof(*wc));
	wcs_count -= count;
	return count;
}

static int ended(struct verbs_queue *queue, const struct verbs_op *op, int code)
{
	(void)queue;
	(void)op;
	return code == CADGE_E_DOWN;
}

static void broke(struct verbs_queue *queue)
{
	(void)queue;
}

static const struct verbs_calls calls = {.ended = ended, .broke = broke};

/* A connection with one operation under way breaks; what came of its receive, and then of the operation? */
static void breaks(enum ibv_wc_status receive, enum ibv_wc_status operation, const char *why)
{
	struct ibv_context context = {.ops.poll_cq = poll_cq};
	struct ibv_cq cq = {.context = &context};
	struct ibv_qp qp = {.qp_num = 1};
	struct verbs_op ops[2] = {{.kind = VERBS_WORK}};
	struct verbs_queue queue = {.qp = &qp, .ops = ops, .posted = 1, .reached = true, .greeted = true};
	struct verbs verbs = {.calls = &calls,
			      .cq = &cq,
			      .peers = 1,
			      .send_room = 2,
			      .queues = (uint8_t *)&queue,
			      .queue_bytes = sizeof(queue)};

	queue.verbs = &verbs;
	wcs[0] = (struct ibv_wc){.wr_id = OF_RECEIVE, .status = receive};
	wcs[1] = (struct ibv_wc){.wr_id = 0, .status = operation};
	wcs_count = 2;
	ok(verbs_completions(&verbs) == 1 && queue.broken && strcmp(verbs.why, why) == 0, "%s", verbs.why);
}

int main(void)
{
	breaks(IBV_WC_LOC_LEN_ERR, IBV_WC_WR_FLUSH_ERR, "a receive failed: local length error");
	breaks(IBV_WC_WR_FLUSH_ERR, IBV_WC_RETRY_EXC_ERR,
	       "an operation failed: transport retry counter exceeded");
	return tap_done();
}
