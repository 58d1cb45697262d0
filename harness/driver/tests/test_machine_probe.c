/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine probe: two processes share a line by what one tells the other, and nothing else than that. */
#include "engine/machine_probe.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

/* beside others the two may miss each other in a look, and seldom in all */
enum { LOOKS = 200 };

static struct drv_clock the_clock;

/* Two endpoints, with these cores; of one host or of two. */
static struct drv_launch launch_of(struct drv_endpoint endpoints[2], int cpus[2], bool hosts)
{
	static char one[] = "h1", two[] = "h2";

	memset(endpoints, 0, 2 * sizeof(*endpoints));
	for (int e = 0; e < 2; e++) {
		endpoints[e].host = e && hosts ? two : one;
		endpoints[e].cpus[0] = cpus[e];
		endpoints[e].cpus_count = 1;
	}
	return (struct drv_launch){.endpoints = endpoints, .endpoints_count = 2};
}

/* The partner: looks once for each byte that comes, and answers with one. 0, or what went wrong. */
static int partner(const struct drv_launch *launch, int from, int to)
{
	struct drv_machine_probe probe;
	char text[256] = "", turn;
	json_t *offer;
	int bad = 0;

	drv_machine_probe_start(&probe, launch, 1, &the_clock);
	if (read(from, text, sizeof(text) - 1) <= 0 || !(offer = json_loads(text, 0, NULL)))
		return 1;
	drv_machine_probe_accept(&probe, offer);
	json_decref(offer);
	bad |= write(to, "r", 1) == 1 ? 0 : 8;
	for (uint32_t i = 0; read(from, &turn, 1) == 1; i++) {
		const struct drv_machine_probe_values values = drv_machine_probe_measure(&probe, i);

		bad |= values.line_ns >= 0 ? 2 : 0;
		bad |= values.copy_ns > 0 && values.clock_ns > 0 ? 0 : 4;
		bad |= write(to, "r", 1) == 1 ? 0 : 8;
	}
	drv_machine_probe_end(&probe);
	return bad;
}

static void two_processes(bool hosts)
{
	int cpus[2] = {0, 1}, there[2], back[2], status = -1, lines = 0, odd = 0;
	struct drv_endpoint endpoints[2];
	const struct drv_launch launch = launch_of(endpoints, cpus, hosts);
	struct drv_machine_probe_values values = {0};
	struct drv_machine_probe probe;
	json_t *offer;
	char *text, turn;
	bool good;
	pid_t child;

	if (pipe(there) || pipe(back)) {
		tap_ok(false, "no pipe");
		return;
	}
	child = fork();
	if (child == 0) {
		close(there[1]);
		_exit(partner(&launch, there[0], back[1]));
	}
	drv_machine_probe_start(&probe, &launch, 0, &the_clock);
	offer = drv_machine_probe_offer(&probe);
	text = json_dumps(offer, 0);
	tap_ok(hosts == (json_object_size(offer) == 0),
	       hosts ? "of two hosts no line is offered" : "the line is offered");
	good = write(there[1], text, strlen(text)) > 0 && read(back[0], &turn, 1) == 1;
	for (uint32_t i = 0; good && i < LOOKS && lines < 3; i++) {
		good = write(there[1], "l", 1) == 1;
		values = drv_machine_probe_measure(&probe, i);
		lines += values.line_ns > 1;
		odd += values.line_ns >= 0 && (values.line_ns < 1 || values.line_ns > 1e6);
		odd += values.copy_ns < 100 || values.clock_ns < 0.1;
		good = good && read(back[0], &turn, 1) == 1;
	}
	tap_ok(good && !odd && (hosts ? !lines : lines == 3),
	       "%d looks with a line, the last in %.1f ns; a copy in %.0f ns, a "
	       "reading in %.2f ns",
	       lines, values.line_ns, values.copy_ns, values.clock_ns);
	close(there[1]);
	good = child > 0 && waitpid(child, &status, 0) == child && status == 0;
	tap_ok(good, "the partner has copies and readings, and no line of its own (%d)", status);
	drv_machine_probe_end(&probe);
	json_decref(offer);
	free(text);
	close(there[0]);
	close(back[0]);
	close(back[1]);
}

/* The partner never comes, or is another's child in a namespace where our number means something else. */
static void left_alone(void)
{
	int cpus[2] = {0, 1};
	struct drv_endpoint endpoints[2];
	const struct drv_launch launch = launch_of(endpoints, cpus, false);
	struct drv_machine_probe leader, other;
	struct drv_machine_probe_values values;
	json_t *offer;

	drv_machine_probe_start(&leader, &launch, 0, &the_clock);
	values = drv_machine_probe_measure(&leader, 7);
	tap_ok(values.line_ns < 0 && values.copy_ns > 0, "nobody comes: no line, and no end of waiting");
	offer = drv_machine_probe_offer(&leader);
	json_object_set_new(offer, "inode", json_integer(1));
	drv_machine_probe_start(&other, &launch, 1, &the_clock);
	drv_machine_probe_accept(&other, offer);
	tap_ok(!other.line, "a descriptor that is another file than the one offered is not touched");
	drv_machine_probe_end(&other);
	json_object_set_new(offer, "pid", json_string("1"));
	drv_machine_probe_start(&other, &launch, 1, &the_clock);
	drv_machine_probe_accept(&other, offer);
	tap_ok(!other.line, "an offer of the wrong form is none");
	drv_machine_probe_end(&other);
	json_decref(offer);
	drv_machine_probe_end(&leader);
}

