import numpy as np

index1 = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31])
index2 = np.array([16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 17, 18, 19, 20, 21, 22, 23])

def network_and_gradients(xs, W1, b1):
    # xs: (20, 4)
    # W1: (32, 12)
    # b1: (32)
    u1 = W1[:, :4] @ xs[0] + (W1[:, 4:] * 0).sum(1) + b1                                      # (32)
    t1 = np.exp(-np.abs(u1[index1]))
    h1 = np.where(u1[index1] >= 0, 1.0, t1) / (1 + t1)                                        # (24)
    h2 = np.tanh(u1[16:24])                                                                   # (8)
    u2 = h1[:8] * h2 + h1[8:16] * 0                                                           # (8)
    c1 = h1[index2]                                                                           # (24)
    h6s, h3s, h4s = np.empty((3, 19, 8))
    u3s = np.empty((19, 32))
    u4s = np.empty((20, 8))
    h5s = np.empty((20, 24))
    h5s[0] = c1
    u4s[0] = u2
    for t in range(19):
        h3 = h3s[t] = np.tanh(u4s[t])                                                         # (8)
        h4 = h4s[t] = h5s[t][16:] * h3                                                        # (8)
        u3 = u3s[t] = W1[:, :4] @ xs[t + 1] + W1[:, 4:] @ h4 + b1                             # (32)
        t2 = np.exp(-np.abs(u3[index1]))
        h5 = h5s[t + 1] = np.where(u3[index1] >= 0, 1.0, t2) / (1 + t2)                       # (24)
        h6 = h6s[t] = np.tanh(u3[16:24])                                                      # (8)
        u4s[t + 1] = h5[8:16] * u4s[t] + h5[:8] * h6                                          # (8)
    h7 = np.tanh(u4s[19])                                                                     # (8)
    h8 = h5s[19, 16:] * h7                                                                    # (8)
    z5 = (h8 * h8).sum()                                                                      # ()
    # reverse
    dh8 = 2 * h8                                                                              # (8)
    dh5s_0 = dh8 * h7                                                                         # (8)
    t3 = np.exp(-np.abs(2 * u4s[19]))
    du4s_0 = dh8 * h5s[19, 16:] * 4 * (t3 / (1 + t3 * (2 + t3)))                              # (8)
    dh5s = np.zeros((24,))                                                                    # (24)
    dh5s[16:] += dh5s_0
    du3_3 = np.empty((19, 32))
    du4s_1 = np.empty((20, 8))
    dh5s_2 = np.empty((20, 24))
    du4s_1[19] = du4s_0
    dh5s_2[19] = dh5s
    for t in reversed(range(19)):
        dh5_0 = du4s_1[t + 1] * u4s[t]                                                        # (8)
        dh5_1 = du4s_1[t + 1] * h6s[t]                                                        # (8)
        t4 = np.exp(-np.abs(2 * u3s[t][16:24]))
        du3_0 = du4s_1[t + 1] * h5s[t + 1][:8] * 4 * (t4 / (1 + t4 * (2 + t4)))               # (8)
        dh5 = dh5s_2[t + 1].copy()                                                            # (24)
        dh5[8:16] += dh5_0
        dh5[:8] += dh5_1
        t5 = np.exp(-np.abs(u3s[t][index1]))
        du3_1 = dh5 * (t5 / (1 + t5 * (2 + t5)))                                              # (24)
        du3 = np.zeros((32,))                                                                 # (32)
        du3[16:24] += du3_0
        du3[index1] += du3_1
        du3_3[t] = du3
        dh4 = W1[:, 4:].T @ du3                                                               # (8)
        dw4_0 = dh4 * h3s[t]                                                                  # (8)
        t6 = np.exp(-np.abs(2 * u4s[t]))
        du4s_1[t] = du4s_1[t + 1] * h5s[t + 1][8:16] + dh4 * h5s[t][16:] * 4 * (t6 / (1 + t6 * (2 + t6)))  # (8)
        dw4 = np.zeros((24,))                                                                 # (24)
        dw4[16:] += dw4_0
        dh5s_2[t] = dw4
    dc1 = dh5s_2[0]                                                                           # (24)
    dW1_0 = du3_3.T @ h4s                                                                     # (32, 8)
    dW1_1 = du3_3.T @ xs[1:]                                                                  # (32, 4)
    dh1_0 = du4s_1[0] * h2                                                                    # (8)
    dh1_1 = du4s_1[0] * 0                                                                     # (8)
    t7 = np.exp(-np.abs(2 * u1[16:24]))
    du1_0 = du4s_1[0] * h1[:8] * 4 * (t7 / (1 + t7 * (2 + t7)))                               # (8)
    dh1 = np.zeros((24,))                                                                     # (24)
    np.add.at(dh1, index2, dc1)
    dh1[:8] += dh1_0
    dh1[8:16] += dh1_1
    t8 = np.exp(-np.abs(u1[index1]))
    du1_1 = dh1 * (t8 / (1 + t8 * (2 + t8)))                                                  # (24)
    du1 = np.zeros((32,))                                                                     # (32)
    du1[16:24] += du1_0
    du1[index1] += du1_1
    dW1_2 = np.broadcast_to(du1[:, None] * 0, (32, 8))                                        # (32, 8)
    dW1_3 = du1[:, None] * xs[0]                                                              # (32, 4)
    dW1 = np.zeros((32, 12))                                                                  # (32, 12)
    dW1[:, 4:] += dW1_0
    dW1[:, :4] += dW1_1
    dW1[:, 4:] += dW1_2
    dW1[:, :4] += dW1_3
    db1 = du3_3.sum(0) + du1                                                                  # (32)
    return z5, (dW1, db1)
