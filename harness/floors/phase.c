/* SPDX-License-Identifier: BSD-3-Clause */
/* What the loops of all floors share outside of their hot path. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "floor.h"
#include "watchdog.h"

void floor_mismatch(struct floor_loop *loop, const char *format, ...)
{
	va_list arguments;

	if (loop->mismatches++)
		return;
	va_start(arguments, format);
	if (vsnprintf(loop->mismatch, sizeof(loop->mismatch), format, arguments) < 0)
		loop->mismatch[0] = '\0';
	va_end(arguments);
}

void floor_note_broke(struct floor_loop *loop, const char *what)
{
	drv_fail_set(&loop->fail, DRV_SYSTEM, "%s: %s failed: %s", loop->run->floor->name, what,
		     strerror(errno));
}

int floor_look(struct floor_loop *loop)
{
	json_t *message;
	const char *name;
	int status;

	if (drv_stop_signal)
		return drv_fail_set(&loop->fail, DRV_STOPPED, "stopped by signal %d", (int)drv_stop_signal);
	if (drv_clock_now(&loop->run->clock) > loop->deadline)
		return drv_fail_set(&loop->fail, DRV_DEADLINE,
				    "the point took longer than its deadline of %llu ms",
				    (unsigned long long)(loop->point->deadline_ns / FLOOR_NS_PER_MS));
	if (loop->run->endpoint == 0)
		return drv_oob_peek(loop->run->oob, &loop->fail);
	status = drv_oob_try(loop->run->oob, &message, &loop->fail);
	if (status <= 0)
		return status;
	name = json_string_value(json_object_get(message, "m"));
	status = name && strcmp(name, "stop") == 0;
	if (!status)
		drv_fail_set(&loop->fail, DRV_PROTOCOL, "the other endpoint said '%s' during a phase",
			     name ? name : "");
	json_decref(message);
	loop->stopped = status;
	return status ? 1 : -1;
}

bool floor_warmup_done(struct floor_loop *loop, uint64_t now, uint64_t span)
{
	return drv_warmup_add(&loop->warmup, now, span);
}

int floor_exchange(struct floor_run *run, const char *name, json_t *mine, json_t **theirs_out,
		   struct drv_fail *fail)
{
	json_t *theirs = NULL;
	int status = -1;

	if (!mine || json_object_set_new(mine, "m", json_string(name)))
		drv_fail_set(fail, DRV_MEMORY, "no memory for a message");
	else
		status = drv_oob_exchange(run->oob, name, mine, NULL, drv_now_ns() + 5 * FLOOR_NS_PER_S,
					  &theirs, fail);
	json_decref(mine);
	if (status == 0 && theirs_out)
		*theirs_out = theirs;
	else
		json_decref(theirs);
	return status;
}

void *floor_memory(size_t bytes)
{
	void *base =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return base == MAP_FAILED ? NULL : base;
}

void floor_memory_free(void *base, size_t bytes)
{
	if (base)
		munmap(base, bytes);
}
