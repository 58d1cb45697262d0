/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/ucx/ucx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uct/api/uct.h>

#include "wire/rdma_device.h"

/*
 * Rounds of progress that a closing context spends on what can still be sent. About 10 ms where all is
 * idle.
 */
#define DRAIN_ROUNDS 50000u

int cadge_ucx_code(ucs_status_t status)
{
	switch (status) {
	case UCS_OK: return CADGE_DONE;
	case UCS_ERR_NO_MEMORY: return CADGE_E_MEMORY;
	case UCS_ERR_NO_RESOURCE: return CADGE_BUSY;
	case UCS_ERR_INVALID_PARAM: return CADGE_E_ARGUMENT;
	case UCS_ERR_UNSUPPORTED:
	case UCS_ERR_NOT_IMPLEMENTED: return CADGE_E_UNSUPPORTED;
	case UCS_ERR_NO_DEVICE:
	case UCS_ERR_UNREACHABLE: return CADGE_E_TRANSPORT;
	case UCS_ERR_CANCELED:
	case UCS_ERR_NOT_CONNECTED:
	case UCS_ERR_CONNECTION_RESET:
	case UCS_ERR_ENDPOINT_TIMEOUT:
	case UCS_ERR_REJECTED:
	case UCS_ERR_TIMED_OUT:
	case UCS_ERR_IO_ERROR: return CADGE_E_DOWN;
	default: return CADGE_E_LIBRARY;
	}
}

int cadge_ucx_failed(struct cadge_ucx *ucx, const char *what, ucs_status_t status)
{
	snprintf(ucx->why, sizeof(ucx->why), "%s: %s", what, ucs_status_string(status));
	return cadge_ucx_code(status);
}

/* One transport of a list, as long as its name is. */
static const char *next_transport(const char *at, size_t *bytes_out)
{
	at += strspn(at, ",");
	*bytes_out = strcspn(at, ",");
	return *bytes_out ? at : NULL;
}

/* A transport of libibverbs, as UCX names them: rc_v, rc_verbs, ud, dc_x, ib. */
static bool is_verbs(const char *transport)
{
	static const char *const families[] = {"rc", "ud", "dc", "ib"};

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (strncmp(transport, families[i], 2) == 0)
			return true;
	return false;
}

static bool wants_verbs(const char *transports)
{
	size_t bytes;

	for (const char *at = transports; (at = next_transport(at, &bytes)); at += bytes)
		if (is_verbs(at))
			return true;
	return false;
}

/*
 * "rc_verbs" names reliable connections alone, and UCX makes these through datagrams; "rc_v" and "rc" name both. Without, open
 * succeeds and nothing ever comes up.
 */
static bool cannot_connect(const char *transports)
{
	bool connections = false;
	size_t bytes;

	for (const char *at = transports; (at = next_transport(at, &bytes)); at += bytes) {
		if (strncmp(at, "rc_verbs", bytes) == 0 && bytes == strlen("rc_verbs"))
			connections = true;
		else if (is_verbs(at))
			return false;
	}
	return connections;
}

/* What UCX calls the device of an interface: as the kernel does, or "rxe0:1" for verbs. DONE or a refusal of open. */
static int name_lane_device(const struct cadge_open_args *args, const char *transports, struct cadge_ucx *ucx)
{
	struct cadge_rdma_device device;

	ucx->verbs = wants_verbs(transports);
	snprintf(ucx->lane_device, sizeof(ucx->lane_device), "%s", args->device);
	if (!ucx->verbs)
		return CADGE_DONE;
	if (cannot_connect(transports))
		return cadge_refuse(args, CADGE_E_TRANSPORT,
				    "UCX's rc_verbs cannot connect by itself: rc_v is rc_verbs with what "
				    "makes connections");
	if (!cadge_rdma_device_of(args->device, &device))
		return cadge_refuse(
			args, CADGE_E_TRANSPORT,
			"the transports %s need an RDMA device, and the network interface %s has none",
			transports, args->device);
	snprintf(ucx->lane_device, sizeof(ucx->lane_device), "%s:%u", device.name, device.port);
	ucx->soft = device.soft;
	return CADGE_DONE;
}

/* Whether a part of this UCX speaks to libibverbs. Where UCX does not say what parts it has, it is taken to have that one. */
static bool offers_verbs(void)
{
	uct_component_h *components;
	unsigned int count;
	bool found = false;

	if (uct_query_components(&components, &count) != UCS_OK)
		return true;
	for (unsigned int i = 0; i < count && !found; i++) {
		uct_component_attr_t part = {.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME};

		found = uct_component_query(components[i], &part) != UCS_OK || strcmp(part.name, "ib") == 0;
	}
	uct_release_component_list(components);
	return found;
}

