/* SPDX-License-Identifier: BSD-3-Clause */
/* Resident memory of this process, by what it is. */
#include "measure/rss.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"

#define KIB 1024u

/* One line about the mapping in progress, "Rss:   12 kB". Pages of the hugetlbfs are in no Rss. */
static void take(struct drv_rss *sum, bool shared, const char *name, uint64_t bytes)
{
	if (!strcmp(name, "Rss"))
		*(shared ? &sum->shared_bytes : &sum->file_bytes) += bytes;
	else if (!strcmp(name, "Pss"))
		sum->shared_part_bytes += shared ? bytes : 0;
	else if (!strcmp(name, "Anonymous") && !shared) {
		/* stands behind Rss, of which it is a part */
		sum->private_bytes += bytes;
		sum->file_bytes -= bytes;
	} else if (!strcmp(name, "Shared_Hugetlb") || !strcmp(name, "Private_Hugetlb")) {
		/* how many share such pages is not told: each has all */
		*(shared ? &sum->shared_bytes : &sum->private_bytes) += bytes;
		sum->shared_part_bytes += shared ? bytes : 0;
	}
}

struct drv_rss drv_rss_parse(FILE *text)
{
	struct drv_rss sum = {0};
	bool shared = false;
	char line[512];

	while (fgets(line, sizeof(line), text)) {
		char permissions[5], name[32];
		uint64_t kib;

		if (sscanf(line, "%*x-%*x %4s", permissions) == 1) {
			shared = strchr(permissions, 's') != NULL;
		} else if (sscanf(line, "%31[A-Za-z_]: %" SCNu64 " kB", name, &kib) == 2) {
			take(&sum, shared, name, kib * KIB);
			sum.known = true;
		}
	}
	return sum;
}

struct drv_rss drv_rss_read(void)
{
	FILE *file = fopen("/proc/self/smaps", "re");
	struct drv_rss found = {0};

	if (file) {
		found = drv_rss_parse(file);
		fclose(file);
	}
	return found;
}

static json_t *moment_json(const struct drv_rss *found)
{
	if (!found->known)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o}", "private", drv_json_count(found->private_bytes), "shared",
			 drv_json_count(found->shared_bytes), "shared_part",
			 drv_json_count(found->shared_part_bytes), "file", drv_json_count(found->file_bytes));
}

json_t *drv_rss_json(const struct drv_rss moments[DRV_MOMENTS])
{
	return json_pack("{s:o, s:o, s:o}", "before", moment_json(&moments[DRV_BEFORE]), "opened",
			 moment_json(&moments[DRV_OPENED]), "connected",
			 moment_json(&moments[DRV_CONNECTED]));
}
