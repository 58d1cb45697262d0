/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket of the floor packet: frames of one device, meant for one hardware address, with what cuts them. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "packet.h"

#define BLOCK_TIMEOUT_US     5000
#define RECEIVE_BUFFER_BYTES (16 << 20)

static int step_failed(struct drv_fail *fail, const char *what, const char *device)
{
	switch (errno) {
	case EPERM:
	case EACCES:
		return drv_fail_set(fail, DRV_PERMISSION, "%s: %s (raw packets need root, or CAP_NET_RAW)",
				    what, strerror(errno));
	case ENODEV: return drv_fail_set(fail, DRV_TRANSPORT, "there is no interface '%s'", device);
	case ENETDOWN: return drv_fail_set(fail, DRV_TRANSPORT, "interface '%s' is down", device);
	case EAFNOSUPPORT:
	case ENOPROTOOPT:
	case EINVAL:
		return drv_fail_set(fail, DRV_NODE_LACKS, "%s: %s (not supported by this kernel or device)",
				    what, strerror(errno));
	default: return drv_fail_set(fail, DRV_SYSTEM, "%s: %s", what, strerror(errno));
	}
}

static int read_interface(struct floor_state *state, const char *device, struct drv_fail *fail)
{
	struct ifreq asked = {.ifr_name = ""};

	if (strlen(device) >= sizeof(asked.ifr_name))
		return drv_fail_set(fail, DRV_TRANSPORT, "there is no interface '%s'", device);
	memcpy(asked.ifr_name, device, strlen(device));
	if (ioctl(state->fd, SIOCGIFHWADDR, &asked) < 0)
		return step_failed(fail, "SIOCGIFHWADDR", device);
	if (asked.ifr_hwaddr.sa_family != ARPHRD_ETHER)
		return drv_fail_set(fail, DRV_NODE_LACKS,
				    "device %s is not of Ethernet, and carries no such packets", device);
	if (ioctl(state->fd, SIOCGIFMTU, &asked) < 0)
		return step_failed(fail, "SIOCGIFMTU", device);
	state->mtu = asked.ifr_mtu < 0 ? 0 : (uint32_t)asked.ifr_mtu;
	return 0;
}

/* An address of its own, that of nobody's card: kept by the card beside the device's, and seen by this socket alone. */
static int take_address(struct floor_state *state, int device, struct drv_fail *fail)
{
	struct packet_mreq membership = {
		.mr_ifindex = device, .mr_type = PACKET_MR_UNICAST, .mr_alen = sizeof(state->mac)};
	uint32_t first;
	uint16_t last;

	if (getrandom(state->mac, sizeof(state->mac), 0) != sizeof(state->mac))
		return drv_fail_set(fail, DRV_SYSTEM, "getrandom: %s", strerror(errno));
	/* locally administered, and not of a group */
	state->mac[0] = (uint8_t)((state->mac[0] & 0xfc) | 2);
	memcpy(membership.mr_address, state->mac, sizeof(state->mac));
	memcpy(&first, state->mac, sizeof(first));
	memcpy(&last, state->mac + sizeof(first), sizeof(last));
	struct sock_filter ours[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(first), 0, 3),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, sizeof(first)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohs(last), 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog program = {.len = sizeof(ours) / sizeof(ours[0]), .filter = ours};

	if (setsockopt(state->fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0)
		return step_failed(fail, "SO_ATTACH_FILTER", "");
	if (setsockopt(state->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership, sizeof(membership)) < 0)
		return step_failed(fail, "PACKET_ADD_MEMBERSHIP", "");
	return 0;
}

/* As much as it is given: without CAP_NET_ADMIN that is the system's limit. */
static int make_room(struct floor_state *state, struct drv_fail *fail)
{
	const int wanted = RECEIVE_BUFFER_BYTES;
	socklen_t bytes = sizeof(int);
	int given;

	if ((setsockopt(state->fd, SOL_SOCKET, SO_RCVBUFFORCE, &wanted, sizeof(wanted)) < 0 &&
	     setsockopt(state->fd, SOL_SOCKET, SO_RCVBUF, &wanted, sizeof(wanted)) < 0) ||
	    getsockopt(state->fd, SOL_SOCKET, SO_RCVBUF, &given, &bytes) < 0)
		return step_failed(fail, "SO_RCVBUF", "");
	state->receive_buffer_bytes = (uint64_t)given;
	return 0;
}

int packet_socket_open(struct floor_state *state, const char *device, bool block, struct drv_fail *fail)
{
	const struct timeval timeout = {.tv_usec = BLOCK_TIMEOUT_US};
	struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETHERTYPE_IP)};
	const int one = 1;

	/* of no protocol: nothing arrives before it is bound */
	state->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (state->fd < 0)
		return step_failed(fail, "a socket of AF_PACKET", device);
	if (read_interface(state, device, fail))
		return -1;
	at.sll_ifindex = (int)if_nametoindex(device);
	if (setsockopt(state->fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) < 0)
		return step_failed(fail, "PACKET_VNET_HDR", device);
	if (block && setsockopt(state->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0)
		return step_failed(fail, "SO_RCVTIMEO", device);
	if (take_address(state, at.sll_ifindex, fail) || make_room(state, fail))
		return -1;
	return bind(state->fd, (void *)&at, sizeof(at)) < 0 ? step_failed(fail, "bind", device) : 0;
}
