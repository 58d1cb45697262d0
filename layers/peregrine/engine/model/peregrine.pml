/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Peregrine protocol (../PROTOCOL.md) for small bounds: one client, two calls, one server; with DELEGATE a second
 * server to which the first passes calls on. `check` says which macros make which variant.
 *
 * The network is a set of packets. Two kinds:
 *  - without PROGRESS it never loses what was once sent: any packet may arrive at any later time, any number of times, or
 *    never. That is every loss, duplication, reordering and delay at once, without a bound. It is for safety.
 *  - with PROGRESS a packet is taken out when it arrives; losses, duplicates and early time-outs are counted, and
 *    timers otherwise fire when nothing is under way. Two equal packets under way are one: to lose one of them is free.
 */

/* Bounds */
#ifndef RESTART
#define RESTART 0 /* how often a server may restart */
#endif
#ifndef FORGET
#define FORGET 0 /* how often the server may forget the client when its memory time is over */
#endif
#ifndef EXPIRE
#define EXPIRE 0 /* how often every cookie so far may expire */
#endif
#ifndef BUSY
#define BUSY 0 /* how often a call may be rejected as busy */
#endif
#ifndef SLEEP
#define SLEEP 0 /* how often the client's machine may sleep beyond the give-up time of its calls */
#endif
#ifndef LOSS
#define LOSS 0
#endif
#ifndef DUP
#define DUP 0
#endif
#ifndef EARLY
#define EARLY 0 /* time-outs before their time */
#endif
#ifdef BLAST
#define PARTS 2 /* packets of a message */
#else
#define PARTS 1
#endif

/*
 * More silent time-outs than anything but a death explains: the give-up time is longer than the trouble. Only every second
 * one of who takes a long result asks its server what a new one would answer.
 */
#ifdef BLAST
#define GIVE_UP (2 * (LOSS + BUSY + 1))
#else
#define GIVE_UP (LOSS + BUSY + 1)
#endif

/*
 * Binding 0 is the client's to the first server. Binding b > 0 is the one that incarnation b of the first server has to the
 * last: a new incarnation draws a new identifier.
 */
#ifdef DELEGATE
#define BINDINGS (RESTART + 2)
#else
#define BINDINGS 1
#endif
#define SERVER(b) ((b) > 0)
#define INCS (RESTART + 2) /* 0: not known */
#if FORGET || EXPIRE
#define GENS (4 + EXPIRE) /* generations of cookies; 0: none */
#else
#define GENS 2
#endif
#define PARTS_MASK ((1 << PARTS) - 1)
#if PARTS > 1
#define MASKS 3
#else
#define MASKS 1
#endif

#ifdef ONE_CALL
#define AFTER(k) ((k) == 0)
#define CALLS_ENDED ENDED(0, 0)
#else
#define CALLS_ENDED (ENDED(0, 0) && ENDED(0, 1))
#endif
/* Calls are 0 and 1: of one slot, one after the other, or of two slots at once. A server passes each on in a slot of its own. */
#ifdef TWO_SLOTS
#define SLOT(b, k) (k)
#ifndef ONE_CALL
#define AFTER(k) true
#endif
#else
#define SLOT(b, k) ((k) * ((b) > 0))
#ifndef ONE_CALL
#define AFTER(k) ((k) == 0 || ENDED(0, 0))
#endif
#endif
#define AT(b, k) ((b) * 2 + (k))
#define HELD(b, k) AT(b, SLOT(b, k))

/* A packet is a number. Requests of a binding: */
#define CALL(k, i, g, part) (((((part) * 2) + (k)) * INCS + (i)) * GENS + (g))
#define PROBES (PARTS * 2 * INCS * GENS)
#define PROBE(k, i) (PROBES + (k) * INCS + (i))
#define ACKS (PROBES + 2 * INCS)
#define ACK(k, i) (ACKS + (k) * INCS + (i))
#define CNACKS (ACKS + 2 * INCS) /* the client lacks packets of a result */
#define CNACK(k, i, got) (CNACKS + ((k) * INCS + (i)) * MASKS + (got))
#define DACKS (CNACKS + 2 * INCS * MASKS) /* the client acknowledges a result of the last server */
#define DACK(k) (DACKS + (k))
#define REQUESTS (DACKS + 2)
/* Answers: a result carries the number of the call (from 1) whose procedure made it; 0: the last server's "not delivered" */
#define RESULT(k, i, of, part) ((((part) * 2 + (k)) * INCS + (i)) * 3 + (of))
#define ALIVES (PARTS * 2 * INCS * 3)
#define ALIVE(k, i) (ALIVES + (k) * INCS + (i))
#define BUSIES (ALIVES + 2 * INCS)
#define REJECT(k, i) (BUSIES + (k) * INCS + (i))
#define NACKS (BUSIES + 2 * INCS)
#define NACK(k, i, got) (NACKS + ((k) * INCS + (i)) * MASKS + (got))
#define CHALLENGES (NACKS + 2 * INCS * MASKS)
#define CHALLENGE(k, i, claimed, g) (CHALLENGES + (((k) * INCS + (i)) * INCS + (claimed)) * GENS + (g))
#define DRESULTS (CHALLENGES + 2 * INCS * INCS * GENS)
#define DRESULT(k, of) (DRESULTS + (k) * 3 + (of))
#define ANSWERS (DRESULTS + 6)

