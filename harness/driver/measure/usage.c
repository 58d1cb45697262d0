/* SPDX-License-Identifier: BSD-3-Clause */
/* CPU time, context switches, page faults and hindrances of a stretch of work. */
#include "measure/usage.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "measure/clock.h"

static uint64_t timeval_ns(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * UINT64_C(1000000000) + (uint64_t)time->tv_usec * UINT64_C(1000);
}

static int64_t sum_of(int64_t one, int64_t other)
{
	return one < 0 || other < 0 ? -1 : one + other;
}

/* Of a child: what it is, and what it had used when it was last looked at. */
struct child {
	pid_t pid;
	clockid_t clock;
	uint64_t user_ns, system_ns, voluntary_switches, involuntary_switches, minor_faults, major_faults;
	int64_t run_wait_ns;
};

/* The one that is followed (pid 0: none), and all before it together. Of the thread that waits for them alone. */
static struct child child, left;

/* "ran_ns waited_ns slices" */
static int64_t run_wait_ns(const char *path)
{
	FILE *file = fopen(path, "re");
	uint64_t ran, waited;
	int found = 0;

	if (file) {
		found = fscanf(file, "%" SCNu64 " %" SCNu64, &ran, &waited);
		fclose(file);
	}
	return found == 2 ? (int64_t)waited : -1;
}

/* The line "cpu3 user nice system idle iowait irq softirq steal ..." of each processor that this thread may run on. */
static int64_t stolen_ns(void)
{
	const int64_t tick_ns = INT64_C(1000000000) / sysconf(_SC_CLK_TCK);
	FILE *file = fopen("/proc/stat", "re");
	int64_t stolen = -1;
	cpu_set_t allowed;
	char line[512];

	CPU_ZERO(&allowed);
	if (!file || sched_getaffinity(0, sizeof(allowed), &allowed)) {
		if (file)
			fclose(file);
		return -1;
	}
	while (fgets(line, sizeof(line), file) && !strncmp(line, "cpu", 3)) {
		uint64_t ticks;
		unsigned int cpu;

		if (sscanf(line, "cpu%u %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &cpu, &ticks) == 2 &&
		    cpu < CPU_SETSIZE && CPU_ISSET(cpu, &allowed))
			stolen = (stolen < 0 ? 0 : stolen) + (int64_t)ticks * tick_ns;
	}
	fclose(file);
	return stolen;
}

/* What stands at a number's place, counted from 0, behind the name in /proc/PID/stat. */
enum { MINOR_FAULTS = 7, MAJOR_FAULTS = 9, USER_TICKS = 11, SYSTEM_TICKS, NUMBERS };

static bool read_stat(pid_t pid, uint64_t numbers[NUMBERS])
{
	char path[32], text[1024], *at;
	size_t bytes;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	bytes = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[bytes] = '\0';
	at = strrchr(text, ')');
	for (int i = 0; i < NUMBERS; i++) {
		at = at ? strchr(at + 1, ' ') : NULL;
		/* the state, a letter, gives 0 */
		numbers[i] = at ? strtoull(at, NULL, 10) : 0;
	}
	return at != NULL;
}

/* Context switches of its first thread. */
static void read_switches(struct child *of)
{
	char path[32], line[128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)of->pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		sscanf(line, "voluntary_ctxt_switches: %" SCNu64, &of->voluntary_switches);
		sscanf(line, "nonvoluntary_ctxt_switches: %" SCNu64, &of->involuntary_switches);
	}
	if (file)
		fclose(file);
}

/*
 * Its clock has its time to the nanosecond, and the kernel tells user's and system's apart in ticks alone; they have the
 * ticks' shares of it, and neither ever becomes less, as in the kernel itself.
 */
