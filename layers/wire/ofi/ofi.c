/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/ofi/ofi.h"

#include <malloc.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire/ofi/params.h"
#include "wire/rdma_device.h"

#define OFI_SHM     "shm"
#define OFI_VERBS   "verbs"
#define OFI_NETWORK "tcp;ofi_rxm"

#define SETTLE_ROUNDS 30 /* of a millisecond */
#define SETTLE_READS  64

const struct cadge_option cadge_ofi_options[] = {
	CADGE_OFI_OPTION_PROVIDER,
	{NULL, NULL, NULL},
};

int cadge_ofi_code(long error)
{
	switch (error < 0 ? -error : error) {
	case FI_ENOMEM:
	case FI_ENOSPC: return CADGE_E_MEMORY;
	case FI_EACCES:
	case FI_EPERM: return CADGE_E_PERMISSION;
	case FI_EADDRINUSE: return CADGE_E_PORT;
	case FI_ENODATA:
	case FI_ENODEV:
	case FI_EADDRNOTAVAIL: return CADGE_E_TRANSPORT;
	case FI_EMSGSIZE:
	case FI_ETOOSMALL: return CADGE_E_TOO_LARGE;
	default: return CADGE_E_LIBRARY;
	}
}

static int ofi_failed(const struct cadge_open_args *args, const char *call, long error)
{
	snprintf(args->error, args->error_bytes, "%s: %s", call,
		 fi_strerror((int)(error < 0 ? -error : error)));
	return cadge_ofi_code(error);
}

/* What the loaded library says of itself, e.g. "1.17.0". In a buffer of libfabric that its next fi_tostr
 * overwrites. */
static const char *ofi_version(void)
{
	uint32_t version = fi_version();

	return fi_tostr(&version, FI_TYPE_VERSION);
}

/* The names of all providers that this libfabric has, each once, as "a, b, c". */
static void ofi_providers(char *list, size_t list_bytes)
{
	struct fi_info *infos = NULL, *one;
	size_t used_bytes = 0;

	list[0] = '\0';
	if (fi_getinfo(CADGE_OFI_VERSION, NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &infos))
		return;
	for (one = infos; one; one = one->next) {
		const char *name = one->fabric_attr->prov_name;
		int wrote;

		if (strncmp(name, "ofi_hook", 8) == 0)
			continue;
		wrote = snprintf(list + used_bytes, list_bytes - used_bytes, "%s%s", used_bytes ? ", " : "",
				 name);
		if (wrote < 0 || (size_t)wrote >= list_bytes - used_bytes)
			break;
		used_bytes += (size_t)wrote;
	}
	fi_freeinfo(infos);
}

/*
 * The value of FI_PROVIDER where it leaves out the provider that is asked for, else NULL. It holds names, or after a ^ those
 * that are not wanted (fi_getinfo(3) of libfabric); of layered providers the lowest one counts.
 */
static const char *ofi_left_out_by(const char *asked)
{
	const char *chosen = getenv("FI_PROVIDER");
	char lowest[sizeof(((struct cadge_ofi *)NULL)->asked)];

	if (!chosen || !chosen[0])
		return NULL;
	snprintf(lowest, sizeof(lowest), "%.*s", (int)strcspn(asked, ";"), asked);
	return (strstr(chosen, lowest) != NULL) == (chosen[0] == '^') ? chosen : NULL;
}

/* Why no fi_info came back, as the code and sentence of open. */
static int ofi_none(const struct cadge_ofi *ofi, const struct cadge_open_args *args, int error)
{
	const char *chosen = ofi_left_out_by(ofi->asked);
	char list[256];

	if (chosen) { /* libfabric lists what it has, also where it may not use it */
		snprintf(args->error, args->error_bytes,
			 "FI_PROVIDER=%s leaves out the provider %s, which the layer asks for (%s)", chosen,
			 ofi->asked, fi_strerror(-error));
		return CADGE_E_TRANSPORT;
	}
	ofi_providers(list, sizeof(list));
	if (strcmp(ofi->asked, OFI_SHM) == 0 && strstr(list, OFI_SHM)) {
		snprintf(args->error, args->error_bytes,
			 "libfabric has the provider shm but cannot use it here: %s; it needs some free MiB "
			 "in /dev/shm",
			 fi_strerror(-error));
		return CADGE_E_MEMORY;
	}
	snprintf(args->error, args->error_bytes,
		 "libfabric %s has no provider %s for device %s and address %s (%s); it knows: %s",
		 ofi_version(), ofi->asked, args->device, args->address, fi_strerror(-error), list);
	return CADGE_E_TRANSPORT;
}

