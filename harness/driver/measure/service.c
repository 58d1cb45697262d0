/* SPDX-License-Identifier: BSD-3-Clause */
/* What a server does before it answers. */
#include "measure/service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#define NS_PER_S UINT64_C(1000000000)
#define LINE     64u

const char *const drv_service_work_words[] = {"spin", "sleep", "touch", NULL};
const char *const drv_service_spread_words[] = {"fixed", "exponential", "bimodal", NULL};

int drv_service_start(struct drv_service *service, enum drv_service_work work, enum drv_service_spread spread,
		      uint64_t mean_ns, uint64_t bytes, bool serves, uint64_t seed,
		      const struct drv_clock *clock, struct drv_fail *fail)
{
	memset(service, 0, sizeof(*service));
	service->work = work;
	service->spread = spread;
	service->mean_ns = mean_ns;
	/* the mean is that of LONG_OF - 1 short ones and a long one */
	service->short_ns =
		mean_ns * DRV_SERVICE_LONG_OF / (DRV_SERVICE_LONG_OF - 1 + DRV_SERVICE_LONG_TIMES);
	service->seed = seed;
	service->clock = clock;
	if (!serves || !bytes)
		return 0;
	service->words = (bytes + sizeof(*service->memory) - 1) / sizeof(*service->memory);
	service->memory =
		aligned_alloc(LINE, (service->words * sizeof(*service->memory) + LINE - 1) / LINE * LINE);
	if (!service->memory)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for %llu bytes that the server touches",
				    (unsigned long long)bytes);
	/* so that no page is a new one inside the time */
	memset(service->memory, 1, service->words * sizeof(*service->memory));
	return 0;
}

void drv_service_stop(struct drv_service *service)
{
	if (service->on)
		drv_service_switch(service, false);
	free(service->memory);
	service->memory = NULL;
}

/* Else the kernel may wake it 50 us too late; 0 is the usual again. */
static void set_slack(const struct drv_service *service, bool on)
{
	if (service->work == DRV_SERVICE_SLEEP)
		prctl(PR_SET_TIMERSLACK, on ? 1UL : 0UL);
}

void drv_service_switch(struct drv_service *service, bool on)
{
	service->on = on;
	set_slack(service, on);
}

void drv_service_settle_in(const struct drv_service *service)
{
	set_slack(service, true);
}

static void sleep_for(uint64_t span_ns)
{
	const uint64_t until_ns = drv_now_ns() + span_ns;
	const struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_S),
				       .tv_nsec = (long)(until_ns % NS_PER_S)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

static void touch(struct drv_service *service, uint64_t number)
{
	for (uint64_t i = 0; i < service->words; i++)
		service->memory[i] += number;
}

void drv_service_do(struct drv_service *service, uint64_t number)
{
	const struct drv_clock *clock = service->clock;
	uint64_t started, now, span_ns;

	if (!service->on) {
		if (service->work == DRV_SERVICE_TOUCH)
			touch(service, number);
		return;
	}
	started = drv_clock_now(clock);
	span_ns = drv_service_draw_ns(service, number);
	switch (service->work) {
	case DRV_SERVICE_SPIN:
		do
			now = drv_clock_now(clock);
		while (drv_clock_to_ns(clock, now - started) < span_ns);
		break;
	case DRV_SERVICE_SLEEP:
		if (span_ns)
			sleep_for(span_ns);
		now = drv_clock_now(clock);
		break;
	case DRV_SERVICE_TOUCH:
	default:
		touch(service, number);
		now = drv_clock_now(clock);
		break;
	}
	if (service->samples)
		drv_sample(service->samples, drv_clock_to_ns(clock, now - started));
}

uint64_t drv_service_most_ns(const struct drv_service *service, uint32_t calls)
{
	/* in means: of exponential ones, e^-50 is less than any number of calls; of bimodal ones, six that are long */
	static const uint64_t tails[] = {
		[DRV_SERVICE_FIXED] = 0, [DRV_SERVICE_EXPONENTIAL] = 50, [DRV_SERVICE_BIMODAL] = 400};

	return service->mean_ns * (UINT64_C(2) * calls + tails[service->spread]);
}
