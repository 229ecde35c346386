"""The Kubernetes manifests in docs/examples hang together: names, ports, volumes, probes, and times that drains take.

Whether Kubernetes knows every key and takes every value is asked of its published schemas, as npm's package
kubernetes-models has them, where LEAT_KUBERNETES_MODELS names a folder with it:

    npm install --prefix FOLDER kubernetes-models typescript
"""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from gateway import main

try:
    import yaml

    missing = ""
except ImportError as error:
    missing = str(error)

EXAMPLES = Path(os.environ["LEAT_SOURCE"]) / "docs/examples/kubernetes"
SCHEMAS = os.environ.get("LEAT_KUBERNETES_MODELS", "")


@unittest.skipIf(missing, missing)
class Manifests(unittest.TestCase):
    def setUp(self) -> None:
        with open(EXAMPLES / "leat.yml") as file:
            self.objects = list(yaml.safe_load_all(file))

    def of(self, kind: str, name: str) -> dict:
        (found,) = [o for o in self.objects if (o["kind"], o["metadata"]["name"]) == (kind, name)]
        return found

    def test_each_names_what_there_is(self) -> None:
        versions = {"ConfigMap": "v1", "Service": "v1", "DaemonSet": "apps/v1", "Deployment": "apps/v1", "PodDisruptionBudget": "policy/v1"}
        for o in self.objects:
            self.assertEqual(o["apiVersion"], versions[o["kind"]])
        maps = {o["metadata"]["name"] for o in self.objects if o["kind"] == "ConfigMap"}
        labels = {}
        for kind, name in (("DaemonSet", "leat"), ("Deployment", "leat-haproxy")):
            spec = self.of(kind, name)["spec"]
            pod = spec["template"]["spec"]
            self.assertLessEqual(spec["selector"]["matchLabels"].items(), spec["template"]["metadata"]["labels"].items())
            labels[name] = spec["template"]["metadata"]["labels"]
            volumes = {v["name"]: v for v in pod["volumes"]}
            mounted = [m["name"] for c in pod["containers"] for m in c["volumeMounts"]]
            self.assertEqual(set(mounted), set(volumes))
            for volume in volumes.values():
                self.assertIn(volume.get("configMap", {}).get("name", next(iter(maps))), maps)
            for c in pod["containers"]:
                ports = {p["name"] for p in c.get("ports", [])}
                for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                    for how in c.get(probe, {}).values():
                        if isinstance(how, dict):
                            self.assertIn(how["port"], ports)
                self.assertIn("memory", c["resources"]["limits"])
        for o in self.objects:
            if o["kind"] in ("Service", "PodDisruptionBudget"):
                selector = o["spec"]["selector"]
                self.assertIn(selector.get("matchLabels", selector), list(labels.values()))

    def test_a_drain_has_its_time(self) -> None:
        pod = self.of("DaemonSet", "leat")["spec"]["template"]["spec"]
        daemon, gateway = ({c["name"]: c for c in pod["containers"]}[n] for n in ("leatd", "gateway"))
        sleeps = [int(c["lifecycle"]["preStop"]["exec"]["command"][1]) for c in (daemon, gateway)]
        (drain,) = [int(a.partition("=")[2]) / 1000 for a in gateway["args"] if a.startswith("--drain-ms")]
        self.assertGreaterEqual(sleeps[0], sleeps[1] + drain)  # leatd outlives its gateway
        self.assertGreater(pod["terminationGracePeriodSeconds"], sleeps[0] + 5)
        self.assertIn("--token-file", " ".join(gateway["args"]))  # it listens beyond loopback
        self.assertIn(str(gateway["securityContext"]["runAsUser"]), self.of("ConfigMap", "leat")["data"]["leatd.toml"])

    def test_haproxy_is_told_what_the_command_tells(self) -> None:
        text = self.of("ConfigMap", "leat-haproxy")["data"]["haproxy.cfg"]
        source = (Path(os.environ["LEAT_SOURCE"]) / "tools/leat/gateway/fleet/haproxy.cpp").read_text()
        for line in ("balance leastconn", "option redispatch 1", "retries 1", "option http-buffer-request", "option httpchk"):
            self.assertIn(line, text)
            self.assertIn(line, source)
        retries = re.search(r"retry-on .*", text).group(0)
        self.assertIn(retries, source)


@unittest.skipIf(missing, missing)
@unittest.skipUnless(SCHEMAS, "no published schemas: LEAT_KUBERNETES_MODELS names no folder")
class PublishedSchemas(unittest.TestCase):
    """Values are held by the schemas themselves, unknown keys by the types made from them: schemas let those pass."""

    def said_of(self, objects: list[dict]) -> str:
        """What is wrong with them; empty: nothing."""
        lines = []
        for i, o in enumerate(objects):
            lines += [f'import {{ {o["kind"]} as Kind{i} }} from "kubernetes-models/{o["apiVersion"]}";']
            fields = {key: value for key, value in o.items() if key not in ("apiVersion", "kind")}
            lines += [f"export const made{i} = new Kind{i}({json.dumps(fields)});", f"made{i}.validate();"]
        modules = Path(SCHEMAS).resolve() / "node_modules"
        with tempfile.TemporaryDirectory(prefix="leat-manifests-") as folder:
            (Path(folder) / "node_modules").symlink_to(modules)
            (Path(folder) / "package.json").write_text('{"type": "module"}')
            (Path(folder) / "manifests.ts").write_text("\n".join(lines))
            compile = [modules / ".bin/tsc", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext", "manifests.ts"]
            for command in (compile, ["node", "manifests.js"]):
                done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
                if done.returncode != 0:
                    return done.stdout + done.stderr or f"{command[0]} failed"
        return ""

    def test_kubernetes_knows_them(self) -> None:
        with open(EXAMPLES / "leat.yml") as file:
            objects = list(yaml.safe_load_all(file))
        said = self.said_of(objects)
        self.assertFalse(said, said)
        pod_of = lambda given: next(o for o in given if o["kind"] == "DaemonSet")["spec"]["template"]["spec"]
        unknown, wrong = copy.deepcopy(objects), copy.deepcopy(objects)
        pod_of(unknown)["containers"][0]["lifecycle"]["preStopp"] = {}
        self.assertIn("preStopp", self.said_of(unknown))
        del pod_of(wrong)["containers"][1]["ports"][0]["containerPort"]
        self.assertIn("containerPort", self.said_of(wrong))


if __name__ == "__main__":
    main()
