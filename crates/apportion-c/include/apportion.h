/* apportion: divides a computation among unequal processors so that all finish together.
 *
 * Link with -lapportion. Every function that can fail returns a code; the message of the last failure in this
 * thread is apportion_last_error(). Pointers that may be NULL say so. Counts and units are int64_t. Processors
 * are numbered from 0 (in MPI programs: ranks). Arrays without a stated length have one entry per processor.
 *
 * No function calls back, writes to stdout, or keeps a pointer to the caller's memory. A value behind a pointer
 * may be used by one thread at a time; different values are independent.
 *
 * License: MIT or Apache-2.0. */
#ifndef APPORTION_H
#define APPORTION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header; apportion_version() is that of the library that the program runs with. Versions 0.x
 * with the same second number are compatible: programs need not be compiled again. */
#define APPORTION_VERSION "0.1.0"
#define APPORTION_VERSION_MAJOR 0
#define APPORTION_VERSION_MINOR 1
#define APPORTION_VERSION_PATCH 0

/* Codes. */
#define APPORTION_OK 0
#define APPORTION_FAILED 1   /* the arguments are right, but there is no answer, or the work failed */
#define APPORTION_INVALID 2  /* an argument or file is wrong */
#define APPORTION_INTERNAL 3 /* a bug of the library: please report it */

/* Reasons of a balancer's decision; only APPORTION_FASTER changes the shares. */
#define APPORTION_FASTER 0
#define APPORTION_BALANCED 1       /* the times are within the tolerance of each other */
#define APPORTION_WARMING_UP 2     /* the first round after a change is not used */
#define APPORTION_UNCERTAIN 3      /* the difference may be noise */
#define APPORTION_SMALL_GAIN 4     /* the saving is below the hysteresis */
#define APPORTION_MOVING_COST 5    /* moving costs more than it saves */
#define APPORTION_NOTHING_BETTER 6 /* no other shares are faster */

/* Flags of apportion_shares_from_costs. */
#define APPORTION_ANY_ORDER 1 /* processors may change places */
#define APPORTION_LATENCY 2   /* the sum of the times is least, not the longest of them */

typedef struct apportion_models apportion_models;
typedef struct apportion_balancer apportion_balancer;
typedef struct apportion_layout apportion_layout;
typedef struct apportion_product apportion_product;
typedef struct apportion_factorisation apportion_factorisation;
typedef struct apportion_advection apportion_advection;
typedef struct apportion_world apportion_world;

/* "0.1.0". The text is static. */
const char *apportion_version(void);

/* One line: what is wrong, where, how to fix it; empty if nothing has failed in this thread. Valid until the next
 * failure in this thread. */
const char *apportion_last_error(void);

/* ---- Shares of independent units ------------------------------------------------------------------------- */

/* Divides `units` units in proportion to the speeds that processors showed: processor i did work[i] in
 * seconds[i], both positive. `work` may be NULL: all did the same. Writes the units of each processor to
 * `shares`. */
int apportion_shares_from_times(int64_t units, int64_t processors, const double *work, const double *seconds,
                                int64_t *shares);

/* Divides `units` units in proportion to speeds in any unit. A processor of speed 0 gets none. Writes the units of
 * each processor to `shares`. */
int apportion_shares_from_speeds(int64_t units, int64_t processors, const double *speeds, int64_t *shares);

/* Speed functions from a file (models.json, as `apportion measure` writes it). */
int apportion_models_read(const char *path, apportion_models **models);

/* Speed functions from measurements: `points` sizes and their times for each processor; those of processor i start
 * at sizes[i * points] and seconds[i * points]. One point is a constant speed. `max_sizes` may be NULL; INFINITY is
 * no limit. */
int apportion_models_new(int64_t processors, int64_t points, const double *sizes, const double *seconds,
                         const double *max_sizes, apportion_models **models);

/* NULL is allowed. */
void apportion_models_free(apportion_models *models);

/* Divides `units` units so that the longest time is as short as possible. Writes the units of each processor to
 * `shares`, and the forecast of its seconds to `seconds`, unless that is NULL. */
int apportion_shares_from_models(const apportion_models *models, int64_t units, int64_t processors,
                                 int64_t *shares, double *seconds);

/* Divides a row of `units` units of different cost into contiguous parts so that the longest time is as short as
 * possible. The models' sizes are costs: a unit of cost 2 takes as long as two of cost 1. `memory` has the bytes of each
 * unit and `capacities` those of each processor; both may be NULL. `flags` is 0 or a sum of flags. Writes the units of
 * each processor to `shares`, and its first unit to `offsets`, unless that is NULL: without APPORTION_ANY_ORDER
 * processors have their parts in their order. */
