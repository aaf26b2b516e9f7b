"""The conformance kit: checks that every plugin must pass.

``llpbench check NAME`` prints the results. In your own test suite (llpbench installs the pytest plugin)::

    import pytest

    @pytest.mark.llpbench("mymethod")
    def test_contract(llpbench_check):
        llpbench_check()

In Python, ``llpbench.kit.kit.run_checks(checks_for("mymethod"))`` returns the results.

A check that does not apply raises ``Skip`` with its reason. A spec declares exemptions from checks in ``exempt``, each
with a reason that is printed.
"""
