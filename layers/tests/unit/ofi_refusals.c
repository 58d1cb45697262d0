/* SPDX-License-Identifier: BSD-3-Clause */
/* What the libfabric layers refuse when they are opened: by which code, and that the sentence helps. */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/support/pair.h"
#include "tests/unit/support/refuses.h"
#include "tests/unit/support/tap.h"

static const struct cadge_layer *layer;

static void providers(void)
{
	const struct cadge_setting absent = {.name = "provider", .value = "no_such_provider"};
	const struct cadge_setting shm = {.name = "provider", .value = "shm"};
	const struct cadge_setting verbs = {.name = "provider", .value = "verbs;ofi_rxm"};
	const struct cadge_setting strange = {.name = "transport", .value = "tcp"};
	struct cadge_open_args args = pair_args(CADGE_WAIT_POLL);

	args.settings_count = 1;
	args.place = CADGE_PLACE_NET;
	args.settings = &absent;
	refuses(layer, &args, CADGE_E_TRANSPORT, "shm",
		"an absent provider is refused, and the sentence lists what there is");
	refuses(layer, &args, CADGE_E_TRANSPORT, "no_such_provider", "and says which one was asked for");
	args.settings = &verbs;
	refuses(layer, &args, CADGE_E_TRANSPORT, "RDMA device",
		"verbs is refused on an interface without an RDMA device");
	args.settings = &shm;
	refuses(layer, &args, CADGE_E_UNSUPPORTED, "one host", "shm is refused between hosts");
	args.settings = &strange;
	refuses(layer, &args, CADGE_E_ARGUMENT, "transport", "an unknown setting is refused by name");
}

static void waits(void)
{
	struct cadge_open_args args = pair_args(CADGE_WAIT_BLOCK);

	args.place = CADGE_PLACE_HOST;
	refuses(layer, &args, CADGE_E_UNSUPPORTED, "FI_WAIT_FD", "block is refused within a host");
	args.place = CADGE_PLACE_SELF;
	args.wait_mode = CADGE_WAIT_POLL;
	refuses(layer, &args, CADGE_E_UNSUPPORTED, "two processes", "a context is not connected to itself");
}

/* A socket that has taken a port of an address; -1 where the machine has no such address. */
static int taken_port(const char *address, uint16_t *port_out)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
	struct sockaddr_storage at;
	socklen_t bytes = sizeof(at);
	struct addrinfo *found;
	char port[8];
	int fd;

	if (getaddrinfo(address, NULL, &hints, &found))
		return -1;
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 &&
	    (bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, 1) ||
	     getsockname(fd, (struct sockaddr *)&at, &bytes) ||
	     getnameinfo((struct sockaddr *)&at, bytes, NULL, 0, port, sizeof(port), NI_NUMERICSERV))) {
		close(fd);
		fd = -1;
	}
	freeaddrinfo(found);
	*port_out = fd < 0 ? 0 : (uint16_t)atoi(port);
	return fd;
}

/* The only port of the range is taken: refused; with a second one in the range, opened. */
static void ports(const char *address)
{
	struct cadge_open_args args = pair_args(CADGE_WAIT_POLL);
	struct cadge_ctx *ctx = NULL;
	uint16_t port;
	int fd = taken_port(address, &port), code;

	if (fd < 0) {
		ok(strcmp(address, "127.0.0.1") != 0, "%s: no port of %s can be taken here", layer->name,
		   address);
		return;
	}
	args.place = CADGE_PLACE_NET;
	args.device = "lo";
	args.address = address;
	args.port_first = args.port_last = port;
	refuses(layer, &args, CADGE_E_PORT, "no free port", "a range without a free port is refused");
	args.port_last = (uint16_t)(args.port_first + 20);
	code = layer->open(&args, &ctx);
	ok(code == CADGE_DONE, "%s: the next free port of the range is taken", layer->name);
	if (code == CADGE_DONE)
		layer->close(ctx);
	close(fd);
}

int main(void)
{
	static const char *const names[] = {"native-ofi", "rdma-ofi"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		layer = pair_load(names[i]);
		providers();
		waits();
		ports("127.0.0.1");
		ports("::1");
	}
	return tap_done();
}
