/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers that are mapped anew: where they lie, what they hold, and that they go. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "onesided/unregistered_buffer.h"
#include "tap.h"

#define ROUNDS 2000

/* Whether the kernel knows of memory there. */
static bool is_mapped(uint8_t *base)
{
	unsigned char resident;

	return mincore(base, 1, &resident) == 0 || errno != ENOMEM;
}

static bool holds_zeroes(const uint8_t *base, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (base[i])
			return false;
	return true;
}

static void test_rounds(size_t used_bytes)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	static uint8_t *highest;
	struct drv_fail fail = {0};
	struct drv_unregistered_buffer fresh;
	bool rising = true, gone = true, aligned = true, zeroed = true, same = true;
	uint8_t *kept, *last = NULL;
	const int rounds = used_bytes > 65536 ? 20 : ROUNDS;

	tap_ok(drv_unregistered_buffer_start(&fresh, used_bytes, &fail) == 0, "%zu bytes: %s", used_bytes,
	       fail.text);
	kept = fresh.kept;
	rising &= kept > highest;
	highest = kept;
	for (int round = 0; round < rounds; round++) {
		if (drv_unregistered_buffer_renew(&fresh, round % 2, &fail))
			break;
		same &= fresh.kept == kept;
		rising &= fresh.fresh > highest;
		aligned &= (uintptr_t)fresh.fresh % page == 0 && fresh.bytes % page == 0;
		zeroed &= holds_zeroes(fresh.fresh, used_bytes) && holds_zeroes(fresh.kept, used_bytes);
		gone &= !last || !is_mapped(last);
		fresh.fresh[used_bytes - 1] = fresh.kept[used_bytes - 1] = 1;
		highest = last = fresh.fresh;
	}
	tap_ok(!fail.text[0], "%zu bytes: %d buffers were mapped: %s", used_bytes, rounds, fail.text);
	tap_ok(same, "%zu bytes: one buffer stays", used_bytes);
	tap_ok(rising, "%zu bytes: no address comes twice, nor one of an attempt before", used_bytes);
	tap_ok(aligned && zeroed, "%zu bytes: whole pages, written anew", used_bytes);
	tap_ok(gone, "%zu bytes: the buffer before is unmapped", used_bytes);
	drv_unregistered_buffer_end(&fresh);
	tap_ok(!is_mapped(kept) && !is_mapped(last), "%zu bytes: both are gone in the end", used_bytes);
	drv_unregistered_buffer_end(&fresh);
}

/* Somebody else's memory in the way is left alone. */
static void test_in_the_way(void)
{
	struct drv_fail fail = {0};
	struct drv_unregistered_buffer fresh;
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *other;

	drv_unregistered_buffer_start(&fresh, 64, &fail);
	other = mmap(fresh.kept + 2 * page, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (other == MAP_FAILED)
		return;
	*other = 7;
	tap_ok(drv_unregistered_buffer_renew(&fresh, true, &fail) == 0 && fresh.fresh != other && *other == 7,
	       "memory in the way stays as it is");
	drv_unregistered_buffer_end(&fresh);
	munmap(other, page);
}

static void test_too_large(void)
{
	struct drv_fail fail = {0};
	struct drv_unregistered_buffer fresh;

	tap_ok(drv_unregistered_buffer_start(&fresh, SIZE_MAX / 4, &fail) == -1 && fail.reason == DRV_MEMORY,
	       "too large: %s", fail.text);
	drv_unregistered_buffer_end(&fresh);
}

int main(void)
{
	test_rounds(1);
	test_rounds(8);
	test_rounds(65536);
	test_rounds(3 << 20);
	test_in_the_way();
	test_too_large();
	return tap_done();
}
