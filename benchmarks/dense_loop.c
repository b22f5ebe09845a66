/* The yardstick: the dense cost model of one machine as a plain scalar loop over mappings.
 *
 * It computes what `tilewright.cost.DenseModel` computes for a seven-dimensional convolution on
 *
 *     DRAM > GLB > fan-out A > fan-out B > RF > MAC
 *
 * where every memory keeps every tensor in words of 8 bits and is double-buffered, and both fan-outs have one side,
 * multicast and reduce: all counts by the closed forms, edges and halo included, cycles with their ramp, energy, and by
 * how much a mapping exceeds the machine. Steps may divide or not. The stride is a constant (-DSTRIDE=2), as a compiler
 * makes better code then. Build: cc -O3 -march=native -shared -fPIC -pthread dense_loop.c
 *
 * Arrays are the batch encoding's: steps[slot][dimension][mapping], ranks likewise; slots are DRAM, GLB, A, B, RF.
 */
#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#ifndef STRIDE
#define STRIDE 1
#endif

enum { N, K, C, P, Q, R, S, DIMS };
enum { DRAM, GLB, LANES_A, LANES_B, RF, SLOTS };
enum { MOST = 10 };                 /* pieces of different extents that can occur: fewer than this */
enum { WEIGHTS, INPUTS, OUTPUTS };
enum { READS, FILLS, UPDATES, DRAINS };

typedef struct {
    int32_t sizes[DIMS];
    double read_bandwidth[3], write_bandwidth[3];    /* words per cycle: DRAM, GLB, RF */
    double energy[3], mac_energy;                    /* pJ per word of any access, pJ per multiply-accumulate */
    double capacity[2];                              /* bytes: GLB, RF */
    double lanes[2];                                 /* instances: A, B */
} Machine;

typedef struct { int count; int extent[MOST], times[MOST]; } Table;
typedef struct { int count; int previous[MOST], present[MOST], times[MOST]; } Pairs;   /* previous 0: a whole tile */

static inline int at_least_0(int x) { return x > 0 ? x : 0; }
static inline int least(int a, int b) { return a < b ? a : b; }

static inline void add(Table *table, int extent, int times) {
    table->extent[table->count] = extent;
    table->times[table->count++] = times;
}

static inline void set(Table *table, int extent) {
    table->count = 0;
    add(table, extent, 1);
}

/* Cut every piece into pieces of `step` and a remainder; the pieces of `step` come last. */
static inline void split(Table *after, const Table *before, unsigned step) {
    int whole = 0;
    after->count = 0;
    for (int i = 0; i < before->count; i++) {
        unsigned extent = before->extent[i], quotient = extent / step, rest = extent - quotient * step;
        whole += quotient * before->times[i];
        if (rest) add(after, rest, before->times[i]);
    }
    if (whole) add(after, step, whole);
}

static inline void pick(Table *after, const Table *before, int step) {
    after->count = before->count;
    for (int i = 0; i < before->count; i++) {
        after->extent[i] = least(before->extent[i], step);
        after->times[i] = before->times[i];
    }
}

/* Extents of the first lanes of all pieces together. */
static inline int first_lanes(const Table *table, int step) {
    int total = 0;
    for (int i = 0; i < table->count; i++) total += table->times[i] * least(table->extent[i], step);
    return total;
}

static inline int pieces(const Table *table) {
    int total = 0;
    for (int i = 0; i < table->count; i++) total += table->times[i];
    return total;
}

/* Lanes of all pieces, each cut to at most `most`, under loops of steps `a` and `b`. */
static inline int lanes_of(const Table *table, unsigned most, unsigned a, unsigned b) {
    unsigned total = 0, full = (a + b - 1) / b;
    for (int i = 0; i < table->count; i++) {
        unsigned extent = least(table->extent[i], most), quotient = extent / a, rest = extent - quotient * a;
        total += table->times[i] * (quotient * full + (rest + b - 1) / b);
    }
    return total;
}

static inline void add_pair(Pairs *pairs, int previous, int present, int times) {
    if (!times || !present) return;
    pairs->previous[pairs->count] = previous;
    pairs->present[pairs->count] = present;
    pairs->times[pairs->count++] = times;
}

