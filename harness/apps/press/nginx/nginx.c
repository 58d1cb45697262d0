/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/nginx/nginx.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure/clock.h"
#include "press/http/dial.h"
#include "press/nginx/nginx_parts.h"
#include "measure/usage.h"

#define ANSWER_NS     UINT64_C(10000000000)
#define NAP_MS        10
#define NAP_US        1000
#define STATUS_BYTES  1024u
#define REQUESTS_MARK "server accepts handled requests"
#define SPARE         64u
#define CLOSE_ON_EXEC 4u /* CLOSE_RANGE_CLOEXEC, which older headers lack */

/* The program, as PATH has it, in which an agent has the system's own folders as well. */
static bool find_program(char out[PATH_MAX])
{
	for (const char *at = getenv("PATH"); at && *at;) {
		const size_t bytes = strcspn(at, ":");

		if (bytes && snprintf(out, PATH_MAX, "%.*s/nginx", (int)bytes, at) < PATH_MAX &&
		    !access(out, X_OK))
			return true;
		at += bytes + (at[bytes] == ':');
	}
	return false;
}

/* A port that its listening socket can share with this one: both say SO_REUSEPORT, and have one user. */
static int reserve(struct press_nginx *nginx, enum press_nginx_door door)
{
	struct sockaddr_storage at = {.ss_family = AF_UNSPEC};
	struct sockaddr_in *four = (struct sockaddr_in *)&at;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&at;
	socklen_t bytes = sizeof(at);
	const int yes = 1;
	int fd;

	if (inet_pton(AF_INET, nginx->addresses[door], &four->sin_addr) == 1)
		at.ss_family = AF_INET;
	else if (inet_pton(AF_INET6, nginx->addresses[door], &six->sin6_addr) == 1)
		at.ss_family = AF_INET6;
	fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	nginx->reserved[door] = fd;
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof(yes)) ||
	    bind(fd, (struct sockaddr *)&at, at.ss_family == AF_INET ? sizeof(*four) : sizeof(*six)) ||
	    getsockname(fd, (struct sockaddr *)&at, &bytes))
		return -1;
	nginx->ports[door] = ntohs(at.ss_family == AF_INET ? four->sin_port : six->sin6_port);
	return 0;
}

static void free_ports(struct press_nginx *nginx)
{
	for (int door = 0; door < PRESS_NGINX_DOORS; door++) {
		if (nginx->reserved[door] >= 0)
			close(nginx->reserved[door]);
		nginx->reserved[door] = -1;
	}
}

void press_nginx_name(char out[PRESS_NGINX_NAME_BYTES], const char *address, uint16_t port)
{
	const bool six = strchr(address, ':') != NULL;

	snprintf(out, PRESS_NGINX_NAME_BYTES, "%s%s%s:%u", six ? "[" : "", address, six ? "]" : "", port);
}

int press_nginx_prepare(struct press_nginx *nginx, const struct drv_endpoint *endpoint, struct drv_fail *fail)
{
	const char *const addresses[PRESS_NGINX_DOORS] = {
		[PRESS_NGINX_FRONT] = press_client_address(endpoint),
		[PRESS_NGINX_BACK] = press_node_address(endpoint),
	};
	char program[PATH_MAX];

	*nginx = (struct press_nginx){.reserved = {-1, -1}};
	for (int door = 0; door < PRESS_NGINX_DOORS; door++) {
		const bool six = strchr(addresses[door], ':') != NULL;

		snprintf(nginx->addresses[door], sizeof(nginx->addresses[door]), "%s", addresses[door]);
		snprintf(nginx->hosts[door], sizeof(nginx->hosts[door]), "%s%s%s", six ? "[" : "",
			 addresses[door], six ? "]" : "");
	}
	if (!find_program(program))
		return drv_fail_set(fail, DRV_NODE_LACKS,
				    "there is no program nginx here: install Debian's package nginx, whose "
				    "service need not run");
	for (int door = 0; door < PRESS_NGINX_DOORS; door++)
		if (reserve(nginx, (enum press_nginx_door)door))
			return drv_fail_set(fail, DRV_SYSTEM, "no port for nginx at %s: %s", addresses[door],
					    strerror(errno));
	return press_nginx_folder(nginx, fail);
}

