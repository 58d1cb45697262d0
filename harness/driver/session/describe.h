/* SPDX-License-Identifier: BSD-3-Clause */
/* What a layer can do on this machine, found by opening it. */
#ifndef DRV_DESCRIBE_H
#define DRV_DESCRIBE_H

struct drv_describe_args {
	const char *modules, *layer, *device, *address;
};

/*
 * Prints one JSON object on stdout: the table and, for each place and wait mode, whether it opens and what is
 * granted, or code and reason. Each trial runs in a child of its own, with a time limit, so that a library
 * that crashes or hangs is a row with a reason. Returns the exit status: 0, or 3 when the layer cannot even
 * be loaded (also said in the JSON).
 */
int drv_describe(const struct drv_describe_args *args);

#endif
