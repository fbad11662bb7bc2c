"""The engines that are compared, a module each.

A module has a `TITLE` and `PROGRAMS`: for each workload a function that sets it up (not timed) and returns
`step`. A call of `step()` does one whole step, forward, backward and update, and returns what must be equal
among all peers: the loss before the update, or an expression's value and gradients. The scalar engines also
have `CHAIN`: a function that returns their kind of number, for the measurement of time and memory against size.

A module may have `KERNELS` too: likewise a function for each workload, which returns `step` and `kernel`. The kernel is
the part of the step that computes the loss and its gradient in arrays. It is what is timed; what is compared with the
other peers are the results of the whole steps.
"""
