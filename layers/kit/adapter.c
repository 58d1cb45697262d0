/* SPDX-License-Identifier: BSD-3-Clause */
#include "kit/adapter.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

int cadge_refuse(const struct cadge_open_args *args, int code, const char *format, ...)
{
	va_list list;

	if (!args->error || !args->error_bytes)
		return code;
	va_start(list, format);
	vsnprintf(args->error, args->error_bytes, format, list);
	va_end(list);
	return code;
}

static bool is_option(const struct cadge_option *options, const char *name)
{
	for (; options && options->name; options++)
		if (strcmp(options->name, name) == 0)
			return true;
	return false;
}

int cadge_open_check(const struct cadge_open_args *args, uint64_t caps, const struct cadge_option *options,
		     uint32_t peers_max)
{
	static const char *const places[] = {
		"this layer connects two processes, not one context to itself",
		"this layer does not connect two processes of one host",
		"this layer does not connect two hosts",
	};

	if ((unsigned int)args->place > CADGE_PLACE_NET)
		return cadge_refuse(args, CADGE_E_UNSUPPORTED, "this layer does not know that place");
	if (!(caps & (CADGE_CAP_SELF << args->place)))
		return cadge_refuse(args, CADGE_E_UNSUPPORTED, "%s", places[args->place]);
	if (args->wait_mode != CADGE_WAIT_POLL &&
	    (args->wait_mode != CADGE_WAIT_BLOCK || !(caps & CADGE_CAP_WAIT)))
		return cadge_refuse(args, CADGE_E_UNSUPPORTED, "this layer cannot sleep, it only polls");
	if (args->memory_kind != CADGE_MEMORY_HOST)
		return cadge_refuse(args, CADGE_E_UNSUPPORTED, "this layer works on host memory only");
	for (size_t i = 0; i < args->settings_count; i++)
		if (!is_option(options, args->settings[i].name))
			return cadge_refuse(args, CADGE_E_ARGUMENT, "this layer has no setting '%s'",
					    args->settings[i].name);
	if (!args->peers_max || args->peers_max > peers_max || !args->depth_max)
		return cadge_refuse(args, CADGE_E_ARGUMENT, "1 to %u peers and a depth of at least 1",
				    peers_max);
	return CADGE_DONE;
}

uint64_t cadge_caps_granted(uint64_t caps, enum cadge_place place, enum cadge_wait_mode wait_mode)
{
	const uint64_t places = CADGE_CAP_SELF | CADGE_CAP_HOST | CADGE_CAP_NET;

	caps &= ~places | CADGE_CAP_SELF << place;
	return wait_mode == CADGE_WAIT_BLOCK ? caps : caps & ~(CADGE_CAP_WAIT | CADGE_CAP_EVENT_FD);
}

struct cadge_limits cadge_limits_default(const struct cadge_open_args *args, uint64_t caps,
					 uint64_t message_bytes_max, uint32_t iov_max, const char *path)
{
	message_bytes_max = cadge_least(args->message_bytes_max, message_bytes_max);
	return (struct cadge_limits){
		.caps = cadge_caps_granted(caps, args->place, args->wait_mode),
		.message_bytes_max = message_bytes_max,
		.depth_max = args->depth_max,
		.iov_max = iov_max,
		.short_bytes_max = message_bytes_max,
		.short_path = path,
		.long_path = path,
	};
}

struct cadge_traits cadge_traits_default(uint64_t granted, enum cadge_protection protection)
{
	return (struct cadge_traits){
		.protection = protection,
		.flow = granted & CADGE_CAP_FLOW_CONTROL ? CADGE_FLOW_LIBRARY : CADGE_FLOW_NONE,
		.order = granted & CADGE_CAP_ORDERED ? CADGE_ORDER_CHANNEL : CADGE_ORDER_NONE,
		.waker = granted & CADGE_CAP_WAIT ? CADGE_WAKER_KERNEL : CADGE_WAKER_NONE,
		.multiprogramming = 1,
	};
}

void cadge_semantics_of_messages(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out)
{
	const struct cadge_semantics semantics = {.message = CADGE_PROGRESS_LIBRARY};

	(void)ctx;
	cadge_fill(semantics_out, &semantics, sizeof(semantics));
}

int cadge_nonce(uint64_t *nonce_out)
{
	uint64_t nonce = 0;

	while (!nonce)
		if (getrandom(&nonce, sizeof(nonce), 0) != (ssize_t)sizeof(nonce))
			return CADGE_E_LIBRARY;
	*nonce_out = nonce;
	return CADGE_DONE;
}

/* ---- settings ---- */

static int read_number(const struct cadge_open_args *args, const struct cadge_setting *setting,
		       const struct cadge_setting_rule *rule, uint64_t *number_out)
{
	unsigned long long number;
	char *end;

	errno = 0;
	number = strtoull(setting->value, &end, 10);
	if (errno || end == setting->value || *end || setting->value[0] == '-' || number < rule->least ||
	    number > rule->most)
		return cadge_refuse(args, CADGE_E_ARGUMENT, "setting %s must be %llu to %llu, not '%.60s'",
				    rule->name, (unsigned long long)rule->least,
				    (unsigned long long)rule->most, setting->value);
	*number_out = rule->unit ? number * rule->unit : number;
	return CADGE_DONE;
}

