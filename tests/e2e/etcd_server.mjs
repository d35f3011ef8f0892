// etcd as Debian has it (package etcd-server), for one test. tools/bootstrap.sh installs it; run.sh skips tests
// that import this file where that could not be done.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import path from 'node:path';

import { removeFolder, temporaryFolder } from './service.mjs';
import { seconds, waitUntil } from './waiting.mjs';

/** A port that nobody has now; etcd does not say which one it took for 0. */
async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

class EtcdServer {
  #child;

  constructor(port, peerPort) {
    this.folder = temporaryFolder();
    this.url = `http://127.0.0.1:${port}`;
    this.peer = `http://127.0.0.1:${peerPort}`;
    process.on('exit', () => this.#child?.kill('SIGKILL'));
  }

  /** Also after `kill`: it has everything that it had. */
  async start() {
    const child = spawn(
      'etcd',
      ['--data-dir', path.join(this.folder, 'data'), '--log-level', 'error',
        '--listen-client-urls', this.url, '--advertise-client-urls', this.url,
        '--listen-peer-urls', this.peer, '--initial-advertise-peer-urls', this.peer,
        '--initial-cluster', `default=${this.peer}`],
      { stdio: 'ignore', env: { ...process.env, ETCD_UNSUPPORTED_ARCH: process.arch } },
    );
    this.#child = child;
    await waitUntil(
      'etcd is healthy',
      async () => {
        if (child.exitCode !== null) throw new Error(`etcd ended (${child.exitCode})`);
        return (await (await fetch(`${this.url}/health`)).json()).health === 'true';
      },
      seconds(30),
    );
    return this;
  }

  async kill() {
    if (!this.#child) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
    this.#child = null;
  }

  async stop() {
    await this.kill();
    removeFolder(this.folder);
  }

  /** A call of its JSON gateway; keys and values as they are. */
  async call(where, body) {
    const coded = Object.fromEntries(
      Object.entries(body).map(([name, text]) => [name, Buffer.from(text).toString('base64')]),
    );
    const response = await fetch(`${this.url}/v3/kv/${where}`, {
      method: 'POST',
      body: JSON.stringify(coded),
    });
    return response.json();
  }
  put(key, value) {
    return this.call('put', { key, value });
  }
  erase(key) {
    return this.call('deleterange', { key });
  }
}

export async function startEtcd() {
  return new EtcdServer(await freePort(), await freePort()).start();
}