#define REQUEST_WORDS ((REQUESTS + 31) / 32)
#define ANSWER_WORDS ((ANSWERS + 31) / 32)
int request[BINDINGS * REQUEST_WORDS];
int answer[BINDINGS * ANSWER_WORDS];
byte under_way; /* with PROGRESS: packets in the two sets */

/* Of a caller, by binding and call */
#define IDLE 0
#define OUT 1
#define GOT_RESULT 2
#define RESTARTED 3
#define GAVE_UP 4
#define REFUSED 5
#define ENDED(b, k) (outcome[AT(b, k)] > OUT)
byte outcome[BINDINGS * 2];
byte claim[BINDINGS * 2];
byte cookie[BINDINGS * 2];    /* that the call carried last */
bit heard[BINDINGS * 2];      /* an answer that puts off the give-up time has come */
byte silences[BINDINGS * 2];    /* time-outs since then */
#ifdef PROGRESS
bit alive[BINDINGS * 2];      /* that answer said so */
#endif
#if FORGET
bit stale[2];                 /* of binding 0: the memory time has passed since it first went out under its claim */
bit put_off[2];               /* of binding 0: its give-up time no longer bounds its age */
#endif
#if SLEEP
bit slept[2];                 /* of binding 0: its give-up time has passed, and no timer has fired since */
#endif
byte arrived[BINDINGS * 2];   /* parts of the result */
bit acked[BINDINGS * 2];
byte known_inc[BINDINGS];     /* what the binding's next call claims */
byte known_cookie[BINDINGS];  /* the last that any of its calls was given: for each slot that is not introduced */
bit introduced[BINDINGS * 2]; /* by slot: the server has had a call there, by its own word */

/* Of a server, by binding and slot */
#define FREE 0
#define RECEIVING 1
#define EXECUTING 2
#define DELIVERING 3 /* the last server's result is on its way to the client */
#define KEPT 4
#define ACKED 5
#define LOST 6 /* passed on, and not known to have ended: no more alive */
byte held[BINDINGS * 2];  /* number of the call from 1; 0: none */
byte state[BINDINGS * 2];
byte result_of[BINDINGS * 2];
byte stored[BINDINGS * 2];  /* parts of the call */
byte tries[BINDINGS * 2];   /* of a delivery */
byte part_of[2];            /* binding 0: whose part lies at this place */
bit running[BINDINGS * 2];  /* by call: a procedure outlives its slot */
byte inc[2] = 1;
byte generation[2] = 1;     /* of cookies made now */
byte good_from[2] = 1;      /* older cookies are expired */
bit last_dead;

/* What the properties are about */
bit executed[2];
bit passed[2];
bit taken_up[2]; /* the first server has had the call */
byte restarts, last_restarts, restarted, forgets, expiries, busies, sleeps, losses, dups, earlies;

/* Scratch, 0 between atomic steps */
byte p, t, k, i, g, part, claimed, fate, busy, which, j, h;

#define T_CALL 1
#define T_PROBE 2
#define T_ACK 3
#define T_CNACK 4
#define T_DACK 5
#define T_RESULT 6
#define T_ALIVE 7
#define T_BUSY 8
#define T_NACK 9
#define T_CHALLENGE 10
#define T_DRESULT 11

inline tidy()
{
	p = 0; t = 0; k = 0; i = 0; g = 0; part = 0; claimed = 0; fate = 0; busy = 0; which = 0; j = 0; h = 0
}

#ifdef PROGRESS
#define ONE_MORE under_way++
#define ONE_LESS under_way--
#else
#define ONE_MORE skip
#define ONE_LESS skip
#endif
/* Into a set, out of a set. */
#define PUT(word, x) \
	if \
	:: !((word >> ((x) % 32)) & 1) -> word = word | (1 << ((x) % 32)); ONE_MORE \
	:: else \
	fi
#define REMOVE(word, x) word = word & ~(1 << ((x) % 32)); ONE_LESS
inline ask(to, what)
{
	PUT(request[(to) * REQUEST_WORDS + (what) / 32], what)
}

inline reply(to, what)
{
	PUT(answer[(to) * ANSWER_WORDS + (what) / 32], what)
}

/* Some packet of a set: one branch a bit. */
#define TAKE1(set, words, x) :: ((set[b * words + (x) / 32] >> ((x) % 32)) & 1) -> p = x
#define TAKE4(set, words, x) TAKE1(set, words, x) TAKE1(set, words, (x) + 1) TAKE1(set, words, (x) + 2) TAKE1(set, words, (x) + 3)
#define TAKE16(set, words, x) TAKE4(set, words, x) TAKE4(set, words, (x) + 4) TAKE4(set, words, (x) + 8) TAKE4(set, words, (x) + 12)
#define TAKE32(set, words, x) TAKE16(set, words, x) TAKE16(set, words, (x) + 16)

/* What the network does with packet p: it arrives (fate 1), arrives and stays under way, is lost; or anything at all. */
#ifdef PROGRESS
#define NETWORK(word) \
	if \
	:: fate = 1; REMOVE(word, p) \
	:: dups < DUP -> dups++; fate = 1 \
	:: losses < LOSS -> losses++; REMOVE(word, p) \
	fi
