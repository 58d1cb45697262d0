/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What adapters on the kernel's network share: addresses and ports to listen on, and which interface the kernel
 * uses between the two addresses of a socket, asked of its routing table over netlink.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "kit/adapter.h"

int cadge_errno_code(int error)
{
	switch (error) {
	case EACCES:
	case EPERM: return CADGE_E_PERMISSION;
	case EADDRINUSE: return CADGE_E_PORT;
	case EADDRNOTAVAIL:
	case ENETUNREACH:
	case ENODEV: return CADGE_E_TRANSPORT;
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM: return CADGE_E_MEMORY;
	case EAFNOSUPPORT:
	case EPROTONOSUPPORT: return CADGE_E_ABSENT;
	default: return CADGE_E_LIBRARY;
	}
}

static int parse(const char *address, struct sockaddr_storage *address_out, socklen_t *address_bytes_out)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;

	if (getaddrinfo(address, NULL, &hints, &found))
		return CADGE_E_TRANSPORT;
	memset(address_out, 0, sizeof(*address_out));
	memcpy(address_out, found->ai_addr, found->ai_addrlen);
	*address_bytes_out = found->ai_addrlen;
	freeaddrinfo(found);
	return CADGE_DONE;
}

int cadge_parse_address(const struct cadge_open_args *args, struct sockaddr_storage *address_out,
			socklen_t *address_bytes_out)
{
	const int code = parse(args->address, address_out, address_bytes_out);

	return code < 0 ? cadge_refuse(args, code, "'%s' is not an IP address", args->address) : CADGE_DONE;
}

void cadge_set_port(struct sockaddr *address, uint16_t port)
{
	const uint16_t network_port = htons(port);
	const size_t at = address->sa_family == AF_INET6 ? offsetof(struct sockaddr_in6, sin6_port)
							 : offsetof(struct sockaddr_in, sin_port);

	if (address->sa_family == AF_INET || address->sa_family == AF_INET6)
		memcpy((unsigned char *)address + at, &network_port, sizeof(network_port));
}

int cadge_try_ports(uint16_t first, uint16_t last, cadge_port_fn try_port, void *arg)
{
	int code = CADGE_E_PORT;

	for (uint32_t port = first; port <= last && code == CADGE_E_PORT; port++)
		code = try_port(arg, (uint16_t)port);
	return code;
}

int cadge_refuse_ports(const struct cadge_open_args *args)
{
	return cadge_refuse(args, CADGE_E_PORT, "no free port between %u and %u on %s", args->port_first,
			    args->port_last, args->address);
}

struct binding {
	struct sockaddr_storage address;
	socklen_t address_bytes;
	int type, fd;
};

