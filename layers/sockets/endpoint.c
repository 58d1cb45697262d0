/* SPDX-License-Identifier: BSD-3-Clause */
#include "sockets/endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "kit/bytes.h"

static const unsigned char blob_magic[4] = {'C', 'S', 'K', '1'};

/* Kinds of endpoint, its first byte; then a zero byte or a length, the port, the address. */
enum { KIND_UNIX = 1, KIND_INET = 4, KIND_INET6 = 6 };

void sock_blob_write(const struct sock_blob *blob, unsigned char to[SOCK_BLOB_BYTES])
{
	memcpy(to, blob_magic, sizeof(blob_magic));
	cadge_store32(to + 4, blob->slot);
	cadge_store64(to + 8, blob->nonce);
	memcpy(to + 16, blob->endpoint, SOCK_ENDPOINT_BYTES);
}

int sock_blob_read(const void *from, size_t bytes, struct sock_blob *blob_out)
{
	const unsigned char *at = from;

	if (bytes != SOCK_BLOB_BYTES || memcmp(at, blob_magic, sizeof(blob_magic)) != 0)
		return CADGE_E_ARGUMENT;
	blob_out->slot = cadge_load32(at + 4);
	blob_out->nonce = cadge_load64(at + 8);
	memcpy(blob_out->endpoint, at + 16, SOCK_ENDPOINT_BYTES);
	return CADGE_DONE;
}

int sock_endpoint_write(const struct sockaddr_storage *address, socklen_t address_bytes,
			unsigned char to[SOCK_ENDPOINT_BYTES])
{
	struct sockaddr_in inet;
	struct sockaddr_in6 inet6;
	struct sockaddr_un local;
	size_t name_bytes;

	memset(to, 0, SOCK_ENDPOINT_BYTES);
	switch (address->ss_family) {
	case AF_INET:
		memcpy(&inet, address, sizeof(inet));
		to[0] = KIND_INET;
		memcpy(to + 2, &inet.sin_port, 2);
		memcpy(to + 4, &inet.sin_addr, 4);
		return CADGE_DONE;
	case AF_INET6:
		memcpy(&inet6, address, sizeof(inet6));
		to[0] = KIND_INET6;
		memcpy(to + 2, &inet6.sin6_port, 2);
		memcpy(to + 4, &inet6.sin6_addr, 16);
		cadge_store32(to + 20, inet6.sin6_scope_id);
		return CADGE_DONE;
	case AF_UNIX:
		name_bytes = address_bytes - offsetof(struct sockaddr_un, sun_path);
		memcpy(&local, address, sizeof(local));
		if (address_bytes <= offsetof(struct sockaddr_un, sun_path) || local.sun_path[0] != '\0' ||
		    name_bytes > SOCK_ABSTRACT_NAME_BYTES)
			return CADGE_E_ARGUMENT;
		to[0] = KIND_UNIX;
		to[1] = (unsigned char)name_bytes;
		memcpy(to + 4, local.sun_path, name_bytes);
		return CADGE_DONE;
	default: return CADGE_E_ARGUMENT;
	}
}

int sock_endpoint_read(const unsigned char from[SOCK_ENDPOINT_BYTES], struct sockaddr_storage *address_out,
		       socklen_t *address_bytes_out)
{
	struct sockaddr_in inet = {.sin_family = AF_INET};
	struct sockaddr_in6 inet6 = {.sin6_family = AF_INET6};
	struct sockaddr_un local = {.sun_family = AF_UNIX};

	memset(address_out, 0, sizeof(*address_out));
	switch (from[0]) {
	case KIND_INET:
		memcpy(&inet.sin_port, from + 2, 2);
		memcpy(&inet.sin_addr, from + 4, 4);
		memcpy(address_out, &inet, sizeof(inet));
		*address_bytes_out = sizeof(inet);
		return CADGE_DONE;
	case KIND_INET6:
		memcpy(&inet6.sin6_port, from + 2, 2);
		memcpy(&inet6.sin6_addr, from + 4, 16);
		inet6.sin6_scope_id = cadge_load32(from + 20);
		memcpy(address_out, &inet6, sizeof(inet6));
		*address_bytes_out = sizeof(inet6);
		return CADGE_DONE;
	case KIND_UNIX:
		if (from[1] < 2 || from[1] > SOCK_ABSTRACT_NAME_BYTES || from[4] != '\0')
			return CADGE_E_ARGUMENT;
		memcpy(local.sun_path, from + 4, from[1]);
		memcpy(address_out, &local, sizeof(local));
		*address_bytes_out = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + from[1]);
		return CADGE_DONE;
	default: return CADGE_E_ARGUMENT;
	}
}

int sock_bind_abstract(const struct cadge_open_args *args, int *fd_out)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	uint64_t nonce;
	int name_bytes, error;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return cadge_refuse(args, cadge_errno_code(errno), "cannot create a socket: %s",
				    strerror(errno));
	for (int attempt = 0; attempt < 16; attempt++) {
		if (cadge_nonce(&nonce) < 0)
			break;
		name_bytes = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "cadge-%016" PRIx64,
				      nonce);
		if (bind(fd, (const struct sockaddr *)&address,
			 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)name_bytes)) == 0) {
			if (listen(fd, SOMAXCONN) < 0)
				break;
			*fd_out = fd;
			return CADGE_DONE;
		}
		if (errno != EADDRINUSE)
			break;
	}
	error = errno;
	close(fd);
	return cadge_refuse(args, cadge_errno_code(error), "cannot bind an abstract UNIX socket: %s",
			    strerror(error));
}
