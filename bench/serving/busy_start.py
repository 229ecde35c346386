#!/usr/bin/env python3
"""How much of a camera is served in time where the host was busy while leatd started: for each model once after an idle
start and once beside busy loops that end when leatd serves, with the defaults of `leat serve` and `leat feed --realtime`.

busy_start.py [--build DIRECTORY] [--loops N] [--seconds S] [--json FILE] [MODEL[@PICTURES_A_SECOND] ...]

Without models: the three of `tools/setup --example ocr`, five pictures a second each. Others that need no words:
UltraFace (model/fr_detect.onnx of `npm pack faceplugin-face-recognition-js@0.0.1`) and M-LSD
(ONNX/mlsd_512x512_large.onnx of `npm pack jp.keijiro.mlsd@1.0.0`, one or two a second). In time are frames completed by
their deadline, of all that were answered or that the feeder skipped; the second figure leaves out the first three
seconds. Exit status 1 where that is below 95 %."""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent.parent
WIDTH, HEIGHT, LATER_S = 640, 480, 3


def write_video(build, path, frames, rate):
    """Synthetic pictures as y4m, which has their rate in its first line."""
    made = subprocess.run([build / "tools/scene/leat-scene", "--width", str(WIDTH), "--height", str(HEIGHT),
                           "--frames", str(frames), "--format", "nv12"], stdout=subprocess.PIPE, check=True).stdout
    luma, size = WIDTH * HEIGHT, WIDTH * HEIGHT * 3 // 2
    with open(path, "wb") as out:
        out.write(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F{rate}:1 Ip A1:1 C420jpeg\n".encode())
        for i in range(frames):
            picture = made[i * size:(i + 1) * size]
            out.write(b"FRAME\n" + picture[:luma] + picture[luma::2] + picture[luma + 1::2])


def counted(leat, socket):
    """The one stream's counters until now: {} before it is open."""
    said = subprocess.run([leat, "top", "--once", "--json", "--socket", socket], stdout=subprocess.PIPE, text=True)
    return json.loads(said.stdout)["total"] if said.returncode == 0 else {}


def one_run(args, model, rate, loops, folder):
    leat, socket, video = args.build / "tools/leat/leat", f"{folder}/leat.sock", f"{folder}/{rate}.y4m"
    if not os.path.exists(video):
        write_video(args.build, video, rate * args.seconds, rate)
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    log = open(f"{folder}/log", "w+")
    served = subprocess.Popen([leat, "serve", model, "--socket", socket], stdout=log, stderr=subprocess.STDOUT)
    began = time.monotonic()
    try:
        while "serving on" not in pathlib.Path(log.name).read_text():
            if served.poll() is not None:
                sys.exit(f"leat serve {model} ended:\n" + pathlib.Path(log.name).read_text())
            time.sleep(.05)
    finally:
        for loop in busy:
            loop.kill()
            loop.wait()
    ready_s = time.monotonic() - began
    feed = subprocess.Popen([leat, "feed", "--quiet", "--realtime", "--application", pathlib.Path(model).stem,
                             "--socket", socket, "--json", f"{folder}/feed.json", video], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)
    time.sleep(LATER_S)
    first = counted(leat, socket)
    if feed.wait() != 0:
        sys.exit(f"leat feed of {model} failed")
    figures = json.loads(pathlib.Path(f"{folder}/feed.json").read_text())["total"]
    status = json.loads(subprocess.run([leat, "status", "--json", "--socket", socket], stdout=subprocess.PIPE,
                                       check=True).stdout)
    served.send_signal(signal.SIGTERM)
    served.wait()
    said = pathlib.Path(log.name).read_text()
    answered = sum(figures[k] for k in ("completed", "late", "dropped", "failed", "rejected", "skipped"))
    before = sum(first[k] for k in ("completed", "late", "dropped", "failed", "rejected"))
    return {"model": pathlib.Path(model).name, "rate": rate, "loops": loops, "ready_s": round(ready_s, 1),
            "objective_ms": status["applications"][0]["slo_ms"], "disturbed": "something else took" in said,
            "in_time": figures["completed"], "of": answered,
            "later_in_time": figures["completed"] - first["completed"], "later_of": answered - before,
            "p50_ms": figures["latency_ms_p50"], "p99_ms": figures["latency_ms_p99"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL[@PICTURES_A_SECOND]")
    parser.add_argument("--build", type=pathlib.Path, default=HERE / "build")
    parser.add_argument("--loops", type=int, default=2 * len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    ocr = args.build / "examples/ocr"
    models = args.models or [f"{ocr}/{name}.onnx" for name in ("find", "turn", "read")]
    print(f"{'model':16} {'start':>5} {'ready s':>8} {'objective ms':>13} {'in time':>9} {'from 3 s on':>12} {'p50 ms':>8}"
          f" {'p99 ms':>8}")
    rows = []
    for named in models:
        model, _, rate = named.partition("@")
        for loops in (0, args.loops):
            with tempfile.TemporaryDirectory() as folder:
                row = one_run(args, model, int(rate or 5), loops, folder)
            rows.append(row)
            print(f"{row['model']:16} {'busy' if loops else 'idle':>5} {row['ready_s']:8} {row['objective_ms']:13.0f}"
                  f" {row['in_time']:5}/{row['of']:<3} {row['later_in_time']:8}/{row['later_of']:<3}"
                  f" {row['p50_ms']:8.1f} {row['p99_ms']:8.1f}", flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=2) + "\n")
    return 1 if any(r["later_in_time"] < .95 * r["later_of"] for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
