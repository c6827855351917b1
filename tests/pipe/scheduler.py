"""A scheduler of many sessions over one `backstop pipe`: what a host in another language looks like.

usage: scheduler.py SESSIONS BACKSTOP-COMMAND…
"""
import heapq
import json
import queue
import subprocess
import sys
import threading
import time

count = int(sys.argv[1])
pipe = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
answers = queue.Queue()
threading.Thread(target=lambda: [answers.put(json.loads(line)) for line in pipe.stdout], daemon=True).start()

ERRORS = [
    "Error: 429 Too Many Requests",
    {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    {"message": "fetch failed", "cause": {"code": "ECONNRESET"}},
]


def send(**line):
    pipe.stdin.write(json.dumps(line) + "\n")


class Session:
    """Fails as often as its number says, then works."""

    def __init__(self, number):
        self.name, self.number = f"agent-{number}", number
        self.left, self.seq, self.verdict, self.redos = number % 4, None, None, 0

    def turn(self):
        if self.left:
            self.left -= 1
            redo = {} if self.seq is None else {"seq": self.seq}
            send(session=self.name, id=[self.name, "failed"], error=ERRORS[self.number % len(ERRORS)], **redo)
        elif self.seq is None:
            self.verdict = "worked"
        else:
            send(op="succeeded", session=self.name, id=[self.name, "worked"], seq=self.seq)


sessions = {session.name: session for session in map(Session, range(count))}
due = []  # (not_before, name)
for session in sessions.values():
    session.turn()
while any(session.verdict is None for session in sessions.values()):
    while due and due[0][0] <= time.time() * 1000:
        session = sessions[heapq.heappop(due)[1]]
        session.redos += 1
        session.turn()
    pause = max(0.001, due[0][0] / 1000 - time.time()) if due else 60
    try:
        answer = answers.get(timeout=pause)
    except queue.Empty:
        assert due, "no answer for a minute"
        continue
    session = sessions[answer["session"]]
    assert answer["id"][0] == session.name and "error" not in answer, answer
    if answer["action"] == "redo":
        session.seq = answer["seq"]
        heapq.heappush(due, (answer["not_before"], session.name))
    else:
        session.verdict = answer["verdict"]
        assert session.redos == session.number % 4, (session.name, session.redos)

verdicts = [session.verdict for session in sessions.values()]
send(op="metrics", id="end")
metrics = answers.get(timeout=60)["metrics"]
pipe.stdin.close()
print(json.dumps({
    "code": pipe.wait(),
    "recovered": verdicts.count("recovered"),
    "worked": verdicts.count("worked"),
    "counted": metrics["successfulRecoveries"],
}))
