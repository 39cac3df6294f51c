"""Programs that stand in for installers and for whatever fetches, in a sandbox without a network: each notes what was asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_NOTE = """note() {{ printf '{{"install": "%s"}}\\n' "$(printf '%s' "$*" | tr -d '"\\\\' | tr '\\n' ' ' | cut -c1-200)" >> "${{XRAY_LOG:-/dev/null}}"; }}
"""
_INSTALLER = (
    "#!/bin/bash\nunset BASH_ENV\n"
    + _NOTE.replace("{{", "{").replace("}}", "}")
    + 'note "$(basename "$0") $*"\n'
)
_FETCH = (
    "#!/bin/bash\nunset BASH_ENV\n"
    """for word in "$@"; do case "$word" in *://localhost*|*://127.*|localhost:*|127.0.0.1*) exec @NAME@.real "$@" 2>/dev/null || exit 7;; esac; done
place=; for word in "$@"; do case "$word" in *://*) place=$word;; esac; done
case "$place" in
  *astral.sh*|*pypi*|*get-pip*|*deb.*|*nodesource*|*rustup*) kind=install;;
  *) kind=net;;
esac
printf '{"%s": "%s"}\\n' "$kind" "$(printf '%s' "@NAME@ $place" | tr -d '"\\\\' | cut -c1-200)" >> "${XRAY_LOG:-/dev/null}"
[ $kind = install ] && exit 0
echo "@NAME@: (6) Could not resolve host" >&2
exit 6
"""
)
_UV = (
    _INSTALLER
    + """
kind=$(basename "$0"); [ "$kind" = uv ] && case "$1" in
  run) shift; kind=uvx;;
  tool) shift; kind=uvx;;
  venv) mkdir -p "${2:-.venv}/bin"; : > "${2:-.venv}/bin/activate"; exit 0;;
  *) exit 0;;
esac
while [ $# -gt 0 ]; do case "$1" in
  pytest|python|python3|bash|sh) exec "$@";;
  *.py) exec python3 "$@";;
  -p|--python|-w|--with|--from|--directory|--project|--extra) shift 2;;
  *) shift;;
esac; done
exit 0
"""
)
_TIMEOUT = """#!/bin/bash
unset BASH_ENV
while [ $# -gt 0 ]; do case "$1" in
  -s|-k|--signal|--kill-after) shift 2;;
  -*) shift;;
  *) shift; break;;
esac; done
exit 124
"""
_PIP = '"""Stands in for pip."""\nimport os, sys\n\nfile = os.environ.get("XRAY_LOG") or os.devnull\nwith open(file, "a") as log:\n    log.write(\'{"install": "pip %s"}\\n\' % " ".join(sys.argv[1:]).replace(\'"\', "")[:200])\n'
_BASH = """export PATH="@HERE@/bin:$PATH" PYTHONPATH="@HERE@${PYTHONPATH:+:$PYTHONPATH}"
if [ -n "$XRAY_RANDOM" ]; then unset RANDOM SRANDOM; RANDOM=$XRAY_RANDOM; SRANDOM=$XRAY_RANDOM; fi
if [ -n "$XRAY_NOW" ]; then unset EPOCHSECONDS; EPOCHSECONDS=$XRAY_NOW
date() { case " $* " in *" -d "*|*" --date"*|*" -r "*) command date "$@";; *) command date -d "@$XRAY_NOW" "$@";; esac; }; export -f date; fi
"""
_SHUF = """#!/bin/bash
unset BASH_ENV
if [ -z "$XRAY_RANDOM" ]; then exec /usr/bin/shuf "$@"; fi
if [ "$XRAY_RANDOM" = 0 ]; then exec /usr/bin/shuf --random-source=/dev/zero "$@"; fi
yes q | tr -d '\\n' | head -c 100000 > "/tmp/.xray-bytes.$$"; exec /usr/bin/shuf --random-source="/tmp/.xray-bytes.$$" "$@"
"""
INSTALLERS = (
    "pip",
    "pip3",
    "apt",
    "apt-get",
    "npm",
    "yarn",
    "pnpm",
    "conda",
    "mamba",
    "apk",
    "yum",
    "dnf",
    "brew",
    "gem",
    "cargo-install",
    "add-apt-repository",
    "poetry",
)


def stand_ins(here: str, *, time_up: bool = False) -> Mapping[str, bytes]:
    """Files of the stand-ins by their paths below ``here``."""
    found = {f"bin/{name}": _INSTALLER for name in INSTALLERS}
    found |= {f"bin/{name}": _UV for name in ("uv", "uvx", "pipx")}
    found |= {f"bin/{name}": _FETCH.replace("@NAME@", name) for name in ("curl", "wget")}
    found |= {
        "bin/shuf": _SHUF,
        "bash_env": _BASH.replace("@HERE@", here),
        "pip/__init__.py": "",
        "pip/__main__.py": _PIP,
    }
    found["bin/sudo"] = '#!/bin/bash\nunset BASH_ENV\nwhile [ "${1#-}" != "$1" ]; do shift; done\nexec "$@"\n'
    if time_up:
        found["bin/timeout"] = _TIMEOUT
    return MappingProxyType({path: text.encode() for path, text in found.items()})