#else
#define NETWORK(word) fate = 1
#endif

/* Over a network without bounds a call may always be asked for; else only one that the server has said is alive. */
#if defined(PROGRESS) && !defined(NO_PROBE)
#define TOLD_ALIVE(b, k, yes) alive[AT(b, k)] = yes
#define IS_ALIVE(b, k) (alive[AT(b, k)])
#define IS_UNHEARD(b, k) (!alive[AT(b, k)])
#else
#define TOLD_ALIVE(b, k, yes) skip
#define IS_ALIVE(b, k) true
#define IS_UNHEARD(b, k) true
#endif

/* Some packets of a result are here. */
#if PARTS > 1
#define TAKES(b, k) (arrived[AT(b, k)] != 0)
#else
#define TAKES(b, k) false
#endif
/* By turns, as far as time-outs are counted. */
#ifdef PROGRESS
#define SAYS(b, k) (silences[AT(b, k)] % 2 || silences[AT(b, k)] == 0)
#else
#define SAYS(b, k) true
#endif
#if defined(BUG_NO_ASK)
#define ASKS(b, k) false
#undef SAYS
#define SAYS(b, k) true
#elif defined(PROGRESS)
#define ASKS(b, k) (silences[AT(b, k)] % 2 == 0)
#else
#define ASKS(b, k) true
#endif

/* ---- the caller ---- */

#ifdef BUG_CARRY
#define MAY_TAKE_COOKIE(b, k) true
#else
#define MAY_TAKE_COOKIE(b, k) (claim[AT(b, k)] == 0)
#endif
/*
 * What went out under 0 was executed by nobody: a later claim is free, and so is a cookie that another slot was given. Any
 * other call goes on with what it went out with.
 */
inline address(b, k)
{
	if
	:: MAY_TAKE_COOKIE(b, k) && !introduced[HELD(b, k)] -> cookie[AT(b, k)] = known_cookie[b]
	:: else
	fi;
	if
	:: claim[AT(b, k)] == 0 -> claim[AT(b, k)] = known_inc[b]
	:: else
	fi
}

inline send_part(b, k, n)
{
	ask(b, CALL(k, claim[AT(b, k)], cookie[AT(b, k)], n))
}

inline send_call(b, k)
{
	address(b, k);
	send_part(b, k, 0);
#if PARTS > 1
	send_part(b, k, 1)
#endif
}

inline begin(b, k)
{
	outcome[AT(b, k)] = OUT;
	claim[AT(b, k)] = 0;
	cookie[AT(b, k)] = 0;
	heard[AT(b, k)] = 0;
	silences[AT(b, k)] = 0;
	arrived[AT(b, k)] = 0;
	TOLD_ALIVE(b, k, 0);
	send_call(b, k)
}

#if SLEEP
#define SLEPT(b, k) ((b) == 0 && slept[k])
#define WAKE(b, k) if :: (b) == 0 -> slept[k] = 0 :: else fi
#else
#define SLEPT(b, k) false
#define WAKE(b, k) skip
#endif

/* `how` is the outcome, `to` what becomes of the slot if the call was passed on. */
inline finish_call(b, k, how, to)
{
	outcome[AT(b, k)] = how;
	cookie[AT(b, k)] = 0;
	heard[AT(b, k)] = 0;
	silences[AT(b, k)] = 0;
	arrived[AT(b, k)] = 0;
	TOLD_ALIVE(b, k, 0);
	WAKE(b, k);
#if FORGET
	if
	:: b == 0 -> stale[k] = 0; put_off[k] = 0
	:: else
	fi;
#endif
	if
	:: b > 0 && b == inc[0] && held[HELD(0, k)] == k + 1 && state[HELD(0, k)] == EXECUTING -> state[HELD(0, k)] = to
	:: else
	fi
}

/* The server has the call: the cookie has done its work in this slot. */
inline word(b, k)
{
	heard[AT(b, k)] = 1;
	silences[AT(b, k)] = 0;
	WAKE(b, k);
	introduced[HELD(b, k)] = 1
}

inline obey(b, k)
{
	claim[AT(b, k)] = i;
	cookie[AT(b, k)] = g;
	known_inc[b] = i;
	known_cookie[b] = g;
	introduced[HELD(b, k)] = 0;
	TOLD_ALIVE(b, k, 0);
	send_call(b, k)
}

#ifdef BUG_HEARD
#define HAD_IT(b, k) false
#else
#define HAD_IT(b, k) heard[AT(b, k)]
#endif
/* A machine that slept: whatever the server remembered it may have forgotten since. */
#ifdef BUG_SLEEP
#define TOO_LATE(b, k) false
#else
#define TOO_LATE(b, k) SLEPT(b, k)
#endif
#if FORGET && !defined(IMPATIENT) && !defined(BUG_MEMORY)
#define MAY_BE_FORGOTTEN(b, k) ((b) == 0 && stale[k])
#else
#define MAY_BE_FORGOTTEN(b, k) false
#endif

