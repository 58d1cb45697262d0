# SPDX-License-Identifier: BSD-3-Clause
TEST_SOURCES := common/mailbox.c common/mailbox_send.c
