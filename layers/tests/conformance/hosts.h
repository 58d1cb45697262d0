/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two or three hosts out of one, for the place `between`: each rank gets namespaces of its own (network, host
 * name, IPC, /dev/shm) and a virtual cable to a bridge that lives in the referee's private network namespace.
 * Nothing of it is visible outside, and all of it vanishes with the processes. Needs root and the command
 * `ip`.
 */
#ifndef CADGE_HOSTS_H
#define CADGE_HOSTS_H

#include <sys/types.h>

#define HOSTS_DEVICE "data0"

/* Brings up interface `name` in this process's network namespace. 0 or -1. */
int interface_up(const char *name);
/*
 * In a mount namespace of one's own: the kernel's list of its symbols is empty. libfabric's verbs provider reads all of it, a
 * hundred thousand lines, in every process, for what only the memory of GPUs needs; that was half of a short test's time.
 */
void hide_kernel_symbols(void);
/* In the referee, inside its own network namespace. 0, or -1: not possible here. */
int hosts_prepare(void);
/*
 * In the child that becomes rank `number`: leaves for its own namespaces; waits for the cable. -1 on
 * failure.
 */
int host_enter(unsigned int number, int ready_fd, int go_fd);
/* In the referee, after the child said ready: lays the cable. 0 or -1. */
int host_connect(pid_t pid);
/*
 * For ranks that a launcher starts, which cannot leave for a host each: HOSTS_DEVICE in this process's network namespace, with
 * the address of rank 0. The kernel carries what they send each other through its loopback. 0, or -1: not possible here.
 */
int host_of_all(void);
/* The address of rank `number`: a static text for 0, 1, 2. */
const char *host_address(unsigned int number);

#endif
