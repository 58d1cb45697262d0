/* SPDX-License-Identifier: BSD-3-Clause */
#include "sockets/settings.h"

#include <errno.h>
#include <limits.h>
#include <sys/socket.h>

#include "sockets/endpoint.h"

static const struct cadge_setting_rule rules[] = {
	{.name = "nodelay",
	 .kind = CADGE_SETTING_NUMBER,
	 .offset = offsetof(struct sock_settings, nodelay),
	 .most = 1},
	{.name = "send_buffer_bytes",
	 .kind = CADGE_SETTING_NUMBER,
	 .offset = offsetof(struct sock_settings, send_buffer_bytes),
	 .most = INT_MAX / 2},
	{.name = "receive_buffer_bytes",
	 .kind = CADGE_SETTING_NUMBER,
	 .offset = offsetof(struct sock_settings, receive_buffer_bytes),
	 .most = INT_MAX / 2},
	{.name = "congestion_control",
	 .offset = offsetof(struct sock_settings, congestion_control),
	 .room = sizeof(((struct sock_settings *)0)->congestion_control)},
	{.name = NULL},
};

int sock_settings_read(const struct cadge_open_args *args, struct sock_settings *settings_out)
{
	*settings_out = (struct sock_settings){.nodelay = 1};
	return cadge_settings_read(args, rules, settings_out);
}

int sock_settings_apply(const struct sock_settings *settings, int fd)
{
	const int send_bytes = (int)settings->send_buffer_bytes,
		  receive_bytes = (int)settings->receive_buffer_bytes;

	if ((send_bytes && setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof(send_bytes)) < 0) ||
	    (receive_bytes &&
	     setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes)) < 0))
		return cadge_errno_code(errno);
	return CADGE_DONE;
}