/*
 * ofi_rxm over verbs wants one completion queue of 4096 + 128 entries for each process that there may be. Of these it takes 256 to
 * be usual, which makes more entries than soft RoCE has (32,767). libfabric reads the variable once a process, and the user's
 * own value stands.
 */
#define UNIVERSE_LEAST 64u
#define UNIVERSE_MOST  223u

static int ofi_settle_verbs(struct cadge_ofi *ofi, const struct cadge_open_args *args)
{
	struct cadge_rdma_device device;
	char universe[16];

	if (!cadge_rdma_device_of(args->device, &device))
		return cadge_refuse(
			args, CADGE_E_TRANSPORT,
			"the provider %s needs an RDMA device, and the network interface %s has none",
			ofi->asked, args->device);
	snprintf(ofi->rdma_device, sizeof(ofi->rdma_device), "%s", device.name);
	snprintf(universe, sizeof(universe), "%u",
		 args->peers_max < UNIVERSE_LEAST  ? UNIVERSE_LEAST
		 : args->peers_max < UNIVERSE_MOST ? args->peers_max + 1
						   : UNIVERSE_MOST);
	if (setenv("FI_UNIVERSE_SIZE", universe, 0))
		return cadge_refuse(args, CADGE_E_MEMORY, "FI_UNIVERSE_SIZE cannot be set");
	return CADGE_DONE;
}

static int ofi_settings(struct cadge_ofi *ofi, const struct cadge_open_args *args, const char *otherwise)
{
	const char *provider = cadge_setting_of(args, "provider", otherwise ? otherwise : "");

	if (!provider[0])
		provider = args->place == CADGE_PLACE_HOST ? OFI_SHM : OFI_NETWORK;
	snprintf(ofi->asked, sizeof(ofi->asked), "%s", provider);
	snprintf(ofi->device, sizeof(ofi->device), "%s", args->device);
	ofi->place = args->place;
	ofi->wait_mode = args->wait_mode;
	ofi->network = strncmp(provider, OFI_SHM, strlen(OFI_SHM)) != 0;
	if (args->place != CADGE_PLACE_HOST && !ofi->network) {
		snprintf(args->error, args->error_bytes, "provider %s serves one host only", provider);
		return CADGE_E_UNSUPPORTED;
	}
	/*
	 * libfabric's providers psm and psm2 would take over SIGSEGV and write files where a process
	 * crashes.
	 */
	if (setenv("IPATH_NO_BACKTRACE", "1", 0) || setenv("HFI_NO_BACKTRACE", "1", 0)) {
		snprintf(args->error, args->error_bytes, "the environment cannot be extended");
		return CADGE_E_MEMORY;
	}
	/* Read by the provider when it lists interfaces; the binding itself is the source address below. */
	if (ofi->network && setenv("FI_TCP_IFACE", args->device, 1)) {
		snprintf(args->error, args->error_bytes, "FI_TCP_IFACE cannot be set");
		return CADGE_E_MEMORY;
	}
	ofi->verbs = strncmp(provider, OFI_VERBS, strlen(OFI_VERBS)) == 0;
	return ofi->verbs ? ofi_settle_verbs(ofi, args) : CADGE_DONE;
}

static int ofi_getinfo(const struct cadge_ofi *ofi, const struct cadge_open_args *args,
		       const struct cadge_ofi_needs *needs, uint64_t caps, struct fi_info **info_out)
{
	struct fi_info *hints = fi_allocinfo();
	int ret;

	if (!hints)
		return -FI_ENOMEM;
	hints->caps = caps;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = needs->datagrams ? FI_EP_DGRAM : FI_EP_RDM;
	hints->domain_attr->mr_mode = needs->mr_mode;
	hints->domain_attr->resource_mgmt = needs->datagrams ? FI_RM_UNSPEC : FI_RM_ENABLED;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->cq_data_size = needs->datagrams ? 0 : sizeof(uint32_t);
	hints->tx_attr->msg_order = needs->msg_order;
	hints->rx_attr->msg_order = needs->msg_order;
	hints->tx_attr->op_flags = needs->datagrams ? 0 : FI_COMPLETION; /* udp has no such flag */
	hints->fabric_attr->prov_name = strdup(ofi->asked);
	if (!hints->fabric_attr->prov_name) {
		fi_freeinfo(hints);
		return -FI_ENOMEM;
	}
	if (ofi->network)
		ret = fi_getinfo(CADGE_OFI_VERSION, args->address, NULL, FI_SOURCE, hints, info_out);
	else
		ret = fi_getinfo(CADGE_OFI_VERSION, NULL, NULL, 0, hints, info_out);
	fi_freeinfo(hints);
	return ret;
}

