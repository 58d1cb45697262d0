/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations on remote memory as wire.h has them, which look before they begin. A wire's source defines what they begin (put_unchecked,
 * get_unchecked, add_unchecked, swap_unchecked: the same arguments), is_of, and word_of (where a region begins for its peer, as far
 * as it can be known), and includes this: one unit for the compiler, so that a put costs no call more.
 */
static int may(const struct cadge_link *link, const struct cadge_remote *remote, uint32_t right,
	       uint64_t offset_bytes, uint64_t bytes)
{
	if (UNLIKELY(!link->state.up))
		return cadge_usable(&link->state);
	if (UNLIKELY(!is_of(remote, link)))
		return CADGE_E_ARGUMENT;
	if (UNLIKELY(!link->wire->trusting && (!(remote->rights & right) || offset_bytes > remote->bytes ||
					       bytes > remote->bytes - offset_bytes)))
		return CADGE_E_REFUSED;
	return UNLIKELY(bytes > link->wire->facts.put_bytes_max) ? CADGE_E_TOO_LARGE : CADGE_DONE;
}

/* The same for an atomic operation, where there is that. */
static int may_change(const struct cadge_link *link, const struct cadge_remote *remote, uint64_t offset_bytes,
		      bool has)
{
	int code;

	if (!has)
		return CADGE_E_UNSUPPORTED;
	code = may(link, remote, CADGE_MAY_ATOMIC, offset_bytes, sizeof(uint64_t));
	return code == CADGE_DONE && (word_of(remote) + offset_bytes) % sizeof(uint64_t) ? CADGE_E_ARGUMENT
											 : code;
}

int cadge_wire_put(struct cadge_link *link, const void *local, size_t bytes,
		   const struct cadge_remote *remote, uint64_t offset_bytes, uint64_t token)
{
	const int code = may(link, remote, CADGE_MAY_WRITE, offset_bytes, bytes);

	return code == CADGE_DONE && bytes ? put_unchecked(link, local, bytes, remote, offset_bytes, token)
					   : code;
}

int cadge_wire_get(struct cadge_link *link, void *local, size_t bytes, const struct cadge_remote *remote,
		   uint64_t offset_bytes, uint64_t token)
{
	const int code = may(link, remote, CADGE_MAY_READ, offset_bytes, bytes);

	return code == CADGE_DONE && bytes ? get_unchecked(link, local, bytes, remote, offset_bytes, token)
					   : code;
}

int cadge_wire_fetch_add(struct cadge_link *link, uint64_t addend, uint64_t *before_out,
			 const struct cadge_remote *remote, uint64_t offset_bytes, uint64_t token)
{
	const int code = may_change(link, remote, offset_bytes, link->wire->facts.adds);

	return code == CADGE_DONE ? add_unchecked(link, addend, before_out, remote, offset_bytes, token)
				  : code;
}

int cadge_wire_compare_swap(struct cadge_link *link, uint64_t expected, uint64_t desired,
			    uint64_t *before_out, const struct cadge_remote *remote, uint64_t offset_bytes,
			    uint64_t token)
{
	const int code = may_change(link, remote, offset_bytes, link->wire->facts.swaps);

	return code == CADGE_DONE
		       ? swap_unchecked(link, expected, desired, before_out, remote, offset_bytes, token)
		       : code;
}
