/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/ofi/rma.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "wire/ofi/params.h"

enum ofi_kind { OFI_WRITE, OFI_READ, OFI_FETCH, OFI_QUIET };

/* An operation in flight. The first member is libfabric's. */
struct cadge_ofi_op {
	struct fi_context2 context;
	struct cadge_ofi_link *link; /* NULL after the link was closed: nobody is notified */
	enum ofi_kind kind;
	bool reading;               /* libfabric has a read of it in hand */
	uint32_t pending;           /* quiet: earlier writes in flight, and the read */
	uint64_t serial;            /* position among the writes and quiets of its link */
	uint64_t operand, expected; /* of an atomic operation, must live as long */
	uint64_t token;
	void *owner;
	struct cadge_ofi_op *next; /* free list; quiets of a link */
};

int cadge_ofi_rma_create(struct cadge_ofi_rma *rma, struct cadge_ofi *ofi, size_t operations,
			 cadge_ofi_done_fn done, void *arg)
{
	size_t count = 0, i;

	*rma = (struct cadge_ofi_rma){
		.ofi = ofi, .done = done, .arg = arg, .next_key = 1, .ops_count = operations};
	rma->direct = !ofi->network && ofi->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
	rma->fetches = ofi->info->caps & FI_ATOMIC &&
		       fi_fetch_atomicvalid(ofi->ep, FI_UINT64, FI_SUM, &count) == 0 && count;
	rma->swaps = ofi->info->caps & FI_ATOMIC &&
		     fi_compare_atomicvalid(ofi->ep, FI_UINT64, FI_CSWAP, &count) == 0 && count;
	/*
	 * Not over tcp;ofi_rxm: in libfabric 1.17 an injected write that still waits when its connection ends
	 * is reported as an error of no operation, and ofi_rxm follows the null pointer.
	 */
	rma->inject_bytes = ofi->network ? 0 : ofi->info->tx_attr->inject_size;
	rma->ops = calloc(operations, sizeof(*rma->ops));
	if (!rma->ops)
		return CADGE_E_MEMORY;
	for (i = 0; i < operations; i++)
		CADGE_POOL_GIVE(rma->free_op, &rma->ops[i]);
	return CADGE_DONE;
}

void cadge_ofi_rma_drain(struct cadge_ofi_rma *rma)
{
	struct cadge_ofi_op *op;
	int rounds;
	size_t i;

	for (i = 0; i < rma->ops_count; i++)
		rma->ops[i].link = NULL;
	for (rounds = 0; rma->reads && rounds < 200; rounds++) {
		struct fi_cq_data_entry entry;
		struct fi_cq_err_entry error = {0};
		ssize_t count = fi_cq_read(rma->ofi->cq, &entry, 1);

		if (count == 1)
			op = entry.op_context;
		else if (count == -FI_EAVAIL && fi_cq_readerr(rma->ofi->cq, &error, 0) == 1)
			op = error.op_context;
		else if (count == -FI_EAGAIN && poll(NULL, 0, 1) == 0)
			continue;
		else
			return;
		if (cadge_ofi_rma_owns(rma, op)) {
			rma->reads -= op->reading;
			op->reading = false;
			rounds--;
		}
	}
}

void cadge_ofi_rma_destroy(struct cadge_ofi_rma *rma)
{
	free(rma->ops);
	rma->ops = NULL;
}

int cadge_ofi_expose(struct cadge_ofi_rma *rma, void *base, size_t bytes, uint32_t rights,
		     struct fid_mr **mr_out, struct cadge_ofi_far *far_out)
{
	const uint64_t access =
		(rights & (CADGE_MAY_READ | CADGE_MAY_ATOMIC) ? (uint64_t)FI_REMOTE_READ : 0) |
		(rights & (CADGE_MAY_WRITE | CADGE_MAY_ATOMIC) ? (uint64_t)FI_REMOTE_WRITE : 0);
	int ret = fi_mr_reg(rma->ofi->domain, base, bytes, access, 0, rma->next_key, 0, mr_out, NULL);

	if (ret)
		return cadge_ofi_code(ret);
	rma->next_key++;
	far_out->key = fi_mr_key(*mr_out);
	far_out->addr =
		rma->ofi->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)base : 0;
	return CADGE_DONE;
}

void cadge_ofi_unexpose(struct fid_mr *mr)
{
	int ret = mr ? fi_close(&mr->fid) : 0;

	if (ret)
		fprintf(stderr, "cadge: libfabric could not close a memory region: %s\n", fi_strerror(-ret));
}

/* Whether shm can reach into the peer's memory, found as the library finds it, and whether it was told not
 * to. */
static bool ofi_reaches(pid_t pid, uint64_t word_addr, uint64_t nonce)
{
	uint64_t found = 0;
	struct iovec here = {.iov_base = &found, .iov_len = sizeof(found)};
	struct iovec there = {.iov_base = (void *)(uintptr_t)word_addr, .iov_len = sizeof(found)};

	if (cadge_ofi_cma_disabled())
		return false;
	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)sizeof(found) && found == nonce;
}