/* Cut pairs by a loop that advances: `halo` where it is the innermost. */
static inline void split_pairs(Pairs *after, const Pairs *before, int step, int halo) {
    after->count = 0;
    int fresh = 0, carried = 0;                       /* pieces of `step` alike */
    for (int i = 0; i < before->count; i++) {
        int times = before->times[i], present = before->present[i];
        int whole = (int)((unsigned)present / (unsigned)step), rest = present - whole * step;
        if (halo) {
            add_pair(after, 0, least(step, present), times);
            if (whole > 1) carried += (whole - 1) * times;
            if (whole) add_pair(after, step, rest, times);
        } else if (!before->previous[i]) {
            fresh += whole * times;
            add_pair(after, 0, rest, times);
        } else {
            carried += whole * times;
            if (rest) add_pair(after, least(step, before->previous[i] - whole * step), rest, times);
        }
    }
    add_pair(after, 0, step, fresh);
    add_pair(after, step, step, carried);
}

static inline void pick_pairs(Pairs *after, const Pairs *before, int step) {
    after->count = before->count;
    for (int i = 0; i < before->count; i++) {
        after->present[i] = least(before->present[i], step);
        after->previous[i] = least(before->previous[i], step);
        after->times[i] = before->times[i];
    }
}

/* Start and width of the finest lane of [0, extent) that holds `position`. */
static inline void finest_lane(int extent, const int *lanes, int lane_loops, int position, int *start, int *width) {
    *start = 0;
    for (int i = 0; i < lane_loops; i++) {
        int index = (position - *start) / lanes[i];
        *start += index * lanes[i];
        extent = least(lanes[i], extent - index * lanes[i]);
    }
    *width = extent;
}

/* One dimension of a sliding axis, reduced coefficient and steps of merged lanes. */
typedef struct { int coefficient, lane_loops; int lanes[2]; } Side;

/* Words of a visit that every merged lane needing them held in the visit before, `step` further back. */
static inline int held_before(const Side *moving, const Side *still, int step, int previous, int present, int window) {
    const int stride = moving->coefficient, dilation = still->coefficient;
    Table lanes, before;
    int first = window, total = 0;
    set(&lanes, window);
    for (int i = 0; i < still->lane_loops; i++) {
        before = lanes;
        split(&lanes, &before, still->lanes[i]);
        first = least(first, still->lanes[i]);
    }
    for (int residue = 0; residue < least(dilation, present); residue++) {
        int visits = (present - residue + dilation - 1) / dilation, start, width;
        finest_lane(previous, moving->lanes, moving->lane_loops, residue, &start, &width);
        int end = start + width - 1;
        int back = (end - residue - step) % dilation;
        int last = end - (back < 0 ? back + dilation : back);
        if (last < start) continue;
        int lag = (step + residue - last) / dilation, corner = 0;
        if (dilation > 1 && moving->lane_loops && step % dilation) {
            int most = least(visits, (first + stride - 1) / stride);
            for (int i = 1; i < most && !corner; i++) {
                int position = residue + i * dilation;
                finest_lane(previous, moving->lanes, moving->lane_loops, position, &start, &width);
                if ((position - start + step) % dilation >= width) corner = i;
            }
        }
        int here = at_least_0(first - stride * lag);
        if (corner) {
            total += here - at_least_0(first - stride * (lag + corner));
            continue;
        }
        int further = stride * (lag + visits - 1);
        total += here - at_least_0(first - further);
        for (int i = 0; i < lanes.count; i++) total += lanes.times[i] * at_least_0(lanes.extent[i] - further);
    }
    return total;
}

/* Words along a sliding axis over all visits: those of each tile less those held before. */
static inline int slide(const Pairs *moving_pieces, const Table *still_pieces, const Side *moving, const Side *still,
                        int step) {
    int total = 0;
    for (int i = 0; i < moving_pieces->count; i++) {
        for (int j = 0; j < still_pieces->count; j++) {
            int present = moving_pieces->present[i], window = still_pieces->extent[j];
            int words = present * window
                - at_least_0(present - still->coefficient) * at_least_0(window - moving->coefficient);
            if (moving_pieces->previous[i])
                words -= held_before(moving, still, step, moving_pieces->previous[i], present, window);
            total += moving_pieces->times[i] * still_pieces->times[j] * words;
        }
    }
    return total;
}

static inline int box(int p, int r) { return p * r - at_least_0(p - 1) * at_least_0(r - STRIDE); }