inline challenged(b, k)
{
	if
	:: claimed != claim[AT(b, k)]
	:: claimed == claim[AT(b, k)] && claimed == 0 && g == cookie[AT(b, k)] /* the call carries it already */
	:: claimed == claim[AT(b, k)] && claimed == 0 && g != cookie[AT(b, k)] -> obey(b, k)
	:: claimed == claim[AT(b, k)] && claimed != 0 && claimed == i ->
		/*
		 * Once the server had the call, this is late, or the server has forgotten what it did: obeyed, it might do it
		 * again. So it might where it had the time to forget. Dropped, and no word: the give-up time runs on.
		 */
		if
		:: HAD_IT(b, k) || MAY_BE_FORGOTTEN(b, k) || g == cookie[AT(b, k)]
		:: else -> obey(b, k)
		fi
	:: claimed == claim[AT(b, k)] && claimed != 0 && claimed != i ->
#ifdef BUG_RESEND
		obey(b, k)
#else
		assert(claimed != inc[SERVER(b)]);
		restarted++;
#ifndef TWO_SLOTS
		assert(b > 0 || restarted <= restarts);
#endif
#ifndef BUG_STUCK
		if
		:: known_inc[b] == claim[AT(b, k)] ->
			known_inc[b] = i;
			known_cookie[b] = g;
			introduced[AT(b, 0)] = 0;
			introduced[AT(b, 1)] = 0
		:: else
		fi;
#endif
		finish_call(b, k, RESTARTED, LOST);
#ifdef BUG_BINDING /* the claim is the binding's, so the call in the other slot is repeated under the new one */
		if
		:: outcome[AT(b, 1 - k)] == OUT ->
			claim[AT(b, 1 - k)] = i;
			cookie[AT(b, 1 - k)] = g;
			send_call(b, 1 - k)
		:: else
		fi
#endif
#ifdef BUG_REPASS
		if
		:: b > 0 -> begin(b, k); state[HELD(0, k)] = EXECUTING
		:: else
		fi
#endif
#endif
	fi
}

/* Answer p of binding b has come. */
inline heed(b)
{
	if
	:: p < ALIVES ->
		t = T_RESULT; g = p % 3; i = (p / 3) % INCS; k = (p / (3 * INCS)) % 2; part = p / (6 * INCS)
	:: p >= ALIVES && p < BUSIES -> t = T_ALIVE; i = (p - ALIVES) % INCS; k = (p - ALIVES) / INCS
	:: p >= BUSIES && p < NACKS -> t = T_BUSY; i = (p - BUSIES) % INCS; k = (p - BUSIES) / INCS
	:: p >= NACKS && p < CHALLENGES ->
		t = T_NACK; g = (p - NACKS) % MASKS; i = ((p - NACKS) / MASKS) % INCS; k = (p - NACKS) / (MASKS * INCS)
	:: p >= CHALLENGES && p < DRESULTS ->
		t = T_CHALLENGE; g = (p - CHALLENGES) % GENS; claimed = ((p - CHALLENGES) / GENS) % INCS;
		i = ((p - CHALLENGES) / (GENS * INCS)) % INCS; k = (p - CHALLENGES) / (GENS * INCS * INCS)
	:: p >= DRESULTS -> t = T_DRESULT; g = (p - DRESULTS) % 3; k = (p - DRESULTS) / 3
	fi;
#ifdef BUG_SEQUENCE /* taken for whatever call is outstanding */
	if
	:: outcome[AT(b, k)] > OUT && k == 0 && outcome[AT(b, 1)] == OUT -> which = 1
	:: else -> which = k
	fi;
#else
	which = k;
#endif
	if
#ifdef DELEGATE
	:: t == T_DRESULT ->
		/* To the client, whatever binding it came by; the token's incarnation is b. */
		if
		:: outcome[AT(0, k)] == OUT && claim[AT(0, k)] == b ->
			assert(g == k + 1);
			finish_call(0, k, GOT_RESULT, FREE);
			ask(b, DACK(k))
		:: outcome[AT(0, k)] > OUT -> ask(b, DACK(k))
		:: else
		fi
#endif
	:: t != T_DRESULT && outcome[AT(b, which)] != OUT
	:: t == T_CHALLENGE && outcome[AT(b, which)] == OUT ->
		if
		:: TOO_LATE(b, which)
		:: else -> challenged(b, which)
		fi
	:: t != T_CHALLENGE && t != T_DRESULT && outcome[AT(b, which)] == OUT && i != claim[AT(b, which)]
	:: t == T_RESULT && outcome[AT(b, which)] == OUT && i == claim[AT(b, which)] ->
		assert(b > 0 || g == which + 1);
		word(b, which);
		arrived[AT(b, which)] = arrived[AT(b, which)] | (1 << part);
		if
		:: arrived[AT(b, which)] == PARTS_MASK ->
			if
			:: b > 0 && g == 0 -> finish_call(b, which, GOT_RESULT, LOST)
			:: else -> finish_call(b, which, GOT_RESULT, ACKED)
			fi
		:: else ->
#ifdef BUG_PARTIAL /* "all below arrived", taken for "has arrived whole" */
			if
			:: part == 0 -> ask(b, ACK(which, i))
			:: else
			fi;
#endif
			if
			:: part == PARTS - 1 -> ask(b, CNACK(which, i, arrived[AT(b, which)]))
			:: else
			fi
		fi
	:: t == T_ALIVE && outcome[AT(b, which)] == OUT && i == claim[AT(b, which)] ->
		word(b, which);
		TOLD_ALIVE(b, which, 1)
	:: t == T_BUSY && outcome[AT(b, which)] == OUT && i == claim[AT(b, which)] ->
		/* Tried again, under the same number, when the timer fires. */
#ifdef BUG_BUSY
		assert(!executed[which]);
		finish_call(b, which, REFUSED, LOST)
#elif defined(BUG_BUSY_HEARD)
		word(b, which)
#else
		skip
#endif
	:: t == T_NACK && outcome[AT(b, which)] == OUT && i == claim[AT(b, which)] && TAKES(b, which)
	:: t == T_NACK && outcome[AT(b, which)] == OUT && i == claim[AT(b, which)] && !TAKES(b, which) ->
		if
		:: g != 0 -> word(b, which)
		:: else -> /* nothing of the call is there: no word of it */
#ifdef BUG_NACK_HEARD
			word(b, which);
#endif
#if defined(BUG_NACK_PUTS_OFF) && FORGET
			if
			:: b == 0 -> put_off[which] = 1
			:: else
			fi;
#endif
			TOLD_ALIVE(b, which, 0)
		fi;
		if
		:: !(g & 1) -> send_part(b, which, 0)
		:: else
		fi;
#if PARTS > 1
		if
		:: !(g & 2) -> send_part(b, which, 1)
		:: else
		fi
#endif
	fi
}

