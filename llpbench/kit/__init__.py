"""The conformance kit: what llpbench demands of every plugin, as checks that anyone can run.

``llpbench check NAME`` prints a report; in a test suite of your own (the pytest plugin comes with llpbench)::

    import pytest

    @pytest.mark.llpbench("mymethod")
    def test_contract(llpbench_check):
        llpbench_check()

Outside pytest, ``llpbench.kit.kit`` has ``run_checks(checks_for("mymethod"))``, which gives the verdicts.

A check that cannot apply raises ``Skip`` with its reason. An exception from a rule is declared in the spec
(``exempt``), with a reason that is printed.
"""
