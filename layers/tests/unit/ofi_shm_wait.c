/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why block mode is refused within a host for libfabric: its shm has nothing to sleep on. Should one of these
 * fail with a newer libfabric, then block mode can be granted there, and the limit in native/ofi.layer.yml
 * and rdma/ofi.layer.yml is wrong.
 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "tests/unit/support/tap.h"

enum { WAIT_MS = 200, SAMPLES = 100 };

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;

/* The scheduler's word for a process: 'R' wants the CPU, 'S' sleeps. */
static char state_of(pid_t pid)
{
	char path[64], line[512], *at;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	if (!file || !fgets(line, sizeof(line), file))
		tap_bail("no state of the child");
	fclose(file);
	at = strrchr(line, ')');
	return at ? at[2] : '?';
}

static int queue_open(enum fi_wait_obj wait_obj, struct fid_cq **cq_out)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_DATA, .size = 16, .wait_obj = wait_obj};

	return fi_cq_open(domain, &attr, cq_out, NULL);
}

static void descriptor_refused(void)
{
	struct fid_cq *cq;
	int ret = queue_open(FI_WAIT_FD, &cq);

	if (!ret)
		fi_close(&cq->fid);
	ok(ret == -FI_ENOSYS, "shm refuses a completion queue with FI_WAIT_FD");
}

/* Says that it is about to wait, and enters the wait that shm does have. Nothing ever comes. */
static void wait_for_nothing(int told)
{
	struct fi_av_attr av_attr = {.type = FI_AV_UNSPEC};
	struct fi_cq_data_entry entry;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	const char ready = 1;

	if (queue_open(FI_WAIT_UNSPEC, &cq) || fi_av_open(domain, &av_attr, &av, NULL) ||
	    fi_endpoint(domain, info, &ep, NULL) || fi_ep_bind(ep, &av->fid, 0) ||
	    fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV) || fi_enable(ep))
		_exit(1);
	if (write(told, &ready, 1) != 1)
		_exit(1);
	/* In libfabric 1.17 the timeout is not kept either. */
	while (fi_cq_sread(cq, &entry, 1, NULL, WAIT_MS) < 0)
		;
	_exit(1);
}

/*
 * Whoever spins, yielding or not, wants the CPU at every moment; whoever sleeps does not at any. A child
 * waits, since only its end stops it.
 */
static void waiting_spins(void)
{
	char region[64];
	int ends[2], status, running = 0;
	char ready;
	pid_t child;

	if (pipe(ends) || (child = fork()) < 0)
		tap_bail("no child");
	if (!child)
		wait_for_nothing(ends[1]);
	close(ends[1]);
	if (read(ends[0], &ready, 1) != 1)
		tap_bail("shm does not open an endpoint");
	poll(NULL, 0, WAIT_MS);
	for (int i = 0; i < SAMPLES; i++) {
		poll(NULL, 0, 1);
		running += state_of(child) == 'R';
	}
	if (kill(child, SIGKILL) || waitpid(child, &status, 0) != child)
		tap_bail("the child is gone");
	/* What a killed process leaves behind: libfabric names a region by the process that asked for the
	 * provider, user and number. */
	snprintf(region, sizeof(region), "/%d:%d:0", (int)getpid(), (int)getuid());
	ok(shm_unlink(region) == 0, "the region of the killed child can be removed by its name");
	ok(WIFSIGNALED(status), "fi_cq_sread on shm still waits");
	ok(running > SAMPLES / 2, "and spins: it wanted the CPU at %d of %d moments", running, SAMPLES);
}

int main(void)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		tap_bail("no memory");
	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup("shm");
	if (fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info))
		tap_skip_all("this libfabric has no shm here");
	if (fi_fabric(info->fabric_attr, &fabric, NULL) || fi_domain(fabric, info, &domain, NULL))
		tap_bail("shm does not open");
	descriptor_refused();
	waiting_spins();
	ok(!fi_close(&domain->fid) && !fi_close(&fabric->fid), "domain and fabric close");
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return tap_done();
}