static void ofi_close_fid(struct fid *fid, const char *what)
{
	int ret = fi_close(fid);

	/* Never in a measured path; a provider that cannot close leaks, and conformance counts leaks. */
	if (ret)
		fprintf(stderr, "cadge: libfabric could not close the %s: %s\n", what, fi_strerror(-ret));
}

/*
 * Takes in what ended receives and messages on their way still tell, before ofi_rxm closes its endpoint over verbs. Up to libfabric 2.6
 * that frees the endpoint below first, then handles the messages that had arrived there, and posts their buffers to what it freed
 * (rxm_close_conn in prov/rxm/src/rxm_conn.c). Each read takes up to 32 entries of the queue below, and says nothing where those are
 * messages that nobody has posted a receive for: what still comes is found by looking again, for some milliseconds.
 */
static void ofi_settle(const struct cadge_ofi *ofi)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry error = {0};

	for (unsigned int round = 0; round < SETTLE_ROUNDS; round++) {
		nanosleep(&pause, NULL);
		for (unsigned int empty = 0; empty < SETTLE_READS;) {
			ssize_t count = fi_cq_read(ofi->cq, &entry, 1);

			if (count == -FI_EAVAIL)
				count = fi_cq_readerr(ofi->cq, &error, 0);
			empty = count > 0 ? 0 : empty + 1;
		}
	}
}

void cadge_ofi_close_endpoint(struct cadge_ofi *ofi)
{
	if (ofi->ep && ofi->cq && ofi->verbs)
		ofi_settle(ofi);
	if (ofi->ep)
		ofi_close_fid(&ofi->ep->fid, "endpoint");
	ofi->ep = NULL;
}

static void ofi_close_objects(struct cadge_ofi *ofi)
{
	cadge_ofi_close_endpoint(ofi);
	if (ofi->cq)
		ofi_close_fid(&ofi->cq->fid, "completion queue");
	if (ofi->av)
		ofi_close_fid(&ofi->av->fid, "address table");
	if (ofi->domain)
		ofi_close_fid(&ofi->domain->fid, "domain");
	if (ofi->fabric)
		ofi_close_fid(&ofi->fabric->fid, "fabric");
	ofi->cq = NULL;
	ofi->av = NULL;
	ofi->domain = NULL;
	ofi->fabric = NULL;
}

void cadge_ofi_close(struct cadge_ofi *ofi)
{
	ofi_close_objects(ofi);
	if (ofi->info)
		fi_freeinfo(ofi->info);
	free(ofi->known);
	ofi->info = NULL;
	ofi->known = NULL;
	/* ofi_rxm takes some 80 MiB from the heap for each endpoint, which one small block above them would
	 * pin. */
	malloc_trim(0);
}

/* Everything below one fi_info. Returns 0 or the negative libfabric error, with the name of the call that
 * failed. */
static int ofi_build(struct cadge_ofi *ofi, const struct cadge_open_args *args,
		     const struct cadge_ofi_needs *needs, const char **call_out)
{
	struct fi_av_attr av_attr = {.type = FI_AV_UNSPEC, .count = args->peers_max};
	struct fi_cq_attr cq_attr = {
		.format = FI_CQ_FORMAT_DATA, .size = needs->completions, .wait_obj = FI_WAIT_NONE};
	int ret;

	ofi->wait_fd = -1;
	if (args->wait_mode == CADGE_WAIT_BLOCK)
		cq_attr.wait_obj = FI_WAIT_FD;
	*call_out = "fi_fabric";
	ret = fi_fabric(ofi->info->fabric_attr, &ofi->fabric, NULL);
	if (ret)
		return ret;
	*call_out = "fi_domain";
	ret = fi_domain(ofi->fabric, ofi->info, &ofi->domain, NULL);
	if (ret)
		return ret;
	*call_out = "fi_av_open";
	ret = fi_av_open(ofi->domain, &av_attr, &ofi->av, NULL);
	if (ret)
		return ret;
	*call_out = "fi_cq_open";
	ret = fi_cq_open(ofi->domain, &cq_attr, &ofi->cq, NULL);
	if (ret)
		return ret;
	*call_out = "fi_endpoint";
	ret = fi_endpoint(ofi->domain, ofi->info, &ofi->ep, NULL);
	if (ret)
		return ret;
	*call_out = "fi_ep_bind";
	ret = fi_ep_bind(ofi->ep, &ofi->av->fid, 0);
	if (!ret)
		ret = fi_ep_bind(ofi->ep, &ofi->cq->fid, FI_RECV);
	if (!ret)
		ret = fi_ep_bind(ofi->ep, &ofi->cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION);
	if (ret)
		return ret;
	*call_out = "fi_enable";
	ret = fi_enable(ofi->ep);
	if (ret || args->wait_mode != CADGE_WAIT_BLOCK)
		return ret;
	*call_out = "FI_GETWAIT";
	return fi_control(&ofi->cq->fid, FI_GETWAIT, &ofi->wait_fd);
}

