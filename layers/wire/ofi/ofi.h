/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libfabric bring-up, shared by the adapters that use libfabric: from the arguments of open to one enabled
 * endpoint, FI_EP_RDM or FI_EP_DGRAM, with one completion queue, on the provider and interface that were asked for,
 * and back.
 *
 * One struct cadge_ofi belongs to one context and one thread. Nothing here runs while operations are measured
 * except cadge_ofi_wait.
 */
#ifndef CADGE_WIRE_OFI_OFI_H
#define CADGE_WIRE_OFI_OFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "cadge/layer.h"
#include "kit/adapter.h"

/* What we are written for: the oldest libfabric in reach. A newer library behaves as this version says. */
#define CADGE_OFI_VERSION FI_VERSION(1, 17)

#define CADGE_OFI_NAME_BYTES 512u

/* The option that every libfabric layer has: an initialiser for its table of options. */
#define CADGE_OFI_OPTION_PROVIDER                                                                            \
	{"provider", "",                                                                                     \
	 "libfabric provider, e.g. tcp;ofi_rxm; by default shm within a host, tcp;ofi_rxm between hosts"}

/* The table of those that have no other. */
extern const struct cadge_option cadge_ofi_options[];

/* What an adapter needs from the provider. */
struct cadge_ofi_needs {
	uint64_t caps;        /* FI_MSG, FI_RMA, ...: all are required */
	uint64_t caps_wanted; /* asked for first, done without where the provider lacks them */
	uint64_t msg_order;   /* FI_ORDER_*: required */
	int mr_mode;          /* FI_MR_*: what the adapter can cope with */
	const char *provider; /* where the setting names none; NULL: as cadge_ofi_open says */
	bool datagrams;       /* FI_EP_DGRAM, without immediate data, in place of FI_EP_RDM */
	size_t completions;   /* most completions that can be in the queue at a time */
};

/* An address that shm's table holds. */
struct cadge_ofi_known;

struct cadge_ofi {
	struct fi_info *info; /* as granted, not as asked */
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq; /* FI_CQ_FORMAT_DATA, sends and receives */
	struct fid_ep *ep;
	int wait_fd;      /* -1 where the context does not sleep */
	uint64_t opening; /* a random number */
	struct cadge_ofi_known *known;
	uint32_t known_max;
	enum cadge_place place;
	enum cadge_wait_mode wait_mode;
	bool network;    /* the provider goes through a network's interface and not through memory */
	bool verbs;      /* and, there, through its RDMA device */
	char asked[48];  /* provider that was asked for */
	char device[32]; /* interface that was asked for */
	/* of the domain that libfabric grants: the interface, "shm" for shared memory */
	char interface[32];
	char rdma_device[64]; /* of the interface, for verbs */
	char why[160];        /* what libfabric said of the last error */
};

/*
 * Opens a provider as `args` and `needs` say: "shm" within a host and "tcp;ofi_rxm" between hosts, or the
 * setting "provider". Listening sockets take the first free port of the range in args. May block. DONE, or
 * the negative code and args->error that open of the adapter returns; then there is nothing to close.
 */
int cadge_ofi_open(struct cadge_ofi *ofi, const struct cadge_open_args *args,
		   const struct cadge_ofi_needs *needs);
/*
 * Closing: first the endpoint, then the adapter's memory regions, then the rest (queue, address table,
 * domain, fabric). cadge_ofi_close closes the endpoint too if it is still there. Both are legal after a
 * failed open.
 */
void cadge_ofi_close_endpoint(struct cadge_ofi *ofi);
void cadge_ofi_close(struct cadge_ofi *ofi);

/*
 * What a peer needs to insert us, CADGE_OFI_NAME_BYTES at most: our address as the provider writes it, and a number that
 * tells this opening from any other at the same address. DONE, E_ARGUMENT (no room), E_LIBRARY.
 */
int cadge_ofi_name(const struct cadge_ofi *ofi, void *name, size_t *bytes_inout);
/*
 * Enters a peer's name into the address table. DONE, E_ARGUMENT (no name) or E_LIBRARY.
 *
 * shm keeps what was removed until its room or its address is needed, and takes it again where the same peer comes back:
 * libfabric 2.1 follows a null pointer where long messages wait for being received, or discarded by close, whose sender
 * is not in the table any more.
 */
int cadge_ofi_insert(struct cadge_ofi *ofi, const void *name, size_t name_bytes, fi_addr_t *addr_out);
void cadge_ofi_remove(struct cadge_ofi *ofi, fi_addr_t addr);

/* Sleeps on the queue's descriptor unless it has work already. As cadge_layer.wait. */
int cadge_ofi_wait(const struct cadge_ofi *ofi, uint64_t timeout_ns);
/* As cadge_layer.event; *due_ns_out is left alone. */
int cadge_ofi_event(const struct cadge_ofi *ofi, int *fd_out);

/* The longest message or transfer, of those asked for, that the endpoint takes. */
static inline uint64_t cadge_ofi_longest(const struct cadge_ofi *ofi, uint64_t asked_bytes)
{
	return cadge_least(asked_bytes, ofi->info->ep_attr->max_msg_size);
}

/* Over verbs, ends a receive before the endpoint is closed, which takes in what that tells; elsewhere it does nothing. */
void cadge_ofi_take_back(const struct cadge_ofi *ofi, void *op_context);

/* Keeps libfabric's words for what a call returned (negative), for why. Returns E_DOWN. */
int cadge_ofi_refused(struct cadge_ofi *ofi, ssize_t ret);
/* Reads one failed entry of the queue and keeps libfabric's words for it. As fi_cq_readerr. */
ssize_t cadge_ofi_read_error(struct cadge_ofi *ofi, struct fi_cq_err_entry *error);

/* Writes medium, asked, used, device and as_asked from what libfabric granted; *path_out is the adapter's. */
void cadge_ofi_describe(const struct cadge_ofi *ofi, struct cadge_path *path_out);
void cadge_wire_library(struct cadge_library *library_out);

/* The contract's code for a libfabric error (positive FI_E... or negative). */
int cadge_ofi_code(long error);

#endif
