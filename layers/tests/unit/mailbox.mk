# SPDX-License-Identifier: BSD-3-Clause
TEST_SOURCES := wire/mailbox.c wire/mailbox_send.c
TEST_CFLAGS := -DMAILBOX_BEFORE_LOAD=mailbox_before_load
