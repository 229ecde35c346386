"""What monitors read: the metrics by Prometheus' own checker, the alert rules and the dashboard in docs/examples."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

from gateway import EMULATED, PATIENCE, WithNode, main, until

EXAMPLES = Path(os.environ["LEAT_SOURCE"]) / "docs/examples/monitoring"


class Monitoring(WithNode):
    text = EMULATED

    def names(self) -> set[str]:
        self.assertEqual(self.gateway.picture(8, 4, bytes(96)).status, 200)
        until(lambda: "leat_slack" in self.gateway.metrics())
        lines = self.gateway.get("/metrics").body.decode().splitlines()
        types = dict(line.split()[2:4] for line in lines if line.startswith("# TYPE "))
        out = {re.split(r"[{ ]", line)[0] for line in lines if line and line[0] != "#"} | set(types)
        return out | {name + "_bucket" for name, kind in types.items() if kind == "histogram"}

    def test_rules_and_dashboard_name_what_there_is(self) -> None:
        """Metrics that come only with an event (a refusal by its reason) are named by their families."""
        known = self.names()
        source = (EXAMPLES / "alerts.yml").read_text() + (EXAMPLES / "dashboard.json").read_text()
        used = set(re.findall(r"\bleat_[a-z_]+", re.sub(r"#.*", "", source)))
        events = {"leat_total_ended_total", "leat_gateway_refusals_total", "leat_user_refusals_total"}
        self.assertEqual(used - known - events, set())
        self.assertGreater(len(used), 10)
        for panel in json.loads((EXAMPLES / "dashboard.json").read_text())["panels"]:
            self.assertTrue(panel["title"] and panel["targets"][0]["expr"], panel)

    def test_promtool(self) -> None:
        promtool = shutil.which("promtool")
        if promtool is None:
            self.skipTest("no promtool (Debian: prometheus)")
        self.names()
        text = self.gateway.get("/metrics").body
        checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, timeout=PATIENCE)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        checked = subprocess.run([promtool, "check", "rules", EXAMPLES / "alerts.yml"], capture_output=True, timeout=PATIENCE)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)


if __name__ == "__main__":
    main()
