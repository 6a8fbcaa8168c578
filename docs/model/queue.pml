/* The queue of a lease and its hand-over: N clients, one key, one server. README.md in this folder explains it.

   A configuration is a set of -D flags; scripts/model has those that are checked.
     N        clients (3)
     S        clients 0 .. S-1 have a second token, so that a new turn may begin while the one before is in doubt (0)
     BREAKS   so many times a connection of client 0 (or of those in BREAKING, a bit mask) breaks or is given up
              unanswered; what it carried arrives later, or never (0)
     DOWNS    so many times an inbox is lost (0)
     DROPS    so many grants are published, counted by the server as received, and lost (0)
     CRASHES  so many clients of those in CRASHING, a bit mask, end without a word (0)
     NOINBOX  bit mask of the clients that have no inbox and are served by reservation (0)
     EXPIRES  a key whose owner lives and does not believe in it expires at most so often (unlimited, if not defined)
     FORMS    a waiter's new inbox has another name: its token may have two entries in the queue
     RESUB    a waiter polls only while its inbox is up
     PATIENT  at the beginning of a turn the waiter makes up its mind whether it may give up; "served" is about those
              that do not. (Fairness would make everybody give up, sooner or later.)
   What is asserted: P_MUTEX, P_FIFO, P_GHOST, P_CLEAN; all four, if none is named.
   Mutants, each without one rule: the M_ flags. */
#ifndef N
#define N 3
#endif
#ifndef S
#define S 0
#endif
#ifndef BREAKS
#define BREAKS 0
#endif
#ifndef BREAKING
#define BREAKING 1
#endif
#ifndef DOWNS
#define DOWNS 0
#endif
#ifndef DROPS
#define DROPS 0
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef CRASHING
#define CRASHING 7
#endif
#ifndef SLOW
#define SLOW 1
#endif
#ifndef NOINBOX
#define NOINBOX 0
#endif
#if !defined(P_MUTEX) && !defined(P_FIFO) && !defined(P_GHOST) && !defined(P_CLEAN) && !defined(P_RESERVED)
#define P_MUTEX
#define P_FIFO
#define P_GHOST
#define P_CLEAN
#endif
#if defined(M_RECEIPT)
#define BELIEVED(m) ((m) != 0)
#elif defined(M_ORDER)
#define BELIEVED(m) ((m) == IN_FORCE || (m) == OUTDATED)
#else
#define BELIEVED(m) ((m) == IN_FORCE)
#endif
#ifdef P_RESERVED
#define P_GHOST
#define GHOSTS 1                  /* ... a reservation for nobody counts as well: not promised */
#else
#define GHOSTS 0
#endif
#ifdef M_OLD
#define OLD_READ(t) (!msg[t])
#else
#define OLD_READ(t) (1)
#endif

/* Token t belongs to client t % N. */
#define NT (N + S)
#define NONE NT
#define OF(t) ((t) % N)

/* The server. */
#define FREE NT
byte K = FREE;                    /* the key: whose token, or FREE */
bool queued[NT];                  /* the token has an entry in the queue */
byte order[NT];                   /* tokens by arrival; the arrival goes with each poll, so it outlives the entry */
#ifdef FORMS
bool older[NT];                   /* and one more, with the name of an earlier inbox that the server takes for alive */
bool changed[NT];                 /* the name has changed since the turn began */
#define ENTRIES(t) (queued[t] || older[t])
#else
#define ENTRIES(t) (queued[t])
#endif
bool up[NT];                      /* somebody is subscribed to the inbox that the token's entry names */

/* On the way. */
#define NOTHING 0
#define POLL 1                    /* acquire, how=queue */
#define LAST_POLL 2               /* acquire, how=last */
byte asked[N];                    /* the client's own connection: a poll that has not been executed */
bool yours[N];                    /* "acquired" is on its way back */
byte msg[NT];                     /* the grant is on its way to the inbox: IN_FORCE, or with M_RECEIPT, M_ORDER also */
#define IN_FORCE 1
#define EXPIRED 2                 /* no longer, and its deadline has passed */
#define OUTDATED 3                /* nor that, and "queued" was answered since: its deadline is counted from that answer */
byte late_polls[NT];              /* on connections that the client has given up: polls, */
bool late_last[NT];               /* one with how=last, */
byte late_leave[NT];              /* a release or leave: 1, or 2 if the poll is on the same connection, in front of it */