/* In one piece, so that one read takes it. */
static bool send_offer(int to, const json_t *offer)
{
	char *text = json_dumps(offer, 0);
	const size_t bytes = text ? strlen(text) : 0;
	const bool sent = text && write(to, text, bytes) == (ssize_t)bytes;

	free(text);
	return sent;
}

/* Dies so long after it has begun to look; SIGALRM ends a process that does not expect it. */
static void look_and_die(struct drv_machine_probe *probe, long after_us)
{
	const struct itimerval timer = {.it_value = {.tv_usec = after_us}};

	setitimer(ITIMER_REAL, &timer, NULL);
	for (uint32_t i = 0;; i++)
		drv_machine_probe_measure(probe, i);
}

/* One of the two is killed in the middle of a look: the other one's ends soon all the same. */
static void killed(bool leader)
{
	enum { TRIALS = 20 };
	int cpus[2] = {0, 1}, there[2], back[2], status, looks = 0, odd = 0;
	struct drv_endpoint endpoints[2];
	const struct drv_launch launch = launch_of(endpoints, cpus, false);
	uint64_t longest_ns = 0;

	for (long trial = 0; trial < TRIALS; trial++) {
		struct drv_machine_probe ours;
		json_t *offer;
		char text[256] = "";
		pid_t child;

		if (pipe(there) || pipe(back) || (child = fork()) < 0) {
			tap_ok(false, "no child");
			return;
		}
		if (child == 0) {
			struct drv_machine_probe theirs;

			drv_machine_probe_start(&theirs, &launch, leader ? 0 : 1, &the_clock);
			if (leader) {
				offer = drv_machine_probe_offer(&theirs);
				if (!send_offer(back[1], offer) || read(there[0], text, 1) != 1)
					_exit(1);
			} else {
				if (read(there[0], text, sizeof(text) - 1) <= 0 ||
				    !(offer = json_loads(text, 0, NULL)))
					_exit(1);
				drv_machine_probe_accept(&theirs, offer);
				if (write(back[1], "r", 1) != 1)
					_exit(1);
			}
			look_and_die(&theirs, 50 + 50 * trial);
		}
		drv_machine_probe_start(&ours, &launch, leader ? 1 : 0, &the_clock);
		if (leader) {
			if (read(back[0], text, sizeof(text) - 1) > 0 &&
			    (offer = json_loads(text, 0, NULL))) {
				drv_machine_probe_accept(&ours, offer);
				json_decref(offer);
			}
			odd += write(there[1], "r", 1) != 1;
		} else {
			offer = drv_machine_probe_offer(&ours);
			odd += !send_offer(there[1], offer) || read(back[0], text, 1) != 1;
			json_decref(offer);
		}
		odd += !ours.line;
		for (uint32_t i = 0; waitpid(child, &status, WNOHANG) == 0 || i == 0; i++, looks++) {
			const uint64_t begun_ns = drv_now_ns();
			const struct drv_machine_probe_values values = drv_machine_probe_measure(&ours, i);
			const uint64_t took_ns = drv_now_ns() - begun_ns;

			longest_ns = took_ns > longest_ns ? took_ns : longest_ns;
			odd += leader ? values.line_ns >= 0 : values.line_ns >= 0 && values.line_ns < 1;
		}
		odd += !WIFSIGNALED(status);
		drv_machine_probe_end(&ours);
		for (int e = 0; e < 2; e++) {
			close(there[e]);
			close(back[e]);
		}
	}
	tap_ok(looks >= TRIALS && !odd && longest_ns < UINT64_C(1000000000),
	       "whoever %s is killed %d times in a look: %d looks of the other one end, after %.1f ms at "
	       "most",
	       leader ? "leads" : "follows", TRIALS, looks, (double)longest_ns / 1e6);
}

/* Cores that are the same, or not known. */
static void no_cores(void)
{
	int same[2] = {0, 0}, unknown[2] = {-1, 1};
	struct drv_endpoint endpoints[2];
	struct drv_launch launch = launch_of(endpoints, same, false);
	struct drv_machine_probe probe;

	drv_machine_probe_start(&probe, &launch, 0, &the_clock);
	tap_ok(!probe.line, "two on one core do not spin on a line");
	drv_machine_probe_end(&probe);
	launch = launch_of(endpoints, unknown, false);
	drv_machine_probe_start(&probe, &launch, 0, &the_clock);
	tap_ok(!probe.line, "nor do two of which one may be on the other's core");
	drv_machine_probe_end(&probe);
}

int main(void)
{
	drv_clock_start(&the_clock, true);
	two_processes(false);
	two_processes(true);
	left_alone();
	killed(false);
	killed(true);
	no_cores();
	return tap_done();
}
