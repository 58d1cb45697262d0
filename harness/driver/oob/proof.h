/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both ends of a fresh connection prove that they hold the token, without sending it: nonces from the
 * kernel, then HMAC-SHA-256 (libsodium's) over both nonces, with a different label for each direction so that
 * no answer can be reflected. Proofs are compared in a time that says nothing of where they differ.
 *
 *	client -> server   8 bytes "CADGEOB1", 32 bytes nonce
 *	server -> client   8 bytes "CADGEOB1", 32 bytes nonce
 *	client -> server   32 bytes HMAC(token, "client" nonces)
 *	server -> client   'Y' and 32 bytes HMAC(token, "server" nonces), or 'N' and nothing
 *
 * What follows is neither encrypted nor signed: it steers a measurement whose payload is in the clear
 * anyway. The token keeps stray connections and other users' runs out.
 */
#ifndef DRV_OOB_PROOF_H
#define DRV_OOB_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"

#define DRV_OOB_TOKEN_MAX     256
#define DRV_OOB_NONCE_BYTES   32
#define DRV_OOB_PROOF_BYTES   32
#define DRV_OOB_OPENING_BYTES (8 + DRV_OOB_NONCE_BYTES)

struct drv_oob_token {
	uint8_t bytes[DRV_OOB_TOKEN_MAX];
	/* 16 at least */
	size_t count;
};

/*
 * Reads a token file: regular, owned by this user, mode 0600 exactly, 16 to 256 bytes without the last
 * newline. The token is never printed.
 */
int drv_oob_token_read(const char *path, struct drv_oob_token *token_out, struct drv_fail *fail);

/*
 * The proof of a holder of the token: HMAC-SHA-256, with the token as its key, of label ("client" or "server"),
 * the client's nonce, the server's nonce.
 */
void drv_oob_prove(const struct drv_oob_token *token, const char *label,
		   const uint8_t client_nonce[DRV_OOB_NONCE_BYTES],
		   const uint8_t server_nonce[DRV_OOB_NONCE_BYTES], uint8_t proof_out[DRV_OOB_PROOF_BYTES]);

/*
 * `fd` is a connected, non-blocking socket; 0, or -1 with DRV_TOKEN, DRV_PROTOCOL, DRV_PEER_LOST or DRV_DEADLINE.
 */
int drv_oob_auth_client(int fd, const struct drv_oob_token *token, uint64_t deadline_ns,
			struct drv_fail *fail);

/* The server's side of one connection, as far as it has come: whoever connects and says nothing is not waited for. */
struct drv_oob_greeting {
	int fd; /* connected, non-blocking */
	bool answered;
	uint64_t until_ns;
	size_t received_bytes;
	uint8_t received[DRV_OOB_OPENING_BYTES + DRV_OOB_PROOF_BYTES];
	uint8_t nonce[DRV_OOB_NONCE_BYTES]; /* our own, once answered */
};

/* Goes on as far as it can now. 1: the other end holds the token; 0: more has to come; -1: as above. */
int drv_oob_greet(struct drv_oob_greeting *greeting, const struct drv_oob_token *token,
		  struct drv_fail *fail);

/* Moves exactly `count` bytes before the deadline. Also used for frames. */
int drv_oob_write_all(int fd, const void *bytes, size_t count, uint64_t deadline_ns, struct drv_fail *fail);
int drv_oob_read_all(int fd, void *bytes, size_t count, uint64_t deadline_ns, struct drv_fail *fail);

#endif
