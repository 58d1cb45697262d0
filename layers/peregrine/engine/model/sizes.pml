/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The size of packets (../PROTOCOL.md): one call and its result, each of three pieces of data: in large packets 0 and 1 | 2,
 * in small ones 0 | 1 | 2.
 *
 * The network is as in peregrine.pml. Without PROGRESS it delivers what was ever sent at any later time, any number of times or
 * never, and the client goes over to small packets at any moment. With PROGRESS losses are counted, from some moment on no large
 * packet arrives, or all do; and the client goes over after two time-outs in which nothing of the message arrived.
 */
#ifndef LOSS
#define LOSS 0
#endif

#define LARGE 0
#define SMALL 1
#define ALL(size) (3 + 4 * (size)) /* its packets, as bits */
#define PIECES(size, n) ((size) * (1 << (n)) + (1 - (size)) * (3 + (n))) /* in a packet, as bits */
#define EVERYTHING 7

/* Packets are bits of two sets. A message's by size and number: */
#define PART(size, n) ((size) * 2 + (n))
#define SIZE_OF(p) ((p) > 1)
#define NUMBER_OF(p) ((p) - 2 * ((p) > 1))
/* To the server: packets of the call, then */
#define PROBE(size) (5 + (size)) /* the result's packets may be so large */
#define CNACK(size, got) (7 + (size) * 4 + (got))
/* To the client: packets of the result, then */
#define ALIVE 5
#define LARGE_KEPT 6 /* alive, and the result is on its way in large packets */
#define NACK(size, got) (7 + (size) * 4 + (got))
#define GOT_OF(p) ((p) - 7 - 4 * ((p) > 10))
#define REPORT_SIZE(p) ((p) > 10)
int to_server, to_client;

/* Some packet of a set: one branch a bit. */
#define TAKE1(set, x) :: ((set >> (x)) & 1) -> p = x
#define TAKE4(set, x) TAKE1(set, x) TAKE1(set, (x) + 1) TAKE1(set, (x) + 2) TAKE1(set, (x) + 3)
#define TAKE(set) TAKE4(set, 0) TAKE4(set, 4) TAKE4(set, 8) TAKE4(set, 12) TAKE1(set, 16) TAKE1(set, 17) TAKE1(set, 18)

/* A message on its way in. */
typedef incoming {
	bit begun, size;
	byte got, pieces
}
incoming call, result;

bit client_size, alive, ended;
byte told;   /* packets of the call that the server has, by its own word */
byte silences; /* time-outs in a row in which nothing new of the message arrived */
#define FREE 0
#define RECEIVING 1
#define EXECUTING 2
#define KEPT 3
byte state;
bit result_size, vanish;
byte losses;
byte p, n, before; /* scratch */

#define SEND(set, x) set = set | (1 << (x))
inline send_missing(set, size, got)
{
	n = 0;
	do
	:: n < 3 && ((ALL(size) >> n) & 1) && !((got >> n) & 1) -> SEND(set, PART(size, n)); n++
	:: n < 3 && !(((ALL(size) >> n) & 1) && !((got >> n) & 1)) -> n++
	:: n == 3 -> break
	od;
	n = 0
}

/* Takes packet p of a message. */
inline take(message)
{
	if
	:: !message.begun -> message.begun = 1; message.size = SIZE_OF(p)
	:: else
	fi;
#ifndef BUG_SIZES
	if /* begun anew: what is here of it in larger packets is dropped */
	:: message.size == LARGE && SIZE_OF(p) == SMALL -> message.size = SMALL; message.got = 0; message.pieces = 0
	:: else
	fi;
	if
	:: message.size == SIZE_OF(p) ->
#endif
		message.got = message.got | (1 << NUMBER_OF(p));
		message.pieces = message.pieces | PIECES(SIZE_OF(p), NUMBER_OF(p))
#ifndef BUG_SIZES
	:: else /* late */
	fi
#endif
}
#define WHOLE(message) ((message.got & ALL(message.size)) == ALL(message.size))

/* ---- the server ---- */

/* The client takes packets of this size for the result. */
inline asked_for(size)
{
	if
	:: size == SMALL && result_size == LARGE -> result_size = SMALL; send_missing(to_client, SMALL, 0)
	:: else ->
		SEND(to_client, PART(result_size, 1 + result_size)); /* the last one */
		if
		:: result_size == LARGE -> SEND(to_client, LARGE_KEPT)
		:: else
		fi
	fi
}

