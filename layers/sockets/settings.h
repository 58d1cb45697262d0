/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open-time options of the sockets layers. What is not set stays as the kernel has it.
 */
#ifndef CADGE_SOCKETS_SETTINGS_H
#define CADGE_SOCKETS_SETTINGS_H

#include "cadge/layer.h"

struct sock_settings {
	uint64_t nodelay;                                 /* TCP_NODELAY; on unless set to 0 */
	uint64_t send_buffer_bytes, receive_buffer_bytes; /* 0: the kernel's */
	char congestion_control[16];                      /* "": the kernel's */
};

/* Reads args->settings. DONE, or E_ARGUMENT with the reason in args->error. */
int sock_settings_read(const struct cadge_open_args *args, struct sock_settings *settings_out);

/* Sets SO_SNDBUF and SO_RCVBUF as asked. DONE or a code of the contract. */
int sock_settings_apply(const struct sock_settings *settings, int fd);

#endif
