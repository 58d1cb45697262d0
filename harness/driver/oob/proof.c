/* SPDX-License-Identifier: BSD-3-Clause */
/* The proof that both ends of a connection hold the token, and the reading of the token file. */
#include "oob/proof.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sodium/crypto_auth_hmacsha256.h>
#include <sodium/utils.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "measure/clock.h"
#include "launch/watchdog.h"

#define MAGIC       "CADGEOB1"
#define MAGIC_BYTES 8
#define NONCE_BYTES DRV_OOB_NONCE_BYTES
#define PROOF_BYTES DRV_OOB_PROOF_BYTES
#define LABEL_BYTES 6

_Static_assert(DRV_OOB_OPENING_BYTES == MAGIC_BYTES + NONCE_BYTES, "an opening is magic and nonce");
_Static_assert(PROOF_BYTES == crypto_auth_hmacsha256_BYTES, "a proof is an HMAC-SHA-256");

struct opening {
	uint8_t magic[MAGIC_BYTES];
	uint8_t nonce[NONCE_BYTES];
};

static int wait_for(int fd, short events, uint64_t deadline_ns, struct drv_fail *fail)
{
	struct pollfd entry = {.fd = fd, .events = events};
	const uint64_t now_ns = drv_now_ns();

	if (drv_stop_signal)
		return drv_fail_set(fail, DRV_STOPPED, "stopped by signal %d", (int)drv_stop_signal);
	if (now_ns >= deadline_ns)
		return drv_fail_set(fail, DRV_DEADLINE, "the other endpoint did not answer in time");
	/* rounded up, so that the last wait does not spin; a signal ends it early */
	if (poll(&entry, 1,
		 (int)((deadline_ns - now_ns) / 1000000 > 1000 ? 1000
							       : (deadline_ns - now_ns) / 1000000 + 1)) < 0 &&
	    errno != EINTR)
		return drv_fail_set(fail, DRV_SYSTEM, "poll failed: %s", strerror(errno));
	return 0;
}

int drv_oob_write_all(int fd, const void *bytes, size_t count, uint64_t deadline_ns, struct drv_fail *fail)
{
	const char *at = bytes;

	while (count > 0) {
		const ssize_t sent = send(fd, at, count, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent > 0) {
			at += sent;
			count -= (size_t)sent;
		} else if (sent < 0 && errno != EAGAIN && errno != EINTR) {
			return drv_fail_set(fail, DRV_PEER_LOST, "the other endpoint is gone: %s",
					    strerror(errno));
		} else if (wait_for(fd, POLLOUT, deadline_ns, fail)) {
			return -1;
		}
	}
	return 0;
}

int drv_oob_read_all(int fd, void *bytes, size_t count, uint64_t deadline_ns, struct drv_fail *fail)
{
	char *at = bytes;

	while (count > 0) {
		const ssize_t got = recv(fd, at, count, MSG_DONTWAIT);

		if (got > 0) {
			at += got;
			count -= (size_t)got;
		} else if (got == 0) {
			return drv_fail_set(fail, DRV_PEER_LOST, "the other endpoint closed the connection");
		} else if (errno != EAGAIN && errno != EINTR) {
			return drv_fail_set(fail, DRV_PEER_LOST, "the other endpoint is gone: %s",
					    strerror(errno));
		} else if (wait_for(fd, POLLIN, deadline_ns, fail)) {
			return -1;
		}
	}
	return 0;
}

void drv_oob_prove(const struct drv_oob_token *token, const char *label,
		   const uint8_t client_nonce[NONCE_BYTES], const uint8_t server_nonce[NONCE_BYTES],
		   uint8_t proof_out[PROOF_BYTES])
{
	/* libsodium's one-piece call takes keys of 32 bytes alone; this one takes any */
	crypto_auth_hmacsha256_state state;

	crypto_auth_hmacsha256_init(&state, token->bytes, token->count);
	crypto_auth_hmacsha256_update(&state, (const uint8_t *)label, LABEL_BYTES);
	crypto_auth_hmacsha256_update(&state, client_nonce, NONCE_BYTES);
	crypto_auth_hmacsha256_update(&state, server_nonce, NONCE_BYTES);
	crypto_auth_hmacsha256_final(&state, proof_out);
}

static int make_opening(struct opening *opening, struct drv_fail *fail)
{
	memcpy(opening->magic, MAGIC, MAGIC_BYTES);
	if (getrandom(opening->nonce, NONCE_BYTES, 0) != NONCE_BYTES)
		return drv_fail_set(fail, DRV_SYSTEM, "no random bytes: %s", strerror(errno));
	return 0;
}

int drv_oob_auth_client(int fd, const struct drv_oob_token *token, uint64_t deadline_ns,
			struct drv_fail *fail)
{
	uint8_t mine[PROOF_BYTES], theirs[PROOF_BYTES], wanted[PROOF_BYTES], verdict;
	struct opening client, server;