static void read_child(struct child *of)
{
	uint64_t numbers[NUMBERS], ran_ns, system_ns;
	struct timespec ran;
	char path[40];

	if (clock_gettime(of->clock, &ran) || !read_stat(of->pid, numbers))
		return; /* it has ended: what was known last stands */
	ran_ns = (uint64_t)ran.tv_sec * UINT64_C(1000000000) + (uint64_t)ran.tv_nsec;
	system_ns = numbers[USER_TICKS] + numbers[SYSTEM_TICKS]
			    ? (uint64_t)((double)ran_ns * (double)numbers[SYSTEM_TICKS] /
					 (double)(numbers[USER_TICKS] + numbers[SYSTEM_TICKS]))
			    : 0;
	if (system_ns < of->system_ns)
		system_ns = of->system_ns;
	if (ran_ns - system_ns < of->user_ns || ran_ns < system_ns)
		system_ns = ran_ns - of->user_ns;
	of->system_ns = system_ns;
	of->user_ns = ran_ns - system_ns;
	of->minor_faults = numbers[MINOR_FAULTS];
	of->major_faults = numbers[MAJOR_FAULTS];
	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)of->pid);
	of->run_wait_ns = run_wait_ns(path);
	read_switches(of);
}

static void add_child(struct drv_usage *usage, const struct child *more)
{
	usage->user_ns += more->user_ns;
	usage->system_ns += more->system_ns;
	usage->voluntary_switches += more->voluntary_switches;
	usage->involuntary_switches += more->involuntary_switches;
	usage->minor_faults += more->minor_faults;
	usage->major_faults += more->major_faults;
	usage->run_wait_ns = sum_of(usage->run_wait_ns, more->run_wait_ns);
}

int drv_usage_follow(pid_t pid)
{
	clockid_t clock;
	const int code = clock_getcpuclockid(pid, &clock);

	if (code) {
		errno = code;
		return -1;
	}
	child = (struct child){.pid = pid, .clock = clock};
	return 0;
}

void drv_usage_leave(void)
{
	struct drv_usage sum = {0};

	if (!child.pid)
		return;
	read_child(&child);
	add_child(&sum, &left);
	add_child(&sum, &child);
	left = (struct child){.user_ns = sum.user_ns,
			      .system_ns = sum.system_ns,
			      .voluntary_switches = sum.voluntary_switches,
			      .involuntary_switches = sum.involuntary_switches,
			      .minor_faults = sum.minor_faults,
			      .major_faults = sum.major_faults,
			      .run_wait_ns = sum.run_wait_ns};
	child.pid = 0;
}

bool drv_usage_follows(void)
{
	return child.pid != 0;
}

void drv_usage_read(struct drv_usage *usage_out)
{
	struct rusage process, thread;

	memset(usage_out, 0, sizeof(*usage_out));
	usage_out->system_calls = usage_out->cycles = usage_out->instructions = -1;
	usage_out->wall_ns = drv_now_ns();
	usage_out->run_wait_ns = run_wait_ns("/proc/thread-self/schedstat");
	usage_out->stolen_ns = stolen_ns();
	if (getrusage(RUSAGE_SELF, &process) || getrusage(RUSAGE_THREAD, &thread))
		return; /* cannot fail with these arguments */
	usage_out->user_ns = timeval_ns(&process.ru_utime);
	usage_out->system_ns = timeval_ns(&process.ru_stime);
	usage_out->voluntary_switches = (uint64_t)process.ru_nvcsw;
	usage_out->involuntary_switches = (uint64_t)process.ru_nivcsw;
	usage_out->minor_faults = (uint64_t)process.ru_minflt;
	usage_out->major_faults = (uint64_t)process.ru_majflt;
	usage_out->thread_voluntary_switches = (uint64_t)thread.ru_nvcsw;
	if (child.pid)
		read_child(&child);
	add_child(usage_out, &left);
	if (child.pid)
		add_child(usage_out, &child);
}

static int64_t more_than(int64_t later, int64_t earlier)
{
	return later < earlier || earlier < 0 ? -1 : later - earlier;
}

