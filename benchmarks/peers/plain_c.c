/* The workloads in C as one writes them by hand: no graph, loops over arrays, the backward pass derived on paper. */
#include <math.h>
#include <stdlib.h>

/* micrograd's README expression: out = g, dg/da, dg/db. */
void expression(double a, double b, double *out)
{
    double s = a + b, p = a * b + b * b * b, up = b + a, down = b - a;
    double c0 = s + s + 1, c = c0 + 1 + c0 - a;
    double d1 = p + p * 2 + (up > 0 ? up : 0), d = d1 + 3 * d1 + (down > 0 ? down : 0);
    double e = c - d, f = e * e;
    double df = 0.5 - 10.0 / (f * f), de = 2 * e * df;
    double dp = -de * 4 * 3, dup = up > 0 ? -de * 4 : 0, ddown = down > 0 ? -de : 0;
    out[0] = f / 2.0 + 10.0 / f;
    out[1] = de * 3 + dp * b + dup - ddown; /* c = 4 (a + b) + 3 - a */
    out[2] = de * 4 + dp * (a + 3 * b * b) + dup + ddown;
}

enum { RELU, TANH, LINEAR };
enum { HINGE, SQUARED, CROSSENTROPY };

/* One training step of a perceptron of `layers` layers. Parameters and gradients lie layer by layer: weights
   (neurons, inputs), then biases. `work` holds the signals of all layers and two gradients of the widest. */
double network(int layers, const int *sizes, int count, const double *X, const double *Y, double *parameters,
               double *gradients, double *work, int hidden, int output, int kind, double lr)
{
    double loss = 0;
    int total = 0, widest = 0, l, e, i, j;
    for (l = 0; l < layers; l++) total += (sizes[l] + 1) * sizes[l + 1];
    for (l = 0; l <= layers; l++) widest = sizes[l] > widest ? sizes[l] : widest;
    for (i = 0; i < total; i++) gradients[i] = 0;
    for (e = 0; e < count; e++) {
        double *signal = work, *last, *g, *before, *w = parameters, *dw;
        for (i = 0; i < sizes[0]; i++) signal[i] = X[e * sizes[0] + i];
        for (l = 0; l < layers; l++) {
            int n = sizes[l], m = sizes[l + 1], act = l + 1 == layers ? output : hidden;
            double *next = signal + n, *bias = w + n * m;
            for (i = 0; i < m; i++) {
                double z = bias[i];
                for (j = 0; j < n; j++) z += w[i * n + j] * signal[j];
                next[i] = act == RELU ? (z > 0 ? z : 0) : act == TANH ? tanh(z) : z;
            }
            signal = next;
            w = bias + m;
        }
        last = signal;
        g = last + sizes[layers];
        before = g + widest;
        if (kind == HINGE) {
            double margin = 1 - Y[e] * last[0];
            loss += margin > 0 ? margin / count : 0;
            g[0] = margin > 0 ? -Y[e] / count : 0;
        } else if (kind == SQUARED) {
            loss += (last[0] - Y[e]) * (last[0] - Y[e]);
            g[0] = 2 * (last[0] - Y[e]);
        } else {
            int m = sizes[layers], label = (int)Y[e];
            double top = last[0], sum = 0;
            for (i = 1; i < m; i++) top = last[i] > top ? last[i] : top;
            for (i = 0; i < m; i++) sum += g[i] = exp(last[i] - top);
            loss += (log(sum) + top - last[label]) / count;
            for (i = 0; i < m; i++) g[i] = (g[i] / sum - (i == label)) / count;
        }
        dw = gradients + total;
        for (l = layers - 1; l >= 0; l--) {
            int n = sizes[l], m = sizes[l + 1], act = l + 1 == layers ? output : hidden;
            double *inputs = signal - n, *swap;
            w -= (n + 1) * m;
            dw -= (n + 1) * m;
            for (j = 0; j < n; j++) before[j] = 0;
            for (i = 0; i < m; i++) {
                double d = act == RELU ? (signal[i] > 0 ? g[i] : 0) : act == TANH ? g[i] * (1 - signal[i] * signal[i]) : g[i];
                for (j = 0; j < n; j++) dw[i * n + j] += d * inputs[j];
                if (l) for (j = 0; j < n; j++) before[j] += d * w[i * n + j];
                dw[n * m + i] += d;
            }
            signal = inputs;
            swap = g; g = before; before = swap;
        }
    }
    for (i = 0; i < total; i++) {
        double p = parameters[i], decay = kind == HINGE ? 1e-4 : 0;
        loss += decay * p * p;
        parameters[i] = p - lr * (gradients[i] + 2 * decay * p);
    }
    return loss;
}
