/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which file a request is for: a Zipf distribution, where the file number i, counted from 0, has a share of requests in
 * proportion to (i + 1)^-alpha (Breslau et al., INFOCOM 1999: 0.64 to 0.83 in traces of web proxies).
 */
#ifndef PRESS_POPULARITY_H
#define PRESS_POPULARITY_H

#include <stdint.h>

struct press_popularity {
	uint32_t count;
	/* by file: the share of all requests for it and those before it, of 2^64 */
	uint64_t *below;
	/* of the generator of random numbers */
	uint64_t state;
};

/* 0, or -1 when memory is short. */
int press_popularity_start(struct press_popularity *popularity, uint32_t count, double alpha, uint64_t seed);
void press_popularity_free(struct press_popularity *popularity);

/* The file of the next request. */
uint32_t press_popularity_next(struct press_popularity *popularity);

#endif
