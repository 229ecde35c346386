"""HAProxy in front of three nodes of speeds 4:2:1 (tests/gateway/fleet.py): what of the sum of their partitions is had at
60 to 140 % load, by which way of balancing, and what kills of a gateway, a leatd and a worker, a drain, a rolling restart,
a frozen node and one that lies cost. Prints a table; about three minutes. Needs haproxy, LEAT and LEATD (paths of the
programs)."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/gateway"))
from fleet import CAPACITY, Fleet, haproxy_program, loaded  # noqa: E402
from gateway import until  # noqa: E402


def share(figures: dict, offered: float, seconds: float, capacity: float = CAPACITY) -> float:
    return figures["good"] / (min(offered, capacity) * seconds)


def kill_worker(leatd: int) -> None:
    """Of its first partition; leatd starts another."""
    with open(f"/proc/{leatd}/task/{leatd}/children") as children:
        os.kill(int(children.read().split()[0]), signal.SIGKILL)


def row(name: str, figures: dict, part: float, exact: object = "") -> None:
    print(f"{name:<34} {part:6.3f}  {json.dumps(figures)}  {exact}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--cases", default="loads,kill,leatd,worker,drain,rolling,frozen,lying")
    parser.add_argument("--loads", default="0.6,0.8,0.95,1.1,1.4")
    parser.add_argument("--balances", default="leastconn+agent,leastconn,roundrobin")
    args = parser.parse_args()
    if not haproxy_program():
        sys.exit("fleet: no haproxy here (Debian: haproxy)")
    print(f"capacity {CAPACITY:.0f}/s; goodput as a share of the least of load and capacity; {os.cpu_count()} cores")
    if "loads" in args.cases:
        for balance in args.balances.split(","):
            with Fleet(balance.partition("+")[0], agents=balance.endswith("agent")) as fleet:
                for load in map(float, args.loads.split(",")):
                    f = loaded(fleet.port, load * CAPACITY, args.seconds).figures()
                    row(f"{balance} {load:.0%}", f, share(f, load * CAPACITY, args.seconds))
                exact = until(lambda: fleet.ledger()["exact"], 5)
                print(f"  ledger exact: {exact}")
    cases = {
        "kill": ("a gateway killed, 50 %", 0.5, lambda fleet: lambda: fleet.nodes[1].gateway.process.kill()),
        "leatd": ("a leatd killed, 50 %", 0.5, lambda fleet: lambda: fleet.nodes[1].leatd.process.kill()),
        "worker": ("a worker killed, 50 %", 0.5, lambda fleet: lambda: kill_worker(fleet.nodes[0].leatd.process.pid)),
        "drain": ("a node drained, 50 %", 0.5, lambda fleet: lambda: fleet.nodes[1].gateway.process.send_signal(signal.SIGTERM)),
        "frozen": ("a node frozen, 50 %", 0.5, lambda fleet: lambda: fleet.nodes[1].signal(signal.SIGSTOP)),
    }
    for case, (name, load, event) in cases.items():
        if case not in args.cases:
            continue
        with Fleet() as fleet:
            began = time.monotonic()
            result = loaded(fleet.port, load * CAPACITY, 6, [(1.5, event(fleet))])
            f = result.figures()
            row(name, f, share(f, load * CAPACITY, 6))
            after = result.figures(began + 3.5)
            chosen = sum(1 for a in result.answers if a[0] >= began + 3.5)
            if case == "frozen":
                fleet.nodes[1].signal(signal.SIGCONT)
            exact = until(lambda: fleet.ledger()["exact"], 5)
            print(f"  from 2 s after on: {after['good']} of {chosen} in time; unanswered {f['sent'] - f['answered']}; ledger exact: {exact}")
    if "lying" in args.cases:
        for load in (0.8, 1.1):
            with Fleet(lying=2) as fleet:
                f = loaded(fleet.port, load * CAPACITY, 6).figures()
                row(f"the slowest says it is the fastest, {load:.0%}", f, share(f, load * CAPACITY, 6), fleet.ledger()["balancer"]["suspects"])
    if "rolling" in args.cases:
        with Fleet() as fleet:
            events = [(1.0, fleet.nodes[2].restart), (5.0, fleet.nodes[1].restart), (9.0, fleet.nodes[0].restart)]
            f = loaded(fleet.port, 0.35 * CAPACITY, 14, events).figures()
            row("rolling restart of all, 35 %", f, share(f, 0.35 * CAPACITY, 14), fleet.ledger()["exact"])


if __name__ == "__main__":
    main()
