"""What elementwise work costs: scalar operations per element, one table for the zoo and for every importer.

Each comparison, addition, multiplication, division, exponential, root or error function is one operation. The counts
follow from the usual definition of each function; they say how much work a vector unit has, not how long it takes.
"""

OPERATIONS_PER_ELEMENT: dict[str, int] = {
    "relu": 1,  # max
    "relu6": 2,  # max, min
    "leaky_relu": 2,  # multiply, max
    "clip": 2,
    "sigmoid": 4,  # negate, exp, add, divide
    "tanh": 5,  # scale, exp, subtract, add, divide
    "hard_sigmoid": 4,  # multiply, add, max, min
    "hard_swish": 5,  # hard sigmoid, multiply
    "silu": 5,  # sigmoid, multiply
    "gelu": 5,  # x/2 * (1 + erf(x / sqrt 2)): scale, erf, add, scale, multiply
    "elu": 4,  # exp, subtract, multiply, compare
    "softplus": 3,  # exp, add, log
    "softmax": 5,  # max, subtract, exp, sum, divide
    "layer_norm": 8,  # mean, subtract, square, sum, root and divide, multiply, add
    "rms_norm": 5,  # square, sum, root and divide, multiply
    "batch_norm": 2,  # multiply, add (statistics are constants)
    "local_response_norm": 9,  # square, sum of five, scale, add, power, divide
    "add": 1,
    "multiply": 1,
    "scale": 1,
    "lstm_cell": 30,  # per hidden unit: 3 sigmoids, 2 tanh, 4 additions of gate inputs, 3 products, 1 sum
    "gru_cell": 22,  # per hidden unit: 2 sigmoids, 1 tanh, 3 additions of gate inputs, 3 products, 3 sums
    "rnn_cell": 6,  # per hidden unit: tanh, addition
}