void cadge_ofi_link_open(struct cadge_ofi_link *link, struct cadge_ofi_rma *rma, fi_addr_t addr,
			 struct cadge_ofi_far word, pid_t pid, uint64_t nonce, void *landing)
{
	*link = (struct cadge_ofi_link){.rma = rma, .addr = addr, .word = word, .landing = landing};
	rma->direct = rma->direct && ofi_reaches(pid, word.addr, nonce);
}

static struct cadge_ofi_op *ofi_new_op(struct cadge_ofi_link *link, enum ofi_kind kind, uint64_t token,
				       void *owner)
{
	struct cadge_ofi_op *op = CADGE_POOL_TAKE(link->rma->free_op);

	if (!op)
		return NULL;
	op->link = link;
	op->kind = kind;
	op->reading = false;
	op->token = token;
	op->owner = owner;
	return op;
}

static void ofi_free_op(struct cadge_ofi_rma *rma, struct cadge_ofi_op *op)
{
	op->link = NULL;
	CADGE_POOL_GIVE(rma->free_op, op);
}

void cadge_ofi_link_close(struct cadge_ofi_link *link)
{
	struct cadge_ofi_rma *rma = link->rma;
	size_t i;

	for (i = 0; i < rma->ops_count; i++) {
		struct cadge_ofi_op *op = &rma->ops[i];

		if (op->link != link)
			continue;
		if (op->kind == OFI_QUIET && !op->reading)
			ofi_free_op(rma, op);
		else
			op->link = NULL;
	}
}

/* The library's answer to an operation: QUEUED; BUSY or E_DOWN, and the op is free again. */
static int ofi_issued(struct cadge_ofi_rma *rma, struct cadge_ofi_op *op, ssize_t ret)
{
	if (!ret) {
		op->reading = op->kind != OFI_WRITE;
		rma->reads += op->reading;
		return CADGE_QUEUED;
	}
	ofi_free_op(rma, op);
	if (ret != -FI_EAGAIN)
		return cadge_ofi_refused(rma->ofi, ret);
	rma->busy_operations++;
	return CADGE_BUSY;
}

int cadge_ofi_write(struct cadge_ofi_link *link, const void *local, size_t bytes, struct cadge_ofi_far far,
		    uint64_t token, void *owner)
{
	struct cadge_ofi_rma *rma = link->rma;
	struct cadge_ofi_op *op;
	int code;

	if (bytes <= rma->inject_bytes) {
		ssize_t ret = fi_inject_write(rma->ofi->ep, local, bytes, link->addr, far.addr, far.key);

		if (!ret) {
			link->unflushed = true;
			rma->writes_injected++;
			return CADGE_DONE;
		}
		rma->busy_operations++;
		return ret == -FI_EAGAIN ? CADGE_BUSY : cadge_ofi_refused(rma->ofi, ret);
	}
	op = ofi_new_op(link, OFI_WRITE, token, owner);
	if (!op)
		return CADGE_BUSY;
	code = ofi_issued(
		rma, op,
		fi_write(rma->ofi->ep, local, bytes, NULL, link->addr, far.addr, far.key, &op->context));
	if (code == CADGE_QUEUED) {
		op->serial = ++link->serial;
		link->writes++;
		link->unflushed = true;
		rma->writes_queued++;
	}
	return code;
}

int cadge_ofi_read(struct cadge_ofi_link *link, void *local, size_t bytes, struct cadge_ofi_far far,
		   uint64_t token)
{
	struct cadge_ofi_rma *rma = link->rma;
	struct cadge_ofi_op *op = ofi_new_op(link, OFI_READ, token, NULL);

	if (!op)
		return CADGE_BUSY;
	return ofi_issued(
		rma, op,
		fi_read(rma->ofi->ep, local, bytes, NULL, link->addr, far.addr, far.key, &op->context));
}

int cadge_ofi_fetch_add(struct cadge_ofi_link *link, uint64_t addend, uint64_t *before_out,
			struct cadge_ofi_far far, uint64_t token)
{
	struct cadge_ofi_rma *rma = link->rma;
	struct cadge_ofi_op *op = ofi_new_op(link, OFI_FETCH, token, NULL);

	if (!op)
		return CADGE_BUSY;
	op->operand = addend;
	return ofi_issued(rma, op,
			  fi_fetch_atomic(rma->ofi->ep, &op->operand, 1, NULL, before_out, NULL, link->addr,
					  far.addr, far.key, FI_UINT64, FI_SUM, &op->context));
}

