/* SPDX-License-Identifier: BSD-3-Clause */
/* See reports.h. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conformance.h"
#include "reports.h"

#define VARIABLE "CADGE_SANITIZER_REPORTS" /* ranks get it through the launcher */

static char folder[] = "/tmp/cadge-reports-XXXXXX";
static bool is_prepared;

int reports_prepare(void)
{
	if (!UNDER_SANITIZER)
		return 0;
	if (!mkdtemp(folder) || setenv(VARIABLE, folder, 1)) {
		perror("cadge-conformance: no folder for the sanitizers' reports");
		return -1;
	}
	is_prepared = true;
	return 0;
}

#if UNDER_SANITIZER
void __sanitizer_set_report_path(const char *path); /* of both compilers' sanitizers */
#endif

void reports_begin(void)
{
#if UNDER_SANITIZER
	const char *to = getenv(VARIABLE);
	char path[256];

	if (!to)
		return;
	snprintf(path, sizeof(path), "%s/rank", to); /* the sanitizer adds its process's number */
	__sanitizer_set_report_path(path);
#endif
}

static void take(const char *path, char *summary, size_t summary_bytes)
{
	static const char mark[] = "SUMMARY: ";
	FILE *file = fopen(path, "r");
	char line[1024];

	if (!summary[0])
		snprintf(summary, summary_bytes, "a sanitizer reports on stderr");
	while (file && fgets(line, sizeof(line), file)) {
		fputs(line, stderr);
		if (strncmp(line, mark, sizeof(mark) - 1) == 0)
			snprintf(summary, summary_bytes, "a sanitizer reports on stderr: %.*s",
				 (int)strcspn(line + sizeof(mark) - 1, "\n"), line + sizeof(mark) - 1);
	}
	if (file)
		fclose(file);
	unlink(path);
}

unsigned int reports_take(char *summary, size_t summary_bytes)
{
	DIR *reports = is_prepared ? opendir(folder) : NULL;
	const struct dirent *entry;
	unsigned int count = 0;
	char path[512];

	summary[0] = 0;
	while (reports && (entry = readdir(reports))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%.200s", folder, entry->d_name);
		take(path, summary, summary_bytes);
		count++;
	}
	if (reports)
		closedir(reports);
	return count;
}

void reports_end(void)
{
	if (is_prepared)
		rmdir(folder);
	is_prepared = false;
}
