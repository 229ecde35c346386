"""The answers of tests/gpu/run's steps, a JSON file each, and the page that is made of them."""
import glob
import json
import os

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
VALUES = ("frames_per_second", "bytes_copied", "bytes_in_place", "largest_difference", "completed", "killed", "faulted",
          "pins_read_only")  # that the page shows of what a step found beside its figures
SO_FAR = "**Run on a GPU so far: "


def read_answers(folder):
    answers = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        with open(path) as file:
            answer = json.load(file)
        if isinstance(answer, dict) and "step" in answer:
            answers[answer["step"]] = answer
    return dict(sorted(answers.items(), key=lambda item: item[1]["started_utc"]))


def page_text(answers, left):
    what = answers["environment"]["answer"]
    lines = []
    if what["stand_ins"]:
        lines += ["**Over the stand-in drivers: this shows that the steps run, and nothing about a GPU.**", ""]
    names = ", ".join(f"GPU {i} {g['name']}" for i, g in enumerate(what["gpus"]))
    lines += [f"{answers['environment']['started_utc']}; {names}; {what['host']}, {what['cpus']} processors; kernels of CUDA "
              f"{what.get('cuda_of_the_kernels', 'not known')}"]
    lines += ["", *("    " + line for line in what.get("nvidia_smi", [])), ""]
    if left:
        lines += [f"Not asked yet, for want of time: {', '.join(left)}.", ""]
    lines += ["| step | result | seconds | what was not good |", "|---|---|---|---|"]
    for name, answer in answers.items():
        problems = [answer["problem"]] if "problem" in answer else []
        problems += answer.get("answer", {}).get("failures", [])
        lines.append(f"| {name} | {answer['status']} | {answer['seconds']} | {cell('; '.join(problems))} |")
    for name, answer in answers.items():
        rows = figure_rows(answer.get("answer", {}))
        if rows:
            lines += ["", f"### {name}", "", "| figure | median or answer | least to most | n |", "|---|---|---|---|", *rows]
    text = "\n".join(lines) + "\n"
    for i, gpu in enumerate(what["gpus"]):
        text = text.replace(gpu["uuid"], f"GPU {i}")
    return text


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


def figure_rows(answer):
    rows = []
    for key, figure in answer.get("figures", {}).items():
        if isinstance(figure, dict):
            spread = f"{figure['least']:.4g} to {figure['most']:.4g} | {figure['n']}"
            rows.append(f"| {cell(key)} | {figure['median']:.4g} {figure['unit']} | {spread} |")
        else:
            rows.append(f"| {cell(key)} | {cell(figure)} |  |  |")
    values = answer.get("values", {})
    return rows + [f"| {key} | {values[key]:.4g} |  |  |" for key in VALUES if key in values]


def write_page(folder, answers, left, docs):
    """FOLDER/gpu-results.md, and between the marks of the page `docs`, unless it was over the stand-ins."""
    text = page_text(answers, left)
    with open(os.path.join(folder, "gpu-results.md"), "w") as file:
        file.write(text)
    if docs and not answers["environment"]["answer"]["stand_ins"]:
        with open(docs) as file:
            page = file.read()
        before, rest = page.split(BEGIN)
        with open(docs, "w") as file:
            file.write(f"{before}{BEGIN}\n{text}{END}{rest.split(END)[1]}")
        say_so_far(os.path.join(os.path.dirname(docs), "guide/gpu.md"), answers)


def say_so_far(guide, answers):
    """The guide's second line: what has been run, when and on which."""
    what = answers["environment"]
    good = sum(answer["status"] == "good" for answer in answers.values())
    names = ", ".join(sorted({g["name"] for g in what["answer"]["gpus"]}))
    line = f"{SO_FAR}{len(answers)} steps, {good} of them good, on {names} ({what['started_utc'][:10]}).** "
    with open(guide) as file:
        lines = file.read().split("\n")
    at = next(i for i, text in enumerate(lines) if text.startswith(SO_FAR))
    lines[at] = line + lines[at].split(".** ", 1)[1]
    with open(guide, "w") as file:
        file.write("\n".join(lines))
