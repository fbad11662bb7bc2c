import numpy as np

index1 = np.array([1, 0])

def filtered_and_gradients(xs, w1, p1, p2):
    # xs: (200)
    # w1: (2)
    # p1: (2)
    # p2: ()
    h1 = p1 * 0                                                                               # (2)
    u1 = w1[0] * xs[0] + w1[1] * 0 - p2 * 0 + h1[0] - h1[1]                                   # ()
    u2 = w1 @ xs[index1] - p2 * u1 + h1[0] - h1[1]                                            # ()
    c1 = np.array([u1, u2])                                                                   # (2)
    u3s = np.empty((200,))
    u3s[:2] = c1
    p2_ = p2[()]
    for t in range(198):
        u3s[t + 2] = w1[0] * xs[t + 2] + w1[1] * xs[t + 1] + p1[0] * xs[t] - p2_ * u3s[t + 1] - p1[1] * u3s[t]  # ()
    u4 = u1 * u1 + u2 * u2 + (u3s[2:] * u3s[2:]).sum()                                        # ()
    # reverse
    du3s_0 = 2 * u3s[2:]                                                                      # (198)
    du3_1 = np.empty((198,))
    du3s_1 = np.zeros((199,))
    du3s_3 = np.zeros((200,))
    for t in reversed(range(198)):
        du3 = du3_1[t] = du3s_0[t] + du3s_1[t + 1] + du3s_3[t + 2]                            # ()
        du3s_1[t] = -du3 * p2_                                                                # ()
        du3s_3[t] = -du3 * p1[1]                                                              # ()
    dc1_0 = du3s_1[0]                                                                         # ()
    dw1_0 = du3_1 @ xs[2:]                                                                    # ()
    dw1_1 = du3_1 @ xs[1:199]                                                                 # ()
    dp1_0 = du3_1 @ xs[:198]                                                                  # ()
    dp1_1 = (-du3_1 * u3s[:198]).sum()                                                        # ()
    dc1_2 = du3s_3[:2]                                                                        # (2)
    dc1 = dc1_2.copy()                                                                        # (2)
    dc1[1] += dc1_0
    du2 = 2 * u2 + dc1[1]                                                                     # ()
    dh1_0 = -du2                                                                              # ()
    dw1 = du2 * xs[index1]                                                                    # (2)
    du1 = 2 * u1 + dc1[0] + -du2 * p2_                                                        # ()
    dw1_3 = du1 * xs[0]                                                                       # ()
    dw1_4 = du1 * 0                                                                           # ()
    dh1_1 = -du1                                                                              # ()
    dh1 = np.zeros((2,))                                                                      # (2)
    dh1[0] += du2
    dh1[1] += dh1_0
    dh1[0] += du1
    dh1[1] += dh1_1
    dp1 = dh1 * 0                                                                             # (2)
    dw1[0] += dw1_0
    dw1[1] += dw1_1
    dw1[0] += dw1_3
    dw1[1] += dw1_4
    dp1[0] += dp1_0
    dp1[1] += dp1_1
    dp2 = (-du3_1 * u3s[1:199]).sum() + -du2 * u1 + -du1 * 0                                  # ()
    return u4, (dw1, dp1, dp2)