static int read_setting(const struct cadge_open_args *args, const struct cadge_setting *setting,
			const struct cadge_setting_rule *rule, unsigned char *at)
{
	const char *value = setting->value;
	uint64_t number = 0;
	bool flag;
	int code;

	switch (rule->kind) {
	case CADGE_SETTING_TEXT:
		if (strlen(value) >= rule->room)
			return cadge_refuse(args, CADGE_E_ARGUMENT, "setting %s is longer than %zu bytes",
					    rule->name, rule->room - 1);
		memcpy(at, value, strlen(value) + 1);
		return CADGE_DONE;
	case CADGE_SETTING_NUMBER:
		code = read_number(args, setting, rule, &number);
		if (code == CADGE_DONE)
			memcpy(at, &number, sizeof(number));
		return code;
	case CADGE_SETTING_FLAG: break;
	}
	flag = strcmp(value, "yes") == 0;
	if (!flag && strcmp(value, "no") != 0)
		return cadge_refuse(args, CADGE_E_ARGUMENT, "setting %s must be yes or no, not '%.60s'",
				    rule->name, value);
	memcpy(at, &flag, sizeof(flag));
	return CADGE_DONE;
}

const char *cadge_setting_of(const struct cadge_open_args *args, const char *name, const char *otherwise)
{
	for (size_t i = 0; i < args->settings_count; i++)
		if (strcmp(args->settings[i].name, name) == 0)
			return args->settings[i].value;
	return otherwise;
}

int cadge_settings_read(const struct cadge_open_args *args, const struct cadge_setting_rule *rules,
			void *into)
{
	int code = CADGE_DONE;

	for (size_t i = 0; i < args->settings_count && code == CADGE_DONE; i++) {
		const struct cadge_setting_rule *rule = rules;

		while (rule->name && strcmp(rule->name, args->settings[i].name) != 0)
			rule++;
		if (rule->name)
			code = read_setting(args, &args->settings[i], rule,
					    (unsigned char *)into + rule->offset);
	}
	return code;
}

/* ---- sleeping ---- */

int cadge_sleep(struct pollfd *pollfds, nfds_t count, uint64_t timeout_ns)
{
	/* as long as no caller waits: the kernel refuses times that it cannot count */
	const uint64_t most_ns = UINT64_C(3600) * 1000000000, sleep_ns = cadge_least(timeout_ns, most_ns);
	const struct timespec timeout = {.tv_sec = (time_t)(sleep_ns / 1000000000),
					 .tv_nsec = (long)(sleep_ns % 1000000000)};

	return ppoll(pollfds, count, &timeout, NULL) < 0 && errno != EINTR ? CADGE_E_LIBRARY : CADGE_DONE;
}

int cadge_watch_open(struct cadge_watch *watch, nfds_t room)
{
	*watch = (struct cadge_watch){.fd = epoll_create1(EPOLL_CLOEXEC), .room = room};
	watch->watched = watch->fd < 0 ? NULL : calloc(room, sizeof(*watch->watched));
	if (watch->watched)
		return CADGE_DONE;
	cadge_watch_close(watch);
	return CADGE_E_MEMORY;
}

void cadge_watch_close(struct cadge_watch *watch)
{
	if (watch->fd >= 0)
		close(watch->fd);
	free(watch->watched);
	*watch = (struct cadge_watch){.fd = -1};
}

static bool watches(const struct cadge_watch *watch, const struct pollfd *pollfds, nfds_t count)
{
	if (count != watch->watched_count)
		return false;
	for (nfds_t i = 0; i < count; i++)
		if (pollfds[i].fd != watch->watched[i].fd || pollfds[i].events != watch->watched[i].events)
			return false;
	return true;
}

int cadge_watch_set(struct cadge_watch *watch, const struct pollfd *pollfds, nfds_t count, uint64_t epoch)
{
	if (epoch == watch->epoch && watches(watch, pollfds, count))
		return CADGE_DONE;
	if (count > watch->room)
		return CADGE_E_LIBRARY;
	/* One that was closed since has left by itself; its number may be another's now. */
	for (nfds_t i = 0; i < watch->watched_count; i++)
		if (epoll_ctl(watch->fd, EPOLL_CTL_DEL, watch->watched[i].fd, NULL) < 0 && errno != ENOENT &&
		    errno != EBADF)
			return CADGE_E_LIBRARY;
	watch->watched_count = 0;
	for (nfds_t i = 0; i < count; i++) {
		struct epoll_event event = {
			.events = (pollfds[i].events & POLLIN ? (uint32_t)EPOLLIN : 0) |
				  (pollfds[i].events & POLLOUT ? (uint32_t)EPOLLOUT : 0),
		};

		if (epoll_ctl(watch->fd, EPOLL_CTL_ADD, pollfds[i].fd, &event) < 0)
			return CADGE_E_LIBRARY;
		watch->watched[watch->watched_count++] = pollfds[i];
	}
	watch->epoch = epoch;
	return CADGE_DONE;
}
