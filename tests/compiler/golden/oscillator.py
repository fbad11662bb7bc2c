import numpy as np


def oscillator_and_gradients(x, v, p1, p2):
    # x: ()
    # v: ()
    # p1: ()
    # p2: ()
    u1 = -p1                                                                                  # ()
    h1 = 0.5 * p2                                                                             # ()
    h2 = p2 / 6                                                                               # ()
    c3 = np.array([x, v])                                                                     # (2)
    u5s, u2s = np.empty((2, 100))
    u4s = np.empty((100, 2))
    u8s = np.empty((101, 2))
    u8s[0] = c3
    p2_ = p2[()]
    for t in range(100):
        h3 = u1 * u8s[t][0]                                                                   # ()
        u2 = u2s[t] = h1 * u8s[t][1] + u8s[t][0]                                              # ()
        u3 = h1 * h3 + u8s[t][1]                                                              # ()
        h4 = u1 * u2                                                                          # ()
        c1 = np.array([u3, h4])                                                               # (2)
        u4 = u4s[t] = h1 * c1 + u8s[t]                                                        # (2)
        h5 = u1 * u4[0]                                                                       # ()
        u5 = u5s[t] = p2_ * u4[1] + u8s[t][0]                                                 # ()
        u6 = p2_ * h5 + u8s[t][1] + u8s[t][1] + u3 * 2 + u4[1] * 2                            # ()
        u7 = u1 * u5 + h3 + h4 * 2 + h5 * 2                                                   # ()
        c2 = np.array([u6, u7])                                                               # (2)
        u8s[t + 1] = h2 * c2 + u8s[t]                                                         # (2)
    z1 = (u8s[100] * u8s[100]).sum()                                                          # ()
    # reverse
    du8s_0 = 2 * u8s[100]                                                                     # (2)
    du7_1, dh5_3, dh4_3, dh3_2 = np.empty((4, 100))
    du8s_1 = np.empty((101, 2))
    du8s_1[100] = du8s_0
    for t in reversed(range(100)):
        dc2 = du8s_1[t + 1] * h2                                                              # (2)
        du7_1[t] = dc2[1]                                                                     # ()
        du5 = dc2[1] * u1                                                                     # ()
        dw2_0 = dc2[0] + dc2[0]                                                               # ()
        du4_0 = dc2[0] * 2                                                                    # ()
        du4_1 = du5 * p2_                                                                     # ()
        dh5 = dh5_3[t] = dc2[1] * 2 + dc2[0] * p2_                                            # ()
        du4_2 = dh5 * u1                                                                      # ()
        du4 = np.zeros((2,))                                                                  # (2)
        du4[1] += du4_0
        du4[1] += du4_1
        du4[0] += du4_2
        dc1 = du4 * h1                                                                        # (2)
        dh4 = dh4_3[t] = dc2[1] * 2 + dc1[1]                                                  # ()
        du2 = dh4 * u1                                                                        # ()
        du3 = dc2[0] * 2 + dc1[0]                                                             # ()
        dw2_1 = du2 * h1                                                                      # ()
        dh3 = dh3_2[t] = dc2[1] + du3 * h1                                                    # ()
        dw2_2 = dh3 * u1                                                                      # ()
        dw2_3 = du8s_1[t + 1] + du4                                                           # (2)
        dw2 = dw2_3.copy()                                                                    # (2)
        dw2[1] += dw2_0
        dw2[0] += du5
        dw2[1] += du3
        dw2[1] += dw2_1
        dw2[0] += du2
        dw2[0] += dw2_2
        du8s_1[t] = dw2
    du1 = du7_1 @ u5s + dh5_3 @ u4s[:, 0] + dh4_3 @ u2s + dh3_2 @ u8s[:100, 0]                # ()
    dp1 = -du1                                                                                # ()
    return z1, (dp1, np.zeros(()))
