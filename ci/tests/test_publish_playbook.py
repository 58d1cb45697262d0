# SPDX-License-Identifier: BSD-3-Clause
"""playbooks/publish.yml: what it brings where, what it refuses, what it never touches; in the long form over SSH.

The long form publishes a campaign, brings the site to an emulated host where nginx serves it under a strict policy, and
has a browser on another host's network read it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from cadge_harness.testbed import emulated, testbeds

if TYPE_CHECKING:
    from cadge_results import Campaign

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "analysis/tests"))  # importlib mode leaves sys.path alone

import chromium  # noqa: E402 - found by the line above
import synthetic  # noqa: E402

PLAYBOOK = ROOT / "playbooks/publish.yml"
BRING = ROOT / "playbooks/roles/cadge_publish/files/bring.py"
NAME = "20261121T031204Z-557f9c1d"


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site as far as the playbook looks at it."""
    folder = tmp_path / "site"
    sums = f"{hashlib.sha256(b'report').hexdigest()}  index.html\n"
    write(
        folder,
        {
            "cadge-site.json": "{}",
            "index.html": "index",
            ".nojekyll": "",
            ".git/HEAD": "ref",
            ".gitignore": "x",
            f"runs/{NAME}/index.html": "report",
            f"runs/{NAME}/SHA256SUMS": sums,
        },
    )
    return folder


