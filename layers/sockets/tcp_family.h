/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP as sockets-tcp and sockets-uring use it: what a sock_family says of its sockets.
 */
#ifndef CADGE_SOCKETS_TCP_FAMILY_H
#define CADGE_SOCKETS_TCP_FAMILY_H

#include "cadge/layer.h"
#include "sockets/settings.h"

extern const struct cadge_option sock_tcp_options[];

/* As in sock_family. */
int sock_tcp_listen(const struct cadge_open_args *args, int *fd_out);
int sock_tcp_tune(const struct sock_settings *settings, int fd);
int sock_tcp_describe(int fd, enum cadge_place place, const char *device, struct cadge_path *path_out);

#endif
