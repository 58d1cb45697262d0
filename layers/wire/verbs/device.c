/* SPDX-License-Identifier: BSD-3-Clause */
/* The device behind an interface; see verbs.h. */
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/verbs/verbs.h"

static int open_named(const struct cadge_open_args *args, struct verbs_device *device)
{
	struct ibv_device **all, **each;
	int count = 0;

	all = ibv_get_device_list(&count);
	for (each = all; each && *each && strcmp(ibv_get_device_name(*each), device->rdma.name) != 0; each++)
		;
	if (!each || !*each) {
		if (all)
			ibv_free_device_list(all);
		return cadge_refuse(
			args, CADGE_E_ABSENT,
			"libibverbs does not know the device %s of %s: its part for this hardware is missing "
			"(Debian: ibverbs-providers)",
			device->rdma.name, args->device);
	}
	errno = 0;
	device->context = ibv_open_device(*each);
	ibv_free_device_list(all);
	return device->context ? CADGE_DONE
			       : cadge_refuse(args,
					      errno == EACCES || errno == EPERM ? CADGE_E_PERMISSION
										: CADGE_E_LIBRARY,
					      "ibv_open_device(%s): %s", device->rdma.name, strerror(errno));
}

/* An address as RoCE v2 has it for a GID: IPv4 mapped into IPv6 (annex A17 of the InfiniBand specification). */
static void gid_of(const struct sockaddr_storage *address, union ibv_gid *gid)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	memset(gid, 0, sizeof(*gid));
	if (address->ss_family == AF_INET6) {
		memcpy(&in6, address, sizeof(in6));
		memcpy(gid->raw, &in6.sin6_addr, sizeof(gid->raw));
		return;
	}
	memcpy(&in, address, sizeof(in));
	gid->raw[10] = gid->raw[11] = 0xff;
	memcpy(gid->raw + 12, &in.sin_addr, sizeof(in.sin_addr));
}

static int find_gid(const struct cadge_open_args *args, struct verbs_device *device)
{
	struct sockaddr_storage address;
	socklen_t address_bytes;
	struct ibv_gid_entry entry;
	int code = cadge_parse_address(args, &address, &address_bytes);

	if (code != CADGE_DONE)
		return code;
	gid_of(&address, &device->gid);
	for (int i = 0; i < device->port.gid_tbl_len && i <= UINT8_MAX; i++) {
		if (ibv_query_gid_ex(device->context, device->rdma.port, (uint32_t)i, &entry, 0) ||
		    entry.gid_type != IBV_GID_TYPE_ROCE_V2 ||
		    memcmp(entry.gid.raw, device->gid.raw, sizeof(entry.gid.raw)) != 0)
			continue;
		device->gid_index = (uint8_t)i;
		return CADGE_DONE;
	}
	return cadge_refuse(args, CADGE_E_TRANSPORT, "the device %s has no RoCE v2 GID for the address %s",
			    device->rdma.name, args->address);
}

int verbs_device_open(const struct cadge_open_args *args, struct verbs_device *device)
{
	int code = cadge_device_check(args), error;

	if (code != CADGE_DONE)
		return code;
	if (!cadge_rdma_device_of(
		    args->device,
		    &device->rdma)) /* the interface is there: this host lacks what is behind it */
		return cadge_refuse(args, CADGE_E_ABSENT, "the network interface %s has no RDMA device",
				    args->device);
	code = open_named(args, device);
	if (code != CADGE_DONE)
		return code;
	error = ibv_query_device(device->context, &device->attr);
	if (!error)
		error = ibv_query_port(device->context, (uint8_t)device->rdma.port, &device->port);
	if (error)
		return cadge_refuse(args, CADGE_E_LIBRARY, "%s cannot be asked what it can: %s",
				    device->rdma.name, strerror(error));
	if (device->port.state != IBV_PORT_ACTIVE)
		return cadge_refuse(args, CADGE_E_TRANSPORT, "port %u of %s is not active, but %s",
				    device->rdma.port, device->rdma.name,
				    ibv_port_state_str(device->port.state));
	return find_gid(args, device);
}

void verbs_device_close(struct verbs_device *device)
{
	if (device->context && ibv_close_device(device->context))
		fprintf(stderr, "cadge: libibverbs could not close the device %s\n", device->rdma.name);
	device->context = NULL;
}

/* libibverbs does not say its version; the name of its file does: libibverbs.so.1.14.44.0. */
void cadge_wire_library(struct cadge_library *library_out)
{
	static char version[32] = "unknown";
	const struct cadge_library library = {
		.name = "libibverbs",
		.stated_version = version,
		.symbol = (const void *)(uintptr_t)&ibv_get_device_list,
	};
	const char *suffix;
	Dl_info found;
	char *path;

	if (dladdr(library.symbol, &found) && (path = realpath(found.dli_fname, NULL))) {
		suffix = strstr(path, ".so.");
		if (suffix)
			snprintf(version, sizeof(version), "%s", suffix + strlen(".so."));
		free(path);
	}
	cadge_fill(library_out, &library, sizeof(library));
}
