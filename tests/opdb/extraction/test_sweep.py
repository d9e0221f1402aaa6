from opdb.build.sweep import calls
from tests.opdb.extraction.arm64 import BASE, RET, Library, add, adrp, bl, ldr, mov, stp_sp, str_sp

TEXT = 0x55678
F = 0x90000


def found(code):
    return list(calls(Library({"f": code}), BASE))


def test_a_page_and_an_offset_make_an_address():
    (call,) = found([adrp(BASE, 1, TEXT), add(1, 1, TEXT & 0xFFF), bl(BASE + 8, F), RET])
    assert call.target == F
    assert call.registers == {"x1": TEXT}
    assert call.stored == ()


def test_a_page_may_be_shared_and_copied():
    code = [
        adrp(BASE, 8, TEXT),
        add(1, 8, 0x10),
        add(2, 8, 0x20),
        mov(20, 1),
        bl(BASE + 16, F),
        mov(0, 20),
        bl(BASE + 24, F),
        RET,
    ]
    first, second = found(code)
    page = TEXT & ~0xFFF
    assert (first.registers["x1"], first.registers["x2"]) == (page + 0x10, page + 0x20)
    assert second.registers["x0"] == page + 0x10


def test_a_call_clobbers_what_it_may_and_no_more():
    code = [adrp(BASE, 1, TEXT), adrp(BASE + 4, 19, TEXT), bl(BASE + 8, F), bl(BASE + 12, F), RET]
    _, second = found(code)
    assert second.registers == {"x19": TEXT & ~0xFFF}


def test_a_load_makes_a_register_unknown():
    (call,) = found([adrp(BASE, 1, TEXT), ldr(1, 1), bl(BASE + 8, F), RET])
    assert call.registers == {}


def test_stored_addresses_belong_to_the_next_call():
    code = [
        adrp(BASE, 8, 0x20000),
        adrp(BASE + 4, 9, 0x30000),
        stp_sp(8, 9),
        bl(BASE + 12, F),
        str_sp(20),
        bl(BASE + 20, F),
        RET,
    ]
    first, second = found(code)
    assert first.stored == (0x20000, 0x30000)
    assert second.stored == ()
