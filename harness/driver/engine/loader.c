/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads a layer and a shim, and finds out which files they came from. */
#include "engine/loader.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cadge/check.h"
#include "base/text.h"

#define BUILD_ID_BYTES_MAX 64

/* The reason that the build left for a layer it could not make. */
static int absent(const char *modules, const char *name, struct drv_fail *fail)
{
	char path[PATH_MAX], line[300];
	FILE *file;

	if (snprintf(path, sizeof(path), "%s/%s.absent", modules, name) >= (int)sizeof(path))
		return drv_fail_set(fail, DRV_ARGUMENT, "--modules: the path is too long");
	file = fopen(path, "re");
	if (!file)
		return drv_fail_set(fail, DRV_BUILD_ABSENT, "there is no layer '%s' in %s", name, modules);
	if (!fgets(line, sizeof(line), file))
		snprintf(line, sizeof(line), "no reason given");
	fclose(file);
	line[strcspn(line, "\n")] = '\0';
	return drv_fail_set(fail, DRV_BUILD_ABSENT, "layer '%s' was not built: %s", name, line);
}

/*
 * A table of our own for a layer's, at the beginning of a cache line. Modules stay loaded until the process ends,
 * and so do these.
 */
static struct cadge_layer *new_table(void)
{
	static struct own {
		struct cadge_layer table;
		struct own *next;
	} *all;
	struct own *own = aligned_alloc(64, (sizeof(*own) + 63) / 64 * 64);

	if (!own)
		return NULL;
	own->next = all;
	all = own; /* so that it is no leak: it can still be reached */
	return &own->table;
}

static int load_one(const char *modules, const char *name, const struct cadge_layer **table_out,
		    struct drv_fail *fail)
{
	struct cadge_layer *table;
	char path[PATH_MAX], reason[300];
	union {
		void *object;
		cadge_layer_entry_fn function;
	} entry;
	void *handle;

	if (snprintf(path, sizeof(path), "%s/%s.so", modules, name) >= (int)sizeof(path))
		return drv_fail_set(fail, DRV_ARGUMENT, "--modules: the path is too long");
	if (access(path, F_OK))
		return absent(modules, name, fail);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return drv_fail_set(fail, DRV_NODE_LACKS, "layer '%s' cannot be loaded: %s", name, dlerror());
	entry.object = dlsym(handle, CADGE_ENTRY_SYMBOL);
	if (!entry.object)
		return drv_fail_set(fail, DRV_LIBRARY, "%s is not a layer: it has no %s", path,
				    CADGE_ENTRY_SYMBOL);
	table = new_table();
	if (!table)
		return drv_fail_set(fail, DRV_MEMORY, "no memory for the table of layer '%s'", name);
	if (cadge_layer_take(entry.function(), table, reason, sizeof(reason)))
		return drv_fail_set(fail, DRV_LIBRARY, "%s cannot be used: %s", path, reason);
	if (!cadge_module_named(name, table))
		return drv_fail_set(fail, DRV_LIBRARY, "%s calls itself '%s'", path, table->name);
	*table_out = table;
	return 0;
}

int drv_loader_load(const char *modules, const char *layer, const char *shim, struct drv_loaded *loaded_out,
		    struct drv_fail *fail)
{
	struct drv_loaded loaded = {0};
	char shim_name[128];

	if (load_one(modules, layer, &loaded.layer, fail))
		return -1;
	if (shim) {
		loaded.inner = loaded.layer;
		snprintf(shim_name, sizeof(shim_name), "shim-%s", shim);
		if (load_one(modules, shim_name, &loaded.layer, fail))
			return -1;
	}
	*loaded_out = loaded;
	return 0;
}

/* What dl_iterate_phdr is to find: the object that holds an address, and its build id. */
struct search {
	uintptr_t address;
	uint8_t build_id[BUILD_ID_BYTES_MAX];
	size_t build_id_bytes;
};

static void read_notes(const struct dl_phdr_info *object, const ElfW(Phdr) * segment, struct search *search)
{
	const char *at = (const char *)(object->dlpi_addr + segment->p_vaddr);
	const char *end = at + segment->p_memsz;

	while ((size_t)(end - at) >= sizeof(ElfW(Nhdr))) {
		ElfW(Nhdr) note;
		size_t name_bytes, text_bytes;

		memcpy(&note, at, sizeof(note));
		at += sizeof(note);
		name_bytes = (note.n_namesz + 3u) & ~(size_t)3;
		text_bytes = (note.n_descsz + 3u) & ~(size_t)3;
		if (name_bytes + text_bytes > (size_t)(end - at))
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !memcmp(at, "GNU", 4) &&
		    note.n_descsz <= BUILD_ID_BYTES_MAX) {
			memcpy(search->build_id, at + name_bytes, note.n_descsz);
			search->build_id_bytes = note.n_descsz;
		}
		at += name_bytes + text_bytes;
	}
}

static int match_object(struct dl_phdr_info *object, size_t object_bytes, void *argument)
{
	struct search *search = argument;
	int inside = 0;

	(void)object_bytes;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		const uintptr_t start = object->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_LOAD && search->address >= start &&
		    search->address - start < segment->p_memsz)
			inside = 1;
	}
	for (int i = 0; inside && i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_type == PT_NOTE)
			read_notes(object, &object->dlpi_phdr[i], search);
	return inside;
}

json_t *drv_loader_layer_origin(const struct cadge_layer *layer)
{
	union {
		const void *object;
		int (*function)(const struct cadge_open_args *args, struct cadge_ctx **ctx_out);
	} open = {.function = layer->open};

	return drv_loader_origin(open.object);
}

json_t *drv_loader_origin(const void *address)
{
	struct search search = {.address = (uintptr_t)address};
	char hex[2 * BUILD_ID_BYTES_MAX + 1];
	char *file = NULL;
	json_t *origin;
	Dl_info info;

	if (address) {
		if (dladdr(address, &info) && info.dli_fname)
			file = realpath(info.dli_fname, NULL);
		dl_iterate_phdr(match_object, &search);
	}
	drv_hex(search.build_id, search.build_id_bytes, hex);
	origin = json_pack("{s:o, s:o}", "file", drv_json_text(file), "build_id",
			   search.build_id_bytes ? json_string(hex) : json_null());
	free(file);
	return origin;
}
