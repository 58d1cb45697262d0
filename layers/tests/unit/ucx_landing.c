/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Landing buffers: how many offers are fetched at a time, in which order, and into which buffers. The two calls of UCX
 * that the pool makes are this program's own: a fetch ends when the test says so.
 */
#include <stdio.h>
#include <string.h>

#include "wire/ucx/landing.h"
#include "tests/unit/support/tap.h"

enum { BYTES = 4096, OFFERS = 6, PLENTY = 100 };

/* ---- UCX ---- */

struct fetch {
	void *desc, *buffer, *arg;
	size_t bytes;
	ucp_am_recv_data_nbx_callback_t landed;
};

static struct {
	/* a fetch ends within the call that begins it, as short copies do */
	bool at_once;
	struct fetch going[OFFERS];
	unsigned int going_count, going_most, begun;
} ucx;

ucs_status_ptr_t ucp_am_recv_data_nbx(ucp_worker_h worker, void *data_desc, void *buffer, size_t count,
				      const ucp_request_param_t *param)
{
	(void)worker;
	ucx.begun++;
	if (ucx.at_once)
		return NULL;
	if (ucx.going_count == OFFERS)
		tap_bail("more fetches than offers");
	ucx.going[ucx.going_count++] =
		(struct fetch){data_desc, buffer, param->user_data, count, param->cb.recv_am};
	if (ucx.going_count > ucx.going_most)
		ucx.going_most = ucx.going_count;
	return &ucx; /* a request */
}

void ucp_request_free(void *request)
{
	(void)request;
}

/* The fetch that began first has ended. */
static void end_first(ucs_status_t status)
{
	const struct fetch fetch = ucx.going[0];

	if (!ucx.going_count)
		tap_bail("nothing is being fetched");
	memmove(ucx.going, ucx.going + 1, --ucx.going_count * sizeof(*ucx.going));
	fetch.landed(&ucx, status, fetch.bytes, fetch.arg);
}

/* ---- who receives ---- */

static struct {
	enum cadge_keep keep;
	unsigned int count, lost, users[PLENTY];
	uint32_t lives[PLENTY];
	const void *data[PLENTY];
} landed;

static enum cadge_keep on_landed(void *user, uint32_t life, void *data, size_t bytes, ucs_status_t status)
{
	(void)bytes;
	landed.lost += status != UCS_OK && !data;
	landed.users[landed.count] = *(unsigned int *)user;
	landed.lives[landed.count] = life;
	landed.data[landed.count++] = data;
	return data ? landed.keep : CADGE_TAKEN;
}

static struct cadge_ucx_landings *begin(uint32_t fetching_max)
{
	struct cadge_ucx_landings *pool =
		cadge_ucx_landings_create(NULL, BYTES, OFFERS, fetching_max, on_landed);

	if (!pool)
		tap_bail("no memory");
	memset(&ucx, 0, sizeof(ucx));
	memset(&landed, 0, sizeof(landed));
	return pool;
}

static unsigned int numbers[OFFERS] = {0, 1, 2, 3, 4, 5};

static unsigned int offer(struct cadge_ucx_landings *pool, unsigned int count)
{
	static char desc;
	unsigned int taken = 0;

	for (unsigned int i = 0; i < count; i++)
		taken += cadge_ucx_land(pool, &desc, BYTES, &numbers[i], 10 + i);
	return taken;
}

/* In the order in which they were offered, each with the life that it was offered with. */
static bool in_order(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (landed.users[i] != i || landed.lives[i] != 10 + i)
			return false;
	return landed.count == count;
}

static void test_one_at_a_time(void)
{
	struct cadge_ucx_landings *pool = begin(1);
	bool same = true;

	ok(offer(pool, OFFERS) == OFFERS && ucx.begun == 1, "of %d offers one is fetched", OFFERS);
	ok(!cadge_ucx_landings_waiting(pool), "no other may be fetched meanwhile");
	cadge_ucx_landings_resume(pool);
	ok(ucx.begun == 1, "nor is one, however often the caller looks");
	for (unsigned int i = 0; i < OFFERS; i++) {
		end_first(UCS_OK);
		cadge_ucx_landings_resume(pool);
		same &= landed.data[i] == landed.data[0];
	}
	ok(in_order(OFFERS) && ucx.going_most == 1, "all land in order, %u at a time", ucx.going_most);
	ok(same, "and in the one buffer that is in the cache");
	ok(!cadge_ucx_landings_used(pool), "which is free again");
	cadge_ucx_landings_destroy(pool);
}

