/* SPDX-License-Identifier: BSD-3-Clause */
#include "sockets/blocks.h"

#include <stdlib.h>

enum { FREE_BLOCKS_MAX = 8, BLOCK_ALIGN = 64 };

static bool is_free(const struct cadge_lend *block)
{
	return !block->attached && !block->keeps;
}

static void unlink_and_free(struct sock_blocks *blocks, struct cadge_lend *block)
{
	if (block->previous)
		block->previous->next = block->next;
	else
		blocks->all = block->next;
	if (block->next)
		block->next->previous = block->previous;
	free(block->data);
	free(block);
}

struct cadge_lend *sock_block_take(struct sock_blocks *blocks, size_t room_bytes)
{
	struct cadge_lend *block;

	for (block = blocks->free_blocks ? blocks->all : NULL; block; block = block->next) {
		if (!is_free(block) || block->room_bytes < room_bytes)
			continue;
		block->attached = true;
		blocks->free_blocks--;
		return block;
	}
	block = calloc(1, sizeof(*block));
	if (!block)
		return NULL;
	block->room_bytes = (room_bytes + BLOCK_ALIGN - 1) & ~(size_t)(BLOCK_ALIGN - 1);
	block->data = aligned_alloc(BLOCK_ALIGN, block->room_bytes);
	if (!block->data) {
		free(block);
		return NULL;
	}
	block->attached = true;
	block->next = blocks->all;
	if (block->next)
		block->next->previous = block;
	blocks->all = block;
	return block;
}

static void now_free(struct sock_blocks *blocks, struct cadge_lend *block)
{
	if (blocks->free_blocks == FREE_BLOCKS_MAX)
		unlink_and_free(blocks, block);
	else
		blocks->free_blocks++;
}

void sock_block_detach(struct sock_blocks *blocks, struct cadge_lend *block)
{
	if (!block)
		return;
	block->attached = false;
	if (is_free(block))
		now_free(blocks, block);
}

void sock_block_release(struct sock_blocks *blocks, struct cadge_lend *block)
{
	block->keeps--;
	if (is_free(block))
		now_free(blocks, block);
}

void sock_blocks_free(struct sock_blocks *blocks)
{
	while (blocks->all)
		unlink_and_free(blocks, blocks->all);
	blocks->free_blocks = 0;
}
