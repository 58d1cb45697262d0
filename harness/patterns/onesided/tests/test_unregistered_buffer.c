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
	struct drv_unregistered_buffer buffer;
	bool rising = true, gone = true, aligned = true, zeroed = true, same = true;
	uint8_t *warm, *last = NULL;
	const int rounds = used_bytes > 65536 ? 20 : ROUNDS;

	tap_ok(drv_unregistered_buffer_start(&buffer, used_bytes, &fail) == 0, "%zu bytes: %s", used_bytes,
	       fail.text);
	warm = buffer.warm;
	rising &= warm > highest;
	highest = warm;
	for (int round = 0; round < rounds; round++) {
		if (drv_unregistered_buffer_renew(&buffer, round % 2, &fail))
			break;
		same &= buffer.warm == warm;
		rising &= buffer.cold > highest;
		aligned &= (uintptr_t)buffer.cold % page == 0 && buffer.bytes % page == 0;
		zeroed &= holds_zeroes(buffer.cold, used_bytes) && holds_zeroes(buffer.warm, used_bytes);
		gone &= !last || !is_mapped(last);
		buffer.cold[used_bytes - 1] = buffer.warm[used_bytes - 1] = 1;
		highest = last = buffer.cold;
	}
	tap_ok(!fail.text[0], "%zu bytes: %d buffers were mapped: %s", used_bytes, rounds, fail.text);
	tap_ok(same, "%zu bytes: one buffer stays", used_bytes);
	tap_ok(rising, "%zu bytes: no address comes twice, nor one of an attempt before", used_bytes);
	tap_ok(aligned && zeroed, "%zu bytes: whole pages, written anew", used_bytes);
	tap_ok(gone, "%zu bytes: the buffer before is unmapped", used_bytes);
	drv_unregistered_buffer_end(&buffer);
	tap_ok(!is_mapped(warm) && !is_mapped(last), "%zu bytes: both are gone in the end", used_bytes);
	drv_unregistered_buffer_end(&buffer);
}

/* Somebody else's memory in the way is left alone. */
static void test_in_the_way(void)
{
	struct drv_fail fail = {0};
	struct drv_unregistered_buffer buffer;
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *other;

	drv_unregistered_buffer_start(&buffer, 64, &fail);
	other = mmap(buffer.warm + 2 * page, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	if (other == MAP_FAILED)
		return;
	*other = 7;
	tap_ok(drv_unregistered_buffer_renew(&buffer, true, &fail) == 0 && buffer.cold != other &&
		       *other == 7,
	       "memory in the way stays as it is");
	drv_unregistered_buffer_end(&buffer);
	munmap(other, page);
}

static void test_too_large(void)
{
	struct drv_fail fail = {0};
	struct drv_unregistered_buffer buffer;

	tap_ok(drv_unregistered_buffer_start(&buffer, SIZE_MAX / 4, &fail) == -1 && fail.reason == DRV_MEMORY,
	       "too large: %s", fail.text);
	drv_unregistered_buffer_end(&buffer);
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
