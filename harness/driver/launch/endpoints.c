/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the endpoints of a launch file and pairs up the two ends of each channel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/parts.h"

#define CPU_MAX 8191

/* A list of cores, one a thread. */
static int read_cpus(const struct drv_reader *reader, const char *key, int *cpus, size_t *count_out)
{
	const json_t *list;

	if (drv_read_list(reader, key, 0, DRV_THREADS_MAX, &list))
		return -1;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *cpu = json_array_get(list, i);

		if (!json_is_integer(cpu) || json_integer_value(cpu) < -1 ||
		    json_integer_value(cpu) > CPU_MAX)
			return drv_read_wrong(reader, key, "must hold integers between -1 and 8191");
		cpus[i] = (int)json_integer_value(cpu);
	}
	*count_out = json_array_size(list);
	return 0;
}

static int read_peers(const struct drv_reader *reader, size_t endpoints, struct drv_endpoint *endpoint)
{
	const json_t *list;
	char text[96];

	if (drv_read_list(reader, "peers", 0, DRV_PEERS_MAX, &list))
		return -1;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *peer = json_array_get(list, i);

		if (!json_is_integer(peer) || json_integer_value(peer) < 0 ||
		    json_integer_value(peer) >= (json_int_t)endpoints) {
			snprintf(text, sizeof(text), "must hold numbers of endpoints, 0 to %zu",
				 endpoints - 1);
			return drv_read_wrong(reader, "peers", text);
		}
		endpoint->peers[endpoint->peers_count++] = (uint8_t)json_integer_value(peer);
	}
	return 0;
}

static int read_endpoint(const struct drv_reader *reader, size_t endpoints, struct drv_endpoint *endpoint)
{
	static const char *const keys[] = {"role",       "host",   "cpus",
					   "hands",      "device", "address",
					   "raw_device", "peers",  "management_address",
					   NULL};

	if (!json_is_object(reader->json))
		return drv_read_wrong(reader, "", "must be an object");
	if (drv_read_keys(reader, keys) || drv_read_text(reader, "role", false, &endpoint->role) ||
	    drv_read_text(reader, "host", false, &endpoint->host) ||
	    read_cpus(reader, "cpus", endpoint->cpus, &endpoint->cpus_count) ||
	    (json_object_get(reader->json, "hands") &&
	     read_cpus(reader, "hands", endpoint->worker_cpus, &endpoint->worker_cpus_count)) ||
	    drv_read_text(reader, "device", false, &endpoint->device) ||
	    drv_read_text(reader, "address", false, &endpoint->address) ||
	    drv_read_text(reader, "raw_device", true, &endpoint->raw_device) ||
	    (json_object_get(reader->json, "management_address") &&
	     drv_read_text(reader, "management_address", false, &endpoint->management_address)))
		return -1;
	return read_peers(reader, endpoints, endpoint);
}

/* The place of the n-th channel to `peer` in an endpoint's list; -1 when it has fewer. */
static int nth_channel(const struct drv_endpoint *endpoint, size_t peer, size_t n)
{
	for (size_t i = 0; i < endpoint->peers_count; i++)
		if (endpoint->peers[i] == peer && n-- == 0)
			return (int)i;
	return -1;
}

/* The n-th channel from one endpoint to another is the n-th from the other to the one. */
static int pair_channels(const struct drv_reader *top, struct drv_launch *launch)
{
	char text[160];

	for (size_t e = 0; e < launch->endpoints_count; e++) {
		struct drv_endpoint *endpoint = &launch->endpoints[e];
		size_t counted[DRV_ENDPOINTS_MAX] = {0};

		for (size_t i = 0; i < endpoint->peers_count; i++) {
			const size_t peer = endpoint->peers[i];
			int there;

			if ((peer == e) != (launch->place == DRV_PLACE_SELF)) {
				snprintf(text, sizeof(text),
					 "[%zu].peers names endpoint %zu, which is itself", e, e);
				return drv_read_wrong(top, "endpoints", text);
			}
			there = nth_channel(&launch->endpoints[peer], e, counted[peer]++);
			if (there < 0) {
				snprintf(text, sizeof(text),
					 "[%zu].peers names endpoint %zu more often than that one names it",
					 e, peer);
				return drv_read_wrong(top, "endpoints", text);
			}
			endpoint->channels[i] = (uint8_t)there;
		}
	}
	return 0;
}

/* How many channels a pair of entries stands for. */
static size_t channels_between(const struct drv_launch *launch, size_t one, size_t other)
{
	const size_t left = drv_endpoint_threads(&launch->endpoints[one]);
	const size_t right = drv_endpoint_threads(&launch->endpoints[other]);

	return left > right ? left : right;
}

/* The number, on its thread, of the k-th channel that an entry of an endpoint's list stands for. */
static size_t number_of(const struct drv_launch *launch, size_t endpoint, size_t entry, size_t k)
{
	const size_t threads = drv_endpoint_threads(&launch->endpoints[endpoint]), thread = k % threads;
	size_t number = 0;

	for (size_t i = 0; i < entry; i++)
		for (size_t j = thread;
		     j < channels_between(launch, endpoint, launch->endpoints[endpoint].peers[i]);
		     j += threads)
			number++;
	return number + k / threads;
}

size_t drv_launch_channels(const struct drv_launch *launch, size_t endpoint, size_t thread,
			   struct drv_end *out, size_t room)
{
	const struct drv_endpoint *here = &launch->endpoints[endpoint];
	size_t count = 0;

	for (size_t i = 0; i < here->peers_count; i++) {
		const size_t peer = here->peers[i], threads = drv_endpoint_threads(&launch->endpoints[peer]);

		for (size_t k = thread; k < channels_between(launch, endpoint, peer);
		     k += drv_endpoint_threads(here)) {
			if (count < room)
				out[count] = (struct drv_end){
					(uint8_t)peer, (uint8_t)(k % threads),
					(uint8_t)number_of(launch, peer, here->channels[i], k)};
			count++;
		}
	}
	return count;
}

int drv_launch_endpoints(const struct drv_reader *top, struct drv_launch *launch)
{
	const bool self = launch->place == DRV_PLACE_SELF;
	const json_t *list;
	size_t count;

	if (drv_read_list(top, "endpoints", 1, DRV_ENDPOINTS_MAX, &list))
		return -1;
	count = json_array_size(list);
	if (self && count != 1)
		return drv_read_wrong(top, "endpoints", "must hold one entry for place self");
	launch->endpoints = calloc(count, sizeof(*launch->endpoints));
	if (!launch->endpoints)
		return drv_fail_set(top->fail, DRV_MEMORY, "no memory for the launch file");
	launch->endpoints_count = count;
	for (size_t i = 0; i < count; i++) {
		struct drv_reader reader = {.json = json_array_get(list, i), .fail = top->fail};

		snprintf(reader.where, sizeof(reader.where), "endpoints[%zu]", i);
		if (read_endpoint(&reader, count, &launch->endpoints[i]))
			return -1;
	}
	if (pair_channels(top, launch))
		return -1;
	for (size_t e = 0; e < count; e++)
		if (drv_launch_channels(launch, e, 0, NULL, 0) > DRV_PEERS_MAX)
			return drv_read_wrong(top, "endpoints",
					      "ask for more than 64 channels of one thread");
	return 0;
}
