"""What lesson 4 asks for: each closure is called by itself, below a gradient that is drawn.

(How these tests work, those of lesson 1 say; there is the one of an operation, too.)
"""

OPERATIONS = {
    "a.tanh()": ["a method tanh that gives a Value"],
}

CLOSURES = {
    "a + b": "a closure, kept in out._backward, that passes out.grad on to both operands, by the derivatives of a sum",
    "a * b": "a closure, kept in out._backward, that passes out.grad on to both operands, by the product rule",
    "a.tanh()": "a closure _backward for tanh, whose derivative can be written with its result",
}
