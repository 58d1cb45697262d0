/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every layer on UCX shares: bringing up a context and a worker on the device that was asked for,
 * endpoints, sleeping, reading back the lanes, closing without waiting for the dead. No messages and no
 * policy.
 *
 * Written for UCX 1.13 to 1.18. Two of its habits shape this file:
 * - Endpoints use UCP_ERR_HANDLING_MODE_NONE, since UCP_ERR_HANDLING_MODE_PEER makes UCX 1.13 leave shared
 * memory for TCP without a word. An error handler is installed all the same: it reports broken TCP
 * connections.
 * - Without error handling an endpoint can only be closed by flushing it, which never ends when the peer is
 * dead. Such a close is begun and left behind; the worker takes it along when it is destroyed.
 */
#ifndef CADGE_WIRE_UCX_UCX_H
#define CADGE_WIRE_UCX_UCX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ucp/api/ucp.h>

#include "cadge/layer.h"
#include "kit/adapter.h"

#define CADGE_UCX_CLOSING_MAX 64u
#define CADGE_UCX_IDS         4096u
#define CADGE_UCX_THREADS     1u /* of the library in a process: its timers and connections */

struct cadge_ucx {
	ucp_context_h context;
	ucp_worker_h worker;
	ucp_address_t *address; /* of the worker, the library's */
	size_t address_bytes;
	int wake_fd; /* -1 in poll mode */
	enum cadge_place place;
	bool transports_given; /* by the setting "transports" */
	bool verbs;            /* a transport of libibverbs was asked for */
	bool soft;             /* on a device that is soft RoCE */
	char device[32];
	char lane_device[72]; /* what UCX calls it: "rxe0:1" for verbs */
	char transports[64];
	void *closing[CADGE_UCX_CLOSING_MAX]; /* requests of closes that go on */
	unsigned int closing_count;
	/* set by the layer before it closes: operations of its own are still with the library */
	bool unfinished;
	unsigned int id_next;
	bool id_live[CADGE_UCX_IDS];
	char why[128]; /* what the library said of the last error */
};

/* The option that every UCX layer has: an initialiser for its table of options. */
#define CADGE_UCX_OPTION_TRANSPORTS                                                                          \
	{"transports", "", "transports that UCX may use, as in UCX_TLS; empty: the library decides"}

/*
 * Starts context and worker with UCP_FEATURE_* of `features` (WAKEUP is added in block mode), on args->device
 * and with the setting "transports". DONE or what cadge_layer.open returns, with a sentence. On failure *ucx
 * is all zero.
 */
int cadge_ucx_open(const struct cadge_open_args *args, uint64_t features, struct cadge_ucx *ucx);
/* Destroys worker and context; a zero struct is legal. Never waits for a peer. */
void cadge_ucx_close(struct cadge_ucx *ucx);

/* A layer code for a status of the library (DONE for UCS_OK). */
int cadge_ucx_code(ucs_status_t status);
/* Keeps the library's words for an error, for why. Returns the code. */
int cadge_ucx_failed(struct cadge_ucx *ucx, const char *what, ucs_status_t status);

/*
 * An endpoint to the worker whose address is at `address`. `on_error` runs inside progress with `arg` when
 * the connection breaks; the endpoint then still has to be closed.
 */
int cadge_ucx_connect(struct cadge_ucx *ucx, const void *address, ucp_err_handler_cb_t on_error, void *arg,
		      ucp_ep_h *ep_out);
/* Begins to close an endpoint; does not block. Operations of it that go on end inside later progress, or with
 * the worker. */
void cadge_ucx_disconnect(struct cadge_ucx *ucx, ucp_ep_h ep);
/* Gives finished closes back to the library, lets unfinished ones go on. Cheap where there is none. */
void cadge_ucx_reap(struct cadge_ucx *ucx);
/* Progress for closes and sends, at most a bounded number of rounds (milliseconds), ends when all closes are
 * done. */
void cadge_ucx_drain(struct cadge_ucx *ucx);

/*
 * Active message ids distinguish senders and the lives of their channels: the receiver chooses a new one for
 * each life and tells it in its address. Ids are used round and round; one that was given back drops what
 * still arrives.
 */
int cadge_ucx_take_id(struct cadge_ucx *ucx, ucp_am_recv_callback_t handler, void *arg, uint32_t flags,
		      unsigned int *id_out);
int cadge_ucx_give_id(struct cadge_ucx *ucx, unsigned int id);

/* As cadge_layer.wait. Block mode only. */
int cadge_ucx_wait(struct cadge_ucx *ucx, uint64_t timeout_ns);
/* As cadge_layer.event. Block mode only. */
int cadge_ucx_event(struct cadge_ucx *ucx, int *fd_out, uint64_t *due_ns_out);
/* As cadge_layer.describe_path; leaves `note` empty. */
int cadge_ucx_describe(struct cadge_ucx *ucx, ucp_ep_h ep, struct cadge_path *path_out);
/*
 * What the library's thread does: over verbs, in block mode, it takes the completions that wake it.
 */
static inline enum cadge_thread_role cadge_ucx_thread_role(const struct cadge_ucx *ucx)
{
	return ucx->verbs && ucx->wake_fd >= 0 ? CADGE_THREADS_PROGRESS : CADGE_THREADS_HOUSEKEEPING;
}
/* As cadge_layer.library. */
void cadge_wire_library(struct cadge_library *library_out);

#endif
