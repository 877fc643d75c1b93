import io
import subprocess
import sys
import threading
import time

import pytest

import collegium._util.progress as module
from collegium._util.progress import progress, track


class Terminal(io.StringIO):
    def isatty(self):
        return True


def terminal(monkeypatch):
    """Standard error as a terminal, and no patience before a bar shows. In a fixture pytest would take it back."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(module, "DELAY", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    return screen


def until(condition):
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert condition()


def waiting():
    return [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]


def shows(bar):
    return lambda: bar in module._shown


def test_a_bar_shows_what_is_done_and_is_gone_at_the_end(monkeypatch):
    screen = terminal(monkeypatch)
    with progress("reading", 200) as bar:
        until(shows(bar))
        bar.advance(50)
        until(lambda: "25 %" in screen.getvalue())
        bar.move_to(100.0)
        until(lambda: "50 %" in screen.getvalue())
        assert "reading" in screen.getvalue()
        assert "left" in screen.getvalue()
    assert module._display is None
    end = screen.getvalue().rpartition("left")[2]
    assert "\x1b[2K" in end  # the line is erased
    assert "\n" not in end  # and nothing stands in its place


def test_bars_within_bars(monkeypatch):
    screen = terminal(monkeypatch)
    with progress("outer", 2) as outer:
        until(shows(outer))
        with progress("inner", 5) as inner:
            until(shows(inner))
            until(lambda: "outer" in screen.getvalue() and "inner" in screen.getvalue())
        assert module._shown == [outer]
        outer.advance()
        until(lambda: "50 %" in screen.getvalue())
    assert module._display is None
    assert list(track(range(3), "again")) == [0, 1, 2]


def test_an_error_inside_takes_the_bar_away(monkeypatch):
    terminal(monkeypatch)

    def work():
        with progress("reading", 3) as bar:
            until(shows(bar))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert module._display is None
    assert module._shown == []


def test_quick_work_shows_nothing(monkeypatch):
    screen = terminal(monkeypatch)
    monkeypatch.setattr(module, "DELAY", 30.0)
    with progress("reading", 3) as bar:
        bar.advance(3)
    assert screen.getvalue() == ""
    until(lambda: not waiting())  # nobody is left to show it later


@pytest.mark.parametrize("stderr", [io.StringIO(), None])
def test_no_terminal_no_bar(monkeypatch, stderr):
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(module, "DELAY", 0.0)
    with progress("reading", 3) as bar:
        bar(2)
        assert not waiting()
    assert bar.completed == 2
    assert not stderr or stderr.getvalue() == ""


def test_a_closed_standard_error(monkeypatch):
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    assert list(track("ab", "reading")) == ["a", "b"]


def test_rich_is_not_loaded_before_a_bar_shows():
    code = (
        "import sys; from collegium._util.progress import track; "
        "list(track(range(3), 'x')); sys.exit('rich' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_standard_output_stays_where_it_is(monkeypatch, capsys):
    screen = terminal(monkeypatch)
    with progress("reading", 3) as bar:
        until(shows(bar))
        sys.stdout.write("a result\n")
    assert capsys.readouterr().out == "a result\n"
    assert "a result" not in screen.getvalue()


def test_many_threads(monkeypatch):
    terminal(monkeypatch)
    with progress("reading", 8000) as bar:
        until(shows(bar))
        threads = [threading.Thread(target=lambda: [bar.advance() for _ in range(1000)]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert bar.completed == 8000


def test_time_left(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    bar = module.Bar("downloading", 5000, start=1000)
    assert bar.left == ""
    now[0] += 10
    bar.move_to(1500)  # 500 in 10 s: 3500 more take 70 s
    assert bar.left == "0:01:10 left"
    now[0] += 5
    assert bar.left == "0:01:05 left"
    now[0] += 500
    assert bar.left == "0:00:00 left"
    now[0] = 1000 + 3600
    assert bar.left == "0:00:00 left"
    bar.move_to(1501)
    assert bar.left.startswith("6:59:")  # 3499 more at 3600/501 s each
    bar.total = None
    assert bar.left == ""


def test_amounts():
    bar = module.Bar("downloading", 170_052_171, in_bytes=True)
    bar.move_to(12_345_678)
    assert bar.amount == "12.3 of 170.1 MB"
    bar.total = None
    assert bar.amount == "12.3 MB"
    assert module.Bar("reading", None).amount == ""
    assert module.Bar("reading", 0).amount == ""


def test_without_a_terminal_there_are_lines(monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    monkeypatch.setattr(module, "EVERY", 0.005)
    with progress("quiet", 2):
        assert not [thread for thread in threading.enumerate() if thread.name == "progress"]
    monkeypatch.setattr(module, "in_log", True)
    with progress("studies", 4) as outer, progress("reading", 2e6, in_bytes=True) as inner:
        until(lambda: "studies: 0 of 4 (0 %); reading: 0.0 of 2.0 MB\n" in log.getvalue())
        outer.advance()
        inner.advance(1e6)
        until(lambda: "studies: 1 of 4 (25 %), 0:00:" in log.getvalue())
        until(lambda: "reading: 1.0 of 2.0 MB, 0:00:" in log.getvalue())
    assert not module._logged
    until(lambda: not [thread for thread in threading.enumerate() if thread.name == "progress"])


def test_the_command_line_wants_lines():
    script = "import sys; from collegium._util import progress as p; from collegium.cli.app import main\n"
    script += "try: main()\nexcept SystemExit: print(p.in_log)"
    ended = subprocess.run([sys.executable, "-c", script, "--version"], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "True"
