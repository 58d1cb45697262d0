/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of PM's adapter share: adapter.c has short messages and life, long.c long messages, memory.c remote writes. */
#ifndef CADGE_PM_ADAPTER_H
#define CADGE_PM_ADAPTER_H

#include "wire/style.h"
#include "pm/pm.h"

#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

#define PM_PACKET_BYTES       8192u
#define PM_WINDOW             64u
#define PM_BUFFERS            128u
#define PM_CHANNEL            0u
#define PM_MESSAGE_BYTES_MAX  (UINT64_C(1) << 30)
#define PM_ADAPTER_HEAD_BYTES 8u
#define PM_PAGE_BYTES         4096u
#define PM_LONG_TOKEN         (UINT64_MAX - 1) /* of a long message; others are numbers of operations */

/* The head of a packet: what it is, and the length of a long message shifted by PM_LENGTH_SHIFT. */
enum { PM_MESSAGE, PM_ASK, PM_GRANT, PM_END, PM_KIND_MASK = 0xff, PM_LENGTH_SHIFT = 8 };

/* A long message on its way out. ASKED: not granted yet. */
enum pm_phase { PM_IDLE, PM_ASKED, PM_WRITING, PM_QUIETING, PM_ENDING };

struct pm_out {
	enum pm_phase phase;
	struct cadge_iov iov[CADGE_STYLE_IOV_MAX]; /* what is left to write */
	struct pm_pin *pins[CADGE_STYLE_IOV_MAX];
	uint32_t iov_count, iov_at;
	uint64_t offset_bytes, token;
	uint32_t waiting;         /* writes, and a quiet, that have not ended */
	int code;                 /* of those that have */
	struct pm_remote *remote; /* the peer's landing, attached as long as it is the same */
};

struct cadge_chan {
	struct cadge_ctx *ctx;
	uint32_t peer;
	struct cadge_state state;
	struct pm_out out;
	uint8_t *staging; /* where long messages are built; NULL: none yet */
	size_t staging_bytes;
	bool staging_taken;
	/* in */
	uint8_t *landing; /* NULL: none yet */
	size_t landing_bytes;
	struct pm_pin *landing_pin; /* while a message comes in */
	uint64_t incoming_bytes;
	bool asked; /* and not granted yet */
};

/* A put or quiet of the caller; the wire's token is its number. */
struct pm_operation {
	struct pm_operation *next;
	struct cadge_chan *chan; /* NULL: free */
	uint64_t token;
};

struct cadge_ctx {
	struct pm *pm;
	struct cadge_sink *sink;
	struct cadge_style_asked asked;
	void *received; /* see cadge_style_received; NULL: messages are read where they came */
	uint64_t short_bytes_max;
	uint32_t peers;
	uint32_t unfinished; /* long messages that go out, or were asked for and not granted */
	bool stuck;          /* one of them found no room */
	int events;
	/* A page that peers attach when they connect, to see who carries out their puts. */
	void *sample;
	struct pm_pin *sample_pin;
	enum cadge_progress reach; /* of a put to their samples; NONE: nobody was connected */
	struct pm_operation *operations, *idle;
	uint32_t operations_count;
	struct cadge_chan chans[];
};

/* memory.c: what it needs of PM, then its own part of ctx. */
void pm_memory_needs(struct cadge_ctx *ctx, const struct cadge_open_args *args, struct pm_config *config);
bool pm_memory_open(struct cadge_ctx *ctx);
int pm_sample_address(const struct cadge_ctx *ctx, struct cadge_blob_out *blob);
int pm_sample_take(struct cadge_chan *chan, struct cadge_blob_in *handle);
/* A life of the channel has ended. */
void pm_memory_forget(struct cadge_chan *chan);
void pm_long_forget(struct cadge_chan *chan);
void pm_memory_ended(void *arg, uint32_t peer, uint64_t token, int code);

/* long.c. Memory for a long message that is built in place: DONE, or BUSY, E_MEMORY. */
int pm_staging_take(struct cadge_chan *chan, size_t bytes, void **base_out);
/* Of a channel where none is under way: QUEUED, or BUSY or negative. */
int pm_long_post(struct cadge_chan *chan, const struct cadge_iov *iov, uint32_t count, uint64_t token);
void pm_long_arrived(struct cadge_chan *chan, uint64_t head, const uint8_t *body, size_t bytes);
void pm_long_go_on(struct cadge_ctx *ctx);

/* Slots that not every style has. */
void pm_slot_release(struct cadge_ctx *ctx, struct cadge_lend *lend);
int pm_slot_reserve(struct cadge_chan *chan, size_t bytes, uint32_t flags, void **base_out);
int pm_slot_commit(struct cadge_chan *chan, void *base, size_t bytes, uint32_t flags, uint64_t token);
void pm_slot_cancel(struct cadge_chan *chan, void *base);
void pm_slot_semantics(const struct cadge_ctx *ctx, struct cadge_semantics *semantics_out);
int pm_slot_expose(struct cadge_ctx *ctx, void *base, size_t bytes, uint32_t rights, uint32_t peer,
		   uint32_t flags, void *key, size_t *key_bytes_inout, struct cadge_region **region_out);
void pm_slot_unexpose(struct cadge_ctx *ctx, struct cadge_region *region);
int pm_slot_attach(struct cadge_chan *chan, const void *key, size_t key_bytes, uint32_t intent,
		   uint32_t flags, struct cadge_remote **remote_out);
void pm_slot_detach(struct cadge_chan *chan, struct cadge_remote *remote);
int pm_slot_put(struct cadge_chan *chan, const void *local, size_t bytes, struct cadge_remote *remote,
		uint64_t offset_bytes, uint32_t flags, uint64_t token);
int pm_slot_quiet(struct cadge_chan *chan, uint32_t flags, uint64_t token);
void *pm_slot_mem_alloc(struct cadge_ctx *ctx, size_t bytes);
void pm_slot_mem_free(struct cadge_ctx *ctx, void *base, size_t bytes);
int pm_slot_mem_reg(struct cadge_ctx *ctx, void *base, size_t bytes);
int pm_slot_mem_dereg(struct cadge_ctx *ctx, void *base, size_t bytes);

#define PM_CAPS                                                                                              \
	(CADGE_STYLE_CAPS | CADGE_CAP_FLOW_CONTROL | CADGE_CAP_LEND | CADGE_CAP_RESERVE | CADGE_CAP_PUT |    \
	 CADGE_CAP_MEM_ALLOC | CADGE_CAP_MEM_REG)

#define PM_SLOTS                                                                                             \
	.semantics = pm_slot_semantics, .release = pm_slot_release, .reserve = pm_slot_reserve,              \
	.commit = pm_slot_commit, .cancel = pm_slot_cancel, .expose = pm_slot_expose,                        \
	.unexpose = pm_slot_unexpose, .attach = pm_slot_attach, .detach = pm_slot_detach,                    \
	.put = pm_slot_put, .quiet = pm_slot_quiet, .mem_alloc = pm_slot_mem_alloc,                          \
	.mem_free = pm_slot_mem_free, .mem_reg = pm_slot_mem_reg, .mem_dereg = pm_slot_mem_dereg

#endif
