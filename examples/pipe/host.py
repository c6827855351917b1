"""Drives `backstop pipe`: redoes each session's turn as the directives say.

usage: host.py BACKSTOP-COMMAND…
"""
import json
import subprocess
import sys
import time

pipe = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)


def ask(**line):
    print(json.dumps(line), file=pipe.stdin)
    return json.loads(pipe.stdout.readline())


def turn(session, tries):
    """A turn that fails twice, then works."""
    return None if tries == 3 else "503 Service Unavailable"


for session in ("alpha", "beta"):
    seq, tries = None, 0
    while True:
        tries += 1
        error = turn(session, tries)
        if error is None:
            if seq is not None:
                print(session, ask(op="succeeded", session=session, seq=seq)["verdict"], "after", tries, "tries")
            break
        directive = ask(session=session, error=error, **({} if seq is None else {"seq": seq}))
        if directive["action"] == "stop":
            print(session, "stopped:", directive["verdict"])
            break
        seq = directive["seq"]
        time.sleep(directive["wait_ms"] / 1000)

pipe.stdin.close()
sys.exit(pipe.wait())
