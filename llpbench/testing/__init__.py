"""The conformance kit: what llpbench demands of every plugin, as checks that anyone can run.

``llpbench check NAME`` prints a report; in a test suite of your own::

    import pytest
    from llpbench.testing import checks_for

    @pytest.mark.parametrize("check", checks_for("mymethod"), ids=str)
    def test_contract(check):
        check()

A check that cannot apply raises ``Skip`` with its reason. An exception from a rule is declared in the spec
(``exempt``), with a reason that is printed.
"""

from __future__ import annotations

from llpbench.testing.kit import Check, Verdict, checks_for, run_checks

__all__ = ["Check", "Verdict", "checks_for", "run_checks"]