def bring(*argv: str | Path, code: int = 0) -> str:
    done = subprocess.run([sys.executable, BRING, *argv], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_pack_has_all_but_gits_own_with_the_marker_last_and_readable(site: Path, tmp_path: Path) -> None:
    (site / "index.html").chmod(0o600)
    about = json.loads(bring("pack", site, tmp_path / "a.tar.gz"))
    with tarfile.open(tmp_path / "a.tar.gz") as tar:
        members = tar.getmembers()
    files = [one.name for one in members if one.isfile()]
    assert sorted(files) == sorted(name for name in contents(site) if not name.startswith(".git"))
    assert files[-1] == "cadge-site.json"
    assert {one.mode for one in members if one.isfile()} == {0o644}
    assert {one.name: one.mode for one in members if one.isdir()} == {"runs": 0o755, f"runs/{NAME}": 0o755}
    os.utime(site / "index.html", (0, 0))
    assert json.loads(bring("pack", site, tmp_path / "b.tar.gz"))["release"] == about["release"]
    write(site, {"index.html": "changed"})
    assert json.loads(bring("pack", site, tmp_path / "b.tar.gz"))["release"] != about["release"]


def test_a_site_that_was_damaged_is_not_brought(site: Path, tmp_path: Path) -> None:
    write(site, {f"runs/{NAME}/index.html": "forged"})
    assert f"runs/{NAME}/index.html is not the file that was published" in bring(
        "pack", site, tmp_path / "a.tar.gz", code=1
    )
    (site / f"runs/{NAME}/index.html").unlink()
    assert "is missing" in bring("place", site, tmp_path / "pages", code=1)
    assert not (tmp_path / "pages").exists()


def test_what_is_no_site_and_what_leads_out_of_one_are_refused(site: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    assert "is no site of cadge" in bring("pack", tmp_path / "other", tmp_path / "a.tar.gz", code=1)
    (site / "keys").symlink_to("/etc")
    assert "keys is a link" in bring("pack", site, tmp_path / "a.tar.gz", code=1)


def test_placing_into_a_folder_touches_nothing_of_others(site: Path, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    write(pages, {"CNAME": "example.org", ".git/HEAD": "other", "index.html": "a home page"})
    before = contents(pages)
    assert "holds index.html of somebody else" in bring("place", site, pages, code=1)
    assert contents(pages) == before
    (pages / "index.html").unlink()
    assert json.loads(bring("place", site, pages, "--dry-run"))["changed"] == 5
    assert not (pages / "index.html").exists()
    assert json.loads(bring("place", site, pages))["changed"] == 5
    assert json.loads(bring("place", site, pages))["changed"] == 0
    ours = {name: text for name, text in contents(site).items() if not name.startswith(".git")}
    assert contents(pages) == ours | {"CNAME": b"example.org", ".git/HEAD": b"other"}


def test_placing_again_removes_what_it_brought_and_the_site_has_no_more(site: Path, tmp_path: Path) -> None:
    pages, run = tmp_path / "pages", f"runs/{NAME}"
    old = {f"{run}/index-rpc.html": "old page", f"{run}/index-one.html": "old page"}
    write(site, old)
    report = hashlib.sha256(b"report").hexdigest()
    page = hashlib.sha256(b"old page").hexdigest()
    sums = "".join(f"{page}  index-{name}.html\n" for name in ("one", "rpc")) + f"{report}  index.html\n"
    write(site, {f"{run}/SHA256SUMS": sums, "SHA256SUMS": f"{hashlib.sha256(b'{}').hexdigest()}  cadge-site.json\n"})
    bring("place", site, pages)
    mine = {f"{run}/index-one.html": "mine now", f"{run}/notes.txt": "mine", "runs/other/index.html": "another site's"}
    write(pages, mine)
    for name in old:
        (site / name).unlink()
    write(site, {f"{run}/SHA256SUMS": f"{report}  index.html\n"})
    assert json.loads(bring("place", site, pages, "--dry-run"))["changed"] == 2
    assert (pages / run / "index-rpc.html").exists()
    assert json.loads(bring("place", site, pages))["changed"] == 2
    ours = {name: text for name, text in contents(site).items() if not name.startswith(".git")}
    assert contents(pages) == ours | {name: text.encode() for name, text in mine.items()}
    assert json.loads(bring("place", site, pages))["changed"] == 0


def play(folder: Path, *argv: str, prefix: tuple[str, ...] = (), code: int = 0) -> tuple[int, str]:
    """Run the playbook in a folder; return how many tasks changed something, and all that was said."""
    tool = str(Path(sys.executable).with_name("ansible-playbook"))
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    own = {"PWD": str(folder), "ANSIBLE_NOCOLOR": "1", "ANSIBLE_HOME": str(folder / "ansible"), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [*prefix, tool, str(PLAYBOOK), *argv],
        cwd=folder,
        env={**kept, **own},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == code, done.stdout + done.stderr
    changed = re.search(r"changed=(\d+)", done.stdout)
    assert changed, done.stdout
    return int(changed[1]), done.stdout


def inventory(folder: Path, **variables: object) -> Path:
    path = folder / "web.yml"
    path.write_text(yaml.safe_dump({"web": {"hosts": {"site": variables}}}))
    return path


@pytest.mark.long
def test_a_folder_for_pages_gets_the_site_once(site: Path, tmp_path: Path) -> None:
    argv = ("-e", "cadge_site=site", "-e", "cadge_pages=pages")
    assert play(tmp_path, *argv, "--check")[0] == 1
    assert not (tmp_path / "pages").exists()
    assert play(tmp_path, *argv)[0] == 1
    assert (tmp_path / "pages" / "index.html").read_text() == "index"
    assert play(tmp_path, *argv)[0] == 0
    shutil.rmtree(site)
    assert "is no site of cadge" in play(tmp_path, *argv, code=2)[1]


@pytest.mark.long
def test_a_web_root_gets_a_release_and_a_link_and_a_second_time_nothing(site: Path, tmp_path: Path) -> None:
    root = tmp_path / "www"
    web = inventory(
        tmp_path, ansible_connection="local", ansible_python_interpreter=sys.executable, cadge_web_root=str(root)
    )
    argv = ("-i", str(web), "-e", "cadge_site=site")
    assert play(tmp_path, *argv, "--check")[0] > 0
    assert not root.exists()
    assert play(tmp_path, *argv)[0] > 0
    first = (root / "current").readlink()
    wanted = {name: text for name, text in contents(site).items() if not name.startswith(".git")}
    assert contents(root / "current") == wanted
    assert play(tmp_path, *argv)[0] == 0
    (root / "current").unlink()
    (root / "current").mkdir()  # empty: what a plain `ln -sfn` or a forced link would take away
    assert "is not a link to a site of cadge" in " ".join(play(tmp_path, *argv, code=2)[1].split())
    assert (root / "current").is_dir()
    assert contents(root / first) == wanted


POLICY = "default-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
NGINX = """\
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/error.log warn;
events {{ worker_connections 64; }}
http {{
  types {{ text/html html; application/json json; text/csv csv; image/svg+xml svg; application/gzip gz; }}
  default_type application/octet-stream;
  log_format plain '$status $request_uri';
  access_log {folder}/access.log plain;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  server {{
    listen {address}:8080;
    root {root}/current;
    add_header Content-Security-Policy "{policy}" always;
    add_header X-Content-Type-Options nosniff always;
  }}
}}
"""


@contextmanager
def served(ssh: list[str], folder: Path, root: Path, address: str) -> Iterator[str]:
    """Have nginx serve a web root on a host of the testbed; yield its address. The process ends with its connection."""
    folder.mkdir()
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, root=root, address=address, policy=POLICY))
    # the shell ends with its input, and takes nginx with it
    script = f"PATH=$PATH:/usr/sbin; nginx -c {folder}/nginx.conf & cat >/dev/null; kill $!; wait"
    with subprocess.Popen([*ssh, script], stdin=subprocess.PIPE) as child:
        try:
            deadline = time.monotonic() + 30
            while not (folder / "pid").is_file():
                assert time.monotonic() < deadline, (folder / "error.log").read_text()
                assert child.poll() is None
                time.sleep(0.05)
            yield f"http://{address}:8080/"
        finally:
            assert child.stdin is not None
            child.stdin.close()
            child.wait(30)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_browser_reads_what_was_published_on_an_emulated_web_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From records to a browser: publish, bring, serve under a strict policy, read index, report, data; and again."""
    program = chromium.find()
    if program is None or shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        pytest.skip("chromium or nginx is not here")
    able, why = emulated.may_be_root()
    if why := emulated.probe() if able else why:
        pytest.skip(f"no emulated testbed can be made here: {why}")
    state = Path(tempfile.mkdtemp(prefix="ct-"))  # short, for unix sockets
    monkeypatch.setenv("CADGE_STATE", str(state))
    options = synthetic.Options(
        layers=synthetic.LAYERS[:2], sizes=(8,), places=("within",), waits=("poll",), samples=200
    )
    earlier, later = (synthetic.make(tmp_path / "campaigns", replace(options, seed=seed)) for seed in (1, 2))
    root = tmp_path / "www"
    write(root, {"mine.txt": "the user's"})
    testbeds.up(1, shared=(tmp_path,))
    testbed = testbeds.resolve("emulated", hosts=1)
    try:
        (host,), prefix = testbed.hosts, tuple(testbed.exec_prefix)
        login = {key: one for key, one in testbed.host_variables[host.name].items() if key.startswith("ansible_")}
        address = host.management_address
        web = inventory(tmp_path, **login, cadge_web_root=str(root), cadge_web_url=f"http://{address}:8080")
        argv = ("-i", str(web), "-e", "cadge_site=site")
        ssh = ["ssh", "-F", f"{state}/ssh_config", host.name, "--"]
        with served([*prefix, *ssh], tmp_path / "nginx", root, address) as url:
            publish(earlier)
            assert play(tmp_path, *argv, prefix=prefix)[0] > 0
            with chromium.Browser(program, prefix=prefix, may_reach=address) as browser:
                read(browser, url, tmp_path / "site", earlier.campaign_id)
            assert play(tmp_path, *argv, prefix=prefix)[0] == 0
            older = (root / "current").readlink()
            publish(later)
            with asked_all_the_time(prefix, url) as answers:
                assert play(tmp_path, *argv, prefix=prefix)[0] > 0
            assert len(answers) > 10
            assert set(answers) == {"200"}
            with chromium.Browser(program, prefix=prefix, may_reach=address) as browser:
                read(browser, url, tmp_path / "site", later.campaign_id)
        assert (root / "current").readlink() != older
        assert (root / older / "index.html").is_file()
        assert (root / "mine.txt").read_text() == "the user's"
        log = (tmp_path / "nginx/access.log").read_text().splitlines()
        assert {line.split()[0] for line in log if "favicon" not in line} <= {"200", "304"}, log
    finally:
        testbeds.release(testbed)
        testbeds.down()
        shutil.rmtree(state, ignore_errors=True)


def publish(campaign: Campaign) -> None:
    """Publish as a user does, into `site` beside the campaigns."""
    results = campaign.path.parent
    code = "from cadge_cli.cli import main; main()"
    argv = [sys.executable, "-c", code, "publish", campaign.campaign_id, "--results", str(results), "--to", "site"]
    subprocess.run([*argv, "--yes"], cwd=results.parent, check=True, capture_output=True)


def read(browser: chromium.Browser, url: str, site: Path, name: str) -> None:
    """Go from the index to a run's report and its data: all as published, and nothing was asked for in vain."""
    run = json.loads((site / "runs" / name / "run.json").read_text())
    browser.visit(url)
    assert run["headline"] in browser.value("document.querySelector('tbody').textContent")
    assert browser.failures() == []
    link = browser.value(f"document.getElementById('{name}').querySelector('a').href")
    assert link == f"{url}runs/{name}/index.html"
    browser.visit(link)
    text = browser.value("document.body.innerText")
    assert [part for part in run["headline"].split(": ") if part not in text] == []
    assert browser.failures() == []
    assert browser.requests() == [link]
    files = browser.value("[...document.querySelector('aside').querySelectorAll('a')].map(a => a.href)")
    assert len(files) >= 6
    data = next(one for one in files if one.endswith("summary.json"))
    browser.visit(data)
    assert json.loads(browser.value("document.body.innerText"))["rows"]
    assert [one for one in browser.failures() if "favicon" not in one] == []  # which browsers want beside bare data


@contextmanager
def asked_all_the_time(prefix: tuple[str, ...], url: str) -> Iterator[list[str]]:
    """Ask for the index again and again from within the testbed; yield the list that gets the status of each answer."""
    done, answers = threading.Event(), []

    def ask() -> None:
        while not done.is_set():
            argv = [*prefix, "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", url]
            answers.append(subprocess.run(argv, capture_output=True, text=True, check=False).stdout)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield answers
    finally:
        done.set()
        asking.join(30)
