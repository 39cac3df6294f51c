"""Checks of snapshots, returns and forks: files are all the state there is."""

from __future__ import annotations

from turnwise.tools.sandbox.checks.core import Lab, check
from turnwise.tools.sandbox.checks.files import same
from turnwise.tools.sandbox.core import SandboxImage
from turnwise.tools.sandbox.files import Layer

_VARIED = """
mkdir -p d/empty d/full; echo text > d/full/a; printf 'x\\0y' > bin; echo '#!/bin/sh' > run; chmod 755 run
chmod 600 d/full/a; ln -s d/full/a link; ln -s nowhere broken; ln -s loop loop; mkfifo pipe
echo h > $HOME/.hidden; touch "a b" $'odd\\n' $'bad\\xff'; mkdir locked; echo in > locked/in; chmod 000 locked
python3 -c "f = open('sparse', 'wb'); f.seek(5000000); f.write(b'end')"
"""
_LOOK = "chmod 700 locked; find . -printf '%p %y %m %s %l\\n' | sort; cat d/full/a bin $HOME/.hidden; md5sum < sparse"


@check("state", "a fresh sandbox sees nothing of an earlier one: files, /tmp, /dev/shm", 60)
def fresh(lab: Lab) -> None:
    with lab.start() as first:
        first.exec(
            ["sh", "-c", "echo x > a; echo x > $HOME/b; echo x > /dev/shm/c; mkdir -p $HOME/.cache/pip"]
        )
    with lab.start() as second:
        same(second.exec(["sh", "-c", "ls -A . $HOME | grep -v :"]).out.strip(), "")
        same(second.snapshot().digest, SandboxImage().digest)


@check("state", "an image's files are there: contents, folders, modes")
def image_files(lab: Lab) -> None:
    image = SandboxImage(
        layers=(Layer.of({"a/b.py": "print(1)", "go": "#!/bin/sh\necho 2"}, executable=["go"]),)
    )
    with lab.start(image) as sandbox:
        same(sandbox.exec(["sh", "-c", "python3 a/b.py; ./go"]).out, "1\n2\n")
        same(sandbox.snapshot().digest, image.digest)


@check("state", "a later layer of an image wins")
def image_layers(lab: Lab) -> None:
    image = SandboxImage.of({"a": "1", "b": "1"}).with_files({"b": "2"})
    with lab.start(image) as sandbox:
        same(sandbox.exec(["cat", "a", "b"]).out, "12")


@check("state", "a return restores everything: modes, links, empty folders, pipes, sparse files")
def restore_exact(lab: Lab) -> None:
    lab.sh(_VARIED)
    image = lab.sandbox.snapshot()
    seen = lab.sh(_LOOK).out
    lab.sh("chmod -R u+rwx .; rm -rf ./* $HOME/.hidden; echo other > d")
    lab.sandbox.restore(image)
    same(lab.sandbox.snapshot().digest, image.digest)
    same(lab.sh(_LOOK).out, seen)


@check("state", "a snapshot does not change with the sandbox")
def snapshot_immutable(lab: Lab) -> None:
    lab.sandbox.write("a", "1")
    image = lab.sandbox.snapshot()
    digest = image.digest
    lab.sandbox.write("a", "2")
    later = lab.sandbox.snapshot()
    same((image.digest == digest, later.digest == digest), (True, False))
    with lab.start(image) as old:
        same(old.read("a"), b"1")


@check("state", "a fork has the same files, and neither changes the other")
def fork_apart(lab: Lab) -> None:
    lab.sh(_VARIED)
    with lab.sandbox.fork() as twin:
        same(twin.snapshot().digest, lab.sandbox.snapshot().digest)
        twin.write("mine", "twin")
        lab.sandbox.write("mine", "first")
        same((twin.read("mine"), lab.sandbox.read("mine")), (b"twin", b"first"))


@check("state", "what was removed or replaced stays so after a return")
def removals(lab: Lab) -> None:
    lab.sh("mkdir -p a/b; echo 1 > a/b/c; echo 1 > f; ln -s f l")
    lab.sandbox.snapshot()
    lab.sh("rm -r a; echo now > a; rm f l; mkdir f; echo 2 > f/x; echo 3 > l")
    image = lab.sandbox.snapshot()
    with lab.start(image) as twin:
        same(
            twin.exec(["sh", "-c", "cat a f/x l; find . | sort"]).out, "now\n2\n3\n.\n./a\n./f\n./f/x\n./l\n"
        )
        same(twin.snapshot().digest, image.digest)


@check("state", "a change that hides its time and size is noticed all the same")
def hidden_change(lab: Lab) -> None:
    lab.sh("echo one > a; touch -d 2020-01-01 a")
    first = lab.sandbox.snapshot()
    lab.sh("echo two > a; touch -d 2020-01-01 a")
    second = lab.sandbox.snapshot()
    same(first.digest == second.digest, False)
    with lab.start(second) as twin:
        same(twin.read("a"), b"two\n")


@check("state", "fifty snapshots in a row stay exact, and share what did not change")
def many_snapshots(lab: Lab) -> None:
    lab.sandbox.write("large", b"x" * 1_000_000)
    image = lab.sandbox.snapshot()
    for number in range(50):
        lab.sandbox.write(f"f{number % 7}", str(number))
        if number % 5 == 0:
            lab.sandbox.remove(f"f{number % 7}")
        image = lab.sandbox.snapshot()
    with lab.start(image) as twin:
        same(twin.snapshot().digest, image.digest)
        same(sorted(item.path for item in twin.list()), sorted(item.path for item in lab.sandbox.list()))
    assert sum(len(layer) for layer in image.layers) < 1_100_000


@check("state", "a repository's history, as deep as git makes it, survives a return")
def repository(lab: Lab) -> None:
    made = lab.sh(
        "git init -q . && git config user.name a && git config user.email a@b && echo 1 > a && git add a && git commit -qm one && echo 2 > a && git stash -q"
    )
    same(made.exit_code, 0)
    image = lab.sandbox.snapshot()
    with lab.start(image) as twin:
        found = twin.exec(
            ["sh", "-c", "git fsck --strict && git status --short && git log --oneline --all | wc -l"]
        )
        same((found.exit_code, found.out.strip()), (0, "3"))


@check("state", "a return makes locked folders and endless links go away")
def restore_from_anything(lab: Lab) -> None:
    lab.sh("mkdir -p a/b/c; chmod 000 a/b; ln -s . a/self; ln -s / $HOME/root; touch $'x\\ny'; chmod 500 a .")
    lab.sandbox.restore(SandboxImage.of({"only": "1"}))
    same([item.path for item in lab.sandbox.list()], ["only"])
