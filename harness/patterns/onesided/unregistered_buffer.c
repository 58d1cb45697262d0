/* SPDX-License-Identifier: BSD-3-Clause */
#include "onesided/unregistered_buffer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Addresses to begin with; fewer where the process has not so many. */
#define SPAN_MOST  (UINT64_C(1) << 44)
#define SPAN_LEAST (UINT64_C(1) << 30)
/* How far to go on where somebody else's memory lies. */
#define LEAP_BYTES (UINT64_C(1) << 28)
/* Buffers of so many bytes begin at a multiple of it, so that the kernel gives huge pages to all of them, or to none. */
#define HUGE_BYTES (UINT64_C(1) << 21)

/* The addresses that are left. Both 0: none were looked for yet. */
static uintptr_t next, end;

static uintptr_t rounded_up(uintptr_t value, size_t unit)
{
	return (value + unit - 1) / unit * unit;
}

/* Looks for a range of addresses that nobody uses, once a process. */
static bool find_addresses(void)
{
	if (end)
		return true;
	for (uint64_t bytes = SPAN_MOST; bytes >= SPAN_LEAST; bytes /= 2) {
		void *base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (base == MAP_FAILED)
			continue;
		munmap(base, bytes);
		next = rounded_up((uintptr_t)base, HUGE_BYTES);
		end = (uintptr_t)base + bytes;
		return true;
	}
	return false;
}

static int unmapped(size_t bytes, struct drv_fail *fail)
{
	return drv_fail_set(fail, DRV_MEMORY, "cannot map %zu bytes for a buffer: %s", bytes,
			    strerror(errno));
}

/* A page is left out behind each buffer, so that the kernel does not make one range of neighbours. */
static int map_next(struct drv_unregistered_buffer *buffer, uint8_t **base_out, struct drv_fail *fail)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t unit = buffer->bytes >= HUGE_BYTES ? HUGE_BYTES : page;

	next = rounded_up(next, unit);
	while (next < end && end - next > buffer->bytes) {
		const uintptr_t wanted = next;
		void *base = mmap((void *)wanted, buffer->bytes, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | MAP_FIXED_NOREPLACE, -1, 0);

		next = rounded_up(wanted + buffer->bytes + page, unit);
		if (base == (void *)wanted) {
			*base_out = base;
			return 0;
		}
		if (base == MAP_FAILED && errno != EEXIST)
			return unmapped(buffer->bytes, fail);
		/* kernels before 4.17 take the address for a hint */
		if (base != MAP_FAILED)
			munmap(base, buffer->bytes);
		next += LEAP_BYTES;
	}
	return drv_fail_set(fail, DRV_MEMORY, "no addresses are left that no buffer had before");
}

static void unmap(const struct drv_unregistered_buffer *buffer, uint8_t **base)
{
	if (*base && munmap(*base, buffer->bytes))
		fprintf(stderr, "cadge: munmap failed: %s\n", strerror(errno));
	*base = NULL;
}

int drv_unregistered_buffer_start(struct drv_unregistered_buffer *buffer, size_t used_bytes,
				  struct drv_fail *fail)
{
	*buffer = (struct drv_unregistered_buffer){
		.bytes = rounded_up(used_bytes, (size_t)sysconf(_SC_PAGESIZE)), .used_bytes = used_bytes};
	if (!find_addresses())
		return unmapped(SPAN_LEAST, fail);
	return map_next(buffer, &buffer->warm, fail);
}

int drv_unregistered_buffer_renew(struct drv_unregistered_buffer *buffer, bool cold_last,
				  struct drv_fail *fail)
{
	unmap(buffer, &buffer->cold);
	if (map_next(buffer, &buffer->cold, fail))
		return -1;
	memset(cold_last ? buffer->warm : buffer->cold, 0, buffer->used_bytes);
	memset(cold_last ? buffer->cold : buffer->warm, 0, buffer->used_bytes);
	return 0;
}

void drv_unregistered_buffer_end(struct drv_unregistered_buffer *buffer)
{
	unmap(buffer, &buffer->warm);
	unmap(buffer, &buffer->cold);
}
