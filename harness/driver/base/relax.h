/* SPDX-License-Identifier: BSD-3-Clause */
/* Driver helper for threads that spin until another one has written: a hint to the processor, which has others to serve. */
#ifndef DRV_RELAX_H
#define DRV_RELAX_H

static inline void drv_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#endif
