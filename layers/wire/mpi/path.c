/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI says nothing of transports, and Open MPI's tools interface (MPI_T) shows what was asked for, not what
 * was chosen. So this reads Open MPI's own tables: the selected pml, and for pml ob1 the endpoint of the one
 * peer. It needs the library's internal headers, which Debian's development packages contain; where they are
 * missing it says so.
 */
#include "wire/mpi/path.h"

#include "cadge/path.h"
#include "wire/mpi/which.h"
#include "wire/mpi/world.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

/* The transports of ob1 whose limits are asked for, and what they were when MPI started: nothing changes
 * them. */
static struct {
	const char *btl;
	struct mpi_limits limits;
} path_limits[] = {{.btl = "tcp"}, {.btl = "vader"}, {.btl = "sm"}};

enum { PATH_LIMITS = sizeof(path_limits) / sizeof(path_limits[0]) };

static uint64_t path_read_limit(const char *btl, const char *limit)
{
	char name[64];
	MPI_T_cvar_handle handle;
	uint64_t value = 0;
	int index, count = 0;

	snprintf(name, sizeof(name), "btl_%s_%s", btl, limit);
	/* The variable is a size_t in Open MPI; one of another width is not read. */
	if (MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS &&
	    MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) == MPI_SUCCESS) {
		size_t read_value = 0;

		if (count == 1 && MPI_T_cvar_read(handle, &read_value) == MPI_SUCCESS)
			value = read_value;
		if (MPI_T_cvar_handle_free(&handle) != MPI_SUCCESS)
			value = 0;
	}
	return value;
}

/* How vader copies long messages; "" where the library has no such variable, as version 5. */
static char path_vader_copy[16];

/* Once it has looked for what it was told, or would like, the library keeps in the variable what it uses. */
static void path_read_copy(void)
{
	char name[64], text[256], item[sizeof(path_vader_copy)];
	int name_bytes = sizeof(name), text_bytes = sizeof(text), verbosity, bind, scope;
	int index, count = 0, value = 0, items = 0, found, is_read = 0, i;
	MPI_Datatype type;
	MPI_T_enum kind = MPI_T_ENUM_NULL;
	MPI_T_cvar_handle handle;

	if (MPI_T_cvar_get_index("btl_vader_single_copy_mechanism", &index) != MPI_SUCCESS ||
	    MPI_T_cvar_get_info(index, name, &name_bytes, &verbosity, &type, &kind, text, &text_bytes, &bind,
				&scope) != MPI_SUCCESS ||
	    kind == MPI_T_ENUM_NULL || type != MPI_INT ||
	    MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS)
		return;
	is_read = count == 1 && MPI_T_cvar_read(handle, &value) == MPI_SUCCESS;
	if (MPI_T_cvar_handle_free(&handle) != MPI_SUCCESS || !is_read)
		return;
	if (MPI_T_enum_get_info(kind, &items, name, &(int){sizeof(name)}) != MPI_SUCCESS)
		return;
	for (i = 0; i < items; i++)
		if (MPI_T_enum_get_item(kind, i, &found, item, &(int){sizeof(item)}) == MPI_SUCCESS &&
		    found == value)
			snprintf(path_vader_copy, sizeof(path_vader_copy), "%s", item);
}

/* Once a process: each start of the tools interface loads every plugin of Open MPI, which takes 0.15 s. */
static void path_read_limits(void)
{
	static bool read;
	int provided;
	size_t i;

	if (read || !mpi_which_is_open_mpi())
		return;
	read = true;
	mpi_world_hide_leaks(true);
	if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS) {
		for (i = 0; i < PATH_LIMITS; i++) {
			path_limits[i].limits.eager_bytes =
				path_read_limit(path_limits[i].btl, "eager_limit");
			path_limits[i].limits.rendezvous_eager_bytes =
				path_read_limit(path_limits[i].btl, "rndv_eager_limit");
		}
		path_read_copy();
		if (MPI_T_finalize() != MPI_SUCCESS)
			fprintf(stderr, "cadge: MPI's tools interface cannot be closed\n");
	}
	mpi_world_hide_leaks(false);
}

struct mpi_limits mpi_path_limits(const char *btl)
{
	size_t i;

