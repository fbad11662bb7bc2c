/* Recurrences by hand, with their derivatives: f(turns, arguments, parameters, result and derivatives by these). */

#include <math.h>
#include <string.h>

#define STEP 0.01
#define MOST 100000

static double x[MOST], v[MOST], y[MOST];

void euler(long turns, const double *args, const double *p, double *out) {
    double k = p[0];
    x[0] = args[0], v[0] = args[1];
    for (long t = 0; t < turns; t++) {
        x[t + 1] = x[t] + STEP * v[t];
        v[t + 1] = v[t] - STEP * k * x[t];
    }
    double dx = 2.0 * x[turns], dv = 2.0 * v[turns], dk = 0.0;
    for (long t = turns - 1; t >= 0; t--) {
        double before = dx - STEP * k * dv;
        dk -= STEP * x[t] * dv;
        dv += STEP * dx;
        dx = before;
    }
    out[0] = x[turns] * x[turns] + v[turns] * v[turns], out[1] = dk;
}

void oscillator_of_fourth_order(long turns, const double *args, const double *p, double *out) {
    double k = p[0], h = STEP, g = STEP / 6.0;
    x[0] = args[0], v[0] = args[1];
    for (long t = 0; t < turns; t++) {
        double a0 = v[t], a1 = -k * x[t];
        double b0 = v[t] + 0.5 * h * a1, b1 = -k * (x[t] + 0.5 * h * a0);
        double c0 = v[t] + 0.5 * h * b1, c1 = -k * (x[t] + 0.5 * h * b0);
        double d0 = v[t] + h * c1, d1 = -k * (x[t] + h * c0);
        x[t + 1] = x[t] + g * (a0 + 2.0 * b0 + 2.0 * c0 + d0);
        v[t + 1] = v[t] + g * (a1 + 2.0 * b1 + 2.0 * c1 + d1);
    }
    double dx = 2.0 * x[turns], dv = 2.0 * v[turns], dk = 0.0;
    for (long t = turns - 1; t >= 0; t--) {
        double a0 = v[t], a1 = -k * x[t];
        double b0 = v[t] + 0.5 * h * a1;
        double c0 = v[t] + 0.5 * h * -k * (x[t] + 0.5 * h * a0);
        double da0 = g * dx, db0 = 2.0 * g * dx, dc0 = 2.0 * g * dx, dd0 = g * dx;
        double da1 = g * dv, db1 = 2.0 * g * dv, dc1 = 2.0 * g * dv + h * dd0, dd1 = g * dv;
        dv += dd0, dx -= k * dd1, dc0 -= k * h * dd1, dk -= (x[t] + h * c0) * dd1;
        dv += dc0, dx -= k * dc1, db1 += 0.5 * h * dc0, db0 -= k * 0.5 * h * dc1, dk -= (x[t] + 0.5 * h * b0) * dc1;
        dv += db0, dx -= k * db1, da1 += 0.5 * h * db0, da0 -= k * 0.5 * h * db1, dk -= (x[t] + 0.5 * h * a0) * db1;
        dv += da0, dx -= k * da1, dk -= x[t] * da1;
    }
    out[0] = x[turns] * x[turns] + v[turns] * v[turns], out[1] = dk;
}

void logistic(long turns, const double *args, const double *p, double *out) {
    double r = p[0], d = 1.0, dr = 0.0;
    x[0] = args[0];
    for (long t = 0; t < turns; t++) x[t + 1] = r * x[t] * (1.0 - x[t]);
    for (long t = turns - 1; t >= 0; t--) {
        dr += d * x[t] * (1.0 - x[t]);
        d *= r * (1.0 - 2.0 * x[t]);
    }
    out[0] = x[turns], out[1] = dr;
}

void horner(long turns, const double *args, const double *p, double *out) {
    double total = p[turns], d = 1.0;
    for (long t = turns - 1; t >= 0; t--) total = total * args[0] + p[t];
    for (long t = 0; t <= turns; t++) {
        out[1 + t] = d;
        d *= args[0];
    }
    out[0] = total;
}

