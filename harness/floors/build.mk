# SPDX-License-Identifier: BSD-3-Clause
#
# The floors' program; included by harness/build.mk, whose rules compile it. AF_XDP is used through system calls, so that
# nothing beyond libc is needed here or on a node.

F_OBJECTS := $(patsubst $(HARNESS_ROOT)/%.c,$(H_OBJ)/%.o,$(sort $(wildcard $(HARNESS_ROOT)/floors/*.c)))

.PHONY: floors
all: floors
floors: $(BUILD)/bin/cadge-floor
$(BUILD)/bin/cadge-floor: $(F_OBJECTS) $(H_LIBRARY)
	@mkdir -p $(@D)
	$(H_QUIET)$(CC) $(H_LDFLAGS) -o $@ $^ $(H_LIBS)
