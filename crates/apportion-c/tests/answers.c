/* Every function that needs no MPI: answers by hand, and wrong arguments. */
#include <apportion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int bad;

#define RIGHT(condition)                                                                                            \
    do {                                                                                                            \
        if (!(condition)) {                                                                                         \
            printf("line %d: %s (%s)\n", __LINE__, #condition, apportion_last_error());                             \
            bad = 1;                                                                                                \
        }                                                                                                           \
    } while (0)

static int says(const char *part) { return strstr(apportion_last_error(), part) != NULL; }

static void shares(void)
{
    double seconds[2] = {1.0, 3.0}, work[2] = {9.0, 3.0}, zero[2] = {0.0, 1.0};
    int64_t found[2] = {-1, -1};
    RIGHT(apportion_shares_from_times(100, 2, NULL, seconds, found) == APPORTION_OK);
    RIGHT(found[0] == 75 && found[1] == 25);
    RIGHT(apportion_shares_from_times(100, 2, work, seconds, found) == APPORTION_OK);
    RIGHT(found[0] == 90 && found[1] == 10);
    RIGHT(apportion_shares_from_times(100, 2, NULL, zero, found) == APPORTION_INVALID && says("p0"));
    RIGHT(apportion_shares_from_times(-1, 2, NULL, seconds, found) == APPORTION_INVALID && says("units"));
    RIGHT(apportion_shares_from_times(100, 0, NULL, seconds, found) == APPORTION_INVALID && says("processors"));
    RIGHT(apportion_shares_from_times(100, 2, NULL, NULL, found) == APPORTION_INVALID && says("seconds"));
    RIGHT(apportion_shares_from_times(100, 2, NULL, seconds, NULL) == APPORTION_INVALID && says("shares"));
    RIGHT(apportion_shares_from_times(100, INT64_MAX, NULL, seconds, found) == APPORTION_INVALID);
    RIGHT(found[0] == 90 && found[1] == 10);
    zero[0] = NAN;
    RIGHT(apportion_shares_from_times(100, 2, NULL, zero, found) == APPORTION_INVALID && says("NaN"));
    zero[0] = 1e308;
    RIGHT(apportion_shares_from_times(100, 2, NULL, zero, found) == APPORTION_INVALID && says("p0"));
    RIGHT(apportion_shares_from_times(100, 2, zero, seconds, found) == APPORTION_INVALID && says("1e308"));

    double speeds[3] = {9, 0, 1}, none[2] = {0, 0}, large[2] = {1e308, 1e308};
    int64_t three[3];
    RIGHT(apportion_shares_from_speeds(1000, 3, speeds, three) == APPORTION_OK);
    RIGHT(three[0] == 900 && three[1] == 0 && three[2] == 100);
    RIGHT(apportion_shares_from_speeds(1000, 2, none, found) == APPORTION_INVALID && says("speeds: all are 0"));
    RIGHT(apportion_shares_from_speeds(1000, 2, large, found) == APPORTION_INVALID && says("processor p0: 1e308"));
    large[0] = 1e100;
    large[1] = 1e-100;
    RIGHT(apportion_shares_from_speeds(1000, 2, large, found) == APPORTION_OK && found[0] == 1000);
}

static void models(void)
{
    /* 10 units a second up to 50, 1 a second at 100; beside 5 a second. */
    double sizes[4] = {50, 100, 50, 100}, times[4] = {5, 100, 10, 20}, seconds[2], caps[2] = {40, INFINITY};
    int64_t found[2];
    apportion_models *some = NULL, *file = NULL;
    RIGHT(apportion_models_new(2, 2, sizes, times, NULL, &some) == APPORTION_OK);
    RIGHT(apportion_shares_from_models(some, 100, 2, found, seconds) == APPORTION_OK);
    RIGHT(found[0] == 61 && found[1] == 39 && fabs(seconds[1] - 7.8) < 1e-12);
    RIGHT(apportion_shares_from_models(some, 100, 3, found, NULL) == APPORTION_INVALID && says("processors"));
    apportion_models_free(some);
    RIGHT(apportion_models_new(2, 2, sizes, times, caps, &some) == APPORTION_OK);
    RIGHT(apportion_shares_from_models(some, 100, 2, found, NULL) == APPORTION_OK && found[0] == 40);
    apportion_models_free(some);
    caps[1] = 30;
    RIGHT(apportion_models_new(2, 2, sizes, times, caps, &some) == APPORTION_OK);
    RIGHT(apportion_shares_from_models(some, 100, 2, found, NULL) == APPORTION_FAILED && says("30 are missing"));
    apportion_models_free(some);
    RIGHT(apportion_models_read("models.json", &file) == APPORTION_OK);
    RIGHT(apportion_shares_from_models(file, 100, 2, found, NULL) == APPORTION_OK && found[0] == 61);
    apportion_models_free(file);
    /* A row of units: the heavy one goes to the fast processor, wherever that is. */
    double costs[5] = {1, 1, 1, 1, 4}, bytes[5] = {1, 1, 1, 1, 1}, one[2] = {1, 1}, unequal[2] = {1, 3};
    int64_t begins[2], rooms[2] = {3, 9};
    RIGHT(apportion_models_new(2, 1, one, one, NULL, &some) == APPORTION_OK);
    RIGHT(apportion_shares_from_costs(some, 5, costs, NULL, 2, NULL, 0, found, begins) == APPORTION_OK);
    RIGHT(found[0] == 4 && found[1] == 1 && begins[0] == 0 && begins[1] == 4);
    RIGHT(apportion_shares_from_costs(some, 5, costs, bytes, 2, rooms, 0, found, NULL) == APPORTION_OK);
    RIGHT(found[0] == 3 && found[1] == 2);
    RIGHT(apportion_shares_from_costs(some, 5, costs, bytes, 2, NULL, 0, found, NULL) == APPORTION_INVALID);
    RIGHT(says("memory"));
    RIGHT(apportion_shares_from_costs(some, 5, costs, NULL, 2, NULL, 8, found, NULL) == APPORTION_INVALID);
    RIGHT(says("flags"));
    RIGHT(apportion_shares_from_costs(some, 5, NULL, NULL, 2, NULL, 0, found, NULL) == APPORTION_INVALID);
    rooms[1] = 1;
    RIGHT(apportion_shares_from_costs(some, 5, costs, bytes, 2, rooms, 0, found, NULL) == APPORTION_FAILED);
    apportion_models_free(some);
    RIGHT(apportion_models_new(2, 1, one, unequal, NULL, &some) == APPORTION_OK);
    RIGHT(apportion_shares_from_costs(some, 5, costs, NULL, 2, NULL, APPORTION_ANY_ORDER, found, begins) ==
          APPORTION_OK);
    RIGHT(found[0] == 3 && found[1] == 2 && begins[0] == 2 && begins[1] == 0);
    RIGHT(apportion_shares_from_costs(some, 5, costs, NULL, 2, NULL, APPORTION_LATENCY, found, NULL) ==
          APPORTION_OK);
    RIGHT(found[0] == 5 && found[1] == 0);
    apportion_models_free(some);
    times[3] = -1;
    RIGHT(apportion_models_new(2, 2, sizes, times, NULL, &some) == APPORTION_INVALID && says("p1"));
    RIGHT(apportion_models_new(INT64_MAX, INT64_MAX, sizes, times, NULL, &some) == APPORTION_INVALID);
    RIGHT(apportion_models_read("none.json", &file) == APPORTION_INVALID && says("none.json"));
    RIGHT(apportion_models_read("\xff", &file) == APPORTION_INVALID && says("UTF-8"));
    apportion_models_free(NULL);
}

static void balancer(void)
{
    double speeds[3] = {300, 200, 100}, seconds[3];
    int64_t found[3], offsets[4], least[3] = {0, 0, 150}, block[3] = {10, 10, 10}, length = 0, slowest = -1;
    int reason = -1;
    apportion_balancer *one = NULL, *two = NULL;
    RIGHT(apportion_balancer_new(600, 3, &one) == APPORTION_OK);
    RIGHT(apportion_balancer_set(one, "tolerance", 0.02) == APPORTION_OK);
    RIGHT(apportion_balancer_set(one, "speed", 1) == APPORTION_INVALID && says("hysteresis"));
    RIGHT(apportion_balancer_set(one, "warm_up", 0.5) == APPORTION_INVALID);
    RIGHT(apportion_balancer_set(one, "warm_up", 0) == APPORTION_OK);
    RIGHT(apportion_balancer_set(one, "rounds", 1e9) == APPORTION_OK);
    RIGHT(apportion_balancer_set(one, "cost_rounds", 1e9) == APPORTION_OK);
    RIGHT(apportion_balancer_set(one, "cost_per_unit", -1) == APPORTION_INVALID);
    RIGHT(apportion_balancer_shares(one, 3, found, offsets) == APPORTION_OK);
    RIGHT(found[0] == 200 && offsets[0] == 0 && offsets[1] == 200 && offsets[3] == 600);
    for (int i = 0; i < 3; i++)
        seconds[i] = (double)found[i] / speeds[i];
    RIGHT(apportion_balancer_observe(one, 2, seconds, found, offsets, &reason) == APPORTION_INVALID);
    RIGHT(apportion_balancer_slowest(one, &slowest) == APPORTION_INVALID && says("no round"));
    RIGHT(apportion_balancer_observe(one, 3, seconds, found, offsets, &reason) == APPORTION_OK);
    RIGHT(reason == APPORTION_FASTER && found[0] == 300 && found[1] == 200 && found[2] == 100);
    RIGHT(apportion_balancer_slowest(one, &slowest) == APPORTION_OK && slowest == 2);
    RIGHT(offsets[1] == 300 && offsets[2] == 500 && offsets[3] == 600);
    RIGHT(apportion_balancer_set(one, "tolerance", 0.1) == APPORTION_INVALID && says("before the first round"));

    RIGHT(apportion_balancer_save(one, 0, NULL, &length) == APPORTION_OK && length > 1);
    char *state = malloc((size_t)length);
    RIGHT(apportion_balancer_save(one, length - 1, state, &length) == APPORTION_INVALID && says("capacity"));
    RIGHT(apportion_balancer_save(one, length, state, &length) == APPORTION_OK);
    RIGHT((int64_t)strlen(state) == length - 1);
    RIGHT(apportion_balancer_load(state, &two) == APPORTION_OK);
    RIGHT(apportion_balancer_load("{}", &two) == APPORTION_INVALID && says("state: "));
    RIGHT(says("apportion_balancer_save") && !says("to_json"));
    free(state);
    seconds[0] = seconds[1] = seconds[2] = 1.0;
    RIGHT(apportion_balancer_observe(two, 3, seconds, NULL, NULL, &reason) == APPORTION_OK);
    RIGHT(reason == APPORTION_BALANCED);
    apportion_balancer_free(two);
    apportion_balancer_free(one);

    RIGHT(apportion_balancer_new(600, 3, &one) == APPORTION_OK);
    RIGHT(apportion_balancer_limits(one, 3, least, NULL, block) == APPORTION_OK);
    RIGHT(apportion_balancer_shares(one, 3, found, NULL) == APPORTION_OK);
    RIGHT(apportion_balancer_observe(one, 3, seconds, NULL, NULL, &reason) == APPORTION_OK);
    RIGHT(reason == APPORTION_WARMING_UP);
    for (int i = 0; i < 3; i++)
        seconds[i] = (double)found[i] / speeds[i];
    RIGHT(apportion_balancer_observe(one, 3, seconds, found, NULL, NULL) == APPORTION_OK);
    RIGHT(found[0] == 270 && found[1] == 180 && found[2] == 150);
    apportion_balancer_free(one);

    apportion_models *known = NULL;
    double sizes[3] = {1, 1, 1}, times[3] = {1.0 / 300, 1.0 / 200, 1.0 / 100};
    RIGHT(apportion_models_new(3, 1, sizes, times, NULL, &known) == APPORTION_OK);
    RIGHT(apportion_balancer_new(600, 3, &one) == APPORTION_OK);
    RIGHT(apportion_balancer_start(one, known) == APPORTION_OK);
    RIGHT(apportion_balancer_shares(one, 3, found, NULL) == APPORTION_OK && found[0] == 300);
    apportion_models_free(known);
    apportion_balancer_free(one);
    RIGHT(apportion_balancer_new(600, 3, NULL) == APPORTION_INVALID && says("balancer"));
    RIGHT(apportion_balancer_observe(NULL, 3, seconds, NULL, NULL, NULL) == APPORTION_INVALID);
    apportion_balancer_free(NULL);
}

static void layouts(void)
{
    double speeds[2] = {9, 1}, none[2] = {0, 0}, total, compute[2];
    int64_t found[15], count = -1;
    apportion_layout *one = NULL;
    RIGHT(apportion_layout_new("rows", 100, 100, 50, 2, speeds, &one) == APPORTION_OK);
    RIGHT(apportion_layout_rectangles(one, 0, NULL, &count) == APPORTION_OK && count == 2);
    RIGHT(apportion_layout_rectangles(one, 1, found, &count) == APPORTION_INVALID && says("capacity"));
    RIGHT(apportion_layout_rectangles(one, 3, found, &count) == APPORTION_OK && count == 2);
    int64_t rows[10] = {0, 0, 90, 0, 50, 1, 90, 100, 0, 50};
    RIGHT(memcmp(found, rows, sizeof rows) == 0);
    apportion_layout_free(one);
    RIGHT(apportion_layout_new("square-corner", 100, 100, 100, 2, speeds, &one) == APPORTION_OK);
    RIGHT(apportion_layout_rectangles(one, 3, found, &count) == APPORTION_OK && count == 3);
    RIGHT(apportion_forecast(one, "two.toml", NULL, 2, &total, compute, NULL) == APPORTION_OK);
    /* 10^6 multiply-adds, nine tenths on 1e9 a second. */
    RIGHT(compute[0] > 0.89e-3 && compute[0] < 0.91e-3 && total >= compute[0] && total < 1.2e-3);
    RIGHT(apportion_forecast(one, "two.toml", NULL, 3, &total, NULL, NULL) == APPORTION_INVALID);
    RIGHT(apportion_forecast(one, "none.toml", NULL, 2, &total, NULL, NULL) == APPORTION_INVALID);
    apportion_layout_free(one);
    RIGHT(apportion_layout_new("circle", 100, 100, 100, 2, speeds, &one) == APPORTION_INVALID && says("circle"));
    RIGHT(says("use auto, columns"));
    RIGHT(apportion_layout_new("auto", 9, 9, 9, 2, speeds, &one) == APPORTION_OK);
    apportion_layout_free(one);
    /* Rectangles do not show cuts of the inner dimension. */
    RIGHT(apportion_layout_new("inner", 9, 900, 9, 2, speeds, &one) == APPORTION_FAILED && says("inner"));
    double large[3] = {1e308, 1e308, 1e308};
    RIGHT(apportion_layout_new("columns", 10, 10, 10, 3, large, &one) == APPORTION_INVALID && says("1e308"));
    RIGHT(apportion_layout_new("rows", 0, 100, 100, 2, speeds, &one) == APPORTION_INVALID && says("zero"));
    RIGHT(apportion_layout_new("rows", 10, 10, 10, 2, none, &one) == APPORTION_INVALID && says("speeds"));
    RIGHT(apportion_layout_new("straight-line", 9, 9, 9, 1, speeds, &one) != APPORTION_INVALID);
    apportion_layout_free(NULL);
}

static void products(void)
{
    double a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 0, 1, 1, 1}, c[4] = {0};
    int64_t length = 0;
    apportion_product *one = NULL;
    RIGHT(apportion_product_new(&one) == APPORTION_OK);
    RIGHT(apportion_product_plan(one, 0, NULL, &length) == APPORTION_INVALID && says("no plan"));
    RIGHT(apportion_product_set(one, "speeds", "3:1") == APPORTION_OK);
    RIGHT(apportion_product_set(one, "speeds", "3:x") == APPORTION_INVALID && says("speeds: "));
    RIGHT(apportion_product_set(one, "method", "rows") == APPORTION_OK);
    RIGHT(apportion_product_set(one, "method", "circle") == APPORTION_INVALID && says("circle"));
    RIGHT(apportion_product_set(one, "colour", "red") == APPORTION_INVALID && says("look_ahead"));
    RIGHT(apportion_product_set(one, "block", "0") == APPORTION_INVALID && says("block: "));
    RIGHT(apportion_product_run(one, 2, 3, 2, a, b, c) == APPORTION_OK);
    RIGHT(c[0] == 4 && c[1] == 5 && c[2] == 10 && c[3] == 11);
    RIGHT(apportion_product_plan(one, 0, NULL, &length) == APPORTION_OK && length > 1);
    char *plan = malloc((size_t)length);
    RIGHT(apportion_product_plan(one, length, plan, &length) == APPORTION_OK && strstr(plan, "\"rows\"") != NULL);
    free(plan);
    RIGHT(apportion_product_run(one, 0, 3, 2, a, b, c) == APPORTION_INVALID && says("m: "));
    RIGHT(apportion_product_run(one, 2, 3, 2, a, b, NULL) == APPORTION_INVALID && says("c: "));
    RIGHT(apportion_product_run(one, INT64_MAX, 3, 2, a, b, c) == APPORTION_INVALID);
    RIGHT(apportion_product_set(one, "semiring", "min-plus") == APPORTION_OK);
    RIGHT(apportion_product_run(one, 2, 3, 2, a, b, c) == APPORTION_OK && c[0] == 2 && c[3] == 4);
    RIGHT(apportion_product_syrk(one, 2, 3, a, c) == APPORTION_INVALID && says("method: "));
    RIGHT(apportion_product_set(one, "method", "auto") == APPORTION_OK);
    RIGHT(apportion_product_syrk(one, 2, 3, a, c) == APPORTION_OK);
    RIGHT(c[0] == 2 && c[1] == 5 && c[2] == 5 && c[3] == 8);
    RIGHT(apportion_product_set(one, "semiring", "plus-times") == APPORTION_OK);
    RIGHT(apportion_product_syrk(one, 2, 3, a, c) == APPORTION_OK);
    RIGHT(c[0] == 14 && c[1] == 32 && c[2] == 32 && c[3] == 77);
    RIGHT(apportion_product_plan(one, 0, NULL, &length) == APPORTION_OK);
    plan = malloc((size_t)length);
    RIGHT(apportion_product_plan(one, length, plan, &length) == APPORTION_OK && strstr(plan, "\"syrk\"") != NULL);
    free(plan);
    RIGHT(apportion_product_syrk(one, 0, 3, a, c) == APPORTION_INVALID && says("n: "));
    RIGHT(apportion_product_syrk(one, 2, 0, a, c) == APPORTION_INVALID && says("k: "));
    RIGHT(apportion_product_syrk(one, 2, 3, NULL, c) == APPORTION_INVALID && says("a: "));
    RIGHT(apportion_product_syrk(one, 2, 3, a, NULL) == APPORTION_INVALID && says("c: "));
    RIGHT(apportion_product_syrk(NULL, 2, 3, a, c) == APPORTION_INVALID && says("product"));
    apportion_product_free(one);
    apportion_product_free(NULL);
}

