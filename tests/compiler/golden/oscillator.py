import numpy as np


def oscillator_and_gradients(x, v, p1, p2):
    # x: ()
    # v: ()
    # p1: ()
    # p2: ()
    u1 = -p1                                                                                  # ()
    h2 = u1 * x                                                                               # ()
    h3 = 0.5 * p2                                                                             # ()
    h4 = p2 / 6                                                                               # ()
    u2 = h3 * v + x                                                                           # ()
    u3 = h3 * h2 + v                                                                          # ()
    h5 = u1 * u2                                                                              # ()
    u4 = h3 * u3 + x                                                                          # ()
    u5 = h3 * h5 + v                                                                          # ()
    h6 = u1 * u4                                                                              # ()
    u6 = p2 * u5 + x                                                                          # ()
    u8 = h4 * (u3 * 2 + u5 * 2 + p2 * h6 + v + v) + x                                         # ()
    u10 = h4 * (h5 * 2 + h6 * 2 + u1 * u6 + h2) + v                                           # ()
    u14s, u12s = np.empty((2, 99))
    u11s = np.empty((99, 2))
    u16s, u18s = np.empty((2, 100))
    u16s[0] = u8
    u18s[0] = u10
    for t in range(99):
        h7 = u1 * u16s[t]                                                                     # ()
        c1 = np.array([u18s[t], h7])                                                          # (2)
        c2 = np.array([u16s[t], u18s[t]])                                                     # (2)
        u11 = u11s[t] = h3 * c1 + c2                                                          # (2)
        h8 = u1 * u11[0]                                                                      # ()
        u12 = u12s[t] = h3 * u11[1] + u16s[t]                                                 # ()
        u13 = h3 * h8 + u18s[t]                                                               # ()
        h9 = u1 * u12                                                                         # ()
        u14 = u14s[t] = p2 * u13 + u16s[t]                                                    # ()
        u16s[t + 1] = h4 * (p2 * h9 + u18s[t] + u18s[t] + u11[1] * 2 + u13 * 2) + u16s[t]     # ()
        u18s[t + 1] = h4 * (u1 * u14 + h7 + h8 * 2 + h9 * 2) + u18s[t]                        # ()
    u19 = u16s[99] * u16s[99] + u18s[99] * u18s[99]                                           # ()
    # reverse
    du18s_0 = 2 * u18s[99]                                                                    # ()
    du16s_0 = 2 * u16s[99]                                                                    # ()
    du17_1, dh9_3, dh8_3, dh7_2 = np.empty((4, 99))
    du16s_1, du18s_1 = np.empty((2, 100))
    du16s_1[99] = du16s_0
    du18s_1[99] = du18s_0
    for t in reversed(range(99)):
        du17 = du17_1[t] = du18s_1[t + 1] * h4                                                # ()
        du14 = du17 * u1                                                                      # ()
        du15 = du16s_1[t + 1] * h4                                                            # ()
        du11_0 = du15 * 2                                                                     # ()
        dh9 = dh9_3[t] = du17 * 2 + du15 * p2                                                 # ()
        du12 = dh9 * u1                                                                       # ()
        du13 = du15 * 2 + du14 * p2                                                           # ()
        du11_1 = du12 * h3                                                                    # ()
        dh8 = dh8_3[t] = du17 * 2 + du13 * h3                                                 # ()
        du11_2 = dh8 * u1                                                                     # ()
        du11 = np.zeros((2,))                                                                 # (2)
        du11[1] += du11_0
        du11[1] += du11_1
        du11[0] += du11_2
        dc1 = du11 * h3                                                                       # (2)
        dh7 = dh7_2[t] = du17 + dc1[1]                                                        # ()
        du16s_1[t] = du16s_1[t + 1] + du14 + du12 + du11[0] + dh7 * u1                        # ()
        du18s_1[t] = du18s_1[t + 1] + (du15 + du15) + du13 + du11[1] + dc1[0]                 # ()
    du9 = du18s_1[0] * h4                                                                     # ()
    du7 = du16s_1[0] * h4                                                                     # ()
    dh6 = du9 * 2 + du7 * p2                                                                  # ()
    du1 = du17_1 @ u14s + dh9_3 @ u12s + dh8_3 @ u11s[:, 0] + dh7_2 @ u16s[:99] + du9 * u6 + dh6 * u4 + (du9 * 2 + (du7 * 2 + du9 * u1 * p2) * h3) * u2 + (du9 + (du7 * 2 + dh6 * u1 * h3) * h3) * x  # ()
    dp1 = -du1                                                                                # ()
    return u19, (dp1, np.zeros(()))