/* Silence repeats the last packet, or asks for a call that is known to be there; who takes a result says what is here of it, or asks. */
inline repeat(b, k)
{
	address(b, k);
	if
	:: !TAKES(b, k) && IS_UNHEARD(b, k) ->
		send_part(b, k, PARTS - 1)
#ifdef LARGE
		;
		ask(b, PROBE(k, claim[AT(b, k)]))
#endif
#ifndef NO_PROBE
	:: !TAKES(b, k) && IS_ALIVE(b, k) -> ask(b, PROBE(k, claim[AT(b, k)]))
#endif
#if PARTS > 1
	:: TAKES(b, k) && SAYS(b, k) -> ask(b, CNACK(k, claim[AT(b, k)], arrived[AT(b, k)]))
	:: TAKES(b, k) && ASKS(b, k) -> ask(b, PROBE(k, claim[AT(b, k)]))
#endif
	fi
}

inline time_out(b, k)
{
	if
	:: outcome[AT(b, k)] == OUT && silences[AT(b, k)] < GIVE_UP && !SLEPT(b, k) -> silences[AT(b, k)]++; repeat(b, k)
	:: outcome[AT(b, k)] == OUT && (silences[AT(b, k)] >= GIVE_UP || SLEPT(b, k)) ->
		/* Only a death explains so long a silence, or sleep; or that the server had the call, and forgot it. */
#ifdef CUT
		assert(b == 0);
#else
		assert(last_dead || (b == 0 && (last_restarts > 0 || SLEPT(b, k) || (forgets > 0 && taken_up[k]))));
#endif
		finish_call(b, k, GAVE_UP, LOST)
	:: else
	fi
}

proctype Caller(byte b)
{
end:	do
	:: atomic {
		if
		TAKE32(answer, ANSWER_WORDS, 0)
#if ANSWERS > 32
		TAKE32(answer, ANSWER_WORDS, 32)
#endif
#if ANSWERS > 64
		TAKE32(answer, ANSWER_WORDS, 64)
#endif
#if ANSWERS > 96
		TAKE32(answer, ANSWER_WORDS, 96)
#endif
#if ANSWERS > 128
		TAKE32(answer, ANSWER_WORDS, 128)
#endif
#if ANSWERS > 160
		TAKE32(answer, ANSWER_WORDS, 160)
#endif
#if ANSWERS > 192
#error "more words"
#endif
		fi;
		NETWORK(answer[b * ANSWER_WORDS + p / 32]);
		d_step {
			if
			:: fate -> heed(b)
			:: else
			fi;
			tidy()
		}
	}
#define OF_A_CALL(k) \
	:: atomic { b == 0 && outcome[AT(b, k)] == IDLE && AFTER(k) -> d_step { begin(b, k) } } \
	:: atomic { b == 0 && outcome[AT(b, k)] == GOT_RESULT && !acked[AT(b, k)] && (k == 1 || !AFTER(1) || outcome[AT(b, 1)] == IDLE) -> \
		d_step { acked[AT(b, k)] = 1; ask(b, ACK(k, claim[AT(b, k)])) } } \
	EARLY_TIME_OUT(k)
#ifdef PROGRESS
#define EARLY_TIME_OUT(k) :: atomic { earlies < EARLY && outcome[AT(b, k)] == OUT -> earlies++; repeat(b, k) }
#else
#define EARLY_TIME_OUT(k) \
	:: atomic { outcome[AT(b, k)] == OUT -> repeat(b, k) } \
	:: atomic { outcome[AT(b, k)] == OUT -> d_step { finish_call(b, k, GAVE_UP, LOST) } }
#endif
	OF_A_CALL(0)
	OF_A_CALL(1)
	od
}

/* ---- the server ---- */

