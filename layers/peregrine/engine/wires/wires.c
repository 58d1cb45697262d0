/* SPDX-License-Identifier: BSD-3-Clause */
/* The wires that there are. A further one is a file here and a line in this table. */
#include "wire.h"

#include <string.h>

static const struct pgr_wire_ops *const wires[] = {
	&pgr_wire_shm,
	&pgr_wire_udp,
	&pgr_wire_ip,
	&pgr_wire_xdp,
};

const struct pgr_wire_ops *pgr_wire_find(const char *name)
{
	for (size_t i = 0; name && i < sizeof(wires) / sizeof(wires[0]); i++)
		if (strcmp(wires[i]->name, name) == 0)
			return wires[i];
	return NULL;
}
