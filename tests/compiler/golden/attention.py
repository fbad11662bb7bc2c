import numpy as np

mask1 = np.broadcast_to(np.tri(6, dtype=bool).T, (2, 6, 6))

def attention_and_gradients(xs, W1):
    # xs: (6, 8)
    # W1: (24, 8)
    z1 = xs @ W1.T                                                                            # (6, 24)
    z2 = z1.reshape(6, 6, 4)[:, :2].transpose(1, 0, 2) @ z1.reshape(6, 6, 4)[:, 4:].transpose(1, 2, 0)  # (2, 6, 6)
    h1 = z2 / 2                                                                               # (2, 6, 6)
    m1 = h1.max(1, where=mask1, initial=-np.inf)                                              # (2, 6)
    h3 = np.where(mask1, np.exp(h1 - m1[:, None]), 0)                                         # (2, 6, 6)
    s1 = h3.sum(1)                                                                            # (2, 6)
    h4 = h3 / s1[:, None]                                                                     # (2, 6, 6)
    z3 = z1.reshape(6, 6, 4)[:, 2:4].transpose(1, 2, 0) @ h4                                  # (2, 4, 6)
    z4 = (z3 * z3).sum()                                                                      # ()
    # reverse
    dz3 = 2 * z3                                                                              # (2, 4, 6)
    dh4 = z1.reshape(6, 6, 4)[:, 2:4].transpose(1, 0, 2) @ dz3                                # (2, 6, 6)
    dz1_0 = (h4 @ dz3.transpose(0, 2, 1)).transpose(1, 0, 2)                                  # (6, 2, 4)
    ds1 = (dh4.transpose(0, 2, 1) * -(h4.transpose(0, 2, 1) / s1[:, :, None])).sum(2)         # (2, 6)
    dz2 = (dh4 / s1[:, None] + ds1[:, None]) * h3 * 0.5                                       # (2, 6, 6)
    dz1_1 = (dz2.transpose(0, 2, 1) @ z1.reshape(6, 6, 4)[:, :2].transpose(1, 0, 2)).transpose(1, 0, 2)  # (6, 2, 4)
    dz1_2 = (dz2 @ z1.reshape(6, 6, 4)[:, 4:].transpose(1, 0, 2)).transpose(1, 0, 2)          # (6, 2, 4)
    dz1 = np.zeros((6, 24))                                                                   # (6, 24)
    dz1.reshape(6, 6, 4)[:, 2:4] += dz1_0
    dz1.reshape(6, 6, 4)[:, 4:] += dz1_1
    dz1.reshape(6, 6, 4)[:, :2] += dz1_2
    dW1 = dz1.T @ xs                                                                          # (24, 8)
    return z4, (dW1,)
