/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An nginx of our own, as the machine has it installed: a folder with the files of its share and a configuration, and one
 * process, which ends with this one whatever happens. It is nobody's service: nothing of it stands outside its folder.
 */
#ifndef PRESS_NGINX_H
#define PRESS_NGINX_H

#include "launch/launch.h"
#include "press/nginx/nginx_parts.h"

/*
 * Looks whether nginx is there, makes its folder in TMPDIR, and reserves ports for its doors at the addresses of an
 * endpoint, which the kernel chooses. 0, or -1 with the reason; press_nginx_end is legal in either case.
 */
int press_nginx_prepare(struct press_nginx *nginx, const struct drv_endpoint *endpoint,
			struct drv_fail *fail);

/* Where another node's nginx would be asked: "HOST:PORT" as it stands in a configuration. */
void press_nginx_name(char out[PRESS_NGINX_NAME_BYTES], const char *address, uint16_t port);

/* Writes those of the files that owners[self] has, and the configuration, starts it, and waits until it answers. */
int press_nginx_start(struct press_nginx *nginx, const struct press_files *files, const char *const *owners,
		      uint32_t self, uint32_t nodes, uint32_t connections, struct drv_fail *fail);

/* Requests that it has had, at both doors, but those of this function. 0, or -1 with the reason. */
int press_nginx_requests(struct press_nginx *nginx, uint64_t *requests_out, struct drv_fail *fail);

/* Whether it still runs: 0, or -1 with why it does not, and what it said. */
int press_nginx_check(struct press_nginx *nginx, struct drv_fail *fail);

/* Ends it, and removes its folder. */
void press_nginx_end(struct press_nginx *nginx);

#endif
