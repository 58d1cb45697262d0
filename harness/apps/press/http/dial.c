/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/http/dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

const char *press_node_address(const struct drv_endpoint *node)
{
	return node->address && *node->address ? node->address : "127.0.0.1";
}

const char *press_client_address(const struct drv_endpoint *node)
{
	return node->management_address && *node->management_address ? node->management_address
								     : press_node_address(node);
}

int press_dial(const char *address, uint16_t port)
{
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	const bool is_four = inet_pton(AF_INET, address, &four.sin_addr) == 1;
	int fd;

	if (!is_four && inet_pton(AF_INET6, address, &six.sin6_addr) != 1) {
		errno = EINVAL;
		return -1;
	}
	fd = socket(is_four ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, is_four ? (struct sockaddr *)&four : (struct sockaddr *)&six,
			       is_four ? sizeof(four) : sizeof(six))) {
		const int error = errno;

		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}
