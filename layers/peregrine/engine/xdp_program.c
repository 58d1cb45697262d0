/* SPDX-License-Identifier: BSD-3-Clause */
/* See xdp_socket.h: the program in the kernel, assembled by hand, and its attachment. */
#include "xdp_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "datagram.h"

enum { QUEUES_MAX = 64 };

static int bpf_call(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

#define INSN(c, d, s, o, i) {.code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i)}
#define PASS                19 /* the instruction that lets a frame pass */

/* Frames with packets to our number go to the socket of their queue, all others pass. */
static int load(struct pgr_xdp_socket *xdp, const struct pgr_config *config, uint32_t number)
{
	struct bpf_insn program[] = {
		/* clang-format off */
		INSN(BPF_LDX | BPF_MEM | BPF_W, 2, 1, 0, 0),		/*  0: r2 = ctx->data */
		INSN(BPF_LDX | BPF_MEM | BPF_W, 3, 1, 4, 0),		/*  1: r3 = ctx->data_end */
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 4, 2, 0, 0),		/*  2: r4 = r2 */
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 4, 0, 0,
		     ETH_HLEN + PGR_IP_BYTES + PGR_PREFIX_BYTES),	/*  3: r4 += headers */
		INSN(BPF_JMP | BPF_JGT | BPF_X, 4, 3, PASS - 5, 0),	/*  4: if r4 > r3 goto pass */
		INSN(BPF_LDX | BPF_MEM | BPF_H, 5, 2, 12, 0),		/*  5: r5 = Ethertype */
		INSN(BPF_JMP | BPF_JNE | BPF_K, 5, 0, PASS - 7, htons(ETH_P_IP)), /*  6 */
		INSN(BPF_LDX | BPF_MEM | BPF_B, 5, 2, ETH_HLEN, 0),	/*  7: r5 = IP version, length */
		INSN(BPF_JMP | BPF_JNE | BPF_K, 5, 0, PASS - 9, 0x45),	/*  8: options: not ours */
		INSN(BPF_LDX | BPF_MEM | BPF_B, 5, 2, ETH_HLEN + 9, 0),	/*  9: r5 = protocol */
		INSN(BPF_JMP | BPF_JNE | BPF_K, 5, 0, PASS - 11, PGR_IP_PROTOCOL), /* 10 */
		INSN(BPF_LDX | BPF_MEM | BPF_W, 5, 2,
		     ETH_HLEN + PGR_IP_BYTES, 0),			/* 11: r5 = to whom */
		INSN(BPF_JMP32 | BPF_JNE | BPF_K, 5, 0, PASS - 13, (int32_t)number), /* 12 */
		INSN(BPF_LDX | BPF_MEM | BPF_W, 2, 1, 16, 0),		/* 13: r2 = ctx->rx_queue_index */
		INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0,
		     xdp->map_fd),					/* 14: r1 = map */
		INSN(0, 0, 0, 0, 0),					/* 15: its upper half */
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 3, 0, 0, XDP_PASS),	/* 16: r3 = where there is no socket */
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map), /* 17 */
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),			/* 18 */
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, XDP_PASS),	/* 19: r0 = pass */
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),			/* 20 */
		/* clang-format on */
	};
	static const char licence[] = "Dual BSD/GPL";
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_XDP;
	attr.expected_attach_type = BPF_XDP;
	attr.insns = (uint64_t)(uintptr_t)program;
	attr.insn_cnt = sizeof(program) / sizeof(program[0]);
	attr.license = (uint64_t)(uintptr_t)licence;
	snprintf(attr.prog_name, sizeof(attr.prog_name), "pgr_wire");
	xdp->program_fd = bpf_call(BPF_PROG_LOAD, &attr);
	return xdp->program_fd < 0 ? pgr_xdp_fail(config, "loading a BPF program") : PGR_OK;
}

static int make_map(struct pgr_xdp_socket *xdp, const struct pgr_config *config)
{
	const uint32_t queue = 0;
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_XSKMAP;
	attr.key_size = attr.value_size = 4;
	attr.max_entries = QUEUES_MAX;
	snprintf(attr.map_name, sizeof(attr.map_name), "pgr_wire");
	xdp->map_fd = bpf_call(BPF_MAP_CREATE, &attr);
	if (xdp->map_fd < 0)
		return pgr_xdp_fail(config, "a BPF map for sockets");
	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)xdp->map_fd;
	attr.key = (uint64_t)(uintptr_t)&queue;
	attr.value = (uint64_t)(uintptr_t)&xdp->fd;
	return bpf_call(BPF_MAP_UPDATE_ELEM, &attr) < 0 ? pgr_xdp_fail(config, "entering a socket in its map")
							: PGR_OK;
}

static bool attach(struct pgr_xdp_socket *xdp, bool native)
{
	unsigned int tries = 0;
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = (uint32_t)xdp->program_fd;
	attr.link_create.target_ifindex = xdp->ifindex;
	attr.link_create.attach_type = BPF_XDP;
	attr.link_create.flags = native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
	do
		xdp->link_fd = bpf_call(BPF_LINK_CREATE, &attr);
	while (xdp->link_fd < 0 && pgr_xdp_try_again(&tries));
	xdp->native = native;
	return xdp->link_fd >= 0;
}

int pgr_xdp_attach(struct pgr_xdp_socket *xdp, const struct pgr_config *config, uint32_t number)
{
	const bool native = config->xdp_attach && strcmp(config->xdp_attach, "native") == 0;
	int code;

	code = make_map(xdp, config);
	if (code == PGR_OK)
		code = load(xdp, config, number);
	if (code != PGR_OK || attach(xdp, native))
		return code;
	/* Generic was the faster one on a veth in our readings; the other where it is not to be had. */
	if (!config->xdp_attach && errno != EBUSY && errno != EEXIST && errno != EPERM && attach(xdp, true))
		return PGR_OK;
	return pgr_xdp_fail(config, xdp->native ? "attaching a program to the driver"
						: "attaching a generic program");
}
