"""What a check prints: a line for each step, and tables of what was measured beside what was predicted."""

from steps import FAILED, NOT_RUN, TIMED_OUT

MARKS = {FAILED: "FAILED", TIMED_OUT: "FAILED (time)", NOT_RUN: "NOT RUN"}


def table(head, rows):
    """Lines of a table whose first column is flush left."""
    rows = [head, *rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return ["  ".join([row[0].ljust(widths[0]), *(text.rjust(width) for text, width in zip(row[1:], widths[1:]))]) for row in rows]


def number(value, digits=1):
    return "–" if value is None else f"{value:,.{digits}f}"


def share(value):
    return "–" if value is None else f"{100 * value:.0f} %"


def mark(line):
    return "OUTLIER" if line.get("outlier") else ""


def kernel_table(lines):
    head = ["kernel", "shape", "µs", "predicted", "times", "of the floor", ""]
    rows = [[line["op"], line.get("shape") or "–", number(line["microseconds"]), number(line.get("predicted_microseconds")),
             number(line.get("times_predicted"), 2), share(line.get("share_of_floor")), mark(line)]
            for line in lines if line["part"] == "kernel" and "microseconds" in line]
    return table(head, rows) if rows else []


def training_table(lines):
    head = ["training", "tokens/s", "predicted", "times", "of the peak", "peak memory", ""]
    rows = []
    for line in lines:
        if line["part"] in ("train", "peer") and "tokens_per_second" in line:
            memory = line.get("peak_bytes")
            rows.append([line.get("name") or line["config"], number(line["tokens_per_second"], 0),
                         number(line.get("predicted_tokens_per_second"), 0), number(line.get("times_predicted"), 2),
                         share(line.get("matrix_peak_share_with_attention")), f"{memory / 1e9:.2f} GB" if memory else "–", mark(line)])
    return table(head, rows) if rows else []


def print_step(step):
    lines = step.get("measurements", [])
    for text in kernel_table(lines) + training_table(lines):
        print(f"    {text}".rstrip(), flush=True)


def step_note(step):
    note = step.get("why") or ""
    if "cases" in step:
        counts = step["cases"]
        note = f"{counts['passed']} cases passed, {counts['failed']} failed, {counts['skipped']} left out" + (note and f"; {note}")
    outliers = sum(1 for line in step.get("measurements", []) if line.get("outlier"))
    return "; ".join(part for part in (note, outliers and f"{outliers} far from what was predicted") if part)


def print_summary(content, recorded, stages):
    now = [step["name"] for step in recorded if step["status"] != NOT_RUN]
    print(f"\n{content['device']}, {content['date']}, commit {content['commit']}")
    for stage in stages:
        if stage not in content["stages"]:
            print(f"  NOT RUN        {stage}: not asked for")
        for step in content["stages"].get(stage, []):
            note = step_note(step)
            earlier = "" if step["name"] in now or step["status"] == NOT_RUN else " (an earlier call)"
            print(f"  {MARKS.get(step['status'], 'ok'):14} {stage}: {step['name']}{note and ': ' + note}{earlier}")
    if content["device"] == "emulated":
        print("There was no GPU: the emulated device took its place, and nothing here says anything of speed.")
