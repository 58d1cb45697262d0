/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/ofi/params.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <rdma/fabric.h>

#define RXM_EAGER_BYTES 16384u /* of libfabric 1.17 to 2.1, where it says nothing */

static const char shm_prefix[] = "FI_SHM_", rxm_prefix[] = "FI_OFI_RXM_";
static const char *const shm_names[] = {"disable_cma", "use_xpmem", "sar_threshold", NULL};
static const char *const rxm_names[] = {"buffer_size", "eager_limit", "sar_limit", NULL};

static const struct fi_param *find(const struct fi_param *params, int count, const char *prefix,
				   const char *name)
{
	const size_t prefix_bytes = strlen(prefix);

	for (int i = 0; i < count; i++)
		if (!strncmp(params[i].name, prefix, prefix_bytes) &&
		    !strcasecmp(params[i].name + prefix_bytes, name))
			return &params[i];
	return NULL;
}

/* The word after the last "default" of a help text: "... (default 16384)", "... Default: false". */
static void default_of(const char *help, char *word, size_t word_bytes)
{
	const char *at = NULL;
	size_t used = 0;

	for (const char *from = help; (from = strcasestr(from, "default")); from += strlen("default"))
		at = from + strlen("default");
	if (at)
		at += strspn(at, ": ");
	for (; at && (isalnum((unsigned char)*at) || *at == '_') && used + 1 < word_bytes; at++)
		word[used++] = *at;
	word[used] = '\0';
}

static bool is_yes(const char *word)
{
	return !strcasecmp(word, "yes") || !strcasecmp(word, "true") || !strcasecmp(word, "on") ||
	       !strcmp(word, "1");
}

/* What holds for a parameter; empty where the library does not say. */
static void value_of(const struct fi_param *param, char *word, size_t word_bytes)
{
	if (param->value)
		snprintf(word, word_bytes, "%s", param->value);
	else
		default_of(param->help_string ? param->help_string : "", word, word_bytes);
	if (*word && param->type == FI_PARAM_BOOL)
		snprintf(word, word_bytes, "%s", is_yes(word) ? "yes" : "no");
}

/* What the library says of one parameter; empty where it does not say. */
static void read_param(const char *prefix, const char *name, char *word, size_t word_bytes)
{
	const struct fi_param *param;
	struct fi_param *params = NULL;
	int count = 0;

	word[0] = '\0';
	if (fi_getparams(&params, &count))
		return;
	param = find(params, count, prefix, name);
	if (param)
		value_of(param, word, word_bytes);
	fi_freeparams(params);
}

void cadge_ofi_params(bool network, char *text, size_t text_bytes)
{
	const char *const *name = network ? rxm_names : shm_names;
	size_t used = 0;

	text[0] = '\0';
	for (; *name && used < text_bytes; name++) {
		char word[32];

		read_param(network ? rxm_prefix : shm_prefix, *name, word, sizeof(word));
		if (*word)
			used += (size_t)snprintf(text + used, text_bytes - used, "; %s %s", *name, word);
	}
}

bool cadge_ofi_cma_disabled(void)
{
	char word[32];

	read_param(shm_prefix, "disable_cma", word, sizeof(word));
	return is_yes(word);
}

bool cadge_ofi_keeps_regions(void)
{
	char word[32];

	read_param("FI_", "mr_cache_max_count", word, sizeof(word));
	return strcmp(word, "0") != 0;
}

uint64_t cadge_ofi_eager_bytes(void)
{
	uint64_t bytes;
	char word[32], *end;

	read_param(rxm_prefix, "buffer_size", word, sizeof(word));
	errno = 0;
	bytes = strtoull(word, &end, 0);
	return end == word || *end || errno ? RXM_EAGER_BYTES : bytes;
}