typedef struct { int outer, merged, apart, busiest; } Words;      /* of DRAM > GLB, and of GLB > RF in three views */

/* A sliding axis P, R (or Q, S) of the inputs. `x0` and `x1` are the dimensions of the innermost advancing loops
 * outside GLB and outside RF (the latter at `slot1`, DRAM or GLB), -1 if there are none. */
static inline Words sliding_axis(const Machine *machine, const int step[SLOTS][DIMS], const Table outer[DIMS],
                                 const Table inner[DIMS], int p, int r, int x0, int x1, int slot1) {
    Words found;
    Pairs whole, pairs, cut, once;
    Table cut_still, once_still;
    for (int boundary = 0; boundary < 2; boundary++) {
        int x = boundary ? x1 : x0, halo_slot = boundary ? slot1 : DRAM, move = x == r ? r : p, stay = x == r ? p : r;
        int halo = x == p || x == r, carry = halo ? step[halo_slot][move] : 0;
        Side moving = {.coefficient = move == p ? STRIDE : 1}, still = {.coefficient = stay == p ? STRIDE : 1};
        whole.count = 0;
        add_pair(&whole, 0, machine->sizes[move], 1);
        split_pairs(&pairs, &whole, step[DRAM][move], halo && halo_slot == DRAM);
        if (!boundary) {
            found.outer = slide(&pairs, &outer[stay], &moving, &still, carry);
            continue;
        }
        whole = pairs;
        split_pairs(&pairs, &whole, step[GLB][move], halo && halo_slot == GLB);
        split_pairs(&whole, &pairs, step[LANES_A][move], 0);
        split_pairs(&cut, &whole, step[LANES_B][move], 0);
        split(&once_still, &inner[stay], step[LANES_A][stay]);
        split(&cut_still, &once_still, step[LANES_B][stay]);
        found.apart = slide(&cut, &cut_still, &moving, &still, carry);
        pick_pairs(&once, &pairs, step[LANES_B][move]);
        pick(&once_still, &inner[stay], step[LANES_B][stay]);
        found.busiest = slide(&once, &once_still, &moving, &still, carry);
        for (int slot = LANES_A, extent_m = step[GLB][move], extent_s = step[GLB][stay]; slot <= LANES_B; slot++) {
            if (step[slot][move] < extent_m) moving.lanes[moving.lane_loops++] = extent_m = step[slot][move];
            if (step[slot][stay] < extent_s) still.lanes[still.lane_loops++] = extent_s = step[slot][stay];
        }
        found.merged = slide(&pairs, &inner[stay], &moving, &still, carry);
    }
    return found;
}

/* Place of the innermost loop outside GLB (or RF) over one of `dimensions`: 7 x slot + rank + 1, 0 if there is none. */
static inline int innermost(const int place[2][DIMS], int slots, unsigned dimensions, int *dimension) {
    int found = 0;
    *dimension = -1;
    for (int slot = 0; slot < slots; slot++)
        for (int d = 0; d < DIMS; d++)
            if (dimensions >> d & 1 && place[slot][d] > found) found = place[slot][d], *dimension = d;
    return found;
}

enum {
    OF_WEIGHTS = 1 << K | 1 << C | 1 << R | 1 << S,
    OF_INPUTS = 1 << N | 1 << C | 1 << P | 1 << Q | 1 << R | 1 << S,
    OF_OUTPUTS = 1 << N | 1 << K | 1 << P | 1 << Q
};
static const unsigned dimensions_of[3] = {OF_WEIGHTS, OF_INPUTS, OF_OUTPUTS};

typedef struct { double outer, merged, apart, busiest; } Moved;

/* Words of the tensors' plain axes and visits; the inputs' sliding axes are multiplied in by the caller. */
static inline Moved moved(const Machine *machine, const int step[SLOTS][DIMS], const int place[2][DIMS], int tensor,
                          const Table whole[DIMS], const Table outer[DIMS], const Table inner[DIMS],
                          const int own[DIMS]) {
    Moved found = {1, 1, 1, 1};
    int x, place0 = innermost(place, 1, dimensions_of[tensor], &x);
    int place1 = innermost(place, 2, dimensions_of[tensor], &x);
    for (int d = 0; d < DIMS; d++) {
        if (dimensions_of[tensor] >> d & 1) {
            if (tensor == INPUTS && d != N && d != C) continue;
            int size = machine->sizes[d];
            found.outer *= size;
            found.merged *= size;
            found.apart *= size;
            found.busiest *= own[d];
            continue;
        }
        if (place[DRAM][d] < place0) found.outer *= pieces(&outer[d]);
        const Table *table = place[DRAM][d] >= place1 ? &whole[d] : place[GLB][d] >= place1 ? &outer[d] : &inner[d];
        int visits = pieces(table);
        found.merged *= visits;
        found.busiest *= visits;
        found.apart *= lanes_of(table, step[GLB][d], step[LANES_A][d], step[LANES_B][d]);
    }
    return found;
}

