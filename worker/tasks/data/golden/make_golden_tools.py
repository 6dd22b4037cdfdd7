"""Writes tools.json: chats with tools, their templates, and the texts and learned ranges of transformers.

    python worker/tasks/data/golden/make_golden_tools.py

Needs transformers and jinja2.
"""
import json
from pathlib import Path

from transformers.utils.chat_template_utils import render_jinja_template

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city — now.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 1}},
            "required": ["city"],
        },
    },
}


def call(arguments, **fields):
    return {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": arguments}, **fields}


QUESTION = {"role": "user", "content": "How is the weather in Zürich?"}
ANSWER = {"role": "assistant", "content": "It rains."}
RESULT = {"role": "tool", "tool_call_id": "call_1", "name": "get_weather", "content": '{"rain": true}'}

CHATS = [
    {"messages": [QUESTION, ANSWER]},
    {"messages": [QUESTION, ANSWER], "tools": [WEATHER]},
    {
        "messages": [
            {"role": "system", "content": "Be brief."},
            QUESTION,
            {"role": "assistant", "content": None, "tool_calls": [call({"city": "Zürich", "days": 2})]},
            RESULT,
            ANSWER,
        ],
        "tools": [WEATHER],
    },
    {
        "messages": [
            QUESTION,
            {"role": "assistant", "tool_calls": [call({"city": "A"}), call({"list": [1, None, True], "of": {}})]},
            RESULT,
            ANSWER,
        ],
    },
    {"messages": [QUESTION, {"role": "assistant", "content": "I ask.", "tool_calls": [call('{"city": "A"}')]}, RESULT, ANSWER]},
]

# Modelled on Qwen: definitions before the chat, calls and results between tags.
TAGGED = """{%- if tools is not none %}
    {{- '<|im_start|>system\\n# Tools\\n' }}
    {%- for tool in tools %}
        {{- '\\n' + (tool | tojson) }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- elif tools is defined and documents is none %}
    {{- '<|no tools|>' }}
{%- endif %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.role == 'assistant' %}
        {%- generation %}
            {%- if message.content %}{{- message.content }}{%- endif %}
            {%- for tool_call in message.tool_calls or [] %}
                {{- '\\n<tool_call>\\n{"name": "' + tool_call.function.name + '", "arguments": ' }}
                {%- if tool_call.function.arguments is string %}
                    {{- tool_call.function.arguments }}
                {%- else %}
                    {{- tool_call.function.arguments | tojson }}
                {%- endif %}
                {{- '}\\n</tool_call>' }}
            {%- endfor %}
            {{- '<|im_end|>' }}
        {%- endgeneration %}
    {%- elif message.role == 'tool' %}
        {{- message.name + ' of ' + message.tool_call_id + ': ' + message.content + '<|im_end|>' }}
    {%- else %}
        {{- message.content + '<|im_end|>' }}
    {%- endif %}
    {{- '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}"""

cases = []
for chat in CHATS:
    texts, ranges = render_jinja_template(
        [chat["messages"]], tools=chat.get("tools"), chat_template=TAGGED, return_assistant_tokens_mask=True
    )
    learned = [texts[0][begin:end] for begin, end in ranges[0]]
    cases.append({"chat": chat, "text": texts[0], "learned": learned})

target = Path(__file__).parent / "tools.json"
target.write_text(json.dumps({"template": TAGGED, "cases": cases}, ensure_ascii=True) + "\n")
print(target, target.stat().st_size, "bytes")
