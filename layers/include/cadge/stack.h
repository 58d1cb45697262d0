/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stack of the calling thread as text, for a process that hangs in a library: from the handler of a signal. Header-only, so
 * that the driver and the conformance suite share it; no part of the contract, and adapters have no use for it.
 *
 * Names come from the symbol tables of the files themselves, so that an adapter's static functions have theirs, without a
 * debugger. All but dladdr and backtrace is safe in a handler; these two take the loader's lock. Whoever calls this from a
 * handler has nothing left to lose, or a timer that ends the process.
 */
#ifndef CADGE_STACK_H
#define CADGE_STACK_H

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

enum { CADGE_STACK_FRAMES_MAX = 40, CADGE_STACK_BYTES = 6144 };

/* To be called once, before any handler: backtrace loads a library when it is first used. */
static inline void cadge_stack_prepare(void)
{
	void *frame;

	(void)backtrace(&frame, 1);
}

struct cadge_stack_file {
	const unsigned char *at;
	size_t bytes;
};

/* The part of a file between two offsets; NULL where it does not have them. */
static inline const void *cadge_stack_part(const struct cadge_stack_file *file, uint64_t offset,
					   uint64_t bytes)
{
	return offset <= file->bytes && bytes <= file->bytes - offset ? file->at + offset : NULL;
}

/* The function of a symbol table that holds `address`, and how far into it that is; NULL: none. */
static inline const char *cadge_stack_search(const struct cadge_stack_file *file, const ElfW(Shdr) * sections,
					     const ElfW(Shdr) * table, uint64_t address, uint64_t *into_out)
{
	const ElfW(Sym) *symbols = cadge_stack_part(file, table->sh_offset, table->sh_size);
	const ElfW(Shdr) *strings = &sections[table->sh_link];
	const char *names = cadge_stack_part(file, strings->sh_offset, strings->sh_size);

	if (!symbols || !names || !strings->sh_size || names[strings->sh_size - 1])
		return NULL;
	for (size_t i = 0; i < table->sh_size / sizeof(*symbols); i++)
		if ((symbols[i].st_info & 0xf) == STT_FUNC && symbols[i].st_shndx != SHN_UNDEF &&
		    address >= symbols[i].st_value && address - symbols[i].st_value < symbols[i].st_size &&
		    symbols[i].st_name < strings->sh_size) {
			*into_out = address - symbols[i].st_value;
			return names + symbols[i].st_name;
		}
	return NULL;
}

/* Copies the name of the function at `address` of that object. 0, or -1 where no symbol table of the file knows it. */
static inline int cadge_stack_name(const char *path, uint64_t base, uint64_t address, char *name, size_t room,
				   uint64_t *into_out)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct cadge_stack_file file = {NULL, 0};
	const ElfW(Shdr) * sections;
	const char *found = NULL;
	const ElfW(Ehdr) * head;
	struct stat status;

	if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size > 0)
		file = (struct cadge_stack_file){
			mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0),
			(size_t)status.st_size,
		};
	if (fd >= 0)
		close(fd);
	if (!file.at || file.at == MAP_FAILED)
		return -1;
	head = cadge_stack_part(&file, 0, sizeof(*head));
	if (head && memcmp(head->e_ident, ELFMAG, SELFMAG) == 0) {
		address -= head->e_type == ET_EXEC ? 0 : base;
		sections = cadge_stack_part(&file, head->e_shoff, sizeof(*sections) * (size_t)head->e_shnum);
		for (unsigned int i = 0; sections && !found && i < head->e_shnum; i++)
			if ((sections[i].sh_type == SHT_SYMTAB || sections[i].sh_type == SHT_DYNSYM) &&
			    sections[i].sh_link < head->e_shnum)
				found = cadge_stack_search(&file, sections, &sections[i], address, into_out);
	}
	if (found)
		snprintf(name, room, "%s", found);
	munmap((void *)(uintptr_t)file.at, file.bytes);
	return found ? 0 : -1;
}

/* Where the thread was interrupted, by what a handler was given as its third argument; 0: not known of this processor. */
static inline uintptr_t cadge_stack_interrupted(const void *context)
{
	const ucontext_t *at = context;

#if defined(__x86_64__)
	return (uintptr_t)at->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return (uintptr_t)at->uc_mcontext.pc;
#else
	(void)at;
	return 0;
#endif
}

/*
 * Writes the stack of the thread that a handler interrupted, innermost first, a line a frame: "  function+0x1d (file)".
 * Returns its length; the text ends in a zero byte.
 */
static inline size_t cadge_stack_text(const void *context, char *text, size_t room)
{
	const uintptr_t interrupted = cadge_stack_interrupted(context);
	void *frames[CADGE_STACK_FRAMES_MAX];
	const int count = backtrace(frames, CADGE_STACK_FRAMES_MAX);
	size_t used = 0;
	int first = 0;

	/* The handler's own frames say nothing. */
	while (first < count && (uintptr_t)frames[first] != interrupted)
		first++;
	first = first == count ? 0 : first;
	text[0] = '\0';
	for (int i = first; i < count; i++) {
		const uint64_t address = (uint64_t)(uintptr_t)frames[i];
		const char *file = "?";
		char name[128] = "?";
		uint64_t into = address;
		Dl_info info;
		int length;

		if (dladdr(frames[i], &info) && info.dli_fname) {
			file = strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1
							    : info.dli_fname;
			into = address - (uint64_t)(uintptr_t)info.dli_fbase;
			/* A return address may be that of the next function: the call is before it. */
			if (cadge_stack_name(info.dli_fname, (uint64_t)(uintptr_t)info.dli_fbase,
					     address - (i > first), name, sizeof(name), &into) == 0)
				into += i > first;
		}
		length = snprintf(text + used, room - used, "  %s+0x%llx (%s)\n", name,
				  (unsigned long long)into, file);
		if (length < 0 || (size_t)length >= room - used)
			break;
		used += (size_t)length;
	}
	text[used] = '\0';
	return used;
}

#endif
