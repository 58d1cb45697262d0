/* SPDX-License-Identifier: BSD-3-Clause */
/* For a loop of the caller's own: what the client's loop does in one turn, step by step. */
#include "traffic/client_issue.h"

void drv_client_open(struct drv_client *client, uint64_t end, uint64_t operations)
{
	client->mode = DRV_MODE_MEASURE;
	client->writes = client->exchange.touch != DRV_TOUCH_NONE;
	client->limit = operations == UINT64_MAX ? UINT64_MAX : client->posted + operations;
	client->end = end;
	drv_client_start_slots(client);
}

bool drv_client_push(struct drv_client *client)
{
	int status;

	if (client->ready_head == client->ready_tail || client->ending)
		return false;
	status = client->exchange.form == DRV_FORM_NATIVE
			 ? drv_client_issue(client, DRV_FORM_NATIVE,
					    client->ready[client->ready_head & client->ready_mask])
			 : drv_client_issue(client, DRV_FORM_EMULATED,
					    client->ready[client->ready_head & client->ready_mask]);
	if (status <= 0)
		return false;
	client->ready_head++;
	return true;
}

bool drv_client_rests(const struct drv_client *client)
{
	return drv_client_outstanding(client) == 0 && client->lents == 0;
}
