/* SPDX-License-Identifier: BSD-3-Clause */
/* What verbs makes of a style: it is for two hosts. */
#ifndef CADGE_WIRE_VERBS_STYLE_H
#define CADGE_WIRE_VERBS_STYLE_H

#include "wire/style.h"

#define CADGE_VERBS_CAPS(caps) ((caps) & ~CADGE_CAP_HOST)

#endif