inline send_result(b, k)
{
#if PARTS > 1
	reply(b, RESULT(k, inc[SERVER(b)], result_of[HELD(b, k)], 1));
#endif
	reply(b, RESULT(k, inc[SERVER(b)], result_of[HELD(b, k)], 0))
}

inline start(b, k)
{
	state[HELD(b, k)] = EXECUTING;
#ifdef DELEGATE
	if
	:: b == 0 ->
		assert(!passed[k]); /* a call of its own each time, so the last server would not know it again */
		passed[k] = 1;
		j = inc[0];
		begin(j, k)
	:: else ->
#endif
		assert(!executed[k]);
		assert(outcome[AT(0, k)] != REFUSED);
		executed[k] = 1;
		running[AT(b, k)] = 1
#ifdef DELEGATE
	fi
#endif
}

inline store(b, k)
{
#if PARTS > 1
	if
	:: !(stored[HELD(b, k)] & (1 << part)) ->
		stored[HELD(b, k)] = stored[HELD(b, k)] | (1 << part);
		part_of[part] = k + 1
	:: else
	fi;
	if
	:: stored[HELD(b, k)] == PARTS_MASK ->
		assert(part_of[0] == k + 1 && part_of[1] == k + 1);
		part_of[0] = 0;
		part_of[1] = 0;
		stored[HELD(b, k)] = 0;
		start(b, k)
	:: else ->
		state[HELD(b, k)] = RECEIVING;
		if
		:: part == PARTS - 1 -> reply(b, NACK(k, inc[SERVER(b)], stored[HELD(b, k)]))
		:: else
		fi
	fi
#else
	start(b, k)
#endif
}

inline challenge(b, k)
{
	reply(b, CHALLENGE(k, inc[SERVER(b)], i, generation[SERVER(b)]))
}

/* What is asked for a cookie: a slot that holds no number, or, by BUG_CLIENT_COOKIE, a client of which no slot does. */
#ifdef BUG_CLIENT_COOKIE
#define STRANGE(b, k) (held[AT(b, 0)] == 0 && held[AT(b, 1)] == 0)
#else
#define STRANGE(b, k) (held[HELD(b, k)] == 0)
#endif
#define COOKIE_IS_GOOD(b) (g != 0 && g >= good_from[SERVER(b)])
#ifdef BUG_COOKIE
#define OTHER_INCARNATION(b) (i != inc[SERVER(b)] && !(g != 0))
#else
#define OTHER_INCARNATION(b) (i != inc[SERVER(b)])
#endif

inline deliver(b, k)
{
#ifndef CUT
	reply(b, DRESULT(k, result_of[HELD(b, k)]))
#else
	skip
#endif
}

inline call_or_probe(b, k)
{
	if
	:: OTHER_INCARNATION(b) || (STRANGE(b, k) && !COOKIE_IS_GOOD(b)) -> challenge(b, k)
	:: else ->
		if
		:: k + 1 < held[HELD(b, k)]
#ifdef BUG_NO_FILTER
		:: k + 1 == held[HELD(b, k)] && t == T_CALL -> store(b, k)
		:: k + 1 == held[HELD(b, k)] && t != T_CALL ->
#else
		:: k + 1 == held[HELD(b, k)] ->
#endif
			if
			:: state[HELD(b, k)] == RECEIVING ->
				if
				:: t == T_CALL -> store(b, k)
				:: else -> reply(b, NACK(k, inc[SERVER(b)], stored[HELD(b, k)]))
				fi
			:: state[HELD(b, k)] == EXECUTING -> reply(b, ALIVE(k, inc[SERVER(b)]))
			:: state[HELD(b, k)] == DELIVERING ->
				reply(b, ALIVE(k, inc[SERVER(b)]));
#ifdef BUG_NO_REPEAT
				skip
#else
				deliver(b, k)
#endif
			:: state[HELD(b, k)] == KEPT -> send_result(b, k)
			:: else
			fi
		:: k + 1 > held[HELD(b, k)] ->
			if
			:: t == T_PROBE -> reply(b, NACK(k, inc[SERVER(b)], 0))
			:: t == T_CALL && busy && busies < BUSY ->
				busies++;
				reply(b, REJECT(k, i))
			:: else ->
				held[HELD(b, k)] = k + 1;
				result_of[HELD(b, k)] = 0;
#if FORGET && defined(PROGRESS)
				if
				:: b == 0 -> taken_up[k] = 1
				:: else
				fi;
#endif
#ifndef BUG_MIX
				stored[HELD(b, k)] = 0;
				part_of[0] = 0;
				part_of[1] = 0;
#endif
#if FORGET
				if
				:: generation[SERVER(b)] < GENS - 1 - (EXPIRE - expiries) -> generation[SERVER(b)]++
				:: else
				fi;
#endif
				store(b, k)
			fi
		fi
	fi
}