static inline double most(double a, double b) { return a > b ? a : b; }
static inline double tile_operands(const int e[DIMS]) {
    return (double)e[K] * e[C] * e[R] * e[S] + (double)e[N] * e[C] * box(e[P], e[R]) * box(e[Q], e[S]);
}
static inline double tile_outputs(const int e[DIMS]) { return (double)e[N] * e[K] * e[P] * e[Q]; }
static inline int last_of(int extent, int step) { return (extent - 1) % step + 1; }
static inline double over(double need, double have) { return need > have ? need / have - 1 : 0; }

/* Score mapping `b` of `n` into out[6][n]: latency, energy, excess, steps, steady, ramp; and its words into
 * counts[3 memories][3 tensors][4 kinds][n], if given. */
static void score(const Machine *machine, const int32_t *steps, const int8_t *ranks, long n, long b, double *out,
                  double *counts) {
    int step[SLOTS][DIMS], place[2][DIMS], own[DIMS];
    Table whole[DIMS], outer[DIMS], inner[DIMS];
    double compute_steps = 1, macs = 1, lanes[2] = {1, 1};
    for (int slot = 0; slot < SLOTS; slot++)
        for (int d = 0; d < DIMS; d++) step[slot][d] = steps[(slot * DIMS + d) * n + b];
    for (int d = 0; d < DIMS; d++) {
        int size = machine->sizes[d];
        set(&whole[d], size);
        split(&outer[d], &whole[d], step[DRAM][d]);
        split(&inner[d], &outer[d], step[GLB][d]);
        own[d] = first_lanes(&inner[d], step[LANES_B][d]);
        compute_steps *= own[d];
        macs *= size;
        place[DRAM][d] = step[DRAM][d] < size ? ranks[d * n + b] + 1 : 0;
        place[GLB][d] = step[GLB][d] < step[DRAM][d] ? DIMS + ranks[(DIMS + d) * n + b] + 1 : 0;
        lanes[0] *= (step[GLB][d] + step[LANES_A][d] - 1) / step[LANES_A][d];
        lanes[1] *= (step[LANES_A][d] + step[LANES_B][d] - 1) / step[LANES_B][d];
    }

    Moved tensor[3];
    for (int t = 0; t < 3; t++) tensor[t] = moved(machine, step, place, t, whole, outer, inner, own);
    int x0, x1;
    innermost(place, 1, OF_INPUTS, &x0);
    int slot1 = innermost(place, 2, OF_INPUTS, &x1) > DIMS ? GLB : DRAM;
    for (int axis = 0; axis < 2; axis++) {
        Words words = sliding_axis(machine, step, outer, inner, axis ? Q : P, axis ? S : R, x0, x1, slot1);
        tensor[INPUTS].outer *= words.outer;
        tensor[INPUTS].merged *= words.merged;
        tensor[INPUTS].apart *= words.apart;
        tensor[INPUTS].busiest *= words.busiest;
    }

    /* Outputs: what is read again is all updates but those of words that start from zero. */
    const int *sizes = machine->sizes;
    double all = tile_outputs(sizes), starts = (double)own[N] * own[K] * own[P] * own[Q];
    double count[3][3][4] = {{{0}}};
    for (int t = 0; t < OUTPUTS; t++) {
        count[0][t][READS] = count[1][t][FILLS] = tensor[t].outer;
        count[1][t][READS] = tensor[t].merged;
        count[2][t][FILLS] = tensor[t].apart;
        count[2][t][READS] = macs;
    }
    count[0][OUTPUTS][UPDATES] = count[1][OUTPUTS][DRAINS] = tensor[OUTPUTS].outer;
    count[0][OUTPUTS][READS] = count[1][OUTPUTS][FILLS] = tensor[OUTPUTS].outer - all;
    count[1][OUTPUTS][UPDATES] = tensor[OUTPUTS].merged;
    count[1][OUTPUTS][READS] = count[2][OUTPUTS][FILLS] = tensor[OUTPUTS].merged - all;
    count[2][OUTPUTS][DRAINS] = tensor[OUTPUTS].apart;
    count[2][OUTPUTS][UPDATES] = macs;
    count[2][OUTPUTS][READS] = macs - (tensor[OUTPUTS].apart - count[2][OUTPUTS][FILLS]);

    /* Cycles: what the busiest instance of each memory moves. */
    double reading[3] = {0}, writing[3] = {0}, energy = macs * machine->mac_energy, steady = compute_steps;
    for (int m = 0; m < 3; m++)
        for (int t = 0; t < 3; t++) {
            reading[m] += count[m][t][READS] + count[m][t][DRAINS];
            writing[m] += count[m][t][FILLS] + count[m][t][UPDATES];
        }
    for (int m = 0; m < 3; m++) energy += (reading[m] + writing[m]) * machine->energy[m];
    double evicted = tensor[OUTPUTS].busiest, given_back = evicted - starts;
    reading[2] = 2 * compute_steps + compute_steps - starts + evicted;
    writing[2] = compute_steps + given_back + tensor[WEIGHTS].busiest + tensor[INPUTS].busiest;
    for (int m = 0; m < 3; m++) {
        steady = most(steady, ceil(reading[m] / machine->read_bandwidth[m]));
        steady = most(steady, ceil(writing[m] / machine->write_bandwidth[m]));
    }

    /* Ramp: the first tiles come in, level by level, and the last outputs go out. */
    double last_glb = 1, last_rf = 1, last_merged = 1;
    static const int plain[4] = {N, K, P, Q};
    for (int i = 0; i < 4; i++) {
        int d = plain[i], glb = last_of(sizes[d], step[DRAM][d]), merged = last_of(glb, step[GLB][d]);
        last_glb *= glb;
        last_merged *= merged;
        last_rf *= least(merged, step[LANES_B][d]);
    }
    double glb_tile = tile_operands(step[DRAM]), rf_tile = tile_operands(step[LANES_B]);
    double ramp = most(ceil(glb_tile / machine->write_bandwidth[1]), ceil(glb_tile / machine->read_bandwidth[0]))
        + most(ceil(rf_tile / machine->write_bandwidth[2]), ceil(tile_operands(step[GLB]) / machine->read_bandwidth[1]))
        + most(ceil(last_glb / machine->read_bandwidth[1]), ceil(last_glb / machine->write_bandwidth[0]))
        + most(ceil(last_rf / machine->read_bandwidth[2]), ceil(last_merged / machine->write_bandwidth[1]));

    double excess = over(2 * (glb_tile + tile_outputs(step[DRAM])), machine->capacity[0])
        + over(2 * (rf_tile + tile_outputs(step[LANES_B])), machine->capacity[1])
        + over(lanes[0], machine->lanes[0]) + over(lanes[1], machine->lanes[1]);

    const double row[6] = {steady + ramp, energy, excess, compute_steps, steady, ramp};
    for (int i = 0; i < 6; i++) out[i * n + b] = row[i];
    if (counts)
        for (int i = 0; i < 36; i++) counts[i * n + b] = (&count[0][0][0])[i];
}

typedef struct {
    const Machine *machine;
    const int32_t *steps;
    const int8_t *ranks;
    long n, first, end;
    double *out, *counts;
} Share;

static void *score_share(void *argument) {
    const Share *share = argument;
    for (long b = share->first; b < share->end; b++)
        score(share->machine, share->steps, share->ranks, share->n, b, share->out, share->counts);
    return NULL;
}

/* Score all n mappings on up to 64 threads, each taking an equal part. */
void dense_loop(const Machine *machine, const int32_t *steps, const int8_t *ranks, long n, int threads, double *out,
                double *counts) {
    pthread_t thread[64];
    Share share[64];
    for (int i = 0; i < threads; i++) {
        share[i] = (Share){machine, steps, ranks, n, n * i / threads, n * (i + 1) / threads, out, counts};
        if (i) pthread_create(&thread[i], NULL, score_share, &share[i]);
    }
    score_share(&share[0]);
    for (int i = 1; i < threads; i++) pthread_join(thread[i], NULL);
}