static void factorisations(void)
{
    double a[9] = {4, 2, 2, 2, 5, 3, 2, 3, 6}, f[9], b[6] = {8, 4, 10, 5, 11, 5.5}, x[6] = {0};
    double singular[4] = {1, 2, 2, 4}, unfit[4] = {1, 0, 0, 1};
    int64_t pivots[3] = {7, 7, 7};
    apportion_factorisation *one = NULL;
    RIGHT(apportion_factorisation_new(&one) == APPORTION_OK);
    RIGHT(apportion_factorisation_set(one, "speeds", "3:1") == APPORTION_OK);
    RIGHT(apportion_factorisation_set(one, "block", "1") == APPORTION_OK);
    RIGHT(apportion_factorisation_set(one, "block", "0") == APPORTION_INVALID && says("block: "));
    RIGHT(apportion_factorisation_set(one, "method", "cyclic") == APPORTION_OK);
    RIGHT(apportion_factorisation_set(one, "method", "columns") == APPORTION_INVALID && says("greedy"));
    RIGHT(apportion_factorisation_set(one, "kind", "qr") == APPORTION_INVALID && says("cholesky"));
    RIGHT(apportion_factorisation_set(one, "colour", "red") == APPORTION_INVALID && says("remeasure"));
    RIGHT(apportion_factor(one, 3, a, f, pivots) == APPORTION_OK);
    RIGHT(f[0] == 4 && f[1] == 2 && f[3] == 0.5 && f[4] == 4 && f[7] == 0.5 && f[8] == 4);
    RIGHT(pivots[0] == 0 && pivots[1] == 1 && pivots[2] == 2);
    RIGHT(apportion_factor(one, 3, a, f, NULL) == APPORTION_INVALID && says("pivots: "));
    RIGHT(apportion_factor(one, 2, singular, f, pivots) == APPORTION_FAILED && says("singular"));
    unfit[1] = NAN;
    RIGHT(apportion_factor(one, 2, unfit, f, pivots) == APPORTION_INVALID && says("(0, 1)"));
    RIGHT(apportion_factor(one, 0, a, f, pivots) == APPORTION_INVALID && says("n: "));
    RIGHT(apportion_factor(one, INT64_MAX, a, f, pivots) == APPORTION_INVALID && says("too many"));
    RIGHT(apportion_factor(NULL, 3, a, f, pivots) == APPORTION_INVALID && says("factorisation"));
    RIGHT(apportion_solve(one, 3, 2, a, b, x) == APPORTION_OK);
    for (int i = 0; i < 6; i++)
        RIGHT(fabs(x[i] - (i % 2 ? 0.5 : 1)) < 1e-15);
    RIGHT(apportion_factorisation_set(one, "mixed", "yes") == APPORTION_INVALID && says("true"));
    RIGHT(apportion_factorisation_set(one, "mixed", "true") == APPORTION_OK);
    RIGHT(apportion_solve(one, 3, 1, a, b, x) == APPORTION_OK && fabs(4 * x[0] + 2 * x[1] + 2 * x[2] - 8) < 1e-14);
    RIGHT(apportion_solve(one, 3, 0, a, b, x) == APPORTION_INVALID && says("sides: "));
    RIGHT(apportion_solve(one, 3, 2, a, b, NULL) == APPORTION_INVALID && says("x: "));
    RIGHT(apportion_factorisation_set(one, "kind", "cholesky") == APPORTION_OK);
    RIGHT(apportion_solve(one, 3, 2, a, b, b) == APPORTION_OK && fabs(b[0] - 1) < 1e-15);
    RIGHT(apportion_factor(one, 3, a, a, NULL) == APPORTION_OK);
    RIGHT(a[0] == 2 && a[1] == 0 && a[3] == 1 && a[4] == 2 && a[5] == 0 && a[7] == 1 && a[8] == 2);
    RIGHT(apportion_factor(one, 2, singular, f, NULL) == APPORTION_FAILED && says("order 2"));
    apportion_factorisation_free(one);
    apportion_factorisation_free(NULL);
}

