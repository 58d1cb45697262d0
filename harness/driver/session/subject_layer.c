/* SPDX-License-Identifier: BSD-3-Clause */
/* A session's subject is a layer. */
#include "threads/threads.h"
#include "engine/facts.h"
#include "session/subject.h"
#include "base/text.h"

static int load(struct drv_engine *engine, const char *modules, struct drv_result *result,
		struct drv_fail *fail)
{
	const struct drv_launch *launch = engine->launch;

	if (drv_loader_load(modules, launch->layer, launch->shims_count ? launch->shims[0] : NULL,
			    &engine->loaded, fail))
		return -1;
	engine->layer = engine->loaded.layer;
	result->library = drv_facts_library(drv_loaded_adapter(&engine->loaded));
	if (drv_endpoint_threads(&launch->endpoints[engine->endpoint]) > 1 &&
	    (drv_loaded_adapter(&engine->loaded)->caps & CADGE_CAP_ONE_INIT))
		return drv_fail_set(fail, DRV_NO_CAP,
				    "wanted several threads, this library starts once a process");
	return drv_negotiate_launch(launch->place, launch->wait, drv_loaded_adapter(&engine->loaded)->caps,
				    fail);
}

static int open_thread(struct drv_engine *engine, void *arg, struct drv_fail *fail)
{
	(void)arg;
	/* the first thread's is open already */
	return engine->thread ? drv_engine_open(engine, fail) : 0;
}

static int open_layer(struct drv_engine *engine, struct drv_result *result, struct drv_ability *ability_out,
		      struct drv_fail *fail)
{
	const struct cadge_layer *adapter = drv_loaded_adapter(&engine->loaded);
	struct cadge_limits limits = {.bytes = sizeof(limits)};

	if (drv_engine_open(engine, fail) || drv_threads_start(engine, fail) ||
	    drv_threads_all(engine, open_thread, NULL, fail))
		return -1;
	engine->layer->limits(engine->ctx, &limits);
	drv_ability_read(engine->layer, engine->ctx, ability_out);
	result->limits = drv_facts_limits(&limits);
	result->adapter = drv_facts_adapter(adapter, engine->layer, engine->ctx, ability_out->caps);
	json_decref(result->library); /* some libraries know themselves only once started */
	result->library = drv_facts_library(adapter);
	return drv_negotiate_launch(engine->launch->place, engine->launch->wait, ability_out->caps, fail);
}

static int connect_layer(struct drv_engine *engine, struct drv_result *result, uint64_t deadline_ns,
			 struct drv_fail *fail)
{
	struct cadge_limits limits = {.bytes = sizeof(limits)};

	if (drv_engine_connect(engine, deadline_ns, fail))
		return -1;
	engine->layer->limits(engine->ctx, &limits); /* the paths are settled now */
	json_decref(result->limits);
	result->limits = drv_facts_limits(&limits);
	return 0;
}

static json_t *channel_paths(struct drv_engine *engine, struct drv_fail *fail)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < engine->channels_count; i++) {
		const struct drv_channel *channel = &engine->channels[i];
		struct cadge_path path = {.bytes = sizeof(path)};
		const int code = engine->layer->describe_path(channel->chan, &path);
		json_t *entry;

		if (code < 0) {
			drv_engine_fail("describe_path", code, fail);
			json_decref(list);
			return NULL;
		}
		entry = drv_facts_path(&path);
		if (drv_json_set(entry, "endpoint", json_integer(engine->endpoint)) ||
		    drv_json_set(entry, "peer", json_integer(channel->endpoint)) ||
		    json_array_append_new(list, entry)) {
			drv_fail_set(fail, DRV_MEMORY, "no memory for the path of a channel");
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

/* By thread: an array with one entry a channel. */
static int path_of_thread(struct drv_engine *engine, void *arg, struct drv_fail *fail)
{
	json_t **list = (json_t **)arg + engine->thread;

	*list = channel_paths(engine, fail);
	return *list ? 0 : -1;
}

static json_t *paths(struct drv_engine *engine, struct drv_fail *fail)
{
	json_t *by_thread[DRV_THREADS_MAX] = {0}, *list = json_array();
	const int status = drv_threads_all(engine, path_of_thread, by_thread, fail);

	for (size_t t = 0; t <= drv_threads_size(engine); t++) {
		json_array_extend(list, by_thread[t]);
		json_decref(by_thread[t]);
	}
	if (!status)
		return list;
	json_decref(list);
	return NULL;
}

const struct drv_subject drv_subject_layer = {load, open_layer, connect_layer, paths, drv_engine_close};
