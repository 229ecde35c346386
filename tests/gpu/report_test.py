#!/usr/bin/env python3
"""report.py on two small reports; tests/gpu/run without a GPU and over the stand-in drivers."""
import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from answers import write_page

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("BUILD", "")


def number(median, conditions):
    return {"group": "clocks", "id": "clocks.launch", "question": "What?", "answer": "number", "text": "", "how": "host clock",
            "conditions": conditions, "note": "a | b", "device": "GPU-1", "value": median, "unit": "us",
            "spread": {"n": 10, "min": 1, "p25": median, "median": median, "p75": median * 1.5, "p99": 9, "max": 9}}


def verdict(name):
    return {"group": "mps", "id": "mps.daemon", "question": "Can it?", "answer": name, "text": "", "how": "tried",
            "conditions": {}, "note": "", "device": "GPU-1"}


def report(answers):
    return {"leat_gpu_probe": 1, "started_utc": "2026-01-02T03:04:05Z", "duration_s": 1.0, "quick": False, "host": "Linux",
            "driver": "1", "cuda_driver": "13.0", "cuda_build": "13.0", "devices": [{"uuid": "GPU-1", "name": "Some GPU"}],
            "problem": "", "counts": {}, "answers": answers}


class Report(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, content):
        with open(self.path(name), "w") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))
        return self.path(name)

    def render(self, first, second, *words):
        return subprocess.run([sys.executable, HERE + "/report.py", *words, self.write("1.json", first),
                               self.write("2.json", second)], capture_output=True, text=True)

    def test_pairs_and_disagreements(self):
        first = report([number(2.0, {"size": "1"}), number(3.0, {"size": "2"}), verdict("yes")])
        second = report([number(2.1, {"size": "1"}), number(4.0, {"size": "2"}), verdict("no")])
        done = self.render(first, second)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("3 answers; the runs disagree on 2", done.stdout)
        self.assertIn("| size=1 | 2 us (p99 9, ±50 %, n 10) | 2.1 us (p99 9, ±50 %, n 10) |  | a \\| b |", done.stdout)
        self.assertIn("| yes | no | ≠ |", done.stdout)

    def test_question_of_one_run_alone(self):
        done = self.render(report([verdict("yes")]), report([]))
        self.assertIn("| yes | not asked | ≠ |", done.stdout)

    def test_into_a_page_twice_gives_the_same(self):
        page = self.write("page.md", "# Title\n<!-- results: begin -->\nnot run yet\n<!-- results: end -->\nrest\n")
        texts = []
        for _ in range(2):
            self.assertEqual(self.render(report([verdict("yes")]), report([verdict("yes")]), "--into", page).returncode, 0)
            with open(page) as file:
                texts.append(file.read())
        self.assertEqual(texts[0], texts[1])
        self.assertNotIn("not run yet", texts[0])
        self.assertTrue(texts[0].startswith("# Title\n") and texts[0].endswith("\nrest\n"))

    def test_bad_input_is_one_line_and_two(self):
        other = copy.deepcopy(report([]))
        other["devices"][0]["uuid"] = "GPU-2"
        for first, second in (("no json", report([])), ({}, report([])), (report([]), other)):
            done = self.render(first, second)
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_thin_provider_refuses_what_is_no_library(self):
        done = subprocess.run([sys.executable, HERE + "/thin_provider.py", self.write("x.so", "no library"), self.path("y"), "90"],
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)

    def test_run_refuses_what_it_does_not_know(self):
        for words in (["--prob"], ["--only", "nothing"], ["--out"], ["--resume", self.path("nothing")], ["--page", self.path("nothing")]):
            self.assertEqual(subprocess.run([HERE + "/run", *words], capture_output=True).returncode, 2)

    @unittest.skipUnless(BUILD, "BUILD is not set")
    def test_run_without_a_driver_ends_with_three_and_says_why(self):
        os.makedirs(self.path("none"))
        for library in ("libcuda.so.1", "libnvidia-ml.so.1"):
            self.write("none/" + library, "no library")  # found before any real driver, and refused
        environment = {**os.environ, "LD_LIBRARY_PATH": self.path("none")}
        done = subprocess.run([HERE + "/run", "--quick", "--out", self.path("out")], env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 3, done.stderr)
        with open(self.path("out/environment.json")) as file:
            self.assertIn("no NVIDIA driver", json.load(file)["problem"])

    # As many parameters as the published ones, with batch normalisation folded into the convolution before it, which leaves one
    # of its two numbers for each channel.
    @unittest.skipUnless(BUILD, "BUILD is not set")
    def test_structures_are_the_published_ones(self):
        for name, published, folded in (("resnet18", 11689512, 4800), ("resnet50", 25557032, 26560),
                                        ("mobilenetv2", 3504872, 17056), ("squeezenet", 1235496, 0)):
            done = subprocess.run([BUILD + "/tests/gpu/check/leat-gpu-check", "structure", name, "--out", self.folder.name],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["values"]["parameters"], published - folded, name)
            with open(self.path(name + ".json")) as file:
                numbers = sum(layer["weights"] + layer["biases"] for layer in json.load(file)["layers"])
            self.assertEqual(os.path.getsize(self.path(name + ".bin")), 4 * numbers)

    # The first steps over the stand-in drivers: the program works. The others take minutes: tests/gpu/run --stand-ins.
    @unittest.skipUnless(BUILD, "BUILD is not set")
    def test_run_over_the_stand_ins_writes_each_step_and_the_page(self):
        steps = ["memory", "peers", "pictures", "model-classify", "provider", "serve-cpu", "mps-split", "mps-fault", "mig"]
        done = subprocess.run([HERE + "/run", "--stand-ins", "--quick", "--out", self.path("out"), "--only", ",".join(steps)],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        for step in ["environment", *steps]:
            with open(self.path(f"out/{step}.json")) as file:
                answer = json.load(file)
            self.assertEqual(answer["status"], "failed" if step == "mig" else "good", answer)
        with open(self.path("out/mps-split.json")) as file:
            values = json.load(file)["answer"]["values"]
        self.assertEqual(values["bytes_copied"], 0)
        self.assertGreater(values["bytes_in_place"], 0)
        with open(self.path("out/gpu-results.md")) as file:
            page = file.read()
        self.assertIn("nothing about a GPU", page)
        self.assertIn("not run: no MIG instance", page)
        # What is answered is not asked again; what failed is. A budget that is spent leaves the rest for the next time.
        shutil.rmtree(self.path("out/profiles"))
        os.remove(self.path("out/peers.json"))
        again = subprocess.run([HERE + "/run", "--stand-ins", "--quick", "--resume", self.path("out"), "--only", ",".join(steps),
                                "--budget", "13"], env={**os.environ, "OUT": self.path("again")}, capture_output=True, text=True)
        self.assertEqual(again.returncode, 1, again.stderr)
        self.assertIn("memory: taken over, good", again.stderr)
        with open(self.path("again/gpu-results.md")) as file:
            page = file.read()
        self.assertIn("| mps-split | good |", page)
        self.assertIn("Not asked yet, for want of time: ", page)
        self.assertFalse(os.path.exists(self.path("again/mig.json")))
        refused = subprocess.run([HERE + "/run", "--page", self.path("again")], capture_output=True, text=True)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("say nothing of a GPU", refused.stderr)


class Pages(unittest.TestCase):
    def test_the_guide_says_what_was_run_and_when(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(folder + "/guide")
            docs, guide = folder + "/gpu-results.md", folder + "/guide/gpu.md"
            for name, of in ((docs, "docs/gpu-results.md"), (guide, "docs/guide/gpu.md")):
                shutil.copy(os.path.join(os.path.dirname(os.path.dirname(HERE)), of), name)
            what = {"stand_ins": False, "gpus": [{"name": "Some GPU", "uuid": "GPU-1"}], "host": "Linux", "cpus": 4}
            answers = {"environment": {"step": "environment", "status": "good", "started_utc": "2027-01-02T03:04:05Z", "seconds": 1.0,
                                       "answer": what},
                       "memory": {"step": "memory", "status": "failed", "problem": "a | b", "seconds": 2.0}}
            for _ in range(2):  # the same again
                write_page(folder + "/guide", answers, ["peers"], docs)
                with open(guide) as file:
                    lines = file.read().split("\n")
                self.assertEqual(lines[0], "# GPUs")
                self.assertTrue(lines[2].startswith("**Run on a GPU so far: 2 steps, 1 of them good, on Some GPU (2027-01-02).** What"))
                with open(docs) as file:
                    page = file.read()
                self.assertIn("| memory | failed | 2.0 | a \\| b |", page)
                self.assertIn("Not asked yet, for want of time: peers.", page)
                self.assertNotIn("Not run on a GPU", page)


class Studies(unittest.TestCase):
    # From times by share over the stand-in drivers to profiles, and from those to the studies' figures.
    @unittest.skipUnless(BUILD, "BUILD is not set")
    def test_they_read_what_was_measured_by_share(self):
        with tempfile.TemporaryDirectory() as out:
            done = subprocess.run([HERE + "/run", "--stand-ins", "--quick", "--out", out, "--only", "by-share,studies"],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(out + "/studies.json") as file:
                figures = json.load(file)["answer"]["figures"]
        for words in ("detect on paris ", "classify on exact ", "shares of 43 %, ppipe", "shares of 43 %, leat"):
            self.assertTrue(any(words in name for name in figures), figures)


if __name__ == "__main__":
    unittest.main()