/* After fork, in a process that may have had threads: system calls alone. */
static _Noreturn void be_nginx(const char *program, char *const *argv, int output, pid_t parent)
{
	/* nothing of our environment is its business */
	char *const environment[] = {NULL};
	struct rlimit limit;
	sigset_t none;

	sigemptyset(&none);
	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(70);
	if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, CLOSE_ON_EXEC))
		_exit(71);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execve(program, argv, environment);
	_exit(127);
}

static int start_process(struct press_nginx *nginx, struct drv_fail *fail)
{
	char program[PATH_MAX], configuration[PATH_MAX], log[PATH_MAX];
	char *const argv[] = {(char *)(uintptr_t)"nginx",
			      (char *)(uintptr_t)"-p",
			      nginx->folder,
			      (char *)(uintptr_t)"-c",
			      configuration,
			      (char *)(uintptr_t)"-e",
			      log,
			      NULL};
	const pid_t parent = getpid();
	int output;

	if (!find_program(program))
		return drv_fail_set(fail, DRV_NODE_LACKS, "the program nginx has gone");
	press_nginx_path(nginx, "nginx.conf", configuration);
	press_nginx_path(nginx, "error.log", log);
	output = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (output < 0)
		return drv_fail_set(fail, DRV_SYSTEM, "cannot write %s: %s", log, strerror(errno));
	nginx->pid = fork();
	if (nginx->pid == 0)
		be_nginx(program, argv, output, parent);
	close(output);
	if (nginx->pid < 0) {
		nginx->pid = 0;
		return drv_fail_set(fail, DRV_SYSTEM, "cannot start nginx: %s", strerror(errno));
	}
	return drv_usage_follow(nginx->pid)
		       ? drv_fail_set(fail, DRV_SYSTEM, "cannot tell what nginx uses: %s", strerror(errno))
		       : 0;
}

int press_nginx_check(struct press_nginx *nginx, struct drv_fail *fail)
{
	siginfo_t ended = {.si_pid = 0};
	char output[PRESS_NGINX_LOG_TAIL_BYTES];

	/* left where it is: what it has used can still be read */
	if (!nginx->pid || waitid(P_PID, (id_t)nginx->pid, &ended, WEXITED | WNOHANG | WNOWAIT) ||
	    ended.si_pid == 0)
		return 0;
	press_nginx_log_tail(nginx, output);
	return drv_fail_set(fail, DRV_LIBRARY, "nginx ended with %s %d%s%s",
			    ended.si_code == CLD_EXITED ? "status" : "signal", ended.si_status,
			    *output ? ": " : ", and said nothing", output);
}

/* Reads to the end of its answer, while it lives. 0 and a text, or -1 with the reason. */
static int read_answer(struct press_nginx *nginx, int fd, char text[STATUS_BYTES], struct drv_fail *fail)
{
	const uint64_t until_ns = drv_now_ns() + ANSWER_NS;
	size_t used = 0;

	while (used + 1 < STATUS_BYTES) {
		struct pollfd entry = {.fd = fd, .events = POLLIN};
		ssize_t got;

		if (poll(&entry, 1, NAP_MS) <= 0) {
			if (press_nginx_check(nginx, fail))
				return -1;
			if (drv_now_ns() > until_ns)
				return drv_fail_set(fail, DRV_DEADLINE, "nginx gave no answer in %d s",
						    (int)(ANSWER_NS / UINT64_C(1000000000)));
			continue;
		}
		got = recv(fd, text + used, STATUS_BYTES - 1 - used, MSG_DONTWAIT);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (got < 0)
			return drv_fail_set(fail, DRV_LIBRARY, "nginx ended a connection: %s",
					    strerror(errno));
		if (got == 0)
			break;
		used += (size_t)got;
	}
	text[used] = '\0';
	return 0;
}

