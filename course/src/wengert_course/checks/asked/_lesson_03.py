"""What lesson 3 asks for: gradients by hand. (How these tests work, those of lesson 1 say.)"""


def start(own, draw):
    """a.grad, at first

    each Value has a .grad, which is 0 before anything is derived
    """
    for number in draw.numbers(2):
        yield f"a = Value({number})", "the gradient of a before backward()", own.grad(own.make(number))


def by_hand_expression(own, draw):
    """L = (a * b + c) * f

    write the gradients of L = (a * b + c) * f into its nodes, each as a number, from L.grad on
    """
    yield from own.written("a b c f e d L")


def by_hand_neuron(own, draw):
    """o = tanh(x1 * w1 + x2 * w2 + bias)

    write the gradients of o = tanh(x1 * w1 + x2 * w2 + bias) into its nodes, each as a number, from o.grad on
    """
    yield from own.written("x1 w1 x2 w2 bias x1w1 x2w2 both n o")
