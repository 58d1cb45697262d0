/* SPDX-License-Identifier: BSD-3-Clause */
/* See xdp_program.h. The program is assembled by hand. */
#include "xdp_program.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_xdp.h>
#include <string.h>

#include "datagram.h"

enum { SEND_BUFFER_BYTES = 4 << 20 };

/* Turns what failed, and errno, into a code and a sentence. */
static int fail(const struct pgr_config *config, const char *what)
{
	const int error = errno;

	switch (error) {
	case ENODEV:
		return pgr_open_fail(config, PGR_E_WIRE, "the wire xdp: there is no interface '%s'",
				     config->device);
	case ENETDOWN:
		return pgr_open_fail(config, PGR_E_WIRE, "the wire xdp: the interface %s is down",
				     config->device);
	case ENOSYS: return pgr_open_fail(config, PGR_E_WIRE, "the wire xdp needs Linux 5.9 or later");
	case EPERM:
	case EACCES:
		return pgr_open_fail(config, PGR_E_PERMISSION,
				     "the wire xdp: %s: %s (it needs root, or CAP_NET_RAW, CAP_NET_ADMIN and "
				     "CAP_BPF)",
				     what, strerror(error));
	case ENOMEM:
	case ENOBUFS:
		return pgr_open_fail(config, PGR_E_MEMORY, "the wire xdp: %s: %s", what, strerror(error));
	case EBUSY:
	case EEXIST:
		return pgr_open_fail(config, PGR_E_WIRE,
				     "the wire xdp: %s: another endpoint or program has queue 0 of %s", what,
				     config->device);
	default:
		return pgr_open_fail(config, PGR_E_WIRE, "the wire xdp: %s on %s: %s", what, config->device,
				     strerror(error));
	}
}

#define INSN(c, d, s, o, i) {.code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i)}
/* instructions: the one that lets a frame pass, and the one that loads the map */
#define PASS   19
#define MAP_AT 14

/* Frames with packets to our number go to the socket of their queue, all others pass. */
static const char *load(struct pgr_xdp_socket *xdp, uint32_t number)
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
		INSN(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, 0), /* 14: r1 = map, filled in */
		INSN(0, 0, 0, 0, 0),					/* 15: its upper half */
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 3, 0, 0, XDP_PASS),	/* 16: r3 = where there is no socket */
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map), /* 17 */
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),			/* 18 */
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, XDP_PASS),	/* 19: r0 = pass */
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),			/* 20 */
		/* clang-format on */
	};

	return pgr_xdp_socket_load(xdp, program, sizeof(program) / sizeof(program[0]), MAP_AT);
}

int pgr_xdp_open(struct pgr_xdp_socket *xdp, const struct pgr_config *config, uint32_t number)
{
	static const struct pgr_xdp_shape shape = {
		.frame_bytes = PGR_XDP_FRAME_BYTES,
		.in = PGR_XDP_IN,
		.out = PGR_XDP_OUT,
		.bind_flags = XDP_USE_NEED_WAKEUP,
		.headroom_bytes = PGR_XDP_LEAD_BYTES,
		.send_buffer_bytes = SEND_BUFFER_BYTES,
		.name = "pgr_wire",
	};
	const bool native = config->xdp_attach && strcmp(config->xdp_attach, "native") == 0;
	/* First the socket: who finds its queue taken has not touched the program there. */
	const char *failed = pgr_xdp_socket_open(xdp, config->device, &shape);

	if (!failed)
		failed = load(xdp, number);
	if (!failed) {
		failed = pgr_xdp_socket_attach(xdp, native);
		/* Generic was the faster one on a veth in our readings; the other where it is not to be had. */
		if (failed && !config->xdp_attach && errno != EBUSY && errno != EEXIST && errno != EPERM)
			failed = pgr_xdp_socket_attach(xdp, true);
	}
	return failed ? fail(config, failed) : PGR_OK;
}
