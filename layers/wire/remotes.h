/* SPDX-License-Identifier: BSD-3-Clause */
/* The regions of peers that a link has attached, where each is in the link's list. A wire's source includes this. */
#include <stdlib.h>

/* Attaches what was read of a key: `new` without its place in the list. */
static int attach(struct cadge_blob_in *key, bool connected, const struct cadge_remote *new,
		  struct cadge_remote **remote_out)
{
	struct cadge_remote *remote;

	if (!key->ok)
		return CADGE_E_ARGUMENT;
	if (!connected)
		return CADGE_E_DOWN;
	remote = malloc(sizeof(*remote));
	if (!remote)
		return CADGE_E_MEMORY;
	*remote = *new;
	CADGE_POOL_GIVE(new->link->remotes, remote);
	*remote_out = remote;
	return CADGE_DONE;
}

void cadge_wire_detach(struct cadge_remote *remote)
{
	(void)CADGE_LIST_REMOVE(remote->link->remotes, remote);
	free(remote);
}

void cadge_wire_detach_all(struct cadge_link *link)
{
	while (link->remotes)
		cadge_wire_detach(link->remotes);
}

static inline bool is_of(const struct cadge_remote *remote, const struct cadge_link *link)
{
	return remote->link == link;
}
