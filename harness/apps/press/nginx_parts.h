/* SPDX-License-Identifier: BSD-3-Clause */
/* The folder of an nginx, for the process that works there. */
#ifndef PRESS_NGINX_PARTS_H
#define PRESS_NGINX_PARTS_H

#include "press/nginx.h"
#include "press/ring.h"

#define PRESS_NGINX_SAID_BYTES 256u

/* Makes the folder, and one for files in it. 0, or -1 with the reason; press_nginx_clear removes what there is. */
int press_nginx_folder(struct press_nginx *nginx, struct drv_fail *fail);
void press_nginx_clear(struct press_nginx *nginx);

/* FOLDER/NAME, which fits: press_nginx_folder has seen to it. */
void press_nginx_path(const struct press_nginx *nginx, const char *name, char out[PATH_MAX]);

/* Writes the files of this node's share, and the configuration. 0, or -1 with the reason. */
int press_nginx_files(const struct press_nginx *nginx, const struct press_files *files,
		      const struct press_ring *ring, uint32_t self, struct drv_fail *fail);
int press_nginx_configure(const struct press_nginx_plan *plan, const struct press_nginx *nginx,
			  struct drv_fail *fail);

/* The last line of what it said, without its end; "" where there is none. */
void press_nginx_said(const struct press_nginx *nginx, char out[PRESS_NGINX_SAID_BYTES]);

#endif
