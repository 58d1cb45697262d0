/* SPDX-License-Identifier: BSD-3-Clause */
/* CPU time, context switches and page faults of a stretch of work. */
#include "usage.h"

#include <string.h>
#include <sys/resource.h>

static uint64_t timeval_ns(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * UINT64_C(1000000000) + (uint64_t)time->tv_usec * UINT64_C(1000);
}

void drv_usage_read(struct drv_usage *usage_out)
{
	struct rusage process, thread;

	memset(usage_out, 0, sizeof(*usage_out));
	if (getrusage(RUSAGE_SELF, &process) || getrusage(RUSAGE_THREAD, &thread))
		return; /* cannot fail with these arguments */
	usage_out->user_ns = timeval_ns(&process.ru_utime);
	usage_out->system_ns = timeval_ns(&process.ru_stime);
	usage_out->voluntary_switches = (uint64_t)process.ru_nvcsw;
	usage_out->involuntary_switches = (uint64_t)process.ru_nivcsw;
	usage_out->minor_faults = (uint64_t)process.ru_minflt;
	usage_out->major_faults = (uint64_t)process.ru_majflt;
	usage_out->thread_voluntary_switches = (uint64_t)thread.ru_nvcsw;
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
	};
}

json_t *drv_usage_json(const struct drv_usage *usage, int whole)
{
	json_t *object = json_pack(
		"{s:I, s:I, s:I, s:I, s:I, s:I}", "user_ns", (json_int_t)usage->user_ns, "system_ns",
		(json_int_t)usage->system_ns, "voluntary_switches", (json_int_t)usage->voluntary_switches,
		"involuntary_switches", (json_int_t)usage->involuntary_switches, "minor_faults",
		(json_int_t)usage->minor_faults, "major_faults", (json_int_t)usage->major_faults);

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
		"user_ns",      "system_ns",    "voluntary_switches",       "involuntary_switches",
		"minor_faults", "major_faults", "thread_voluntary_switches"};
	uint64_t values[sizeof(names) / sizeof(names[0])];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const json_t *value = json_object_get(object, names[i]);

		if (!json_is_integer(value) || json_integer_value(value) < 0)
			return drv_fail_set(fail, DRV_PROTOCOL, "an endpoint sent no valid \"%s\"", names[i]);
		values[i] = (uint64_t)json_integer_value(value);
	}
	*usage_out = (struct drv_usage){values[0], values[1], values[2], values[3],
					values[4], values[5], values[6]};
	return 0;
}