/* One try. On failure everything is closed again except the fi_info. */
static int ofi_try(struct cadge_ofi *ofi, const struct cadge_open_args *args,
		   const struct cadge_ofi_needs *needs)
{
	const char *call;
	int ret = ofi_build(ofi, args, needs, &call);

	if (!ret)
		return CADGE_DONE;
	ofi_close_objects(ofi);
	if (args->wait_mode == CADGE_WAIT_BLOCK && strcmp(call, "fi_cq_open") == 0) {
		snprintf(args->error, args->error_bytes,
			 "libfabric's provider %s has no descriptor to sleep on (FI_WAIT_FD): %s",
			 ofi->info->fabric_attr->prov_name, fi_strerror(-ret));
		return CADGE_E_UNSUPPORTED;
	}
	if (ofi->verbs && ret == -FI_EINVAL && strcmp(call, "fi_enable") == 0)
		return cadge_refuse(
			args, CADGE_E_LIBRARY,
			"fi_enable: %s; the device may have no completion queue as long as ofi_rxm wants: "
			"4096 + 128 x FI_UNIVERSE_SIZE, here %s",
			fi_strerror(-ret), getenv("FI_UNIVERSE_SIZE"));
	return ofi_failed(args, call, ret);
}

struct ofi_trial {
	struct cadge_ofi *ofi;
	const struct cadge_open_args *args;
	const struct cadge_ofi_needs *needs;
};

static bool is_internet(const struct fi_info *info)
{
	return info->src_addr &&
	       (info->addr_format == FI_SOCKADDR_IN || info->addr_format == FI_SOCKADDR_IN6);
}

static int ofi_try_port(void *arg, uint16_t port)
{
	const struct ofi_trial *trial = arg;

	cadge_set_port(trial->ofi->info->src_addr, port);
	return ofi_try(trial->ofi, trial->args, trial->needs);
}

/* At a port of the range, or any port if there is no range or the address has none. */
static int ofi_try_ports(struct cadge_ofi *ofi, const struct cadge_open_args *args,
			 const struct cadge_ofi_needs *needs)
{
	struct ofi_trial trial = {ofi, args, needs};
	int code;

	if (!ofi->network || !args->port_first || !is_internet(ofi->info))
		return ofi_try(ofi, args, needs);
	code = cadge_try_ports(args->port_first, args->port_last, ofi_try_port, &trial);
	return code == CADGE_E_PORT ? cadge_refuse_ports(args) : code;
}

/* ---- names and the address table ---- */

/* Removed ones that shm's table holds, beside those in use. */
#define KNOWN_SPARE 4u

struct cadge_ofi_known {
	unsigned char name[CADGE_OFI_NAME_BYTES];
	size_t name_bytes; /* with the number of the opening */
	fi_addr_t addr;
	bool held, in_use;
};

int cadge_ofi_name(const struct cadge_ofi *ofi, void *name, size_t *bytes_inout)
{
	const size_t room_bytes = *bytes_inout;
	int ret = fi_getname(&ofi->ep->fid, name, bytes_inout);

	if (ret == -FI_ETOOSMALL || *bytes_inout + sizeof(ofi->opening) > room_bytes)
		return CADGE_E_ARGUMENT;
	if (ret)
		return CADGE_E_LIBRARY;
	memcpy((unsigned char *)name + *bytes_inout, &ofi->opening, sizeof(ofi->opening));
	*bytes_inout += sizeof(ofi->opening);
	return CADGE_DONE;
}

