# SPDX-License-Identifier: BSD-3-Clause
"""What a layer on a build is called, and whether what was loaded is that build's."""

from __future__ import annotations

import pytest

from cadge_results.plugins.build import (
    Build,
    adapter_of,
    is_variant,
    loaded_otherwise,
    matches,
    on_variant,
    run_otherwise,
    same_version,
    variant_of,
    without_variant,
)


def build(**changes: object) -> Build:
    usual = {
        "schema": "cadge.provider/1",
        "library": "ucx",
        "title": "UCX",
        "version": "1.22.0",
        "source": "wheel",
        "origin": "a wheel",
        "file": "root/lib/libucp.so.0",
    }
    return Build.model_validate({**usual, **changes})


def test_a_label_names_the_library_where_the_layer_does_not() -> None:
    assert build().label("ucx") == "1.22.0"
    assert build(library="mpich", version="5.0.2").label("p2p") == "mpich-5.0.2"


@pytest.mark.parametrize(
    ("label", "variant", "plain"),
    [
        ("a-one@cadge-1", "@cadge-1", "a-one"),
        ("a-one@1.22.0 + delay (off=all)", "@1.22.0", "a-one + delay (off=all)"),
        ("a-one@1.22.0 + delay (off=all)", "(off=all)", "a-one@1.22.0 + delay"),
        ("a-one + delay", "()", "a-one + delay"),
    ],
)
def test_a_label_in_a_variant(label: str, variant: str, plain: str) -> None:
    assert is_variant(variant)
    assert not is_variant(label)
    assert (variant_of(label, variant), without_variant(label, variant)) == (variant, plain)
    assert on_variant(plain, variant) == on_variant(label, variant) == label


@pytest.mark.parametrize("version", ["", "-1", "1/2", "1@2", "../1", "1 2"])
def test_a_version_is_part_of_file_names(version: str) -> None:
    with pytest.raises(ValueError, match="version"):
        build(version=version)


@pytest.mark.parametrize(
    ("layer", "glob", "does"),
    [
        ("native-ucx", "native-*", True),
        ("native-ucx@1.22.0", "native-*", False),
        ("native-ucx@1.22.0", "native-*@*", True),
        ("native-ucx@1.22.0", "native-ucx@1.22.0", True),
        ("native-ucx", "native-ucx@*", False),
        ("native-ucx", "*", True),
    ],
)
def test_a_pattern_means_the_systems_libraries_unless_it_says_otherwise(layer: str, glob: str, does: bool) -> None:
    assert matches(layer, glob) is does


def test_the_adapter_of_a_layer() -> None:
    assert (adapter_of("mpi-p2p@mpich-5.0.2"), adapter_of("mpi-p2p")) == ("mpi-p2p", "mpi-p2p")


@pytest.mark.parametrize(
    ("stated", "declared", "same"),
    [
        ("1.22.0", "1.22.0", True),
        ("5.0.11rc1", "5.0.11", True),
        ("2.5", "2.5.0", True),
        ("1.13.1", "1.22.0", False),
        ("5.0.1", "5.0.11", False),
        ("unknown", "1.22.0", False),
        ("5", "5.0.11", False),
    ],
)
def test_versions(stated: str, declared: str, same: bool) -> None:
    assert same_version(stated, declared) is same


FOLDER = "/home/u/.cache/cadge/c-h1/build/providers/ucx-1.22.0/root/lib/libucp.so.0"


@pytest.mark.parametrize(
    ("changes", "version", "file", "build_id", "says"),
    [
        ({}, "1.22.0", FOLDER, None, ""),
        ({}, "1.13.1", FOLDER, None, "it says that it is version 1.13.1"),
        ({}, "1.22.0", "/usr/lib/libucp.so.0", None, "it was loaded from /usr/lib"),
        ({}, "1.22.0", None, None, "where it was loaded from is not known"),
        ({"build_id": "ab" * 20}, "1.22.0", "/moved/libucp.so.0", "ab" * 20, ""),
        ({"build_id": "ab" * 20}, "1.22.0", FOLDER, "cd" * 20, "its build id is cdcdcdcdcdcd, not abababababab"),
        ({"file": "/opt/ucx/lib/libucp.so.0"}, "1.22.0", "/opt/ucx/lib/libucp.so.0.0.0", None, ""),
    ],
)
def test_what_was_loaded(
    changes: dict[str, object], version: str, file: str | None, build_id: str | None, says: str
) -> None:
    assert loaded_otherwise(build(**changes), version, file, build_id) == says


OWN = build(library="cadge", version="1a2b3c4d5e", source="revision", file="root/bin/cadge-driver", build_id="ab" * 20)
OTHER = "its build id is efefefefefef"
OWN = OWN.model_copy(update={"adapters": {"native-ucx": "cd" * 20}})


def test_a_build_of_cadge_names_itself_whatever_the_layer_is_called() -> None:
    assert (OWN.label("ucx"), OWN.of_cadge, OWN.driver) == ("cadge-1a2b3c4d5e", True, "root/bin/cadge-driver")
    assert (build().of_cadge, build().driver) == (False, None)


@pytest.mark.parametrize(
    ("layer", "adapter", "drivers", "says"),
    [
        ("native-ucx@cadge-1a2b3c4d5e", "cd" * 20, ["ab" * 20], ""),
        ("native-ucx", "ef" * 20, ["ab" * 20], f"of its adapter, {OTHER}, not cdcdcdcdcdcd"),
        (
            "native-ucx",
            "cd" * 20,
            ["ab" * 20, "ef" * 20],
            f"of its driver, {OTHER}, not abababababab",
        ),
        ("native-ucx", "cd" * 20, [None], "the build id of its driver is not known"),
        ("native-ucx", "cd" * 20, [], "the build id of its driver is not known"),
        ("native-ucx", None, ["ab" * 20], "the build id of its adapter is not known"),
        ("am-ucx", "cd" * 20, ["ab" * 20], "the build id of its adapter is not known"),
    ],
)
def test_what_a_launch_of_another_build_ran(layer: str, adapter: str | None, drivers: list[str], says: str) -> None:
    assert run_otherwise(OWN, layer, adapter, drivers) == says
