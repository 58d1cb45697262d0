/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading what ucp_ep_print_info writes: the texts are those of UCX 1.13 and 1.18 for two processes of a host and
 * for TCP, cut to the lines that matter.
 */
#include <string.h>

#include "wire/ucx/path.h"
#include "tests/unit/support/tap.h"

static struct cadge_ucx_path reading(const char *words, const char *device)
{
	struct cadge_ucx_path path;
	char text[4096];

	snprintf(text, sizeof(text), "%s", words);
	cadge_ucx_path_read(text, device, &path);
	return path;
}

static void lines(void)
{
	struct cadge_ucx_path path =
		reading("#\n# UCP endpoint \n#\n#               peer: <no debug data>\n"
			"#                 lane[0]:  0:sysv/memory.0 md[0]           -> "
			"md[0]/sysv/sysdev[255] am am_bw#0\n"
			"#                 lane[1]:  2:cma/memory.0 md[2]            -> "
			"md[2]/cma/sysdev[255] rma_bw#0\n#\n"
			"#                 am_send: 0..<egr/short>..93..<egr/bcopy>..8256..<rndv>..(inf)\n#\n"
			"#                  rma_bw: mds rndv_rkey_size 9\n",
			"lo");

	ok(!strcmp(path.lanes, "am am_bw#0: sysv/memory; rma_bw#0: cma/memory") && path.memory &&
		   !path.network && path.other,
	   "lanes of shared memory (%s)", path.lanes);
	ok(path.rendezvous_bytes == 8256 &&
		   !strcmp(path.sends, "am_send: 0..<egr/short>..93..<egr/bcopy>..8256..<rndv>..(inf)"),
	   "where the rendezvous begins (%s)", path.sends);
	ok(!path.copies_between, "who prints a line sends messages to memory that is not mapped");
	path = reading("#                 lane[0]:  0:tcp/lo.0 md[0]                -> md[0]/tcp/sysdev[255] "
		       "rma_bw#0 am am_bw#0 wireup\n#\n"
		       "#                 am_send: 0..<egr/short>..8185..<egr/zcopy>..20553..<rndv>..(inf)\n",
		       "eth0");
	ok(path.network && !path.memory && !path.other && path.foreign && !strcmp(path.device, "lo") &&
		   path.rendezvous_bytes == 20553,
	   "TCP on another device than asked");
	ok(!path.atomics, "and not for atomic operations");
	path = reading("#                 lane[0]:  0:rc_verbs/rxe0:1.0 md[0]       -> md[0]/ib/sysdev[255] "
		       "rma#0 amo#0 am am_bw#0 wireup\n",
		       "rxe0:1");
	ok(path.network && path.other && !path.foreign && path.atomics && !strcmp(path.device, "rxe0:1"),
	   "verbs on the device that was asked for, atomic operations too (%s)", path.device);
	path = reading("#                 am_send: 0..<egr/short>..93..<egr/bcopy>..(inf)\n", "lo");
	ok(!path.rendezvous_bytes && !path.all_rendezvous && *path.sends, "no rendezvous at all is none");
	path = reading("#                 am_send: 0..<rndv>..(inf)\n", "lo");
	ok(*path.sends && !path.rendezvous_bytes && path.all_rendezvous,
	   "nothing eager is no length, and all by rendezvous");
}

static void tables(void)
{
	struct cadge_ucx_path path = reading(
		"#                 lane[0]:  1:posix/memory.0 md[1]  -> md[1]/posix/sysdev[255] am\n#\n"
		"# +----------------------+------------------------------------------------+\n"
		"# | ucx_unit self cfg#1  | active message by ucp_am_send* from host memory |\n"
		"# +----------------------+-----------------------------------+--------------+\n"
		"# |                0..92 | short                             | posix/memory |\n"
		"# |             93..8256 | copy-in                           | posix/memory |\n"
		"# |            8257..64K | (?) rendezvous copy from attached | cma/memory   |\n"
		"# |          65537..inf  | (?) rendezvous zero-copy          | cma/memory   |\n"
		"# +----------------------+-----------------------------------+--------------+\n"
		"#\n"
		"# +----------------------+------------------------------------------------+\n"
		"# | ucx_unit self cfg#1  | active message by ucp_am_send* with reply flag  |\n"
		"# +----------------------+-----------------------------------+--------------+\n"
		"# |                0..84 | short                             | posix/memory |\n",
		"lo");

	ok(path.rendezvous_bytes == 8257, "the first row of a rendezvous counts (%llu)",
	   (unsigned long long)path.rendezvous_bytes);
	ok(!strcmp(path.sends, "am_send: 0..92 <short>, 93..8256 <copy-in>, 8257..64K <(?) rendezvous copy "
			       "from attached>, 65537..inf <(?) rendezvous zero-copy>"),
	   "the rows of the sends alone (%s)", path.sends);
	ok(!path.copies_between, "who has no lane for it does not copy between processes");
	path = reading("# lane[0]:  4:cma/memory.0 md[4]  -> md[4]/cma/sysdev[255] rma_bw#0\n"
		       "# | a cfg#1 | active message by ucp_am_send* from host memory |\n",
		       "lo");
	ok(path.copies_between, "who prints tables and has one does");
	path = reading("# | a cfg#1 | active message by ucp_am_send* from host memory |\n# +--+\n"
		       "# | 0..64K | multi-frag copy-in | tcp/eth0 |\n# | 65537..inf | rendezvous fragmented "
		       "| x |\n",
		       "eth0");
	ok(path.rendezvous_bytes == 65537, "lengths in KiB are read");
}

static void strange(void)
{
	static const char *const texts[] = {"",
					    "lane[",
					    "lane[0]: 0:tcp",
					    "am_send: ",
					    "am_send: ..<rndv>",
					    "| active message by ucp_am_send* from",
					    "| active message by ucp_am_send* from\n+\n|",
					    "| active message by ucp_am_send* from\n+\n||||\n| | | |"};
	char longer[8192];

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct cadge_ucx_path path = reading(texts[i], "lo");

		ok(!path.rendezvous_bytes && !path.memory && !path.network, "nothing is made of text %zu", i);
	}
	strcpy(longer, "| active message by ucp_am_send* from\n+\n");
	for (int i = 0; i < 60; i++)
		strcat(longer, "| 0..1 | a row that is rather long for what it says | x |\n");
	ok(strlen(reading(longer, "lo").sends) < sizeof(((struct cadge_ucx_path *)0)->sends),
	   "a long table is cut");
}

int main(void)
{
	lines();
	tables();
	strange();
	return tap_done();
}
