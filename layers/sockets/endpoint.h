/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the sockets layers listen and how a peer learns of it: address blobs.
 */
#ifndef CADGE_SOCKETS_ENDPOINT_H
#define CADGE_SOCKETS_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "cadge/layer.h"
#include "kit/adapter.h"

enum {
	SOCK_ENDPOINT_BYTES = 40,
	SOCK_BLOB_BYTES = 56,
	SOCK_NONCE_BYTES = 8,
	SOCK_ABSTRACT_NAME_BYTES = 32,
};

/*
 * What an address blob says: "reach me at this endpoint, call yourself `slot`, and prove with `nonce` that
 * you have read this". The endpoint is a socket address in fixed bytes, comparable with memcmp.
 */
struct sock_blob {
	uint32_t slot;
	uint64_t nonce;
	unsigned char endpoint[SOCK_ENDPOINT_BYTES];
};

void sock_blob_write(const struct sock_blob *blob, unsigned char to[SOCK_BLOB_BYTES]);
/* DONE or E_ARGUMENT: not a blob of ours. */
int sock_blob_read(const void *from, size_t bytes, struct sock_blob *blob_out);

/* The endpoint of a socket address (IPv4, IPv6, abstract UNIX), and back. DONE or E_ARGUMENT. */
int sock_endpoint_write(const struct sockaddr_storage *address, socklen_t address_bytes,
			unsigned char to[SOCK_ENDPOINT_BYTES]);
int sock_endpoint_read(const unsigned char from[SOCK_ENDPOINT_BYTES], struct sockaddr_storage *address_out,
		       socklen_t *address_bytes_out);

/* Opens a non-blocking UNIX stream socket bound to a random abstract name. As cadge_bind_in_range. */
int sock_bind_abstract(const struct cadge_open_args *args, int *fd_out);

#endif
