"""How right the demo's application is on the same scenes as PNG, as JPEG 4:2:0 (libjpeg-turbo's cjpeg), as MJPEG and as H.264 of each range and matrix:
mAP@0.5 of each, through `leat feed` and leatd, and how far each is from PNG's, in points. What differs by more than what a codec loses is a picture
that is not the one that was sent. Needs ffmpeg, cjpeg, LEAT, LEATD and LEAT_SCENE (the program leat-scene).
--points P: fails where one differs by more."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/gateway")]
from gateway import Leatd  # noqa: E402

SIZE = (1280, 720)
STEP = 17  # from frame to frame: each shows something else
RAW = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", "{}x{}".format(*SIZE), "-r", "30", "-i"]
SCALE = "scale=flags=accurate_rnd+full_chroma_int+full_chroma_inp"


def h264(range_: str, matrix: str) -> list[str]:
    tags = ["-color_range", range_, "-colorspace", matrix, "-color_primaries", matrix, "-color_trc", matrix] if range_ else []
    return ["-vf", f"{SCALE}:out_range={range_ or 'tv'}:out_color_matrix={matrix or 'bt709'},format=yuv420p", *tags, "-c:v", "libx264", "-preset", "veryfast", "-crf", "18"]


ENCODERS = {
    "png.nut": ["-c:v", "png"],
    "mjpeg.avi": ["-pix_fmt", "yuvj420p", "-c:v", "mjpeg", "-q:v", "3"],
    "h264_limited601.mp4": h264("tv", "smpte170m"),
    "h264_limited709.mp4": h264("tv", "bt709"),
    "h264_full709.mp4": h264("pc", "bt709"),
    "h264_untagged.mp4": h264("", ""),
}


def encoded(folder: Path, rgb: Path, frames: int) -> dict[str, Path]:
    out = {}
    for name, words in ENCODERS.items():
        out[name] = folder / name
        subprocess.run(["ffmpeg", "-loglevel", "error", "-nostdin", *RAW, str(rgb), *words, str(out[name])], check=True)
    out["cjpeg.mjpeg"] = folder / "cjpeg.mjpeg"
    size, head = SIZE[0] * SIZE[1] * 3, "P6\n{} {}\n255\n".format(*SIZE).encode()
    with rgb.open("rb") as pixels, out["cjpeg.mjpeg"].open("wb") as to:
        for _ in range(frames):
            to.write(subprocess.run(["cjpeg", "-quality", "90", "-sample", "2x2"], input=head + pixels.read(size), capture_output=True, check=True).stdout)
    return out


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cameras", type=int, default=6)
    options.add_argument("--frames", type=int, default=10, help="of each camera")
    options.add_argument("--points", type=float, default=100.0)
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    frames = given.cameras * given.frames
    rows = {}
    with tempfile.TemporaryDirectory(prefix="leat-encodings-") as name:
        folder = Path(name)
        rgb, truth = folder / "scene.rgb", folder / "truth.jsonl"
        scene = [os.environ["LEAT_SCENE"], "--seed", "90210", "--cameras", given.cameras, "--frames", given.frames, "--every", STEP, "--truth", truth, "--output", rgb]
        subprocess.run([str(w) for w in scene], check=True, stderr=subprocess.DEVNULL)
        shapes = ROOT / "tools/models/shapes"
        config = (shapes / "shapes.toml").read_text().replace('model = "', f'model = "{shapes}/')
        config = config.replace("[[application]]", '[daemon]\nsocket = "{socket}"\n[[application]]', 1)
        leatd = Leatd(name, config)
        try:
            for encoding, file in encoded(folder, rgb, frames).items():
                words = [os.environ["LEAT"], "feed", "--socket", leatd.socket, "--overload", "never_drop", "--slo-ms", "60000", "--quiet", "--truth", str(truth), "--json", str(file)]
                done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
                said = json.loads(done.stdout)["accuracy"]
                if said["frames"] != frames:
                    sys.exit(f"encodings: {encoding}: {said['frames']} frames were answered, and {frames} were sent")
                rows[encoding] = {"map50": said["map50"], "points": 100 * (said["map50"] - rows.get("png.nut", said)["map50"])}
        finally:
            leatd.end()
    if given.json:
        print(json.dumps({"frames": frames, "encodings": rows}))
    else:
        for encoding, row in rows.items():
            print(f"{encoding:22} mAP@0.5 {row['map50']:.4f}  {row['points']:+.2f} points")
    far = [encoding for encoding, row in rows.items() if abs(row["points"]) > given.points]
    if far:
        sys.exit(f"encodings: more than {given.points} points from PNG: {', '.join(far)}")


main()