/* The clients. */
#define IDLE 0
#define WAITING 1
#define LAST 2                    /* has asked for the last time */
#define HOLDING 3                 /* believes that the lease is its own */
#define LEAVING 4                 /* its release or leave is on the connection, behind asked[] */
#define DEAD 5
byte state[N];
byte second[N];                   /* which of its tokens this turn has */
bool doubt[NT];                   /* a poll is unanswered, and its not-after has not passed */
bool duty[NT];                    /* the orphan machinery has to withdraw the token */

byte breaks, downs, drops, crashes;
#ifdef EXPIRES
byte expired;
#define MAY_EXPIRE(t) (state[OF(t)] == DEAD || expired < EXPIRES)
#else
#define MAY_EXPIRE(t) (1)
#endif
#ifdef M_HINT
bool hinted[N];                   /* believes in a reservation, which is shorter than the lease */
#define BELIEF_LASTS(t) (HOLDS(t) && !hinted[OF(t)])
#else
#define BELIEF_LASTS(t) HOLDS(t)
#endif
bool stayed[NT];                  /* in the queue, with the inbox up, ever since it was put there */
hidden byte i, j, h;

#ifdef M_LEAVE
bool wait_left[N];
#endif

#ifdef PATIENT
bool patient[N];
#define MAY_GIVE_UP(c) (!patient[c])
#else
#define MAY_GIVE_UP(c) (1)
#endif

#define TOKEN(c) ((c) + N * second[c])
#define HOLDS(t) (state[OF(t)] == HOLDING && TOKEN(OF(t)) == (t))
#define WAITS(t) ((state[OF(t)] == WAITING || state[OF(t)] == LAST) && TOKEN(OF(t)) == (t))
#define OVER(t) (state[OF(t)] == IDLE || TOKEN(OF(t)) != (t))
#define LATE(t) (late_polls[t] > 0 || late_last[t])
#define SETTLED(t) (!doubt[t] && !duty[t] && !LATE(t))
#define IN(mask, c) (((mask) >> (c)) & 1)

#if N == 3
#define HOLDERS ((state[0] == HOLDING) + (state[1] == HOLDING) + (state[2] == HOLDING))
#else
#define HOLDERS ((state[0] == HOLDING) + (state[1] == HOLDING))
#endif

/* ---- order of arrival ---- */

inline arrives(t) {               /* unless it has an arrival already: now */
  i = 0;
  do
  :: order[i] == t || order[i] == NONE -> break
  :: else -> i++
  od;
  order[i] = t; i = 0 }

inline forget_arrival(t) {
  i = 0; j = 0;
  do
  :: i == NT -> break
  :: else -> if :: order[i] == t -> skip :: else -> order[j] = order[i]; j++ fi; i++
  od;
  do
  :: j == NT -> break
  :: else -> order[j] = NONE; j++
  od;
  i = 0; j = 0 }

inline check_passed(t) {
#ifdef P_FIFO
  assert(!(stayed[t] && WAITS(t)))   /* FIFO: no live waiter that stayed in the queue is passed over */
#else
  skip
#endif
  }

/* ---- the scripts ---- */

inline unqueue(t) { queued[t] = 0; stayed[t] = 0 }

inline check_granted(t) {         /* by hand-over, not to the caller */
#ifdef P_GHOST
  assert((IN(NOINBOX, OF(t)) && !GHOSTS) || !(OVER(t) || (state[OF(t)] == DEAD && !up[t])))  /* GHOST: nobody who is gone is served */
#else
  skip
#endif
  }

/* K to the first entry that is served; acquire stops at its caller. */
inline hand_over(t, stop) {
  K = FREE; j = 0;
  do
  :: j == NT || order[j] == NONE || K != FREE -> break
  :: else ->
     h = order[j]; j++;
#ifdef FORMS
     if :: older[h] -> older[h] = 0; K = h; break :: else fi;    /* its message is lost */
#endif
     if
     :: !queued[h] -> skip
     :: else ->
        if
        :: h == t && stop -> unqueue(h); K = h
        :: !(h == t && stop) ->
           if
           :: IN(NOINBOX, OF(h)) -> check_granted(h); unqueue(h); K = h       /* reserved, no message */
#ifdef M_HINT
              ; msg[h] = IN_FORCE
#endif
           :: !IN(NOINBOX, OF(h)) && up[h] -> check_granted(h); unqueue(h); K = h;
              if
              :: msg[h] = IN_FORCE
              :: drops < DROPS -> drops++
              fi
#ifdef M_UNHEARD
           :: !IN(NOINBOX, OF(h)) && !up[h] -> check_granted(h); unqueue(h); K = h
#else
           :: !IN(NOINBOX, OF(h)) && !up[h] -> check_passed(h); unqueue(h)    /* nobody would hear it: next */
#endif
           fi
        fi
     fi
  od;
  h = 0; j = 0 }

