"""`perfmodel replay` as a user drives it."""

import json

import pytest
import transcripts
from cases import cases

pytest.importorskip("triton", reason="replay needs Triton (extra [gpu])")


@pytest.fixture
def run(cli):
    """Replays in this process, whose Triton interprets: (exit code, stdout, stderr)."""
    recorder = pytest.importorskip("perfmodel.proof.replay.recorder")
    recorder.require_interpreter()
    return lambda *arguments: cli("replay", *arguments)


def test_a_ragged_causal_case_is_equal_to_the_byte(run):
    case = ("--heads", "2", "--seq", "100", "--head-dim", "32", "--causal", "--dtype", "fp16")
    code, out, err = run("attention-tiled", *case, "--format", "json")
    assert code == 0, err
    rows = json.loads(out)["replayed"]
    # 100 queries by 100 keys in one head of 32 fp16 numbers: Q is read once, 2 heads x 6,400 B.
    queries = next(row for row in rows if row["tensor"] == "Q")
    assert queries["asked_read_bytes"] == queries["counted_read_bytes"] == 2 * 100 * 32 * 2
    assert all(row["equal"] for row in rows)


def test_with_a_device_its_cache_is_simulated(run):
    code, out, err = run("matmul", "-m", "70", "-n", "50", "-k", "40", "--device", "a100-sxm4-80gb")
    assert code == 0, err
    assert "equal, byte for byte" in out
    assert "memory" in out
    assert "L2 hits" in out


@cases
def test_bad_input_is_one_line_and_exit_code_2(run, arguments, said):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.strip().splitlines()) == 1


def changed_kernel(folder, before, after):
    """docs/kernels.md's kernel with one expression changed, as the argument of the command."""
    page = (transcripts.ROOT / "docs" / "kernels.md").read_text(encoding="utf-8")
    (block,) = (b for b in transcripts.blocks(page, "python") if b.file == "my_package/double.py")
    assert block.text.count(before) == 1
    path = folder / "double.py"
    path.write_text(block.text.replace(before, after), encoding="utf-8")
    return f"{path}:KERNEL"


@pytest.mark.parametrize(
    ("computed", "error"),
    [("x + x * 1.0001", "5e-05"), ("x + x * 1.2", "0.1"), ("x + float('nan')", "nan")],
)
def test_equal_bytes_with_a_wrong_result_fail(run, tmp_path, computed, error):
    code, out, err = run(changed_kernel(tmp_path, "x + x,", f"{computed},"))
    assert code == 1, err
    assert "equal, byte for byte" in out
    said = f"WRONG RESULT: largest relative error against the reference: {error}, 1e-05 allowed"
    assert said in out


# 3 x 1001 numbers of 4 bytes are tiles of 1024, 1024 and 955.
@cases
def test_equal_bytes_from_the_wrong_elements_fail(run, tmp_path, read, bytes_read):
    code, out, err = run(changed_kernel(tmp_path, "X + at", read))
    assert code == 1, err
    assert "equal, byte for byte" in out
    said = f"reads {bytes_read} different bytes of X, and has to read 12,012"
    assert f"WRONG ELEMENTS: pointwise {said}" in out
