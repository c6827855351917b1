// Drives `backstop pipe`: many sessions at once, their answers told apart by `id`.
// usage: node host.mjs BACKSTOP-COMMAND…
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

const [command, ...args] = process.argv.slice(2);
const pipe = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const waiting = new Map();
createInterface({ input: pipe.stdout }).on("line", (line) => {
  const answer = JSON.parse(line);
  waiting.get(answer.id)?.(answer);
  waiting.delete(answer.id);
});

let lines = 0;
function ask(fields) {
  const id = ++lines;
  pipe.stdin.write(JSON.stringify({ ...fields, id }) + "\n");
  return new Promise((resolve) => waiting.set(id, resolve));
}

// A turn that fails twice, then works.
const turn = (tries) => (tries === 3 ? null : { status: 503, message: "Service Unavailable" });

async function session(name) {
  let seq;
  for (let tries = 1; ; tries++) {
    const error = turn(tries);
    if (!error) {
      const end = seq === undefined ? undefined : await ask({ op: "succeeded", session: name, seq });
      return console.log(name, end?.verdict ?? "worked", "after", tries, "tries");
    }
    const directive = await ask({ session: name, error, seq });
    if (directive.action === "stop") return console.log(name, "stopped:", directive.verdict);
    seq = directive.seq;
    await sleep(directive.wait_ms);
  }
}

await Promise.all(["alpha", "beta", "gamma"].map(session));
pipe.stdin.end();
