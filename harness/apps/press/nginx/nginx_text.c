/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration of nginx. */
#include <inttypes.h>
#include <string.h>

#include "press/nginx/nginx_parts.h"

bool press_nginx_allows(const char *path)
{
	for (; *path; path++)
		if ((unsigned char)*path < ' ' || strchr("\"'\\$;{}", *path))
			return false;
	return true;
}

/*
 * As one who knows nginx would have it: whatever is read again stays open, connections between nodes are kept and never
 * counted out, nothing is logged, and an answer of another node stays in memory. Which node has a file is the upstream's
 * `hash $uri consistent`; a node has its share as files, and asks no other for those, nor itself through the network.
 */
int press_nginx_write(FILE *out, const struct press_nginx_plan *plan)
{
	fprintf(out,
		"daemon off;\n"
		"master_process off; # one process, which is told to end with the one that started it\n"
		"pid \"%s/pid\";\n"
		"error_log \"%s/error.log\" error;\n"
		"events {\n"
		"	worker_connections %" PRIu32 ";\n"
		"}\n"
		"http {\n"
		"	default_type application/octet-stream;\n"
		"	access_log off;\n"
		"	sendfile on;\n"
		"	tcp_nopush on;\n"
		"	tcp_nodelay on;\n"
		"	keepalive_timeout 1h;\n"
		"	keepalive_requests 1000000000;\n"
		"	open_file_cache max=%" PRIu32 " inactive=1h;\n"
		"	open_file_cache_valid 1h;\n"
		"	open_file_cache_errors on;\n",
		plan->folder, plan->folder, plan->sockets, plan->files);
	for (const char *const *what =
		     (const char *const[]){"client_body", "proxy", "fastcgi", "uwsgi", "scgi", NULL};
	     *what; what++)
		fprintf(out, "	%s_temp_path \"%s/%s\";\n", *what, plan->folder, *what);
	fprintf(out, "	upstream owners {\n"
		     "		hash $uri consistent;\n");
	for (uint32_t i = 0; i < plan->nodes; i++)
		fprintf(out, "		server %s max_fails=0;\n", plan->owners[i]);
	fprintf(out,
		"		keepalive %" PRIu32 ";\n"
		"		keepalive_requests 1000000000;\n"
		"		keepalive_timeout 1h;\n"
		"	}\n"
		"	server {\n"
		"		listen %s:%u reuseport;\n"
		"		location /f/ {\n"
		"			root \"%s\";\n"
		"			try_files $uri @owner;\n"
		"		}\n"
		"		location @owner {\n"
		"			proxy_pass http://owners;\n"
		"			proxy_http_version 1.1;\n"
		"			proxy_set_header Connection \"\";\n"
		"			proxy_next_upstream off;\n"
		"			proxy_buffer_size 16k;\n"
		"			proxy_buffers 16 16k;\n"
		"			proxy_busy_buffers_size 64k;\n"
		"			proxy_max_temp_file_size 0;\n"
		"		}\n"
		"		location / {\n"
		"			return 404;\n"
		"		}\n"
		"	}\n"
		"	server {\n"
		"		listen %s:%u reuseport;\n"
		"		location /f/ {\n"
		"			root \"%s\";\n"
		"		}\n"
		"		location = /status {\n"
		"			stub_status;\n"
		"		}\n"
		"		location / {\n"
		"			return 404;\n"
		"		}\n"
		"	}\n"
		"}\n",
		plan->nodes * plan->connections, plan->hosts[PRESS_NGINX_FRONT],
		plan->ports[PRESS_NGINX_FRONT], plan->folder, plan->hosts[PRESS_NGINX_BACK],
		plan->ports[PRESS_NGINX_BACK], plan->folder);
	return ferror(out) ? -1 : 0;
}