#ifdef FORMS
inline other_form(t) {
  if :: queued[t] -> older[t] = 1; unqueue(t) :: else fi;
  changed[t] = 1 }
inline unqueue_all(t) {
#ifndef M_FORM
  older[t] = 0;
#endif
  unqueue(t) }
#else
inline other_form(t) { skip }
inline unqueue_all(t) { unqueue(t) }
#endif

inline enqueue(t) {               /* ZADD NX */
  if
  :: !queued[t] -> queued[t] = 1; stayed[t] = up[t] || IN(NOINBOX, OF(t)); arrives(t)
  :: else
  fi }

inline acquire(t, how) {          /* afterwards: K == t means "acquired", else "queued" or "busy" */
  if
  :: K == t -> unqueue(t)
  :: K == FREE ->
#ifdef M_BARGE
     j = 0;
     do
     :: j == NT || order[j] == NONE || order[j] == t -> break
     :: else -> if :: queued[order[j]] -> check_passed(order[j]) :: else fi; j++
     od;
     j = 0;
#else
     hand_over(t, 1);
#endif
     if :: K == FREE -> unqueue(t); K = t :: else fi
  :: else
  fi;
  if
  :: K != t && how == POLL -> enqueue(t)
  :: K != t && how == LAST_POLL -> unqueue_all(t)
  :: else
  fi }

inline leave(t) {                 /* release, leave, withdraw: one script */
#ifdef M_OWN
  if :: K != t -> unqueue_all(t) :: else fi;
#else
  unqueue_all(t);
#endif
#ifdef M_BLIND
  if :: K != FREE -> hand_over(t, 0) :: else fi
#else
  if :: K == t -> hand_over(t, 0) :: else fi
#endif
  }

/* ---- the clients ---- */

inline believe(c) {
  state[c] = HOLDING; yours[c] = 0; msg[TOKEN(c)] = 0;
  if :: !doubt[TOKEN(c)] && asked[c] == NOTHING -> forget_arrival(TOKEN(c)) :: else fi;
#ifdef P_MUTEX
  assert(HOLDERS <= 1)               /* MUTEX: never two who believe */
#endif
  }

inline settle(t) {                /* nobody will do anything more for this token: the server must know nothing of it */
  if
  :: OVER(t) && SETTLED(t) && state[OF(t)] != DEAD ->
#ifdef P_CLEAN
     assert(K != t && !ENTRIES(t));   /* CLEAN: nothing remains */
#endif
     if
     :: late_leave[t] == 0 -> up[t] = 0; forget_arrival(t)
#ifndef M_OLD
        ; msg[t] = 0
#endif
#ifdef FORMS
        ; changed[t] = 0
#endif
     :: else
     fi
  :: else
  fi }

inline end_turn(c) {              /* the token is never sent again in an acquire */
  h = TOKEN(c);
  state[c] = IDLE; second[c] = 0; yours[c] = 0;
#ifdef PATIENT
  patient[c] = 0;
#endif
#ifndef M_NODUTY
  if :: doubt[h] -> duty[h] = 1 :: else fi;
#endif
#ifndef M_RETIRE
  if :: duty[h] -> up[h] = 0; stayed[h] = 0 :: else fi;   /* its inbox is closed; the next turn has another name */
#endif
#ifndef M_OLD
  msg[h] = 0;                     /* would be ignored, whenever it came */
#endif
  settle(h); h = 0 }

inline give_up_connection(c) {    /* broken, or no answer in time */
  h = TOKEN(c);
  if
  :: asked[c] != NOTHING ->
     doubt[h] = 1;
     if
     :: state[c] == LEAVING -> if :: LATE(h) -> late_leave[h] = 1 :: else -> late_leave[h] = 2 fi
     :: else
     fi;
     if :: asked[c] == POLL -> late_polls[h]++ :: else -> late_last[h] = 1 fi;
     asked[c] = NOTHING
  :: asked[c] == NOTHING ->
     if :: state[c] == LEAVING -> late_leave[h] = 1 :: else -> doubt[h] = 1 fi   /* else: "acquired" is not heard */
  fi;
  yours[c] = 0;
  if :: state[c] == LEAVING -> duty[h] = 1 :: else fi;
  h = 0 }

#ifdef M_REUSE
#define USABLE(t) (1)
#else
#define USABLE(t) (SETTLED(t) && late_leave[t] == 0 && OLD_READ(t))
#endif

