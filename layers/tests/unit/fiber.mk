# SPDX-License-Identifier: BSD-3-Clause
TEST_SOURCES := common/fiber.c common/fiber_overflow.c
