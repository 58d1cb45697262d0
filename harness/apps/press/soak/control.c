/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/soak/control.h"

#include <errno.h>
#include <sys/socket.h>

#define HEAD_BYTES offsetof(struct soak_control, content)

int soak_send(int fd, const struct soak_control *message, int flags)
{
	ssize_t sent;

	do
		sent = send(fd, message, HEAD_BYTES + message->bytes, MSG_NOSIGNAL | flags);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -1 : 0;
}

int soak_receive(int fd, struct soak_control *message_out)
{
	const ssize_t got = recv(fd, message_out, sizeof(*message_out), MSG_DONTWAIT);

	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	return (size_t)got >= HEAD_BYTES && HEAD_BYTES + message_out->bytes == (size_t)got ? 1 : -1;
}
