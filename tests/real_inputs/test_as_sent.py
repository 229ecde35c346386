"""The RGB that a model sees of real files, by every way in, against what Pillow and ffmpeg make of them (README.md)."""

from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
from collections import defaultdict
from pathlib import Path

import as_sent
from as_sent import BOXES, HERE, WORDS, Input, boxes_model, difference, grid_model, inputs, values_of_boxes

from gateway import Gateway, Leatd, main

LEAT = os.environ["LEAT"]
STILLS, VIDEOS = ("jpeg", "png", "webp", "gif"), ("video",)

HEAD = '[daemon]\nsocket = "{socket}"\n[[partition]]\nname = "cpu"\nkind = "cpu"\ncores = "0"\n'


def run(words: list[str], **more) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, **more)


class Ways(unittest.TestCase):
    """A leatd that has each model for each size: NAME gives the grid, NAME-boxes gives detections."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory(prefix="leat-as-sent-")
        cls.addClassCleanup(cls.folder.cleanup)
        text = HEAD
        for one in {i.application: i for i in inputs(*STILLS, *VIDEOS, "raw")}.values():
            for name, model, words in ((one.application, grid_model(one), "tensors"), (one.application + "-boxes", boxes_model(one), BOXES)):
                path = Path(cls.folder.name, name + ".onnx")
                path.write_bytes(model)
                text += f'[[application]]\nname = "{name}"\nslo_ms = 60000\n  [[application.module]]\n  name = "m"\n  model = "{path}"\n  batch = 1\n'
                text += f'  preprocess = "{WORDS}"\n  postprocess = "{words}"\n'
        cls.leatd = Leatd(cls.folder.name, text)
        cls.addClassCleanup(cls.leatd.end)

    def close_to(self, i: Input, seen: list[float], frame: int, every: int = 1) -> None:
        """Prints and holds the difference."""
        largest, mean = difference(seen, i.expected(frame, every))
        print(f"{self.id().rpartition('.')[2]:24} {i.file:30} {frame} {largest:6.1f} {mean:6.2f}")
        with self.subTest(file=i.file, frame=frame):
            self.assertLessEqual(largest, i.largest, i.made_by)
            self.assertLessEqual(mean, i.mean, i.made_by)

    def feed(self, application: str, sources: list[str], *options: str) -> dict[str, dict[int, list[float]]]:
        """What came of each frame of each source."""
        answers = Path(self.folder.name, "answers")
        answers.unlink(missing_ok=True)
        done = run([LEAT, "feed", "--socket", self.leatd.socket, "--application", application, "--overload", "never_drop", "--quiet", "--answers", str(answers), *options, *sources])  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        out: dict[str, dict[int, list[float]]] = defaultdict(dict)
        for line in map(json.loads, answers.read_text().splitlines()):
            self.assertEqual(line["outcome"], "completed", line)
            out[line["stream"]][line["picture"]] = line["parts"][0]["values"]
        return out


class Commands(Ways):
    def test_try(self) -> None:
        by_size = defaultdict(list)
        for i in inputs(*STILLS, *VIDEOS):
            by_size[i.application].append(i)
        for some in by_size.values():
            model = Path(self.folder.name, "coarse.onnx")
            model.write_bytes(grid_model(some[0], some[0].coarse))
            done = run([LEAT, "try", str(model), *(i.path for i in some), "--preprocess", WORDS, "--postprocess", "tensors", "--json"])
            self.assertEqual(done.returncode, 0, done.stderr)
            pictures = json.loads(done.stdout)["pictures"]
            for i in some:
                of = [p for p in pictures if p["source"] == i.path]
                self.assertEqual(len(of), i.frames, i.file)
                for frame, picture in enumerate(of):
                    self.close_to(i, picture["parts"][0]["values"], frame, i.coarse)

    def test_feed(self) -> None:
        for i in inputs(*STILLS, *VIDEOS):
            (seen,) = self.feed(i.application, [i.path]).values()
            self.assertEqual(len(seen), i.frames, i.file)
            for frame, values in seen.items():
                self.close_to(i, values, frame)

    def test_feed_raw(self) -> None:
        for i in inputs("raw"):
            (seen,) = self.feed(i.application, [i.path], "--raw", i.format, "--size", f"{i.width}x{i.height}", *(f"--{key.replace('_', '-')}={word}" for key, word in i.colour.items())).values()
            self.assertEqual(len(seen), i.frames, i.file)
            for frame, values in seen.items():
                self.close_to(i, values, frame)

    def test_mjpeg_over_http(self) -> None:
        class Camera(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=picture")
                self.end_headers()
                picture = (HERE / "files" / Path(self.path).name).read_bytes()
                try:
                    for _ in range(200):
                        self.wfile.write(b"--picture\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n" % len(picture) + picture + b"\r\n")
                except OSError:
                    pass  # the reader has what it wanted

            def log_message(self, *_: object) -> None:
                pass

        camera = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Camera)
        threading.Thread(target=camera.serve_forever, daemon=True).start()
        self.addCleanup(camera.server_close)
        self.addCleanup(camera.shutdown)
        for i in inputs("jpeg"):
            if "turned" in i.file or i.width > 1000:
                continue  # a camera does not send EXIF, and one picture of that size is enough
            (seen,) = self.feed(i.application, [f"http://127.0.0.1:{camera.server_port}/{i.file}"], "--frames", "2").values()
            for values in seen.values():
                self.close_to(i, values, 0)

    def test_rtsp(self) -> None:
        for i in inputs("video"):
            if not i.file.endswith(".ts") or "changes" in i.file:
                continue
            launch = f"( filesrc location={i.path} ! tsdemux ! h264parse ! rtph264pay name=pay0 pt=96 config-interval=-1 )"
            server = subprocess.Popen(
                ["/usr/bin/python3", str(HERE.parents[1] / "tools/leat/feed/cameras/rtsp_server.py"), "0", launch], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            with server:
                said = server.stdout.readline()
                if not said:
                    server.wait()
                    self.skipTest("no RTSP server: apt-get install gir1.2-gst-rtsp-server-1.0 python3-gi gstreamer1.0-plugins-bad")
                (seen,) = self.feed(i.application, [said.split()[1]], "--frames", "1").values()
                for values in seen.values():
                    nearest = min(range(i.frames), key=lambda f: difference(values, i.expected(f))[1])  # which of both came first, the server decides
                    self.close_to(i, values, nearest)
                server.stdin.close()


class OverHttp(Ways):
    def test_deepstack(self) -> None:
        gateway = Gateway(self.leatd.socket)
        self.addCleanup(gateway.end)
        for i in inputs("jpeg", "png"):
            answer = gateway.post(f"/v1/vision/custom/{i.application}-boxes", Path(i.path).read_bytes())
            self.assertEqual(answer.status, 200, (i.file, answer))
            found = {int(p["label"]): p["confidence"] for p in answer.json()["predictions"]}
            self.close_to(i, values_of_boxes(found), 0, i.coarse)


class Clients(Ways):
    def test_python(self) -> None:
        try:
            import leat
            import numpy as np
        except ImportError as missing:
            self.skipTest(str(missing))
        with leat.connect(self.leatd.socket) as client:
            for i in inputs("raw"):
                pixels = Path(i.path).read_bytes()
                size = len(pixels) // i.frames
                with client.open_stream(i.application, i.format, i.width, i.height, overload="never_drop", **i.colour) as stream:
                    for frame in range(i.frames):
                        at = frame * size
                        with stream.acquire() as slot:
                            for plane in slot.planes:
                                plane[...] = np.frombuffer(pixels, np.uint8, plane.size, at).reshape(plane.shape)
                                at += plane.size
                            slot.submit()
                        with client.next_answer(timeout=60) as answer:
                            self.assertEqual(answer.outcome, "completed")
                            self.close_to(i, [float(v) for v in answer.result.parts[0].array.ravel()], frame)

    def test_gstreamer(self) -> None:
        launch, elements = shutil.which("gst-launch-1.0"), os.environ.get("GSTLEAT", "")
        if not launch or not elements:
            self.skipTest("GStreamer's gst-launch-1.0 or Leat's elements are not there")
        environment = os.environ | {"GST_PLUGIN_PATH": elements, "GST_REGISTRY": self.folder.name + "/registry", "GST_REGISTRY_FORK": "no"}
        chains = [(i, DECODED[i.file]) for i in inputs("jpeg", "video") if i.file in DECODED]
        for i in inputs("raw"):
            said = f" colorimetry={COLORIMETRY[i.said]}" if i.said else ""
            chains.append((i, f"rawvideoparse format={GST_FORMATS[i.format]} width={i.width} height={i.height} framerate=25/1{said}"))
        for i, chain in chains:
            missing = [e for e in (part.split()[0] for part in chain.split("!")) if run(["gst-inspect-1.0", "--exists", e], env=environment).returncode != 0]
            if missing:
                print(f"test_gstreamer: {i.file} is left out: no element {missing[0]} (gstreamer1.0-plugins-good, -bad, gstreamer1.0-libav)")
                continue
            words = f"filesrc location={i.path} ! {chain} ! leatsink socket={self.leatd.socket} application={i.application}-boxes slo-ms=60000"
            done = run([launch, "-m", *words.split()], env=environment)
            self.assertEqual(done.returncode, 0, done.stderr + done.stdout[-2000:])
            frames = [line for line in done.stdout.splitlines() if "outcome" in line and "completed" in line]
            self.assertEqual(len(frames), i.frames, done.stdout[-3000:])
            for frame, line in enumerate(frames):
                text = line.replace("\\", "")
                ids = [int(n) for n in re.findall(r"label_id=\(\w+\)(\d+)", text)]
                scores = [float(n) for n in re.findall(r"confidence=\(\w+\)([\d.e+-]+)", text)]
                self.close_to(i, values_of_boxes(dict(zip(ids, scores, strict=True))), frame, i.coarse)


# What is between the file and leatsink. No MP4 of full range: qtdemux makes it limited (findings/gstreamer_mp4_full_range.sh). jpegdec is fast and
# inexact by default.
DECODED = {
    "photo_420.jpg": "jpegparse ! jpegdec idct-method=islow",
    "photo_gray.jpg": "jpegparse ! jpegdec idct-method=islow",
    "photo_h264_limited601.mp4": "qtdemux ! h264parse ! avdec_h264",
    "photo_h264_limited709.mp4": "qtdemux ! h264parse ! avdec_h264",
    "photo_gstreamer_full709.ts": "tsdemux ! h264parse ! avdec_h264",
    "large_h264_untagged.mp4": "qtdemux ! h264parse ! avdec_h264",
}
GST_FORMATS = {"nv12": "nv12", "i420": "i420", "rgb24": "rgb", "bgr24": "bgr", "gray8": "gray8"}
# Of colorimetry words, range:matrix:transfer:primaries.
COLORIMETRY = {"limited709": "bt709", "full601": "1:4:5:1", "full709": "1:3:5:1", "limited2020": "bt2020"}


if __name__ == "__main__":
    main()