	if (make_opening(&client, fail) ||
	    drv_oob_write_all(fd, &client, sizeof(client), deadline_ns, fail) ||
	    drv_oob_read_all(fd, &server, sizeof(server), deadline_ns, fail))
		return -1;
	if (memcmp(server.magic, MAGIC, MAGIC_BYTES) != 0)
		return drv_fail_set(fail, DRV_PROTOCOL,
				    "the listener there is not an endpoint of this version");
	drv_oob_prove(token, "client", client.nonce, server.nonce, mine);
	if (drv_oob_write_all(fd, mine, sizeof(mine), deadline_ns, fail) ||
	    drv_oob_read_all(fd, &verdict, 1, deadline_ns, fail))
		return -1;
	if (verdict != 'Y')
		return drv_fail_set(fail, DRV_TOKEN, "the other endpoint refused this endpoint's token");
	if (drv_oob_read_all(fd, theirs, sizeof(theirs), deadline_ns, fail))
		return -1;
	drv_oob_prove(token, "server", client.nonce, server.nonce, wanted);
	if (sodium_memcmp(theirs, wanted, PROOF_BYTES) != 0)
		return drv_fail_set(fail, DRV_TOKEN, "the other endpoint holds another token");
	return 0;
}

/* Reads what has come and was not there yet: 0, or -1 where the connection ended or its time is up. */
static int receive(struct drv_oob_greeting *greeting, struct drv_fail *fail)
{
	while (greeting->received_bytes < sizeof(greeting->received)) {
		const ssize_t got = recv(greeting->fd, greeting->received + greeting->received_bytes,
					 sizeof(greeting->received) - greeting->received_bytes, MSG_DONTWAIT);

		if (got == 0)
			return drv_fail_set(fail, DRV_PEER_LOST, "the other endpoint closed the connection");
		if (got < 0 && errno != EAGAIN && errno != EINTR)
			return drv_fail_set(fail, DRV_PEER_LOST, "the other endpoint is gone: %s",
					    strerror(errno));
		if (got < 0)
			break;
		greeting->received_bytes += (size_t)got;
	}
	if (greeting->received_bytes < sizeof(greeting->received) && drv_now_ns() >= greeting->until_ns)
		return drv_fail_set(fail, DRV_DEADLINE, "the other endpoint did not answer in time");
	return 0;
}

int drv_oob_greet(struct drv_oob_greeting *greeting, const struct drv_oob_token *token, struct drv_fail *fail)
{
	uint8_t wanted[PROOF_BYTES], answer[1 + PROOF_BYTES];
	struct opening client, server;

	if (receive(greeting, fail))
		return -1;
	if (greeting->received_bytes < sizeof(client))
		return 0;
	memcpy(&client, greeting->received, sizeof(client));
	if (memcmp(client.magic, MAGIC, MAGIC_BYTES) != 0)
		return drv_fail_set(fail, DRV_PROTOCOL, "a connection does not speak this protocol");
	if (!greeting->answered) {
		if (make_opening(&server, fail) ||
		    drv_oob_write_all(greeting->fd, &server, sizeof(server), greeting->until_ns, fail))
			return -1;
		memcpy(greeting->nonce, server.nonce, NONCE_BYTES);
		greeting->answered = true;
	}
	if (greeting->received_bytes < sizeof(greeting->received))
		return 0;
	drv_oob_prove(token, "client", client.nonce, greeting->nonce, wanted);
	if (sodium_memcmp(greeting->received + sizeof(client), wanted, PROOF_BYTES) != 0) {
		struct drv_fail ignored; /* the verdict is a courtesy */

		if (drv_oob_write_all(greeting->fd, "N", 1, greeting->until_ns, &ignored))
			return drv_fail_set(fail, DRV_TOKEN, "a connection has another token, and closed");
		return drv_fail_set(fail, DRV_TOKEN, "a connection has another token");
	}
	answer[0] = 'Y';
	drv_oob_prove(token, "server", client.nonce, greeting->nonce, answer + 1);
	return drv_oob_write_all(greeting->fd, answer, sizeof(answer), greeting->until_ns, fail) ? -1 : 1;
}

int drv_oob_token_read(const char *path, struct drv_oob_token *token_out, struct drv_fail *fail)
{
	struct drv_oob_token token = {.count = 0};
	const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat facts;
	ssize_t count;
	int status = -1;

	if (file < 0)
		return drv_fail_set(fail, DRV_ARGUMENT, "token file %s: %s", path, strerror(errno));
	if (fstat(file, &facts) || !S_ISREG(facts.st_mode)) {
		drv_fail_set(fail, DRV_ARGUMENT, "token file %s: not a regular file", path);
		goto done;
	}
	if ((facts.st_mode & 07777) != 0600 || facts.st_uid != geteuid()) {
		drv_fail_set(fail, DRV_ARGUMENT,
			     "token file %s: must belong to this user with mode 0600, has mode %04o", path,
			     (unsigned)(facts.st_mode & 07777));
		goto done;
	}
	count = read(file, token.bytes, sizeof(token.bytes));
	if (count < 0 || facts.st_size > DRV_OOB_TOKEN_MAX) {
		drv_fail_set(fail, DRV_ARGUMENT, "token file %s: cannot be read, or holds more than %d bytes",
			     path, DRV_OOB_TOKEN_MAX);
		goto done;
	}
	token.count = (size_t)count;
	if (token.count > 0 && token.bytes[token.count - 1] == '\n')
		token.count--;
	if (token.count < 16) {
		drv_fail_set(fail, DRV_ARGUMENT, "token file %s: holds fewer than 16 bytes", path);
		goto done;
	}
	*token_out = token;
	status = 0;
done:
	explicit_bzero(&token, sizeof(token));
	close(file);
	return status;
}
