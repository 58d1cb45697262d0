/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Digests of documents and proofs of the token: the vectors of FIPS 180-4, proofs that Python's hmac made, and a
 * server that does not hold the token.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure/clock.h"
#include "base/digest.h"
#include "oob/proof.h"
#include "tap.h"

#define SECOND UINT64_C(1000000000)

static void check_digest(const char *text, size_t repeat, const char *wanted)
{
	const size_t bytes = strlen(text);
	char *whole = malloc(bytes * repeat + 1), hex[DRV_DIGEST_BYTES];

	if (!whole)
		exit(1);
	for (size_t i = 0; i < repeat; i++)
		memcpy(whole + i * bytes, text, bytes);
	drv_digest(whole, bytes * repeat, hex);
	tap_ok(!strcmp(hex, wanted), "the digest of '%.16s' %zu times", text, repeat);
	free(whole);
}

/* Byte i of the token is 7 i + 1, of the client's nonce i, of the server's nonce 200 + i. */
static void check_proof(const char *label, size_t token_bytes, const char *wanted)
{
	uint8_t client_nonce[DRV_OOB_NONCE_BYTES], server_nonce[DRV_OOB_NONCE_BYTES];
	uint8_t proof[DRV_OOB_PROOF_BYTES];
	struct drv_oob_token token = {.count = token_bytes};
	char hex[2 * DRV_OOB_PROOF_BYTES + 1];

	for (size_t i = 0; i < token_bytes; i++)
		token.bytes[i] = (uint8_t)(7 * i + 1);
	for (size_t i = 0; i < DRV_OOB_NONCE_BYTES; i++) {
		client_nonce[i] = (uint8_t)i;
		server_nonce[i] = (uint8_t)(200 + i);
	}
	drv_oob_prove(&token, label, client_nonce, server_nonce, proof);
	for (size_t i = 0; i < sizeof(proof); i++)
		snprintf(hex + 2 * i, 3, "%02x", proof[i]);
	tap_ok(!strcmp(hex, wanted), "the %s's proof with a token of %zu bytes", label, token_bytes);
}

/* A server that knows what a server says, and answers with the proof it should, but for bit `wrong` (-1: none). */
static int be_server(int fd, const struct drv_oob_token *token, int wrong)
{
	const uint64_t until_ns = drv_now_ns() + 5 * SECOND;
	uint8_t opening[8 + DRV_OOB_NONCE_BYTES], client_nonce[DRV_OOB_NONCE_BYTES];
	uint8_t answer[1 + DRV_OOB_PROOF_BYTES] = {'Y'}, proof[DRV_OOB_PROOF_BYTES];
	struct drv_fail fail;

	if (drv_oob_read_all(fd, opening, sizeof(opening), until_ns, &fail))
		return 1;
	memcpy(client_nonce, opening + 8, DRV_OOB_NONCE_BYTES);
	memset(opening + 8, 5, DRV_OOB_NONCE_BYTES);
	if (drv_oob_write_all(fd, opening, sizeof(opening), until_ns, &fail) ||
	    drv_oob_read_all(fd, proof, sizeof(proof), until_ns, &fail))
		return 1;
	drv_oob_prove(token, "server", client_nonce, opening + 8, answer + 1);
	if (wrong >= 0)
		answer[1 + wrong / 8] ^= (uint8_t)(1 << wrong % 8);
	return drv_oob_write_all(fd, answer, sizeof(answer), until_ns, &fail) ? 1 : 0;
}

static void check_server(int wrong, int wanted)
{
	static const struct drv_oob_token token = {"0123456789abcdef", 16};
	struct drv_fail fail = {.reason = DRV_OK};
	int ends[2], status, state;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends))
		exit(77);
	child = fork();
	if (child < 0)
		exit(77);
	if (child == 0)
		_exit(be_server(ends[1], &token, wrong));
	close(ends[1]);
	status = drv_oob_auth_client(ends[0], &token, drv_now_ns() + 5 * SECOND, &fail);
	close(ends[0]);
	tap_ok(waitpid(child, &state, 0) == child && WIFEXITED(state) && !WEXITSTATUS(state) &&
		       (status == 0) == (wanted == DRV_OK) && (int)fail.reason == wanted,
	       wrong < 0 ? "a server that holds the token is believed"
			 : "one whose proof is wrong in bit %d is not",
	       wrong);
}

int main(void)
{
	check_digest("", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	check_digest("abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	check_digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
		     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	check_digest("aaaaaaaaaa", 100000,
		     "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	check_proof("client", 16, "1cf948413c7c7677ea52c801fdcccbbcbcb9184c21a411aee2da963dff8e62f4");
	check_proof("server", 16, "0d8c8a5d8ecac1149adc7971d6c7be22a59983d0e05c75cf399cda971f491b6e");
	/* a token as long as SHA-256's block, and longer ones, which are hashed first */
	check_proof("client", 64, "8d803dfdd1233910c40555b036d787a9ca2a129036d0f17a3ced40d45e5ed334");
	check_proof("client", 65, "94d4b38d08cda30c3ce2b10807061cd369dc5ac7aeab86942d51cfa0cf528bf6");
	check_proof("server", 131, "0a527e11c030ca60c53bf7521caf01ac9c149f2f273fd1b27075e277df6ded24");
	check_proof("client", 256, "31004fcea4dc399720ce4965b61c3a4796411344646f5c4034e46117a3a1a12d");
	check_server(-1, DRV_OK);
	check_server(0, DRV_TOKEN);
	check_server(8 * DRV_OOB_PROOF_BYTES - 1, DRV_TOKEN);
	return tap_done();
}
