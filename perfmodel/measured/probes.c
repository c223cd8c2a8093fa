/* Loops that are timed from Python: dependent loads, streams, multiply-adds, the clock.
 *
 * Vectors are as wide as the instruction set that this file is compiled for: a wider one is split
 * by the compiler, and its parts live on the stack. Each loop is unrolled by hand, so that what is
 * timed does not depend on how a compiler unrolls.
 *
 * Threads meet at a gate before the clock starts: all of them work at the same time. Each returns
 * when it started, when it ended, and the processor time between: less than the wall clock's says
 * that something else ran there.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <time.h>

/* Bytes of a vector register, how many registers there are, and the compiler's letter for one. */
#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define REGISTERS 32
#define REGISTER "v"
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#define REGISTERS 16
#define REGISTER "x"
#elif defined(__SSE__)
#define VECTOR_BYTES 16
#define REGISTERS 16
#define REGISTER "x"
#elif defined(__ARM_NEON)
#define VECTOR_BYTES 16
#define REGISTERS 32
#define REGISTER "w"
#else
#define VECTOR_BYTES 4
#define REGISTERS 16
#endif
#define LANES (VECTOR_BYTES / 4)

/* `bits` are read where floats were written. Arrays start at a multiple of 64 bytes. */
#ifdef REGISTER
typedef float wide __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef int32_t bits __attribute__((vector_size(VECTOR_BYTES), may_alias));
/* Both are in registers here, and the compiler knows nothing of what they are. */
#define KEEP(v, w) __asm__ volatile("" : "+" REGISTER(v), "+" REGISTER(w))
#else
typedef float wide __attribute__((may_alias));
typedef int32_t bits __attribute__((may_alias));
#define KEEP(v, w)
#endif

/* Statements for 0, 1, 2 ... */
#define EIGHT(_) _(0) _(1) _(2) _(3) _(4) _(5) _(6) _(7)
#define TWELVE(_) EIGHT(_) _(8) _(9) _(10) _(11)
#define TWENTY(_) TWELVE(_) _(12) _(13) _(14) _(15) _(16) _(17) _(18) _(19)
#define CHUNK (8 * LANES) /* floats that a step of a stream moves */

/* Nothing that was in memory before is known after. */
#define FORGET __asm__ volatile("" ::: "memory")

struct gate {
    int64_t arrived, wanted;
};
struct span {
    double start_s, end_s, processor_s;
};

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* Wait for the other threads; then the clock starts. */
static __attribute__((noinline)) void begin(struct gate *gate, struct span *span) {
    __atomic_add_fetch(&gate->arrived, 1, __ATOMIC_ACQ_REL);
    for (int spins = 0; __atomic_load_n(&gate->arrived, __ATOMIC_ACQUIRE) < gate->wanted; spins++)
        if (spins >= 1000) sched_yield();
    span->processor_s = -seconds(CLOCK_THREAD_CPUTIME_ID);
    span->start_s = seconds(CLOCK_MONOTONIC);
}

static __attribute__((noinline)) void end(struct span *span) {
    span->end_s = seconds(CLOCK_MONOTONIC);
    span->processor_s += seconds(CLOCK_THREAD_CPUTIME_ID);
}

int64_t vector_bytes(void) { return VECTOR_BYTES; }

/* `steps` dependent loads from byte `at` on: each cell holds the offset of the next one, which the
 * last returns. */
int64_t chase(struct gate *gate, struct span *span, const char *cells, int64_t at, int64_t steps) {
    uint64_t next = at;
    begin(gate, span);
    for (int64_t i = 0; i < steps; i++) next = *(const uint64_t *)(cells + next);
    __asm__ volatile("" ::"r"(next));
    end(span);
    return next;
}

/* Exclusive or takes one cycle everywhere, so that loads are what limits. */
void stream_read(struct gate *gate, struct span *span, const float *a, int64_t n, int64_t reps,
                 int32_t *out) {
    const bits none = (bits){0};
#define START(k) bits x##k = none;
#define LOAD(k) x##k ^= *(const bits *)(a + i + k * LANES);
#define FOLD(k) all ^= x##k;
    EIGHT(START)
    begin(gate, span);
    for (int64_t r = 0; r < reps; r++) {
        for (int64_t i = 0; i < n; i += CHUNK) { EIGHT(LOAD) }
        FORGET;
    }
    end(span);
    bits all = none;
    EIGHT(FOLD)
    *out = 0;
    for (int lane = 0; lane < LANES; lane++) *out ^= ((const int32_t *)&all)[lane];
#undef START
#undef LOAD
#undef FOLD
}

/* FORGET in each step keeps the compiler from calling memcpy, which has stores of its own kind. */
void stream_copy(struct gate *gate, struct span *span, float *b, const float *a, int64_t n,
                 int64_t reps) {
#define COPY(k) *(wide *)(b + i + k * LANES) = *(const wide *)(a + i + k * LANES);
    begin(gate, span);
    for (int64_t r = 0; r < reps; r++)
        for (int64_t i = 0; i < n; i += CHUNK) {
            EIGHT(COPY)
            FORGET;
        }
    end(span);
#undef COPY
}

void stream_triad(struct gate *gate, struct span *span, float *c, const float *a, const float *b,
                  int64_t n, int64_t reps) {
#define TRIAD(k)                  \
    *(wide *)(c + i + k * LANES) = \
        *(const wide *)(a + i + k * LANES) + 0.75f * *(const wide *)(b + i + k * LANES);
    begin(gate, span);
    for (int64_t r = 0; r < reps; r++)
        for (int64_t i = 0; i < n; i += CHUNK) {
            EIGHT(TRIAD)
            FORGET;
        }
    end(span);
#undef TRIAD
}

/* Multiply-adds that stay in registers, in so many independent chains that their latency is hidden:
 * 4 or 5 cycles times 2 a cycle on x86, 4 times 4 on Arm's large cores. A chain reads only itself
 * and `tiny`, so that instruction sets that overwrite an operand need no copy of one; it keeps its
 * value, since what is added is below half a unit in the last place.
 * Returns the floating-point operations of one repetition. */
int64_t multiply_add(struct gate *gate, struct span *span, float tiny, int64_t reps, float *out) {
#if REGISTERS >= 32
#define CHAINS TWENTY
    const int chains = 20;
#else
#define CHAINS TWELVE
    const int chains = 12;
#endif
#define START(k) wide s##k = x + (k + 1.0f);
#define STEP(k)       \
    s##k += s##k * x; \
    KEEP(s##k, x);
#define FOLD(k) all += s##k;
    begin(gate, span);
    wide x = (wide){0} + tiny;
    CHAINS(START)
    for (int64_t r = 0; r < reps; r++) { CHAINS(STEP) }
    end(span);
    wide all = (wide){0};
    CHAINS(FOLD)
    *out = 0;
    for (int lane = 0; lane < LANES; lane++) *out += ((const float *)&all)[lane];
    return 2 * chains * LANES;
#undef START
#undef STEP
#undef FOLD
}

/* A chain of additions of two registers takes one cycle each; returns how many there were. */
int64_t cycles(struct gate *gate, struct span *span, int64_t reps, int64_t *out) {
    uint64_t x = 1, y = (uint64_t)(uintptr_t)out | 1;
#define ADD(k) x += y; __asm__ volatile("" : "+r"(x));
    begin(gate, span);
    for (int64_t r = 0; r < reps; r++) { TWENTY(ADD) TWENTY(ADD) TWENTY(ADD) }
    end(span);
    *out = x;
    return 60 * reps;
#undef ADD
}
