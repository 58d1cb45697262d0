/* SPDX-License-Identifier: BSD-3-Clause */
/* See hosts.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/sockios.h>

#include "hosts.h"

extern char **environ;

static const char bridge[] = "cadgebr0";

const char *host_address(unsigned int number)
{
	static const char *const addresses[] = {"198.19.77.11", "198.19.77.12", "198.19.77.13"};

	return addresses[number % 3];
}

static int control_socket(void)
{
	return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

int interface_up(const char *name)
{
	struct ifreq request = {.ifr_flags = IFF_UP | IFF_RUNNING};
	int sock = control_socket(), rc;

	if (sock < 0)
		return -1;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	rc = ioctl(sock, SIOCSIFFLAGS, &request);
	close(sock);
	return rc;
}

static int interface_address(const char *name, const char *address)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct ifreq request = {0};
	int sock = control_socket(), rc;

	if (sock < 0)
		return -1;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	in.sin_addr.s_addr = inet_addr(address);
	memcpy(&request.ifr_addr, &in, sizeof(in));
	rc = ioctl(sock, SIOCSIFADDR, &request);
	in.sin_addr.s_addr = inet_addr("255.255.255.0");
	memcpy(&request.ifr_netmask, &in, sizeof(in));
	if (rc == 0)
		rc = ioctl(sock, SIOCSIFNETMASK, &request);
	close(sock);
	return rc;
}

void hide_kernel_symbols(void)
{
	if (mount("/dev/null", "/proc/kallsyms", NULL, MS_BIND, NULL) < 0)
		return; /* as it was, and slower */
}

int hosts_prepare(void)
{
	int sock = control_socket(), rc;

	if (sock < 0)
		return -1;
	rc = ioctl(sock, SIOCBRADDBR, bridge);
	close(sock);
	return rc < 0 ? -1 : interface_up(bridge);
}

static int byte_wait(int fd)
{
	char byte;
	ssize_t n;

	do {
		n = read(fd, &byte, 1);
	} while (n < 0 && errno == EINTR);
	return n == 1 ? 0 : -1;
}

/*
 * Waits until the kernel says that an interface carries. It says so some time after both ends of a cable are up, and
 * until then has no routes through it; libraries that look for devices do not find it. After 3 s whoever needs it fails.
 */
static void interface_carries(const char *name)
{
	struct ifreq request = {0};
	int sock = control_socket();

	if (sock < 0)
		return;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	for (unsigned int ms = 0; ms < 3000; ms++) {
		if (ioctl(sock, SIOCGIFFLAGS, &request) < 0 || request.ifr_flags & IFF_RUNNING)
			break;
		usleep(1000);
	}
	close(sock);
}

int host_enter(unsigned int number, int ready_fd, int go_fd)
{
	char name[32];

	snprintf(name, sizeof(name), "cadge-host%u", number);
	if (unshare(CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNS) < 0 ||
	    sethostname(name, strlen(name)) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") < 0)
		return -1;
	/*
	 * /sys/class/net shows the network namespace that mounted it, and libraries look for devices there.
	 */
	if (mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return -1;
	if (write(ready_fd, "", 1) != 1 || byte_wait(go_fd) < 0)
		return -1;
	if (interface_up("lo") < 0 || interface_address(HOSTS_DEVICE, host_address(number)) < 0)
		return -1;
	if (interface_up(HOSTS_DEVICE) < 0)
		return -1;
	interface_carries(HOSTS_DEVICE);
	return 0;
}

/* Runs ip with these words, of which the last is NULL. 0 or -1. */
static int ip_run(char *const *words)
{
	int status;
	pid_t ip;

	if (posix_spawnp(&ip, "ip", NULL, NULL, words, environ) != 0)
		return -1;
	while (waitpid(ip, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

int host_of_all(void)
{
	char peer[] = "cable0",
	     *argv[] = {"ip", "link", "add", HOSTS_DEVICE, "type", "veth", "peer", "name", peer, NULL};

	/* as in host_enter */
	if (mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 || ip_run(argv) < 0 ||
	    interface_address(HOSTS_DEVICE, host_address(0)) < 0 || interface_up(peer) < 0 ||
	    interface_up(HOSTS_DEVICE) < 0)
		return -1;
	interface_carries(HOSTS_DEVICE);
	return 0;
}

int host_connect(pid_t pid)
{
	static unsigned int cables;
	char name[16], netns[16];
	char *argv[] = {"ip",   "link", "add",        "name",  name,  "type", "veth",
			"peer", "name", HOSTS_DEVICE, "netns", netns, NULL};
	struct ifreq request = {0};
	int sock, rc;

	snprintf(name, sizeof(name), "cable%u", cables++);
	snprintf(netns, sizeof(netns), "%d", (int)pid);
	if (ip_run(argv) < 0)
		return -1;
	sock = control_socket();
	if (sock < 0)
		return -1;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", bridge);
	request.ifr_ifindex = (int)if_nametoindex(name);
	rc = ioctl(sock, SIOCBRADDIF, &request);
	close(sock);
	return rc < 0 ? -1 : interface_up(name);
}
