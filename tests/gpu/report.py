#!/usr/bin/env python3
"""Two reports of leat-gpu-probe (the same device, one after the other) side by side, as Markdown.

report.py [--into FILE] FIRST.json SECOND.json

Prints the tables, or puts them into FILE between its two marker lines. A pair is marked when the runs disagree: another
answer, or medians that are more than a tenth apart. Exit status 2 for input that is no report."""
import json
import sys

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
VERSION = 1
NAMES = {"yes": "yes", "no": "no", "number": "", "not_applicable": "n/a", "failed": "FAILED"}


def die(text):
    print(f"report.py: {text}", file=sys.stderr)
    sys.exit(2)


def load(path):
    try:
        with open(path) as file:
            report = json.load(file)
    except (OSError, ValueError) as problem:
        die(f"{path}: {problem}")
    if report.get("leat_gpu_probe") != VERSION:
        die(f"{path}: not a report of leat-gpu-probe, version {VERSION}")
    return report


def key(answer):
    return answer["id"], " ".join(f"{name}={value}" for name, value in sorted(answer["conditions"].items()))


def short(value):
    return f"{value:.4g}"


def cell(answer):
    if answer is None:
        return "not asked"
    if answer["answer"] != "number":
        return NAMES[answer["answer"]]
    spread = answer["spread"]
    text = f"{short(spread['median'])} {answer['unit']}"
    if spread["n"] > 1:
        share = 100 * (spread["p75"] - spread["p25"]) / spread["median"] if spread["median"] else 0
        text += f" (p99 {short(spread['p99'])}, ±{share:.0f} %, n {spread['n']})"
    return text


def disagree(first, second):
    if first is None or second is None or first["answer"] != second["answer"]:
        return True
    if first["answer"] != "number":
        return False
    a, b = first["value"], second["value"]
    return abs(a - b) > 0.1 * max(abs(a), abs(b))


def escape(text):
    return " ".join(text.split()).replace("|", "\\|")


def head(report):
    devices = ", ".join(f"{device['name']} ({device['uuid']})" for device in report["devices"])
    return (f"{report['started_utc']}: driver {report['driver']}, CUDA {report['cuda_driver']} (built with "
            f"{report['cuda_build']}), {devices}; {report['host']}; {report['duration_s']:.0f} s"
            f"{', quick' if report['quick'] else ''}")


def render(first, second):
    lines = [f"- run 1: {head(first)}", f"- run 2: {head(second)}", ""]
    seconds = {key(answer): answer for answer in second["answers"]}
    pairs = [(answer, seconds.pop(key(answer), None)) for answer in first["answers"]]
    pairs += [(None, answer) for answer in seconds.values()]
    differing = sum(disagree(*pair) for pair in pairs)
    lines += [f"{len(pairs)} answers; the runs disagree on {differing} (marked ≠: another answer, or medians more than a "
              "tenth apart). Numbers: median (99th percentile, half of the samples within, count).", ""]
    groups = {}
    for pair in pairs:
        groups.setdefault((pair[0] or pair[1])["group"], []).append(pair)
    for group, members in groups.items():
        lines += [f"### {group}", "", "| question | conditions | run 1 | run 2 | | note |", "|---|---|---|---|---|---|"]
        for pair in members:
            answer = pair[0] or pair[1]
            name, conditions = key(answer)
            mark = "≠" if disagree(*pair) else ""
            lines.append(f"| `{name}` {escape(answer['question'])} | {escape(conditions)} | {cell(pair[0])} | {cell(pair[1])} "
                         f"| {mark} | {escape(answer['note'])} |")
        lines.append("")
    asked = {}
    for pair in pairs:
        answer = pair[0] or pair[1]
        asked.setdefault(answer["id"], answer["how"])
    lines += ["### How each was found", ""] + [f"- `{name}`: {escape(how)}" for name, how in asked.items()] + [""]
    return "\n".join(lines)


def main(words):
    into = None
    if words[:1] == ["--into"] and len(words) > 1:
        into, words = words[1], words[2:]
    if len(words) != 2:
        die("usage: report.py [--into FILE] FIRST.json SECOND.json")
    first, second = load(words[0]), load(words[1])
    if first["devices"] != second["devices"]:
        die("the two reports are of different devices")
    text = render(first, second)
    if into is None:
        print(text)
        return
    with open(into) as file:
        page = file.read()
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        die(f"{into}: its marker lines '{BEGIN}' and '{END}' are missing")
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    with open(into, "w") as file:
        file.write(f"{before}{BEGIN}\n{text}\n{END}{after}")


if __name__ == "__main__":
    main(sys.argv[1:])