static void remove_now(const struct cadge_ofi *ofi, fi_addr_t addr)
{
	int ret = fi_av_remove(ofi->av, &addr, 1, 0);

	if (ret)
		fprintf(stderr, "cadge: libfabric could not remove an address: %s\n", fi_strerror(-ret));
}

/*
 * The entry of this very opening; else an empty one, where another opening at the same address, and if need be one that
 * was removed, have gone first. NULL: no room.
 */
static struct cadge_ofi_known *make_room(struct cadge_ofi *ofi, const void *name, size_t name_bytes)
{
	struct cadge_ofi_known *room = NULL, *each;

	for (each = ofi->known; each < ofi->known + ofi->known_max; each++) {
		if (each->held && !each->in_use && each->name_bytes == name_bytes) {
			if (memcmp(each->name, name, name_bytes) == 0)
				return each;
			if (memcmp(each->name, name, name_bytes - sizeof(ofi->opening)) == 0) {
				remove_now(ofi, each->addr);
				each->held = false;
			}
		}
		if (!each->held || (!each->in_use && (!room || room->held)))
			room = each;
	}
	if (room && room->held) {
		remove_now(ofi, room->addr);
		room->held = false;
	}
	return room;
}

int cadge_ofi_insert(struct cadge_ofi *ofi, const void *name, size_t name_bytes, fi_addr_t *addr_out)
{
	unsigned char copy[CADGE_OFI_NAME_BYTES] = {0};
	struct cadge_ofi_known *known = NULL;

	if (name_bytes <= sizeof(ofi->opening) || name_bytes > sizeof(copy))
		return CADGE_E_ARGUMENT;
	memcpy(copy, name, name_bytes - sizeof(ofi->opening));
	if (!ofi->network) {
		known = make_room(ofi, name, name_bytes);
		if (!known)
			return CADGE_E_LIBRARY;
	}
	if ((!known || !known->held) && fi_av_insert(ofi->av, copy, 1, addr_out, 0, NULL) != 1)
		return CADGE_E_LIBRARY;
	if (!known)
		return CADGE_DONE;
	if (known->held)
		*addr_out = known->addr;
	memcpy(known->name, name, name_bytes);
	known->name_bytes = name_bytes;
	known->addr = *addr_out;
	known->held = known->in_use = true;
	return CADGE_DONE;
}

void cadge_ofi_remove(struct cadge_ofi *ofi, fi_addr_t addr)
{
	struct cadge_ofi_known *each;

	if (ofi->network) {
		remove_now(ofi, addr);
		return;
	}
	for (each = ofi->known; each < ofi->known + ofi->known_max; each++)
		if (each->in_use && each->addr == addr) {
			each->in_use = false;
			return;
		}
}

/* ---- open, and what follows ---- */

/* The interface of the granted domain: its name, but for verbs, whose domains are called as their devices are. */
static void ofi_find_interface(struct cadge_ofi *ofi)
{
	const char *domain = ofi->info->domain_attr->name;
	const bool ours = ofi->verbs && strcmp(domain, ofi->rdma_device) == 0;

	snprintf(ofi->interface, sizeof(ofi->interface), "%s", ours ? ofi->device : domain);
}

int cadge_ofi_open(struct cadge_ofi *ofi, const struct cadge_open_args *args,
		   const struct cadge_ofi_needs *needs)
{
	int ret, code;

	memset(ofi, 0, sizeof(*ofi));
	ofi->wait_fd = -1;
	code = ofi_settings(ofi, args, needs->provider);
	if (code)
		return code;
	ret = ofi_getinfo(ofi, args, needs, needs->caps | needs->caps_wanted, &ofi->info);
	if (ret == -FI_ENODATA && needs->caps_wanted)
		ret = ofi_getinfo(ofi, args, needs, needs->caps, &ofi->info);
	if (ret)
		return ofi_none(ofi, args, ret);
	code = ofi_try_ports(ofi, args, needs);
	if (!code && cadge_nonce(&ofi->opening) != CADGE_DONE)
		code = cadge_refuse(args, CADGE_E_LIBRARY, "the kernel has no random number");
	if (!code && !ofi->network) {
		ofi->known_max = args->peers_max + KNOWN_SPARE;
		ofi->known = calloc(ofi->known_max, sizeof(*ofi->known));
		if (!ofi->known)
			code = cadge_refuse(args, CADGE_E_MEMORY, "out of memory for %u peers",
					    args->peers_max);
	}
	if (code)
		cadge_ofi_close(ofi);
	else
		ofi_find_interface(ofi);
	return code;
}

