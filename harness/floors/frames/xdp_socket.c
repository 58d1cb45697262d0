/* SPDX-License-Identifier: BSD-3-Clause */
/* See xdp_socket.h. */
#include "xdp_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/resource.h>

/*
 * Turns what failed, and errno, into a reason: forbidden, missing in this kernel, or broken. `device`: NULL where it
 * was there a moment ago.
 */
static int step_failed(struct drv_fail *fail, const char *what, const char *device)
{
	const int error = errno;

	if (device && error == ENODEV)
		return drv_fail_set(fail, DRV_TRANSPORT, "there is no interface '%s'", device);
	if (device && error == ENETDOWN)
		return drv_fail_set(fail, DRV_TRANSPORT, "interface '%s' is down", device);
	switch (error) {
	case EPERM:
	case EACCES:
		return drv_fail_set(
			fail, DRV_PERMISSION,
			"%s: %s (raw frames need root, or CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF)", what,
			strerror(error));
	case EAFNOSUPPORT:
	case ENOSYS:
	case EINVAL:
	case EOPNOTSUPP:
	case EPROTONOSUPPORT:
		return drv_fail_set(fail, DRV_NODE_LACKS, "%s: %s (not supported by this kernel or device)",
				    what, strerror(error));
	case ENOMEM:
	case ENOBUFS: return drv_fail_set(fail, DRV_MEMORY, "%s: %s", what, strerror(error));
	case EBUSY:
	case EEXIST:
		return drv_fail_set(fail, DRV_TRANSPORT, "%s: another program or socket has the device",
				    what);
	default: return drv_fail_set(fail, DRV_SYSTEM, "%s: %s", what, strerror(error));
	}
}

#define INSN(c, d, s, o, i) {.code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i)}
/* instructions: the one that lets a frame pass, and the one that loads the map */
#define PASS   13
#define MAP_AT 8

/* Frames of our ethertype go to the socket of their queue, all others pass. */
static const char *load_program(struct pgr_xdp_socket *xdp)
{
	struct bpf_insn program[] = {
		/* clang-format off */
		INSN(BPF_LDX | BPF_MEM | BPF_W, 2, 1, 0, 0),		/*  0: r2 = ctx->data */
		INSN(BPF_LDX | BPF_MEM | BPF_W, 3, 1, 4, 0),		/*  1: r3 = ctx->data_end */
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 4, 2, 0, 0),		/*  2: r4 = r2 */
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 4, 0, 0, 14),		/*  3: r4 += 14 */
		INSN(BPF_JMP | BPF_JGT | BPF_X, 4, 3, PASS - 5, 0),	/*  4: if r4 > r3 goto pass */
		INSN(BPF_LDX | BPF_MEM | BPF_H, 5, 2, 12, 0),		/*  5: r5 = Ethertype */
		INSN(BPF_JMP | BPF_JNE | BPF_K, 5, 0, PASS - 7, htons(XDP_ETHERTYPE)), /* 6 */
		INSN(BPF_LDX | BPF_MEM | BPF_W, 2, 1, 16, 0),		/*  7: r2 = ctx->rx_queue_index */
		INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, 0), /* 8: r1 = map, filled in */
		INSN(0, 0, 0, 0, 0),					/*  9: its upper half */
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 3, 0, 0, XDP_PASS),	/* 10: r3 = where there is no socket */
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map), /* 11 */
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),			/* 12 */
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, XDP_PASS),	/* 13: r0 = pass */
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),			/* 14 */
		/* clang-format on */
	};

	return pgr_xdp_socket_load(xdp, program, sizeof(program) / sizeof(program[0]), MAP_AT);
}

int xdp_socket_open(struct pgr_xdp_socket *xdp, const char *device, uint32_t frames_in, struct drv_fail *fail)
{
	const struct pgr_xdp_shape shape = {
		.frame_bytes = XDP_FRAME_BYTES,
		.in = frames_in,
		.out = XDP_FRAMES_OUT,
		.name = "cadge_floor",
	};
	const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	const char *failed;

	/*
	 * Before 5.11 the kernel charges maps and frames to this limit; where it may not be raised the calls
	 * below say so.
	 */
	if (setrlimit(RLIMIT_MEMLOCK, &unlimited) < 0 && errno != EPERM)
		return step_failed(fail, "RLIMIT_MEMLOCK", device);
	failed = pgr_xdp_socket_open(xdp, device, &shape);
	if (!failed)
		failed = load_program(xdp);
	return failed ? step_failed(fail, failed, device) : 0;
}

int xdp_socket_attach(struct pgr_xdp_socket *xdp, bool native, struct drv_fail *fail)
{
	const char *failed = pgr_xdp_socket_attach(xdp, native);

	return failed ? step_failed(fail, failed, NULL) : 0;
}
