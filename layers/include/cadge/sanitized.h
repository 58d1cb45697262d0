/* SPDX-License-Identifier: BSD-3-Clause */
/* CADGE_SANITIZED: 1 where this is compiled with the address sanitizer, else 0. GCC and clang say so in different ways. */
#ifndef CADGE_SANITIZED_H
#define CADGE_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__)
#define CADGE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CADGE_SANITIZED 1
#endif
#endif
#ifndef CADGE_SANITIZED
#define CADGE_SANITIZED 0
#endif

#endif
