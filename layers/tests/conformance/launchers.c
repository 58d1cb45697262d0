/* SPDX-License-Identifier: BSD-3-Clause */
/* See launchers.h. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launchers.h"

enum { OPTIONS_MAX = 4, VARIABLES_MAX = 8, WORDS_MAX = 80 };

static const struct launcher {
	const char *says; /* a word of what it answers to --version */
	const char *options[OPTIONS_MAX + 1], *to_survive[OPTIONS_MAX + 1];
	const char *variables[VARIABLES_MAX + 1][2], *variables_to_survive[VARIABLES_MAX + 1][2];
} launchers[] = {
	{
		.says = "Open MPI",
		/* By environment: versions 4 and 5 each read their own and ignore the other's. */
		.variables = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
			      {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
			      {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
			      {"OMPI_MCA_hwloc_base_binding_policy", "none"},
			      {"PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"},
			      {"PRTE_MCA_hwloc_default_binding_policy", "none"}},
		.variables_to_survive = {{"OMPI_MCA_orte_enable_recovery", "1"},
					 {"PRTE_MCA_state_base_recoverable", "1"}},
	},
	{
		.says = "HYDRA",
		.options = {"-bind-to", "none"},
		.to_survive = {"-disable-auto-cleanup"},
	},
};

enum { LAUNCHERS = sizeof(launchers) / sizeof(launchers[0]) };

/* NULL with errno, or with 0 where it is none of these. */
static const struct launcher *ask(const char *program)
{
	char command[PATH_MAX + 32], said[4096];
	size_t bytes;
	FILE *answer;
	int status;

	snprintf(command, sizeof(command), "'%s' --version 2>/dev/null", program);
	answer = popen(command, "re");
	if (!answer)
		return NULL;
	bytes = fread(said, 1, sizeof(said) - 1, answer);
	said[bytes] = '\0';
	status = pclose(answer);
	for (size_t i = 0; i < LAUNCHERS; i++)
		if (strstr(said, launchers[i].says))
			return &launchers[i];
	errno = status ? ENOENT : 0; /* the shell found no such program, or it does not answer */
	return NULL;
}

static void set_all(const char *const variables[][2])
{
	for (; (*variables)[0]; variables++)
		setenv((*variables)[0], (*variables)[1], 1);
}

static size_t append(char **words, size_t n, const char *const *more)
{
	for (; *more && n < WORDS_MAX - 1; more++)
		words[n++] = (char *)(uintptr_t)*more;
	return n;
}

void launcher_become(const char *program, unsigned int ranks, bool survive, char *const *command)
{
	const struct launcher *launcher = ask(program);
	char count[16], *words[WORDS_MAX];
	const char *const counted[] = {"-n", count, NULL};
	size_t n;

	if (!launcher)
		return;
	set_all(launcher->variables);
	if (survive)
		set_all(launcher->variables_to_survive);
	snprintf(count, sizeof(count), "%u", ranks);
	n = append(words, 0, (const char *const[]){program, NULL});
	n = append(words, n, launcher->options);
	if (survive)
		n = append(words, n, launcher->to_survive);
	n = append(words, n, counted);
	n = append(words, n, (const char *const *)command);
	words[n] = NULL;
	execvp(words[0], words);
}

const char *launcher_rank(void)
{
	static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
	const char *number = NULL;

	for (size_t i = 0; !number && i < sizeof(names) / sizeof(names[0]); i++)
		number = getenv(names[i]);
	return number;
}

bool process_ends(pid_t pid, int within_ms)
{
	struct pollfd life = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	bool ended;

	if (life.fd < 0)
		return errno == ESRCH;
	ended = poll(&life, 1, within_ms) == 1;
	close(life.fd);
	return ended;
}