int cadge_ofi_wait(const struct cadge_ofi *ofi, uint64_t timeout_ns)
{
	struct fid *fid = &ofi->cq->fid;
	struct pollfd entry = {.fd = ofi->wait_fd, .events = POLLIN};
	int ret = fi_trywait(ofi->fabric, &fid, 1);

	if (ret == -FI_EAGAIN)
		return CADGE_DONE;
	if (ret)
		return CADGE_E_LIBRARY;
	return cadge_sleep(&entry, 1, timeout_ns);
}

int cadge_ofi_event(const struct cadge_ofi *ofi, int *fd_out)
{
	struct fid *fid = &ofi->cq->fid;
	int ret;

	if (ofi->wait_fd < 0)
		return CADGE_E_UNSUPPORTED;
	ret = fi_trywait(ofi->fabric, &fid, 1);
	if (ret == -FI_EAGAIN)
		return CADGE_BUSY;
	if (ret)
		return CADGE_E_LIBRARY;
	*fd_out = ofi->wait_fd;
	return CADGE_DONE;
}

void cadge_ofi_take_back(const struct cadge_ofi *ofi, void *op_context)
{
	if (ofi->verbs && ofi->ep)
		fi_cancel(&ofi->ep->fid, op_context);
}

int cadge_ofi_refused(struct cadge_ofi *ofi, ssize_t ret)
{
	snprintf(ofi->why, sizeof(ofi->why), "an operation was refused: %s", fi_strerror((int)-ret));
	return CADGE_E_DOWN;
}

ssize_t cadge_ofi_read_error(struct cadge_ofi *ofi, struct fi_cq_err_entry *error)
{
	const ssize_t ret = fi_cq_readerr(ofi->cq, error, 0);

	if (ret > 0)
		snprintf(ofi->why, sizeof(ofi->why), "%s (provider's error %d)", fi_strerror(error->err),
			 error->prov_errno);
	else if (ret != -FI_EAGAIN)
		snprintf(ofi->why, sizeof(ofi->why), "fi_cq_readerr: %s", fi_strerror((int)-ret));
	return ret;
}

/* True where the granted source address is the address that was bound. */
static void ofi_source(const struct cadge_ofi *ofi, char *text, size_t text_bytes)
{
	const struct fi_info *info = ofi->info;

	if (!is_internet(info) || getnameinfo(info->src_addr, (socklen_t)info->src_addrlen, text,
					      (socklen_t)text_bytes, NULL, 0, NI_NUMERICHOST))
		text[0] = '\0';
}

void cadge_ofi_describe(const struct cadge_ofi *ofi, struct cadge_path *path_out)
{
	const struct fi_info *info = ofi->info;
	char source[INET6_ADDRSTRLEN], params[128];
	bool provider_ok = strcmp(info->fabric_attr->prov_name, ofi->asked) == 0;
	bool device_ok = !ofi->network || strcmp(ofi->interface, ofi->device) == 0;

	ofi_source(ofi, source, sizeof(source));
	if (!ofi->network)
		path_out->medium = CADGE_MEDIUM_MEMORY;
	else
		path_out->medium =
			ofi->place == CADGE_PLACE_NET ? CADGE_MEDIUM_NETWORK : CADGE_MEDIUM_LOOPBACK;
	path_out->as_asked = provider_ok && device_ok;
	snprintf(path_out->asked, sizeof(path_out->asked), "provider %s%s%s", ofi->asked,
		 ofi->network ? ", device " : "", ofi->network ? ofi->device : "");
	cadge_ofi_params(ofi->network, params, sizeof(params));
	snprintf(path_out->used, sizeof(path_out->used), "provider %s, domain %s%s%s%s",
		 info->fabric_attr->prov_name, info->domain_attr->name, source[0] ? ", source " : "", source,
		 params);
	snprintf(path_out->device, sizeof(path_out->device), "%s", ofi->network ? ofi->interface : "");
	path_out->note[0] = '\0';
}

void cadge_wire_library(struct cadge_library *library_out)
{
	static char version[32];
	const struct cadge_library library = {
		.name = "libfabric",
		.stated_version = version,
		.symbol = (const void *)(uintptr_t)&fi_getinfo,
	};

	snprintf(version, sizeof(version), "%s", ofi_version());
	cadge_fill(library_out, &library, sizeof(library));
}
