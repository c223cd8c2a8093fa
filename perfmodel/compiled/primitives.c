/* Vectors of doubles, as long as the processor's, and what C lacks on them. Nothing here knows the
 * model. */
#include <math.h>
#include <string.h>
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define L 8
#elif defined(__AVX2__)
#define L 4
#else
#define L 2
#endif
typedef double V __attribute__((vector_size(8 * L)));
typedef long long Q __attribute__((vector_size(8 * L)));
#define EACH for (int i = 0; i < L; i++)
#define INLINE static inline __attribute__((always_inline))
#define B(x) ((V){} + (double)(x))
#define NUM(m) ((V)((Q)(m) & (Q)B(1.0)))
#define TRUE(x) ((Q)((x) != B(0.0)))
INLINE V load(const double *p) { V r; memcpy(&r, p, sizeof r); return r; }
INLINE void store(double *p, V x) { memcpy(p, &x, sizeof x); }
#if L == 8
#include <immintrin.h>
#define W(x) ((__m512d)(x))
INLINE V maximum(V a, V b) { return (V)_mm512_max_pd(W(a), W(b)); }
INLINE V minimum(V a, V b) { return (V)_mm512_min_pd(W(a), W(b)); }
INLINE V floor_(V a) { return (V)_mm512_roundscale_pd(W(a), 9); }
INLINE V ceil_(V a) { return (V)_mm512_roundscale_pd(W(a), 10); }
INLINE V trunc_(V a) { return (V)_mm512_roundscale_pd(W(a), 11); }
INLINE V sqrt_(V a) { return (V)_mm512_sqrt_pd(W(a)); }
INLINE V choose(Q m, V a, V b) {
  return (V)_mm512_mask_blend_pd(_mm512_movepi64_mask((__m512i)m), W(b), W(a));
}
INLINE int some(Q m) { return _mm512_movepi64_mask((__m512i)m) != 0; }
INLINE V inverse(V a) { /* to 4e-9: a step of Newton's from the processor's estimate */
  __m512d r = _mm512_rcp14_pd(W(a));
  __m512d s = _mm512_mul_pd(r, _mm512_fnmadd_pd(r, W(a), W(B(2.0))));
  return (V)_mm512_mask_blend_pd(_mm512_cmp_pd_mask(s, s, _CMP_ORD_Q), r, s);
}
INLINE V root(V a) { /* the cube root to 5e-9: two steps of Halley's from a third of the exponent */
  V third = (V)_mm512_cvtepi64_pd((__m512i)a) * B(1.0 / 3.0);
  V r = (V)_mm512_cvttpd_epi64(W(third + B(0x2A9F7893ull << 32)));
  for (int i = 0; i < 2; i++) {
    V cube = r * r * r;
    r = (cube + a + a) * inverse(cube + cube + a) * r;
  }
  return choose((Q)(a > B(0.0)) & (Q)(a < B(INFINITY)), r, a);
}
INLINE V gather(const double *t, V a) {
  return (V)_mm512_i64gather_pd(_mm512_cvttpd_epi64(W(a)), t, 8);
}
#else
INLINE V choose(Q m, V a, V b) { return (V)((m & (Q)a) | (~m & (Q)b)); }
INLINE V maximum(V a, V b) { return choose(a > b, a, b); }
INLINE V minimum(V a, V b) { return choose(a < b, a, b); }
INLINE V floor_(V a) { V r; EACH r[i] = floor(a[i]); return r; }
INLINE V ceil_(V a) { V r; EACH r[i] = ceil(a[i]); return r; }
INLINE V trunc_(V a) { V r; EACH r[i] = trunc(a[i]); return r; }
INLINE V sqrt_(V a) { V r; EACH r[i] = sqrt(a[i]); return r; }
INLINE V inverse(V a) { return B(1.0) / a; }
#define root cbrt_
INLINE int some(Q m) { long long any = 0; EACH any |= m[i]; return any != 0; }
INLINE V gather(const double *t, V a) { V r; EACH r[i] = t[(long)a[i]]; return r; }
#endif
#if L > 2 && defined(LIBMVEC)
#if L == 8
#define VECTOR(parameters, name) _ZGVeN8##parameters##_##name
#else
#define VECTOR(parameters, name) _ZGVdN4##parameters##_##name
#endif
V VECTOR(vv, pow)(V, V); V VECTOR(v, exp)(V);
INLINE V power(V a, V b) { return VECTOR(vv, pow)(a, b); }
INLINE V exp_(V a) { return VECTOR(v, exp)(a); }
#if __GLIBC_PREREQ(2, 35)
V VECTOR(v, cbrt)(V);
INLINE V cbrt_(V a) { return VECTOR(v, cbrt)(a); }
#else
INLINE V cbrt_(V a) { /* a step of Newton's from the power's result */
  V r = power(a, B(1.0) / B(3.0)), next = r - (r * r * r - a) / (B(3.0) * r * r);
  return choose((Q)(a > B(0.0)) & (Q)(a < B(INFINITY)), next, a);
}
#endif
#else
INLINE V power(V a, V b) { V r; EACH r[i] = pow(a[i], b[i]); return r; }
INLINE V exp_(V a) { V r; EACH r[i] = exp(a[i]); return r; }
INLINE V cbrt_(V a) { V r; EACH r[i] = cbrt(a[i]); return r; }
#endif
/* One by one: a vector library may miss the logarithm of a power of two by its last bit. */
INLINE V log2_(V a) { V r; EACH r[i] = log2(a[i]); return r; }
INLINE V exp2_(V a) { V r; EACH r[i] = exp2(a[i]); return r; }
INLINE V square(V a) { return a * a; }
INLINE V absolute(V a) { return maximum(a, -a); }
INLINE V floor_divide(V a, V b) { return floor_(a / b); }
INLINE V remainder_(V a, V b) { return a - floor_(a / b) * b; }
INLINE Q isfinite_(V a) { return (Q)(absolute(a) < B(INFINITY)); }
/* Greatest common divisor of whole numbers, by Euclid. */
static V gcd(V a, V b) {
  a = absolute(a), b = absolute(b);
  for (Q m = TRUE(b); some(m); m = TRUE(b)) {
    V rest = remainder_(a, choose(m, b, B(1.0)));
    a = choose(m, b, a), b = choose(m, rest, B(0.0));
  }
  return a;
}
/* The sum over 0 <= i < n of the whole part of (a i + b) / m (perfmodel.arithmetic.floor_sum). */
static V floor_sum(V n, V m, V a, V b) {
  V total = B(0.0);
  for (;;) {
    V qa = floor_(a / m), qb = floor_(b / m);
    total = total + floor_(n * (n - 1.0) / 2.0) * qa + n * qb;
    a = a - qa * m, b = b - qb * m;
    V top = a * n + b;
    n = floor_(top / m), b = top - n * m;
    Q more = (Q)(n > B(0.0));
    if (!some(more)) return total;
    V next = choose(more, a, B(1.0));
    a = m, m = next;
  }
}
/* Search over the columns of a menu: bounds first, and in full only what can be the least. A menu
 * is in groups of columns: `level` bounds the first column of each group and all others together,
 * `bound` and `full` take a vector of pairs of a problem p and a column q. */