void drv_usage_add_thread(struct drv_usage *sum, const struct drv_usage *more)
{
	/* the process's own counters are those of all threads already */
	sum->thread_voluntary_switches += more->thread_voluntary_switches;
	sum->run_wait_ns = sum_of(sum->run_wait_ns, more->run_wait_ns);
	sum->stolen_ns = sum_of(sum->stolen_ns, more->stolen_ns);
}

struct drv_usage drv_usage_since(const struct drv_usage *earlier, const struct drv_usage *later)
{
	return (struct drv_usage){
		.user_ns = later->user_ns - earlier->user_ns,
		.system_ns = later->system_ns - earlier->system_ns,
		.voluntary_switches = later->voluntary_switches - earlier->voluntary_switches,
		.involuntary_switches = later->involuntary_switches - earlier->involuntary_switches,
		.minor_faults = later->minor_faults - earlier->minor_faults,
		.major_faults = later->major_faults - earlier->major_faults,
		.thread_voluntary_switches =
			later->thread_voluntary_switches - earlier->thread_voluntary_switches,
		.wall_ns = later->wall_ns - earlier->wall_ns,
		.run_wait_ns = more_than(later->run_wait_ns, earlier->run_wait_ns),
		.stolen_ns = more_than(later->stolen_ns, earlier->stolen_ns),
		.system_calls = -1,
		.cycles = -1,
		.instructions = -1,
	};
}

static json_t *known(int64_t value)
{
	return value < 0 ? json_null() : json_integer(value);
}

json_t *drv_usage_json(const struct drv_usage *usage, int whole)
{
	json_t *object =
		json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "user_ns",
			  (json_int_t)usage->user_ns, "system_ns", (json_int_t)usage->system_ns,
			  "voluntary_switches", (json_int_t)usage->voluntary_switches, "involuntary_switches",
			  (json_int_t)usage->involuntary_switches, "minor_faults",
			  (json_int_t)usage->minor_faults, "major_faults", (json_int_t)usage->major_faults,
			  "wall_ns", (json_int_t)usage->wall_ns, "run_wait_ns", known(usage->run_wait_ns),
			  "stolen_ns", known(usage->stolen_ns), "system_calls", known(usage->system_calls),
			  "cycles", known(usage->cycles), "instructions", known(usage->instructions));

	if (object && whole &&
	    json_object_set_new(object, "thread_voluntary_switches",
				json_integer((json_int_t)usage->thread_voluntary_switches))) {
		json_decref(object);
		return NULL;
	}
	return object;
}

int drv_usage_parse(const json_t *object, struct drv_usage *usage_out, struct drv_fail *fail)
{
	static const char *const names[] = {
		"user_ns",      "system_ns",    "voluntary_switches",        "involuntary_switches",
		"minor_faults", "major_faults", "thread_voluntary_switches", "wall_ns"};
	static const char *const optional[] = {"run_wait_ns", "stolen_ns", "system_calls", "cycles",
					       "instructions"};
	uint64_t values[sizeof(names) / sizeof(names[0])];
	int64_t optional_values[sizeof(optional) / sizeof(optional[0])];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const json_t *value = json_object_get(object, names[i]);

		if (!json_is_integer(value) || json_integer_value(value) < 0)
			return drv_fail_set(fail, DRV_PROTOCOL, "an endpoint sent no valid \"%s\"", names[i]);
		values[i] = (uint64_t)json_integer_value(value);
	}
	for (size_t i = 0; i < sizeof(optional) / sizeof(optional[0]); i++) {
		const json_t *value = json_object_get(object, optional[i]);

		if (!json_is_null(value) && (!json_is_integer(value) || json_integer_value(value) < 0))
			return drv_fail_set(fail, DRV_PROTOCOL, "an endpoint sent no valid \"%s\"",
					    optional[i]);
		optional_values[i] = json_is_null(value) ? -1 : json_integer_value(value);
	}
	*usage_out = (struct drv_usage){values[0],          values[1],          values[2],
					values[3],          values[4],          values[5],
					values[6],          values[7],          optional_values[0],
					optional_values[1], optional_values[2], optional_values[3],
					optional_values[4]};
	return 0;
}