inline begin_turn(c, s) {
  second[c] = s;
  state[c] = WAITING; asked[c] = POLL;
#ifdef PATIENT
  if :: patient[c] = 1 :: skip fi;
#endif
  if :: IN(NOINBOX, c) -> skip :: else -> up[TOKEN(c)] = 1 fi }

#if defined(RESUB) && !defined(M_NORESUB)
#define MAY_POLL(c) (up[TOKEN(c)] || IN(NOINBOX, c))
#else
#define MAY_POLL(c) (1)
#endif
#define SENT(c) if :: IN(SLOW, c) -> skip :: else -> then = POLL_RUNS fi
#define BUSY_LINE(c) (asked[c] != NOTHING || yours[c] || state[c] == LEAVING)
#define LATE_ROOM(t) (late_polls[t] < 2 && !late_last[t] && late_leave[t] == 0)

/* One step: what happens, and what the server makes of it at once. */
#define POLL_RUNS 1
#define LEAVE_RUNS 2
#define TURN_ENDS 3
proctype client(byte c) {
  byte then = 0;
end: do :: atomic {
  if
  :: state[c] == IDLE && USABLE(c) -> begin_turn(c, 0); SENT(c)
#if S > 0
  :: state[c] == IDLE && c < S && !USABLE(c) && USABLE(c + N) -> begin_turn(c, 1); SENT(c)
#endif
#ifndef M_NOPOLL
  :: state[c] == WAITING && asked[c] == NOTHING && !yours[c] && MAY_POLL(c) -> asked[c] = POLL; SENT(c)
#endif
  :: (state[c] == WAITING || state[c] == LAST) && (yours[c] || BELIEVED(msg[TOKEN(c)])) ->
#ifdef M_HINT
     hinted[c] = !yours[c];
#endif
     believe(c)
#ifdef M_OLD
  :: state[c] == WAITING && c < S && msg[c + N - N * second[c]] -> msg[c + N - N * second[c]] = 0; believe(c)
  :: OVER(c) && msg[c] -> msg[c] = 0
#if S > 0
  :: c < S && OVER(c + N) && msg[c + N] -> msg[c + N] = 0
#endif
#endif
#ifndef M_NORESUB
  :: state[c] == WAITING && !up[TOKEN(c)] && !IN(NOINBOX, c) -> up[TOKEN(c)] = 1; other_form(TOKEN(c))
#endif
  :: state[c] == WAITING && asked[c] == NOTHING && !yours[c] && MAY_GIVE_UP(c) ->
     asked[c] = LAST_POLL; state[c] = LAST; SENT(c)
  :: state[c] == WAITING && MAY_GIVE_UP(c) ->
     yours[c] = 0; state[c] = LEAVING;
#ifdef M_LEAVE
     wait_left[c] = 1
#endif
  :: state[c] == HOLDING -> state[c] = LEAVING;             /* released, or its deadline has come */
#ifdef M_HINT
     hinted[c] = 0
#endif

  /* The server executes what the connection carries. */
  :: asked[c] != NOTHING && IN(SLOW, c) -> then = POLL_RUNS
  :: state[c] == LEAVING && asked[c] == NOTHING -> then = LEAVE_RUNS
#ifdef M_OVERTAKE
  :: state[c] == LEAVING && asked[c] == POLL -> late_polls[TOKEN(c)]++; asked[c] = NOTHING; then = LEAVE_RUNS
#endif

  /* What befalls the client. */
  :: breaks < BREAKS && IN(BREAKING, c) && BUSY_LINE(c) && state[c] != DEAD && LATE_ROOM(TOKEN(c)) ->
     breaks++; give_up_connection(c);
     if :: state[c] == LAST || state[c] == LEAVING -> then = TURN_ENDS :: else fi
  :: downs < DOWNS && state[c] != IDLE && state[c] != DEAD && up[TOKEN(c)] ->
     downs++; up[TOKEN(c)] = 0; stayed[TOKEN(c)] = 0; msg[TOKEN(c)] = 0
  :: crashes < CRASHES && IN(CRASHING, c) && state[c] != DEAD && state[c] != IDLE && LATE_ROOM(TOKEN(c)) ->
     crashes++; give_up_connection(c); state[c] = DEAD; msg[TOKEN(c)] = 0; duty[c] = 0;
     if :: c < S -> duty[c + N] = 0 :: else fi
  :: state[c] == DEAD && up[TOKEN(c)] -> up[TOKEN(c)] = 0; stayed[TOKEN(c)] = 0   /* its inbox is seen closed */
  fi;

  if
  :: then == POLL_RUNS ->
     acquire(TOKEN(c), asked[c]);
     if
     :: K == TOKEN(c) && (state[c] == WAITING || state[c] == LAST) -> yours[c] = 1
#ifdef M_ORDER
     :: K != TOKEN(c) && msg[TOKEN(c)] == EXPIRED -> msg[TOKEN(c)] = OUTDATED
#endif
     :: else
     fi;
     asked[c] = NOTHING;
     if :: state[c] == LAST && !yours[c] -> then = TURN_ENDS :: else fi
  :: then == LEAVE_RUNS ->
#ifdef M_LEAVE
     if :: wait_left[c] -> unqueue(TOKEN(c)) :: else -> leave(TOKEN(c)) fi;
     wait_left[c] = 0;
#else
     leave(TOKEN(c));
#endif
     then = TURN_ENDS
  :: else
  fi;
  if :: then == TURN_ENDS -> end_turn(c) :: else fi;
  then = 0 }
  od
}

