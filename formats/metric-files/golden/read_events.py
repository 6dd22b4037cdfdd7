"""Prints the scalars of a run's folder as the two readers of TensorBoard give them: python3 read_events.py FOLDER

JSON, for each reader an object of lists of [step, seconds since 1970, value as text] by tag. The value has the digits
of its 32 bits as a double.
"""

import json
import sys

from tensorboard.backend.event_processing import event_accumulator, plugin_event_accumulator
from tensorboard.util import tensor_util

RUN = sys.argv[1]
ALL = 0


def text(value):
    number = float(value)
    return "NaN" if number != number else "Infinity" if number == float("inf") else repr(number)


# The reader of programs, as in TensorBoard's examples.
plain = event_accumulator.EventAccumulator(RUN, size_guidance={event_accumulator.SCALARS: ALL}).Reload()
scalars = {tag: [[e.step, e.wall_time, text(e.value)] for e in plain.Scalars(tag)] for tag in plain.Tags()["scalars"]}

# The reader of TensorBoard's server.
server = plugin_event_accumulator.EventAccumulator(RUN, size_guidance={plugin_event_accumulator.TENSORS: ALL}).Reload()
tensors = {
    tag: [[e.step, e.wall_time, text(tensor_util.make_ndarray(e.tensor_proto).item())] for e in server.Tensors(tag)]
    for tag in server.Tags()["tensors"]
}

print(json.dumps([scalars, tensors]))
