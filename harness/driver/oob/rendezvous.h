/* SPDX-License-Identifier: BSD-3-Clause */
/* Making the connections of the out-of-band channel. Private to this room. */
#ifndef DRV_RENDEZVOUS_H
#define DRV_RENDEZVOUS_H

#include "oob/link.h"
#include "oob/proof.h"

/*
 * Endpoint 0: listens and takes connections until each of the other `endpoints` - 1 has proved that it holds the token
 * and said hello; links[e - 1] is endpoint e. An endpoint that differs in version or launch ends it, and all are told.
 */
int drv_rendezvous_listen(struct drv_link *links, int endpoints, const char *host_port,
			  const struct drv_oob_token *token, const json_t *hello, uint64_t deadline_ns,
			  struct drv_fail *fail);

/* Any other endpoint: connects to endpoint 0, proves, says hello, and waits until all are there. */
int drv_rendezvous_join(struct drv_link *link, int endpoint, const char *host_port,
			const struct drv_oob_token *token, const json_t *hello, uint64_t deadline_ns,
			struct drv_fail *fail);

/* Waits for one of the descriptor's events, at most until `until_ns` and at most 0.1 s. As poll(2). */
int drv_rendezvous_pause(int fd, short events, uint64_t until_ns);

#endif