int apportion_shares_from_costs(const apportion_models *models, int64_t units, const double *costs,
                                const double *memory, int64_t processors, const int64_t *capacities, int flags,
                                int64_t *shares, int64_t *offsets);

/* ---- The balancer: times in, shares out, round after round ----------------------------------------------- */

/* A balancer of a loop whose rounds divide `units` units; it starts from equal shares. In an MPI program every
 * process has a balancer and observes the times of all processes (MPI_Allgather): all decide the same. */
int apportion_balancer_new(int64_t units, int64_t processors, apportion_balancer **balancer);

/* Sets an option before the first round:
 *   "tolerance"        largest (longest - shortest) / shortest time that counts as balanced; 0.05
 *   "hysteresis"       least saving, as a fraction of a round, that is worth a change; 0.02
 *   "warm_up"          number of rounds that are not used, at the start and after each change of shares; 1
 *   "cost_per_change"  seconds of any change of shares; 0
 *   "cost_per_unit"    seconds for each unit that the busiest processor sends or receives; 0
 *   "rounds"           number of rounds in which a change must earn its cost; any number. "cost_rounds" is the
 *                      same */
int apportion_balancer_set(apportion_balancer *balancer, const char *option, double value);

/* Limits each share before the first round: minimum and maximum, and the block of which it is a multiple. Each may
 * be NULL: 0, no limit, 1. */
int apportion_balancer_limits(apportion_balancer *balancer, int64_t processors, const int64_t *min,
                              const int64_t *max, const int64_t *multiple_of);

/* Starts from speed functions instead of equal shares. Their shape counts, not their height: ratios will do. */
int apportion_balancer_start(apportion_balancer *balancer, const apportion_models *models);

/* Takes the seconds that the processors needed for their shares (ignored where the share is 0), and decides on the
 * next round. Writes the units of each processor to `shares`, the first unit of each processor and the number of
 * units (processors + 1 entries) to `offsets`, and why to `reason`. Each may be NULL. */
int apportion_balancer_observe(apportion_balancer *balancer, int64_t processors, const double *seconds,
                               int64_t *shares, int64_t *offsets, int *reason);

/* The rank of the processor that held up the last round: the one that took longest. Invalid before a round. */
int apportion_balancer_slowest(const apportion_balancer *balancer, int64_t *rank);

/* The shares and offsets of the present round, as for apportion_balancer_observe. */
int apportion_balancer_shares(const apportion_balancer *balancer, int64_t processors, int64_t *shares,
                              int64_t *offsets);

/* Writes the whole state as a text that ends with a zero byte, for a checkpoint, and its length with that byte to
 * `length`. With a capacity of 0 and NULL it writes the length only. */
int apportion_balancer_save(const apportion_balancer *balancer, int64_t capacity, char *state, int64_t *length);

/* The balancer of a saved state; it continues with the same decisions. */
int apportion_balancer_load(const char *state, apportion_balancer **balancer);

/* NULL is allowed. */
void apportion_balancer_free(apportion_balancer *balancer);

/* ---- Layouts of a matrix or domain ----------------------------------------------------------------------- */

/* Divides the m x n matrix C of a product C = A B (A is m x k, B is k x n) or an m x n domain (k = 1) into
 * rectangles with areas in proportion to `speeds`, each 0 or between 1e-100 and 1e100. "auto" takes the method that
 * communicates least. Methods for any number of processors: "columns", "recursive", "square-corner", "rows", "grid",
 * "cartesian", "nagamochi-abe"; for two or three: "straight-line", "hybrid"; for three: "square-rectangle",
 * "block-rectangle", "square-edge", "square-middle". */
int apportion_layout_new(const char *method, int64_t m, int64_t k, int64_t n, int64_t processors,
                         const double *speeds, apportion_layout **layout);

/* Writes the rectangles, five numbers each: owner, first row, row after the last, first column, column after the
 * last; and their number to `count`. `capacity` is the room of `rectangles`, in rectangles. With a capacity of 0
 * and NULL it writes the count only. */
int apportion_layout_rectangles(const apportion_layout *layout, int64_t capacity, int64_t *rectangles,
                                int64_t *count);

/* NULL is allowed. */
void apportion_layout_free(apportion_layout *layout);

/* Simulates the product of the layout in double precision on the processors and the network of a file
 * (platform.toml), with the flow that takes the least time, as `apportion simulate` does. `models` may be NULL: the
 * file then gives the speeds. Writes the seconds of the whole, and of each processor's computation and
 * communication; these two may be NULL. */
int apportion_forecast(const apportion_layout *layout, const char *platform, const apportion_models *models,
                       int64_t processors, double *seconds, double *compute, double *communicate);

/* ---- Products of matrices in memory ----------------------------------------------------------------------- */

