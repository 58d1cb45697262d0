/* SPDX-License-Identifier: BSD-3-Clause */
/* wait does not look whether a full socket has room again. */
#define FLAW_NO_ROOM_WAKE 1
