/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/wire/wire_tests.h"

int on_wire_conformance(int argc, char **argv)
{
	static const struct rank_test tests[] = {
		{.name = "order_and_once", .run = test_order_and_once, .ranks = 2},
		{.name = "take_drop_send", .run = test_take_drop_send, .ranks = 2},
		{.name = "held_sent_again", .run = test_held_sent_again, .ranks = 2},
		{.name = "up_means_at_once", .run = test_up_means_at_once, .ranks = 2},
		{.name = "all_kept_and_one_more", .run = test_all_kept_and_one_more, .ranks = 3},
		{.name = "lives_do_not_mix", .run = test_lives_do_not_mix, .ranks = 2},
		{.name = "put_quiet_packet", .run = test_put_quiet_packet, .ranks = 2},
		{.name = "puts_in_order", .run = test_puts_in_order, .ranks = 3},
		{.name = "rights_and_bounds", .run = test_rights_and_bounds, .ranks = 2},
		{.name = "refused_at_every_length", .run = test_refused_at_every_length, .ranks = 2},
		{.name = "device_refuses", .run = test_device_refuses, .ranks = 2},
		{.name = "reach_proved", .run = test_reach_proved, .ranks = 2},
		{.name = "swaps_and_adds", .run = test_swaps_and_adds, .ranks = 2},
		{.name = "memory_goes_with_close", .run = test_memory_goes_with_close, .ranks = 2},
		{.name = "peer_dies", .run = test_peer_dies, .ranks = 2, .dies = 2},
		{.name = "new_life_after_death", .run = test_new_life_after_death, .ranks = 3, .dies = 2},
		{.name = "sleeps_and_wakes", .run = test_sleeps_and_wakes, .ranks = 2, .block = true},
	};

	return ranks_run(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