/*
 * Where the data network has an RDMA device, a UCX without verbs is no newer or older version of one that has them: that it
 * leaves the device alone has to be asked for. DONE or a refusal of open.
 */
static int check_verbs(const struct cadge_open_args *args)
{
	struct cadge_rdma_device device;

	if (args->place != CADGE_PLACE_NET || !cadge_rdma_device_of(args->device, &device) || offers_verbs())
		return CADGE_DONE;
	return cadge_refuse(
		args, CADGE_E_TRANSPORT,
		"UCX %s was built without verbs, and the network interface %s has the RDMA device %s: "
		"with the setting transports=tcp it is compared over TCP",
		ucp_get_version_string(), args->device, device.name);
}

/* Whether the library is older than 1.`minor`. */
static bool older_than(unsigned int minor)
{
	unsigned int major, own, release;

	ucp_get_version(&major, &own, &release);
	return major == 1 && own < minor;
}

/*
 * Before 1.19 UCX takes the header of a datagram over RoCE v2 and IPv4 for one of IPv6 unless the device is of Mellanox, and
 * drops each of them. An option that a transport reads has no name of the transport here; one that nothing reads is accepted.
 */
static ucs_status_t settle_datagrams(ucp_config_t *config)
{
	return older_than(19) ? ucp_config_modify(config, "UD_ETH_DGID_CHECK", "n") : UCS_OK;
}

/*
 * Soft RoCE takes UCX's seven retries for endless ones, so that a peer's death is never told; with six it is after some 7 s. Soft RoCE
 * of Linux 6.12 says more than once that a queue has had its last request, and UCX with assertions (1.18 of Debian 13; in the source
 * until 1.22) then ends the process. Without the device's events UCX takes such queues down when the interface closes, as it does
 * under Linux 6.1, which says nothing. What the user says stands.
 */
static ucs_status_t settle_soft(ucp_config_t *config)
{
	ucs_status_t status = UCS_OK;

	if (!getenv("UCX_RC_RETRY_COUNT") && !getenv("UCX_RC_VERBS_RETRY_COUNT"))
		status = ucp_config_modify(config, "RC_RETRY_COUNT", "6");
	/* from 1.18 on the name of a device's option begins as in the environment */
	if (status == UCS_OK && !getenv("UCX_IB_ASYNC_EVENTS"))
		status = ucp_config_modify(config, older_than(18) ? "ASYNC_EVENTS" : "IB_ASYNC_EVENTS", "n");
	return status;
}

/* A context on ucx->lane_device with these transports ("" = the library decides). Configuration files and UCX_* variables still
 * count. */
static ucs_status_t start_context(const struct cadge_ucx *ucx, const char *transports, uint64_t features,
				  ucp_context_h *context_out)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = features};
	ucp_config_t *config;
	ucs_status_t status = ucp_config_read(NULL, NULL, &config);

	if (status != UCS_OK)
		return status;
	status = ucp_config_modify(config, "NET_DEVICES", ucx->lane_device);
	if (status == UCS_OK && *transports)
		status = ucp_config_modify(config, "TLS", transports);
	if (status == UCS_OK && wants_verbs(transports))
		status = settle_datagrams(config);
	if (status == UCS_OK && ucx->soft)
		status = settle_soft(config);
	if (status == UCS_OK)
		status = ucp_init(&params, config, context_out);
	ucp_config_release(config);
	return status;
}

/*
 * UCX only warns when one of several transports asked for does not exist. Ask for each alone, so that a
 * campaign never takes "tcp,typo" for "tcp". Lists that exclude ("^tcp") have nothing that must be there.
 */
static int check_transports(const struct cadge_open_args *args, const struct cadge_ucx *ucx,
			    const char *transports, uint64_t features)
{
	char list[sizeof(((struct cadge_ucx *)0)->transports)], *rest = NULL;

	if (strlen(transports) >= sizeof(list))
		return cadge_refuse(args, CADGE_E_ARGUMENT, "the list of transports is longer than %zu bytes",
				    sizeof(list) - 1);
	if (*transports == '^')
		return CADGE_DONE;
	memcpy(list, transports, strlen(transports) + 1);
	for (char *name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
		ucp_context_h context;
		ucs_status_t status = start_context(ucx, name, features, &context);

		if (status != UCS_OK)
			return cadge_refuse(args, CADGE_E_TRANSPORT,
					    "UCX has no transport '%s' that works on device %s here (%s)",
					    name, args->device, ucs_status_string(status));
		ucp_cleanup(context);
	}
	return CADGE_DONE;
}

