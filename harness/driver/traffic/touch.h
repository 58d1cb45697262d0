/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages as a program has them: written anew before each is sent, and read whole where it arrives (write+read), or
 * the same bytes every time, of which a head alone is looked at (none), as most native tools do.
 *
 * Behind its head (verify.h) a message that is written holds one byte again and again, another one for each number. So
 * what is read is compared as well: the sum of all bytes read must be that of the bytes written.
 */
#ifndef DRV_TOUCH_H
#define DRV_TOUCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "traffic/verify.h"

/* In the order of drv_touch_words, which a parameter of the type DRV_CHOICE takes. */
enum drv_touch { DRV_TOUCH_NONE, DRV_TOUCH_WRITE_READ };
extern const char *const drv_touch_words[];

/* What message `number` holds behind its head. */
static inline uint8_t drv_touch_byte(uint64_t seed, uint64_t number)
{
	return (uint8_t)(drv_mix(seed, number) >> 56);
}

/* Writes everything behind the head, as fast as the C library can. */
static inline void drv_touch_write(void *message, size_t bytes, uint64_t seed, uint64_t number)
{
	if (bytes > DRV_HEAD_BYTES)
		memset((uint8_t *)message + DRV_HEAD_BYTES, drv_touch_byte(seed, number),
		       bytes - DRV_HEAD_BYTES);
}

/* Reads every byte behind the head; whether they are what drv_touch_write wrote. */
bool drv_touch_read(const void *message, size_t bytes, uint64_t seed, uint64_t number);

#endif
