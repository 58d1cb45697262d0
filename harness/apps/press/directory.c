/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/directory.h"

#include <stdlib.h>

int press_directory_start(struct press_directory *directory, uint32_t files, uint32_t self)
{
	*directory = (struct press_directory){.files = files, .self = self};
	directory->holders = calloc(files, sizeof(*directory->holders));
	return directory->holders ? 0 : -1;
}

void press_directory_free(struct press_directory *directory)
{
	free(directory->holders);
	directory->holders = NULL;
}

void press_directory_forget(struct press_directory *directory, uint32_t node)
{
	for (uint32_t file = 0; file < directory->files; file++)
		press_directory_note(directory, file, node, false);
	directory->load[node] = 0;
}

uint32_t press_directory_choose(const struct press_directory *directory, uint32_t file)
{
	const uint32_t self = directory->self;
	uint64_t holders = directory->holders[file];
	uint32_t best = self;

	if (!holders || holders >> self & 1)
		return self;
	best = (uint32_t)__builtin_ctzll(holders);
	for (holders &= holders - 1; holders; holders &= holders - 1) {
		const uint32_t node = (uint32_t)__builtin_ctzll(holders);

		/* among equals the one that comes next after ours, so that not all nodes choose the same */
		if (directory->load[node] < directory->load[best] ||
		    (directory->load[node] == directory->load[best] && best < self && node > self))
			best = node;
	}
	return directory->load[best] > PRESS_OVERLOAD && 2 * directory->load[self] < directory->load[best]
		       ? self
		       : best;
}
