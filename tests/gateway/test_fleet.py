"""HAProxy in front of three nodes: one is killed, one is drained, one is restarted, one is frozen; every request gets one answer."""

from __future__ import annotations

import signal
import unittest

from fleet import CAPACITY, Fleet, haproxy_program, loaded
from gateway import main, until


@unittest.skipUnless(haproxy_program(), "no haproxy (Debian: haproxy)")
class Many(unittest.TestCase):
    def test_nodes_come_and_go(self) -> None:
        with Fleet() as fleet:
            steady = loaded(fleet.port, 0.4 * CAPACITY, 2).figures()
            self.assertEqual(steady["answered"], steady["sent"])
            self.assertEqual(steady["broken"], 0, steady)
            self.assertTrue(until(lambda: fleet.ledger()["exact"]), fleet.ledger())

            restarted = loaded(fleet.port, 0.3 * CAPACITY, 3, [(0.5, fleet.nodes[1].restart)]).figures()
            self.assertEqual((restarted["answered"], restarted["broken"]), (restarted["sent"], 0), restarted)
            self.assertTrue(until(lambda: fleet.up() == 3))

            frozen = loaded(fleet.port, 0.3 * CAPACITY, 3, [(0.5, lambda: fleet.nodes[2].signal(signal.SIGSTOP))]).figures()
            self.assertEqual(frozen["answered"], frozen["sent"], frozen)
            self.assertTrue(until(lambda: fleet.up() == 2))
            fleet.nodes[2].signal(signal.SIGCONT)
            self.assertTrue(until(lambda: fleet.up() == 3))

            def kill() -> None:
                fleet.nodes[0].gateway.process.kill()

            killed = loaded(fleet.port, 0.25 * CAPACITY, 2, [(0.5, kill)]).figures()
            self.assertEqual((killed["answered"], killed["broken"]), (killed["sent"], 0), killed)
            said = until(lambda: (l := fleet.ledger())["nodes"][1:] and l["exact"] and l)
            self.assertTrue(said["nodes"][0]["unreachable"])

    def test_a_node_that_says_too_much_is_named(self) -> None:
        with Fleet(lying=2) as fleet:
            for _ in range(10):  # on a busy machine the load itself comes more slowly than it is meant to
                figures = loaded(fleet.port, 1.1 * CAPACITY, 3).figures()
                self.assertEqual((figures["answered"], figures["broken"]), (figures["sent"], 0), figures)
                said = until(lambda: (l := fleet.ledger())["exact"] and l)
                if said["balancer"]["suspects"]:
                    break
            self.assertEqual([line.split()[0] for line in said["balancer"]["suspects"]], ["n2"], said)


if __name__ == "__main__":
    main()