/* A product on the processors of this machine. Everything that is not set is decided, as by `apportion matmul`. */
int apportion_product_new(apportion_product **product);

/* Sets an option, with the name and the values that `apportion matmul` and Python's apportion.matmul have:
 *   "semiring"    plus-times, max-plus, min-plus; plus-times
 *   "alpha"       factor of the product; 1
 *   "speeds"      of the processors: ratios such as 9:1, or with a unit, 9 Gflop/s,1 Gflop/s; measured
 *   "platform"    file of processors and network; the cores of this machine
 *   "models"      file of speed functions; measured
 *   "method"      layout method; auto
 *   "flow"        one-to-all, ring, bulk, broadcast; auto
 *   "block"       pivot block size; 256, or less where memory requires it
 *   "overlap"     true: computes while data travel; false
 *   "look_ahead"  pivot blocks in transit during an update; implies overlap; 1
 *   "keep_all"    true: gives every processor a share; false
 *   "remeasure"   true: measures instead of using remembered speeds; false
 *   "blas"        auto, none (the same bytes whatever is installed), openblas, blis, mkl or a path; auto
 *   "seed"        of the verification; 1 */
int apportion_product_set(apportion_product *product, const char *option, const char *setting);

/* C = A B of whole matrices, row by row in memory: A is m x k, B is k x n. The result is verified (Freivalds' method,
 * or exactly) before it is written. */
int apportion_product_run(apportion_product *product, int64_t m, int64_t k, int64_t n, const double *a,
                          const double *b, double *c);

/* C = A A^T, row by row in memory: A is n x k, C is n x n. Only the lower triangle is computed, as by BLAS's syrk, and
 * copied to the upper one: half of the work of apportion_product_run, with the same options but "method". For A^T A
 * pass the transpose of A. */
int apportion_product_syrk(apportion_product *product, int64_t n, int64_t k, const double *a, double *c);

/* Writes the plan of the last product (plan.json) as a text that ends with a zero byte, and its length with that
 * byte to `length`. With a capacity of 0 and NULL it writes the length only. */
int apportion_product_plan(const apportion_product *product, int64_t capacity, char *plan, int64_t *length);

/* NULL is allowed. */
void apportion_product_free(apportion_product *product);

/* ---- Factors of matrices in memory, and linear systems ---------------------------------------------------- */

/* Factorisations on the processors of this machine. Everything that is not set is decided, as by
 * `apportion factor`. */
int apportion_factorisation_new(apportion_factorisation **factorisation);

/* Sets an option, with the name and the values that `apportion factor` and Python's apportion.lu have:
 *   "kind"        lu (with partial pivoting), cholesky, ldlt (of a symmetric matrix); lu
 *   "speeds"      of the processors: ratios such as 9:1, or with a unit, 9 Gflop/s,1 Gflop/s; measured
 *   "platform"    file of processors and network; the cores of this machine
 *   "models"      file of speed functions; measured
 *   "method"      layout: greedy, grid, ratio, cyclic, alone; auto
 *   "block"       columns of a block; by forecast
 *   "mixed"       true: apportion_solve factors in single precision and refines to double; false
 *   "remeasure"   true: measures instead of using remembered speeds; false
 *   "seed"        of the verification; 1 */
int apportion_factorisation_set(apportion_factorisation *factorisation, const char *option, const char *setting);

/* The factors of an n x n matrix, row by row in memory; `factors` may be `a`. lu: P A = L U, L without its diagonal
 * of ones below U, as LAPACK's getrf returns them; row i was exchanged with row pivots[i], one after the other, from
 * 0. cholesky: A = L L^T, L with zeros above its diagonal; only the lower triangle of A is read, and `pivots` may be
 * NULL. ldlt: P A P^T = L D L^T, as LAPACK's sytrf returns them; pivots are its negative ones, and its others less by
 * 1. The factors are verified by the residual of LAPACK's tests before they are written. A matrix that is
 * singular, or not positive definite, is APPORTION_FAILED. */
int apportion_factor(apportion_factorisation *factorisation, int64_t n, const double *a, double *factors,
                     int64_t *pivots);

/* Solves A X = B for `sides` right-hand sides: B and X are n x sides, row by row in memory; `x` may be `b`. A is
 * factored, X refined, and verified before it is written. */
int apportion_solve(apportion_factorisation *factorisation, int64_t n, int64_t sides, const double *a,
                    const double *b, double *x);

/* NULL is allowed. */
void apportion_factorisation_free(apportion_factorisation *factorisation);

/* ---- Graphs in memory --------------------------------------------------------------------------------------- */

