/* SPDX-License-Identifier: BSD-3-Clause */
/* cadge-driver: the measuring process, one per endpoint. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cadge/layer.h"
#include "session/describe.h"
#include "base/fail.h"
#include "options.h"
#include "session/plugins.h"
#include "session/result.h"
#include "session/session.h"
#include "base/version.h"
#include "launch/watchdog.h"

static const char help[] =
	"cadge-driver - measures one communication layer between processes\n"
	"\n"
	"usage:\n"
	"  cadge-driver run --launch FILE --endpoint N --modules DIR --oob HOST:PORT --token-file FILE "
	"[--out FILE]\n"
	"  cadge-driver describe --modules DIR --layer NAME [--device lo] [--address 127.0.0.1]\n"
	"  cadge-driver patterns [--json]\n"
	"  cadge-driver version\n"
	"\n"
	"run        makes the attempts of a launch file (cadge.launch/2). Endpoint 0 listens on HOST:PORT, "
	"coordinates\n"
	"           and writes the result (cadge.result/2) to --out; endpoints 1 to 63 connect to it. The "
	"token "
	"file holds\n"
	"           at least 16 bytes, the same for all, and has mode 0600. Place self: only endpoint 0, "
	"without --oob\n"
	"           and --token-file. Floors: without --modules.\n"
	"describe   opens a layer in every place and wait mode of this machine and prints what it grants, or "
	"why not.\n"
	"patterns   prints the patterns and floors that this program was built with, as JSON.\n"
	"version    prints what this program is, as JSON.\n"
	"\n"
	"examples:\n"
	"  cadge-driver describe --modules build/layers --layer sockets-tcp\n"
	"  cadge-driver run --launch l.json --endpoint 0 --modules build/layers --oob 127.0.0.1:18500 "
	"--token-file t \\\n"
	"               --out result.json &\n"
	"  cadge-driver run --launch l.json --endpoint 1 --modules build/layers --oob 127.0.0.1:18500 "
	"--token-file t\n"
	"\n"
	"exit status: 0 result written; 2 wrong arguments or launch file; 3 the layer cannot be loaded or "
	"opened;\n"
	"  4 another endpoint was lost, or a deadline passed; 70 an internal error. Endpoint 0 "
	"writes a result\n"
	"  with the reason in cases 3 and 4 whenever it can.\n";

static int wrong(const char *text)
{
	fprintf(stderr, "cadge-driver: %s\ntry 'cadge-driver --help'\n", text);
	return 2;
}

static int run(int argc, char **argv)
{
	struct drv_run_options options;
	struct drv_session_args args;
	struct drv_fail fail;
	int status;

	if (drv_options_run(argc, argv, &options, &fail))
		return wrong(fail.text);
	if (drv_watchdog_start(options.launch.deadline_ns, &fail)) {
		fprintf(stderr, "cadge-driver: %s\n", fail.text);
		drv_launch_free(&options.launch);
		return drv_reason_exit(fail.reason);
	}
	args = (struct drv_session_args){
		.launch = &options.launch,
		.endpoint = options.endpoint,
		.modules = options.modules,
		.host_port = options.host_port,
		.token = &options.token,
		.out = options.out,
	};
	status = drv_session_run(&args);
	drv_launch_free(&options.launch);
	return status;
}

static int describe(int argc, char **argv)
{
	struct drv_describe_args args = {.device = "lo", .address = "127.0.0.1"};
	const struct {
		const char *name;
		const char **value;
	} known[] = {
		{"--modules", &args.modules},
		{"--layer", &args.layer},
		{"--device", &args.device},
		{"--address", &args.address},
	};

	for (int i = 0; i < argc; i += 2) {
		const char **value = NULL;

		for (size_t j = 0; j < sizeof(known) / sizeof(known[0]); j++)
			if (!strcmp(argv[i], known[j].name))
				value = known[j].value;
		if (!value || i + 1 == argc)
			return wrong(value ? "an argument needs a value" : "unknown argument");
		*value = argv[i + 1];
	}
	if (!args.modules || !args.layer)
		return wrong("describe needs --modules and --layer");
	return drv_describe(&args);
}

/* Prints a document that is taken over; the exit status. */
static int print(json_t *object)
{
	if (!object || json_dumpf(object, stdout, JSON_INDENT(1) | JSON_SORT_KEYS) || putchar('\n') == EOF ||
	    fflush(stdout) == EOF) {
		json_decref(object);
		return 70;
	}
	json_decref(object);
	return 0;
}

static int version(void)
{
	json_t *object = drv_driver_json();

	if (object && json_object_set_new(object, "schema", json_string(DRV_RESULT_SCHEMA))) {
		json_decref(object);
		object = NULL;
	}
	return print(object);
}

int main(int argc, char **argv)
{
	/* to whoever makes a file, a library's shared memory too, `ulimit -f` is an error with a name, not the end */
	signal(SIGXFSZ, SIG_IGN);
	if (argc < 2)
		return wrong("a command is missing");
	if (!strcmp(argv[1], "run"))
		return run(argc - 2, argv + 2);
	if (!strcmp(argv[1], "describe"))
		return describe(argc - 2, argv + 2);
	if (!strcmp(argv[1], "patterns") && (argc == 2 || (argc == 3 && !strcmp(argv[2], "--json"))))
		return print(drv_patterns_json());
	if (!strcmp(argv[1], "version") && argc == 2)
		return version();
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
		return fputs(help, stdout) == EOF ? 70 : 0;
	return wrong("unknown command");
}
