/* SPDX-License-Identifier: BSD-3-Clause */
/* See stacks.h. */
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cadge/stack.h"
#include "stacks.h"

#define ANSWER_NS (2 * NS_PER_S)

_Static_assert(CADGE_STACK_BYTES <= OOB_BYTES_MAX, "a stack is one packet");

static int answer_sock = -1;

static void on_quit(int number, siginfo_t *info, void *context)
{
	static _Thread_local struct packet p; /* larger than what is left of some stacks */

	(void)number, (void)info;
	p = (struct packet){.kind = PACKET_STACK, .value = (uint32_t)gettid()};
	p.bytes = 1 + (uint32_t)cadge_stack_text(context, (char *)p.data, CADGE_STACK_BYTES);
	if (send(answer_sock, &p, PACKET_HEAD_BYTES + p.bytes, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return; /* the referee says that there was no answer */
}

void stacks_answer(int sock)
{
	const struct sigaction action = {.sa_sigaction = on_quit, .sa_flags = SA_RESTART | SA_SIGINFO};

	cadge_stack_prepare();
	answer_sock = sock;
	if (sigaction(SIGQUIT, &action, NULL) < 0)
		perror("cadge-conformance: hung tests will show no stacks");
}

/* A line of a thread's file in /proc that begins with `key`; "" where there is none. */
static void thread_line(pid_t pid, pid_t thread, const char *name, const char *key, char *line, size_t room)
{
	char path[96];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)thread, name);
	file = fopen(path, "r");
	line[0] = '\0';
	while (file && fgets(line, (int)room, file) && strncmp(line, key, strlen(key)) != 0)
		line[0] = '\0';
	if (file)
		fclose(file);
	line[strcspn(line, "\n")] = '\0';
}

static bool blocks_quit(pid_t pid, pid_t thread)
{
	char line[96];

	thread_line(pid, thread, "status", "SigBlk:", line, sizeof(line));
	return line[0] && strtoull(line + strlen("SigBlk:"), NULL, 16) >> (SIGQUIT - 1) & 1;
}

/* Waits for the answer of one thread; whatever else comes is of a test that has failed. */
static bool take_answer(int sock, pid_t thread, struct packet *p)
{
	const uint64_t until = now_ns() + ANSWER_NS;
	struct pollfd pollfd = {.fd = sock, .events = POLLIN};

	while (now_ns() < until) {
		if (poll(&pollfd, 1, 100) <= 0)
			continue;
		if (recv(sock, p, sizeof(*p), MSG_DONTWAIT) < (ssize_t)PACKET_HEAD_BYTES)
			return false;
		if (p->kind == PACKET_STACK && p->value == (uint32_t)thread)
			return true;
	}
	return false;
}

static void print_thread(const struct set *set, unsigned int number, pid_t thread)
{
	const pid_t pid = set->pids[number];
	char name[64], place[64];
	struct packet p;

	thread_line(pid, thread, "comm", "", name, sizeof(name));
	thread_line(pid, thread, "wchan", "", place, sizeof(place));
	fprintf(stderr, "# rank %u, process %d, thread %d (%s)", number, (int)pid, (int)thread, name);
	if (syscall(SYS_tgkill, pid, thread, SIGQUIT) < 0 || kill(pid, SIGCONT) < 0 ||
	    !take_answer(set->socks[number], thread, &p)) {
		fprintf(stderr, " did not answer; in the kernel it is at %s\n", place[0] ? place : "?");
		return;
	}
	fputs(":\n", stderr);
	p.data[OOB_BYTES_MAX - 1] = '\0';
	for (char *rest = (char *)p.data, *line; (line = strsep(&rest, "\n")) && *line;)
		fprintf(stderr, "# %s\n", line);
}

void stacks_print(struct set *set, const char *test)
{
	fprintf(stderr, "# %s: what the ranks were doing, innermost first\n", test);
	for (unsigned int i = 0; i < set->ranks; i++) {
		char path[64];
		const struct dirent *entry;
		unsigned int silent = 0;
		DIR *threads;

		snprintf(path, sizeof(path), "/proc/%d/task", (int)set->pids[i]);
		threads = set->pids[i] > 0 && set->socks[i] >= 0 ? opendir(path) : NULL;
		while (threads && (entry = readdir(threads)))
			if (entry->d_name[0] != '.' && blocks_quit(set->pids[i], (pid_t)atoi(entry->d_name)))
				silent++;
			else if (entry->d_name[0] != '.')
				print_thread(set, i, (pid_t)atoi(entry->d_name));
		if (threads)
			closedir(threads);
		if (silent)
			fprintf(stderr, "# rank %u: threads that block signals, and so show no stack: %u\n",
				i, silent);
	}
	fflush(stderr);
}