/* A new socket for each port: one that could not listen keeps its port. errno says why it failed. */
static int bind_to(void *arg, uint16_t port)
{
	struct binding *binding = arg;
	const int on = 1, type = binding->type;
	int error;

	binding->fd = socket(binding->address.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (binding->fd < 0)
		return cadge_errno_code(errno);
	cadge_set_port((struct sockaddr *)&binding->address, port);
	/* A port in TIME_WAIT from the launch before is free. Datagram sockets would share their port instead. */
	if ((type != SOCK_STREAM ||
	     setsockopt(binding->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0) &&
	    bind(binding->fd, (const struct sockaddr *)&binding->address, binding->address_bytes) == 0 &&
	    /* Two listeners may bind one port with SO_REUSEADDR; the second listen then fails. */
	    (type != SOCK_STREAM || listen(binding->fd, SOMAXCONN) == 0))
		return CADGE_DONE;
	error = errno;
	close(binding->fd);
	errno = error;
	return cadge_errno_code(error);
}

int cadge_bind_port(uint16_t first, uint16_t last, const char *address, int type, int *fd_out)
{
	struct binding binding = {.type = type};
	int code = parse(address, &binding.address, &binding.address_bytes);

	if (code == CADGE_DONE)
		code = cadge_try_ports(first, last, bind_to, &binding);
	if (code == CADGE_DONE)
		*fd_out = binding.fd;
	return code;
}

int cadge_bind_in_range(const struct cadge_open_args *args, int type, int *fd_out)
{
	struct sockaddr_storage address;
	socklen_t address_bytes;
	int code = cadge_parse_address(args, &address, &address_bytes);

	if (code < 0)
		return code;
	code = cadge_bind_port(args->port_first, args->port_last, args->address, type, fd_out);
	if (code == CADGE_E_PORT)
		return cadge_refuse_ports(args);
	return code < 0 ? cadge_refuse(args, code, "cannot bind to %s: %s", args->address, strerror(errno))
			: CADGE_DONE;
}

int cadge_device_check(const struct cadge_open_args *args)
{
	return if_nametoindex(args->device)
		       ? CADGE_DONE
		       : cadge_refuse(args, CADGE_E_TRANSPORT, "there is no network interface '%s'",
				      args->device);
}

const char *cadge_kernel_release(void)
{
	static struct utsname name;

	if (!name.release[0] && uname(&name) < 0)
		return "unknown";
	return name.release;
}

/* ---- the route ---- */

struct route_request {
	struct nlmsghdr header;
	struct rtmsg route;
	unsigned char attributes[2 * RTA_SPACE(16)];
};

static const void *ip_bytes(const struct sockaddr_storage *address, unsigned short *bytes_out)
{
	const unsigned char *at = (const unsigned char *)address;

	*bytes_out = address->ss_family == AF_INET6 ? 16 : 4;
	return at + (address->ss_family == AF_INET6 ? offsetof(struct sockaddr_in6, sin6_addr)
						    : offsetof(struct sockaddr_in, sin_addr));
}

static void add_address(struct route_request *request, unsigned short type,
			const struct sockaddr_storage *address)
{
	unsigned short bytes;
	const void *data = ip_bytes(address, &bytes);
	struct rtattr attribute = {.rta_type = type, .rta_len = (unsigned short)RTA_LENGTH(bytes)};
	unsigned char *at = (unsigned char *)request + NLMSG_ALIGN(request->header.nlmsg_len);

	memcpy(at, &attribute, sizeof(attribute));
	memcpy(at + RTA_LENGTH(0), data, bytes);
	request->header.nlmsg_len = (uint32_t)(NLMSG_ALIGN(request->header.nlmsg_len) + RTA_SPACE(bytes));
}

/* Index of the interface, and whether the target is this host; -1 when the kernel does not say. */
static int route_index(const struct sockaddr_storage *from, const struct sockaddr_storage *to,
		       bool *local_out)
{
	struct route_request request = {
		.header = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
			   .nlmsg_type = RTM_GETROUTE,
			   .nlmsg_flags = NLM_F_REQUEST},
		.route = {.rtm_family = (unsigned char)to->ss_family},
	};
	_Alignas(struct nlmsghdr) unsigned char answer[4096];
	struct nlmsghdr header;
	struct rtmsg route;
	ssize_t bytes;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), index = -1;

	if (fd < 0)
		return -1;
	add_address(&request, RTA_DST, to);
	add_address(&request, RTA_SRC, from);
	request.route.rtm_dst_len = request.route.rtm_src_len = to->ss_family == AF_INET6 ? 128 : 32;
	bytes = send(fd, &request, request.header.nlmsg_len, 0) < 0 ? -1
								    : recv(fd, answer, sizeof(answer), 0);
	close(fd);
	if (bytes < (ssize_t)NLMSG_LENGTH(sizeof(route)))
		return -1;
	memcpy(&header, answer, sizeof(header));
	memcpy(&route, answer + NLMSG_HDRLEN, sizeof(route));
	if (header.nlmsg_type != RTM_NEWROUTE)
		return -1;
	*local_out = route.rtm_type == RTN_LOCAL;
	for (size_t at = NLMSG_LENGTH(sizeof(route)); at + sizeof(struct rtattr) <= (size_t)bytes;) {
		struct rtattr attribute;

		memcpy(&attribute, answer + at, sizeof(attribute));
		if (attribute.rta_len < sizeof(attribute))
			break;
		if (attribute.rta_type == RTA_OIF && attribute.rta_len >= RTA_LENGTH(sizeof(index)))
			memcpy(&index, answer + at + RTA_LENGTH(0), sizeof(index));
		at += RTA_ALIGN(attribute.rta_len);
	}
	return index;
}

int cadge_describe_route(int fd, enum cadge_place place, const char *device, struct cadge_path *path_out)
{
	struct sockaddr_storage from, to;
	socklen_t from_bytes = sizeof(from), to_bytes = sizeof(to);
	char name[IF_NAMESIZE] = "";
	bool local = false;
	int index;

	if (getsockname(fd, (struct sockaddr *)&from, &from_bytes) < 0 ||
	    getpeername(fd, (struct sockaddr *)&to, &to_bytes) < 0)
		return CADGE_E_LIBRARY;
	index = route_index(&from, &to, &local);
	if (index > 0 && !if_indextoname((unsigned int)index, name))
		name[0] = '\0';
	if (place == CADGE_PLACE_HOST)
		snprintf(path_out->asked, sizeof(path_out->asked), "loopback of this host");
	else
		snprintf(path_out->asked, sizeof(path_out->asked), "device %s", device);
	snprintf(path_out->device, sizeof(path_out->device), "%s", name);
	if (!name[0]) {
		path_out->medium = CADGE_MEDIUM_UNKNOWN;
		path_out->as_asked = 0;
		snprintf(path_out->note, sizeof(path_out->note), "the kernel reports no route");
		return CADGE_DONE;
	}
	path_out->medium = local ? CADGE_MEDIUM_LOOPBACK : CADGE_MEDIUM_NETWORK;
	path_out->as_asked = place == CADGE_PLACE_HOST ? local : !local && strcmp(name, device) == 0;
	return CADGE_DONE;
}