int press_nginx_requests(struct press_nginx *nginx, uint64_t *requests_out, struct drv_fail *fail)
{
	static const char question[] = "GET /status HTTP/1.0\r\n\r\n";
	char text[STATUS_BYTES];
	struct drv_fail why;
	uint64_t requests;
	const char *at;
	int fd, status;

	fd = press_dial(nginx->addresses[PRESS_NGINX_BACK], nginx->ports[PRESS_NGINX_BACK]);
	if (fd < 0 || send(fd, question, sizeof(question) - 1, MSG_NOSIGNAL) != sizeof(question) - 1) {
		drv_fail_set(fail, DRV_LIBRARY, "nginx cannot be asked: %s", strerror(errno));
		status = -1;
	} else {
		status = read_answer(nginx, fd, text, fail);
	}
	if (fd >= 0)
		close(fd);
	if (status) {
		/* it may be that it is just ending: then that is the reason */
		usleep(NAP_US);
		if (press_nginx_check(nginx, &why))
			*fail = why;
		return -1;
	}
	at = strstr(text, REQUESTS_MARK);
	if (!at || sscanf(at + strlen(REQUESTS_MARK), " %*u %*u %" SCNu64, &requests) != 1)
		return drv_fail_set(fail, DRV_PROTOCOL, "nginx gave no counts: %.80s", text);
	*requests_out = requests - ++nginx->asked;
	return 0;
}

/* Until it listens. */
static int await_doors(struct press_nginx *nginx, struct drv_fail *fail)
{
	const uint64_t until_ns = drv_now_ns() + ANSWER_NS;

	for (;;) {
		const int fd = press_dial(nginx->addresses[PRESS_NGINX_BACK], nginx->ports[PRESS_NGINX_BACK]),
			  why = errno;

		if (fd >= 0) {
			close(fd);
			return 0;
		}
		if (press_nginx_check(nginx, fail))
			return -1;
		if (why != ECONNREFUSED || drv_now_ns() > until_ns)
			return drv_fail_set(fail, DRV_LIBRARY, "nginx does not listen: %s", strerror(why));
		usleep(NAP_US);
	}
}

/* As many files as it may keep open beside its connections: all of them as a rule. */
static int choose_limits(struct press_nginx_plan *plan, uint32_t files, struct drv_fail *fail)
{
	/* a client's connection and the one to the node that has the file, on either side */
	const uint64_t sockets = 4 * (uint64_t)plan->nodes * plan->connections + SPARE;
	const uint64_t wanted = files + SPARE;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return drv_fail_set(fail, DRV_SYSTEM, "getrlimit: %s", strerror(errno));
	if (limit.rlim_max < sockets + 2 * SPARE)
		return drv_fail_set(fail, DRV_NODE_LACKS,
				    "a process may have %" PRIu64 " open files, and nginx needs %" PRIu64
				    " for connections alone",
				    (uint64_t)limit.rlim_max, sockets + 2 * SPARE);
	plan->sockets = (uint32_t)sockets;
	plan->files =
		(uint32_t)(wanted < limit.rlim_max - sockets - SPARE ? wanted
								     : limit.rlim_max - sockets - SPARE);
	return 0;
}

int press_nginx_start(struct press_nginx *nginx, const struct press_files *files, const char *const *owners,
		      uint32_t self, uint32_t nodes, uint32_t connections, struct drv_fail *fail)
{
	struct press_nginx_plan plan = {
		.folder = nginx->folder,
		.hosts = {nginx->hosts[PRESS_NGINX_FRONT], nginx->hosts[PRESS_NGINX_BACK]},
		.ports = {nginx->ports[PRESS_NGINX_FRONT], nginx->ports[PRESS_NGINX_BACK]},
		.owners = owners,
		.nodes = nodes,
		.connections = connections};
	struct press_ring ring;
	uint64_t requests;
	int status;

	if (choose_limits(&plan, files->count, fail))
		return -1;
	status = press_ring_make(&ring, owners, nodes)
			 ? drv_fail_set(fail, DRV_MEMORY, "no memory for a ring of %u nodes", nodes)
			 : press_nginx_files(nginx, files, &ring, self, fail);
	press_ring_free(&ring);
	return status || press_nginx_configure(&plan, nginx, fail) || start_process(nginx, fail) ||
			       await_doors(nginx, fail) || press_nginx_requests(nginx, &requests, fail)
		       ? -1
		       : 0;
}

void press_nginx_end(struct press_nginx *nginx)
{
	if (nginx->pid) {
		drv_usage_leave();
		kill(nginx->pid, SIGKILL);
		while (waitpid(nginx->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	nginx->pid = 0;
	free_ports(nginx);
	press_nginx_clear(nginx);
}
