"""The command line as a function: words in; exit code, stdout and stderr out."""

import sys
from dataclasses import dataclass

import pytest

from tilewright.cli import main


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


@pytest.fixture
def tilewright(capsys, monkeypatch, tmp_path):
    """Run the command line in this process, in a folder and with a store of its own."""
    monkeypatch.setenv("TILEWRIGHT_STORE", str(tmp_path / "runs.sqlite"))
    monkeypatch.delenv("TILEWRIGHT_DEBUG", raising=False)
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["tilewright", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


MACHINE = """\
name: small
frequency_mhz: 1000
word_bits: {inputs: 8, weights: 8, outputs: 8}
levels:
  - memory: DRAM
    keeps: [inputs, weights, outputs]
    energy_pj_per_word: {read: 200, fill: 200, update: 200, drain: 200}
    bandwidth_words_per_cycle: {shared: 4}
  - memory: Buffer
    keeps: [inputs, weights, outputs]
    capacity_bytes: 256
    energy_pj_per_word: {read: 2, fill: 2, update: 2, drain: 2}
    buffering: buffet
  - fanout: PEs
    shape: [4, 2]
compute: {name: MAC, energy_pj_per_mac: 1}
"""
MAPPING = """\
levels:
  - level: DRAM
    loops: [M: 8, N: 8]
  - level: Buffer
    loops: [M: 4, N: 2, K: 1]
  - level: PEs
    loops: [M@X: 1, N@Y: 1]
"""
OPERATOR = "matmul:M=16,N=16,K=8"


@pytest.fixture
def machine(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(MACHINE)
    return path


@pytest.fixture
def mapping(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(MAPPING)
    return path
