# SPDX-License-Identifier: BSD-3-Clause
"""Imports: what other tools print, read by its headings; beside a campaign, and away again without a trace.

The texts in `imported_printed` were printed here, by OSU Micro-Benchmarks 5.7, 7.0 (a fork, whose suffix was taken off)
and 7.4, IMB 2021.11 with Open MPI 4.1, ucx_perftest 1.13, and fi_pingpong and fabtests 1.17.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cadge_harness.errors import UsageError
from cadge_harness.imports import FILE_BYTES_MAX, ImportNotes, read_import, read_text
from cadge_harness.paths import Checkout
from cadge_harness.printed.text import PrintedError, ToolHints, ToolOutput
from cadge_results import Campaign, Store
from cadge_results.formats.imported import FORMATS, TEXT_MAX, Format, ImportedFile
from cadge_results.plugins.catalogue import load_yaml
from cadge_results.plugins.layerfile import LayerFile
from cadge_results.store.writer import hold

from .conftest import WORKLOADS, Answer, FakeRunner

Cadge = Callable[..., Answer]
KEPT = Path(__file__).with_name("imported_printed")
LAYERS = [load_yaml(path, LayerFile) for path in sorted((Path(__file__).parents[2] / "layers").glob("*/*.layer.yml"))]
NOTHING = ToolHints()
TAG = ToolHints(test="tag_lat", bytes=8)


def kept(name: str) -> str:
    return (KEPT / f"{name}.txt").read_text()


def read(name: str, told: ToolHints = NOTHING) -> ToolOutput:
    """Read a kept text as its name says."""
    tool = name.partition("-")[0]
    formats: dict[str, Format] = {"osu": "osu", "imb": "imb", "ucx": "ucx_perftest"}
    return read_text(kept(name), formats.get(tool, "fabtests"), told)


def table(printed: ToolOutput) -> list[tuple[str, str, str, str, str, int, float]]:
    """Return of each series what it is, and its last value."""
    return [
        (one.test, one.kind, one.moves, one.statistic, one.unit, one.values[-1].bytes, one.values[-1].value)
        for one in printed.series
    ]


def imported(path: Path, format_: Format, told: ToolHints = NOTHING, **said: str) -> ImportedFile:
    return read_import(
        path,
        format_,
        told=told,
        said=ImportNotes(**said),  # type: ignore[arg-type]
        layers=LAYERS,
        patterns=WORKLOADS.patterns,
        at=datetime(2026, 11, 26, 1, 2, 3, tzinfo=UTC),
    )[0]


HALF = ("time", "half round trip")
RATES = {  # each worked out by hand from the last row of the text
    "osu-5.7-latency": [("osu_latency", *HALF, "mean", "us", 8192, 104_680.0)],
    "osu-5.7-bibw": [("osu_bibw", "bandwidth", "both ways", "overall", "MB/s", 65536, 3_804_930_000.0)],
    "osu-5.7-put_bibw": [("osu_put_bibw", "bandwidth", "both ways", "overall", "MB/s", 64, 3_932_600_000.0)],
    "osu-5.7-mbw_mr": [
        ("osu_mbw_mr", "bandwidth", "one way", "overall", "MB/s", 4096, 484_920_000.0),
        ("osu_mbw_mr", "rate", "one way", "overall", "1/s", 4096, 118_388.16),
    ],
    "osu-5.7-latency-tagged": [("osu_latency", *HALF, "mean", "us", 16, 840.0)],
    "osu-7.0-latency-noise": [("osu_latency", *HALF, "mean", "us", 64, 400.0)],
    "osu-7.0-bw": [("osu_bw", "bandwidth", "one way", "overall", "MB/s", 64, 772_000_000.0)],
    "osu-7.4-latency-zc": [
        ("osu_latency", *HALF, "mean", "us", 16, 320.0),
        ("osu_latency", *HALF, "p50", "us", 16, 300.0),
        ("osu_latency", *HALF, "p90", "us", 16, 380.0),
        ("osu_latency", *HALF, "p99", "us", 16, 420.0),
    ],
    "osu-7.4-bw-z": [
        ("osu_bw", "bandwidth", "one way", "overall", "MB/s", 16, 251_850_000.0),
        ("osu_bw", "bandwidth", "one way", "p50", "MB/s", 16, 262_900_000.0),
        ("osu_bw", "bandwidth", "one way", "p90", "MB/s", 16, 269_120_000.0),
        ("osu_bw", "bandwidth", "one way", "p99", "MB/s", 16, 274_090_000.0),
    ],
    "osu-7.4-get_latency": [("osu_get_latency", "time", "operation", "mean", "us", 64, 80.0)],
    "imb-2021.11": [
        ("PingPong", *HALF, "mean", "us", 1024, 700.0),
        ("Sendrecv", "time", "both at once", "mean", "us", 1024, 450.0),
        ("Sendrecv", "bandwidth", "both ways", "overall", "MB/s", 1024, 4_530_770_000.0),
        ("PingPing", "time", "both at once", "mean", "us", 1024, 500.0),
        ("PingPing", "bandwidth", "one way", "overall", "MB/s", 1024, 2_039_050_000.0),
        ("Uniband", "bandwidth", "one way", "overall", "MB/s", 1024, 2_707_210_000.0),
        ("Uniband", "rate", "one way", "overall", "1/s", 1024, 2_643_758.0),
        ("Biband", "bandwidth", "both ways", "overall", "MB/s", 1024, 1_096_450_000.0),
        ("Biband", "rate", "both ways", "overall", "1/s", 1024, 1_070_752.0),
        ("Exchange", "time", "both at once", "mean", "us", 1024, 710.0),
        ("Exchange", "bandwidth", "both ways", "overall", "MB/s", 1024, 5_768_530_000.0),
    ],
    "ucx-1.13-batch": [
        ("tag_lat", *HALF, "p50", "us", 4096, 1564.0),
        ("tag_lat", *HALF, "mean", "us", 4096, 3630.0),
        ("tag_bw", "bandwidth", "one way", "overall", "MiB/s", 4096, 9950.2 * 2**20),
        ("tag_bw", "rate", "one way", "overall", "1/s", 4096, 2_547_251.0),
    ],
    "ucx-1.13-batch-f": [
        ("tag_lat", *HALF, "p50", "us", 4096, 1686.0),
        ("tag_lat", *HALF, "mean", "us", 4096, 6466.0),
        ("tag_bw", "bandwidth", "one way", "overall", "MiB/s", 4096, 5993.12 * 2**20),
        ("tag_bw", "rate", "one way", "overall", "1/s", 4096, 1_534_240.0),
    ],
    "ucx-1.13-batch.csv": [
        ("tag_lat", *HALF, "p50", "us", 4096, 1714.0),
        ("tag_lat", *HALF, "mean", "us", 4096, 3986.0),
        ("tag_bw", "bandwidth", "one way", "overall", "MiB/s", 4096, 7480.6 * 2**20),
        ("tag_bw", "rate", "one way", "overall", "1/s", 4096, 1_915_032.0),
    ],
    "ucx-1.13-am_bw-both": [
        ("ucp_am_bw", "bandwidth", "one way", "overall", "MiB/s", 65536, 2497.78 * 2**20),
        ("ucp_am_bw", "rate", "one way", "overall", "1/s", 65536, 39_964.0),
    ],
    "fi_pingpong-1.17": [("fi_pingpong", *HALF, "mean", "us", 6 << 20, 6_461_620.0)],
    "fabtests-1.17-m": [("fi_rdm_pingpong", *HALF, "mean", "us", 64, 1198.0)],
}


@pytest.mark.parametrize("name", RATES)
def test_every_column_says_what_it_is_of(name: str) -> None:
    found, expected = table(read(name)), RATES[name]
    assert [row[:6] for row in found] == [row[:6] for row in expected]
    assert [row[6] for row in found] == pytest.approx([row[6] for row in expected])


def test_sizes_have_units_of_1024_and_a_cut_one_is_said() -> None:
    values = read("fi_pingpong-1.17").series[0].values
    by_size = {one.bytes: one for one in values}
    assert (by_size[1536].printed, by_size[1536].value) == ("6.96", 13_920.0)
    assert {0, 6, 12 << 10, 384 << 10} <= by_size.keys()
    assert "as the tool cuts them" in read("fi_pingpong-1.17").series[0].about
    assert read("fabtests-1.17-m").series[0].about == ""
    cut = kept("fabtests-1.17-odd").replace("19k ", "1.4k")
    with pytest.raises(PrintedError, match=r"1\.4k is a size that the tool has cut.*-m") as told:
        read_text(cut, "fabtests", ToolHints(test="fi_rdm_pingpong"))
    assert told.value.line == 2


def test_what_fabtests_do_not_say_is_asked_for() -> None:
    with pytest.raises(PrintedError, match="--test fi_rdm_pingpong"):
        read("fabtests-1.17-rdm_pingpong")
    one, *others = read("fabtests-1.17-rdm_pingpong", ToolHints(test="fi_rdm_pingpong")).series
    assert (one.moves, one.values[0].value, others) == ("half round trip", 3640.0, [])
    # one after the other, a transfer's time is that of an operation; of several under way it is no latency
    alone = read("fabtests-1.17-rma_bw", ToolHints(test="fi_rma_bw -e rdm -W 1"))
    assert [(one.kind, one.moves) for one in alone.series] == [("time", "operation"), ("bandwidth", "one way")]
    assert [one.values[0].value for one in alone.series] == [2540.0, 25_240_000.0]
    several = read("fabtests-1.17-rma_bw", ToolHints(test="fi_rma_bw -W 16"))
    assert [(one.kind, one.about.partition(";")[0]) for one in several.series] == [("bandwidth", "with -W 16")]
    with pytest.raises(PrintedError, match="#sent and #ack"):
        read("fabtests-1.17-rdm_pingpong", ToolHints(test="fi_pingpong"))


def test_what_ucx_perftest_does_not_say_is_asked_for() -> None:
    with pytest.raises(PrintedError, match="add --test") as told:
        read("ucx-1.13-tag_lat")
    assert told.value.line == 6
    with pytest.raises(PrintedError, match="add --bytes"):
        read("ucx-1.13-tag_lat", ToolHints(test="tag_lat"))
    with pytest.raises(PrintedError, match="is no test that is read"):
        read("ucx-1.13-tag_lat", ToolHints(test="tag", bytes=8))
    with pytest.raises(PrintedError, match="--bytes says 8, and the text 65536"):
        read("ucx-1.13-am_bw-both", ToolHints(bytes=8))
    assert table(read("ucx-1.13-tag_lat", TAG))[0] == ("tag_lat", *HALF, "p50", "us", 8, 340.0)
    assert table(read("ucx-1.13-tag_lat-R99.9", TAG))[0] == ("tag_lat", *HALF, "p99.9", "us", 8, 380.0)


def test_a_rate_is_never_read_as_a_latency() -> None:
    """The heading of a stream says overhead: taken for a latency, it would be one of a hundredth."""
    both = kept("ucx-1.13-am_bw-both")
    rows = both[both.index("|              |") :]
    with pytest.raises(PrintedError, match="has no column of overhead: it is another test"):
        read_text(rows, "ucx_perftest", TAG)
    with pytest.raises(PrintedError, match="has no column of latency: it is another test"):
        read("ucx-1.13-tag_lat", ToolHints(test="tag_bw", bytes=8))
    with pytest.raises(PrintedError, match="these columns are none of this test"):
        read_text("# OSU MPI Latency Test v5.9\n# Size  Bandwidth (MB/s)\n8  1.0\n", "osu", NOTHING)


def test_older_headings() -> None:
    """As UCX wrote them up to 1.9, by its sources: typical stands for the median, and there is no column of stages."""
    csv = "iterations,typical_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n1000,0.5,0.6,0.7,1,2,3,4\n"
    assert table(read_text(csv, "ucx_perftest", TAG))[0] == ("tag_lat", *HALF, "p50", "us", 8, 1000.0)
    rows = (
        "| # iterations | typical | average | overall |  average |  overall |   average |   overall |\n"
        "            999      9.999     9.999     9.999        9.99       9.99           9           9\n"
        "Final:              1000      0.500     0.600     0.700       12.21      10.46     1600000     1371742\n"
    )
    assert table(read_text(rows, "ucx_perftest", TAG)) == [
        ("tag_lat", *HALF, "p50", "us", 8, 1000.0),
        ("tag_lat", *HALF, "mean", "us", 8, 1400.0),
    ]
    several = "Final:  1000  0.700  10.46  1371742\n"
    heading = rows.splitlines(keepends=True)[0]
    assert table(read_text(heading + several, "ucx_perftest", TAG)) == [("tag_lat", *HALF, "mean", "us", 8, 1400.0)]
    old = kept("imb-2021.11").replace("Intel(R) MPI Benchmarks 2021.11", "Intel (R) MPI Benchmark Suite V3.2")
    assert {one.kind for one in read_text(old, "imb", NOTHING).series} == {"time", "rate"}  # MB were not all 10^6


def test_what_is_not_read_is_said() -> None:
    with pytest.raises(PrintedError, match=r"no table of a point-to-point.*Allreduce"):
        read("osu-5.7-allreduce")
    with pytest.raises(PrintedError, match="window sizes") as told:
        read("osu-5.7-mbw_mr-V")
    assert told.value.line == 5
    both = read_text(kept("osu-5.7-allreduce") + kept("osu-5.7-latency"), "osu", NOTHING)
    assert both.skipped == ("OSU MPI Allreduce Latency Test v5.7",)
    assert [one.test for one in both.series] == ["osu_latency"]
    many = read("imb-2021.11-multi")
    assert "Multi-PingPong" in {one.test for one in many.series}
    assert all("groups of 2" in one.about for one in many.series if one.test.startswith("Multi-"))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("8 nan\n", "is no number"),
        ("8 -1.0\n", "is no number"),
        ("8 1.0 2.0\n", "2 columns after the size"),
        ("99999999999999999999 1.0\n", "is no number of bytes"),
        ("8 1.0\n# Size  Latency (ms)\n", "unknown column"),
    ],
)
def test_a_damaged_row_is_told_with_its_line(row: str, said: str) -> None:
    text = f"# OSU MPI Latency Test v5.9\n# Size          Latency (us)\n1 1.0\n{row}"
    with pytest.raises(PrintedError, match=said) as told:
        read_text(text, "osu", NOTHING)
    assert told.value.line in (4, 5)


def test_words_between_rows_are_no_rows() -> None:
    noise = "4 more processes have sent help message help-mpi.txt / no device\n[n1:12] 8 warnings\n\n"
    text = f"# OSU MPI Latency Test v5.9\n# Size          Latency (us)\n1 1.0\n{noise}2 1.5\n"
    values = read_text(text, "osu", NOTHING).series[0].values
    assert [(one.bytes, one.line) for one in values] == [(1, 3), (2, 7)]


def test_data_that_the_tool_found_damaged_is_refused() -> None:
    with pytest.raises(PrintedError, match="the tool found damaged data"):
        read_text(kept("osu-7.4-latency-zc").replace("Pass", "Fail", 1), "osu", NOTHING)


EVERY = [path.read_text() for path in sorted(KEPT.glob("*.txt"))]
TELLINGS = (
    NOTHING,
    TAG,
    ToolHints(test="fi_rma_bw -W 1"),
    ToolHints(test="fi_rdm_pingpong"),
    ToolHints(test="\0", bytes=0),
)


@example("8," * 8 + "\n", EVERY[0], 0, 0)
@given(st.text(), st.sampled_from(EVERY), st.integers(0, 4000), st.integers(0, 4000))
def test_any_text_is_read_or_refused(noise: str, printed: str, cut: int, at: int) -> None:
    texts = (noise, printed[:cut], printed[:at] + noise + printed[at:], printed[:at] + printed[cut:], noise + printed)
    for text in (*texts, printed.replace("0", "x"), printed.replace(".", noise[:2]), printed.replace(" ", "\t")):
        for format_ in FORMATS:
            for told in TELLINGS:
                with contextlib.suppress(PrintedError):
                    for one in read_text(text, format_, told).series:
                        assert all(0 <= value.value < float("inf") for value in one.values)
                        assert all(value.printed in text for value in one.values)


# -- files


def test_an_import_keeps_where_each_number_stands(tmp_path: Path) -> None:
    path = tmp_path / "latency.txt"
    path.write_text(kept("osu-7.0-latency-noise"))
    found = imported(path, "osu", host="lab 3", place="within")
    assert found.version == "OSU MPI Latency Test v7.0"
    assert found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    lines = path.read_text().splitlines()
    for one in found.series[0].values:
        assert lines[one.line - 1].split() == [str(one.bytes), one.printed]
    assert ImportedFile.parse(found.to_json(), source="t") == found


def test_what_a_test_does_the_same_as_is_said_by_layer_files(tmp_path: Path) -> None:
    def patterns(name: str, format_: Format, told: ToolHints = NOTHING) -> dict[tuple[str, str], tuple[str, ...]]:
        path = tmp_path / "printed.txt"
        path.write_text(kept(name))
        return {(one.test, one.kind): one.patterns for one in imported(path, format_, told).series}

    assert patterns("osu-5.7-latency", "osu") == {("osu_latency", "time"): ("pingpong",)}
    assert patterns("osu-7.4-get_latency", "osu") == {("osu_get_latency", "time"): ("onesided",)}
    assert patterns("osu-7.0-bw", "osu") == {("osu_bw", "bandwidth"): ("stream",)}
    assert patterns("osu-5.7-bibw", "osu") == {("osu_bibw", "bandwidth"): ()}
    assert patterns("imb-2021.11", "imb")["PingPong", "time"] == ("pingpong",)
    assert patterns("imb-2021.11", "imb")["Sendrecv", "time"] == ()
    batch = patterns("ucx-1.13-batch", "ucx_perftest")
    assert batch["tag_lat", "time"] == ("pingpong",)
    assert batch["tag_bw", "bandwidth"] == ("stream",)
    assert batch["tag_bw", "rate"] == ()
    assert patterns("fabtests-1.17-m", "fabtests") == {("fi_rdm_pingpong", "time"): ("pingpong",)}


def test_files_that_cannot_be_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "printed.txt"
    with pytest.raises(UsageError, match="does not exist"):
        imported(path, "osu")
    with pytest.raises(UsageError, match="is not a file"):
        imported(tmp_path, "osu")
    path.write_text(kept("osu-5.7-latency").removesuffix("\n")[:-1])
    with pytest.raises(UsageError, match=r"printed.txt:16: the last line has no end"):
        imported(path, "osu")
    path.write_text(kept("osu-5.7-latency"))
    with pytest.raises(UsageError, match="--test and --bytes are for"):
        imported(path, "osu", TAG)
    with pytest.raises(UsageError, match=f"--note has 301 characters; at most {TEXT_MAX}"):
        imported(path, "osu", note="x" * 301)
    path.write_bytes(b"\xff\xfe\0")
    with pytest.raises(UsageError, match="no table"):
        imported(path, "osu")
    path.write_bytes(b"1" * (FILE_BYTES_MAX + 1))
    with pytest.raises(UsageError, match="larger than 4 MiB"):
        imported(path, "imb")


def test_hostile_names_and_words_stay_words(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[31m<script>.txt"
    path.write_text(kept("osu-5.7-latency"))
    found = imported(path, "osu", label="<b>\x07 \u202e", host="'\"")
    assert found.file == "a\\x1b[31m<script>.txt"
    assert found.label == "<b>\\x07 \\u202e"
    raw = tmp_path / b"\xff.txt".decode("utf-8", "surrogateescape")
    raw.write_text(kept("osu-5.7-latency"))
    imported(raw, "osu").to_json().encode()


# -- beside a campaign


@pytest.fixture
def campaign(checkout: Checkout, cadge: Cadge, runner: FakeRunner) -> Campaign:
    """A finished campaign of one layer."""
    assert runner is not None
    assert cadge("run", "--sweep", "tiny", "--layers", "a-one", "--no-report").code == 0
    return Store(checkout.campaigns).open("last")


def everything(campaign: Campaign) -> dict[str, bytes]:
    return {str(one.relative_to(campaign.path)): one.read_bytes() for one in campaign.path.rglob("*") if one.is_file()}


def test_an_import_comes_is_verified_and_goes_without_a_trace(campaign: Campaign, cadge: Cadge) -> None:
    before = everything(campaign)
    file = str(KEPT / "osu-7.4-latency-zc.txt")
    first = cadge("import", "osu", file, "--place", "within", "--json")
    data = json.loads(first.out)["data"]
    assert (first.code, data["added"], data["campaign_id"]) == (0, True, campaign.campaign_id)
    assert [one["statistic"] for one in data["series"]] == ["mean", "p50", "p90", "p99"]
    after = everything(campaign)
    name = f"imported/{data['id']}.json"
    assert after.keys() - before.keys() == {name, f"{name}.sha256"}
    again = cadge("import", "osu", file, "--label", "another name")
    assert (again.code, "nothing was changed" in again.out) == (0, True)
    assert everything(campaign) == after
    assert cadge("verify").out.startswith(f"campaign {campaign.campaign_id}: ")
    assert cadge("import", "imb", str(KEPT / "imb-2021.11.txt")).code == 0
    listed = cadge("import", "--list").out.splitlines()
    assert (len(listed), sum(data["id"] in line for line in listed)) == (3, 1)
    for one in campaign.imported_ids():
        assert cadge("import", "--remove", one[:6]).code == 0
    assert everything(campaign) == before
    assert not campaign.layout.imported.exists()
    assert cadge("import", "--list").out.startswith("nothing is imported")
    assert cadge("import", "--remove", data["id"]).code == 5


def test_a_campaign_under_way_gets_none(campaign: Campaign, cadge: Cadge) -> None:
    before = everything(campaign)
    with hold(campaign.path):
        for argv in (("osu", str(KEPT / "osu-5.7-latency.txt")), ("--remove", "00")):
            refused = cadge("import", *argv)
            assert (refused.code, "another cadge writes to" in refused.err) == (3, True)
    assert everything(campaign) == before


def test_a_damaged_import_is_named_moved_aside_and_can_come_again(campaign: Campaign, cadge: Cadge) -> None:
    file = str(KEPT / "osu-5.7-latency.txt")
    assert cadge("import", "osu", file).code == 0
    path = campaign.layout.imported_file(campaign.imported_ids()[0])
    path.chmod(0o644)
    path.write_text(path.read_text().replace("0.38", "0.18", 1))
    found = cadge("verify")
    assert (found.code, path.name in found.out) == (7, True)
    assert cadge("import", "osu", file).code == 7
    assert cadge("verify", "--repair").code == 0
    assert cadge("import", "osu", file).code == 0
    assert cadge("verify").code == 0
    assert campaign.imported()[0].series[0].values[0].printed == "0.38"
    (campaign.layout.imported / "notes.txt").write_text("mine\n")
    assert cadge("verify").code == 7
    assert cadge("import", "--remove", campaign.imported_ids()[0]).code == 0
    assert (campaign.layout.imported / "notes.txt").read_text() == "mine\n"


@pytest.mark.parametrize(
    "argv",
    [
        ("import",),
        ("import", "osu"),
        ("import", "nosuch", "x"),
        ("import", "osu", str(KEPT / "osu-5.7-allreduce.txt")),
        ("import", "osu", str(KEPT / "osu-5.7-latency.txt"), "--list"),
        ("import", "--list", "--remove", "0"),
        ("import", "--remove", "0", "--label", "x"),
    ],
)
@pytest.mark.first(3)
def test_bad_command_lines(campaign: Campaign, cadge: Cadge, argv: tuple[str, ...]) -> None:
    before = everything(campaign)
    assert cadge(*argv).code == 2
    assert everything(campaign) == before
