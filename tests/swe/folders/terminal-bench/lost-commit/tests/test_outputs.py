import subprocess


def test_the_plan_is_on_main():
    command = ["git", "-C", "/app/notes", "show", "main:plan.txt"]
    assert (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
        == "first rest, then work\n"
    )