	path_read_limits();
	for (i = 0; i < PATH_LIMITS; i++)
		if (strcmp(path_limits[i].btl, btl) == 0)
			return path_limits[i].limits;
	return (struct mpi_limits){0};
}

bool mpi_path_memory_refused(pid_t pid)
{
	char byte;
	const struct iovec here = {.iov_base = &byte, .iov_len = 1},
			   nowhere = {.iov_base = NULL, .iov_len = 1};

	/* Page 0 is mapped nowhere. Whether the other process may be read is looked at before that. */
	return process_vm_readv(pid, &here, 1, &nowhere, 1, 0) < 0 && errno != EFAULT;
}

void mpi_path_not_read(const struct mpi_path *path, enum cadge_place place, struct cadge_path *path_out)
{
	const bool within = place == CADGE_PLACE_HOST;
	struct cadge_path described = {.bytes = sizeof(described), .medium = CADGE_MEDIUM_UNKNOWN};

	snprintf(described.asked, sizeof(described.asked), "%s's default %s%s", mpi_which_name(),
		 within ? "within a host (shared memory)" : "between hosts on ",
		 within ? "" : mpi_which_interface());
	snprintf(described.used, sizeof(described.used), CADGE_NOT_READ_BACK "%s", path->not_read);
	if (!within)
		snprintf(described.note, sizeof(described.note), "put on the network by %s",
			 mpi_which_is_open_mpi() ? "OMPI_MCA_btl and OMPI_MCA_btl_tcp_if_include"
						 : "MPIR_CVAR_NOLOCAL, UCX_TLS, UCX_NET_DEVICES, "
						   "FI_TCP_IFACE, FI_SOCKETS_IFACE");
	cadge_fill(path_out, &described, sizeof(described));
}

#if defined(OPEN_MPI) && defined(__has_include)
#if __has_include(<ompi_config.h>) && __has_include(<ompi/mca/bml/bml.h>) && __has_include(<ompi/mca/mtl/mtl.h>)
#define MPI_PATH_READABLE 1
#endif
#endif

#ifdef MPI_PATH_READABLE
#include <ompi_config.h>

/* Debian's Open MPI 5 comes with these headers, but not with the ones of the threads that all of them
 * include. */
#if OMPI_MAJOR_VERSION >= 5 && !__has_include(<opal/mca/threads/pthreads/threads_pthreads_mutex.h>)
#undef MCA_threads_base_include_HEADER
#undef MCA_threads_mutex_base_include_HEADER
#undef MCA_threads_tsd_base_include_HEADER
#define MCA_threads_base_include_HEADER       "wire/mpi/internal_threads.h"
#define MCA_threads_mutex_base_include_HEADER "wire/mpi/internal_threads.h"
#define MCA_threads_tsd_base_include_HEADER   "wire/mpi/internal_threads.h"
#endif

#include <ompi/communicator/communicator.h>
#include <ompi/mca/bml/bml.h>
#include <ompi/mca/mtl/base/base.h>
#include <ompi/mca/osc/osc.h>
#include <ompi/mca/pml/base/base.h>
#include <ompi/proc/proc.h>
#include <ompi/win/win.h>
#include <opal/mca/btl/btl.h>

#if OMPI_MAJOR_VERSION >= 5 && __has_include(<opal/mca/smsc/base/base.h>)
#include <opal/mca/base/base.h>
#include <opal/mca/smsc/base/base.h>

/*
 * The component of Open MPI 5 that copies between processes. Once one was selected, those that cannot be used
 * are off the list, and the others lie on it by priority, the selected one first.
 */
static const char *path_smsc(void)
{
	opal_list_t *usable = &opal_smsc_base_framework.framework_components;

	if (!mca_smsc || opal_list_is_empty(usable))
		return "none";
	return ((mca_base_component_list_item_t *)opal_list_get_first(usable))
		->cli_component->mca_component_name;
}
#else
static const char *path_smsc(void)
{
	return "";
}
#endif

/* Layouts may change with each release: nothing is read from another one than the headers are of. */
static bool path_same_release(void)
{
	char text[MPI_MAX_LIBRARY_VERSION_STRING], built[64];
	int bytes, wrote = snprintf(built, sizeof(built), "Open MPI v%d.%d.%d", OMPI_MAJOR_VERSION,
				    OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);

	return MPI_Get_library_version(text, &bytes) == MPI_SUCCESS && wrote > 0 &&
	       strncmp(text, built, (size_t)wrote) == 0 && (text[wrote] < '0' || text[wrote] > '9');
}