inline serve()
{
	if
	:: p < 5 && state <= RECEIVING ->
		state = RECEIVING;
		take(call);
		if
		:: WHOLE(call) ->
			assert(call.pieces == EVERYTHING);
			state = EXECUTING;
			result_size = call.size
		:: else ->
			if
			:: NUMBER_OF(p) == 1 + SIZE_OF(p) -> SEND(to_client, NACK(call.size, call.got))
			:: else
			fi
		fi
	:: (p == PROBE(LARGE) || p == PROBE(SMALL)) && state == FREE -> SEND(to_client, NACK(SMALL, 0))
	:: (p == PROBE(LARGE) || p == PROBE(SMALL)) && state == RECEIVING -> SEND(to_client, NACK(call.size, call.got))
	:: p < 7 && state == EXECUTING ->
		SEND(to_client, ALIVE);
		if
		:: p == PROBE(SMALL) -> result_size = SMALL
		:: else
		fi
	:: p < 5 && state == KEPT -> asked_for(SIZE_OF(p))
	:: p >= 5 && p < 7 && state == KEPT -> asked_for(p - 5)
	:: p >= 7 && state == KEPT && REPORT_SIZE(p) == result_size -> send_missing(to_client, result_size, GOT_OF(p))
	:: else /* late */
	fi
}

proctype Server()
{
end:	do
	:: atomic {
		if
		TAKE(to_server)
		fi;
#ifdef PROGRESS
		to_server = to_server & ~(1 << p);
		if
		:: p < 2 && vanish
		:: !(p < 2 && vanish) -> serve()
		:: losses < LOSS -> losses++
		fi;
#else
		serve();
#endif
		p = 0
	}
	:: atomic { state == EXECUTING -> state = KEPT; send_missing(to_client, result_size, 0) }
	od
}

/* ---- the client ---- */

inline heed()
{
	if
	:: ended
	:: !ended && p < 5 ->
		before = result.got + 8 * result.size;
		take(result);
		if
		:: result.got + 8 * result.size != before -> silences = 0
		:: else
		fi;
		before = 0;
		if
		:: WHOLE(result) -> assert(result.pieces == EVERYTHING); ended = 1
		:: else ->
			if
			:: NUMBER_OF(p) == 1 + SIZE_OF(p) -> SEND(to_server, CNACK(result.size, result.got))
			:: else
			fi
		fi
	:: !ended && (p == ALIVE || p == LARGE_KEPT) -> alive = 1
	:: !ended && p >= 7 && !result.begun ->
		if
		:: GOT_OF(p) == 0 -> alive = 0; send_missing(to_server, client_size, 0) /* no news: it may be the path */
		:: GOT_OF(p) != 0 && REPORT_SIZE(p) == client_size ->
			if
			:: GOT_OF(p) & ~told -> told = told | GOT_OF(p); silences = 0
			:: else
			fi;
			send_missing(to_server, client_size, GOT_OF(p))
		:: else /* late */
		fi
	:: else
	fi
}

inline shrink()
{
	client_size = SMALL;
	told = 0;
	silences = 0;
	if
	:: alive || result.begun -> SEND(to_server, PROBE(SMALL))
	:: else -> send_missing(to_server, SMALL, 0)
	fi
}

#ifdef PROGRESS /* by turns */
#define SAYS (silences % 2 == 1)
#define ASKS (silences % 2 == 0)
#else
#define SAYS true
#define ASKS true
#endif
inline repeat()
{
	if
	:: result.begun && SAYS -> SEND(to_server, CNACK(result.size, result.got))
	:: alive || (result.begun && ASKS) -> SEND(to_server, PROBE(client_size))
	:: !alive && !result.begun ->
		SEND(to_server, PART(client_size, 1 + client_size));
		if
		:: client_size == LARGE -> SEND(to_server, PROBE(LARGE)) /* where the large one does not arrive, this does */
		:: else
		fi
	fi
}

proctype Client()
{
	send_missing(to_server, LARGE, 0);
end:	do
	:: atomic {
		if
		TAKE(to_client)
		fi;
#ifdef PROGRESS
		to_client = to_client & ~(1 << p);
		if
		:: p < 2 && vanish
		:: !(p < 2 && vanish) -> heed()
		:: losses < LOSS -> losses++
		fi;
#else
		heed();
#endif
		p = 0
	}
#ifndef PROGRESS
	:: atomic { !ended && client_size == LARGE -> shrink() }
	:: atomic { !ended -> repeat() }
	:: atomic { !ended -> SEND(to_server, PROBE(client_size)) }
#endif
	od
}

#ifdef PROGRESS
proctype Path()
{
	if
	:: vanish = 1
	:: skip
	fi
}

/* Nothing is under way and no procedure runs: the timer fires. */
proctype Clock()
{
	do
	:: atomic {
		to_server == 0 && to_client == 0 && state != EXECUTING && !ended ->
		silences++;
		if
#ifndef BUG_STAYS
		:: client_size == LARGE && silences >= 2 -> shrink()
		:: !(client_size == LARGE && silences >= 2) -> repeat()
#else
		:: silences > 2 -> silences = 1; repeat()
		:: else -> repeat()
#endif
		fi
	}
	:: ended -> break
	od
}

ltl the_call_ends { <> ended }
#endif

init {
	atomic {
		run Client();
		run Server();
#ifdef PROGRESS
		run Path();
		run Clock()
#endif
	}
}