static void test_side_by_side(void)
{
	struct cadge_ucx_landings *pool = begin(PLENTY);
	unsigned int different = 0;

	ok(offer(pool, OFFERS) == OFFERS && ucx.begun == OFFERS, "with room all %d are fetched at once",
	   OFFERS);
	ok(!cadge_ucx_land(pool, NULL, BYTES + 1, &numbers[0], 0), "a longer message is refused");
	while (ucx.going_count)
		end_first(UCS_OK);
	for (unsigned int i = 0; i < OFFERS; i++) {
		bool known = false;

		for (unsigned int j = 0; j < i; j++)
			known |= landed.data[j] == landed.data[i];
		different += !known;
	}
	ok(in_order(OFFERS) && different == OFFERS, "each into a buffer of its own");
	cadge_ucx_landings_destroy(pool);
}

/* An offer that waits is not overtaken by one that comes when the fetch before it has just ended. */
static void test_turn(void)
{
	struct cadge_ucx_landings *pool = begin(1);
	static char desc;

	offer(pool, 2);
	end_first(UCS_OK);
	cadge_ucx_land(pool, &desc, BYTES, &numbers[2], 12);
	while (cadge_ucx_landings_waiting(pool) || ucx.going_count) {
		cadge_ucx_landings_resume(pool);
		end_first(UCS_OK);
	}
	ok(in_order(3), "who came first lands first");
	cadge_ucx_landings_destroy(pool);
}

/* What ends within the call leaves room for the next offer, as does what is lost, and what is kept. */
static void test_room_again(void)
{
	struct cadge_ucx_landings *pool = begin(1);

	ucx.at_once = true;
	ok(offer(pool, OFFERS) == OFFERS && in_order(OFFERS), "fetches that end at once hold up nothing");
	ucx.at_once = false;
	landed.count = 0;
	offer(pool, 2);
	end_first(UCS_ERR_CONNECTION_RESET);
	ok(landed.lost == 1 && cadge_ucx_landings_waiting(pool), "a lost one holds up nothing");
	cadge_ucx_landings_resume(pool);
	landed.keep = CADGE_KEEP;
	end_first(UCS_OK);
	ok(in_order(2) && cadge_ucx_landings_used(pool) && cadge_ucx_landing_owns(pool, landed.data[1]),
	   "who receives may keep the buffer");
	offer(pool, 1);
	ok(ucx.going_count == 1 && ucx.going[0].buffer != landed.data[1], "the next lands in another one");
	end_first(UCS_OK);
	cadge_ucx_landing_free(pool, landed.data[1]);
	cadge_ucx_landing_free(pool, landed.data[2]);
	ok(!cadge_ucx_landings_used(pool), "and all are given back");
	cadge_ucx_landings_destroy(pool);
}

/* All buffers are kept: an offer waits, and too many are refused. */
static void test_full(void)
{
	struct cadge_ucx_landings *pool = begin(1);

	landed.keep = CADGE_KEEP;
	ucx.at_once = true;
	offer(pool, OFFERS);
	ok(ucx.begun == OFFERS && offer(pool, OFFERS) == OFFERS && ucx.begun == OFFERS,
	   "without a free buffer offers wait");
	ok(offer(pool, 1) == 0, "one more than may wait is refused");
	cadge_ucx_landing_free(pool, landed.data[3]);
	cadge_ucx_landings_resume(pool);
	ok(ucx.begun == OFFERS + 1 && landed.data[OFFERS] == landed.data[3], "one waits no longer");
	cadge_ucx_landings_destroy(pool);
}

int main(void)
{
	test_one_at_a_time();
	test_side_by_side();
	test_turn();
	test_room_again();
	test_full();
	return tap_done();
}