#define BATCH 128
#define SLACK (1.0 + 1e-6)
#define DATA const double *X, long stride, const double *K, const double *const *T
typedef void (*Level)(DATA, long i, long groups, V *first, V *rest);
typedef V (*Pair)(DATA, V p, V q);
typedef struct { long count; double *p, *q, *low; } Pairs;
INLINE void push(Pairs *s, double p, double q, double low) {
  s->p[s->count] = p, s->q[s->count] = q, s->low[s->count++] = low == low ? low : 0.0;
}
/* A function of all pairs, in place of their bounds. */
static void each_pair(DATA, Pair value, Pairs *s, double *out) {
  for (long k = 0; k < s->count; k += L) {
    double p[L], q[L];
    EACH {
      long j = k + i < s->count ? k + i : s->count - 1;
      p[i] = s->p[j], q[i] = s->q[j];
    }
    V x = value(X, stride, K, T, load(p), load(q));
    EACH if (k + i < s->count) out[k + i] = x[i];
  }
}
/* Takes for each problem the pair of the least bound while one can win; `from` starts its pairs. */
static long settle(DATA, Pair full, long n, Pairs *s, const long *from, Pairs *now, double *time,
                   double *best, double *column) {
  long broken = 0, open[BATCH];
  for (long p = 0; p < n; p++) open[p] = p;
  do {
    now->count = 0;
    for (long each = 0; each < n; each++) {
      long p = open[each];
      double low = best[p] * SLACK;
      long k = -1;
      for (long j = from[p]; j < from[p + 1]; j++)
        if (s->low[j] <= low && s->q[j] >= 0) low = s->low[j], k = j;
      if (k < 0) continue;
      open[now->count] = p;
      push(now, s->p[k], s->q[k], low), s->q[k] = -1.0;
    }
    n = now->count;
    each_pair(X, stride, K, T, full, now, time);
    for (long k = 0; k < now->count; k++) {
      long p = (long)now->p[k] % BATCH;
      broken |= time[k] * SLACK < now->low[k];
      if (time[k] < best[p] || (time[k] == best[p] && now->q[k] < column[p]))
        best[p] = time[k], column[p] = now->q[k];
    }
  } while (n);
  return broken;
}
static long search(DATA, long start, long n, long groups, long columns, Level level, Pair bound,
                   Pair full, double *column) {
  long size = columns / groups, broken = 0;
  double p[BATCH * columns], q[BATCH * columns], low[BATCH * columns], rests[BATCH * groups];
  double np[BATCH], nq[BATCH], nlow[BATCH], time[BATCH], best[BATCH];
  V first[groups], rest[groups], lanes;
  long from[BATCH + 1], open[BATCH];
  Pairs all = {0, p, q, low}, now = {0, np, nq, nlow};
  EACH lanes[i] = i;
  for (long b = 0; b < n; b += L) { /* the column of the least bound first */
    level(X, stride, K, T, start + b, groups, first, rest);
    V least = B(INFINITY), place = B(0.0);
    for (long g = 0; g < groups; g++) { /* what is not a number bounds nothing */
      first[g] = choose((Q)(first[g] == first[g]), first[g], B(0.0));
      Q less = (Q)(first[g] < least);
      least = choose(less, first[g], least), place = choose(less, B(g * size), place);
    }
    V taken = full(X, stride, K, T, B(start + b) + lanes, place), limit = taken * SLACK;
    broken |= some((Q)(limit < least));
    store(best + b, taken), store(column + b, place);
    Q more = (Q){}, opened = (Q){};
    for (long g = 0; g < groups; g++) {
      more |= (Q)(first[g] <= limit) & (Q)(place != B(g * size));
      opened |= ~(Q)(rest[g] > limit);
    }
    EACH if (b + i < n) {
      from[b + i] = all.count, open[b + i] = opened[i] != 0;
      for (long g = 0; more[i] && g < groups; g++)
        if (first[g][i] <= limit[i] && g * size != place[i])
          push(&all, start + b + i, g * size, first[g][i]);
      for (long g = 0; opened[i] && g < groups; g++) {
        double least = rest[g][i];
        rests[(b + i) * groups + g] = least == least ? least : 0.0;
      }
    }
  }
  from[n] = all.count;
  broken |= settle(X, stride, K, T, full, n, &all, from, &now, time, best, column);
  for (;;) { /* of each problem the group of the least bound, while one can win */
    all.count = 0;
    for (long b = 0; b < n; b++) {
      from[b] = all.count;
      double low = best[b] * SLACK, *own = rests + b * groups;
      long group = -1;
      for (long g = 0; open[b] && g < groups; g++)
        if (own[g] <= low) low = own[g], group = g;
      open[b] = group >= 0;
      if (!open[b]) continue;
      own[group] = NAN; /* taken */
      for (long c = 1; c < size; c++) push(&all, start + b, group * size + c, 0.0);
    }
    from[n] = all.count;
    if (!all.count) return broken;
    each_pair(X, stride, K, T, bound, &all, low);
    broken |= settle(X, stride, K, T, full, n, &all, from, &now, time, best, column);
  }
}