/* Divides the vertices of an undirected graph among processors, so that their weights are in proportion to `speeds` and
 * little crosses between parts. The neighbours of vertex i, from 0, are neighbours[offsets[i]] to
 * neighbours[offsets[i + 1] - 1], so that `offsets` has vertices + 1 entries; each edge is listed at both of its ends.
 * These arrays are int64_t, whatever the integers of the partitioner are; numbers of entries are less than 2^31.
 * `vertex_weights` and `edge_weights`, one for each entry of `neighbours`, may be NULL: all are 1. `method` is "metis"
 * (the better of "metis-recursive" and "metis-kway"), "scotch", "contiguous" (consecutive vertices) or "auto", which is
 * also NULL: the best of those that this machine has. METIS and Scotch are loaded when they are needed. Writes the
 * processor of each vertex to `parts`, the weight of the edges between parts to `edge_cut`, and to `volume` the number of
 * values that processors send in a step in which each vertex needs those of its neighbours; these two may be NULL. */
int apportion_graph(const char *method, int64_t vertices, const int64_t *offsets, const int64_t *neighbours,
                    const int64_t *vertex_weights, const int64_t *edge_weights, int64_t processors,
                    const double *speeds, int32_t *parts, int64_t *edge_cut, int64_t *volume);

/* ---- Fields in memory that a flow carries ------------------------------------------------------------------ */

/* Advection by MPDATA on the processors of this machine. Everything that is not set is decided, as by
 * `apportion advect`. */
int apportion_advection_new(apportion_advection **advection);

/* Sets an option, with the name and the values that `apportion advect` and Python's apportion.advect have:
 *   "iterations"      passes of a step, 1 to 4; 2
 *   "nonoscillatory"  true: no new extremes appear; false
 *   "infinite_gauge"  true: for fields of both signs; false
 *   "third_order"     true: corrects the third-order error too; false
 *   "boundary"        periodic, zero or extrapolated, for all axes or for each, such as periodic,zero; periodic
 *   "courant"         Courant numbers along the axes whose faces are NULL, such as 0.2,0.1; 0
 *   "speeds"          of the processors: ratios such as 9:1; measured
 *   "platform"        file of processors and network; the cores of this machine
 *   "models"          file of speed functions; measured
 *   "method"          layout method; auto
 *   "remeasure"       true: measures the network between hosts again; false */
int apportion_advection_set(apportion_advection *advection, const char *option, const char *setting);

/* A field of one to three dimensions after some steps, the last axis fastest in memory; `result` may be `field`. cx, cy
 * and cz are the Courant numbers on the faces of the cells along each axis, one more than cells along it; NULL for a
 * constant ("courant"), and for axes that the field has not. */
int apportion_advect(apportion_advection *advection, int64_t axes, const int64_t *sizes, int64_t steps,
                     const double *field, const double *cx, const double *cy, const double *cz, double *result);

/* NULL is allowed. */
void apportion_advection_free(apportion_advection *advection);

/* ---- On the processes of an MPI program ------------------------------------------------------------------- */

/* A world on the processes of a communicator, all of which must call it: apportion_world_adopt(&comm,
 * sizeof(comm), &world) after MPI_Init. The library finds the MPI that the program runs, whichever it is, and
 * refuses a handle of another one. The communicator is duplicated; free the world before MPI_Finalize. While a
 * function works on the world, no other thread may call MPI unless MPI was started with MPI_THREAD_MULTIPLE. */
int apportion_world_adopt(const void *communicator, int64_t size_of_communicator, apportion_world **world);

/* The same for a Fortran handle (comm, or comm%MPI_VAL; in C MPI_Comm_c2f(comm)). */
int apportion_world_adopt_fortran(int communicator, apportion_world **world);

/* All processes of the world must call it. NULL is allowed. */
void apportion_world_free(apportion_world *world);

/* The cut of B for apportion_matmul: rows of C (and of A) are cut at `offsets` (processors + 1 entries, from 0 to
 * m), and the k rows of B in the same proportion at `offsets_of_b`. Both cuts are the same if m = k. */
int apportion_matmul_cut(int64_t m, int64_t k, int64_t processors, const int64_t *offsets, int64_t *offsets_of_b);

/* C = A B in double precision, row by row in memory. Process i holds the rows offsets[i] to offsets[i + 1] of A and
 * of C, and the rows of B that apportion_matmul_cut says. All processes of the world must call it with the same
 * sizes and offsets (world size + 1 entries). The flow of A and B is chosen by the speeds of the processes, which are
 * measured at the first product and then remembered; large products take the fastest BLAS that is found. Every
 * result is verified (Freivalds' method) before it is written. If it fails on one process only, end the others with
 * MPI_Abort. */
int apportion_matmul(apportion_world *world, int64_t m, int64_t k, int64_t n, const int64_t *offsets,
                     const double *a, const double *b, double *c);

#ifdef __cplusplus
}
#endif

#endif
