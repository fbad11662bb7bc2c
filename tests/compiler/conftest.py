"""What the tests of compiled functions share: the first call gives what the program comes to."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def programs_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call gives what the program comes to, however large that is: else these tests would compare the
    function with itself. What the counts say is tested in `test_rule.py`.
    """
    if not find_spec("numpy"):
        return
    from wengert.compiler import policy
    from wengert.compiler.serve import Server

    monkeypatch.setattr(policy, "lifts", lambda nodes, examples: True)
    monkeypatch.setattr(policy, "affords", lambda cost, used, ran: True)
    monkeypatch.setattr(policy, "records_up_to", lambda used, ran: 1 << 40)
    monkeypatch.setattr(policy, "numpy_from", lambda steps, nodes: 0)
    single, batch = Server.single, Server.batch

    def by_program(server: Server, arguments: Any, how: str, result: Any) -> Any:
        """What the program comes to that was recorded in a call, if there is one and it agrees with the result."""
        entry: Any = server.last
        if entry.candidate is None or not server.specializer.compile(entry):
            return result
        ran = server.run(entry, arguments, 1, how)
        if ran.result is None:
            return result
        plain = arguments.prepared(server.function, 0)() if how else result
        ((made, _),) = ran.served()
        return ran.result if server.checks.matches(entry, made, arguments, 0, plain) else result

    def first_single(server: Server, arguments: Any) -> Any:
        return by_program(server, arguments, "", single(server, arguments))

    def first_batch(server: Server, arguments: Any, count: int, how: str) -> Any:
        result = batch(server, arguments, count, how)
        return by_program(server, arguments, how, result) if count == 1 else result

    monkeypatch.setattr(Server, "single", first_single)
    monkeypatch.setattr(Server, "batch", first_batch)
