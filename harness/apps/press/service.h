/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a node does with requests, its clients' and those of other nodes: it answers from memory, reads, forwards, and tells
 * all others what it holds. Nothing here waits.
 */
#ifndef PRESS_SERVICE_H
#define PRESS_SERVICE_H

#include "press/node.h"

/* 0, or -1 when memory is short; press_service_end is legal in either case. */
int press_service_start(struct press_node *node);
void press_service_end(struct press_node *node);

/* Of press_connections, press_cache and press_links; `arg` is the node. */
void press_service_request(void *arg, struct press_connection *connection);
void press_service_gone(void *arg, struct press_connection *connection);
void press_service_evicted(void *arg, uint32_t file);
void press_service_message(void *arg, uint32_t endpoint, const struct press_message *head,
			   const void *content, size_t bytes);

/* Answers all who waited for reads that have ended. */
void press_service_reads(struct press_node *node);
/* A read that nobody has taken, at the end. */
void press_service_drop(struct press_read *read);

/* Gives back what had to lie fallow for a while. */
void press_service_tidy(struct press_node *node);

/*
 * A node is gone, and with it what it held: what it was asked for is served here, what it asked for is answered no more. It
 * may come back: then it is told all that is held here.
 */
void press_service_lost(struct press_node *node, uint32_t endpoint);
/* By the address of its new life, see press_links_meet. 0, or -1 with the reason. */
int press_service_met(struct press_node *node, uint32_t endpoint, uint64_t meeting, const void *address,
		      size_t bytes, struct drv_fail *fail);

#endif
