/* SPDX-License-Identifier: BSD-3-Clause */
/* What libfabric says of the parameters by which a provider chooses how it moves a message (fi_getparams). */
#ifndef CADGE_WIRE_OFI_PARAMS_H
#define CADGE_WIRE_OFI_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Writes "; disable_cma no; sar_threshold inf" for shm, "; buffer_size 16384; sar_limit 131072" for ofi_rxm:
 * what was set, else the default that the library states. Parameters that it does not have are left out, flags
 * are words, since reports take paths that differ in numbers alone for the same. After fi_getinfo only:
 * providers state their parameters when they start.
 */
void cadge_ofi_params(bool network, char *text, size_t text_bytes);

/* Whether libfabric's cache of memory regions is on: where nothing was set, it is. */
bool cadge_ofi_keeps_regions(void);

/* Whether shm was told not to copy between processes. */
bool cadge_ofi_cma_disabled(void);

/* The size that ofi_rxm keeps eager messages in: above it one may wait for its receiver. */
uint64_t cadge_ofi_eager_bytes(void);

#endif
