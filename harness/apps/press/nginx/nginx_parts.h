/* SPDX-License-Identifier: BSD-3-Clause */
/* An nginx, its folder and its configuration: what nginx.c, nginx_folder.c and nginx_text.c share. */
#ifndef PRESS_NGINX_PARTS_H
#define PRESS_NGINX_PARTS_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/fail.h"
#include "press/content/files.h"
#include "press/links/message.h"
#include "press/nginx/ring.h"

#define PRESS_NGINX_NAME_BYTES     64u
#define PRESS_NGINX_LOG_TAIL_BYTES 256u

/* What it listens for: its clients' requests; those of all nodes' nginx for files that it has, and ours for its counts. */
enum press_nginx_door { PRESS_NGINX_FRONT, PRESS_NGINX_BACK, PRESS_NGINX_DOORS };

/* What a configuration says. */
struct press_nginx_plan {
	const char *folder;
	/* where each door is, and how that is written in an address, [...] of IPv6 */
	const char *hosts[PRESS_NGINX_DOORS];
	uint16_t ports[PRESS_NGINX_DOORS];
	/* the back doors of all nodes, "HOST:PORT", in the same order everywhere */
	const char *const *owners;
	uint32_t nodes, connections;
	/* that it keeps open, and connections that it may have */
	uint32_t files, sockets;
};

struct press_nginx {
	/* 0: it does not run */
	pid_t pid;
	/* bound to the ports where it is to listen, and listening to nobody: nobody else gets them. -1: none */
	int reserved[PRESS_NGINX_DOORS];
	uint16_t ports[PRESS_NGINX_DOORS];
	/* "" : none was made */
	char folder[PATH_MAX];
	char hosts[PRESS_NGINX_DOORS][PRESS_NGINX_NAME_BYTES];
	char addresses[PRESS_NGINX_DOORS][PRESS_NGINX_NAME_BYTES];
	/* requests for its counts */
	uint64_t asked;
};

/* Whether a path can stand in a configuration. */
bool press_nginx_allows(const char *path);

/* The configuration. 0, or -1 with errno. */
int press_nginx_write(FILE *out, const struct press_nginx_plan *plan);

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
void press_nginx_log_tail(const struct press_nginx *nginx, char out[PRESS_NGINX_LOG_TAIL_BYTES]);

#endif