/* Request p of binding b has come. */
inline serve(b)
{
	if
	:: p < PROBES ->
		t = T_CALL; g = p % GENS; i = (p / GENS) % INCS; k = (p / (GENS * INCS)) % 2; part = p / (2 * GENS * INCS)
	:: p >= PROBES && p < ACKS -> t = T_PROBE; i = (p - PROBES) % INCS; k = (p - PROBES) / INCS
	:: p >= ACKS && p < CNACKS -> t = T_ACK; i = (p - ACKS) % INCS; k = (p - ACKS) / INCS
	:: p >= CNACKS && p < DACKS ->
		t = T_CNACK; g = (p - CNACKS) % MASKS; i = ((p - CNACKS) / MASKS) % INCS; k = (p - CNACKS) / (MASKS * INCS)
	:: p >= DACKS -> t = T_DACK; k = p - DACKS
	fi;
	if
	:: b > 0 && last_dead
	:: !(b > 0 && last_dead) && (t == T_CALL || t == T_PROBE) -> call_or_probe(b, k)
	:: t == T_ACK ->
		if
		:: i == inc[SERVER(b)] && held[HELD(b, k)] == k + 1 && state[HELD(b, k)] == KEPT ->
			state[HELD(b, k)] = ACKED;
			result_of[HELD(b, k)] = 0
		:: else
		fi
	:: t == T_CNACK ->
#if PARTS > 1
		if
		:: i == inc[SERVER(b)] && held[HELD(b, k)] == k + 1 && state[HELD(b, k)] == KEPT && !(g & 1) ->
			reply(b, RESULT(k, i, result_of[HELD(b, k)], 0))
		:: else
		fi;
		if
		:: i == inc[SERVER(b)] && held[HELD(b, k)] == k + 1 && state[HELD(b, k)] == KEPT && !(g & 2) ->
			reply(b, RESULT(k, i, result_of[HELD(b, k)], 1))
		:: else
		fi
#else
		skip
#endif
	:: !(b > 0 && last_dead) && t == T_DACK ->
		if
		:: held[HELD(b, k)] == k + 1 && state[HELD(b, k)] == DELIVERING ->
			state[HELD(b, k)] = KEPT;
			tries[HELD(b, k)] = 0;
			send_result(b, k) /* its content is nothing: the number only says that it was delivered */
		:: else
		fi
	fi
}

/* A procedure ends. One whose slot has gone on answers into the void. */
inline return_from(b, k)
{
	running[AT(b, k)] = 0;
	if
#ifdef BUG_VOID
	:: state[HELD(b, k)] == EXECUTING ->
		h = held[HELD(b, k)] - 1;
#else
	:: held[HELD(b, k)] == k + 1 && state[HELD(b, k)] == EXECUTING ->
		h = k;
#endif
		result_of[HELD(b, k)] = k + 1;
		if
		:: b > 0 -> state[HELD(b, k)] = DELIVERING; deliver(b, k)
		:: else -> state[HELD(b, k)] = KEPT; send_result(b, h)
		fi
	:: else
	fi;
	tidy()
}

/* The last server waits so long for the client's acknowledgement; it repeats its result only when it is asked for the call. */
inline deliver_again(b, k)
{
	if
	:: state[HELD(b, k)] == DELIVERING ->
		if
		:: tries[HELD(b, k)] < GIVE_UP -> tries[HELD(b, k)]++
		:: else ->
#ifndef CUT /* in vain only if nobody asks any more */
			assert(outcome[AT(b, k)] != OUT);
#endif
#ifdef BUG_CUT
			skip
#else
			result_of[HELD(b, k)] = 0;
			tries[HELD(b, k)] = 0;
			state[HELD(b, k)] = KEPT;
			send_result(b, k)
#endif
		fi
	:: else
	fi
}

proctype Server(byte b)
{
end:	do
	:: atomic {
		if
		TAKE32(request, REQUEST_WORDS, 0)
#if REQUESTS > 32
		TAKE32(request, REQUEST_WORDS, 32)
#endif
#if REQUESTS > 64
		TAKE32(request, REQUEST_WORDS, 64)
#endif
#if REQUESTS > 96
#error "more words"
#endif
		fi;
		NETWORK(request[b * REQUEST_WORDS + p / 32]);
#if BUSY
		if
		:: fate && p < PROBES && busies < BUSY -> busy = 1
		:: true
		fi;
#endif
		d_step {
			if
			:: fate -> serve(b)
			:: else
			fi;
			tidy()
		}
	}
	:: d_step { running[AT(b, 0)] -> return_from(b, 0) }
	:: d_step { running[AT(b, 1)] -> return_from(b, 1) }
#if defined(PROGRESS) && defined(DELEGATE)
	:: atomic { b > 0 && earlies < EARLY && state[AT(b, 0)] == DELIVERING -> d_step { earlies++; deliver(b, 0) } }
	:: atomic { b > 0 && earlies < EARLY && state[AT(b, 1)] == DELIVERING -> d_step { earlies++; deliver(b, 1) } }
#endif
	od
}

/* ---- the world ---- */

inline wipe(b)
{
	held[AT(b, 0)] = 0;
	held[AT(b, 1)] = 0;
	state[AT(b, 0)] = FREE;
	state[AT(b, 1)] = FREE;
	result_of[AT(b, 0)] = 0;
	result_of[AT(b, 1)] = 0;
	stored[AT(b, 0)] = 0;
	stored[AT(b, 1)] = 0;
	tries[AT(b, 0)] = 0;
	tries[AT(b, 1)] = 0
}

inline kill_procedures(b)
{
	running[AT(b, 0)] = 0;
	running[AT(b, 1)] = 0
}

