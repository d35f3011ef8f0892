// llama.cpp's HTTP server with Krill: a real server of somebody else's, to stand behind a pass-through
// pool. run.sh skips tests that import this file where the server is not installed.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { seconds, waitUntil, within } from './waiting.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const python = path.join(here, '.venv-llama', 'bin', 'python');
const krill = path.join(here, '..', '..', 'models', 'krill', 'krill-f16.gguf');

class LlamaServer {
  constructor(child, url) {
    this.child = child;
    this.url = url; // "http://127.0.0.1:40001", without /v1
  }

  /** A number that it counts: "requests_processing". */
  async metric(name) {
    const text = await (await fetch(`${this.url}/metrics`)).text();
    const line = text.split('\n').find((each) => each.startsWith(`llamacpp:${name} `));
    if (!line) throw new Error(`llama.cpp counts no ${name}`);
    return Number(line.split(' ')[1]);
  }

  /** Nothing is left of any request. */
  async becomesIdle() {
    await waitUntil('llama.cpp is idle', async () => (await this.metric('requests_processing')) === 0);
  }

  async stop() {
    const ended = this.child.exitCode === null ? once(this.child, 'exit') : null;
    this.child.kill('SIGKILL'); // It holds nothing that must be put away.
    await ended;
  }
}

/** Starts the server and waits until it has its model. `alias` is what it calls the model. */
export async function startLlamaServer({
  file = krill,
  alias = 'krill',
  slots = 4,
  context = 2048,
} = {}) {
  const template = path.join(here, 'krill_chat_template.jinja');
  const args = [path.join(here, 'llama_server.py'), file, template, alias, slots, context];
  // Its standard input is ours to close: it ends with this process, however that ends.
  const child = spawn(python, args.map(String), { stdio: ['pipe', 'pipe', 'pipe'] });
  let said = '';
  let log = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (said += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (log = (log + text).slice(-16384)));
  try {
    const line = await waitUntil(
      'llama.cpp listens',
      () => {
        const found = said.split('\n').find((each) => each.startsWith('{"url"'));
        return found ?? (child.exitCode === null ? null : 'ended');
      },
      seconds(60),
    );
    if (line === 'ended') throw new Error(`llama.cpp's server ended:\n${log}`);
    const { url } = JSON.parse(line);
    await within('llama.cpp has its model', isReady(url), seconds(60));
    return new LlamaServer(child, url);
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
}

function isReady(url) {
  return waitUntil('llama.cpp is ready', async () => (await fetch(`${url}/health`)).ok, seconds(60));
}
