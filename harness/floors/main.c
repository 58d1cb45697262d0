/* SPDX-License-Identifier: BSD-3-Clause */
/* cadge-floor: the machine's own limits, measured like a layer. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "floor.h"

static const char usage[] = "usage: cadge-floor run --launch FILE --endpoint 0|1 --oob HOST:PORT "
			    "--token-file FILE [--out FILE] [--modules DIR]\n"
			    "       cadge-floor list\n"
			    "Measures a floor: the fastest bare exchange of the same bytes that this machine "
			    "allows. Endpoint 1 listens on HOST:PORT,\n"
			    "endpoint 0 connects, measures and writes the result. --modules is accepted as "
			    "by cadge-driver, and not needed.\n";

static int list(void)
{
	for (size_t i = 0; floors[i]; i++)
		printf("%-16s %-46s %s%s; %s%s; pingpong%s\n", floors[i]->name, floors[i]->title,
		       floors[i]->within ? "within" : "",
		       floors[i]->between ? (floors[i]->within ? ", between" : "between") : "",
		       floors[i]->poll ? "poll" : "",
		       floors[i]->block ? (floors[i]->poll ? ", block" : "block") : "",
		       floors[i]->stream ? ", stream" : "");
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{"launch", 1, NULL, 'l'}, {"endpoint", 1, NULL, 'e'}, {"modules", 1, NULL, 'm'},
		{"oob", 1, NULL, 'b'},    {"out", 1, NULL, 'o'},      {"token-file", 1, NULL, 't'},
		{"help", 0, NULL, 'h'},   {NULL, 0, NULL, 0},
	};
	const char *launch = NULL, *endpoint = NULL, *oob = NULL, *token = NULL, *out = NULL;
	const char *verb = argc > 1 ? argv[1] : "";
	int c;

	if (!strcmp(verb, "list"))
		return list();
	if (!strcmp(verb, "--help") || !strcmp(verb, "-h") || !strcmp(verb, "help")) {
		fputs(usage, stdout);
		return 0;
	}
	if (strcmp(verb, "run")) {
		fputs(usage, stderr);
		return 2;
	}
	optind = 2;
	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		switch (c) {
		case 'l': launch = optarg; break;
		case 'e': endpoint = optarg; break;
		case 'b': oob = optarg; break;
		case 't': token = optarg; break;
		case 'o': out = optarg; break;
		case 'm': break;
		case 'h': fputs(usage, stdout); return 0;
		default: return 2;
		}
	}
	if (optind < argc || !launch || !oob || !token || !endpoint ||
	    (strcmp(endpoint, "0") && strcmp(endpoint, "1"))) {
		fputs("cadge-floor: run needs --launch, --endpoint 0 or 1, --oob and --token-file "
		      "(cadge-floor --help)\n",
		      stderr);
		return 2;
	}
	if (out && endpoint[0] == '1') {
		fputs("cadge-floor: --out belongs to endpoint 0\n", stderr);
		return 2;
	}
	return floor_run_launch(launch, endpoint[0] == '1', oob, token, out);
}
