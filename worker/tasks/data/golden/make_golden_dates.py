"""Writes dates.json: days formatted by Python's strftime, as in chat templates of transformers.

    python worker/tasks/data/golden/make_golden_dates.py
"""
import json
from datetime import datetime
from pathlib import Path

DAYS = ["2026-11-25", "2024-02-29", "2000-01-01", "1999-12-31", "2023-07-02", "2026-03-08"]
DIRECTIVES = "aAbBdDeFHIjmMpRSTuwyY"
FORMATS = ["%d %b %Y", "%B %-d, %Y", "%Y-%m-%d %H:%M", "100%% on %A", "no directive"]
FORMATS += [f"%{name}" for name in DIRECTIVES] + [f"%-{name}" for name in "deHIjmMSy"]

golden = [
    {"day": day, "format": text, "text": datetime.fromisoformat(day).strftime(text)} for day in DAYS for text in FORMATS
]
target = Path(__file__).parent / "dates.json"
target.write_text(json.dumps(golden) + "\n")
print(target, target.stat().st_size, "bytes")