/* What is left of a token: late requests, the not-after, and the orphan machinery. */
#define LAST_LEAVE_RUNS 3
proctype remains(byte t) {
  byte then = 0, how = NOTHING;
end: do :: atomic {
  if
  :: late_polls[t] > 0 -> late_polls[t]--; how = POLL; then = POLL_RUNS
  :: late_last[t] -> late_last[t] = 0; how = LAST_POLL; then = POLL_RUNS
  :: late_leave[t] == 1 || (late_leave[t] == 2 && !LATE(t)) -> late_leave[t] = 0; then = LEAVE_RUNS
  :: late_leave[t] != 0 -> late_leave[t] = 0                                    /* it never arrives */
  :: doubt[t] -> doubt[t] = 0; late_polls[t] = 0; late_last[t] = 0              /* not-after: refused from now on */
  :: duty[t] && doubt[t] && (K == t || ENTRIES(t)) -> then = LEAVE_RUNS         /* at once: not the last word */
#ifdef M_LASTWORD
  :: duty[t] -> then = LAST_LEAVE_RUNS
#elif defined(M_RELEASED)
  :: duty[t] && (!doubt[t] || K == t) -> then = LAST_LEAVE_RUNS
#else
  :: duty[t] && !doubt[t] -> then = LAST_LEAVE_RUNS
#endif
  fi;

  if
  :: then == POLL_RUNS ->
     acquire(t, how); how = NOTHING;
#ifdef FORMS
     if :: queued[t] && changed[t] -> older[t] = 1; unqueue(t) :: skip fi       /* sent before the name changed? */
#endif
  :: then == LEAVE_RUNS || then == LAST_LEAVE_RUNS ->
     leave(t);
     if :: then == LAST_LEAVE_RUNS -> duty[t] = 0 :: else fi
  :: else
  fi;
  then = 0;
  settle(t) }
  od
}

proctype world() {
  byte t = 0;
end: do
  :: atomic { K != FREE && !BELIEF_LASTS(K) && MAY_EXPIRE(K) ->
       t = K; K = FREE;
#ifdef EXPIRES
       if :: state[OF(t)] != DEAD -> expired++ :: else fi;
#endif
       /* Whatever of this grant is on the way will come behind its deadline, and be discarded. */
#if defined(M_RECEIPT) || defined(M_ORDER)
       if :: msg[t] == IN_FORCE -> msg[t] = EXPIRED :: else fi;
#else
       msg[t] = 0;
#endif
#ifndef M_RECEIPT
       if :: TOKEN(OF(t)) == t -> yours[OF(t)] = 0 :: else fi;
#endif
       t = 0 }
  od }

#ifdef M_OVERTAKE
#define MAY_BE_LATE(t) (1)
#else
#define MAY_BE_LATE(t) ((BREAKS && IN(BREAKING, OF(t))) || (CRASHES && IN(CRASHING, OF(t))))
#endif

init {
  atomic {
    i = 0;
    do :: i == NT -> break :: else -> order[i] = NONE; i++ od;
    i = 0;
    do :: i == N -> break :: else -> run client(i); i++ od;
    i = 0;
    do :: i == NT -> break :: else -> if :: MAY_BE_LATE(i) -> run remains(i) :: else fi; i++ od;
    i = 0;
    run world()
  }
}

#ifdef PATIENT
#define WANTS (state[0] == WAITING && patient[0])
ltl served { [] (WANTS -> <> !WANTS) }
ltl no_lost_grant { [] ((K == FREE && WANTS) -> <> (K != FREE || !WANTS)) }
#endif
