// A gateway whose engines come and go: they run by themselves and say where they are, or a test does.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';

import { readMetrics } from './metrics.mjs';
import { clientOf, removeFolder, runProgram, startProgram, temporaryFolder } from './service.mjs';
import { waitUntil } from './waiting.mjs';

export class Cluster {
  #engines = new Set();

  /** `config`: more of the gateway's file. */
  constructor(config = '') {
    this.folder = temporaryFolder();
    this.file = path.join(this.folder, 'sluice.toml');
    const addresses = '[gateway]\nlisten = "127.0.0.1:0"\nadmin = "127.0.0.1:0"\n';
    writeFileSync(this.file, `${addresses}[[pool]]\nname = "stable"\n${config}`);
  }

  async start() {
    const { program, listening } = await startProgram(
      ['gateway', '--config', this.file, '--state', this.folder, '--json'],
      {},
      'listening',
    );
    Object.assign(this, { program, url: listening.url, admin: listening.admin });
    return this;
  }

  async stop() {
    for (const engine of this.#engines) engine.kill('SIGKILL');
    this.program?.kill('SIGKILL');
    await this.program?.ended;
    removeFolder(this.folder);
  }

  /** An engine that registers itself at the gateway. */
  async startEngine(args = [], { register = this.admin, lease = '2s' } = {}) {
    const { program, ready } = await startProgram([
      'engine', '--config', this.file, '--threads', '1', '--json',
      '--register', register, '--lease', lease, ...args,
    ]);
    this.#engines.add(program);
    return { program, url: ready.url, port: new URL(ready.url).port };
  }

  openai() {
    return clientOf(this.url);
  }
  metrics() {
    return readMetrics(this.admin);
  }
  async status() {
    return (await fetch(`${this.admin}/admin/status`)).json();
  }
  async workers() {
    return (await this.status()).pools[0].workers;
  }
  async worker(url) {
    return (await this.workers()).find((each) => each.url === url);
  }
  /** Waits until what `holds` says is true of the worker there; undefined is one that is not known. */
  reaches(what, url, holds) {
    return waitUntil(`the worker at ${url} ${what}`, async () => {
      const worker = await this.worker(url);
      return holds(worker) ? (worker ?? true) : null;
    });
  }
  becomesReady(url) {
    return this.reaches('is ready', url, (worker) => worker?.state === 'ready');
  }
  isForgotten(url) {
    return this.reaches('is forgotten', url, (worker) => worker === undefined);
  }

  /** Runs `sluice ctl ARGS`. */
  async ctl(...args) {
    const { code, stdout, stderr } = await runProgram(['ctl', ...args, '--url', this.admin]);
    return { code, text: stdout + stderr };
  }
  async drain(name, ...args) {
    const { code, text } = await this.ctl('drain', name, ...args);
    assert.equal(code, 0, text);
    return text;
  }
  /** Asks the admin address; status and body. */
  async ask(method, where, body) {
    const response = await fetch(`${this.admin}${where}`, {
      method,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    return { status: response.status, body: await response.json() };
  }
}