static void advections(void)
{
    /* An upwind step of a quarter of a cell: each cell keeps three quarters, and gets a quarter of the one before. */
    double field[12] = {0}, out[12], cx[15], cy[16];
    int64_t line[1] = {4}, plane[2] = {3, 4}, none[2] = {3, 0};
    apportion_advection *one = NULL;
    field[1] = 8;
    for (int i = 0; i < 16; i++)
        cx[i % 15] = 0, cy[i] = 0.25;
    RIGHT(apportion_advection_new(&one) == APPORTION_OK);
    RIGHT(apportion_advection_set(one, "speeds", "2:1") == APPORTION_OK);
    RIGHT(apportion_advection_set(one, "iterations", "1") == APPORTION_OK);
    RIGHT(apportion_advection_set(one, "iterations", "5") == APPORTION_INVALID && says("iterations: "));
    RIGHT(apportion_advection_set(one, "boundary", "open") == APPORTION_INVALID && says("extrapolated"));
    RIGHT(apportion_advection_set(one, "courant", "0.25") == APPORTION_OK);
    RIGHT(apportion_advection_set(one, "colour", "red") == APPORTION_INVALID && says("remeasure"));
    RIGHT(apportion_advect(one, 1, line, 1, field, NULL, NULL, NULL, out) == APPORTION_OK);
    RIGHT(out[0] == 0 && out[1] == 6 && out[2] == 2 && out[3] == 0);
    RIGHT(apportion_advect(one, 1, line, 2, field, cy, NULL, NULL, out) == APPORTION_OK);
    RIGHT(out[0] == 0 && out[1] == 4.5 && out[2] == 3 && out[3] == 0.5);
    RIGHT(apportion_advect(one, 2, plane, 1, field, cx, cy, NULL, field) == APPORTION_OK);
    RIGHT(field[1] == 6 && field[2] == 2 && field[5] == 0 && field[6] == 0);
    RIGHT(apportion_advect(one, 1, line, 1, field, NULL, cy, NULL, out) == APPORTION_INVALID && says("cy: "));
    RIGHT(apportion_advect(one, 0, line, 1, field, cy, NULL, NULL, out) == APPORTION_INVALID && says("axes: "));
    RIGHT(apportion_advect(one, 4, line, 1, field, cy, NULL, NULL, out) == APPORTION_INVALID && says("axes: "));
    RIGHT(apportion_advect(one, 2, none, 1, field, cx, cy, NULL, out) == APPORTION_INVALID && says("sizes: "));
    RIGHT(apportion_advect(one, 1, line, 0, field, cy, NULL, NULL, out) == APPORTION_INVALID && says("steps: "));
    RIGHT(apportion_advect(one, 1, line, 1, NULL, cy, NULL, NULL, out) == APPORTION_INVALID && says("field: "));
    RIGHT(apportion_advect(one, 1, line, 1, field, cy, NULL, NULL, NULL) == APPORTION_INVALID && says("result: "));
    RIGHT(apportion_advect(NULL, 1, line, 1, field, cy, NULL, NULL, out) == APPORTION_INVALID && says("advection"));
    cy[2] = 3;
    RIGHT(apportion_advect(one, 1, line, 1, field, cy, NULL, NULL, out) == APPORTION_INVALID && says("Courant"));
    field[3] = NAN;
    RIGHT(apportion_advect(one, 1, line, 1, field, NULL, NULL, NULL, out) == APPORTION_INVALID && says("(3)"));
    apportion_advection_free(one);
    apportion_advection_free(NULL);
}