void biquad(long turns, const double *args, const double *p, double *out) {
    double x1 = 0.0, x2 = 0.0, y1 = 0.0, y2 = 0.0, loss = 0.0;
    for (long t = 0; t < turns; t++) {
        y[t] = p[0] * args[t] + p[1] * x1 + p[2] * x2 - p[3] * y1 - p[4] * y2;
        x2 = x1, x1 = args[t], y2 = y1, y1 = y[t];
        loss += y[t] * y[t];
    }
    double d1 = 0.0, d2 = 0.0;
    memset(out + 1, 0, 5 * sizeof(double));
    for (long t = turns - 1; t >= 0; t--) {
        double d = 2.0 * y[t] - p[3] * d1 - p[4] * d2;
        out[1] += d * args[t];
        if (t > 0) out[2] += d * args[t - 1], out[4] -= d * y[t - 1];
        if (t > 1) out[3] += d * args[t - 2], out[5] -= d * y[t - 2];
        d2 = d1, d1 = d;
    }
    out[0] = loss;
}

enum { CELLS = 8, GIVEN = 4, WIDTH = CELLS + GIVEN };

void lstm(long turns, const double *args, const double *p, double *out) {
    static double gates[1024][4 * CELLS], c[1025][CELLS], seen[1025][WIDTH], squashed[1024][CELLS];
    const double *bias = p + 4 * CELLS * WIDTH;
    double *slopes = out + 1, *of_bias = slopes + 4 * CELLS * WIDTH, dh[CELLS], dc[CELLS] = {0};
    memset(c[0], 0, sizeof c[0]), memset(seen[0], 0, sizeof seen[0]);
    for (long t = 0; t < turns; t++) {
        memcpy(seen[t], args + t * GIVEN, GIVEN * sizeof(double));
        for (int g = 0; g < 4 * CELLS; g++) {
            double z = bias[g];
            for (int n = 0; n < WIDTH; n++) z += p[g * WIDTH + n] * seen[t][n];
            gates[t][g] = g / CELLS == 2 ? tanh(z) : 1.0 / (1.0 + exp(-z));
        }
        for (int n = 0; n < CELLS; n++) {
            double *q = gates[t] + n;
            c[t + 1][n] = q[CELLS] * c[t][n] + q[0] * q[2 * CELLS];
            squashed[t][n] = tanh(c[t + 1][n]);
            seen[t + 1][GIVEN + n] = q[3 * CELLS] * squashed[t][n];
        }
    }
    double loss = 0.0;
    for (int n = 0; n < CELLS; n++) {
        double h = seen[turns][GIVEN + n];
        loss += h * h, dh[n] = 2.0 * h;
    }
    memset(slopes, 0, 4 * CELLS * (WIDTH + 1) * sizeof(double));
    for (long t = turns - 1; t >= 0; t--) {
        double dz[4 * CELLS];
        for (int n = 0; n < CELLS; n++) {
            double i = gates[t][n], f = gates[t][CELLS + n], g = gates[t][2 * CELLS + n], o = gates[t][3 * CELLS + n];
            dc[n] += dh[n] * o * (1.0 - squashed[t][n] * squashed[t][n]);
            dz[n] = dc[n] * g * i * (1.0 - i), dz[CELLS + n] = dc[n] * c[t][n] * f * (1.0 - f);
            dz[2 * CELLS + n] = dc[n] * i * (1.0 - g * g), dz[3 * CELLS + n] = dh[n] * squashed[t][n] * o * (1.0 - o);
            dc[n] *= f, dh[n] = 0.0;
        }
        for (int g = 0; g < 4 * CELLS; g++) {
            of_bias[g] += dz[g];
            for (int n = 0; n < WIDTH; n++) slopes[g * WIDTH + n] += dz[g] * seen[t][n];
            for (int n = 0; n < CELLS; n++) dh[n] += dz[g] * p[g * WIDTH + GIVEN + n];
        }
    }
    out[0] = loss;
}
