/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive blocks: memory that a socket is read into and that messages are lent from, without a copy. A
 * receiver that keeps a message keeps its block. Blocks are reused; none is allocated while messages of a
 * settled size flow.
 */
#ifndef CADGE_SOCKETS_BLOCKS_H
#define CADGE_SOCKETS_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadge/layer.h"

/* A block; completes cadge_lend, since it is what a receiver keeps. */
struct cadge_lend {
	struct cadge_lend *next, *previous; /* all blocks of the pool */
	uint32_t keeps;                     /* messages in it that receivers keep */
	bool attached;                      /* a socket is read into it */
	size_t room_bytes;
	unsigned char *data; /* room_bytes, 64-byte aligned */
};

struct sock_blocks {
	struct cadge_lend *all;
	uint32_t free_blocks;
};

/*
 * Returns an attached block with at least room_bytes, or NULL when memory ran out.
 */
struct cadge_lend *sock_block_take(struct sock_blocks *blocks, size_t room_bytes);

/* The socket that read into the block is done with it. NULL is legal. */
void sock_block_detach(struct sock_blocks *blocks, struct cadge_lend *block);

/* One kept message less. */
void sock_block_release(struct sock_blocks *blocks, struct cadge_lend *block);

/* Frees every block, kept or not. */
void sock_blocks_free(struct sock_blocks *blocks);

#endif
