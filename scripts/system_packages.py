"""Installs the Debian packages that some tests need; `make test` calls it.

That takes root and apt. Whatever is missing afterwards is named with the tests that will be skipped: never an error.
"""

import os
import shutil
import subprocess

NEEDED_BY = {
    "chromium": "pages in a browser: reports, the serve page, TensorBoard",
    "chromium-driver": "clicking through the serve page",
    "postgresql": "a search that several machines share",
    "strace": "faults of single system calls",
    "zsh": "completion in zsh",
}


def main() -> None:
    missing = [name for name in NEEDED_BY if not installed(name)]
    if not missing:
        return
    errors = {}
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        errors = dict.fromkeys(missing, "installing takes root and apt")
    else:
        print(f"==> Installing Debian packages for some tests: {' '.join(missing)}", flush=True)
        apt("update")
        if apt("install", *missing):  # together first: that is much faster
            errors = {name: error for name in missing if (error := apt("install", name))}
    for name, error in errors.items():
        print(f"Not installed: {name} ({error}). Skipped tests: {NEEDED_BY[name]}.", flush=True)


def installed(name: str) -> bool:
    command = ["dpkg-query", "-W", "-f", "${db:Status-Status}", name]
    return (
        shutil.which("dpkg-query") is not None
        and subprocess.run(command, capture_output=True, check=False).stdout == b"installed"
    )


def apt(action: str, *names: str) -> str:
    """Runs apt-get; the last line of its error, or nothing."""
    command = ["apt-get", action, "-y", "-qq", *(["--no-install-recommends"] if names else []), *names]
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1] if done.returncode else ""


if __name__ == "__main__":
    main()
