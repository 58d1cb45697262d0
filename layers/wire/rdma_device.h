/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The RDMA device behind a network interface: what libibverbs calls "rxe0" where the kernel has "data0". Read from the
 * GID tables in sysfs, which name the interface of each entry, so that no library is needed.
 */
#ifndef CADGE_WIRE_RDMA_DEVICE_H
#define CADGE_WIRE_RDMA_DEVICE_H

#include <stdbool.h>

struct cadge_rdma_device {
	char name[64];
	unsigned int port;
	bool soft; /* soft RoCE (rxe), which names the interface that it stands on */
};

/* The device and port of an interface; false where it has none, and then nothing was written. */
bool cadge_rdma_device_of(const char *interface, struct cadge_rdma_device *device_out);

/* The same under another folder than /sys/class/infiniband. */
bool cadge_rdma_device_under(const char *root, const char *interface, struct cadge_rdma_device *device_out);

#endif