/* A path of six vertices, whose last edge is heavy: four for the processor that is twice as fast. */
static void graphs(int partitioners)
{
    int64_t offsets[7] = {0, 1, 3, 5, 7, 9, 10}, around[10] = {1, 0, 2, 1, 3, 2, 4, 3, 5, 4};
    int64_t heavy[10] = {1, 1, 1, 1, 3, 3, 1, 1, 9, 9}, work[6] = {4, 1, 1, 2, 2, 2}, cut = -1, volume = -1;
    double speeds[2] = {2, 1}, none[2] = {0, 0};
    int32_t found[6] = {7, 7, 7, 7, 7, 7};
#define DIVIDE(method, around, work, weights, speeds, found)                                                        \
    apportion_graph(method, 6, offsets, around, work, weights, 2, speeds, found, &cut, &volume)
    RIGHT(DIVIDE("contiguous", around, NULL, NULL, speeds, found) == APPORTION_OK && cut == 1 && volume == 2);
    RIGHT(found[0] == 0 && found[3] == 0 && found[4] == 1 && found[5] == 1);
    RIGHT(DIVIDE("contiguous", around, work, heavy, speeds, found) == APPORTION_OK && cut == 1 && volume == 2);
    RIGHT(found[3] == 0 && found[4] == 1);
    work[0] = 1;
    RIGHT(DIVIDE("contiguous", around, work, heavy, speeds, found) == APPORTION_OK && cut == 9 && volume == 2);
    RIGHT(found[4] == 0 && found[5] == 1);
    RIGHT(apportion_graph("contiguous", 6, offsets, around, NULL, NULL, 2, speeds, found, NULL, NULL) == APPORTION_OK);
    if (partitioners) {
        RIGHT(DIVIDE(NULL, around, NULL, NULL, speeds, found) == APPORTION_OK && cut == 1 && volume == 2);
        RIGHT(DIVIDE("auto", around, NULL, heavy, speeds, found) == APPORTION_OK && cut == 1);
        /* Whether there is one is up to the machine. */
        RIGHT(DIVIDE("metis", around, NULL, NULL, speeds, found) == APPORTION_OK || says("METIS"));
    }
    found[0] = 7;
    RIGHT(DIVIDE("coordinates", around, NULL, NULL, speeds, found) == APPORTION_INVALID && says("or contiguous"));
    RIGHT(DIVIDE(NULL, around, NULL, NULL, none, found) == APPORTION_INVALID && says("speeds"));
    RIGHT(DIVIDE(NULL, NULL, NULL, NULL, speeds, found) == APPORTION_INVALID && says("neighbours: "));
    RIGHT(DIVIDE(NULL, around, NULL, NULL, NULL, found) == APPORTION_INVALID && says("speeds: "));
    RIGHT(DIVIDE(NULL, around, NULL, NULL, speeds, NULL) == APPORTION_INVALID && says("parts: "));
    heavy[0] = 2;
    RIGHT(DIVIDE(NULL, around, NULL, heavy, speeds, found) == APPORTION_INVALID && says("weight 2, but 1 back"));
    work[5] = -1;
    RIGHT(DIVIDE(NULL, around, work, NULL, speeds, found) == APPORTION_INVALID && says("vertex_weights: -1"));
    around[9] = 3;
    RIGHT(DIVIDE(NULL, around, NULL, NULL, speeds, found) == APPORTION_INVALID && says("graph: vertex 5"));
    offsets[1] = INT64_MAX;
    RIGHT(DIVIDE(NULL, around, NULL, NULL, speeds, found) == APPORTION_INVALID && says("offsets: "));
    RIGHT(apportion_graph(NULL, 0, offsets, around, NULL, NULL, 2, speeds, found, &cut, NULL) == APPORTION_INVALID);
    RIGHT(apportion_graph(NULL, INT64_MAX, offsets, around, NULL, NULL, 2, speeds, found, &cut, NULL)
          == APPORTION_INVALID && says("offsets: "));
    RIGHT(apportion_graph(NULL, 6, offsets, around, NULL, NULL, 0, speeds, found, NULL, NULL) == APPORTION_INVALID);
    RIGHT(found[0] == 7);
#undef DIVIDE
}

/* With an argument, all but products, factorisations, advections and partitioners of others. */
int main(int argc, char **argv)
{
    int64_t offsets[3] = {0, 30, 100}, inner[3], falling[3] = {0, 70, 30};
    RIGHT(strcmp(apportion_version(), APPORTION_VERSION) == 0 && strcmp(apportion_last_error(), "") == 0);
    shares();
    models();
    balancer();
    layouts();
    graphs(argc < 2);
    if (argc < 2) {
        products();
        factorisations();
        advections();
    }
    (void)argv;
    RIGHT(apportion_matmul_cut(100, 50, 2, offsets, inner) == APPORTION_OK && inner[1] == 15 && inner[2] == 50);
    RIGHT(apportion_matmul_cut(100, 50, 2, falling, inner) == APPORTION_INVALID && says("offsets"));
    RIGHT(apportion_matmul(NULL, 1, 1, 1, offsets, NULL, NULL, NULL) == APPORTION_INVALID && says("world"));
    apportion_world_free(NULL);
    if (!bad)
        puts("all answers are right");
    return bad;
}
