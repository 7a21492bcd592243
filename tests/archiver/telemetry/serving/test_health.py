from __future__ import annotations

from archiver.telemetry.serving import ServeHealth


def test_a_server_starts_serves_misses_something_and_stalls() -> None:
    now, troubles = [0.0], list[str]()
    health = ServeHealth(lambda: troubles, clock=lambda: now[0])
    assert (health.report().status, health.report().ready) == ("starting", False)
    health.ready()
    assert (health.report().status, health.report().ready) == ("ok", True)
    troubles += [f"trouble {number}" for number in range(30)]
    report = health.report()
    assert (report.status, report.live, report.ready) == ("degraded", True, True)
    assert report.reasons[-1] == "and 10 more"
    now[0] = 31.0
    assert (health.report().status, health.report().live) == ("stalled", False)
    health.turned()
    assert health.report().live
    health.ready(is_ready=False)
    assert not health.report().ready
