/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One node of the cluster: clients' requests over HTTP on one side, the other nodes over the layer on the other, disks
 * behind, all in one thread and one event loop, but for the disk helpers. Endpoint 0 is the client that measures, all
 * others are nodes; a node is named by the number of its endpoint.
 */
#ifndef PRESS_NODE_H
#define PRESS_NODE_H

#include "press/service.h"

/* 0, or -1 with the reason; press_node_end is legal in either case. */
int press_node_start(struct press_node *node, struct drv_engine *engine, const struct press_setting *setting,
		     struct drv_fail *fail);
void press_node_end(struct press_node *node);

/* Works until a message comes from out of band. As drv_role.serve. */
int press_node_serve(struct press_node *node, json_t **message_out, struct drv_fail *fail);

#endif