static int open_worker(const struct cadge_open_args *args, struct cadge_ucx *ucx)
{
	ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
				      .thread_mode = UCS_THREAD_MODE_SINGLE};
	ucs_status_t status = ucp_worker_create(ucx->context, &params, &ucx->worker);

	if (status != UCS_OK) {
		ucx->worker = NULL;
		return cadge_refuse(args, status == UCS_ERR_NO_MEMORY ? CADGE_E_MEMORY : CADGE_E_LIBRARY,
				    "ucp_worker_create: %s", ucs_status_string(status));
	}
	status = ucp_worker_get_address(ucx->worker, &ucx->address, &ucx->address_bytes);
	if (status != UCS_OK) {
		ucx->address = NULL;
		return cadge_refuse(args, CADGE_E_LIBRARY, "ucp_worker_get_address: %s",
				    ucs_status_string(status));
	}
	if (args->wait_mode != CADGE_WAIT_BLOCK)
		return CADGE_DONE;
	status = ucp_worker_get_efd(ucx->worker, &ucx->wake_fd);
	if (status != UCS_OK) {
		ucx->wake_fd = -1;
		return cadge_refuse(args, CADGE_E_UNSUPPORTED,
				    "these transports cannot wake a sleeping process: %s",
				    ucs_status_string(status));
	}
	return CADGE_DONE;
}

int cadge_ucx_open(const struct cadge_open_args *args, uint64_t features, struct cadge_ucx *ucx)
{
	const char *transports = cadge_setting_of(args, "transports", "");
	ucs_status_t status;
	int code;

	memset(ucx, 0, sizeof(*ucx));
	code = cadge_device_check(args);
	if (code < 0)
		return code;
	if (args->wait_mode == CADGE_WAIT_BLOCK)
		features |= UCP_FEATURE_WAKEUP;
	code = *transports ? CADGE_DONE : check_verbs(args);
	if (code == CADGE_DONE)
		code = name_lane_device(args, transports, ucx);
	if (code == CADGE_DONE)
		code = check_transports(args, ucx, transports, features);
	if (code != CADGE_DONE)
		return code;
	status = start_context(ucx, transports, features, &ucx->context);
	if (status != UCS_OK) {
		ucx->context = NULL;
		return cadge_refuse(args, status == UCS_ERR_NO_DEVICE ? CADGE_E_TRANSPORT : CADGE_E_LIBRARY,
				    "ucp_init on device %s: %s", args->device, ucs_status_string(status));
	}
	ucx->place = args->place;
	ucx->wake_fd = -1;
	ucx->transports_given = *transports != '\0';
	snprintf(ucx->device, sizeof(ucx->device), "%s", args->device);
	snprintf(ucx->transports, sizeof(ucx->transports), "%s", transports);
	code = open_worker(args, ucx);
	if (code != CADGE_DONE)
		cadge_ucx_close(ucx);
	return code;
}

/*
 * UCX keeps the buffers of unfinished rendezvous and zero-copy operations registered, offers no way to take
 * such an operation back on an endpoint without error handling, and from 1.14 on ends the process if a
 * context is cleaned up with a buffer still registered. Such a context stays until the process ends; its
 * worker, and with it all traffic, goes.
 */
static void leave_context(ucp_context_h context)
{
	static struct left {
		struct left *next;
		ucp_context_h context;
	} *all;
	struct left *left = malloc(sizeof(*left));

	if (!left)
		return;
	*left = (struct left){.next = all, .context = context};
	all = left; /* so that it is no leak: it can still be reached */
}

/*
 * Over verbs a close that goes on holds nothing of anybody's: it waits for an acknowledgement of UCX's own, which never comes where the
 * peer has closed first. Such a context left behind would keep four descriptors and the device's queues.
 */
static bool must_stay(const struct cadge_ucx *ucx)
{
	return ucx->unfinished || (ucx->closing_count && !ucx->verbs);
}

void cadge_ucx_close(struct cadge_ucx *ucx)
{
	const bool stays = must_stay(ucx);

	for (unsigned int i = 0; i < ucx->closing_count; i++)
		ucp_request_free(ucx->closing[i]);
	if (ucx->address)
		ucp_worker_release_address(ucx->worker, ucx->address);
	if (ucx->worker)
		ucp_worker_destroy(ucx->worker);
	if (ucx->context && stays)
		leave_context(ucx->context);
	else if (ucx->context)
		ucp_cleanup(ucx->context);
	memset(ucx, 0, sizeof(*ucx));
}

int cadge_ucx_connect(struct cadge_ucx *ucx, const void *address, ucp_err_handler_cb_t on_error, void *arg,
		      ucp_ep_h *ep_out)
{
	ucp_ep_params_t params = {
		.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
			      UCP_EP_PARAM_FIELD_ERR_HANDLER,
		.address = address,
		.err_mode = UCP_ERR_HANDLING_MODE_NONE,
		.err_handler = {.cb = on_error, .arg = arg},
	};

	return cadge_ucx_code(ucp_ep_create(ucx->worker, &params, ep_out));
}

