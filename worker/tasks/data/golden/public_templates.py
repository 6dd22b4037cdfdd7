"""Renders chats by public templates with transformers, for public-templates.deep.test.ts.

    python public_templates.py CASES TEMPLATE... >rendered.json

Needs transformers and jinja2. CASES is a JSON object of chats by name, with "messages" and "tools". A template next to which the
file NAME_training.jinja lies is also rendered by that one, whose generation tags are those of the package `trl`.
"""
import json
import sys
from pathlib import Path

from transformers.utils.chat_template_utils import render_jinja_template

TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


def rendered(template, chat):
    try:
        [text], [spans] = render_jinja_template(
            conversations=[chat["messages"]],
            tools=chat.get("tools"),
            chat_template=template,
            return_assistant_tokens_mask=True,
            **TOKENS,
        )
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {"text": text, "learned": [text[begin:end] for begin, end in spans]}


cases = json.loads(Path(sys.argv[1]).read_text())
result = {}
for path in map(Path, sys.argv[2:]):
    training = path.with_name(f"{path.stem}_training.jinja")
    result[path.stem] = {
        "source": path.read_text(),
        "cases": {
            name: {
                "public": rendered(path.read_text(), chat),
                "training": rendered(training.read_text(), chat) if training.exists() else None,
            }
            for name, chat in cases.items()
        },
    }
json.dump(result, sys.stdout)
