"""Numbers as people read them."""

import math

import pytest

from tilewright.report.quantities import (
    byte_size,
    engineering,
    joules,
    multiple,
    over,
    percent,
    seconds_of,
    shortened,
    significant,
    titled,
)


@pytest.mark.parametrize(("value", "text"), [
    (0, "0"), (7, "7"), (999, "999"), (-3, "-3"), (1000, "1.00 k"), (3_210_000, "3.21 M"), (999_499, "999 k"),
    (999_999, "1.00 M"), (12.345, "12.3"), (0.0125, "12.5 m"), (2.5e-7, "250 n"), (4e17, "400 P"), (5e22, "50000 E"),
    (1e-20, "0.00 f"), (None, "-"), (math.inf, "inf"), (-1234.5, "-1.23 k")])
def test_engineering_has_three_digits_and_a_prefix(value, text):
    assert engineering(value) == text


def test_engineering_takes_a_unit():
    assert [engineering(value, "J") for value in (0.0431, 5, 1e-9)] == ["43.1 mJ", "5 J", "1.00 nJ"]


@pytest.mark.parametrize(("value", "text"), [
    (0, "0"), (0.035, "0.0350"), (1.0, "1.00"), (99.96, "100"), (123.4, "123"), (1234, "1,230"), (None, "-")])
def test_significant_has_three_digits(value, text):
    assert significant(value) == text


@pytest.mark.parametrize(("value", "text"), [
    (0, "0 B"), (1.5, "1.5 B"), (1023, "1023 B"), (108 * 1024, "108 KiB"), (1024**4 * 3000, "3000 TiB"),
    (1000.5 * 1024, "1000 KiB"), (None, "unlimited")])
def test_bytes_have_binary_prefixes(value, text):
    assert byte_size(value) == text


def test_ratios_need_both_sides():
    assert (multiple(129, 100), multiple(1, None), multiple(None, 1), multiple(1, 0)) == ("1.29x", "-", "-", "-")
    assert multiple(5_000_000, 2) == "2.50 Mx"
    assert (over(1, 4), percent(0.25), percent(None)) == (0.25, "25.0 %", "-")


def test_metrics_begin_headings():
    assert [titled(metric) for metric in ("latency", "edp", "edp-area")] == ["Latency", "EDP", "EDP-area"]


def test_units_are_converted():
    assert joules(2e12) == 2.0
    assert joules(None) is None
    assert seconds_of(200e6, 200) == 1.0


def test_names_are_cut_in_the_middle():
    assert shortened("layer2.0.downsample.0", 13) == "layer2…mple.0"
    assert (len(shortened("x" * 50, 20)), shortened("short", 20), shortened("abcdef", 2)) == (20, "short", "ab")