inline forget_caller(b)
{
	outcome[AT(b, 0)] = IDLE;
	outcome[AT(b, 1)] = IDLE;
	claim[AT(b, 0)] = 0;
	claim[AT(b, 1)] = 0;
	cookie[AT(b, 0)] = 0;
	cookie[AT(b, 1)] = 0;
	heard[AT(b, 0)] = 0;
	heard[AT(b, 1)] = 0;
	silences[AT(b, 0)] = 0;
	silences[AT(b, 1)] = 0;
	known_inc[b] = 0;
	known_cookie[b] = 0;
	introduced[AT(b, 0)] = 0;
	introduced[AT(b, 1)] = 0
}

/*
 * Memory time, without a clock: the server forgets a client, whatever that one waits for. A call that it had before first
 * went out at least the memory time ago. IMPATIENT: the client's give-up time is so much shorter than the memory time that
 * a call of which it has had no word ends before; a client that has had word may go on as long as late copies trickle in.
 */
#ifdef IMPATIENT
#define STILL_REPEATED(k) (held[HELD(0, k)] == k + 1 && outcome[AT(0, k)] == OUT && !heard[AT(0, k)] && !put_off[k] && !SLEPT(0, k))
#else
#define STILL_REPEATED(k) false
#endif
#if FORGET
inline grow_stale(call)
{
	if
	:: held[HELD(0, call)] == call + 1 && outcome[AT(0, call)] == OUT -> stale[call] = 1
	:: else
	fi
}
#endif

proctype World()
{
end:	do
#if RESTART
	:: atomic { restarts < RESTART -> d_step {
		restarts++;
#ifdef DELEGATE
		forget_caller(inc[0]);
#endif
		inc[0]++;
		generation[0] = 1;
		good_from[0] = 1;
		wipe(0);
		kill_procedures(0)
	} }
#ifdef DELEGATE
	:: atomic { restarts < RESTART -> d_step {
		restarts++;
		last_restarts++;
		inc[1]++;
		generation[1] = 1;
		for (j : 1 .. BINDINGS - 1) {
			wipe(j);
			kill_procedures(j)
		}
		j = 0
	} }
#endif
#endif
#ifdef DEATH
	:: atomic { !last_dead -> d_step {
		last_dead = 1;
		for (j : 1 .. BINDINGS - 1) {
			wipe(j);
			kill_procedures(j)
		}
		j = 0
	} }
#endif
#if FORGET
	:: atomic { forgets < FORGET && (held[0] || held[1]) && !STILL_REPEATED(0) && !STILL_REPEATED(1) -> d_step {
		forgets++;
		grow_stale(0);
		grow_stale(1);
		wipe(0);
#ifndef BUG_COOKIE_LIFE /* what was made before the client's last word is expired */
		good_from[0] = generation[0]
#endif
	} }
#endif
#if SLEEP
	:: atomic { sleeps < SLEEP && (outcome[0] == OUT || outcome[1] == OUT) -> d_step {
		sleeps++;
		slept[0] = outcome[0] == OUT;
		slept[1] = outcome[1] == OUT
	} }
#endif
#if EXPIRE
	:: atomic { expiries < EXPIRE -> d_step {
		expiries++;
		generation[0]++;
		good_from[0] = generation[0]
	} }
#endif
	:: false
	od
}

#ifdef PROGRESS
#ifdef DELEGATE
#if RESTART
#define PENDING (outcome[2] == OUT || outcome[3] == OUT || outcome[4] == OUT || outcome[5] == OUT || \
		 state[2] == DELIVERING || state[3] == DELIVERING || state[4] == DELIVERING || state[5] == DELIVERING)
#define EXECUTES (running[2] || running[3] || running[4] || running[5])
#else
#define PENDING (outcome[2] == OUT || outcome[3] == OUT || state[2] == DELIVERING || state[3] == DELIVERING)
#define EXECUTES (running[2] || running[3])
#endif
#else
#define PENDING false
#define EXECUTES (running[0] || running[1])
#endif
#define SETTLED (CALLS_ENDED && !PENDING)
#define QUIET (under_way == 0 && !EXECUTES)

/* Nothing is under way and no procedure runs: every timer fires. */
proctype Clock()
{
	do
#ifndef BUG_NO_TIMER
	:: atomic {
		QUIET && (PENDING || outcome[0] == OUT || outcome[1] == OUT) ->
		time_out(0, 0);
		time_out(0, 1);
#ifdef DELEGATE
		time_out(1, 0);
		time_out(1, 1);
		deliver_again(1, 0);
		deliver_again(1, 1);
#if RESTART
		time_out(2, 0);
		time_out(2, 1);
		deliver_again(2, 0);
		deliver_again(2, 1);
#endif
#endif
		tidy()
	}
#endif
	:: SETTLED -> break
	od
}

ltl every_call_ends { <> SETTLED }
#endif

init {
	atomic {
#ifdef DELEGATE
		run Caller(1);
		run Server(1);
#if RESTART
		run Caller(2);
		run Server(2);
#endif
#endif
		run Caller(0);
		run Server(0);
#if RESTART || FORGET || EXPIRE || SLEEP || defined(DEATH)
		run World();
#endif
#ifdef PROGRESS
		run Clock()
#endif
	}
}
