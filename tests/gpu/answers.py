"""The answers of tests/gpu/run's steps, a JSON file each, and the page that is made of them."""
import glob
import json
import os

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
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
    names = ", ".join(f"{g['name']} ({g['uuid']})" for g in what["gpus"])
    lines += [f"{answers['environment']['started_utc']}; {names}; {what['host']}, {what['cpus']} processors; kernels of CUDA "
              f"{what.get('cuda_of_the_kernels', 'not known')}"]
    lines += ["", *("    " + line for line in what.get("nvidia_smi", [])), ""]
    if left:
        lines += [f"Not asked yet, for want of time: {', '.join(left)}.", ""]
    lines += ["| step | result | seconds | figures and what was not good |", "|---|---|---|---|"]
    for name, answer in answers.items():
        inside = answer.get("answer", {})
        text = [answer["problem"]] if "problem" in answer else []
        text += inside.get("failures", [])
        for key, figure in inside.get("figures", {}).items():
            if isinstance(figure, dict):
                figure = f"{figure['median']:.4g} {figure['unit']} ({figure['least']:.4g} to {figure['most']:.4g}, n {figure['n']})"
            text.append(f"{key}: {figure}")
        for key in ("frames_per_second", "bytes_copied", "bytes_in_place", "largest_difference", "completed", "killed", "faulted", "pins_read_only"):
            if key in inside.get("values", {}):
                text.append(f"{key}: {inside['values'][key]:.4g}")
        joined = "; ".join(text).replace("|", "\\|").replace("\n", " ")
        lines.append(f"| {name} | {answer['status']} | {answer['seconds']} | {joined} |")
    return "\n".join(lines) + "\n"


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
