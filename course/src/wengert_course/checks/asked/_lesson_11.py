"""What lesson 11 asks for: a loss, by scalars."""


def loss(own, draw):
    """loss(w, b, xs, ys)

    the mean of the squared errors of w[0]*x[0] + ... + b
    """

    def squared(w, b, xs, ys):
        errors = [sum(wi * xi for wi, xi in zip(w, x)) + b - y for x, y in zip(xs, ys)]
        return sum(error**2 for error in errors) / len(errors)

    for inputs, examples in ((3, 4), (1, 2), (2, 1)):
        xs = [draw.numbers(inputs) for _ in range(examples)]
        own.agrees("loss(w, b, xs, ys)", squared, [draw.numbers(inputs), draw.number()], [xs, draw.numbers(examples)])
