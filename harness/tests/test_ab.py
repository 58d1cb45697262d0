# SPDX-License-Identifier: BSD-3-Clause
"""`cadge ab`: what its sides stand for, what is planned of two builds, what is said of them; and all of it for once."""

from __future__ import annotations

import hashlib
import json
import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from cadge_analysis.publish import bundle
from cadge_analysis.versus.against import Fate
from cadge_cli.commands import ab as commands_ab
from cadge_cli.commands import run as commands_run
from cadge_cli.words import say
from cadge_harness.errors import NothingSelectedError, UnfitError, UsageError
from cadge_harness.paths import Checkout
from cadge_harness.plan.catalogue import read_catalogue
from cadge_harness.plan.planner import make_plan
from cadge_harness.plan.site import PlanSite
from cadge_harness.providers import source
from cadge_harness.providers.folder import read_providers
from cadge_harness.providers.pair import check_build, chosen_pair, pair_builds, paired_sweep, sides_of
from cadge_harness.providers.source import Flags, MadeBuild, SourceTree, find_sources, uncommitted
from cadge_results import Store
from cadge_results.formats.point import AGAIN

from .conftest import HARNESS, WORKLOADS, Answer, FakeRunner
from .test_plan import tiny

ROOT = Path(__file__).parents[2]
Cadge = Callable[..., Answer]
Makes = Callable[..., None]
COMMITS = {"old": "aaaaaaaaaa" + "0" * 30, "new": "bbbbbbbbbb" + "0" * 30}


