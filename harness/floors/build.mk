# SPDX-License-Identifier: BSD-3-Clause
#
# The floors' program; included by harness/build.mk, whose rules compile it. AF_XDP is used through system calls, so that
# nothing beyond libc is needed here or on a node; the socket is that of Peregrine's engine, one file that stands alone.

F_XDP_SOCKET := $(H_OBJ)/floors/engine/xdp_socket.o
F_OBJECTS := $(patsubst $(HARNESS_ROOT)/%.c,$(H_OBJ)/%.o,$(sort $(wildcard $(HARNESS_ROOT)/floors/*.c))) $(F_XDP_SOCKET)
$(H_OBJ)/floors/%.o: private H_INCLUDES += -I$(LAYERS_ROOT)
$(F_XDP_SOCKET): $(LAYERS_ROOT)/peregrine/engine/xdp_socket.c $(H_OBJ)/flags
	@mkdir -p $(@D)
	$(H_QUIET)$(CC) $(H_CFLAGS) -MMD -MP -c $< -o $@

.PHONY: floors
all: floors
floors: $(BUILD)/bin/cadge-floor
$(BUILD)/bin/cadge-floor: $(F_OBJECTS) $(H_LIBRARY)
	@mkdir -p $(@D)
	$(H_QUIET)$(CC) $(H_LDFLAGS) -o $@ $^ $(H_LIBS)