void cadge_ucx_disconnect(struct cadge_ucx *ucx, ucp_ep_h ep)
{
	const ucp_request_param_t param = {.op_attr_mask = 0};
	void *request = ucp_ep_close_nbx(ep, &param);

	if (!UCS_PTR_IS_PTR(request))
		return;
	cadge_ucx_reap(ucx);
	if (ucx->closing_count < CADGE_UCX_CLOSING_MAX)
		ucx->closing[ucx->closing_count++] = request;
	else
		ucp_request_free(request); /* it goes on by itself; we only stop watching */
}

void cadge_ucx_reap(struct cadge_ucx *ucx)
{
	unsigned int remaining = 0;

	for (unsigned int i = 0; i < ucx->closing_count; i++) {
		if (ucp_request_check_status(ucx->closing[i]) == UCS_INPROGRESS)
			ucx->closing[remaining++] = ucx->closing[i];
		else
			ucp_request_free(ucx->closing[i]);
	}
	ucx->closing_count = remaining;
}

void cadge_ucx_drain(struct cadge_ucx *ucx)
{
	for (unsigned int round = 0; round < DRAIN_ROUNDS && ucx->closing_count; round++) {
		ucp_worker_progress(ucx->worker);
		cadge_ucx_reap(ucx);
	}
}

static int set_handler(struct cadge_ucx *ucx, unsigned int id, ucp_am_recv_callback_t handler, void *arg,
		       uint32_t flags)
{
	const ucp_am_handler_param_t param = {
		.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
			      UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
		.id = id,
		.flags = UCP_AM_FLAG_WHOLE_MSG | flags,
		.cb = handler,
		.arg = arg,
	};

	return cadge_ucx_code(ucp_worker_set_am_recv_handler(ucx->worker, &param));
}

/* What arrives for a channel that has ended. */
static ucs_status_t on_stale(void *arg, const void *header, size_t header_bytes, void *data, size_t bytes,
			     const ucp_am_recv_param_t *param)
{
	(void)arg, (void)header, (void)header_bytes, (void)data, (void)bytes, (void)param;
	return UCS_OK;
}

int cadge_ucx_take_id(struct cadge_ucx *ucx, ucp_am_recv_callback_t handler, void *arg, uint32_t flags,
		      unsigned int *id_out)
{
	unsigned int id = ucx->id_next;
	int code;

	while (ucx->id_live[id]) /* callers hold at most a quarter */
		id = (id + 1) % CADGE_UCX_IDS;
	code = set_handler(ucx, id, handler, arg, flags);
	if (code != CADGE_DONE)
		return code;
	ucx->id_live[id] = true;
	ucx->id_next = (id + 1) % CADGE_UCX_IDS;
	*id_out = id;
	return CADGE_DONE;
}

int cadge_ucx_give_id(struct cadge_ucx *ucx, unsigned int id)
{
	ucx->id_live[id] = false;
	return set_handler(ucx, id, on_stale, NULL, 0);
}

/*
 * A completion queue of verbs reports what comes after it was armed. What came just before notifies nobody where a device does not
 * look back (soft RoCE), and UCX does not look either: sleep is short there.
 */
#define VERBS_SLEEP_NS UINT64_C(50000000)

static uint64_t longest_sleep(const struct cadge_ucx *ucx)
{
	return ucx->verbs ? VERBS_SLEEP_NS : UINT64_MAX;
}

int cadge_ucx_wait(struct cadge_ucx *ucx, uint64_t timeout_ns)
{
	struct pollfd wake = {.fd = ucx->wake_fd, .events = POLLIN};
	ucs_status_t status = ucp_worker_arm(ucx->worker);

	if (status == UCS_ERR_BUSY)
		return CADGE_DONE;
	if (status != UCS_OK)
		return CADGE_E_LIBRARY;
	return cadge_sleep(&wake, 1, cadge_least(timeout_ns, longest_sleep(ucx)));
}

int cadge_ucx_event(struct cadge_ucx *ucx, int *fd_out, uint64_t *due_ns_out)
{
	ucs_status_t status;

	if (ucx->wake_fd < 0)
		return CADGE_E_UNSUPPORTED;
	status = ucp_worker_arm(ucx->worker);
	if (status == UCS_ERR_BUSY)
		return CADGE_BUSY;
	if (status != UCS_OK) {
		cadge_ucx_failed(ucx, "ucp_worker_arm", status);
		return CADGE_E_LIBRARY;
	}
	*fd_out = ucx->wake_fd;
	*due_ns_out = longest_sleep(ucx);
	return CADGE_DONE;
}

void cadge_wire_library(struct cadge_library *library_out)
{
	const struct cadge_library library = {
		.name = "UCX",
		.stated_version = ucp_get_version_string(),
		.symbol = (const void *)(uintptr_t)&ucp_worker_progress,
	};

	cadge_fill(library_out, &library, sizeof(library));
}