/*
 * The transports that carry short and long messages to `proc`, each with its name, in the order of their
 * use.
 */
static void path_transports(const ompi_proc_t *proc, char *text, size_t text_bytes)
{
	mca_bml_base_endpoint_t *endpoint = proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML];
	size_t used_bytes = 0, i;

	text[0] = '\0';
	for (i = 0; endpoint && i < endpoint->btl_send.arr_size; i++) {
		const mca_btl_base_module_t *btl = endpoint->btl_send.bml_btls[i].btl;
		int wrote =
			snprintf(text + used_bytes, text_bytes - used_bytes, "%s%s", used_bytes ? "," : "",
				 btl->btl_component->btl_version.mca_component_name);

		if (wrote < 0 || (size_t)wrote >= text_bytes - used_bytes)
			return;
		used_bytes += (size_t)wrote;
	}
}

/*
 * How the transport of memory copies long messages. It gives up get and put, which ob1 needs for a single
 * copy, where it finds when it connects that it cannot use them.
 */
static void path_copy(const ompi_proc_t *proc, const char *name, char *text, size_t text_bytes)
{
	mca_bml_base_endpoint_t *endpoint = proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML];
	const bool vader = strcmp(name, "vader") == 0;
	const mca_btl_base_module_t *btl;
	bool get, put;

	if (!endpoint || endpoint->btl_send.arr_size != 1 || (!vader && strcmp(name, "sm") != 0))
		return;
	btl = endpoint->btl_send.bml_btls[0].btl;
	get = btl->btl_get && btl->btl_flags & MCA_BTL_FLAGS_GET;
	put = btl->btl_put && btl->btl_flags & MCA_BTL_FLAGS_PUT;
	path_read_limits();
	snprintf(text, text_bytes, "%s", !get && !put ? "none" : vader ? path_vader_copy : path_smsc());
}

void mpi_path_read(MPI_Comm comm, int rank, struct mpi_path *path_out)
{
	const ompi_proc_t *proc;

	memset(path_out, 0, sizeof(*path_out));
	if (!path_same_release()) {
		path_out->not_read = "built with the headers of another release of Open MPI";
		return;
	}
	proc = ompi_comm_peer_lookup(comm, rank);
	path_out->method = "read from Open MPI's endpoint of this peer";
	snprintf(path_out->pml, sizeof(path_out->pml), "%s",
		 mca_pml_base_selected_component.pmlm_version.mca_component_name);
	if (strcmp(path_out->pml, "cm") == 0 && ompi_mtl) {
		snprintf(path_out->mtl, sizeof(path_out->mtl), "%s",
			 ompi_mtl_base_selected_component->mtl_version.mca_component_name);
	} else if (proc) {
		path_transports(proc, path_out->btl, sizeof(path_out->btl));
		path_copy(proc, path_out->btl, path_out->copy, sizeof(path_out->copy));
	}
}

/* A window's module does not name its component, but its functions do. */
void mpi_path_window(MPI_Win win, char *text, size_t text_bytes)
{
	static const char begin[] = "ompi_osc_";
	const void *put;
	Dl_info info;
	const char *name;

	text[0] = '\0';
	if (!path_same_release())
		return;
	memcpy(&put, &win->w_osc_module->osc_put, sizeof(put));
	if (!dladdr(put, &info) || !info.dli_sname || strncmp(info.dli_sname, begin, sizeof(begin) - 1) != 0)
		return;
	name = info.dli_sname + sizeof(begin) - 1;
	snprintf(text, text_bytes, "%.*s", (int)strcspn(name, "_"), name);
}

#else

void mpi_path_window(MPI_Win win, char *text, size_t text_bytes)
{
	(void)win, (void)text_bytes;
	text[0] = '\0';
}

void mpi_path_read(MPI_Comm comm, int rank, struct mpi_path *path_out)
{
	(void)comm;
	(void)rank;
	memset(path_out, 0, sizeof(*path_out));
	path_out->not_read = mpi_which_is_open_mpi()
				     ? "this Open MPI was installed without its internal headers"
				     : "this MPI has no call that tells which transport serves a peer";
}

#endif