def git(root: Path, *arguments: str) -> str:
    own = ["-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false"]
    argv = ["git", *own, "-C", str(root), *arguments]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Checkout:
    """Two commits, tagged old and new: one file changed, one came, one went."""
    root = tmp_path / "repository"
    for name in ("layers/include/cadge/layer.h", "layers/a/one.c", "layers/a/gone.c", "harness/build.mk"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("1\n")
    git(root, "init", "-q", "-b", "trunk")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "old")
    git(root, "tag", "old")
    (root / "layers/a/one.c").write_text("2\n")
    (root / "layers/a/gone.c").unlink()
    (root / "layers/a/new.c").write_text("1\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "new")
    git(root, "tag", "new")
    return Checkout(root)


# ---- what a side stands for ----


def test_a_revision_is_its_commit_and_a_folder_is_taken_as_it_is(repository: Checkout, tmp_path: Path) -> None:
    old, trunk = find_sources(repository, "old"), find_sources(repository, "trunk")
    assert (old.source, old.commit) == ("revision", git(repository.root, "rev-parse", "old"))
    assert trunk.commit == git(repository.root, "rev-parse", "new")
    assert old.title == f"old ({old.commit[:10]})"
    folder = tmp_path / "folder"
    shutil.copytree(repository.root / "layers", folder / "layers")
    found = find_sources(repository, str(folder))
    assert (found.source, found.root, found.commit) == ("folder", folder, "")
    (repository.root / "layers/a/one.c").write_text("3\n")
    assert (uncommitted(trunk), uncommitted(old), uncommitted(found)) == (1, 0, 0)


def test_what_is_neither_a_revision_nor_sources_is_refused(repository: Checkout, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'trnk' is no revision of .* and no folder.*did you mean.*trunk"):
        find_sources(repository, "trnk")
    with pytest.raises(UsageError, match=r"'--all' is no revision"):
        find_sources(repository, "--all")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"holds no sources of Cadge: it has no layers/include/cadge/layer.h"):
        find_sources(repository, str(tmp_path / "empty"))
    shutil.rmtree(repository.root / ".git")
    with pytest.raises(UsageError, match=r"'old' is no folder, and .* is no git checkout with revisions: name folders"):
        find_sources(repository, "old")


@pytest.mark.parametrize("text", ["-O2'", "$(id)", "-DX=#", "a;b", "a\nb"])
def test_flags_that_make_would_take_apart_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--cflags .*: it may hold letters"):
        Flags(cflags=text)


def test_files_that_are_the_same_are_not_compiled_again(repository: Checkout, tmp_path: Path) -> None:
    here = tmp_path / "source"
    first = source._lay_out(find_sources(repository, "old"), tmp_path, here)
    same = (here / "layers/include/cadge/layer.h").stat().st_mtime_ns
    second = source._lay_out(find_sources(repository, "new"), tmp_path, here)
    assert first != second
    assert (here / "layers/include/cadge/layer.h").stat().st_mtime_ns == same
    assert (here / "layers/a/one.c").read_text() == "2\n"
    assert sorted(path.name for path in (here / "layers/a").iterdir()) == ["new.c", "one.c"]
    assert source._lay_out(find_sources(repository, str(repository.root)), tmp_path, here) == second
    assert source._lay_out(find_sources(repository, "old"), tmp_path, here) == first


def test_what_the_compiler_says_is_shown_from_its_first_error_on() -> None:
    said = ["built  b.so", "a.c:3:1: error: expected ';'", "    3 | x", *["more"] * 30]
    assert list(source._of_the_error(said)) == said[1:13]
    assert list(source._of_the_error(["one", "two"])) == ["one", "two"]


def test_sources_that_do_not_compile_make_no_build(repository: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository.root / "harness/build.mk").write_text("driver:\n\t@echo 'm.c:1:2: error: no such thing'; exit 1\n")
    monkeypatch.delenv("CADGE_BUILD", raising=False)
    tree = find_sources(repository, f"{repository.root}/")
    with pytest.raises(UnfitError, match=r"cannot be built:\nm.c:1:2: error: no such thing") as caught:
        source.make_builds(repository, [(tree, Flags())], ["a-one"])
    assert caught.value.exit_code == 3
    assert not (repository.build / "providers").exists()


# ---- two builds, in a plan ----


@pytest.fixture
def makes(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> Makes:
    """Stand for git and the compiler: say what each side's driver and layers hold; the bytes are their build id."""
    held: dict[str, dict[str, str]] = {}
    work = checkout.root / "made"

    def made(at: Checkout, sides: Sequence[tuple[SourceTree, Flags]], layers: Sequence[str]) -> tuple[MadeBuild, ...]:
        found = []
        for tree, flags in sides:
            side = held[tree.given]
            shutil.rmtree(work, ignore_errors=True)
            (work / "bin").mkdir(parents=True)
            (work / "layers").mkdir()
            (work / "bin/cadge-driver").write_text(side["driver"])
            there = [name for name in layers if name in side]
            for name in there:
                (work / "layers" / f"{name}.so").write_text(side[name])
            lacks = {name: f"{tree.title} has no such layer" for name in layers if name not in side}
            found.append(source._kept(at, work, tree, flags, tree.commit[:10], there, lacks))
        return tuple(found)

    def sources(at: Checkout, text: str) -> SourceTree:
        return SourceTree(given=text, source="revision", root=at.root, commit=COMMITS[text])

    monkeypatch.setattr(source, "build_id", identity)
    monkeypatch.setattr(source, "_compiler", lambda _flags: "cc 1")
    monkeypatch.setattr(commands_ab, "make_builds", made)
    monkeypatch.setattr(commands_ab, "find_sources", sources)
    monkeypatch.setattr(commands_ab, "uncommitted", lambda tree: 3 if tree.given == "new" else 0)
    monkeypatch.setattr(commands_ab, "check_build", lambda *_args: None)

    def hold(**sides: dict[str, str]) -> None:
        held.update(sides)

    return hold


def identity(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:40]


def both(checkout: Checkout, makes: Makes, layers: Sequence[str]) -> tuple[MadeBuild, ...]:
    trees = [commands_ab.find_sources(checkout, name) for name in ("old", "new")]
    found: tuple[MadeBuild, ...] = commands_ab.make_builds(checkout, [(tree, Flags()) for tree in trees], layers)
    assert makes is not None
    return found


def test_only_what_differs_is_measured_on_both_and_one_of_the_others_is_the_control(
    checkout: Checkout, makes: Makes, site: PlanSite
) -> None:
    layers = ["a-one", "b-two", "c-three"]
    makes(old={"driver": "d", "a-one": "1", "b-two": "1"}, new={"driver": "d", "a-one": "2", "b-two": "1"})
    pair = pair_builds(*both(checkout, makes, layers), layers)
    assert (pair.changed, pair.equal, pair.control, pair.driver_differs) == (("a-one",), ("b-two",), ("b-two",), False)
    assert pair.lacks == {"c-three": "old (aaaaaaaaaa) has no such layer; new (bbbbbbbbbb) has no such layer"}
    sweep = paired_sweep(tiny(floors=False, launches=9), pair, 0.05)
    plan = make_plan(sweep, read_catalogue(checkout), WORKLOADS, site)
    first, second, control = "a-one@cadge-aaaaaaaaaa", "a-one@cadge-bbbbbbbbbb", "b-two@cadge-aaaaaaaaaa"
    by_id = plan.by_id
    rounds: dict[int, set[tuple[str, bool]]] = {}
    for launch in plan.launches:
        subject = by_id[launch.point_ids[0]].subject
        rounds.setdefault(launch.round, set()).add((subject.layer, subject.twin))
    assert set(rounds) == set(range(9))
    assert all(one == {(first, False), (second, False), (control, False), (control, True)} for one in rounds.values())
    lacking = {f"c-three@cadge-{side}" for side in ("aaaaaaaaaa", "bbbbbbbbbb")}
    assert plan.providers.keys() == {first, second, control, *lacking}
    assert {(point.subject.layer, point.state) for point in plan.points if point.subject.layer in lacking} == {
        (name, "refused") for name in lacking
    }
    assert plan.providers[second].adapters == {
        "a-one": identity(pair.second.modules["a-one"]),
        "b-two": identity(pair.second.modules["b-two"]),
    }
    assert (plan.baseline_of(second), plan.baseline_of(first), plan.baseline_of(control)) == (first, first, control)
    assert not any("is not measured" in text for text in plan.notices)


def test_another_driver_changes_every_layer(checkout: Checkout, makes: Makes) -> None:
    layers = ["a-one", "b-two"]
    makes(old={"driver": "d", "a-one": "1", "b-two": "1"}, new={"driver": "e", "a-one": "1", "b-two": "1"})
    pair = pair_builds(*both(checkout, makes, layers), layers)
    assert (pair.changed, pair.equal, pair.driver_differs) == (("a-one", "b-two"), (), True)
    assert paired_sweep(tiny(), pair, 0.05).twin == "by seed"


def test_equal_builds_are_measured_against_themselves(checkout: Checkout, makes: Makes, site: PlanSite) -> None:
    same = {"driver": "d", "a-one": "1", "b-two": "1"}
    makes(old=same, new=dict(same))
    pair = pair_builds(*both(checkout, makes, ["a-one", "b-two"]), ["a-one", "b-two"])
    assert (pair.changed, pair.control) == ((), ("a-one", "b-two"))
    plan = make_plan(paired_sweep(tiny(floors=False), pair, 0.05), read_catalogue(checkout), WORKLOADS, site)
    measured = {(point.subject.layer, point.subject.twin) for point in plan.points}
    names = {f"{name}@cadge-aaaaaaaaaa" for name in ("a-one", "b-two")}
    assert measured == {(name, twin) for name in names for twin in (False, True)}


def test_layers_of_one_side_alone_are_nothing_to_compare(checkout: Checkout, makes: Makes) -> None:
    makes(old={"driver": "d", "a-one": "1"}, new={"driver": "d"})
    with pytest.raises(NothingSelectedError, match=r"a-one cannot be compared: new \(bbbbbbbbbb\) has no such layer"):
        pair_builds(*both(checkout, makes, ["a-one"]), ["a-one"])


def test_a_driver_of_other_formats_or_patterns_is_refused(checkout: Checkout) -> None:
    text = checkout.driver.read_text()
    version = text.replace("exit 2", '{ echo \'{"schema": "cadge.result/2"}\'; exit 0; }')
    checkout.driver.write_text(version)
    other = checkout.root / "other"
    shutil.copy(checkout.driver, other)
    check_build(other, "old", checkout.driver, WORKLOADS, ["rpc"])
    other.write_text(version.replace('"stream"', '"strand"'))
    check_build(other, "old", checkout.driver, WORKLOADS, ["rpc"])
    with pytest.raises(UnfitError, match=r"old cannot be measured beside this Cadge: its driver has no pattern stream"):
        check_build(other, "old", checkout.driver, WORKLOADS, ["stream"])
    other.write_text(version.replace("result/2", "result/1"))
    with pytest.raises(UnfitError, match=r"its driver writes cadge.result/1"):
        check_build(other, "old", checkout.driver, WORKLOADS, ["rpc"])


# ---- two providers, two settings ----


def library(checkout: Checkout, version: str, *layers: str) -> None:
    """Put a provider into the build tree, with the layers built on it."""
    build = source.Build.model_validate(
        {
            "schema": "cadge.provider/1",
            "library": "ucx",
            "title": "UCX",
            "version": version,
            "source": "prefix",
            "origin": "/opt",
            "file": "/opt/lib/libucp.so.0",
        }
    )
    folder = checkout.build / "providers" / build.name
    folder.mkdir(parents=True)
    (folder / "provider.json").write_text(build.to_json())
    for name in layers:
        module = checkout.modules / f"{name}@{build.name}.so"
        module.touch()
        module.with_suffix(".provider").write_text(build.name)


@pytest.mark.parametrize(
    ("sides", "variants", "labels"),
    [
        (("provider:ucx-1.1", "provider:1.2"), ("@ucx-1.1", "@ucx-1.2"), ["a-one@ucx-1.1", "a-one@ucx-1.2"]),
        (("provider:1.1", "provider:1.1"), ("@ucx-1.1", "@ucx-1.1"), ["a-one@ucx-1.1"]),
        (("env.X=1", "env.X=2,3"), ("(env.X=1)", "(env.X=2,3)"), ["a-one (env.X=1)", "a-one (env.X=2,3)"]),
        (("default", "off=all"), ("()", "(off=all)"), ["a-one", "a-one (off=all)"]),
    ],
)
def test_two_of_a_kind(
    checkout: Checkout, sides: tuple[str, str], variants: tuple[str, str], labels: list[str], site: PlanSite
) -> None:
    library(checkout, "1.1", "a-one")
    library(checkout, "1.2", "a-one")
    catalogue = read_catalogue(checkout)
    pair = chosen_pair(catalogue, read_providers(checkout), sides, ["a-one"])
    assert pair is not None
    assert pair.variants == variants
    sweep = paired_sweep(tiny(floors=False, launches=9), pair, 0.02)
    assert [entry.label for entry in sweep.layers] == labels
    assert (sweep.baseline, sweep.same_within) == (variants[0], 2)
    if sides[0].startswith("env."):
        return  # no variable steers these layers
    plan = make_plan(sweep, catalogue, WORKLOADS, site)
    assert sides_of(plan) == variants
    assert plan.baseline_of(labels[-1]) == labels[0]
    twins = {point.subject.label for point in plan.points if point.subject.twin}
    assert twins <= {f"{label} {AGAIN}" for label in labels}
    assert twins
    assert not any("is not measured" in text for text in plan.notices)


@pytest.mark.parametrize(
    ("sides", "says"),
    [
        (("provider:1.1", "HEAD"), "'provider:1.1' and 'HEAD' are no pair: give two revisions or folders"),
        (("default", "provider:1.1"), "are no pair"),
        (("off=all", "provider:1.1"), "are no pair"),
        (("provider:1.1", "provider:1.3"), "provider:1.3: no provider is called so; known: ucx-1.1, ucx-1.2"),
        (("provider:1.1", "provider:1.2"), "a-one is not built with a provider that makes it 'a-one@ucx-1.2'"),
    ],
)
def test_sides_that_are_no_pair(checkout: Checkout, sides: tuple[str, str], says: str) -> None:
    library(checkout, "1.1", "a-one")
    library(checkout, "1.2")
    with pytest.raises(UsageError) as caught:
        chosen_pair(read_catalogue(checkout), read_providers(checkout), sides, ["a-one"])
    assert says in str(caught.value)


def test_sources_are_built(checkout: Checkout) -> None:
    for sides in (("main", "HEAD"), ("a/b=c", "."), ("default", "main"), ("default", "default")):
        assert chosen_pair(read_catalogue(checkout), {}, sides, ["a-one"]) is None


def test_two_settings_are_compared_and_resumed(checkout: Checkout, runner: FakeRunner, cadge: Cadge) -> None:
    (checkout.sweeps / "ab.yml").write_text((HARNESS / "sweeps/ab.yml").read_text().replace("native-ucx", "a-one"))
    runner.stop_after = 5
    argv = ("ab", "default", "off=all", "--layers", "a-one,b-two", "--launches", "9", "--no-queue")
    assert cadge(*argv).code == 6
    runner.stop_after = None
    found = json.loads(cadge("resume", "--json", "--no-report").out)
    assert found["code"] == 0
    assert (found["data"]["sides"], found["data"]["layers"]) == (
        ["()", "(off=all)"],
        {"a-one": "changed", "b-two": "changed"},
    )
    assert {one["layer"] for one in found["data"]["comparison"]["pairs"]} == {"a-one", "b-two"}
    assert len(found["data"]["comparison"]["pairs"]) == 6
    campaign = Store(checkout.campaigns).open("last").campaign_id
    said = cadge("compare", "last:()", "last:(off=all)").out.splitlines()
    assert said[:2] == [f"- first: {campaign}, default settings", f"- second: {campaign}:(off=all)"]
    wrong = cadge(*argv, "--cc", "gcc")
    assert (wrong.code, "--cc is for two revisions or folders" in wrong.err) == (2, True)


# ---- the command, with a fake compiler and fake launches ----


@pytest.fixture
def ab(
    checkout: Checkout, runner: FakeRunner, cadge: Cadge, makes: Makes, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Answer]:
    """`cadge ab old new`, whose launches say which adapter and driver they ran."""
    assert makes is not None
    (checkout.sweeps / "ab.yml").write_text((HARNESS / "sweeps/ab.yml").read_text().replace("native-ucx", "a-one"))
    monkeypatch.setattr(commands_run, "busy", lambda: "")

    def change(record: dict[str, object]) -> dict[str, object]:
        launch, result = record["launch"], record["result"]
        assert isinstance(launch, dict)
        assert isinstance(result, dict)
        module = checkout.modules / f"{launch['layer']}.so"
        adapter, _, build = str(launch["layer"]).partition("@")
        style, _, substrate = adapter.partition("-")
        driver = checkout.build / "providers" / build / "root/bin/cadge-driver"
        result["adapter"] = {"name": adapter, "style": style, "substrate": substrate, "build_id": identity(module)}
        result["objects"] = [{"file": str(driver), "how": "program", "build_id": identity(driver)}]
        return record

    runner.change = change

    def call(*argv: str) -> Answer:
        return cadge("ab", "old", "new", "--layers", "a-one,b-two", "--launches", "9", *argv)

    return call


def test_the_answer_has_each_cell_on_both_sides(ab: Callable[..., Answer], makes: Makes, checkout: Checkout) -> None:
    makes(old={"driver": "d", "a-one": "1", "b-two": "1"}, new={"driver": "d", "a-one": "2", "b-two": "1"})
    found = ab("--fail-on", "slower:5%", "--fail-on", "missing")
    assert found.code == 0, found.err
    assert str(Fate.DISAPPEARED) not in found.out
    assert "Not compared, as equal byte for byte: b-two" in found.err
    assert "new (bbbbbbbbbb) is a commit; 3 changed files in" in found.err
    cells = [line for line in found.out.splitlines() if line.startswith("a-one, within, poll")]
    assert len(cells) == 3
    campaign = Store(checkout.campaigns).open("last")
    assert (
        f"cadge compare {campaign.campaign_id}:@cadge-aaaaaaaaaa {campaign.campaign_id}:@cadge-bbbbbbbbbb" in found.out
    )
    assert "A/A control b-two@cadge-aaaaaaaaaa: 0 of 3" in found.out
    assert {check.name for record in campaign.launches() for check in record.crosschecks if not check.ok} == set()


def test_a_layer_that_one_side_lacks_is_a_row(ab: Callable[..., Answer], makes: Makes) -> None:
    makes(old={"driver": "d", "a-one": "1"}, new={"driver": "d", "a-one": "2", "b-two": "1"})
    found = ab("--fail-on", "missing")
    why = "not built: old (aaaaaaaaaa) has no such layer"
    assert found.code == 0
    rows = [line for line in found.out.splitlines() if line.startswith("b-two, within, poll")]
    assert [(Fate.WORKING in row, why in row) for row in rows] == [(True, True)] * 3
    makes(old={"driver": "d", "a-one": "1", "b-two": "1"}, new={"driver": "d", "a-one": "1"})
    gate = ab("--fail-on", "missing", "--json")
    data = json.loads(gate.out)["data"]
    why = "not built: new (bbbbbbbbbb) has no such layer"
    assert data["layers"] == {"a-one": "equal", "b-two": why}
    assert [(one["fate"], one["reasons"]) for one in data["comparison"]["left"]] == [(Fate.LOST, [why])] * 3
    assert len(data["comparison"]["pairs"]) == 3
    assert gate.code == 8


def test_a_resumed_campaign_has_the_same_answer(
    ab: Callable[..., Answer], makes: Makes, cadge: Cadge, runner: FakeRunner, checkout: Checkout
) -> None:
    makes(old={"driver": "d", "a-one": "1", "b-two": "1"}, new={"driver": "d", "a-one": "2", "b-two": "1"})
    runner.stop_after = 5
    assert ab("--margin", "2%").code == 6
    runner.stop_after = None
    resumed = json.loads(cadge("resume", "--json", "--no-report").out)
    campaign = Store(checkout.campaigns).open("last")
    sides = ["@cadge-aaaaaaaaaa", "@cadge-bbbbbbbbbb"]
    assert (resumed["data"]["sides"], resumed["data"]["layers"]) == (sides, {"a-one": "changed", "b-two": "equal"})
    again = ("compare", *(f"{campaign.campaign_id}:{side}" for side in sides), "--margin", "2%", "--json")
    compared = json.loads(cadge(*again).out)["data"]
    assert resumed["data"]["comparison"]["pairs"] == compared["pairs"] != []
    assert resumed["data"]["comparison"]["left"] == []  # the control is on one side alone, as both are equal
    complete = json.loads(cadge("resume", "--json", "--no-report").out)
    assert (complete["data"]["made"], complete["data"]["comparison"]) == (0, resumed["data"]["comparison"])
    fresh = json.loads(ab("--margin", "2%", "--json").out)
    assert fresh["data"].keys() == resumed["data"].keys()


def test_exports_and_archives_have_both_builds(
    ab: Callable[..., Answer], makes: Makes, cadge: Cadge, checkout: Checkout
) -> None:
    makes(old={"driver": "d", "a-one": "1"}, new={"driver": "d", "a-one": "2"})
    assert ab("--launches", "2").code == 0
    exported = json.loads(cadge("export", "last", "--format", "json").out)
    archived = json.loads(bundle.environment(Store(checkout.campaigns).open("last")))
    assert exported["builds"] == archived["builds"]
    origins = {name: build["origin"] for name, build in archived["builds"].items()}
    assert [origins[f"a-one@cadge-{COMMITS[side][:10]}"] for side in COMMITS] == [*COMMITS.values()]


def test_a_gate_without_verdicts_has_no_answer(ab: Callable[..., Answer], makes: Makes, cadge: Cadge) -> None:
    makes(old={"driver": "d", "a-one": "1"}, new={"driver": "d", "a-one": "2"})
    few = ("--launches", "3")
    assert ab(*few).code == 0
    found = ab(*few, "--fail-on", "slower:5%", "--json")
    answer = json.loads(found.out)
    assert (found.code, answer["code"]) == (5, 5)
    why = say("compare.few_launches")
    assert answer["problems"] == [say("compare.no_answer", kind="slower", left=3, n=3, why=why)]
    resumed = [cadge("resume", "--no-report", "--fail-on", wanted) for wanted in ("slower:5%", "undecided")]
    assert [one.code for one in resumed] == [5, 8]
    assert say("compare.no_answer", kind="slower", left=3, n=3, why=why) in resumed[0].err


def test_only_a_campaign_of_two_sides_is_a_gate(checkout: Checkout, runner: FakeRunner, cadge: Cadge) -> None:
    assert (checkout, runner) is not None
    assert cadge("run", "--sweep", "tiny", "--no-report").code == 0
    wrong = cadge("resume", "--fail-on", "slower")
    assert (wrong.code, "has no two sides" in wrong.err) == (2, True)


def test_what_ran_another_adapter_is_unsound(ab: Callable[..., Answer], makes: Makes, checkout: Checkout) -> None:
    makes(old={"driver": "d", "a-one": "1", "b-two": "1"}, new={"driver": "e", "a-one": "2", "b-two": "1"})
    wrong = checkout.build / "providers/cadge-bbbbbbbbbb/provider.json"
    original = source._write

    def stale(target: Path, build: source.Build, driver: Path) -> None:
        original(target, build, driver)
        if target == wrong.parent:
            told = json.loads(wrong.read_text())
            wrong.write_text(json.dumps(told | {"build_id": "00" * 20}))

    source._write, kept = stale, source._write
    try:
        found = ab()
    finally:
        source._write = kept
    assert found.code in {1, 5}
    campaign = Store(checkout.campaigns).open("last")
    said = {check.detail for record in campaign.launches() for check in record.crosschecks if not check.ok}
    assert any("of its driver, its build id is" in text for text in said)


def test_equal_sides_are_a_control_alone(ab: Callable[..., Answer], makes: Makes, tmp_path: Path) -> None:
    same = {"driver": "d", "a-one": "1", "b-two": "1"}
    makes(old=same, new=dict(same))
    found = ab("--json", "--format", "markdown", "-o", str(tmp_path / "answer.md"))
    answer = json.loads(found.out)
    assert (tmp_path / "answer.md").read_text().count("| a-one, within, poll, ") == 3
    assert (answer["code"], answer["data"]["layers"]) == (0, {"a-one": "equal", "b-two": "equal"})
    assert len(answer["data"]["comparison"]["pairs"]) == 6


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--layers", "no-such"], "unknown layer 'no-such'"),
        (["--cc", "a", "--cc", "b", "--cc", "c"], "--cc is given once for both sides, or twice"),
        (["--fail-on", "slow"], "--fail-on slow: it is slower"),
        (["--looks", "9,12", "--launches", "9"], "so --launches cannot"),
    ],
)
def test_wrong_options(ab: Callable[..., Answer], cadge: Cadge, argv: list[str], says: str) -> None:
    assert ab is not None
    found = cadge("ab", "old", "new", *argv)
    assert found.code == 2
    assert says in found.err


