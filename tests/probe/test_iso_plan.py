from __future__ import annotations

import msgspec

from scanner.probe.plan import conditions_key, config_key, make_plan
from scanner.records import Location, OpCall, TensorSpec

SPEC = TensorSpec(name="self", dtype="float32", shape=(2, 3), stride=(3, 1))
CALL = OpCall(op="aten::mul.Scalar", phase="forward", inputs=(SPEC,), attributes={"other": 2})


def test_key_is_stable_over_releases() -> None:
    # A change here makes every stored measurement unreachable: change it knowingly.
    assert config_key(CALL) == "45184de53b9406dd655b5d1612758b96"


def test_place_phase_and_count_are_no_part_of_the_configuration() -> None:
    elsewhere = msgspec.structs.replace(
        CALL, phase="backward", calls=7, locations=(Location(file="m.py", line=3),), via="x"
    )
    assert config_key(elsewhere) == config_key(CALL)


def test_every_argument_is_part_of_the_configuration() -> None:
    replace = msgspec.structs.replace
    others = [
        replace(CALL, op="aten::mul.Tensor"),
        replace(CALL, attributes={"other": 2.5}),
        replace(CALL, inputs=(SPEC, SPEC)),
        *(
            replace(CALL, inputs=(replace(SPEC, **{field: value}),))
            for field, value in {
                "dtype": "float16",
                "shape": (3, 2),
                "stride": (1, 2),
                "offset": 1,
                "layout": "sparse_coo",
                "device": "cpu",
                "alias": 0,
            }.items()
        ),
    ]
    assert len({config_key(each) for each in [CALL, *others]}) == len(others) + 1


def test_order_of_attributes_does_not_matter() -> None:
    one = msgspec.structs.replace(CALL, attributes={"a": 1, "b": 2})
    other = msgspec.structs.replace(CALL, attributes={"b": 2, "a": 1})
    assert config_key(one) == config_key(other)
    assert conditions_key({"a": 1, "b": 2}) == conditions_key({"b": 2, "a": 1})


def test_each_configuration_is_planned_once_and_found_by_offset() -> None:
    other = msgspec.structs.replace(CALL, attributes={"other": 3})
    plan = make_plan([CALL, other, msgspec.structs.replace(CALL, phase="backward")])
    assert [case.key for case in plan.cases] == [config_key(CALL), config_key(other)]
    read = [
        msgspec.json.decode(plan.text[case.start : case.start + case.size], type=OpCall)
        for case in plan.cases
    ]
    assert read == [CALL, other]
