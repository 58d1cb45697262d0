/* SPDX-License-Identifier: BSD-3-Clause */
#include "sockets/settings.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "sockets/endpoint.h"

static int read_number(const struct cadge_open_args *args, const struct cadge_setting *setting, int most,
		       int *out)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(setting->value, &end, 10);
	if (errno || end == setting->value || *end || value < 0 || value > most)
		return sock_refuse(args, CADGE_E_ARGUMENT, "setting %s takes 0 to %d, not '%s'",
				   setting->name, most, setting->value);
	*out = (int)value;
	return CADGE_DONE;
}

static int is_known(const struct cadge_option *options, const char *name)
{
	for (; options->name; options++)
		if (strcmp(options->name, name) == 0)
			return 1;
	return 0;
}

int sock_settings_read(const struct cadge_open_args *args, const struct cadge_option *options,
		       struct sock_settings *settings_out)
{
	struct sock_settings settings = {.nodelay = 1};
	int code = CADGE_DONE;

	for (size_t i = 0; i < args->settings_count && code == CADGE_DONE; i++) {
		const struct cadge_setting *setting = &args->settings[i];

		if (!is_known(options, setting->name))
			return sock_refuse(args, CADGE_E_ARGUMENT, "no such setting: %s", setting->name);
		if (strcmp(setting->name, "nodelay") == 0)
			code = read_number(args, setting, 1, &settings.nodelay);
		else if (strcmp(setting->name, "send_buffer_bytes") == 0)
			code = read_number(args, setting, INT_MAX / 2, &settings.send_buffer_bytes);
		else if (strcmp(setting->name, "receive_buffer_bytes") == 0)
			code = read_number(args, setting, INT_MAX / 2, &settings.receive_buffer_bytes);
		else if (strlen(setting->value) < sizeof(settings.congestion_control))
			snprintf(settings.congestion_control, sizeof(settings.congestion_control), "%s",
				 setting->value);
		else
			code = sock_refuse(args, CADGE_E_ARGUMENT, "setting %s is too long", setting->name);
	}
	if (code == CADGE_DONE)
		*settings_out = settings;
	return code;
}

int sock_settings_apply(const struct sock_settings *settings, int fd)
{
	const int send_bytes = settings->send_buffer_bytes, receive_bytes = settings->receive_buffer_bytes;

	if ((send_bytes && setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof(send_bytes)) < 0) ||
	    (receive_bytes &&
	     setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes)) < 0))
		return sock_code(errno);
	return CADGE_DONE;
}