# ---- all of it ----


@pytest.mark.long
def test_a_delay_planted_in_an_adapter_is_found(tmp_path: Path) -> None:
    """Two commits of this checkout, the second with a pause before each message of sockets-tcp."""
    if shutil.which("gcc") is None or not (ROOT / "build/bin/cadge-driver").is_file():
        pytest.skip("needs gcc and a build")
    root = tmp_path / "checkout"
    for part in ("layers", "harness", "results/src", "analysis/src", "playbooks"):
        shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "as it is")
    adapter = root / "layers/sockets/tcp.c"
    adapter.write_text(runpy.run_path(str(ROOT / "ci/planted"))["slowed"](adapter.read_text()))
    git(root, "commit", "-q", "-a", "-m", "slower")
    build = tmp_path / "build"
    for part in ("bin", "layers"):
        shutil.copytree(ROOT / "build" / part, build / part)
    own = {"CADGE_ROOT": str(root), "CADGE_BUILD": str(build), "NO_COLOR": "1", "CADGE_LOCK": str(tmp_path / "lock")}
    argv = ["ab", "HEAD~1", "HEAD", "--layers", "sockets-tcp,sockets-unix", "--patterns", "rpc", "--sizes", "8B"]
    argv += ["--looks", "9,12", "--testbed", "local", "--results", str(tmp_path / "results"), "--fail-on", "slower:5%"]
    done = subprocess.run(
        [sys.executable, "-m", "cadge_cli.cli", *argv, "--json"],
        env=os.environ | own,
        capture_output=True,
        text=True,
        check=False,
        timeout=1500,
    )
    answer = json.loads(done.stdout)
    assert answer["data"]["layers"] == {"sockets-tcp": "changed", "sockets-unix": "equal"}
    [cell] = answer["data"]["comparison"]["pairs"]
    assert cell["measured_ratio"] > 1.2
    withheld = answer["data"]["comparison"]["withheld"]  # where other work disturbed too many launches
    assert (cell["verdict"], answer["code"]) == (("cannot tell", 5) if withheld else ("slower", 8)), done.stderr
