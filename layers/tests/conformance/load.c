/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding, loading and looking into modules. */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cadge/check.h"
#include "conformance.h"

/* What was loaded: the module's table, and the one of our own that stands for it. */
static struct {
	const struct cadge_layer *raw;
	struct cadge_layer own;
} loaded[4];
static unsigned int loaded_count;

const struct cadge_layer *module_table(const struct cadge_layer *layer)
{
	for (unsigned int i = 0; i < loaded_count; i++)
		if (layer == &loaded[i].own)
			return loaded[i].raw;
	return layer;
}

const struct cadge_layer *module_load(const char *file, char *reason, size_t reason_bytes)
{
	struct cadge_layer *layer = &loaded[loaded_count].own;
	cadge_layer_entry_fn entry;
	void *handle, *symbol;
	char why[256];

	handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		snprintf(reason, reason_bytes, "cannot load %s: %s", file, dlerror());
		return NULL;
	}
	symbol = dlsym(handle, CADGE_ENTRY_SYMBOL);
	if (!symbol) {
		snprintf(reason, reason_bytes, "%s has no symbol %s", file, CADGE_ENTRY_SYMBOL);
		return NULL;
	}
	memcpy(&entry, &symbol, sizeof(entry));
	if (loaded_count + 1 == sizeof(loaded) / sizeof(loaded[0])) {
		snprintf(reason, reason_bytes, "the suite loads fewer modules than that");
		return NULL;
	}
	loaded[loaded_count].raw = entry();
	if (cadge_layer_take(loaded[loaded_count].raw, layer, why, sizeof(why)) < 0) {
		snprintf(reason, reason_bytes, "%s: %s", file, why);
		return NULL;
	}
	loaded_count++;
	return layer;
}

/* Writes the files of the layer and of the shim ("" without one). -1 with a message on stderr. */
int module_find(const struct options *opt, char *file_out, size_t file_bytes, char *shim_file_out)
{
	int n;

	if (opt->module)
		n = snprintf(file_out, file_bytes, "%s%s", strchr(opt->module, '/') ? "" : "./", opt->module);
	else
		n = snprintf(file_out, file_bytes, "%s/%s.so", opt->modules, opt->layer);
	if (n < 0 || (size_t)n >= file_bytes)
		return fprintf(stderr, "cadge-conformance: the path of the module is too long\n"), -1;
	shim_file_out[0] = 0;
	if (opt->shim) {
		n = snprintf(shim_file_out, file_bytes, "%s/shim-%s.so", opt->modules, opt->shim);
		if (n < 0 || (size_t)n >= file_bytes)
			return fprintf(stderr, "cadge-conformance: the path of the shim is too long\n"), -1;
	}
	for (const char *file = file_out; file; file = file == file_out && opt->shim ? shim_file_out : NULL)
		if (access(file, R_OK) < 0)
			return fprintf(stderr, "cadge-conformance: cannot read %s\n", file), -1;
	return 0;
}

static bool exported(const Elf64_Sym *symbol, const char *name)
{
	unsigned int bind = ELF64_ST_BIND(symbol->st_info),
		     visibility = ELF64_ST_VISIBILITY(symbol->st_other);

	if (symbol->st_shndx == SHN_UNDEF || bind == STB_LOCAL || !*name)
		return false;
	if (visibility == STV_HIDDEN || visibility == STV_INTERNAL)
		return false;
	/* The sanitizers' own marks are not the module's interface. */
	return strncmp(name, "__odr_asan", 10) != 0 && strncmp(name, "__asan_", 7) != 0 &&
	       strncmp(name, "__sancov", 8) != 0 && strncmp(name, "__start___sancov", 16) != 0 &&
	       strncmp(name, "__stop___sancov", 15) != 0;
}

/* Lists what the module exports, as `nm -D --defined-only` would. -1: not a readable ELF file of 64 bits. */
int module_exports(const char *file, char *names_out, size_t names_bytes, unsigned int *count_out)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC), result = -1;
	const Elf64_Shdr *sections;
	const Elf64_Ehdr *head;
	struct stat st;
	void *map;
	size_t size, used = 0;

	*count_out = 0;
	names_out[0] = 0;
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0 || st.st_size < (off_t)sizeof(*head)) {
		close(fd);
		return -1;
	}
	size = (size_t)st.st_size;
	map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		return -1;
	head = map;
	if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64 ||
	    head->e_shoff + (uint64_t)head->e_shnum * sizeof(*sections) > size)
		goto out;
	sections = (const void *)((const char *)map + head->e_shoff);
	for (unsigned int s = 0; s < head->e_shnum; s++) {
		const Elf64_Shdr *strings;
		const Elf64_Sym *symbol;

		if (sections[s].sh_type != SHT_DYNSYM || sections[s].sh_link >= head->e_shnum)
			continue;
		strings = &sections[sections[s].sh_link];
		symbol = (const void *)((const char *)map + sections[s].sh_offset);
		for (size_t i = 0; i < sections[s].sh_size / sizeof(*symbol); i++) {
			const char *name = (const char *)map + strings->sh_offset + symbol[i].st_name;
			int n;

			if (!exported(&symbol[i], name))
				continue;
			++*count_out;
			n = snprintf(names_out + used, names_bytes - used, "%s%s", used ? " " : "", name);
			if (n > 0 && used + (size_t)n < names_bytes)
				used += (size_t)n;
		}
		result = 0;
	}
out:
	munmap(map, size);
	return result;
}