int cadge_ofi_compare_swap(struct cadge_ofi_link *link, uint64_t expected, uint64_t desired,
			   uint64_t *before_out, struct cadge_ofi_far far, uint64_t token)
{
	struct cadge_ofi_rma *rma = link->rma;
	struct cadge_ofi_op *op = ofi_new_op(link, OFI_FETCH, token, NULL);

	if (!op)
		return CADGE_BUSY;
	op->operand = desired;
	op->expected = expected;
	return ofi_issued(rma, op,
			  fi_compare_atomic(rma->ofi->ep, &op->operand, 1, NULL, &op->expected, NULL,
					    before_out, NULL, link->addr, far.addr, far.key, FI_UINT64,
					    FI_CSWAP, &op->context));
}

int cadge_ofi_quiet(struct cadge_ofi_link *link, uint64_t token, void *owner)
{
	struct cadge_ofi_rma *rma = link->rma;
	/* what a quiet before this one still reads for is not known to be visible either */
	bool read = (link->unflushed || link->flushes) && !rma->direct;
	struct cadge_ofi_op *op;

	if (!read && !link->writes) {
		link->unflushed = false;
		return CADGE_DONE;
	}
	op = ofi_new_op(link, OFI_QUIET, token, owner);
	if (!op)
		return CADGE_BUSY;
	op->serial = ++link->serial;
	op->pending = link->writes + read;
	if (read) {
		int code = ofi_issued(rma, op,
				      fi_read(rma->ofi->ep, link->landing, sizeof(uint64_t), NULL, link->addr,
					      link->word.addr, link->word.key, &op->context));

		if (code != CADGE_QUEUED)
			return code;
		rma->flush_reads++;
		link->flushes++;
	}
	link->unflushed = false;
	op->next = link->quiets;
	link->quiets = op;
	return CADGE_QUEUED;
}

/*
 * tcp;ofi_rxm writes through one byte stream, and of shm's writes only those in flight can be overtaken. Both
 * were tried; what these providers claim of order depends on whether atomics were asked for.
 */
int cadge_ofi_fence(const struct cadge_ofi_link *link)
{
	const struct cadge_ofi *ofi = link->rma->ofi;

	return (ofi->network && !ofi->verbs) || !link->writes ? CADGE_DONE : CADGE_BUSY;
}

bool cadge_ofi_rma_owns(const struct cadge_ofi_rma *rma, const void *op_context)
{
	uintptr_t at = (uintptr_t)op_context;

	return at >= (uintptr_t)rma->ops && at < (uintptr_t)(rma->ops + rma->ops_count);
}

struct cadge_ofi_link *cadge_ofi_rma_link(const void *op_context)
{
	const struct cadge_ofi_op *op = op_context;

	return op->link;
}

static int ofi_finish(struct cadge_ofi_rma *rma, struct cadge_ofi_op *op, int code)
{
	struct cadge_ofi_link *link = op->link;
	const uint64_t token = op->token;
	void *owner = op->owner;

	ofi_free_op(rma, op);
	return link ? rma->done(rma->arg, link, token, owner, code) : 0;
}

/* Counts one thing less that the quiets wait for for which `waits` is true, and finishes those that wait for
 * nothing. */
static int ofi_settle(struct cadge_ofi_link *link, const struct cadge_ofi_op *quiet_alone,
		      uint64_t after_serial, int code)
{
	struct cadge_ofi_op **at = &link->quiets, *quiet, *ready = NULL;
	int events = 0;

	while ((quiet = *at)) {
		if (quiet_alone ? quiet == quiet_alone : quiet->serial > after_serial)
			quiet->pending--;
		if (quiet->pending) {
			at = &quiet->next;
			continue;
		}
		*at = quiet->next;
		quiet->next = ready;
		ready = quiet;
	}
	/* Only now: `done` may start operations. The oldest stands first, since the list was newest first. */
	while ((quiet = ready)) {
		ready = quiet->next;
		events += ofi_finish(link->rma, quiet, code);
	}
	return events;
}

int cadge_ofi_rma_completed(struct cadge_ofi_rma *rma, void *op_context, int code)
{
	struct cadge_ofi_op *op = op_context;
	struct cadge_ofi_link *link = op->link;
	uint64_t serial = op->serial;
	int events;

	rma->reads -= op->reading;
	op->reading = false;
	if (link && op->kind == OFI_QUIET) {
		link->flushes--;
		return ofi_settle(link, op, 0, code);
	}
	if (!link || op->kind != OFI_WRITE)
		return ofi_finish(rma, op, code);
	link->writes--;
	events = ofi_finish(rma, op, code);
	return events + ofi_settle(link, NULL, serial, code);
}

void cadge_ofi_rma_counters(const struct cadge_ofi_rma *rma,
			    void (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	each(arg, "writes_injected", rma->writes_injected);
	each(arg, "writes_queued", rma->writes_queued);
	each(arg, "flush_reads", rma->flush_reads);
	each(arg, "busy_operations", rma->busy_operations);
}
