/* SPDX-License-Identifier: BSD-3-Clause */
#include "press/soak/plan.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB UINT64_C(1024)

static const char usage[] =
	"Nodes of the cluster web server, killed under load and started again. Prints what became of all "
	"requests, as JSON.\n"
	"\n"
	"  --modules DIR        where layers are (build/layers)\n"
	"  --layer NAME         has to be named\n"
	"  --place within|between, --device NAME, --address ADDRESS   of the layer (within, lo, 127.0.0.1)\n"
	"  --nodes N            3 to 16 (4)\n"
	"  --connections N      of the load, to each node (8)\n"
	"  --requests N         (1000000)\n"
	"  --kills N            spread over them (30)\n"
	"  --cache-kib N        of each node (4096)\n"
	"  --working-kib N      all files together (65536)\n"
	"  --service-ns N       how long a disk takes for a file (200000)\n"
	"  --version N          0 to 5: what is written remotely (0)\n"
	"  --seed N             (1)\n"
	"  --keeps              the layer's library is known to keep shared memory of the dead: told, not "
	"judged\n"
	"  --patient            bad clients come, too, for whom a node waits ten seconds\n"
	"  --node N             used by itself: it is that node\n"
	"\n"
	"Exit: 0 all held, 1 something did not, 2 usage, 77 the layer cannot do this, and says why.\n";

static const struct option options[] = {
	{"modules", required_argument, NULL, 'm'},
	{"layer", required_argument, NULL, 'l'},
	{"place", required_argument, NULL, 'p'},
	{"device", required_argument, NULL, 'd'},
	{"address", required_argument, NULL, 'a'},
	{"nodes", required_argument, NULL, 'n'},
	{"connections", required_argument, NULL, 'c'},
	{"requests", required_argument, NULL, 'r'},
	{"kills", required_argument, NULL, 'k'},
	{"cache-kib", required_argument, NULL, 'C'},
	{"working-kib", required_argument, NULL, 'w'},
	{"service-ns", required_argument, NULL, 's'},
	{"version", required_argument, NULL, 'v'},
	{"seed", required_argument, NULL, 'S'},
	{"patient", no_argument, NULL, 'P'},
	{"keeps", no_argument, NULL, 'K'},
	{"node", required_argument, NULL, 'N'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static int wrong(const char *what)
{
	fprintf(stderr, "soak: %s; see --help\n", what);
	return -1;
}

static int read_number(const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
	char *end;
	const uint64_t value = strtoull(text, &end, 10);

	if (!*text || *text == '-' || *end || value < least || value > most)
		return wrong("a number is none, or out of its range");
	*out = value;
	return 0;
}

static int read_place(const char *word, enum drv_place *out)
{
	if (strcmp(word, "within") != 0 && strcmp(word, "between") != 0)
		return wrong("a place is within or between");
	*out = strcmp(word, "within") ? DRV_PLACE_BETWEEN : DRV_PLACE_WITHIN;
	return 0;
}

static int read_option(struct soak_plan *plan, int option, const char *text)
{
	uint64_t number = 0;
	int status = 0;

	switch (option) {
	case 'm': plan->modules = text; break;
	case 'l': plan->layer = text; break;
	case 'd': plan->device = text; break;
	case 'a': plan->address = text; break;
	case 'P': plan->patient = true; break;
	case 'K': plan->keeps = true; break;
	case 'p': return read_place(text, &plan->place);
	case 'r': return read_number(text, 1000, UINT64_MAX / 2, &plan->requests);
	case 'k': return read_number(text, 0, 100000, &plan->kills);
	case 's': return read_number(text, 0, UINT64_C(1000000000), &plan->service_ns);
	case 'S': return read_number(text, 0, UINT64_MAX, &plan->seed);
	case 'v':
		status = read_number(text, PRESS_V0, PRESS_V5, &number);
		plan->version = (enum press_version)number;
		break;
	case 'n':
		status = read_number(text, 3, 16, &number);
		plan->nodes = (uint32_t)number;
		break;
	case 'c':
		status = read_number(text, 1, 256, &number);
		plan->connections = (uint32_t)number;
		break;
	case 'N':
		status = read_number(text, 1, plan->nodes, &number);
		plan->number = (uint32_t)number;
		break;
	case 'C':
		status = read_number(text, 64, 1 << 20, &number);
		plan->cache_bytes = number * KIB;
		break;
	case 'w':
		status = read_number(text, 64, 1 << 24, &number);
		plan->working_bytes = number * KIB;
		break;
	case 'h': fputs(usage, stdout); exit(0);
	default: status = -1;
	}
	return status;
}

int soak_plan_read(struct soak_plan *plan, int argc, char **argv)
{
	int option;

	*plan = (struct soak_plan){.modules = "build/layers",
				   .place = DRV_PLACE_WITHIN,
				   .device = "lo",
				   .address = "127.0.0.1",
				   .nodes = 4,
				   .connections = 8,
				   .requests = 1000000,
				   .kills = 30,
				   .seed = 1,
				   .cache_bytes = 4096 * KIB,
				   .working_bytes = 65536 * KIB,
				   .service_ns = 200000};
	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0)
		if (read_option(plan, option, optarg))
			return -1;
	if (!plan->layer)
		return wrong("no --layer");
	return optind == argc ? 0 : wrong("there is a word too many");
}
