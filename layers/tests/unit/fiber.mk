# SPDX-License-Identifier: BSD-3-Clause
TEST_SOURCES := kit/fiber.c kit/fiber_overflow.c
