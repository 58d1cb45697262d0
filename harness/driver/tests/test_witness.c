/* SPDX-License-Identifier: BSD-3-Clause */
/* The state witness: two processes share a line by what one tells the other, and nothing else than that. */
#include "witness.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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
	struct drv_witness witness;
	char text[256] = "", turn;
	json_t *offer;
	int bad = 0;

	drv_witness_start(&witness, launch, 1, &the_clock);
	if (read(from, text, sizeof(text) - 1) <= 0 || !(offer = json_loads(text, 0, NULL)))
		return 1;
	drv_witness_accept(&witness, offer);
	json_decref(offer);
	bad |= write(to, "r", 1) == 1 ? 0 : 8;
	for (uint32_t i = 0; read(from, &turn, 1) == 1; i++) {
		const struct drv_witness_values values = drv_witness_look(&witness, i);

		bad |= values.line_ns >= 0 ? 2 : 0;
		bad |= values.copy_ns > 0 && values.clock_ns > 0 ? 0 : 4;
		bad |= write(to, "r", 1) == 1 ? 0 : 8;
	}
	drv_witness_end(&witness);
	return bad;
}

static void two_processes(bool hosts)
{
	int cpus[2] = {0, 1}, there[2], back[2], status = -1, lines = 0, odd = 0;
	struct drv_endpoint endpoints[2];
	const struct drv_launch launch = launch_of(endpoints, cpus, hosts);
	struct drv_witness_values values = {0};
	struct drv_witness witness;
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
	drv_witness_start(&witness, &launch, 0, &the_clock);
	offer = drv_witness_offer(&witness);
	text = json_dumps(offer, 0);
	tap_ok(hosts == (json_object_size(offer) == 0),
	       hosts ? "of two hosts no line is offered" : "the line is offered");
	good = write(there[1], text, strlen(text)) > 0 && read(back[0], &turn, 1) == 1;
	for (uint32_t i = 0; good && i < LOOKS && lines < 3; i++) {
		good = write(there[1], "l", 1) == 1;
		values = drv_witness_look(&witness, i);
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
	drv_witness_end(&witness);
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
	struct drv_witness leader, other;
	struct drv_witness_values values;
	json_t *offer;

	drv_witness_start(&leader, &launch, 0, &the_clock);
	values = drv_witness_look(&leader, 7);
	tap_ok(values.line_ns < 0 && values.copy_ns > 0, "nobody comes: no line, and no end of waiting");
	offer = drv_witness_offer(&leader);
	json_object_set_new(offer, "inode", json_integer(1));
	drv_witness_start(&other, &launch, 1, &the_clock);
	drv_witness_accept(&other, offer);
	tap_ok(!other.line, "a descriptor that is another file than the one offered is not touched");
	drv_witness_end(&other);
	json_object_set_new(offer, "pid", json_string("1"));
	drv_witness_start(&other, &launch, 1, &the_clock);
	drv_witness_accept(&other, offer);
	tap_ok(!other.line, "an offer of the wrong form is none");
	drv_witness_end(&other);
	json_decref(offer);
	drv_witness_end(&leader);
}

/* Cores that are the same, or not known. */
static void no_cores(void)
{
	int same[2] = {0, 0}, unknown[2] = {-1, 1};
	struct drv_endpoint endpoints[2];
	struct drv_launch launch = launch_of(endpoints, same, false);
	struct drv_witness witness;

	drv_witness_start(&witness, &launch, 0, &the_clock);
	tap_ok(!witness.line, "two on one core do not spin on a line");
	drv_witness_end(&witness);
	launch = launch_of(endpoints, unknown, false);
	drv_witness_start(&witness, &launch, 0, &the_clock);
	tap_ok(!witness.line, "nor do two of which one may be on the other's core");
	drv_witness_end(&witness);
}

int main(void)
{
	drv_clock_start(&the_clock, true);
	two_processes(false);
	two_processes(true);
	left_alone();
	no_cores();
	return tap_done();
}
