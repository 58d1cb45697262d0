# SPDX-License-Identifier: BSD-3-Clause
TEST_SOURCES := common/mailbox.c common/mailbox_send.c
TEST_CFLAGS := -DMAILBOX_BEFORE_LOAD=mailbox_before_load
