"""Renders chats by public templates with transformers, for public-templates.deep.test.ts.

    python render.py cases.json FOLDER NAME...

Needs transformers and jinja2. The templates of these names come from the package trl if it is installed, and from
FOLDER, such as models/templates of llama.cpp. FOLDER may be empty. A template NAME.jinja of trl for which there is
NAME_training.jinja is also rendered by that one, whose generation tags say what is learned.
"""
import importlib.util
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
    return {"text": text, "tagged": [text[begin:end] for begin, end in spans]}


def folders():
    trl = importlib.util.find_spec("trl")
    if trl:
        yield Path(trl.origin).parent / "chat_templates"
    if sys.argv[2]:
        yield Path(sys.argv[2])


cases = json.loads(Path(sys.argv[1]).read_text())
result = {}
for folder in folders():
    for path in [folder / f"{name}.jinja" for name in sys.argv[3:]]:
        if not path.exists():
            continue
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
