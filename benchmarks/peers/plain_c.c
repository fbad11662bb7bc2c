/* The workloads in C as one writes them by hand: no graph, loops over arrays, the backward pass derived on paper. */
#include <math.h>

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

/* The GPT: C columns, H heads of D, blocks of T letters, F hidden, V tokens. */
enum { C = 16, H = 4, D = 4, T = 16, F = 64, V = 27 };

struct matrices { double wte[V][C], wpe[T][C], head[V][C], wq[C][C], wk[C][C], wv[C][C], wo[C][C], fc1[F][C], fc2[C][F]; };

static double rmsnorm(const double *x, double *y)
{
    double mean = 0, scale;
    for (int i = 0; i < C; i++) mean += x[i] * x[i];
    scale = 1 / sqrt(mean / C + 1e-5);
    for (int i = 0; i < C; i++) y[i] = x[i] * scale;
    return scale;
}

static void rmsnorm_back(const double *g, const double *x, double scale, double *dx)
{
    double mean = 0;
    for (int i = 0; i < C; i++) mean += g[i] * x[i];
    mean *= scale * scale * scale / C;
    for (int i = 0; i < C; i++) dx[i] += scale * g[i] - mean * x[i];
}

/* y = W x, for W of m rows and n columns. */
static void linear(int m, int n, const double *W, const double *x, double *y)
{
    for (int i = 0; i < m; i++) {
        double z = 0;
        for (int j = 0; j < n; j++) z += W[i * n + j] * x[j];
        y[i] = z;
    }
}

/* dW += g x', dx += W' g. */
static void linear_back(int m, int n, const double *W, const double *x, const double *g, double *dW, double *dx)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            dW[i * n + j] += g[i] * x[j];
            dx[j] += g[i] * W[i * n + j];
        }
}

static double softmax(int n, const double *x, double *p)
{
    double top = x[0], sum = 0;
    for (int i = 1; i < n; i++) top = x[i] > top ? x[i] : top;
    for (int i = 0; i < n; i++) sum += p[i] = exp(x[i] - top);
    for (int i = 0; i < n; i++) p[i] /= sum;
    return top + log(sum);
}

/* One training step on a document of n + 1 tokens, with Adam; `step` counts from 1. Returns the loss before it. */
double gpt(int n, const int *tokens, double *parameters, double *gradients, double *mean, double *square, int step,
           double lr, double beta1, double beta2, double eps)
{
    struct matrices *w = (struct matrices *)parameters, *d = (struct matrices *)gradients;
    double x0[T][C], x1[T][C], n1[T][C], q[T][C], k[T][C], v[T][C], read[T][C], x2[T][C], n2[T][C], up[T][F], x3[T][C];
    double weights[T][H][T], p[T][V], s0[T], s1[T], s2[T], g1[T][C], dq[T][C] = {{0}}, dk[T][C] = {{0}}, dv[T][C] = {{0}};
    double loss = 0, root = sqrt(D), rate, scale;
    int count = sizeof *w / sizeof(double), t, u, h, i;
    for (i = 0; i < count; i++) gradients[i] = 0;
    for (t = 0; t < n; t++) {
        double logits[V];
        for (i = 0; i < C; i++) x0[t][i] = w->wte[tokens[t]][i] + w->wpe[t][i];
        s0[t] = rmsnorm(x0[t], x1[t]);
        s1[t] = rmsnorm(x1[t], n1[t]);
        linear(C, C, w->wq[0], n1[t], q[t]);
        linear(C, C, w->wk[0], n1[t], k[t]);
        linear(C, C, w->wv[0], n1[t], v[t]);
        for (h = 0; h < H; h++) {
            double scores[T];
            for (u = 0; u <= t; u++) {
                scores[u] = 0;
                for (i = h * D; i < h * D + D; i++) scores[u] += q[t][i] * k[u][i];
                scores[u] /= root;
            }
            softmax(t + 1, scores, weights[t][h]);
            for (i = h * D; i < h * D + D; i++) {
                read[t][i] = 0;
                for (u = 0; u <= t; u++) read[t][i] += weights[t][h][u] * v[u][i];
            }
        }
        linear(C, C, w->wo[0], read[t], x2[t]);
        for (i = 0; i < C; i++) x2[t][i] += x1[t][i];
        s2[t] = rmsnorm(x2[t], n2[t]);
        linear(F, C, w->fc1[0], n2[t], up[t]);
        for (i = 0; i < F; i++) up[t][i] = up[t][i] > 0 ? up[t][i] : 0;
        linear(C, F, w->fc2[0], up[t], x3[t]);
        for (i = 0; i < C; i++) x3[t][i] += x2[t][i];
        linear(V, C, w->head[0], x3[t], logits);
        loss += (softmax(V, logits, p[t]) - logits[tokens[t + 1]]) / n;
    }
    for (t = n - 1; t >= 0; t--) {
        double g3[C] = {0}, gup[F] = {0}, gn[C] = {0}, gread[C] = {0};
        p[t][tokens[t + 1]] -= 1;
        for (i = 0; i < V; i++) p[t][i] /= n;
        linear_back(V, C, w->head[0], x3[t], p[t], d->head[0], g3);
        linear_back(C, F, w->fc2[0], up[t], g3, d->fc2[0], gup);
        for (i = 0; i < F; i++) gup[i] = up[t][i] > 0 ? gup[i] : 0;
        linear_back(F, C, w->fc1[0], n2[t], gup, d->fc1[0], gn);
        rmsnorm_back(gn, x2[t], s2[t], g3);
        linear_back(C, C, w->wo[0], read[t], g3, d->wo[0], gread);
        for (i = 0; i < C; i++) g1[t][i] = g3[i];
        for (h = 0; h < H; h++) {
            double gw[T], sum = 0;
            for (u = 0; u <= t; u++) {
                gw[u] = 0;
                for (i = h * D; i < h * D + D; i++) {
                    gw[u] += gread[i] * v[u][i];
                    dv[u][i] += gread[i] * weights[t][h][u];
                }
                sum += gw[u] * weights[t][h][u];
            }
            for (u = 0; u <= t; u++) {
                double gs = weights[t][h][u] * (gw[u] - sum) / root;
                for (i = h * D; i < h * D + D; i++) {
                    dq[t][i] += gs * k[u][i];
                    dk[u][i] += gs * q[t][i];
                }
            }
        }
    }
    for (t = 0; t < n; t++) {
        double gn[C] = {0}, g0[C] = {0};
        linear_back(C, C, w->wq[0], n1[t], dq[t], d->wq[0], gn);
        linear_back(C, C, w->wk[0], n1[t], dk[t], d->wk[0], gn);
        linear_back(C, C, w->wv[0], n1[t], dv[t], d->wv[0], gn);
        rmsnorm_back(gn, x1[t], s1[t], g1[t]);
        rmsnorm_back(g1[t], x0[t], s0[t], g0);
        for (i = 0; i < C; i++) {
            d->wte[tokens[t]][i] += g0[i];
            d->wpe[t][i] += g0[i];
        }
    }
    rate = lr / (1 - pow(beta1, step));
    scale = 1 / sqrt(1 - pow(beta2, step));
    for (i = 0; i < count; i++) {
        mean[i] += (1 - beta1) * (gradients[i] - mean[i]);
        square[i] += (1 - beta2) * (gradients[i] * gradients[i] - square[i]);
        parameters[i] -= rate * mean[i] / (sqrt(square[i]) * scale + eps);
    }
    return loss;
}
