"""Bank Marketing rebuilt from the form in which a package carries it."""

from __future__ import annotations

import gzip

from llpbench_datasets.marketing.rebuild import bank_full

HEAD = (
    ",age,job,marital,education,default,balance,housing,loan,contact,day,month,duration,campaign,pdays,"
    "previous,poutcome,deposit\n"
)
TRAIN = HEAD + "10,49,admin.,married,secondary,no,47,no,no,unknown,5,may,234,2,-1,0,unknown,no\n"
TEST = HEAD + "9,57,retired,single,primary,no,-3,yes,no,cellular,12,may,71,2,92,7,success,yes\n"
EXPECTED = (
    '"age";"job";"marital";"education";"default";"balance";"housing";"loan";"contact";"day";"month";"duration";'
    '"campaign";"pdays";"previous";"poutcome";"y"\n'
    '57;"retired";"single";"primary";"no";-3;"yes";"no";"cellular";12;"may";71;2;92;7;"success";"yes"\n'
    '49;"admin.";"married";"secondary";"no";47;"no";"no";"unknown";5;"may";234;2;-1;0;"unknown";"no"\n'
)


def test_rows_are_sorted_by_number_and_written_as_upstream_does() -> None:
    pieces = [gzip.compress(text.encode()) for text in (TRAIN, TEST)]
    assert bank_full(*pieces).decode() == EXPECTED
    assert bank_full(*reversed(pieces)).decode() == EXPECTED
