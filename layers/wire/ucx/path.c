/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What UCX says of an endpoint by ucp_ep_print_info, the only call that tells: its lanes, and where an active
 * message changes its protocol. Up to 1.15 the latter is one line,
 *   #                 am_send: 0..<egr/short>..93..<egr/bcopy>..8256..<rndv>..(inf)
 * later a table for each kind of send that was used,
 *   # | self cfg#1 | active message by ucp_am_send* from host memory |
 *   # +------------+------------------------+------------------------+
 *   # |      0..92 | short                  | sysv/memory            |
 *   # |  8257..inf | rendezvous zero-copy.. | cma/memory             |
 */
#include "wire/ucx/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_OF_SENDS "active message by ucp_am_send* from"

static void append(char *text, size_t text_bytes, const char *between, const char *more)
{
	const size_t used = strlen(text);

	snprintf(text + used, text_bytes - used, "%s%s", used ? between : "", more);
}

/*
 * One line of a lane, e.g.
 *   #                 lane[1]:  4:cma/memory.0 md[4]     -> md[4]/cma/sysdev[255] rma_bw#0
 * is "transport/device.path" and, after the second transport, what the lane is for.
 */
static void read_lane(struct cadge_ucx_path *path, const char *asked, const char *line)
{
	char transport[32], device[64], uses[128], lane[256];
	const char *at = strstr(line, "lane["), *tail;
	int end = 0;

	if (!at || sscanf(at, "lane[%*d]: %*d:%31[^/]/%63[^ ]%n", transport, device, &end) != 2)
		return;
	tail = strstr(at + end, "-> ");
	tail = tail ? strchr(tail + 3, ' ') : NULL;
	snprintf(uses, sizeof(uses), "%s", tail ? tail + 1 : "?");
	if (strrchr(device, '.'))
		*strrchr(device, '.') = '\0';
	snprintf(lane, sizeof(lane), "%s: %s/%s", uses, transport, device);
	append(path->lanes, sizeof(path->lanes), "; ", lane);
	path->other |= strcmp(transport, "tcp") != 0;
	path->atomics |= strstr(uses, "amo") != NULL;
	if (!strcmp(device, "memory")) {
		path->memory = true;
		return;
	}
	path->network = true;
	if (strcmp(device, asked) != 0)
		path->foreign = true;
	if (!*path->device)
		snprintf(path->device, sizeof(path->device), "%s", device);
}

/* "8256" or "64K", as UCX writes lengths; 0 where it is none. */
static uint64_t read_length(const char *text)
{
	char *end;
	uint64_t bytes = strtoull(text, &end, 10);

	switch (*end) {
	case 'K': return bytes << 10;
	case 'M': return bytes << 20;
	case 'G': return bytes << 30;
	default: return bytes;
	}
}

/* Where the rendezvous begins decides how much an eager message holds. */
static void read_send_line(struct cadge_ucx_path *path, const char *line)
{
	const char *sends = strstr(line, "am_send: "), *at;

	if (!sends || *path->sends)
		return;
	append(path->sends, sizeof(path->sends), "", sends);
	at = strstr(sends, "..<rndv>");
	if (!at)
		return;
	while (at > sends && at[-1] >= '0' && at[-1] <= '9')
		at--;
	path->rendezvous_bytes = read_length(at);
	path->all_rendezvous = !path->rendezvous_bytes;
}

/* A row of the table: "| 93..8256 | copy-in | posix/memory |". */
static void read_send_row(struct cadge_ucx_path *path, const char *line)
{
	char range[32], words[96], row[140];

	if (sscanf(line, "%*[#| ]%31[^ |]%*[ |]%95[^|]", range, words) != 2)
		return;
	for (size_t end = strlen(words); end && words[end - 1] == ' '; end--)
		words[end - 1] = '\0';
	snprintf(row, sizeof(row), "%s <%s>", range, words);
	append(path->sends, sizeof(path->sends), *path->sends && strcmp(path->sends, "am_send:") ? ", " : " ",
	       row);
	if (strstr(words, "rendezvous") && !path->rendezvous_bytes && !path->all_rendezvous) {
		path->rendezvous_bytes = read_length(range);
		path->all_rendezvous = !path->rendezvous_bytes;
	}
}

void cadge_ucx_path_read(char *text, const char *asked, struct cadge_ucx_path *path)
{
	enum { ELSEWHERE, HEADER, ROWS } at = ELSEWHERE;
	char *rest = NULL;
	bool tables = false;

	memset(path, 0, sizeof(*path));
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		read_lane(path, asked, line);
		read_send_line(path, line);
		if (at == ELSEWHERE && !*path->sends && strstr(line, TABLE_OF_SENDS)) {
			append(path->sends, sizeof(path->sends), "", "am_send:");
			at = HEADER;
			tables = true;
		} else if (at == HEADER) {
			at = ROWS; /* the line between the title and the rows */
		} else if (at == ROWS && strchr(line, '|')) {
			read_send_row(path, line);
		} else {
			at = ELSEWHERE;
		}
	}
	path->copies_between = tables && strstr(path->lanes, ": cma/memory");
}

int cadge_ucx_path_of(ucp_ep_h ep, const char *asked, struct cadge_ucx_path *path)
{
	char *text = NULL;
	size_t text_bytes = 0;
	FILE *stream = open_memstream(&text, &text_bytes);

	memset(path, 0, sizeof(*path));
	if (!stream)
		return CADGE_E_MEMORY;
	ucp_ep_print_info(ep, stream);
	if (fclose(stream)) {
		free(text);
		return CADGE_E_MEMORY;
	}
	cadge_ucx_path_read(text, asked, path);
	free(text);
	return CADGE_DONE;
}

int cadge_ucx_describe(struct cadge_ucx *ucx, ucp_ep_h ep, struct cadge_path *path_out)
{
	const bool loopback = !strcmp(ucx->device, "lo");
	struct cadge_path path = {0};
	struct cadge_ucx_path found;
	int code = cadge_ucx_path_of(ep, ucx->lane_device, &found);

	if (code != CADGE_DONE)
		return code;
	path.medium = found.network  ? (loopback ? CADGE_MEDIUM_LOOPBACK : CADGE_MEDIUM_NETWORK)
		      : found.memory ? CADGE_MEDIUM_MEMORY
				     : CADGE_MEDIUM_UNKNOWN;
	/*
	 * Between hosts every lane has to be on the device that was asked for. Within one host it is shared
	 * memory unless the setting "transports" said otherwise; both at a time would be two paths in one
	 * figure.
	 */
	if (ucx->place == CADGE_PLACE_NET)
		path.as_asked = found.network && !found.memory && !found.foreign;
	else
		path.as_asked = !found.foreign && found.network != found.memory &&
				(found.memory || ucx->transports_given);
	snprintf(path.asked, sizeof(path.asked), "%s%s%s%s",
		 ucx->place == CADGE_PLACE_NET ? "device " : "one host, device ", ucx->device,
		 ucx->transports_given ? ", transports " : "", ucx->transports);
	snprintf(path.used, sizeof(path.used), "%s", *found.lanes ? found.lanes : "no lanes yet");
	append(path.used, sizeof(path.used), "; ", found.sends);
	/* the interface, also where UCX names what is behind it */
	snprintf(path.device, sizeof(path.device), "%s",
		 strcmp(found.device, ucx->lane_device) == 0 ? ucx->device : found.device);
	cadge_fill(path_out, &path, sizeof(path));
	return CADGE_DONE;
}
