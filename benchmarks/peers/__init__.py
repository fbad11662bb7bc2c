"""The engines that are compared, a module each.

A module has a `TITLE` and `PROGRAMS`: for each workload a function that sets it up (not timed) and returns
`step`. A call of `step()` does one whole step, forward, backward and update, and returns what must be equal
among all peers: the loss before the update, or an expression's value and gradients. The scalar engines also
have `CHAIN`: a function that returns their kind of number, for the measurement of time and memory against size.
"""
