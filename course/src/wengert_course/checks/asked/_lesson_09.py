"""What lesson 9 asks for: a training loop. It is run beside another one, on the same network and data."""


def train(own, draw):
    """train(model, xs, ys, steps, rate)

    forward, zero, backward and update, so many times; it gives the list
    of the losses, each the mean of (prediction - target)**2
    """
    for nin, count, steps, rate in ((2, 3, 4, 0.05), (3, 2, 6, 0.02)):
        model = own.MLP(nin, [3, 1])
        parameters = list(own.method(model, "parameters")())
        xs = [[draw.small() for _ in range(nin)] for _ in range(count)]
        ys = [draw.small() for _ in range(count)]
        start = [draw.small() for _ in parameters]

        def ready():
            own.backward(own.make(0.0), parameters)  # all gradients are 0
            for p, number in zip(parameters, start):
                own.put(p, number)

        ready()
        wanted = []
        for _ in range(steps):
            loss = own.make(0.0)
            for x, y in zip(xs, ys):
                loss = loss + (model(x) - y) ** 2 * (1 / count)
            gradients = own.backward(loss, parameters)
            for p, gradient in zip(parameters, gradients):
                own.put(p, own.number(p) - rate * gradient)
            wanted.append(own.number(loss))
        ended = [own.number(p) for p in parameters]

        ready()
        call = f"train(model, xs, ys, {steps}, {rate})"
        given = own.train(model, [list(x) for x in xs], list(ys), steps, rate)
        if isinstance(given, list) and any(own.is_value(one) for one in given):
            own.wrong(f"{call} gives Values: a loss is a number, its .data")
        first = given[0] if isinstance(given, list) and given else None
        if isinstance(first, float) and abs(first - count * wanted[0]) < 1e-9 * first:
            own.wrong(f"{call} has the sum of the squared errors as its loss: for their mean, divide it by len(xs)")
        where = f"the network has {nin} inputs and there are {count} examples"
        own.same(call, given, wanted, where)
        found = [own.number(p) for p in parameters]
        own.same(f"after {call}, the list of the parameters' numbers", found, ended, where)
