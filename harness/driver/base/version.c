/* SPDX-License-Identifier: BSD-3-Clause */
/* What this program is, from the build. */
#include "base/version.h"

/* cadge-version.h is made by the build: CADGE_VERSION, CADGE_REVISION, CADGE_PROFILE */
#include "cadge-version.h"

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

const char *drv_version(void)
{
	return CADGE_VERSION;
}

const char *drv_revision(void)
{
	return CADGE_REVISION;
}

const char *drv_compiler(void)
{
#if defined(__clang__)
	return "clang " TEXT(__clang_major__) "." TEXT(__clang_minor__) "." TEXT(__clang_patchlevel__)
		CADGE_PROFILE;
#else
	return "gcc " TEXT(__GNUC__) "." TEXT(__GNUC_MINOR__) "." TEXT(__GNUC_PATCHLEVEL__) CADGE_PROFILE;
#endif
}
