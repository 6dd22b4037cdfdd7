"""Writes messages.json: bodies of `forward_backward` as the official package encodes them, without `model_id`."""

import base64
import json
from pathlib import Path

from tinker import types
from tinker.proto.request_conv import forward_backward_request_to_proto
from tinker.types.forward_backward_input import ForwardBackwardInput
from tinker.types.forward_backward_request import ForwardBackwardRequest

TOKENS = types.ModelInput.from_ints([1, 2, 3])
TARGETS = [2, 3, 4]


def message(loss, seq_id=1, config=None, model_input=TOKENS, **inputs):
    datum = types.Datum(model_input=model_input, loss_fn_inputs={"target_tokens": TARGETS, **inputs})
    pass_input = ForwardBackwardInput(data=[datum], loss_fn=loss, loss_fn_config=config)
    request = ForwardBackwardRequest(forward_backward_input=pass_input, model_id="", seq_id=seq_id)
    encoded = forward_backward_request_to_proto(request).SerializeToString(deterministic=True)
    return base64.b64encode(encoded).decode()


IMAGE = types.ModelInput(chunks=[types.ImageChunk(data=b"a", format="png")])
SPARSE = types.TensorData(
    data=[1.0], dtype="float32", shape=[3, 3], sparse_crow_indices=[0, 0, 1, 1], sparse_col_indices=[0]
)
CLIP = {"clip_low_threshold": 0.8, "clip_high_threshold": 1.3}
MESSAGES = {
    "cross_entropy": message("cross_entropy", weights=[0.0, 0.5, 1.0]),
    "ppo": message("ppo", 2, CLIP, logprobs=[-1.0, -1.0, -1.0], advantages=[1.0, 0.0, -1.0]),
    "dro": message("dro"),
    "image": message("cross_entropy", model_input=IMAGE),
    "sparse": message("cross_entropy", weights=SPARSE),
}
Path(__file__).with_name("messages.json").write_text(json.dumps(MESSAGES, indent=2) + "\n")
